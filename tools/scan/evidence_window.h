/* SPDX-License-Identifier: MIT */
/*
 * The evidence of one window, gathered while its bytes are there.
 */
#ifndef PINION_TOOLS_SCAN_EVIDENCE_WINDOW_H
#define PINION_TOOLS_SCAN_EVIDENCE_WINDOW_H

#include "tools/scan/evidence.h"

/* A line's start, and the newlines between the window's new bytes and it. */
struct line_mark {
	uint64_t start;
	int64_t line; /* negative: it is before them */
};

/* Where a word that allows findings is, with the same count. */
struct allow_mark {
	uint64_t offset;
	int64_t line;
};

/* The bytes of a candidate. */
struct quote {
	uint64_t start;
	uint64_t end;
	uint32_t rule;
	uint32_t text_bytes;
	size_t text; /* where it is in `texts` */
	bool has_digest;
	uint8_t digest[EVIDENCE_DIGEST_BYTES];
};

struct evidence_window {
	uint64_t base; /* of the bytes that were seen */
	uint64_t from; /* [from, until) are the new ones */
	uint64_t until;
	uint64_t newlines;	 /* in the new bytes */
	uint64_t last_start;	 /* of a line, after a newline in them; 0: there is none */
	uint64_t lines_before;	 /* once the windows before are known */
	uint64_t prior_start;	 /* of the line that `from` is in */
	struct line_mark *marks; /* by start */
	size_t mark_count;
	size_t mark_capacity;
	struct allow_mark *allows; /* by offset */
	size_t allow_count;
	size_t allow_capacity;
	bool has_candidates;
	struct quote *quotes; /* by start, end, rule */
	size_t quote_count;
	uint8_t *texts;
	size_t text_bytes;
	struct snippets context; /* bytes around candidates, and the first new ones */
};

/* The bytes that are there: [0, fresh) are old, and those after them new. */
struct evidence_view {
	const uint8_t *bytes; /* zeros of a hole follow them, if `zeros` is not 0 */
	size_t length;
	size_t fresh;
	uint64_t base;
	uint64_t zeros;
	uint64_t line_start; /* of the first line, where it starts before the bytes */
	bool has_line_start;
	bool is_last;
	uint64_t context_head;	       /* number of new bytes that are other windows' context */
	struct newlines_part newlines; /* counted already */
};

/*
 * Returns 0 or -ENOMEM; `window` is zero before, and to be freed in any case.
 */
int evidence_window_fill(const struct evidence_source *source, const struct evidence_view *view,
	const struct candidates *found, struct evidence_window *window);
void evidence_window_free(struct evidence_window *window);

/*
 * Makes one window of two neighbours without candidates and words. False: no
 * memory, they are as they were.
 */
bool evidence_window_join(
	struct evidence_window *left, const struct evidence_window *right, uint32_t overlap_bytes);

enum { EVIDENCE_ALLOW_BYTES = 14 }; /* of the longest word */

int evidence_compare_quotes(const void *left, const void *right);

#endif
