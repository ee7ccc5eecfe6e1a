/* SPDX-License-Identifier: MIT */
/*
 * Goal: a future is set once, every waiter learns it, and the waiter may free
 * it then, while the call that set it is still under way; detached, it is
 * released once. WP-11, WP-18.
 * Method: futures on the model's heap, freed as early as may be, so that a
 * later touch fails; threads set, fail, wait and detach, a worker awaits.
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

/*
 * LATE: reads it once more when the waiters have been served. Others run before
 * the call that set the future goes on: a plain read of a future that one of
 * them has freed finds poison.
 */
static void serve_unlock(struct pin_waiters *waiters, const char *site)
{
	pin_waiters_serve_unlock(waiters);
	if (model_is_spoilt(MODEL_LATE, site, "pin_waiters_serve_unlock")) {
		pin_waiters_any(waiters);
	}
	model_point();
}
/* LATE: complete() reads `release` when the waiters have been served. */
#define pin_waiters_serve_unlock(waiters) \
	do { \
		serve_unlock(waiters, __func__); \
		if (model_is_spoilt(MODEL_LATE, __func__, "release")) { \
			release = was_done ? NULL : self->release; \
		} \
	} while (0)
#include "runtime/task/future.c"

enum { VALUE = 4711 };

static struct pinion_future *future;
static struct pinion_runtime *runtime;
static struct model_task starter;
static struct pinion_wait wait_here;
static struct pinion_future_callback callback;
static uint32_t end_count;
static int set_rc;
static int fail_rc;

static void begin(void)
{
	future = model_aligned_alloc(PIN_CACHE_LINE, sizeof(*future));
	pinion_future_init(future, NULL);
	end_count = 0;
	set_rc = 1;
	fail_rc = 1;
}

static void expect_value(void)
{
	uint32_t value = 0;

	MODEL_CHECK(pinion_future_get(future, &value, sizeof(value)) == 0 && value == VALUE);
}

static void set(void *arg)
{
	uint32_t value = VALUE;

	set_rc = pinion_future_set(arg, &value, sizeof(value));
}

static void fail(void *arg)
{
	fail_rc = pinion_future_fail(arg, -EIO);
}

static void run_waited(void)
{
	uint32_t setter;

	begin();
	setter = model_thread_start("setter", set, future);
	MODEL_CHECK(pinion_future_wait(future, PIN_NO_DEADLINE) == 0);
	expect_value();
	model_free(future);
	model_thread_join(setter);
}

/* Seen without waiting: as good a reason to free it. */
static void run_looked_at(void)
{
	uint32_t setter;

	begin();
	setter = model_thread_start("setter", set, future);
	while (pinion_future_get(future, NULL, 0) == -EAGAIN) {
		model_yield();
	}
	model_free(future);
	model_thread_join(setter);
}

static void run_set_and_fail(void)
{
	uint32_t setter;
	uint32_t failer;
	int rc;

	begin();
	setter = model_thread_start("setter", set, future);
	failer = model_thread_start("failer", fail, future);
	MODEL_CHECK(pinion_future_wait(future, PIN_NO_DEADLINE) == 0);
	rc = pinion_future_get(future, NULL, 0);
	model_thread_join(setter);
	model_thread_join(failer);
	MODEL_CHECK(set_rc == (rc == 0 ? 0 : -EALREADY));
	MODEL_CHECK(fail_rc == (rc == 0 ? -EALREADY : 0));
	model_free(future);
}

/* ---- on a worker ---- */

static int run_wait(struct pinion_task *task)
{
	(void)task;
	MODEL_CHECK(wait_here.result == 0);
	expect_value();
	model_free(future);
	end_count++;
	return 0;
}

static void begin_wait(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_future_wait_async(runtime, future, &wait_here) == 0);
}

static void run_awaited(void)
{
	uint32_t setter;

	begin();
	wait_here = (struct pinion_wait){.task.run = run_wait, .deadline_ns = UINT64_MAX};
	model_task_init(&starter, begin_wait);
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	setter = model_thread_start("setter", set, future);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(end_count == 1);
	model_thread_join(setter);
	model_runtime_end(runtime);
}

/* ---- by a callback ---- */

static void done(struct pinion_future_callback *called)
{
	MODEL_CHECK(called == &callback);
	end_count++;
	expect_value();
	model_free(future);
}

static void run_called(void)
{
	uint32_t setter;

	begin();
	callback = (struct pinion_future_callback){.done = done, .future = future};
	setter = model_thread_start("setter", set, future);
	MODEL_CHECK(pinion_future_call(&callback) == 0);
	model_thread_join(setter);
	MODEL_CHECK(end_count == 1);
}

static void release(struct pinion_future *released)
{
	MODEL_CHECK(released == future);
	end_count++;
	model_free(released);
}

static void run_detached(void)
{
	uint32_t setter;

	begin();
	setter = model_thread_start("setter", set, future);
	MODEL_CHECK(pinion_future_detach(future, release) == 0);
	model_thread_join(setter);
	MODEL_CHECK(end_count == 1);
}

static const struct model_mutant late_mutants[] = {
	{"touched when all know", {MODEL_LATE, "complete", "pin_waiters_serve_unlock"}},
	{"the release is read when all know", {MODEL_LATE, "complete", "release"}},
	{.name = NULL},
};

static const struct model_mutant wait_mutants[] = {
	{"touched when all know", {MODEL_LATE, "complete", "pin_waiters_serve_unlock"}},
	{"the release is read when all know", {MODEL_LATE, "complete", "release"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"waited", run_waited, 3, 2, 1, wait_mutants, NULL},
	{"looked_at", run_looked_at, 3, 1, 0, late_mutants, NULL},
	{"set_and_fail", run_set_and_fail, 2, 1, 0, NULL, NULL},
	{"awaited", run_awaited, 2, 1, 0, late_mutants, NULL},
	{"called", run_called, 3, 2, 0, late_mutants, NULL},
	{"detached", run_detached, 3, 2, 0, late_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("future", cases, PIN_ARRAY_COUNT(cases));
}
