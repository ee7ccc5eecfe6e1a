/* SPDX-License-Identifier: MIT */
/*
 * The second look at a match: PCRE2.
 */
#ifndef PINION_TOOLS_SCAN_CONFIRM_H
#define PINION_TOOLS_SCAN_CONFIRM_H

struct confirm_regex;

/* Accepts NULL. */
void confirm_regex_destroy(struct confirm_regex *regex);

#endif
