/* SPDX-License-Identifier: MIT */
/*
 * Changes the number of a thread pool's workers: asks some to leave and joins
 * them, starts others in free slots.
 *
 * pinion_thread_pool_resize() calls it on a thread that is no worker;
 * loop/retire.c has the workers' side.
 *
 * Invariant: one resize at a time, and none beside the runtime's end: both need
 * the lock `life`.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"

#include <errno.h>

static uint32_t serving(const struct pin_worker_class *worker_class)
{
	/* Relaxed: the resizer, one at a time, writes it. */
	return pin_load_relaxed_u32(&worker_class->serving_count);
}

static struct pin_worker *worker_at(
	struct pin_shared *shared, const struct pin_worker_class *worker_class, uint32_t number)
{
	PIN_DCHECK(number < worker_class->worker_count);
	PIN_DCHECK(worker_class->first_worker + number < shared->worker_count);
	return &shared->workers[worker_class->first_worker + number];
}

/* ---- fewer ---- */

/* Down to `count`: asks all first, since each may take its time. */
static void dismiss(
	struct pin_shared *shared, struct pin_worker_class *worker_class, uint32_t count)
{
	for (uint32_t i = count; i < serving(worker_class); i++) {
		struct pin_worker *worker = worker_at(shared, worker_class, i);

		pin_store_release_u32(&worker->service, PIN_SERVICE_LEAVING); /* [RETIRE-2] */
	}
}

/* Those of a worker class that were not asked to leave: they come first. */
static uint32_t count_staying(
	struct pin_shared *shared, const struct pin_worker_class *worker_class)
{
	uint32_t count = serving(worker_class);

	while (count > 0 &&
		pin_load_acquire_u32(&worker_at(shared, worker_class, count - 1)->service) !=
			PIN_SERVICE_IN) {
		count--;
	}
	return count;
}

/* Also those who have left, and were not joined. */
static bool has_leavers(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->class_count; i++) {
		if (count_staying(shared, &shared->classes[i]) < serving(&shared->classes[i])) {
			return true;
		}
	}
	return false;
}

static void dismiss_all(struct pin_shared *shared, const uint32_t *counts)
{
	for (uint32_t i = 0; i < shared->class_count; i++) {
		dismiss(shared, &shared->classes[i], counts[i]);
	}
	/* Awake or not: a token is left with each, as at the end. */
	if (has_leavers(shared)) {
		pin_wake_all(shared);
	}
}

static void join_leavers(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->class_count; i++) {
		struct pin_worker_class *worker_class = &shared->classes[i];
		uint32_t count = count_staying(shared, worker_class);

		/* The fallback worker has no other to leave its work to. */
		PIN_DCHECK(count > 0 || i < shared->class_count - 1);
		for (uint32_t j = count; j < serving(worker_class); j++) {
			pin_runtime_join_worker(worker_at(shared, worker_class, j));
		}
		/* Relaxed: a rule of thumb to others. */
		pin_store_relaxed_u32(&worker_class->serving_count, count);
	}
}

/* ---- more ---- */

static int engage(struct pin_shared *shared, struct pin_worker_class *worker_class, uint32_t count)
{
	PIN_DCHECK(count <= worker_class->worker_count);
	for (uint32_t i = serving(worker_class); i < count; i++) {
		int rc = pin_runtime_start_worker(worker_at(shared, worker_class, i));

		PIN_DCHECK(rc <= 0);
		if (rc < 0) {
			return rc;
		}
		pin_store_relaxed_u32(&worker_class->serving_count, i + 1);
	}
	return 0;
}

/* All or none of those that the classes lack; none once they have left. */
static int engage_all(struct pin_shared *shared, const uint32_t *counts)
{
	uint32_t before[PIN_WORKER_CLASSES_MAX];
	int rc = 0;

	PIN_CHECK(shared->class_count <= PIN_ARRAY_COUNT(before));
	for (uint32_t i = 0; i < shared->class_count; i++) {
		before[i] = serving(&shared->classes[i]);
	}
	for (uint32_t i = 0; i < shared->class_count && rc == 0; i++) {
		rc = engage(shared, &shared->classes[i], counts[i]);
	}
	if (rc < 0) {
		dismiss_all(shared, before);
	}
	return rc;
}

/* With `life`. */
static int change(struct pin_shared *shared, const uint32_t *counts)
{
	int rc = pin_gate_is_open(&shared->gate) ? engage_all(shared, counts) : -ESHUTDOWN;

	if (rc == 0) {
		dismiss_all(shared, counts);
	}
	join_leavers(shared);
	return rc;
}

/*
 * Tries the lock only: a thread that holds it is ending the runtime, so there
 * is nothing left to resize.
 */
int pin_runtime_resize(struct pinion_runtime *runtime, const uint32_t *counts)
{
	struct pin_shared *shared = &runtime->shared;
	uint32_t nobody = 0;
	/* No other resize has the lock, so its holder ends the runtime. */
	int rc = -ESHUTDOWN;

	PIN_DCHECK(shared->is_thread_pool && shared->class_count > 0);
	for (uint32_t i = 0; i < shared->class_count; i++) {
		PIN_CHECK(counts[i] <= shared->classes[i].worker_count);
	}
	PIN_CHECK(counts[shared->class_count - 1] >= 1);
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	if (!pin_cas_acq_rel_u32(&shared->is_resizing, &nobody, 1)) {
		return -EBUSY;
	}
	if (pin_lock_try(&runtime->life)) {
		rc = change(shared, counts);
		pin_lock_release(&runtime->life, shared->host);
	}
	pin_store_release_u32(&shared->is_resizing, 0);
	return rc;
}
