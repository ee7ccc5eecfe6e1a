/* SPDX-License-Identifier: MIT */
/*
 * One rule's findings in a file: takes the rule's candidates as their windows
 * come, and hands over those that are findings as soon as that is decided.
 *
 * Candidates are thinned out as `grep -o` does it: the leftmost first, of those
 * that start together the longest, and none that overlaps a finding of the same
 * rule. A candidate stays open until no later one can start further left or at
 * the same place, that is for the width of the rule's widest match. Confirmed
 * rules have their findings from clusters.h.
 *
 * A rule without a widest match is over when its open candidates hold more
 * findings than the limit. Candidates that are open when a rule is over are
 * decided as though the file ended there.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_RULE_H
#define PINION_TOOLS_SCAN_FINDINGS_RULE_H

#include "tools/scan/findings_file.h"

/* Takes a candidate, or finds the rule over with it. -ENOMEM. */
int findings_rule_take(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, const struct candidate *candidate);

/* Holds the findings (findings_held.h) among open candidates, as decided. */
int findings_rule_decide(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state);

#endif
