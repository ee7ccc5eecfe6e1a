/* SPDX-License-Identifier: MIT */
/*
 * An expression whose match is to start at one given place.
 *
 * That is not just `\A` in front. A search that begins at the place in
 * question takes it for the start of a file, where `\A`, `^` and a `\b` before
 * a letter hold. And it cannot simply begin one byte earlier, at `\A(?s:.)`,
 * since `^` must not follow anything. So there are three forms, one for each
 * kind of text before the place, and anchors that cannot hold there are
 * replaced by `\b\B`, which never holds.
 */
#ifndef PINION_TOOLS_SCAN_HYPERSCAN_EXPRESSION_H
#define PINION_TOOLS_SCAN_HYPERSCAN_EXPRESSION_H

enum hyperscan_context {
	HYPERSCAN_CONTEXT_FILE = 0, /* nothing: the search begins at the place */
	HYPERSCAN_CONTEXT_LINE,	    /* a newline */
	HYPERSCAN_CONTEXT_INSIDE,   /* any other byte: it begins at that byte */
	HYPERSCAN_CONTEXT_COUNT,
};

/* Returns a malloc'ed string, NULL when there is no memory. */
char *hyperscan_expression_anchored(const char *expression, enum hyperscan_context context);

#endif
