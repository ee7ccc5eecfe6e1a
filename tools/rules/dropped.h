/* SPDX-License-Identifier: MIT */
/*
 * Matches that are no findings, and why: for authors of rules, who see
 * otherwise only what a filter leaves.
 */
#ifndef PINION_TOOLS_RULES_DROPPED_H
#define PINION_TOOLS_RULES_DROPPED_H

#include "tools/output_text.h"
#include "tools/scan/rules.h"

/*
 * Adds a line for each match in the file that a filter drops, by rule:
 *
 *   PATH:START-END: RULE: no finding: REASON
 *
 * The rules are measured. False: the file could not be searched, which has been
 * reported.
 */
bool rules_append_dropped(struct output_text *text, const struct rules *rules, const char *path);

#endif
