/* SPDX-License-Identifier: MIT */
/*
 * The real api/runtime.c, api/spawn.c and task/entry.c, with calls that a
 * defect may spoil.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"
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

#include "runtime/api/resize.c"
#include "runtime/api/runtime.c"
#include "runtime/api/runtime_create.c"
#include "runtime/api/spawn.c"
#include "runtime/api/stats.c"
#include "runtime/api/worker.c"
#include "runtime/task/entry.c"
