/* SPDX-License-Identifier: MIT */
/*
 * Goal: a stop gives each admitted task to `run` or to `cancel`, exactly one of
 * them and once, counts both, ends requests in flight, and always ends; a stop
 * whose deadline has come goes on, and the next call finds its end; exactly one
 * worker reports it, however many see it. EX-43, EX-47, EX-62, C15, W23.
 * Hazards that others met: a thread that parks again after the end, and a
 * thread that leaves uncounted.
 * Method: tasks are queued, running, spawning, reading or just being admitted
 * while the main thread stops. A task that is entered twice fails by itself.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>

enum { TASKS = 2 };

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];
static bool is_due[TASKS];
static bool may_go;

static void check_all_entered(void)
{
	for (uint32_t i = 0; i < TASKS; i++) {
		MODEL_CHECK(tasks[i].run_count + tasks[i].cancel_count == (is_due[i] ? 1u : 0u));
	}
}

static void begin(uint32_t worker_count, void (*body)(struct model_task *task))
{
	for (uint32_t i = 0; i < TASKS; i++) {
		model_task_init(&tasks[i], i == 0 ? body : NULL);
		is_due[i] = false;
	}
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void spawn(uint32_t index)
{
	int rc = pinion_task_spawn(runtime, &tasks[index].request.task);

	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	is_due[index] = rc == 0;
}

static void finish(void)
{
	struct pinion_runtime_stats counters;
	uint64_t cancelled = 0;
	uint64_t due = 0;

	check_all_entered();
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	for (uint32_t i = 0; i < TASKS; i++) {
		cancelled += tasks[i].cancel_count;
		due += is_due[i] ? 1 : 0;
	}
	MODEL_CHECK(counters.tasks_cancelled == cancelled);
	MODEL_CHECK(counters.tasks_run + counters.tasks_cancelled == due);
	MODEL_CHECK(counters.tasks_spawned + counters.requests_submitted == due);
	model_runtime_end(runtime);
}

static void stop(void)
{
	model_on_worker_exit(check_all_entered);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	finish();
}

static void run_queued(void)
{
	begin(1, NULL);
	spawn(0);
	spawn(1);
	stop();
}

static void run_two_workers(void)
{
	begin(2, NULL);
	spawn(0);
	spawn(1);
	stop();
}

static void spawn_other(struct model_task *task)
{
	int rc = pinion_task_spawn_shared(runtime, &tasks[1].request.task);

	(void)task;
	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	/* No other thread ran in between: it is due from the call on. */
	is_due[1] = rc == 0;
}

/*
 * Its own exit check is too early: another worker may end the task before the
 * spawner has noted that it is due.
 */
static void run_spawning(void)
{
	begin(2, spawn_other);
	spawn(0);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	finish();
}

static void submit_read(struct model_task *task)
{
	int rc = pinion_request_submit(runtime, &tasks[1].request);

	(void)task;
	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	is_due[1] = rc == 0;
}

/* Nothing but the cancellation ends this read. */
static void run_reading(void)
{
	begin(1, submit_read);
	spawn(0);
	stop();
}

/*
 * The last worker ends the sleep, not time: time passes only if no thread can
 * go on.
 */
static void stop_in_time(void)
{
	uint64_t begin_ns = model_clock_ns();

	MODEL_CHECK(pinion_runtime_stop_until(runtime, UINT64_MAX - 1) == 0);
	MODEL_CHECK(model_clock_ns() == begin_ns);
}

static void run_until(void)
{
	begin(1, NULL);
	spawn(0);
	stop_in_time();
	finish();
}

static bool is_let_go(const void *arg)
{
	(void)arg;
	return may_go;
}

static void keep_on(struct model_task *task)
{
	(void)task;
	model_await("the second call", is_let_go, NULL);
}

/* It may also be cancelled before it begins. */
static void run_until_twice(void)
{
	int rc;

	may_go = false;
	begin(1, keep_on);
	spawn(0);
	rc = pinion_runtime_stop_until(runtime, 1);
	MODEL_CHECK(rc == (tasks[0].cancel_count == 1 ? 0 : -ETIME));
	may_go = true;
	stop_in_time();
	MODEL_CHECK(pinion_runtime_stop_until(runtime, 0) == 0);
	finish();
}

static void spawn_last(void *arg)
{
	(void)arg;
	spawn(1);
}

static void run_admitting(void)
{
	uint32_t spawner;

	begin(1, NULL);
	spawn(0);
	spawner = model_thread_start("spawner", spawn_last, NULL);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	model_thread_join(spawner);
	finish();
}

static const struct model_mutant mutants[] = {
	{"no thread is notified", {MODEL_SKIP, "pin_shared_stop", "pin_wake_all"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

/* As in drain.c. */
static const struct model_defect many_workers[] = {
	{MODEL_RELAXED, "pin_idle_publish", NULL},
	{MODEL_RELAXED, "pin_search_begin", NULL},
	{MODEL_RELAXED, "pin_search_give_up", NULL},
	{.site = NULL},
};

static const struct model_mutant two_workers_mutants[] = {
	{"no fence before the sum", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"two report the end", {MODEL_TORN, "pin_park_look_for_end", NULL}},
	{.name = NULL},
};

static const struct model_mutant reading_mutants[] = {
	{"no doorbell", {MODEL_SKIP, "notify", "pin_ring_doorbell"}},
	{.name = NULL},
};

static const struct model_mutant until_mutants[] = {
	{"the waiter is not notified",
		{MODEL_SKIP, "pin_park_look_for_end", "pin_wake_destroy_waiters"}},
	{.name = NULL},
};

static const struct model_mutant admitting_mutants[] = {
	{"admission is no single step", {MODEL_TORN, "pin_gate_admit_until", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"queued", run_queued, 3, 2, 0, mutants, NULL},
	{"two_workers", run_two_workers, 1, 1, 0, two_workers_mutants, many_workers},
	{"spawning", run_spawning, 2, 1, 0, NULL, NULL},
	{"reading", run_reading, 3, 2, 0, reading_mutants, NULL},
	{"until", run_until, 2, 1, 0, until_mutants, NULL},
	{"until_twice", run_until_twice, 2, 1, 0, until_mutants, NULL},
	{"admitting", run_admitting, 2, 1, 0, admitting_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("stop", cases, PIN_ARRAY_COUNT(cases));
}
