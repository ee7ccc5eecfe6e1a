/* SPDX-License-Identifier: MIT */
/*
 * Goal: a group is joined when its last task is over, not earlier and not
 * never, with the first failure and all that its tasks wrote, and may be freed
 * then, however tasks, a cancel and a stop fall together: [GROUP-1]. WP-24.
 * Method: groups on the model's heap, freed by the joiner, so that a later
 * touch fails; tasks are threads that run one, or those of a real worker.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>
#include <string.h>

/* EARLY: the count becomes 0 before the lock is had. */
static bool is_early(const char *site)
{
	return model_is_spoilt(MODEL_EARLY, site, "pin_fetch_sub_acq_rel_u64");
}

static void lock(struct pin_waiters *waiters, const char *site)
{
	if (is_early(site)) {
		pin_fetch_sub_acq_rel_u64(
			&PIN_CONTAINER_OF(waiters, struct pin_group, waiters)->task_count, 1);
	}
	pin_waiters_lock(waiters);
}

#define pin_waiters_lock(waiters) lock(waiters, __func__)
#undef pin_fetch_sub_acq_rel_u64
#define pin_fetch_sub_acq_rel_u64(atomic, value) \
	(is_early(__func__) ? 1 \
			    : model_update_u64( \
				      atomic, MODEL_SUB, value, MODEL_ORDER_ACQ_REL, __func__))
#include "runtime/task/group.c"

enum { TASKS = 2 };

static struct pinion_group *group;
static struct pinion_runtime *runtime;
static struct pinion_group_task tasks[TASKS];
static struct pin_atomic_u32 written[TASKS];
static uint32_t end_count;
static int results[TASKS];

static int run(struct pinion_group_task *task)
{
	pin_store_relaxed_u32(&written[task - tasks], 1);
	end_count++;
	return results[task - tasks];
}

static void cancel(struct pinion_group_task *task)
{
	pin_store_relaxed_u32(&written[task - tasks], 2);
	end_count++;
}

static void begin(uint32_t flags)
{
	group = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*group));
	MODEL_CHECK(pinion_group_init(group, runtime, flags) == 0);
	memset(written, 0, sizeof(written));
	memset(results, 0, sizeof(results));
	memset(tasks, 0, sizeof(tasks));
	end_count = 0;
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_group_task){.run = run, .cancel = cancel};
	}
}

static void join(void)
{
	struct pin_waiter waiter;

	pin_waiter_init(&waiter, 0, NULL);
	MODEL_CHECK(pin_waiters_wait(&own(group)->waiters, &waiter, PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(end_count == TASKS);
	for (uint32_t i = 0; i < TASKS; i++) {
		MODEL_CHECK(pin_load_relaxed_u32(&written[i]) != 0);
	}
}

/* ---- tasks as threads ---- */

static void run_as_thread(void *arg)
{
	struct pinion_group_task *task = arg;

	run_task(&task->task);
}

static void start_threads(uint32_t *threads)
{
	pin_fetch_add_relaxed_u64(&own(group)->task_count, TASKS);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].group = group;
		threads[i] = model_thread_start("task", run_as_thread, &tasks[i]);
	}
}

static void run_joined(void)
{
	uint32_t threads[TASKS];

	runtime = (void *)&tasks; /* not used; any but NULL */
	begin(0);
	start_threads(threads);
	join();
	MODEL_CHECK(pinion_group_result(group) == 0);
	model_free(group);
	for (uint32_t i = 0; i < TASKS; i++) {
		model_thread_join(threads[i]);
	}
}

static void run_failed(void)
{
	uint32_t threads[TASKS];
	int before;
	int result;

	runtime = (void *)&tasks;
	begin(0);
	results[0] = -EIO;
	results[1] = -ENOENT;
	start_threads(threads);
	before = pinion_group_result(group);
	join();
	result = pinion_group_result(group);
	MODEL_CHECK(result == -EIO || result == -ENOENT);
	MODEL_CHECK(before == 0 || before == result);
	/* The first failure keeps the other from running, if in time. */
	MODEL_CHECK(written[0].value == 1 || result == -ENOENT);
	MODEL_CHECK(written[1].value == 1 || result == -EIO);
	MODEL_CHECK(pinion_group_is_cancelled(group));
	model_free(group);
	for (uint32_t i = 0; i < TASKS; i++) {
		model_thread_join(threads[i]);
	}
}

/* ---- on a worker ---- */

static void stop(void *arg)
{
	(void)arg;
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
}

/* Cancelled or stopped at any time, it is joined all the same. */
static void run_stopped(void)
{
	uint32_t spawned_count = 0;
	uint32_t stopper;
	int rc;

	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	begin(0);
	stopper = model_thread_start("stopper", stop, NULL);
	for (uint32_t i = 0; i < TASKS; i++) {
		rc = pinion_group_spawn(group, &tasks[i]);
		MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN || rc == -ECANCELED);
		spawned_count += rc == 0 ? 1 : 0;
	}
	MODEL_CHECK(pinion_group_wait(group, PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(end_count == spawned_count);
	model_free(group);
	model_thread_join(stopper);
	model_runtime_end(runtime);
}

static const struct model_mutant joined_mutants[] = {
	{"over before the lock is had", {MODEL_EARLY, "leave", "pin_fetch_sub_acq_rel_u64"}},
	{"leaving is no single step", {MODEL_TORN, "leave", NULL}},
	{"a task leaves without a release", {MODEL_RELAXED, "leave", NULL}},
	{.name = NULL},
};

static const struct model_mutant failed_mutants[] = {
	{"the first failure is no single step", {MODEL_TORN, "note_failure", NULL}},
	{.name = NULL},
};

static const struct model_mutant stopped_mutants[] = {
	{"over before the lock is had", {MODEL_EARLY, "leave", "pin_fetch_sub_acq_rel_u64"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"joined", run_joined, 3, 2, 0, joined_mutants, NULL},
	{"failed", run_failed, 3, 1, 0, failed_mutants, NULL},
	{"stopped", run_stopped, 2, 1, 0, stopped_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("group", cases, PIN_ARRAY_COUNT(cases));
}
