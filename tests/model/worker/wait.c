/* SPDX-License-Identifier: MIT */
/*
 * Goal: a wait that a worker began ends once, on that worker, served,
 * cancelled, timed out or stopped, however these and the worker's sleep fall
 * together; a drain waits for it, and the runtime may be freed as soon as its
 * task has run, though the serving thread is not yet back: [WAIT-3]; a cancel
 * may come while it is being begun, or begun anew: [WAIT-4]. BP-28.
 * Method: real workers; units in a word, as in waiters.c, given by threads
 * outside. A deadline may come whenever the worker sleeps.
 */
#include "runtime/worker/wait.h"
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/support/units.h"

#include <errno.h>
#include <string.h>

static struct pinion_runtime *runtime;
static struct pin_waiters waiters;
static struct model_task starter;
static struct pinion_wait wait_here;
static uint32_t begun_count;
static uint32_t end_count;
static struct pin_worker *begun_on;
static int cancel_rc;

static int32_t finish(void *target, const struct pin_waiters_value *value)
{
	MODEL_CHECK(target == &wait_here);
	return (int32_t)value->words[0];
}

static int run(struct pinion_task *task)
{
	MODEL_CHECK(task == &wait_here.task);
	end_count++;
	MODEL_CHECK(end_count == 1 && pin_worker_current() == begun_on);
	return 0;
}

static void begin_wait(struct model_task *task)
{
	struct pin_wait_aim aim = {
		.waiters = &waiters, .demand = 1, .finish = finish, .target = &wait_here};

	(void)task;
	begun_on = pin_worker_current();
	MODEL_CHECK(pin_wait_begin(begun_on, &wait_here, &aim) == 0);
	begun_count++;
}

static bool has_begun(const void *arg)
{
	(void)arg;
	return begun_count > 0;
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return end_count > 0;
}

static void prepare(uint32_t worker_count, uint64_t deadline_ns)
{
	memset(&wait_here, 0, sizeof(wait_here));
	memset(&units, 0, sizeof(units));
	wait_here.task.run = run;
	wait_here.deadline_ns = deadline_ns;
	begun_count = 0;
	end_count = 0;
	cancel_rc = -EALREADY;
	pin_waiters_init(&waiters, &pin_host_linux, units_take, NULL, PIN_WAITERS_EVEN);
	model_task_init(&starter, begin_wait);
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void begin(uint32_t worker_count, uint64_t deadline_ns)
{
	prepare(worker_count, deadline_ns);
	model_quiet_begin();
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	model_await("the beginning", has_begun, NULL);
	model_quiet_end();
}

static void give(void *arg)
{
	(void)arg;
	pin_fetch_add_acq_rel_u32(&units, 1);
	if (pin_waiters_any(&waiters)) {
		pin_waiters_serve(&waiters);
	}
}

static void expect_one_end(void)
{
	struct pinion_runtime_stats counters;

	MODEL_CHECK(end_count == 1 && waiters.oldest == NULL);
	MODEL_CHECK(units.value == (wait_here.result == 1 ? 0 : 1));
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_spawned == 2 && counters.tasks_run == 2);
}

static void run_served(void)
{
	begin(1, PIN_NO_DEADLINE);
	give(NULL);
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(wait_here.result == 1);
	model_runtime_end(runtime);
}

