/* SPDX-License-Identifier: MIT */
/*
 * What a long run of zero bytes does to rules without a widest match, as far
 * as their patterns show it. A hole of a sparse file is such a run.
 *
 * Two answers, both careful: a pattern that is not understood gets the slow
 * one.
 *
 *   1. No match holds a zero byte: a run ends whatever was begun.
 *   2. A run longer than this number of bytes is as good as any longer one.
 *
 * Why (2) holds. Write a pattern out with its counted repeats unrolled: each
 * character class is a state. If every endless repeat (`*`, `+`, `{n,}`) is of
 * one class, or of a group in which no class has the zero byte, then among
 * zeros the only way back to a state is the loop at one class. A way through n
 * states steps forward fewer than n times, so in a run of more than n zeros it
 * takes a loop at least once, and may take it as many times more, or less, as
 * the run is longer or shorter. So a text and the same one with a longer run
 * match in the same places outside of it; and what starts, or ends, further
 * than n inside of the run does so at every later byte of it, too.
 */
#ifndef PINION_TOOLS_SCAN_ZEROS_H
#define PINION_TOOLS_SCAN_ZEROS_H

#include "tools/scan/rules.h"

/* (1) of all rules without a widest match. */
bool zeros_end_matches(const struct rules *rules);

/* (2): that length for all rules without a widest match; 0: not known. */
uint64_t zeros_settle_bytes(const struct rules *rules);

#endif
