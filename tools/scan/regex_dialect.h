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
 * Windows of a file are searched apart, so matches need a bound, `max_width`:
 * of the ways in which PCRE2's expression matches those count that take no more
 * bytes. It allows for 16 KiB of each repeat without a bound, less for
 * separators (spaces, punctuation), up to REGEX_WIDTH_MAX in all. The repeats
 * stay as they are, but in look-around.
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
	/* Of bounds for unbounded repeats, the wider first. */
	REGEX_LEVEL_COUNT = 2,
};

/* Written in `confirm` for `\z` and `\Z`, which mean the end of the file. */
#define REGEX_MARK_END '\x01'
#define REGEX_MARK_LAST_LINE '\x02'

struct regex_texts {
	char *search;  /* for Hyperscan, to be compiled with HS_FLAG_MULTILINE */
	char *confirm; /* for PCRE2, with marks; PCRE2_MULTILINE, PCRE2_DOTALL */
	/* Bytes of the shortest match, and of the widest that counts. */
	uint32_t min_width;
	uint32_t max_width;
	uint32_t look_behind; /* bytes before a match that it may read */
	uint32_t look_ahead;
	uint32_t group_count;
	bool has_marks;
	bool is_cut; /* some matches of `confirm` may be wider than max_width */
};

/*
 * Translates an expression; its widest match has the bounds of *level, or of
 * the first level after it that makes it no wider than REGEX_WIDTH_MAX. Returns
 * 0, -ENOMEM, or -EINVAL with a reason.
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