/* The server is still at it when the runtime is gone. */
static void run_freed(void)
{
	uint32_t releaser;

	begin(1, PIN_NO_DEADLINE);
	releaser = model_thread_start("releaser", give, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	expect_one_end();
	MODEL_CHECK(wait_here.result == 1);
	pinion_runtime_destroy(runtime);
	model_thread_join(releaser);
}

static void cancel(void *arg)
{
	(void)arg;
	cancel_rc = pinion_wait_cancel(runtime, &wait_here);
}

static void run_cancelled(void)
{
	uint32_t threads[2];

	begin(1, PIN_NO_DEADLINE);
	threads[0] = model_thread_start("releaser", give, NULL);
	threads[1] = model_thread_start("canceller", cancel, NULL);
	model_await("the end", has_ended, NULL);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(wait_here.result == (cancel_rc == 0 ? -ECANCELED : 1));
	model_runtime_end(runtime);
}

/* Before the call that begins it, in that, or after it. */
static void run_cancelled_early(void)
{
	uint32_t canceller;

	prepare(1, PIN_NO_DEADLINE);
	canceller = model_thread_start("canceller", cancel, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	model_thread_join(canceller);
	if (cancel_rc != 0) {
		MODEL_CHECK(cancel_rc == -EALREADY);
		give(NULL);
	}
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(wait_here.result == (cancel_rc == 0 ? -ECANCELED : 1));
	MODEL_CHECK(waiters.oldest == NULL);
	model_runtime_end(runtime);
}

/* ---- begun anew, for something else ---- */

static struct pin_waiters *first_waiters;

static void begin_first(struct model_task *task)
{
	struct pin_wait_aim aim = {
		.waiters = first_waiters, .demand = 1, .finish = finish, .target = &wait_here};

	(void)task;
	begun_on = pin_worker_current();
	MODEL_CHECK(pin_wait_begin(begun_on, &wait_here, &aim) == 0);
}

/* What it waited for first is gone when it begins to wait for the next. */
static void run_begun_anew(void)
{
	struct model_task first;
	uint32_t canceller;

	prepare(1, PIN_NO_DEADLINE);
	model_task_init(&first, begin_first);
	model_quiet_begin();
	first_waiters = model_aligned_alloc(64, 2 * sizeof(*first_waiters));
	pin_waiters_init(first_waiters, &pin_host_linux, units_take, NULL, PIN_WAITERS_EVEN);
	MODEL_CHECK(pinion_task_spawn(runtime, &first.request.task) == 0);
	model_settle();
	MODEL_CHECK(pinion_wait_cancel(runtime, &wait_here) == 0);
	model_settle();
	MODEL_CHECK(end_count == 1 && wait_here.result == -ECANCELED);
	model_free(first_waiters);
	end_count = 0;
	model_quiet_end();
	canceller = model_thread_start("canceller", cancel, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &starter.request.task) == 0);
	model_thread_join(canceller);
	if (cancel_rc != 0) {
		give(NULL);
	}
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(wait_here.result == (cancel_rc == 0 ? -ECANCELED : 1));
	model_runtime_end(runtime);
}

static void run_stopped(void)
{
	uint32_t releaser;

	begin(1, PIN_NO_DEADLINE);
	releaser = model_thread_start("releaser", give, NULL);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	model_thread_join(releaser);
	MODEL_CHECK(wait_here.result == 1 || wait_here.result == -ECANCELED);
	expect_one_end();
	model_runtime_end(runtime);
}

static void run_timed_out(void)
{
	uint32_t releaser;

	begin(1, 1);
	releaser = model_thread_start("releaser", give, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(releaser);
	MODEL_CHECK(wait_here.result == 1 || wait_here.result == -ETIME);
	expect_one_end();
	model_runtime_end(runtime);
}

static const struct model_mutant served_mutants[] = {
	{"its worker is not notified", {MODEL_SKIP, "post", "pin_wake_worker"}},
	{"no fence before the check of the sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{.name = NULL},
};

static const struct model_mutant freed_mutants[] = {
	{"freed under an outside caller",
		{MODEL_SKIP, "pin_wait_for_callers", "pin_load_acquire_u32"}},
	{.name = NULL},
};

static const struct model_mutant cancel_mutants[] = {
	{"cancelled though served", {MODEL_SKIP, "pin_wait_cancel", "pin_waiter_withdraw_from"}},
	{.name = NULL},
};

static const struct model_mutant early_mutants[] = {
	{"cancelled before it has begun",
		{MODEL_SKIP, "pin_wait_cancel", "pin_waiter_withdraw_from"}},
	{.name = NULL},
};

static const struct model_mutant anew_mutants[] = {
	{"what it waited for before is found", {MODEL_SKIP, "take_back", "pin_store_relaxed_u64"}},
	{.name = NULL},
};

static const struct model_mutant end_mutants[] = {
	{"ended though served", {MODEL_SKIP, "end_here", "pin_waiter_withdraw"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"served", run_served, 3, 2, 1, served_mutants, NULL},
	{"freed", run_freed, 2, 1, 0, freed_mutants, NULL},
	{"cancelled", run_cancelled, 2, 1, 0, cancel_mutants, NULL},
	{"cancelled_early", run_cancelled_early, 2, 1, 0, early_mutants, NULL},
	{"begun_anew", run_begun_anew, 1, 1, 0, anew_mutants, NULL},
	{"stopped", run_stopped, 2, 1, 0, end_mutants, NULL},
	{"timed_out", run_timed_out, 2, 1, 1, end_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("wait", cases, PIN_ARRAY_COUNT(cases));
}
