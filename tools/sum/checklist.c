/* SPDX-License-Identifier: MIT */
/*
 * The text side of checksum lists: no files, no hashing.
 */
#include "tools/sum/checklist.h"

#include <string.h>

static void append_path(struct output_text *text, const char *path, bool is_escaped)
{
	size_t length;

	if (!is_escaped) {
		output_text_string(text, path);
		return;
	}
	while (*path != '\0') {
		length = strcspn(path, "\\\n\r");
		output_text_append(text, path, length);
		path += length;
		if (*path == '\0') {
			return;
		}
		output_text_string(text, *path == '\n' ? "\\n" : *path == '\r' ? "\\r" : "\\\\");
		path++;
	}
}

static void append_hex(struct output_text *text, const uint8_t *bytes, uint32_t length)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2 * DIGEST_BYTES_MAX];

	for (uint32_t i = 0; i < length; i++) {
		hex[2 * i] = digits[bytes[i] >> 4];
		hex[2 * i + 1] = digits[bytes[i] & 15];
	}
	output_text_append(text, hex, 2 * (size_t)length);
}

void checklist_append_line(struct output_text *text, const struct digest_algorithm *algorithm,
	const uint8_t *digest, const char *path, struct checklist_style style)
{
	bool is_escaped =
		(!style.is_nul || style.is_shown) && path[strcspn(path, "\\\n\r")] != '\0';

	if (is_escaped) {
		output_text_append(text, "\\", 1);
	}
	if (style.is_tagged || algorithm->is_tagged) {
		output_text_string(text, algorithm->tag);
		output_text_string(text, " (");
		append_path(text, path, is_escaped);
		output_text_string(text, ") = ");
		append_hex(text, digest, algorithm->digest_bytes);
	} else {
		append_hex(text, digest, algorithm->digest_bytes);
		output_text_string(text, "  ");
		append_path(text, path, is_escaped);
	}
	output_text_append(text, style.is_nul ? "" : "\n", 1);
}

void checklist_append_verdict(struct output_text *text, const char *path, const char *verdict)
{
	bool is_escaped = strchr(path, '\n') != NULL;

	if (is_escaped) {
		output_text_append(text, "\\", 1);
	}
	append_path(text, path, is_escaped);
	output_text_string(text, ": ");
	output_text_string(text, verdict);
	output_text_append(text, "\n", 1);
}

static bool is_blank(char character)
{
	return character == ' ' || character == '\t';
}

/* Value of a hexadecimal digit of either case, -1 for anything else. */
static int hex_value(char character)
{
	if (character >= '0' && character <= '9') {
		return character - '0';
	}
	if (character >= 'a' && character <= 'f') {
		return character - 'a' + 10;
	}
	if (character >= 'A' && character <= 'F') {
		return character - 'A' + 10;
	}
	return -1;
}

static size_t hex_count(const char *text)
{
	size_t count = 0;

	while (hex_value(text[count]) >= 0) {
		count++;
	}
	return count;
}

/* Reads exactly the algorithm's number of digits. */
static bool parse_digest(struct checklist_entry *entry, const char *hex)
{
	uint32_t length = entry->algorithm->digest_bytes;

	if (hex_count(hex) != 2 * (size_t)length) {
		return false;
	}
	for (uint32_t i = 0; i < length; i++) {
		entry->digest[i] =
			(uint8_t)(hex_value(hex[2 * i]) << 4 | hex_value(hex[2 * i + 1]));
	}
	return true;
}

/* Undoes the escapes in place; false for an unknown one. */
static bool unescape(char *path)
{
	char *target = path;

	for (const char *source = path; *source != '\0'; source++) {
		char character = *source;

		if (character == '\\') {
			source++;
			if (*source == 'n') {
				character = '\n';
			} else if (*source == 'r') {
				character = '\r';
			} else if (*source != '\\') {
				return false;
			}
		}
		*target++ = character;
	}
	*target = '\0';
	return true;
}

