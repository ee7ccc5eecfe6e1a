/* SPDX-License-Identifier: MIT */
/*
 * An expression in two other ones: for Hyperscan, whose matches end wherever a
 * match of the rule may end, and for PCRE2, which decides.
 *
 * Go's regexp and PCRE are both read, and written in the part of their grammars
 * in which the libraries agree: classes as sets of bytes, anchors by their
 * exact meaning, quantifiers with their greediness spelt out. What Hyperscan
 * cannot express is left out of its expression (look-around) or replaced by
 * something that matches more (a group for a back reference, a plain group for
 * an atomic one).
 *
 * Windows of a file are searched apart, so matches need a bound. PCRE2's
 * expression has one for each repeat without: `*` is `{0,N}` there. N is as
 * large as REGEX_WIDTH_MAX allows, the same for all repeats of single
 * characters, and a smaller one for those of groups, of letters and digits, and
 * of separators (spaces, punctuation). Hyperscan's keeps `*`.
 *
 * Where Go and this differ, by decision: a class and `.` match one byte, not
 * one character beyond ASCII; `(?i)` folds ASCII only (in Go `k` matches U+212A
 * too, and `s` U+017F). tests/fixtures/go_regexp has Go's own results.
 */
#ifndef PINION_TOOLS_SCAN_REGEX_DIALECT_H
#define PINION_TOOLS_SCAN_REGEX_DIALECT_H

#include "tools/scan/rule_filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Of a rule's widest match; windows overlap by as much. */
	REGEX_WIDTH_MAX = 32 << 10,
	/* Of bytes read before and after a match. */
	REGEX_LOOK_MAX = 255,
	REGEX_REASON_BYTES = 160,
	REGEX_GROUPS_MAX = 64,
	/* Of bounds for unbounded repeats, the widest first. */
	REGEX_LEVEL_COUNT = 7,
};

/* Written in `confirm` for `\z` and `\Z`, which mean the end of the file. */
#define REGEX_MARK_END '\x01'
#define REGEX_MARK_LAST_LINE '\x02'

struct regex_texts {
	char *search;  /* for Hyperscan, to be compiled with HS_FLAG_MULTILINE */
	char *confirm; /* for PCRE2, with marks; PCRE2_MULTILINE */
	/* Bytes of the shortest and widest match of `confirm`. */
	uint32_t min_width;
	uint32_t max_width;
	uint32_t look_behind; /* bytes before a match that it may read */
	uint32_t look_ahead;
	uint32_t group_count;
	bool has_marks;
	uint32_t repeat_max; /* N of unbounded repeats; 0: there is none */
};

/*
 * Translates an expression with bounds for its repeats, those of *level or the
 * first level after it that makes no match too wide. Returns 0, -ENOMEM, or
 * -EINVAL with a reason.
 */
int regex_translate(enum rule_dialect dialect, const char *pattern, size_t pattern_bytes,
	struct regex_texts *out_texts, uint32_t *level, char out_reason[REGEX_REASON_BYTES]);

/* As above without bounds, for texts that are in memory whole. */
int regex_translate_unbounded(enum rule_dialect dialect, const char *pattern, size_t pattern_bytes,
	struct regex_texts *out_texts, char out_reason[REGEX_REASON_BYTES]);

void regex_texts_free(struct regex_texts *texts);

/*
 * `confirm` with its marks replaced, malloc'ed: of a part of a file, up to its
 * end or not. NULL: no memory.
 */
char *regex_confirm_text(const struct regex_texts *texts, bool has_end);

#endif
