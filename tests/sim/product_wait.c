/* SPDX-License-Identifier: MIT */
/*
 * The real worker/wait.c, with a call that a defect may spoil.
 */
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "tests/sim/defect.h"

#define pin_wake_worker(target, waker) \
	(defect_is(DEFECT_WAIT_UNTOLD) ? (void)0 : pin_wake_worker(target, waker))

#include "runtime/worker/wait.c"
