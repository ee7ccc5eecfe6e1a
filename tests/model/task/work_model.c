/* SPDX-License-Identifier: MIT */
/*
 * The real task/work.c, with steps that a mutant may leave out or do too late.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/worker.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <string.h>

/* SKIP: a wake of a running item leaves no trace. */
static bool is_dropped(const char *site, uint32_t state)
{
	return state == PIN_WORK_NOTIFIED && model_is_spoilt(MODEL_SKIP, site, "notified");
}

/* LATE: the runtime is asked only when the state has been changed already. */
static bool is_late(const char *site)
{
	return model_is_spoilt(MODEL_LATE, site, "pin_runtime_reserve");
}

static int reserve_late(struct pinion_runtime *runtime, struct pinion_task *task)
{
	struct pinion_work *work = PIN_CONTAINER_OF(task, struct pinion_work, task);
	struct pin_work_word *word = (void *)work->private_;
	uint32_t state = PIN_WORK_SCHEDULED;
	int rc = pin_runtime_reserve(runtime);

	if (rc < 0) {
		pin_cas_acq_rel_u32(&word->state, &state, PIN_WORK_IDLE);
	}
	return rc;
}

#undef pin_cas_acq_rel_u32
#define pin_cas_acq_rel_u32(atomic, expected, value) \
	(is_dropped(__func__, value) \
			? true \
			: model_cas_u32(atomic, expected, value, MODEL_ORDER_ACQ_REL, __func__))
#define pin_runtime_reserve(runtime) (is_late(__func__) ? 0 : (pin_runtime_reserve)(runtime))
#define pin_runtime_spawn_reserved(runtime, task) \
	do { \
		int late_rc = is_late(__func__) ? reserve_late(runtime, task) : 0; \
\
		if (late_rc < 0) { \
			return late_rc; \
		} \
		(pin_runtime_spawn_reserved)(runtime, task); \
	} while (0)
#define pin_runtime_undo(runtime) \
	(is_late(__func__) || model_is_spoilt(MODEL_SKIP, __func__, "pin_runtime_undo") \
			? (void)0 \
			: (pin_runtime_undo)(runtime))
#define pin_worker_respawn(worker, task) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_worker_respawn") \
			? (void)0 \
			: (pin_worker_respawn)(worker, task))

#include "runtime/task/work.c"
