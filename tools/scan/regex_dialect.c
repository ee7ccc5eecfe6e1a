/* SPDX-License-Identifier: MIT */
/*
 * The translation of expressions, by recursive descent. Both results are
 * written while the pattern is read; a part that Hyperscan is not to see is
 * cut off its text again.
 */
#include "tools/scan/regex_dialect.h"

#include "tools/scan/regex_translation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 100,
	GO_REPEAT_MAX = 1000,
	PCRE_REPEAT_MAX = 65535,
	/* Of repeats without a bound in look-around. */
	LOOK_REPEAT_MAX = 64,
	LOOK_GROUP_REPEAT_MAX = 4,
	/* Of separators, such as spaces: hardly any text has more of them. */
	SEPARATOR_REPEAT_MAX = 256,
};

static uint64_t add_width(uint64_t left, uint64_t right)
{
	uint64_t sum = left + right;

	return left >= REGEX_UNBOUNDED || right >= REGEX_UNBOUNDED || sum >= REGEX_UNBOUNDED
		? REGEX_UNBOUNDED
		: sum;
}

static uint64_t multiply_width(uint64_t width, uint64_t times)
{
	if (width == 0 || times == 0) {
		return 0;
	}
	return width >= REGEX_UNBOUNDED || times >= REGEX_UNBOUNDED ||
			width * times >= REGEX_UNBOUNDED
		? REGEX_UNBOUNDED
		: width * times;
}

static struct regex_extent parse_alternatives(struct regex_translation *t);

/* `(?flags)` and `(?flags:`; true: the latter, about its group. */
static bool parse_flags(struct regex_translation *t, struct regex_flags *out_flags)
{
	bool value = true;

	for (; t->at < t->end && *t->at != ')' && *t->at != ':'; t->at++) {
		switch (*t->at) {
		case 'i':
			out_flags->folds = value;
			break;
		case 's':
			out_flags->dot_is_all = value;
			break;
		case 'm':
			out_flags->is_per_line = value;
			break;
		case 'U':
			out_flags->is_lazy = value;
			break;
		case '-':
			if (!value || t->end - t->at < 2 || t->at[1] == ')' || t->at[1] == ':') {
				translation_fail(t, "bad flags after (?");
			}
			value = false;
			break;
		default:
			translation_fail(t, "flags after (? that are not supported");
			return false;
		}
	}
	if (t->at == t->end) {
		translation_fail(t, "a group without its )");
		return false;
	}
	return *t->at++ == ':';
}

static void write_folding(struct regex_translation *t, bool folds)
{
	if (folds != t->flags.folds) {
		translation_write(t, folds ? "(?i)" : "(?-i)");
	}
}

/* Up to the `)` of a group whose `(` is written. */
static struct regex_extent parse_group_rest(struct regex_translation *t, struct regex_flags inner)
{
	struct regex_flags outer = t->flags;
	struct regex_extent extent;

	write_folding(t, inner.folds);
	t->flags = inner;
	extent = parse_alternatives(t);
	t->flags = outer; /* (?i) in a group ends with it, in the texts too */
	if (!translation_skip(t, ")")) {
		translation_fail(t, "a group without its )");
	}
	return extent;
}

static struct regex_extent parse_capture(struct regex_translation *t)
{
	struct regex_extent extent = {0, 0};
	uint32_t index = ++t->group_count;

	if (index > REGEX_GROUPS_MAX) {
		translation_fail(t, "more than 64 groups");
		return extent;
	}
	t->groups[index].from = t->search.length;
	translation_append(t, &t->search, "(?:", 3);
	translation_write_confirm(t, "(");
	extent = parse_group_rest(t, t->flags);
	translation_write(t, ")");
	t->groups[index].until = t->search.length;
	t->groups[index].is_closed = true;
	t->groups[index].extent = extent;
	return extent;
}

