/* SPDX-License-Identifier: MIT */
/*
 * Filter expressions as the condition of a rule: its own, and those that a file
 * has for all of its rules. A finding is kept unless one of them is true.
 */
#ifndef PINION_TOOLS_SCAN_RULE_CONDITION_H
#define PINION_TOOLS_SCAN_RULE_CONDITION_H

#include "tools/scan/expression.h"
#include "tools/scan/rule_filter.h"

/* Of all rules of a file; its owners are counted. */
struct rule_condition_shared {
	uint32_t owner_count;
	struct expression prefilter; /* all zero: there is none */
	struct expression filter;
};

/* With one owner; NULL: no memory. */
struct rule_condition_shared *rule_condition_shared_create(void);
/* One owner less; accepts NULL. */
void rule_condition_shared_release(struct rule_condition_shared *shared);

/*
 * Makes an expression the filter's own one, in place of an earlier one; the
 * filter has it then, also after a failure. Returns 0 or -ENOMEM.
 */
int rule_condition_set(struct rule_filter *filter, struct expression *expression);

/* Adds another owner of the shared ones. Returns 0 or -ENOMEM. */
int rule_condition_share(struct rule_filter *filter, struct rule_condition_shared *shared);

/* The filter's own expression; NULL: it has none. */
const struct expression *rule_condition_own(const struct rule_filter *filter);

/*
 * Compiles all regular expressions of an expression. Returns 0, -ENOMEM, or
 * -EINVAL with a reason.
 */
int rule_condition_check(struct expression *expression, char out_reason[RULE_FILTER_REASON_BYTES]);

#endif
