/* SPDX-License-Identifier: MIT */
/*
 * Goal: a drain ends when everything admitted, spawned and submitted has run,
 * not earlier, and not never: [END-1], [METER-1], [GATE-1]; and exactly one
 * worker reports the end, however many see it: [END-2]. EX-40, EX-44, EX-46,
 * EX-58, EX-62, W15; of EX-43 completion_vs_join_termination and
 * three_way_spawn_complete_join.
 * Method: the last task spawns another for any worker, or for its own, or
 * starts a read, while two workers go to sleep and the main thread drains; or
 * another thread spawns meanwhile; or the only task completes, or there is
 * none, against the close. A worker that leaves its loop checks that nothing is
 * left to run, model_runtime_end() how many reported the end.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>

static struct pinion_runtime *runtime;
static struct model_task first;
static struct model_task second; /* unused where first has no body */
static struct model_task read_done;
static bool is_second_due;

static void check_nothing_left(void)
{
	MODEL_CHECK(first.run_count == 1);
	MODEL_CHECK(!is_second_due || second.run_count == 1);
}

static void begin(void (*body)(struct model_task *task))
{
	model_task_init(&first, body);
	model_task_init(&second, NULL);
	is_second_due = false;
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
}

static void drain(uint64_t task_count)
{
	struct pinion_runtime_stats counters;

	/* Not earlier: end() of a failed creation ends workers, too. */
	model_on_worker_exit(check_nothing_left);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	check_nothing_left();
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_run == task_count);
	MODEL_CHECK(counters.tasks_spawned + counters.requests_submitted == task_count);
	MODEL_CHECK(counters.tasks_cancelled == 0);
	model_runtime_end(runtime);
}

static void spawn_first(void)
{
	MODEL_CHECK(pinion_task_spawn(runtime, &first.request.task) == 0);
}

/* Both workers may see the end, by the completion or by the close. */
static void run_completes(void)
{
	begin(NULL);
	spawn_first();
	drain(1);
}

static void run_nothing(void)
{
	begin(NULL);
	model_on_worker_exit(NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
}

static void spawn_shared(struct model_task *task)
{
	(void)task;
	is_second_due = true;
	MODEL_CHECK(pinion_task_spawn_shared(runtime, &second.request.task) == 0);
}

static void run_spawns_for_anyone(void)
{
	begin(spawn_shared);
	spawn_first();
	drain(2);
}

static void spawn_own(struct model_task *task)
{
	(void)task;
	is_second_due = true;
	MODEL_CHECK(pinion_task_spawn(runtime, &second.request.task) == 0);
}

static void run_spawns_for_itself(void)
{
	begin(spawn_own);
	spawn_first();
	drain(2);
}

static void submit_read(struct model_task *task)
{
	(void)task;
	is_second_due = true;
	MODEL_CHECK(pinion_request_submit(runtime, &second.request) == 0);
}

static void run_reads(void)
{
	model_thread_start_daemon("device", model_device, NULL);
	begin(submit_read);
	spawn_first();
	drain(2);
}

/* ---- admission against the close ---- */

static void spawn_second(void *arg)
{
	int rc;

	(void)arg;
	rc = pinion_task_spawn(runtime, &second.request.task);
	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	is_second_due = rc == 0;
}

static void run_admits(void)
{
	struct pinion_runtime_stats counters;
	uint32_t spawner;

	begin(NULL);
	spawn_first();
	spawner = model_thread_start("spawner", spawn_second, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(spawner);
	check_nothing_left();
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_run == counters.tasks_spawned);
	MODEL_CHECK(counters.tasks_run == 1 + second.run_count);
	MODEL_CHECK(is_second_due == (second.run_count == 1));
	model_runtime_end(runtime);
}

/* ---- a spawner's doorbell against the end ---- */

static void submit_first_read(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_request_submit(runtime, &read_done.request) == 0);
}

static void run_rings(void)
{
	uint32_t spawner;

	model_thread_start_daemon("device", model_device, NULL);
	model_task_init(&first, submit_first_read);
	model_task_init(&second, NULL);
	model_task_init(&read_done, NULL);
	is_second_due = false;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	model_device_hold();
	model_quiet_begin();
	spawn_first();
	model_await("the first task", model_task_has_run, &first);
	model_quiet_end();
	spawner = model_thread_start("spawner", spawn_second, NULL);
	model_device_release();
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(spawner);
	check_nothing_left();
	MODEL_CHECK(read_done.run_count == 1);
	model_runtime_end(runtime);
}

/*
 * Up to 64 workers share a word of the parked set and order each other by
 * publishing in it; more do not. Nor does each of them count as a searcher. So
 * nothing may rest on either.
 */
static const struct model_defect many_workers[] = {
	{MODEL_RELAXED, "pin_idle_publish", NULL},
	{MODEL_RELAXED, "pin_search_begin", NULL},
	{MODEL_RELAXED, "pin_search_give_up", NULL},
	{.site = NULL},
};

static const struct model_mutant mutants[] = {
	{"the close notifies no thread", {MODEL_SKIP, "end", "pin_wake_all"}},
	{.name = NULL},
};

static const struct model_mutant many_workers_mutants[] = {
	{"no fence before the sum", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{.name = NULL},
};

static const struct model_mutant counter_mutants[] = {
	{"counters are not released", {MODEL_RELAXED, "pin_add_own_release_u64", NULL}},
	{.name = NULL},
};

static const struct model_mutant observer_mutants[] = {
	{"two report the end", {MODEL_TORN, "pin_park_look_for_end", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"completes", run_completes, 2, 1, 0, observer_mutants, NULL},
	{"nothing", run_nothing, 2, 1, 0, observer_mutants, NULL},
	{"spawns_for_anyone", run_spawns_for_anyone, 2, 1, 0, mutants, NULL},
	{"many_workers", run_spawns_for_anyone, 1, 2, 0, many_workers_mutants, many_workers},
	{"spawns_for_itself", run_spawns_for_itself, 1, 1, 0, NULL, NULL},
	{"reads", run_reads, 1, 1, 0, counter_mutants, NULL},
	{"admits", run_admits, 1, 1, 0, NULL, NULL},
	{"rings", run_rings, 2, 1, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("drain", cases, PIN_ARRAY_COUNT(cases));
}