/* Look-around: `open` is written for PCRE2, Hyperscan sees nothing of it. */
static struct regex_extent parse_look(struct regex_translation *t, const char *open, bool is_ahead)
{
	size_t search_length = t->search.length;
	uint32_t byte_repeat_max = t->byte_repeat_max;
	uint32_t group_repeat_max = t->group_repeat_max;
	uint64_t *reach = is_ahead ? &t->look_ahead : &t->look_behind;
	struct regex_extent extent;

	bool is_in_look = t->is_in_look;

	t->is_in_look = true;
	if (byte_repeat_max != 0) {
		t->byte_repeat_max = LOOK_REPEAT_MAX;
		t->group_repeat_max = LOOK_GROUP_REPEAT_MAX;
	}
	translation_write_confirm(t, open);
	extent = parse_group_rest(t, t->flags);
	translation_write_confirm(t, ")");
	t->byte_repeat_max = byte_repeat_max;
	t->group_repeat_max = group_repeat_max;
	t->is_in_look = is_in_look;
	t->search.length = search_length;
	if (t->search.bytes != NULL) {
		t->search.bytes[search_length] = '\0';
	}
	if (extent.max + 1 > *reach) {
		*reach = extent.max + 1;
	}
	return (struct regex_extent){0, 0};
}

static void skip_group_name(struct regex_translation *t)
{
	while (t->at < t->end && regex_is_word_byte((unsigned char)*t->at)) {
		t->at++;
	}
	if (!translation_skip(t, ">")) {
		translation_fail(t, "a bad name of a group");
	}
}

/* `(?…` that only PCRE has; false: it is none of these. */
static bool parse_pcre_group(struct regex_translation *t, struct regex_extent *out_extent)
{
	if (t->dialect != RULE_DIALECT_PCRE) {
		return false;
	}
	if (translation_skip(t, "=")) {
		*out_extent = parse_look(t, "(?=", true);
	} else if (translation_skip(t, "!")) {
		*out_extent = parse_look(t, "(?!", true);
	} else if (translation_skip(t, "<=")) {
		*out_extent = parse_look(t, "(?<=", false);
	} else if (translation_skip(t, "<!")) {
		*out_extent = parse_look(t, "(?<!", false);
	} else if (translation_skip(t, ">")) {
		translation_append(t, &t->search, "(?:", 3);
		translation_write_confirm(t, "(?>");
		*out_extent = parse_group_rest(t, t->flags);
		translation_write(t, ")");
	} else {
		return false;
	}
	return true;
}

/* After a `(`. */
static struct regex_extent parse_group(struct regex_translation *t)
{
	struct regex_extent extent = {0, 0};
	struct regex_flags inner = t->flags;

	if (!translation_skip(t, "?")) {
		return parse_capture(t);
	}
	if (parse_pcre_group(t, &extent)) {
		return extent;
	}
	if (translation_skip(t, "P<") || translation_skip(t, "<")) {
		skip_group_name(t);
		return parse_capture(t);
	}
	if (!parse_flags(t, &inner)) {
		write_folding(t, inner.folds);
		t->flags = inner;
		return extent;
	}
	translation_write(t, "(?:");
	extent = parse_group_rest(t, inner);
	translation_write(t, ")");
	return extent;
}

static struct regex_extent parse_atom(struct regex_translation *t)
{
	const char *first = t->at;
	uint32_t character;

	switch (*t->at) {
	case '(':
		t->at++;
		return parse_group(t);
	case '[':
		t->at++;
		return translation_parse_class(t);
	case '.':
		t->at++;
		return translation_parse_dot(t);
	case '^':
	case '$':
		return translation_parse_anchor(t, *t->at++);
	case '\\':
		t->at++;
		return translation_parse_escape(t);
	case '*':
	case '+':
	case '?':
		translation_fail(t, "a quantifier without anything to repeat");
		t->at++;
		return (struct regex_extent){0, 0};
	default:
		character = regex_character(&t->at, t->end);
		return translation_write_literal(t, character, (size_t)(t->at - first));
	}
}

