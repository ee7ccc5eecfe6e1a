/* SPDX-License-Identifier: MIT */
/*
 * Parsing classes. Go's grammar is that of regexp/syntax, the other's that of
 * pcre2pattern(3) without UTF.
 */
#include "tools/scan/regex_class.h"

#include <string.h>

void regex_set_add_range(struct regex_set *set, unsigned first, unsigned last)
{
	for (unsigned byte = first; byte <= last; byte++) {
		set->bits[byte / 64] |= (uint64_t)1 << (byte % 64);
	}
}

void regex_set_add_set(struct regex_set *set, const struct regex_set *other)
{
	for (int i = 0; i < 4; i++) {
		set->bits[i] |= other->bits[i];
	}
}

void regex_set_negate(struct regex_set *set)
{
	for (int i = 0; i < 4; i++) {
		set->bits[i] = ~set->bits[i];
	}
}

void regex_set_fold(struct regex_set *set)
{
	for (unsigned upper = 'A'; upper <= 'Z'; upper++) {
		unsigned lower = upper + ('a' - 'A');

		if (regex_set_has(set, upper) || regex_set_has(set, lower)) {
			regex_set_add_range(set, upper, upper);
			regex_set_add_range(set, lower, lower);
		}
	}
}

/* Ranges as pairs of characters. */
static void add_pairs(struct regex_set *set, const char *pairs)
{
	for (; pairs[0] != '\0'; pairs += 2) {
		regex_set_add_range(set, (unsigned char)pairs[0], (unsigned char)pairs[1]);
	}
}

bool regex_set_of_letter(enum rule_dialect dialect, char letter, struct regex_set *out_set)
{
	bool is_go = dialect == RULE_DIALECT_GO;
	bool is_negated = letter >= 'A' && letter <= 'Z';

	*out_set = (struct regex_set){0};
	switch (is_negated ? letter + ('a' - 'A') : letter) {
	case 'd':
		add_pairs(out_set, "09");
		break;
	case 'w':
		add_pairs(out_set, "azAZ09__");
		break;
	case 's':
		/* Without the vertical tab in Go alone. */
		add_pairs(out_set, is_go ? "\t\n\f\r  " : "\t\r  ");
		break;
	case 'h':
		add_pairs(out_set, "\t\t  \xa0\xa0");
		is_negated = is_negated && !is_go;
		if (is_go) {
			return false;
		}
		break;
	case 'v':
		if (is_go) {
			return false;
		}
		add_pairs(out_set, "\n\r\x85\x85");
		break;
	default:
		return false;
	}
	if (is_negated) {
		regex_set_negate(out_set);
	}
	return true;
}

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9') {
		return digit - '0';
	}
	if (digit >= 'a' && digit <= 'f') {
		return digit - 'a' + 10;
	}
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* After `\x`. */
static const char *parse_hex(const char **at, const char *end, uint32_t *out_character)
{
	const char *next = *at;
	uint32_t value = 0;
	bool has_braces = next < end && *next == '{';
	int digits = 0;

	next += has_braces;
	while (next < end && hex_value(*next) >= 0 && digits < (has_braces ? 8 : 2)) {
		value = value * 16 + (uint32_t)hex_value(*next++);
		digits++;
	}
	if (digits == 0 || (has_braces && (next == end || *next++ != '}')) ||
		(!has_braces && digits != 2) || value > 0x10ffff) {
		return "bad hexadecimal escape";
	}
	*at = next;
	*out_character = value;
	return NULL;
}

/* Up to three octal digits, the first of which is at `*at`. */
static uint32_t parse_octal(const char **at, const char *end)
{
	uint32_t value = 0;

	for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++) {
		value = value * 8 + (uint32_t)(*(*at)++ - '0');
	}
	return value;
}

static bool is_punctuation(char byte)
{
	unsigned char code = (unsigned char)byte;

	return code < 0x80 && !(byte >= '0' && byte <= '9') && !(byte >= 'a' && byte <= 'z') &&
		!(byte >= 'A' && byte <= 'Z');
}

const char *regex_escape(
	enum rule_dialect dialect, const char **at, const char *end, uint32_t *out_character)
{
	static const char letters[] = "afnrtve";
	static const char values[] = "\a\f\n\r\t\v\x1b";
	const char *letter;
	char byte;

	if (*at == end) {
		return "ends in a backslash";
	}
	byte = *(*at)++;
	letter = strchr(letters, byte);
	if (byte == 'x') {
		return parse_hex(at, end, out_character);
	}
	if (byte == '0' ||
		(byte >= '1' && byte <= '7' && *at < end && **at >= '0' && **at <= '7')) {
		--*at;
		*out_character = parse_octal(at, end);
		return *out_character > 0xff ? "bad octal escape" : NULL;
	}
	/* `\v` is a set in PCRE, `\e` is not in Go. */
	if (byte != '\0' && letter != NULL && byte != (dialect == RULE_DIALECT_GO ? 'e' : 'v')) {
		*out_character = (uint8_t)values[letter - letters];
		return NULL;
	}
	if (is_punctuation(byte) || (dialect == RULE_DIALECT_PCRE && (unsigned char)byte >= 0x80)) {
		--*at;
		*out_character = regex_character(at, end);
		return NULL;
	}
	return "an escape that is not supported";
}

uint32_t regex_character(const char **at, const char *end)
{
	const uint8_t *bytes = (const uint8_t *)*at;
	size_t left = (size_t)(end - *at);
	size_t length = bytes[0] < 0x80 ? 1 : bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	uint32_t value = bytes[0];

	if (length > 1 && length <= left && bytes[0] >= 0xc2) {
		value &= 0x7fu >> length;
		for (size_t i = 1; i < length; i++) {
			value = value << 6 | (bytes[i] & 0x3f);
		}
	} else {
		length = 1;
	}
	*at += length;
	return value;
}

