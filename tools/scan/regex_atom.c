/* SPDX-License-Identifier: MIT */
/*
 * The parts of an expression that hold no others: characters, classes, escapes,
 * anchors; and quantifiers.
 */
#include "tools/scan/regex_translation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_at(const struct regex_translation *t, const char *string)
{
	size_t length = strlen(string);

	return (size_t)(t->end - t->at) >= length && memcmp(t->at, string, length) == 0;
}

bool translation_skip(struct regex_translation *t, const char *string)
{
	bool is = is_at(t, string);

	t->at += is ? strlen(string) : 0;
	return is;
}

static bool parse_number(const char **at, const char *end, uint64_t *out_number)
{
	const char *first = *at;

	*out_number = 0;
	while (*at < end && **at >= '0' && **at <= '9' && *at - first < 6) {
		*out_number = *out_number * 10 + (uint64_t)(*(*at)++ - '0');
	}
	return *at > first;
}

/* `{n}`, `{n,}`, `{n,m}`; anything else with a brace is a literal. */
static bool parse_braces(const char **from, const char *end, struct regex_repeat *out_repeat)
{
	const char *at = *from + 1;

	if (*from == end || **from != '{' || !parse_number(&at, end, &out_repeat->min)) {
		return false;
	}
	out_repeat->max = out_repeat->min;
	if (at < end && *at == ',') {
		at++;
		if (!parse_number(&at, end, &out_repeat->max)) {
			out_repeat->max = REGEX_UNBOUNDED;
		}
	}
	if (at == end || *at != '}') {
		return false;
	}
	*from = at + 1;
	return true;
}

bool translation_parse_quantifier(const char **at, const char *end, struct regex_repeat *out_repeat)
{
	if (*at < end && (**at == '*' || **at == '+' || **at == '?')) {
		out_repeat->min = **at == '+';
		out_repeat->max = **at == '?' ? 1 : REGEX_UNBOUNDED;
		++*at;
		return true;
	}
	return parse_braces(at, end, out_repeat);
}

bool translation_is_at_quantifier(const struct regex_translation *t)
{
	const char *at = t->at;
	struct regex_repeat repeat;

	return translation_parse_quantifier(&at, t->end, &repeat);
}

static struct regex_extent parse_quoted(struct regex_translation *t)
{
	const char *close = memmem(t->at, (size_t)(t->end - t->at), "\\E", 2);
	const char *until = close != NULL ? close : t->end;
	struct regex_extent extent = {0, 0};

	/* The last one alone is what a quantifier repeats. */
	while (t->at < until) {
		const char *first = t->at;
		uint32_t character = regex_character(&t->at, until);
		uint64_t length = (uint64_t)(t->at - first);

		if (length == 1) {
			translation_write_byte(t, character);
		} else {
			translation_write_utf8(t, character);
		}
		extent.min += length;
		extent.max += length;
	}
	t->at = close != NULL ? close + 2 : t->end;
	if (extent.max > 1 && translation_is_at_quantifier(t)) {
		translation_fail(t, "a quantifier after \\Q…\\E");
	}
	return extent;
}

static struct regex_extent write_anchor(
	struct regex_translation *t, const char *search, const char *confirm)
{
	bool is_repeated = translation_is_at_quantifier(t);

	translation_write(t, is_repeated ? "(?:" : "");
	translation_append(t, &t->search, search, strlen(search));
	translation_write_confirm(t, confirm);
	translation_write(t, is_repeated ? ")" : "");
	return (struct regex_extent){0, 0};
}

static struct regex_extent write_mark(struct regex_translation *t, char mark)
{
	const char text[2] = {mark, '\0'};

	t->has_marks = true;
	return write_anchor(t, mark == REGEX_MARK_END ? "\\z" : "\\Z", text);
}

static struct regex_extent parse_back_reference(struct regex_translation *t)
{
	uint32_t index = (uint32_t)(*t->at++ - '0');
	const struct regex_group *group = &t->groups[index];
	char text[16];
	char *copy;

	if (index > t->group_count || !group->is_closed) {
		translation_fail(t, "a reference to a group that is not closed before it");
		return (struct regex_extent){0, 0};
	}
	snprintf(text, sizeof(text), "\\g{%u}", index);
	translation_write_confirm(t, text);
	copy = strndup(t->search.bytes + group->from, group->until - group->from);
	if (copy == NULL) {
		t->has_memory = false;
		translation_fail(t, "out of memory");
		return group->extent;
	}
	translation_append(t, &t->search, copy, strlen(copy));
	free(copy);
	return group->extent;
}

