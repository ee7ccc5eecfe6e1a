/* SPDX-License-Identifier: MIT */
/*
 * The real core/help.c, with a call that a defect may spoil.
 */
#include "runtime/core/fault.h"
#include "runtime/core/help.h"
#include "runtime/core/step.h"
#include "tests/sim/defect.h"

#define pin_worker_of_thread() (defect_is(DEFECT_NOBODY_HELPS) ? NULL : pin_worker_of_thread())

#include "runtime/core/help.c"