size_t regex_utf8(uint32_t character, uint8_t out_bytes[REGEX_UTF8_MAX])
{
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	if (length == 1) {
		out_bytes[0] = (uint8_t)character;
		return 1;
	}
	for (size_t i = length - 1; i > 0; i--) {
		out_bytes[i] = (uint8_t)(0x80 | (character & 0x3f));
		character >>= 6;
	}
	out_bytes[0] = (uint8_t)(0xf00u >> length | character);
	return length;
}

/* ---- classes ---- */

struct posix_class {
	const char *name;
	const char *pairs;
};

static const struct posix_class posix_classes[] = {
	{"alnum", "azAZ09"},
	{"alpha", "azAZ"},
	{"ascii", "\x01\x7f"}, /* and NUL */
	{"blank", "\t\t  "},
	{"cntrl", "\x01\x1f\x7f\x7f"}, /* and NUL */
	{"digit", "09"},
	{"graph", "!~"},
	{"lower", "az"},
	{"print", " ~"},
	{"punct", "!/:@[`{~"},
	{"space", "\t\r  "},
	{"upper", "AZ"},
	{"word", "azAZ09__"},
	{"xdigit", "09afAF"},
};

/* `[:name:]` at `*at`; false: it is none. */
static bool parse_posix(
	const char **at, const char *end, struct regex_set *set, const char **out_reason)
{
	const char *close = memmem(*at, (size_t)(end - *at), ":]", 2);
	const char *name = *at + 2;
	bool is_negated = name < end && *name == '^';
	struct regex_set named = {0};

	*out_reason = NULL;
	if (end - *at < 4 || (*at)[1] != ':' || close == NULL || close < name) {
		return false;
	}
	name += is_negated;
	for (size_t i = 0; i < sizeof(posix_classes) / sizeof(posix_classes[0]); i++) {
		const struct posix_class *class = &posix_classes[i];

		if (strlen(class->name) == (size_t)(close - name) &&
			memcmp(class->name, name, (size_t)(close - name)) == 0) {
			add_pairs(&named, class->pairs);
			if (class->name[0] == 'c' || class->name[1] == 's') {
				regex_set_add_range(&named, 0, 0);
			}
			if (is_negated) {
				regex_set_negate(&named);
			}
			regex_set_add_set(set, &named);
			*at = close + 2;
			return true;
		}
	}
	*out_reason = "an unknown class between [: and :]";
	return true;
}

/* A character of a class, perhaps the first or last of a range. */
static const char *parse_member(
	enum rule_dialect dialect, const char **at, const char *end, uint32_t *out_character)
{
	if (**at != '\\') {
		*out_character = regex_character(at, end);
		return NULL;
	}
	++*at;
	if (dialect == RULE_DIALECT_PCRE && *at < end && **at == 'b') {
		++*at;
		*out_character = '\b';
		return NULL;
	}
	return regex_escape(dialect, at, end, out_character);
}

/* Bytes of the pattern, and escapes up to `\xff` of PCRE, are bytes. */
static const char *add_members(
	enum rule_dialect dialect, struct regex_set *set, uint32_t first, uint32_t last)
{
	uint32_t limit = dialect == RULE_DIALECT_PCRE ? 0x100 : 0x80;

	if (first > last) {
		return "a range that ends before it begins";
	}
	if (first < limit) {
		regex_set_add_range(set, first, last < limit ? last : limit - 1);
		first = limit;
	}
	if (first <= last && last - first >= REGEX_EXTRAS_MAX - set->extra_count) {
		return "a class with more than 64 characters beyond ASCII";
	}
	for (; first <= last; first++) {
		set->extras[set->extra_count++] = first;
	}
	return NULL;
}

/* One item of a class: a set or a range. */
static const char *parse_item(
	enum rule_dialect dialect, const char **at, const char *end, struct regex_set *set)
{
	struct regex_set named;
	const char *reason;
	uint32_t first;
	uint32_t last;

	if (**at == '[' && parse_posix(at, end, set, &reason)) {
		return reason;
	}
	if (**at == '\\' && *at + 1 < end && regex_set_of_letter(dialect, (*at)[1], &named)) {
		regex_set_add_set(set, &named);
		*at += 2;
		return NULL;
	}
	reason = parse_member(dialect, at, end, &first);
	last = first;
	if (reason == NULL && end - *at >= 2 && (*at)[0] == '-' && (*at)[1] != ']') {
		if ((*at)[1] == '\\' && end - *at >= 3 &&
			regex_set_of_letter(dialect, (*at)[2], &named)) {
			/* `[a-\d]`: the dash is one of the class. */
			return dialect == RULE_DIALECT_GO ? "a range that ends in a class"
							  : add_members(dialect, set, first, last);
		}
		++*at;
		reason = parse_member(dialect, at, end, &last);
	}
	return reason != NULL ? reason : add_members(dialect, set, first, last);
}

const char *regex_class_parse(enum rule_dialect dialect, bool folds, const char **at,
	const char *end, struct regex_set *out_set)
{
	bool is_negated = *at < end && **at == '^';
	bool is_first = true;

	*out_set = (struct regex_set){0};
	*at += is_negated;
	while (*at < end && (is_first || **at != ']')) {
		const char *reason = parse_item(dialect, at, end, out_set);

		if (reason != NULL) {
			return reason;
		}
		is_first = false;
	}
	if (*at == end) {
		return "a class without its ]";
	}
	++*at;
	if (folds) {
		regex_set_fold(out_set);
	}
	if (is_negated && out_set->extra_count > 0) {
		return "a class that excludes characters beyond ASCII";
	}
	if (is_negated) {
		regex_set_negate(out_set);
	}
	return NULL;
}