/* The suffix after a quantifier, as PCRE2 is to have it. */
static const char *parse_greed(struct regex_translation *t)
{
	if (t->dialect == RULE_DIALECT_PCRE && translation_skip(t, "+")) {
		return "+";
	}
	return translation_skip(t, "?") != t->flags.is_lazy ? "?" : "";
}

/*
 * Of a repeat without one, of something that takes `width` bytes at most; 0: it
 * stays without.
 */
static uint64_t bound_of(const struct regex_translation *t, bool is_group, uint64_t width)
{
	uint32_t most = t->byte_repeat_max;

	if (is_group) {
		uint64_t count = width > 0 && !t->is_in_look ? most / width : 0;

		return count > t->group_repeat_max ? count : t->group_repeat_max;
	}
	return t->repeats_separator && most > SEPARATOR_REPEAT_MAX ? SEPARATOR_REPEAT_MAX : most;
}

static struct regex_extent parse_repeated(struct regex_translation *t)
{
	bool is_group = *t->at == '(';
	size_t search_length = t->search.length;
	struct regex_extent extent = parse_atom(t);
	uint64_t limit = t->dialect == RULE_DIALECT_GO ? GO_REPEAT_MAX : PCRE_REPEAT_MAX;
	uint64_t bound = bound_of(t, is_group || extent.max != 1, extent.max);
	struct regex_repeat repeat;
	uint64_t max;
	const char *suffix;

	if (!translation_parse_quantifier(&t->at, t->end, &repeat)) {
		return extent;
	}
	suffix = parse_greed(t);
	if (translation_is_at_quantifier(t)) {
		translation_fail(t, "a quantifier of a quantifier");
	}
	if (repeat.min > limit || (repeat.max > limit && repeat.max != REGEX_UNBOUNDED) ||
		repeat.max < repeat.min) {
		translation_fail(t, "a repeat with a bad or too high number");
	}
	if (t->search.length > search_length) {
		translation_write_quantifier(t, &t->search, &repeat, "");
	}
	max = repeat.max;
	if (repeat.max == REGEX_UNBOUNDED && bound != 0 && extent.max > 0) {
		max = repeat.min + bound;
		t->has_repeat = t->has_repeat || !t->is_in_look;
		repeat.max = t->is_in_look ? max : repeat.max;
	}
	translation_write_quantifier(t, &t->confirm, &repeat, suffix);
	return (struct regex_extent){
		multiply_width(extent.min, repeat.min), multiply_width(extent.max, max)};
}

static struct regex_extent parse_sequence(struct regex_translation *t)
{
	struct regex_extent extent = {0, 0};

	while (t->reason == NULL && t->at < t->end && *t->at != '|' && *t->at != ')') {
		struct regex_extent part = parse_repeated(t);

		extent.min = add_width(extent.min, part.min);
		extent.max = add_width(extent.max, part.max);
	}
	return extent;
}

static struct regex_extent parse_alternatives(struct regex_translation *t)
{
	struct regex_extent extent;

	if (++t->depth > DEPTH_MAX) {
		translation_fail(t, "groups within groups, too deep");
	}
	extent = parse_sequence(t);
	while (t->reason == NULL && translation_skip(t, "|")) {
		struct regex_extent other;

		translation_write(t, "|");
		other = parse_sequence(t);
		extent.min = other.min < extent.min ? other.min : extent.min;
		extent.max = other.max > extent.max ? other.max : extent.max;
	}
	t->depth--;
	return extent;
}

/* ---- bounds ---- */

struct bounds {
	uint32_t byte_repeat_max;
	uint32_t group_repeat_max;
};

/* The second where the first would make a match wider than REGEX_WIDTH_MAX. */
static const struct bounds bounds[REGEX_LEVEL_COUNT] = {{16384, 256}, {16, 4}};

