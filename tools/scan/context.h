/* SPDX-License-Identifier: MIT */
/*
 * Context: the lines of findings, and lines around them, in text output, with
 * each line once and `--` between groups that do not touch.
 *
 * A finding's lines are made when it is shown. Bytes up to CONTEXT_BYTES away
 * are there then, and all findings that start among them are known
 * (findings.holds_for_others), so no secret is shown raw. Lines wait until a
 * later finding, or the end of the file, shows that no finding comes before
 * them. The lines depend on the bytes of the file alone:
 *
 * 1. A line that starts more than CONTEXT_REACH bytes away is left out, as are
 *    lines before or after a zero byte.
 * 2. Of a line CONTEXT_LINE_BYTES are shown, of a finding's own line a part
 *    around it. A character is not cut.
 * 3. A secret is shown as its excerpt. If it has several lines, they are one,
 *    with the bytes before and after it.
 * 4. A finding of an unbounded rule that is longer than about EVIDENCE_CARRY is
 *    a group of its own, without lines.
 * 5. Nothing is shown from where on a rule's findings may be missing
 *    (findings_limits_known_to()).
 *
 * Context: the worker that holds the lock of the file's findings, and at the
 * end the worker that closes the file.
 */
#ifndef PINION_TOOLS_SCAN_CONTEXT_H
#define PINION_TOOLS_SCAN_CONTEXT_H

#include "tools/scan/evidence.h"
#include "tools/scan/report_format.h"

enum {
	CONTEXT_REACH = 4096,
	CONTEXT_LINE_BYTES = 512,
	/* With all of the last line, and a character that it may cut. */
	CONTEXT_BYTES = CONTEXT_REACH + CONTEXT_LINE_BYTES + 4,
};

/* One file's. */
struct context;

/* NULL: no memory. */
struct context *context_create(void);
void context_destroy(struct context *context);

/*
 * Bytes that lines show as this excerpt. In the order of findings, for each of
 * them, shown or not. Returns 0 or -ENOMEM.
 */
int context_hide(
	struct context *context, uint64_t start, uint64_t end, const struct output_text *excerpt);

/*
 * Before a finding is shown: adds its lines, and writes earlier findings' lines
 * that come before it to `out`. Bytes from `known_to` on are not shown. Lines
 * without memory fail `out->lines`.
 */
void context_begin_finding(struct context *context, const struct report_out *out,
	const struct evidence *evidence, const struct report_finding *finding, uint64_t known_to);

/* Writes the lines that are left; the next finding begins a group. */
void context_end(struct context *context, const struct report_out *out);

#endif
