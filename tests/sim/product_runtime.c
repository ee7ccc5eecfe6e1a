/* SPDX-License-Identifier: MIT */
/*
 * The real core/runtime.c, core/calls.c and core/entry.c, with calls that a
 * defect may spoil.
 */
#include "runtime/core/config.h"
#include "runtime/core/entry.h"
#include "runtime/core/runtime.h"
#include "runtime/core/spawn.h"
#include "runtime/core/wake.h"
#include "runtime/core/worker.h"
#include "tests/sim/defect.h"

static int spawn(struct pin_worker *worker, struct pinion_task *task)
{
	int rc = pin_worker_spawn(worker, task);

	if (rc == 0 && defect_strikes(DEFECT_TASK_TWICE, 16)) {
		rc = pin_worker_spawn(worker, task);
	}
	return rc;
}

#define pin_worker_spawn spawn
#define pin_wake_one(...) \
	(defect_strikes(DEFECT_WAKE_UNSENT, 4) ? (void)0 : pin_wake_one(__VA_ARGS__))
#define pin_wake_worker(...) \
	(defect_strikes(DEFECT_WAKE_UNSENT, 4) ? (void)0 : pin_wake_worker(__VA_ARGS__))

#include "runtime/core/calls.c"
#include "runtime/core/entry.c"
#include "runtime/core/resize.c"
#include "runtime/core/runtime.c"
#include "runtime/core/runtime_figures.c"