/* `text` follows the opening parenthesis. The path may hold any others. */
static bool parse_tagged(struct checklist_entry *entry, char *text)
{
	char *close = strrchr(text, ')');
	const char *rest;

	if (close == NULL) {
		return false;
	}
	rest = close + 1;
	while (is_blank(*rest)) {
		rest++;
	}
	if (*rest != '=') {
		return false;
	}
	rest++;
	while (is_blank(*rest)) {
		rest++;
	}
	if (!parse_digest(entry, rest) || rest[hex_count(rest)] != '\0') {
		return false;
	}
	*close = '\0';
	entry->path = text;
	return true;
}

/*
 * Where the path of a BSD line begins if `text` starts with this tag. OpenSSL
 * leaves out the space.
 */
static char *skip_tag(char *text, const char *tag)
{
	size_t length = strlen(tag);

	if (strncmp(text, tag, length) != 0) {
		return NULL;
	}
	text += length;
	if (*text == ' ') {
		text++;
	}
	return *text == '(' ? text + 1 : NULL;
}

/* The algorithm of a line without a tag; NULL: none of ours. */
static const struct digest_algorithm *algorithm_of_length(
	struct checklist *list, size_t digit_count)
{
	if (list->only != NULL) {
		return list->only;
	}
	switch (digit_count) {
	case 64:
		list->guessed = &digest_algorithms[DIGEST_SHA256];
		return list->guessed;
	case 32:
		list->guessed = &digest_algorithms[DIGEST_XXH3_128];
		return list->guessed;
	case 40:
		return &digest_algorithms[DIGEST_SHA1];
	default:
		return NULL;
	}
}

/* After the digest: a blank and, in the GNU form, a space or an asterisk. */
static bool parse_gap(struct checklist *list, struct checklist_entry *entry, char *text)
{
	if (!is_blank(*text)) {
		return false;
	}
	text++;
	if (text[0] == '\0') {
		return false;
	}
	if (text[1] == '\0' || (text[0] != ' ' && text[0] != '*')) {
		if (list->gap == CHECKLIST_GAP_TWO) {
			return false;
		}
		list->gap = CHECKLIST_GAP_ONE;
	} else if (list->gap != CHECKLIST_GAP_ONE) {
		list->gap = CHECKLIST_GAP_TWO;
		text++;
	}
	entry->path = text;
	return true;
}

static bool parse_untagged(struct checklist *list, struct checklist_entry *entry, char *text)
{
	static const char prefix[] = "XXH3_";

	if (strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
		text += sizeof(prefix) - 1;
		entry->algorithm = &digest_algorithms[DIGEST_XXH3_64];
		if (list->only != NULL && list->only != entry->algorithm) {
			return false;
		}
	} else {
		entry->algorithm = algorithm_of_length(list, hex_count(text));
	}
	return entry->algorithm != NULL && parse_digest(entry, text) &&
		parse_gap(list, entry, text + hex_count(text));
}

static bool parse_line(struct checklist *list, struct checklist_entry *entry, char *text)
{
	for (uint32_t i = 0; i < DIGEST_COUNT; i++) {
		char *path = skip_tag(text, digest_algorithms[i].tag);

		if (path == NULL && i == DIGEST_SHA256) {
			path = skip_tag(text, "SHA2-256"); /* OpenSSL 3 */
		}
		if (path != NULL) {
			entry->algorithm = &digest_algorithms[i];
			return (list->only == NULL || list->only == entry->algorithm) &&
				parse_tagged(entry, path);
		}
	}
	return parse_untagged(list, entry, text);
}

enum checklist_kind checklist_parse(
	struct checklist *list, char *line, size_t length, struct checklist_entry *out_entry)
{
	struct checklist_entry entry = {0};
	bool is_escaped;

	if (length > 0 && line[length - 1] == '\r') {
		line[--length] = '\0';
	}
	if (length == 0 || line[0] == '#') {
		return CHECKLIST_BLANK;
	}
	/* A path cannot contain a NUL: this is no list of lines. */
	if (strlen(line) != length) {
		return CHECKLIST_BAD;
	}
	while (is_blank(*line)) {
		line++;
	}
	is_escaped = *line == '\\';
	if (!parse_line(list, &entry, line + is_escaped) || (is_escaped && !unescape(entry.path)) ||
		entry.path[0] == '\0') {
		return CHECKLIST_BAD;
	}
	*out_entry = entry;
	return CHECKLIST_ENTRY;
}
