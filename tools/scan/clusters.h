/* SPDX-License-Identifier: MIT */
/*
 * From the candidates of a confirmed rule to its findings in a file: those that
 * a search of the whole file from its start would give, one after the other.
 *
 * Candidates that touch are a cluster. Each match of the rule is within a
 * cluster, so clusters are searched apart; and each in parts, as soon as it is
 * known where matches end that start there. Which ends Hyperscan reports beyond
 * those of matches, and so how far a cluster reaches, may depend on the
 * windows; its findings do not, since no match is outside of clusters
 * and each may be as long as any other.
 *
 *   1. A start s is decided when all ends up to s and the widest match are
 *      known; that is what is_decided() in findings_rule.c says, too.
 *   2. PCRE2 sees all bytes that can matter to such a start: the cluster as far
 *      as the widest match reaches, and on each side more bytes than
 *      look-around may read.
 */
#ifndef PINION_TOOLS_SCAN_CLUSTERS_H
#define PINION_TOOLS_SCAN_CLUSTERS_H

#include "tools/scan/findings_file.h"

/* Where findings are limited: bytes of a rule's clusters in a file. */
#define CLUSTERS_WORK_MAX ((uint64_t)1 << 26)

/*
 * Takes a candidate, in order of ends, after the file has its snippets.
 * Returns 0 or -ENOMEM, or -ELOOP as below, of the rule's `path`.
 */
int clusters_take(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, const struct candidate *candidate);

/*
 * The rule's next finding as far as decided, with its text, which is the
 * caller's. Returns 1; 0: there is none (yet).
 *
 * A start at which a match takes too many steps, or its filter, is passed over,
 * and counted.
 *
 * Errors: -ENOMEM. The rule is over in this file with -ELOOP: too many of
 * these; -E2BIG: CLUSTERS_WORK_MAX.
 */
int clusters_next(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, struct finding *out_finding);

#endif
