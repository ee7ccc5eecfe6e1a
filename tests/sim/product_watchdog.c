/* SPDX-License-Identifier: MIT */
/*
 * The real worker/watchdog.c, with calls that a defect may spoil.
 */
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "tests/sim/defect.h"

#define pin_wake_one(...) (defect_is(DEFECT_WATCHDOG_BLIND) ? (void)0 : pin_wake_one(__VA_ARGS__))

#include "runtime/worker/watchdog.c"
