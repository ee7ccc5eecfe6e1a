/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that is spawned alone starts on another worker that sleeps,
 * although its spawner never ends, without the watchdog; each time that all
 * others sleep again, also within one task, and in a batch. In a pause a spawn
 * wakes none, unless the watchdog has found its worker's work; the first task
 * that spawns after another keeps the slot open until the pause ends. While no
 * worker sleeps a spawn wakes none, and its slot is closed for nothing. A
 * worker that gets up beside a sleeper looks for sleepers again. A chain
 * of tasks, each of which spawns the next and ends, wakes ever more rarely. A
 * wake is in vain if the worker of the one before has run no task
 * since.
 * AS-23, AS-33, C7.
 * Method: the spawner waits until the other worker sleeps, spawns, and goes on
 * only when the child has run; there is no watchdog, so a child that wakes no
 * worker hangs and trips the test's own. Wakes are counted, not timed: pauses
 * between wakes are of a microsecond, or of a second, far longer than the chain
 * takes: some wakes are allowed, one for a hundred tasks, as the chain may be
 * stolen and begin anew elsewhere, more often on a machine that is loaded.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/spawn.h"
#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

enum {
	ROUNDS = 50,
	CHAIN = 10000,
	CHILDREN = 8,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task children[CHILDREN];
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 has_ended;

static int run_child(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static uint64_t wakes_of(const struct pin_worker *worker)
{
	return pin_meter_read(&worker->meter.wakes_sent);
}

static bool is_closed(const struct pin_worker *worker)
{
	return (pin_lifo_closed_for(&worker->lifo) & PIN_SLOW_REASON_ANNOUNCE) != 0;
}

static void start(uint32_t worker_count, uint32_t pause_us, int (*run)(struct pinion_task *task))
{
	static struct pinion_task first;
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_FALLBACK);
	runtimes_tuning.watchdog_us = 0;
	runtimes_tuning.wake_worth_us = 1000000; /* a preempted task is no long one */
	runtimes_tuning.spawn_wake_us = pause_us;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&run_count, 0);
	pin_store_release_u32(&has_ended, 0);
	first = (struct pinion_task){.run = run};
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	tasks_await(&has_ended, 1);
}

static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("found by the watchdog", 0,
		(long long)runtimes_counters(runtime).watchdog_found_work);
	pinion_runtime_destroy(runtime);
}

/* The ways of a spawn of one task, each of which wakes a sleeper for it. */
enum way { ALONE, IN_BATCH, IN_BATCH_OF_LANES, WAYS };

static enum way way;

static int spawn_one(struct pinion_task *child)
{
	struct pinion_task *const children_of_batch[] = {child};

	if (way == IN_BATCH) {
		return pinion_task_spawn_batch(runtime, children_of_batch, 1);
	}
	if (way == IN_BATCH_OF_LANES) {
		/* As for a batch some of which is not normal. */
		expect_true("claimed", pin_task_claim(child));
		return pin_worker_spawn_lanes(pin_worker_current(), children_of_batch, 1);
	}
	return pinion_task_spawn(runtime, child);
}

static int spawn_each(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint64_t before;

		sleepers_await(worker->worker_class, 1);
		worker->wake_batch.pause_end_ns = 0; /* as after that time */
		before = wakes_of(worker);
		children[0] = (struct pinion_task){.run = run_child};
		expect_number("spawn", 0, spawn_one(&children[0]));
		expect_number("a wake", (long long)before + 1, (long long)wakes_of(worker));
		tasks_await(&run_count, i + 1);
	}
	tasks_signal(&has_ended);
	return 0;
}

/* In a pause it wakes none, and the task waits for this one's end. */
static int spawn_in_pause(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	sleepers_await(worker->worker_class, 1);
	children[0] = (struct pinion_task){.run = run_child};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &children[0]));
	expect_number("a wake", 1, (long long)wakes_of(worker));
	tasks_await(&run_count, 1);
	sleepers_await(worker->worker_class, 1);
	children[1] = (struct pinion_task){.run = run_child};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &children[1]));
	expect_number("none in the pause", 1, (long long)wakes_of(worker));
	expect_true("its next spawn looks again", is_closed(worker));
	tasks_signal(&has_ended);
	return 0;
}

/* Spawns one more, beside a sleeper. */
static void spawn_and_expect(const char *what, uint64_t wakes, bool closed, uint64_t paused_runs)
{
	static uint32_t count;
	const struct pin_worker *worker = pin_worker_current();
	struct pinion_task *child = &children[count % CHILDREN];

	count++;
	*child = (struct pinion_task){.run = run_child};
	expect_number("spawn", 0, pinion_task_spawn(runtime, child));
	expect_number(what, (long long)wakes, (long long)wakes_of(worker));
	expect_number(what, closed, is_closed(worker));
	expect_number(what, (long long)paused_runs, (long long)worker->paused_runs);
}

/*
 * A wake, with that many in a row in vain. `has_last`: there was one before it,
 * whose worker has run `ran` tasks since. The spawner stands for that worker,
 * as nothing else is run there meanwhile.
 */
static void wake_after(bool has_last, uint64_t ran, uint32_t vain_count)
{
	static uint32_t count;
	struct pin_worker *worker = pin_worker_current();
	struct pinion_task *child = &children[count];

	sleepers_await(worker->worker_class, 1);
	worker->wake_batch.pause_end_ns = 0; /* as after that time */
	worker->announced = has_last ? worker : NULL;
	worker->announced_runs = pin_meter_read(&worker->meter.tasks_run) - ran;
	*child = (struct pinion_task){.run = run_child};
	expect_number("spawn", 0, pinion_task_spawn(runtime, child));
	expect_number("wakes in vain", vain_count, worker->wake_batch.vain_count);
	count++;
	tasks_await(&run_count, count);
}

