/* SPDX-License-Identifier: MIT */
/*
 * The engine of a scan: turns windows of files into candidates that are the
 * same whatever the windows were.
 *
 * A matcher sees a window as though nothing came before or after it. At its
 * borders that is wrong: `\b` and `$` take the window's end for the file's
 * end, `^` and `\A` its start for the file's start. So windows reach back
 * over each other, and each match end belongs to one window, which has all
 * that can matter for it:
 *
 *   1. A window whose new bytes are [n, e) owns the ends in (n - 2, e - 2], the
 *      last one of a file those in (n - 2, e]. The two bytes held back are
 *      those that `\b`, `$` (one byte) and `\Z` (two) read after an end. Where
 *      text is kept, SNIPPET_CONTEXT bytes are held back in place of two.
 *   2. Its prefix is longer than the widest match: by the bytes of (1), and by
 *      one byte that `\b` and `^` read before a start, or as above. Hence a
 *      match that starts at the first byte of a window that is not the file's
 *      first is never owned, and what `\A` falsely finds there is not either.
 *
 * Rules without a widest match run in a stream, which needs windows in order.
 * Confirmed rules never do: a candidate of such a rule is the part of the file
 * in which its matches are, as long as the widest match reaches back from ends
 * that overlap; the bytes of it and around it are kept (snippets.h).
 *
 * Pages that could not be read (gaps) divide a window: the part between two
 * gaps is searched alone, with the zeros of the gaps as its context, and
 * matches that touch a gap are dropped. A stream begins anew after each gap.
 *
 * Holes of sparse files are skipped when no bounded rule matches zeros. Before
 * a hole as a scan reports it, as many bytes as an overlap are zeros too, so
 * nothing bounded reaches into it from the bytes before them. A stream whose
 * rules match no zero begins anew after a hole. Any other is fed zeros until it
 * has settled (zeros.h), nothing while it stays so, and zeros again before the
 * end of the hole: for the stream the hole is merely shorter, and what it
 * finds is moved to where it is in the file. Where it is not known to settle,
 * or finds something at each byte, it is fed all of the hole.
 */
#ifndef PINION_TOOLS_SCAN_ENGINE_H
#define PINION_TOOLS_SCAN_ENGINE_H

#include "tools/scan/matcher.h"
#include "tools/scan/skips.h"
#include "tools/scan/snippets.h"

#include <pinion/scan.h>

struct engine;
struct engine_worker;

/* What a scan has to be configured with. */
struct engine_needs {
	uint32_t overlap_bytes;
	bool in_order;	   /* PINION_SCAN_IN_ORDER */
	bool report_holes; /* may be set; must not be set otherwise */
};

/* One file's; all zero before engine_file_open(). */
struct engine_file {
	struct matcher_stream *stream;
	uint64_t stream_base;	       /* where the stream began in the file */
	uint64_t stream_start;	       /* no match that starts before this counts */
	struct skips skips;	       /* of this stream */
	const struct rules_over *over; /* set after the open; NULL: none is */
};

/* What one window yields. The list is the caller's, emptied first. */
struct engine_yield {
	struct candidates found;
	/* Around candidates of rules whose text is kept. */
	struct snippets snippets;
	/*
	 * Every candidate that ends up to here is in this or an earlier window.
	 */
	uint64_t complete_to;
	/* Set before: whether newlines are to be counted, if that is cheap. */
	bool counts_newlines;
	struct newlines_part newlines; /* those that were */
};

/*
 * The rules are measured and must outlive the engine.
 *
 * Errors: -EINVAL: `out_trouble` says why. -ENOMEM.
 */
int engine_create(const struct matcher_ops *matcher, const struct rules *rules,
	struct engine **out_engine, struct matcher_trouble *out_trouble);
void engine_destroy(struct engine *engine);

struct engine_needs engine_needs(const struct engine *engine);

/* That of an engine for these rules, which are measured: known before it is. */
uint32_t engine_overlap_bytes(const struct rules *rules);

int engine_worker_create(struct engine *engine, struct engine_worker **out_worker);
void engine_worker_destroy(struct engine_worker *worker);

int engine_file_open(struct engine *engine, struct engine_file *file);
/* Accepts a file that was never opened or had its last window. */
void engine_file_close(struct engine_worker *worker, struct engine_file *file);

/*
 * Searches one window. Windows of a file may come in any order and on any
 * worker, unless engine_needs() said otherwise.
 */
int engine_window(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, struct engine_yield *out_yield);

/* Every rule has reached a limit in this file: no more of it is searched. */
bool engine_is_over(const struct engine *engine, const struct engine_file *file);

/*
 * Of a window that is not the last, the bytes at its end whose ends of matches
 * are in the next one: how far its end is after `complete_to`.
 */
uint32_t engine_held_back(const struct engine *engine);

/* Whether a hole may take as long as its length has it. */
bool engine_searches_holes(const struct engine *engine);

/*
 * As engine_window() for a hole, a part at a time, the first from *done = 0:
 * moves *done to where the next one begins, up to the length of the window, and
 * appends to `found`, all of whose ends up to engine_complete_to() are there.
 */
int engine_hole_part(struct engine_worker *worker, struct engine_file *file,
	const struct pinion_window *window, uint64_t *done, struct candidates *found);
uint64_t engine_complete_to(
	const struct engine *engine, const struct pinion_window *window, uint64_t done);

#endif