/* A character that stands for itself; with UTF-8 it is a group. */
struct regex_extent translation_write_literal(
	struct regex_translation *t, uint32_t character, size_t length)
{
	bool is_group = length > 1 && translation_is_at_quantifier(t);

	t->repeats_separator = character < 0x80 && !regex_is_word_byte(character);
	translation_write(t, is_group ? "(?:" : "");
	if (length == 1) {
		translation_write_byte(t, character);
	} else {
		translation_write_utf8(t, character);
	}
	translation_write(t, is_group ? ")" : "");
	return (struct regex_extent){length, length};
}

/* An escape that gives a character: up to `\xff` it is a byte in PCRE. */
static struct regex_extent parse_escaped(struct regex_translation *t)
{
	const char *first = t->at;
	uint8_t bytes[REGEX_UTF8_MAX];
	uint32_t character = 0;
	const char *reason = regex_escape(t->dialect, &t->at, t->end, &character);

	if (reason != NULL) {
		translation_fail(t, reason);
		return (struct regex_extent){0, 0};
	}
	if (character < 0x80 ||
		(t->dialect == RULE_DIALECT_PCRE && character <= 0xff && *first == 'x')) {
		return translation_write_literal(t, character, 1);
	}
	return translation_write_literal(t, character, regex_utf8(character, bytes));
}

static bool parse_pcre_escape(struct regex_translation *t, struct regex_extent *out_extent)
{
	if (t->dialect != RULE_DIALECT_PCRE) {
		return false;
	}
	if (translation_skip(t, "Z")) {
		t->look_ahead = t->look_ahead > 2 ? t->look_ahead : 2;
		*out_extent = write_mark(t, REGEX_MARK_LAST_LINE);
	} else if (*t->at >= '1' && *t->at <= '9' &&
		(t->end - t->at < 2 || t->at[1] < '0' || t->at[1] > '9')) {
		*out_extent = parse_back_reference(t);
	} else if (translation_skip(t, "N")) {
		struct regex_set set = {0};

		regex_set_add_range(&set, '\n', '\n');
		regex_set_negate(&set);
		*out_extent = translation_write_set(t, &set);
	} else {
		return false;
	}
	return true;
}

/* After a backslash. */
struct regex_extent translation_parse_escape(struct regex_translation *t)
{
	struct regex_extent extent = {1, 1};
	struct regex_set set;

	if (t->at == t->end) {
		translation_fail(t, "ends in a backslash");
		return extent;
	}
	if (parse_pcre_escape(t, &extent)) {
		return extent;
	}
	if (regex_set_of_letter(t->dialect, *t->at, &set)) {
		t->at++;
		return translation_write_set(t, &set);
	}
	if (translation_skip(t, "Q")) {
		return parse_quoted(t);
	}
	if (translation_skip(t, "A")) {
		return write_anchor(t, "\\A", "\\A");
	}
	if (translation_skip(t, "z")) {
		return write_mark(t, REGEX_MARK_END);
	}
	if (translation_skip(t, "b")) {
		return write_anchor(t, "\\b", "\\b");
	}
	if (translation_skip(t, "B")) {
		return write_anchor(t, "\\B", "\\B");
	}
	if (*t->at == 'p' || *t->at == 'P') {
		translation_fail(t, "classes of Unicode (\\p) are not supported");
		return extent;
	}
	return parse_escaped(t);
}

struct regex_extent translation_parse_class(struct regex_translation *t)
{
	struct regex_set set;
	const char *reason = regex_class_parse(t->dialect, t->flags.folds, &t->at, t->end, &set);

	if (reason != NULL) {
		translation_fail(t, reason);
	}
	return translation_write_set(t, &set);
}

struct regex_extent translation_parse_dot(struct regex_translation *t)
{
	struct regex_set set = {0};

	if (!t->flags.dot_is_all) {
		regex_set_add_range(&set, '\n', '\n');
	}
	regex_set_negate(&set);
	return translation_write_set(t, &set);
}

struct regex_extent translation_parse_anchor(struct regex_translation *t, char anchor)
{
	if (anchor == '^') {
		return t->flags.is_per_line ? write_anchor(t, "^", "^")
					    : write_anchor(t, "\\A", "\\A");
	}
	if (t->flags.is_per_line) {
		return write_anchor(t, "$", "$");
	}
	if (t->dialect == RULE_DIALECT_GO) {
		return write_mark(t, REGEX_MARK_END);
	}
	t->look_ahead = t->look_ahead > 2 ? t->look_ahead : 2;
	return write_mark(t, REGEX_MARK_LAST_LINE);
}
