/* SPDX-License-Identifier: MIT */
/*
 * Goal: of the workers of a worker class as many may search at once as
 * `searchers_percent` says, one at least; only they wait awake, for as many
 * checks as `spin_iters` says, and none does where workers share CPUs; work in
 * a worker's own queue wakes a sleeper when it is longer than `wake_worth_us`,
 * and not when it is shorter. AS-27, C7, C8, C10, EX-12.
 * Method: workers without threads that begin to search one after another, and
 * that wait for what never comes; runtimes with more workers than CPUs; then a
 * task that spawns a few more while the other worker sleeps, with and without a
 * limit that these reach.
 */
#include "runtime/task/entry.h"
#include "runtime/worker/worker.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

#include <unistd.h>

enum {
	WORKERS_MAX = 16,
	LOOKS = 10,
	FULL_LOOKS = (LOOKS + PIN_SEARCH_LOOKS_TO_FULL - 1) / PIN_SEARCH_LOOKS_TO_FULL,
	SPAWNS = 4,
	LIMIT_SECONDS = 60,
};

static uint32_t searchers_of(uint32_t worker_count, uint32_t percent)
{
	static struct pin_worker workers[WORKERS_MAX];
	static struct pin_shared shared;
	struct pin_worker_class *worker_class = &shared.classes[0];
	uint32_t count = 0;

	shared.tuning.searchers_percent = percent;
	pin_store_release_u32(&worker_class->searching, 0);
	pin_store_release_u32(&worker_class->serving_count, worker_count);
	for (uint32_t i = 0; i < worker_count; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = worker_class;
		workers[i].is_searching = false;
		pin_worker_self = &workers[i];
		count += pin_search_begin(&workers[i]);
		/* A searcher may go on with it. */
		expect_true("again", pin_search_begin(&workers[i]) == workers[i].is_searching);
	}
	pin_worker_self = NULL;
	expect_number("counted", count, pin_load_acquire_u32(&worker_class->searching));
	return count;
}

static void check_searchers(void)
{
	expect_number("half of 8", 4, searchers_of(8, 50));
	expect_number("half of 7", 4, searchers_of(7, 50));
	expect_number("all of 16", 16, searchers_of(16, 100));
	expect_number("a quarter of 8", 2, searchers_of(8, 25));
	expect_number("one at least", 1, searchers_of(16, 1));
	expect_number("one of one", 1, searchers_of(1, 1));
}

/* ---- waiting awake ---- */

static struct pinion_runtime *runtime;
static uint32_t look_count;

static bool look_in_vain(const struct pin_worker *worker)
{
	(void)worker;
	look_count++;
	return false;
}

static uint32_t looks_of(bool has_cpu_each, bool is_searching, uint32_t worker_count)
{
	static struct pin_shared shared;
	static struct pin_worker worker;
	struct pin_link *link;

	shared.has_cpu_each = has_cpu_each;
	shared.worker_count = worker_count;
	worker.shared = &shared;
	worker.worker_class = &shared.classes[0]; /* of no lane, so that it looks at no queue */
	worker.is_searching = is_searching;
	worker.is_dry = true;
	pin_spin_init(&worker.spin, LOOKS);
	worker.spin.gap_ns = 0; /* as when work has come at once so far */
	look_count = 0;
	expect_true("nothing came", !pin_search_spin(&worker, look_in_vain, &link));
	expect_number("not counted", 0, (long long)pin_meter_read(&worker.meter.spin_hits));
	return look_count;
}

/*
 * A worker that may only steal checks most places less often; it takes all that
 * it sees.
 */
static void check_thief(void)
{
	static struct pin_shared shared;
	static struct pin_worker workers[2];
	static struct pin_atomic_u64 slots[2][4];
	static struct pinion_task task;
	struct pin_worker *thief = &workers[0];
	struct pin_link *link;

	shared = (struct pin_shared){.has_cpu_each = true, .worker_count = 2, .workers = workers};
	shared.classes[0].order.mask = PIN_LANE_BIT(PINION_LANE_NORMAL);
	pin_injector_init(&shared.injector, &pin_host_linux);
	expect_ready("memory",
		pin_victims_init(&shared.victims, &pin_host_linux, NULL, 0, 2, NULL) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = &shared.classes[0];
		workers[i].index = i;
		pin_deque_init(&workers[i].deque, slots[i], 4, PIN_DEQUE_FIFO);
	}
	thief->is_searching = true;
	thief->is_dry = true;
	pin_spin_init(&thief->spin, LOOKS);
	thief->spin.gap_ns = 0;
	look_count = 0;
	expect_true("nothing to steal", !pin_search_spin(thief, look_in_vain, &link));
	expect_number("a thief", FULL_LOOKS, look_count);
	expect_true("given", pin_deque_push(&workers[1].deque, pin_task_link(&task)));
	expect_true("stolen", pin_search_spin(thief, look_in_vain, &link));
	expect_true("that", link == pin_task_link(&task));
	pin_inbox_push(&thief->inbox, pin_task_link(&task));
	expect_true("in the inbox", pin_search_spin(thief, look_in_vain, &link) && link == NULL);
	expect_number("both counted", 2, (long long)pin_meter_read(&thief->meter.spin_hits));
	pin_victims_fini(&shared.victims);
}

static void expect_cpu_each(uint32_t worker_count, uint32_t spin_iters, bool expected)
{
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_FALLBACK);
	runtimes_tuning.spin_iters = spin_iters;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("a CPU each", expected, runtime->shared.has_cpu_each);
	expect_number("spin_iters", spin_iters, runtime->shared.workers[0].spin.usual);
	pinion_runtime_destroy(runtime);
}

static void check_waiting(void)
{
	expect_number("a searcher", LOOKS, looks_of(true, true, 2));
	expect_number("a worker that may not search", 0, looks_of(true, false, 2));
	expect_number("an only worker", LOOKS, looks_of(true, false, 1));
	expect_number("a searcher on a shared CPU", 0, looks_of(false, true, 2));
	expect_number("an only worker on one", 0, looks_of(false, false, 1));
	check_thief();
	expect_cpu_each((uint32_t)sysconf(_SC_NPROCESSORS_CONF) + 1, 7, false);
}

/* ---- work worth a wake ---- */

static struct pinion_task tasks[SPAWNS];
static struct pin_atomic_u32 done;
static uint64_t wakes;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static int spawn_some(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	sleepers_await(worker->worker_class, 1);
	for (uint32_t i = 0; i < SPAWNS; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	wakes = pin_meter_read(&worker->meter.wakes_sent);
	return 0;
}

static uint64_t wakes_of_few(uint32_t worth_us)
{
	struct pinion_task first = {.run = spawn_some};
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	runtimes_tuning.wake_worth_us = worth_us;
	runtimes_tuning.spawn_wake_us = 0;
	runtimes_tuning.watchdog_us = 0;
	/* Each counts as 50 us, as none has run yet. */
	runtimes_tuning.task_ns = 50000;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&done, 0);
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&done, SPAWNS);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	return wakes;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_searchers();
	check_waiting();
	expect_true("longer than that wakes", wakes_of_few(20) > 0);
	expect_true("so does any", wakes_of_few(0) > 0);
	expect_number("shorter does not", 0, (long long)wakes_of_few(1000000));
	return expect_status();
}
