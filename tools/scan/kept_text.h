/* SPDX-License-Identifier: MIT */
/*
 * Which bytes of a window are kept.
 */
#ifndef PINION_TOOLS_SCAN_KEPT_TEXT_H
#define PINION_TOOLS_SCAN_KEPT_TEXT_H

#include "tools/scan/candidates.h"
#include "tools/scan/rules.h"
#include "tools/scan/snippets.h"

#include <pinion/scan.h>

/* Whether findings of the rule carry text; those of any of the rules. */
bool kept_text_of_rule(const struct rules *rules, uint32_t rule);
bool kept_text_of_any(const struct rules *rules);

/*
 * Adds the bytes of and around candidates to `snippets`, which are emptied
 * first: up to the next page on either side that could not be read. `scratch`
 * is a list to use. Returns 0 or -ENOMEM.
 */
int kept_text_add(const struct rules *rules, const struct pinion_window *window,
	const struct candidates *found, struct candidates *scratch, struct snippets *snippets);

#endif