static int spawn_in_vain(struct pinion_task *task)
{
	(void)task;
	wake_after(false, 0, 0);
	wake_after(true, 0, 1);
	wake_after(true, 0, 2);
	wake_after(true, 1, 0);
	wake_after(true, 0, 1);
	wake_after(false, 0, 0);
	tasks_signal(&has_ended);
	return 0;
}

/* What each spawn makes of the slot, of the pause and of what it remembers. */
static int spawn_through_pauses(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	struct pin_wake_batch *wake_batch = &worker->wake_batch;
	uint64_t runs = pin_meter_read(&worker->meter.tasks_run);

	(void)task;
	sleepers_await(worker->worker_class, 1);
	spawn_and_expect("a wake", 1, true, 0);
	tasks_await(&run_count, 1);
	sleepers_await(worker->worker_class, 1);
	spawn_and_expect("none in the pause", 1, true, runs + 1);
	spawn_and_expect("nor by the same task again", 1, true, runs + 1);
	worker->paused_runs = runs + 7; /* as of another task */
	spawn_and_expect("another task: the slot opens", 1, false, 0);
	expect_number("until the pause ends", (long long)wake_batch->pause_end_ns,
		(long long)worker->announce_ns);
	(void)pin_spawn_set_announce(worker); /* as a worker that falls asleep does */
	spawn_and_expect("nothing is remembered", 1, true, runs + 1);
	wake_batch->pause_end_ns = 0; /* as after that time */
	spawn_and_expect("a wake, and nothing is remembered", 2, true, 0);
	tasks_await(&run_count, 6);
	sleepers_await(worker->worker_class, 1);
	wake_batch->vain_count = 3;
	pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_ANNOUNCE | PIN_SLOW_REASON_FOUND);
	spawn_and_expect("found by the watchdog: a wake in the pause", 3, true, 0);
	expect_number("once", 0, pin_lifo_closed_for(&worker->lifo) & PIN_SLOW_REASON_FOUND);
	tasks_await(&run_count, 7);
	tasks_signal(&has_ended);
	return 0;
}

/* ---- while no worker sleeps ---- */

static int spawn_beside_busy(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	uint64_t before = wakes_of(worker);
	static struct tasks_hold hold;

	(void)task;
	tasks_hold_begin(&hold, runtime, 1);
	before = wakes_of(worker);
	for (uint32_t i = 0; i < 2; i++) {
		children[i] = (struct pinion_task){.run = run_child};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &children[i]));
		expect_true("the short way is open", !is_closed(worker));
	}
	expect_number("no wake", (long long)before, (long long)wakes_of(worker));
	tasks_hold_end(&hold);
	/* The worker that falls asleep next takes both. */
	tasks_await(&run_count, 2);
	tasks_signal(&has_ended);
	return 0;
}

/* ---- beside a worker that slept already ---- */

static struct tasks_hold held;

/* Its children open its short way; then it sleeps before the other. */
static int open_short_way(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	tasks_hold_begin(&held, runtime, 1);
	for (uint32_t i = 0; i < 2; i++) {
		children[i] = (struct pinion_task){.run = run_child};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &children[i]));
	}
	expect_true("the short way is open", !is_closed(worker));
	tasks_signal(&has_ended);
	return 0;
}

static int spawn_once(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();
	uint64_t before = wakes_of(worker);

	(void)task;
	expect_true("it looks for sleepers since it got up", is_closed(worker));
	children[0] = (struct pinion_task){.run = run_child};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &children[0]));
	expect_number("a wake", (long long)before + 1, (long long)wakes_of(worker));
	tasks_await(&run_count, 3);
	tasks_signal(&has_ended);
	return 0;
}

static void check_second_sleeper(void)
{
	static struct pinion_task again = {.run = spawn_once};
	const struct pin_worker_class *worker_class;

	start(2, 1, open_short_way);
	worker_class = runtime->shared.workers[0].worker_class;
	while (idle_count(&worker_class->parked[PIN_PARKED_FUTEX]) < 1) {
		sched_yield();
	}
	tasks_hold_end(&held);
	sleepers_await(worker_class, 2);
	expect_number("again", 0, pinion_task_spawn_on(runtime, 0, &again));
	tasks_await(&has_ended, 2);
	end();
}

/* ---- a chain ---- */

static uint32_t chain_left;

static int run_chain(struct pinion_task *task)
{
	if (chain_left-- > 1) {
		return pinion_task_spawn(runtime, task);
	}
	tasks_signal(&has_ended);
	return 0;
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	if (!pin_host_linux.fence_all()) {
		printf("skipped: no membarrier(2)\n");
		return 77;
	}
	for (way = ALONE; way < WAYS; way++) {
		start(2, 1, spawn_each);
		end();
	}
	start(2, 1000000, spawn_in_pause);
	end();
	start(2, 1, spawn_in_vain);
	end();
	start(2, 1000000, spawn_through_pauses);
	end();
	start(2, 1, spawn_beside_busy);
	end();
	check_second_sleeper();
	chain_left = CHAIN;
	start(2, 1000000, run_chain);
	expect_true("few wakes", runtimes_counters(runtime).wakes_sent <= CHAIN / 100);
	end();
	return expect_status();
}
