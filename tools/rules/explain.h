/* SPDX-License-Identifier: MIT */
/*
 * Rules in words.
 */
#ifndef PINION_TOOLS_RULES_EXPLAIN_H
#define PINION_TOOLS_RULES_EXPLAIN_H

#include "tools/output_text.h"
#include "tools/scan/rules.h"

/* A few words on what it finds; NULL: there are none. */
const char *rules_description(const struct rule *rule);

/* A line: the id, in a column of `width`, the description, the tags. */
void rules_append_line(struct output_text *text, const struct rule *rule, size_t width);

/* Whether matches longer than max_width are not found. */
bool rules_are_cut(const struct rule *rule);

/* All that there is to say of a rule, which is measured. */
void rules_append_explanation(struct output_text *text, const struct rule *rule);

#endif
