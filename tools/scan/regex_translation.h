/* SPDX-License-Identifier: MIT */
/*
 * An expression on its way into two others: what the files of regex_dialect.h
 * share. Functions set `reason` when they fail, and go on.
 */
#ifndef PINION_TOOLS_SCAN_REGEX_TRANSLATION_H
#define PINION_TOOLS_SCAN_REGEX_TRANSLATION_H

#include "tools/scan/regex_class.h"
#include "tools/scan/regex_dialect.h"

struct regex_text {
	char *bytes;
	size_t length;
	size_t capacity;
};

struct regex_flags {
	bool folds;	  /* i */
	bool dot_is_all;  /* s */
	bool is_per_line; /* m */
	bool is_lazy;	  /* U */
};

/* Bytes that something matches. */
struct regex_extent {
	uint64_t min;
	uint64_t max;
};

#define REGEX_UNBOUNDED UINT32_MAX

struct regex_group {
	bool is_closed;
	struct regex_extent extent;
	size_t from; /* its text in `search` */
	size_t until;
};

struct regex_translation {
	enum rule_dialect dialect;
	const char *begin;
	const char *at;
	const char *end;
	struct regex_text search;
	struct regex_text confirm;
	struct regex_flags flags;
	uint32_t byte_repeat_max; /* 0: unbounded repeats stay so */
	uint32_t group_repeat_max;
	uint32_t group_count;
	struct regex_group groups[REGEX_GROUPS_MAX + 1];
	uint64_t look_ahead;
	uint64_t look_behind;
	bool has_marks;
	bool has_repeat;	/* an unbounded one */
	bool repeats_separator; /* the last byte read is no letter, digit or `_` */
	bool is_in_look;
	bool has_memory;
	int depth;
	const char *reason; /* NULL: all is well */
};

struct regex_repeat {
	uint64_t min;
	uint64_t max; /* REGEX_UNBOUNDED */
};

/* ---- writing: regex_write.c ---- */

void translation_append(
	struct regex_translation *t, struct regex_text *text, const char *bytes, size_t length);
/* A string of PCRE2's expression alone, or of both. */
void translation_write_confirm(struct regex_translation *t, const char *string);
void translation_write(struct regex_translation *t, const char *string);
void translation_write_byte(struct regex_translation *t, unsigned byte);
void translation_write_utf8(struct regex_translation *t, uint32_t character);
/* A class, with its characters beyond ASCII as alternatives. */
struct regex_extent translation_write_set(struct regex_translation *t, const struct regex_set *set);
void translation_write_quantifier(struct regex_translation *t, struct regex_text *text,
	const struct regex_repeat *repeat, const char *suffix);
void translation_fail(struct regex_translation *t, const char *reason);
bool regex_is_word_byte(unsigned byte);

/* ---- reading: regex_atom.c ---- */

/* Whether the pattern goes on with that, which is skipped then. */
bool translation_skip(struct regex_translation *t, const char *string);
bool translation_parse_quantifier(
	const char **at, const char *end, struct regex_repeat *out_repeat);
bool translation_is_at_quantifier(const struct regex_translation *t);

/* Each is about what follows the byte that shows which it is. */
struct regex_extent translation_parse_escape(struct regex_translation *t);
struct regex_extent translation_parse_class(struct regex_translation *t);
struct regex_extent translation_parse_dot(struct regex_translation *t);
struct regex_extent translation_parse_anchor(struct regex_translation *t, char anchor);

/* A character that stands for itself; with UTF-8 it is a group. */
struct regex_extent translation_write_literal(
	struct regex_translation *t, uint32_t character, size_t length);

#endif
