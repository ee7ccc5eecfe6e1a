/* SPDX-License-Identifier: MIT */
/*
 * The limits of a rule in a file: how many findings are shown, how much work
 * its matches may be, and matches that take too many steps.
 *
 * The first findings are shown, and the rule is over in the file when there is
 * one more, or with the match that makes its work more than RULES_WORK_MAX.
 * Engines leave a rule alone from then on; the reports of a file say how far
 * it was searched.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_LIMITS_H
#define PINION_TOOLS_SCAN_FINDINGS_LIMITS_H

#include "tools/scan/findings_file.h"

/* A rule that has reached a limit in a file. */
struct findings_limit {
	uint32_t rule;
	bool is_dense; /* its matches were too much work, else too many findings */
	/*
	 * As many matches took too many steps, the first at `searched_to`, and
	 * are left out; 0: none did.
	 */
	uint64_t costly_count;
	bool is_over; /* nothing else is searched for */
	uint64_t count;
	uint64_t searched_to; /* or the end of the last finding, when there were too many */
};

typedef void (*findings_limit_fn)(void *arg, const struct findings_limit *limit);

/*
 * Ends a rule in a file. Without memory for it engines go on, and what they
 * find is left out.
 */
void findings_limits_end(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state);

/* Ends it for a match that took too many steps, and drops open candidates. */
void findings_limits_end_costly(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state);

/* Whether a finding that starts there is one more than may be shown; noted. */
bool findings_limits_cut(
	const struct findings *findings, struct findings_rule *state, uint64_t start);

/*
 * A limit may have ended a rule: no finding of it that starts before this is
 * missing. Under the lock.
 */
uint64_t findings_limits_known_to(const struct rules *rules, const struct findings_file *file);

/* After the file's end: each rule that has reached a limit, in their order. */
void findings_limits_show(const struct findings_file *file, findings_limit_fn show, void *arg);

#endif
