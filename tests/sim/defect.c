/* SPDX-License-Identifier: MIT */
/*
 * Which bug is planted, and when it strikes.
 */
#include "tests/sim/defect.h"
#include "tests/sim/world.h"

enum defect defect_planted = DEFECT_NONE;

bool defect_strikes(enum defect defect, uint32_t interval)
{
	/* Without a defect nothing is drawn: the run stays what it was. */
	return defect_is(defect) && world_random(interval) == 0;
}
