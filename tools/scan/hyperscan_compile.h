/* SPDX-License-Identifier: MIT */
/*
 * Rules as Hyperscan sees them: how wide, whether they compile, and all of
 * one kind as one database.
 */
#ifndef PINION_TOOLS_SCAN_HYPERSCAN_COMPILE_H
#define PINION_TOOLS_SCAN_HYPERSCAN_COMPILE_H

#include "tools/scan/hyperscan_starts.h"
#include "tools/scan/matcher.h"

/* Of a rule, as Hyperscan takes it: malloc'ed; NULL: no memory. */
char *hyperscan_expression(const struct rule *rule);

/* See struct matcher_ops. */
int hyperscan_measure(struct rule *rule, struct matcher_trouble *out_trouble);

/*
 * Compiles the bounded rules for blocks, or the others for streams, in which
 * starts are tracked. Leaves *out_database NULL when there is no such rule.
 * Expressions are those of `starts`.
 */
int hyperscan_compile(const struct rules *rules, const struct hyperscan_starts *starts,
	bool bounded, hs_database_t **out_database, struct matcher_trouble *out_trouble);

#endif