static int translate(struct regex_translation *t, const struct bounds *bound,
	struct regex_texts *out_texts, char out_reason[REGEX_REASON_BYTES])
{
	struct regex_extent extent;

	t->byte_repeat_max = bound->byte_repeat_max;
	t->group_repeat_max = bound->group_repeat_max;
	t->flags.is_per_line = t->dialect == RULE_DIALECT_PCRE;
	t->has_memory = true;
	translation_append(t, &t->search, "", 0);
	translation_append(t, &t->confirm, "", 0);
	extent = parse_alternatives(t);
	if (t->reason == NULL && t->at < t->end) {
		translation_fail(t, "a ) without its (");
	}
	if (t->reason == NULL &&
		(t->look_ahead > REGEX_LOOK_MAX || t->look_behind > REGEX_LOOK_MAX)) {
		translation_fail(t, "look-around over more than 255 bytes");
	}
	*out_texts = (struct regex_texts){
		.search = t->search.bytes,
		.confirm = t->confirm.bytes,
		.min_width = (uint32_t)extent.min,
		.max_width = (uint32_t)extent.max,
		.look_behind = (uint32_t)t->look_behind,
		.look_ahead = (uint32_t)t->look_ahead,
		.group_count = t->group_count,
		.has_marks = t->has_marks,
		.is_cut = t->has_repeat,
	};
	if (t->reason == NULL) {
		return 0;
	}
	snprintf(out_reason, REGEX_REASON_BYTES, "%s, at byte %zu", t->reason,
		(size_t)(t->at - t->begin));
	regex_texts_free(out_texts);
	return t->has_memory ? -EINVAL : -ENOMEM;
}

int regex_translate(enum rule_dialect dialect, const char *pattern, size_t pattern_bytes,
	struct regex_texts *out_texts, uint32_t *level, char out_reason[REGEX_REASON_BYTES])
{
	for (; *level < REGEX_LEVEL_COUNT; ++*level) {
		struct regex_translation t = {
			.dialect = dialect,
			.begin = pattern,
			.at = pattern,
			.end = pattern + pattern_bytes,
		};
		int error = translate(&t, &bounds[*level], out_texts, out_reason);

		if (error != 0 || !out_texts->is_cut) {
			return error;
		}
		if (*level + 1 == REGEX_LEVEL_COUNT && out_texts->max_width < REGEX_WIDTH_MAX) {
			out_texts->max_width = REGEX_WIDTH_MAX;
		}
		if (out_texts->max_width <= REGEX_WIDTH_MAX || *level + 1 == REGEX_LEVEL_COUNT) {
			return 0;
		}
		regex_texts_free(out_texts);
	}
	snprintf(out_reason, REGEX_REASON_BYTES, "repeats too many bytes");
	return -EINVAL;
}

int regex_translate_unbounded(enum rule_dialect dialect, const char *pattern, size_t pattern_bytes,
	struct regex_texts *out_texts, char out_reason[REGEX_REASON_BYTES])
{
	struct regex_translation t = {
		.dialect = dialect,
		.begin = pattern,
		.at = pattern,
		.end = pattern + pattern_bytes,
	};

	return translate(&t, &(struct bounds){0, 0}, out_texts, out_reason);
}

void regex_texts_free(struct regex_texts *texts)
{
	free(texts->search);
	free(texts->confirm);
	*texts = (struct regex_texts){0};
}

char *regex_confirm_text(const struct regex_texts *texts, bool has_end)
{
	char *text = malloc(4 * strlen(texts->confirm) + 1);
	char *end = text;

	if (text == NULL) {
		return NULL;
	}
	for (const char *from = texts->confirm; *from != '\0'; from++) {
		if (*from != REGEX_MARK_END && *from != REGEX_MARK_LAST_LINE) {
			*end++ = *from;
		} else {
			end = stpcpy(end,
				!has_end			  ? "(?!)"
					: *from == REGEX_MARK_END ? "\\z"
								  : "\\Z");
		}
	}
	*end = '\0';
	return text;
}
