/* SPDX-License-Identifier: MIT */
/*
 * Goal: pinion_worker_get_stats() has each worker's own counts, exactly: tasks
 * by the way in which they were spawned, by the queue that they came from and
 * by lane, wakes that were sent and spared, turns that ended by their budget;
 * and the sources add up to the tasks. pinion_worker_get_info() says where a
 * worker is. AS-37, EX-31, EX-35, W20.
 * Method: one task does each thing a number of times that no other has; then
 * runtimes whose workers are held, so that the outcome is certain.
 */
#include "runtime/api/internal.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/wake.h"
#include "tests/support/buffer_waits.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum { LOCAL = 5, SHARED = 3, ON = 2, AGAIN = 4, HIGH = 6, LOW = 7, NOPS = 8, BUDGET = 16 };

static struct pinion_runtime *runtime;

static struct pinion_worker_stats stats_of(int worker_index)
{
	struct pinion_worker_stats stats;

	expect_number(
		"stats", 0, pinion_worker_get_stats(runtime, worker_index, &stats, sizeof(stats)));
	return stats;
}

static uint64_t sources_of(const struct pinion_worker_stats *stats)
{
	return stats->lifo_polls + stats->deque_polls + stats->ready_polls + stats->inbox_polls +
		stats->injector_polls + stats->steal_polls;
}

static void expect_balance(const char *what, const struct pinion_worker_stats *stats)
{
	expect_number(what, (long long)stats->normal_polls, (long long)sources_of(stats));
	expect_number(what, (long long)stats->tasks_spawned,
		(long long)(stats->spawned_local + stats->spawned_shared + stats->spawned_on +
			stats->spawned_timers));
	expect_number(what, (long long)(stats->tasks_run + stats->tasks_cancelled),
		(long long)(stats->high_polls + stats->normal_polls + stats->low_polls +
			stats->timers_cancelled));
}

static int nothing(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* ---- each way ---- */

static struct pinion_task local[LOCAL];
static struct pinion_task shared_tasks[SHARED];
static struct pinion_task on[ON];
static struct pinion_task high[HIGH];
static struct pinion_task low[LOW];
static struct pinion_task again;
static uint32_t agains;
static struct pinion_timer timers[3];
static struct pinion_request nops[NOPS];

static void set_all(struct pinion_task *tasks, uint32_t count, uint32_t flags)
{
	for (uint32_t i = 0; i < count; i++) {
		tasks[i] = (struct pinion_task){.run = nothing, .flags = flags};
	}
}

static int come_again(struct pinion_task *task)
{
	return ++agains < AGAIN ? pinion_task_respawn(runtime, task) : -EDOM;
}

static void was_cancelled(struct pinion_task *task)
{
	(void)task;
}

static void start_timers(void)
{
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(timers); i++) {
		timers[i] =
			(struct pinion_timer){.task.run = nothing, .task.cancel = was_cancelled};
		expect_number("timer", 0,
			pinion_timer_start(runtime, &timers[i], i == 2 ? UINT64_MAX : 1));
	}
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &timers[2]));
}

static int do_each(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < LOCAL; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &local[i]));
	}
	for (uint32_t i = 0; i < SHARED; i++) {
		expect_number("shared", 0, pinion_task_spawn_shared(runtime, &shared_tasks[i]));
	}
	for (uint32_t i = 0; i < ON; i++) {
		expect_number("on", 0, pinion_task_spawn_on(runtime, 0, &on[i]));
	}
	for (uint32_t i = 0; i < HIGH; i++) {
		expect_number("high", 0, pinion_task_spawn(runtime, &high[i]));
	}
	for (uint32_t i = 0; i < LOW; i++) {
		expect_number("low", 0, pinion_task_spawn(runtime, &low[i]));
	}
	for (uint32_t i = 0; i < NOPS; i++) {
		nops[i] = (struct pinion_request){.task.run = nothing, .op = PINION_OP_NOP};
		expect_number("nop", 0, pinion_request_submit(runtime, &nops[i]));
	}
	start_timers();
	again = (struct pinion_task){.run = come_again};
	return pinion_task_respawn(runtime, &again);
}

static void check_each_way(uint32_t io_level)
{
	struct pinion_task task = {.run = do_each};
	struct pinion_worker_stats stats;

	set_all(local, LOCAL, 0);
	set_all(shared_tasks, SHARED, 0);
	set_all(on, ON, 0);
	set_all(high, HIGH, PINION_TASK_HIGH);
	set_all(low, LOW, PINION_TASK_LOW);
	agains = 0;
	runtime = runtimes_start(1, io_level);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("join", -EDOM, pinion_runtime_join(runtime));
	stats = stats_of(0);
	expect_balance("each way", &stats);
	expect_number("run", 1 + LOCAL + SHARED + ON + HIGH + LOW + NOPS + 2 + AGAIN,
		(long long)stats.tasks_run);
	expect_number("failed", 1, (long long)stats.tasks_failed);
	expect_number("local", LOCAL + AGAIN + HIGH + LOW, (long long)stats.spawned_local);
	expect_number("shared", SHARED, (long long)stats.spawned_shared);
	expect_number("on", ON, (long long)stats.spawned_on);
	expect_number("timers", 3, (long long)stats.spawned_timers);
	expect_number("expired", 2, (long long)stats.timers_processed);
	expect_number("cancelled timers", 1, (long long)stats.timers_cancelled);
	expect_number("high", HIGH, (long long)stats.high_polls);
	expect_number("low", LOW, (long long)stats.low_polls);
	expect_number("laned", HIGH + LOW, (long long)stats.tasks_laned);
	expect_number("slot", 1, (long long)stats.lifo_polls);
	expect_number("ready", NOPS, (long long)stats.ready_polls);
	expect_number("inbox", ON, (long long)stats.inbox_polls);
	expect_number("injector", 2, (long long)stats.injector_polls);
	expect_number("in two batches", 1 + SHARED, (long long)stats.injector_tasks);
	expect_number(
		"own queue", LOCAL - 1 + SHARED - 1 + 2 + AGAIN, (long long)stats.deque_polls);
	expect_number("requests", NOPS, (long long)stats.requests_completed);
	pinion_runtime_destroy(runtime);
}

/* ---- turns ---- */

static int repeat(struct pinion_task *task)
{
	return --agains > 0 ? pinion_task_respawn(runtime, task) : 0;
}

static void check_budget(uint32_t runs, uint32_t expected)
{
	struct pinion_task task = {.run = repeat};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.budget_polls = BUDGET;
	runtimes_tuning.budget_us = 1000000;
	agains = runs;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("by polls", expected, (long long)stats_of(0).budget_ends);
	pinion_runtime_destroy(runtime);
}

static int take_time(struct pinion_task *task)
{
	uint64_t end_ns = pinion_clock_now_ns() + 20000;

	(void)task;
	while (pinion_clock_now_ns() < end_ns) {
	}
	return 0;
}

static void check_budget_by_time(void)
{
	struct pinion_task task = {.run = take_time};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.budget_us = 1;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("by time", 1, (long long)stats_of(0).budget_ends);
	pinion_runtime_destroy(runtime);
}

/* ---- a stop ---- */

static void check_stop(void)
{
	struct pinion_task tasks[4];
	struct tasks_hold hold = {0};
	struct pinion_worker_stats stats;

	set_all(tasks, PIN_ARRAY_COUNT(tasks), 0);
	runtime = runtimes_start(1, PINION_IO_FALLBACK);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(tasks); i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	expect_number("begins", -ETIME, pinion_runtime_stop_until(runtime, 0));
	tasks_signal(&hold.may_end);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	stats = stats_of(0);
	expect_balance("after a stop", &stats);
	expect_number("cancelled", 4, (long long)stats.tasks_cancelled);
	expect_number("no timers", 0, (long long)stats.timers_cancelled);
	expect_number("run", 1, (long long)stats.tasks_run);
	expect_number("injector", 1, (long long)stats.injector_polls);
	expect_number("along with it", 3, (long long)stats.deque_polls);
	pinion_runtime_destroy(runtime);
}

/* ---- wakes ---- */

static void await_place(int worker_index, uint64_t place)
{
	struct pinion_worker_info info;

	do {
		expect_number("info", 0,
			pinion_worker_get_info(runtime, worker_index, &info, sizeof(info)));
		sched_yield();
	} while (info.place != place);
}

static struct pin_atomic_u32 has_run;

static int note_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&has_run);
	return 0;
}

static struct pinion_task announced;

/* A sleeper takes it, as this task does not end before. */
static void spawn_and_wait(struct tasks_hold *hold)
{
	(void)hold;
	await_place(1, PINION_WORKER_PARKED_FUTEX);
	announced = (struct pinion_task){.run = note_run};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &announced));
	tasks_await(&has_run, 1);
}

static void check_announced(void)
{
	struct tasks_hold hold = {.prepare = spawn_and_wait};
	struct pinion_worker_stats stats;
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_FALLBACK);
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	if (!runtime->shared.announces) {
		printf("no fence of all threads here, so spawns announce nothing\n");
		pinion_runtime_destroy(runtime);
		return;
	}
	tasks_hold_begin(&hold, runtime, 0);
	stats = stats_of(0);
	expect_number("spawned", 1, (long long)stats.spawned_local);
	expect_number("announced", 1, (long long)stats.spawns_announced);
	expect_number("woken", 1, (long long)stats.wakes_sent);
	tasks_hold_end(&hold);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	stats = stats_of(1);
	expect_balance("the thief", &stats);
	expect_number("stolen", 1, (long long)stats.tasks_stolen);
	expect_number("run at once", 1, (long long)stats.steal_polls);
	expect_number("and no other", 1, (long long)stats.tasks_run);
	stats = stats_of(PINION_ALL_WORKERS);
	expect_number("of both", 2, (long long)stats.tasks_run);
	pinion_runtime_destroy(runtime);
}

static struct pinion_task saved;

/* One counts as a searcher while the other adds work beside a sleeper. */
static void search(struct tasks_hold *hold)
{
	(void)hold;
	expect_true("may search", pin_search_begin(pin_worker_current()));
}

static void spawn_beside_searcher(struct tasks_hold *hold)
{
	(void)hold;
	await_place(2, PINION_WORKER_PARKED_FUTEX);
	saved = (struct pinion_task){.run = nothing};
	expect_number("spawn", 0, pinion_task_spawn_shared(runtime, &saved));
}

static int give_up_search(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void check_saved(void)
{
	struct tasks_hold searcher = {.prepare = search};
	struct tasks_hold adder = {.prepare = spawn_beside_searcher};
	struct pinion_task last = {.run = give_up_search};
	struct pinion_config config;

	runtimes_config(&config, 3, PINION_IO_FALLBACK);
	runtimes_tuning.watchdog_us = 0;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	tasks_hold_begin(&searcher, runtime, 1);
	tasks_hold_begin(&adder, runtime, 0);
	expect_number("spared", 1, (long long)stats_of(0).wakes_saved);
	expect_number("none sent", 0, (long long)stats_of(0).wakes_sent);
	expect_number("for the searcher", 0, pinion_task_spawn_on(runtime, 1, &last));
	tasks_hold_end(&adder);
	tasks_hold_end(&searcher);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

/* ---- buffers ---- */

/* Of two buffers, the third acquirer has to wait. */
static int use_up(struct pinion_task *task)
{
	struct pinion_buffer buffers[2];

	(void)task;
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(buffers); i++) {
		expect_number("acquire", 0, pinion_buffer_acquire(runtime, 1, &buffers[i]));
	}
	expect_number("none counted", 0, (long long)stats_of(0).buffer_waits);
	buffer_waits_begin(runtime);
	expect_number("waits", 1, (long long)stats_of(0).buffer_waits);
	pinion_buffer_release(runtime, &buffers[0]);
	pinion_buffer_release(runtime, &buffers[1]);
	return 0;
}

static void check_buffers(void)
{
	struct pinion_task task = {.run = use_up};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.small_buffer_count = 2;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("both ran", 2, (long long)stats_of(0).tasks_run);
	expect_number("one waited", 1, (long long)stats_of(0).buffer_waits);
	pinion_runtime_destroy(runtime);
}

/* ---- arithmetic ---- */

static void check_arithmetic(void)
{
	struct pinion_worker_stats one = {.tasks_run = 10, .steals = 4, .searches = 3};
	struct pinion_worker_stats other = {.tasks_run = 7, .steals = 5, .tasks_failed = 6};
	struct pinion_worker_ratios ratios;

	pinion_worker_stats_add(&one, &other, sizeof(one));
	expect_number("sum", 17, (long long)one.tasks_run);
	expect_number("sum", 9, (long long)one.steals);
	pinion_worker_stats_ratios(&one, sizeof(one), &ratios, sizeof(ratios));
	expect_true("never above 1", ratios.steal_rate == 1);
	pinion_worker_stats_subtract(&one, &other, sizeof(one));
	expect_number("difference", 10, (long long)one.tasks_run);
	expect_number("difference", 4, (long long)one.steals);
	expect_number("difference", 0, (long long)one.tasks_failed);
	one = (struct pinion_worker_stats){.tasks_run = 100,
		.tasks_failed = 25,
		.lifo_polls = 10,
		.deque_polls = 40,
		.ready_polls = 20,
		.inbox_polls = 5,
		.injector_polls = 15,
		.steal_polls = 10,
		.normal_polls = 100,
		.high_polls = 60,
		.low_polls = 40,
		.steals = 3,
		.tasks_stolen = 12,
		.searches = 4,
		.spin_hits = 2,
		.spawned_local = 64,
		.spawns_announced = 2,
		.wakes_sent = 1,
		.wakes_saved = 3,
		.parks_futex = 3,
		.parks_ring = 1,
		.requests_completed = 90,
		.ring_enters = 9,
		.busy_ns = 5000};
	pinion_worker_stats_ratios(&one, sizeof(one), &ratios, sizeof(ratios));
	expect_true("failed", ratios.failed_share == 0.25);
	expect_true("slot", ratios.lifo_share == 0.1);
	expect_true("own queue", ratios.deque_share == 0.4);
	expect_true("ready", ratios.ready_share == 0.2);
	expect_true("inbox", ratios.inbox_share == 0.05);
	expect_true("injector", ratios.injector_share == 0.15);
	expect_true("stolen", ratios.steal_share == 0.1);
	expect_true("high", ratios.high_share == 0.3);
	expect_true("low", ratios.low_share == 0.2);
	expect_true("steal rate", ratios.steal_rate == 0.5);
	expect_true("per steal", ratios.stolen_per_steal == 4);
	expect_true("announced", ratios.announced_share == 0.03125);
	expect_true("saved", ratios.wakes_saved_share == 0.75);
	expect_true("per park", ratios.tasks_per_park == 25);
	expect_true("per enter", ratios.requests_per_enter == 10);
	expect_true("mean", ratios.task_ns_mean == 50);
	one = (struct pinion_worker_stats){0};
	pinion_worker_stats_ratios(&one, sizeof(one), &ratios, sizeof(ratios));
	for (size_t i = 0; i < sizeof(ratios) / sizeof(double); i++) {
		expect_true("of nothing", ((const double *)(const void *)&ratios)[i] == 0);
	}
}

/* ---- each field ---- */

/* Files that no call has opened; and a part of what others are derived from. */
static bool is_hidden(size_t at)
{
	return at == offsetof(struct pin_meter, files_by_way[PINION_WAY_UNKNOWN]) ||
		at == offsetof(struct pin_meter, queued_cancelled);
}

/* As stats_sum_each_counter has it of the runtime's. */
static void check_fields(void)
{
	struct pinion_worker_stats before;
	struct pinion_worker_stats after;

	runtime = runtimes_start(2, PINION_IO_FALLBACK);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (size_t at = 0; at < offsetof(struct pin_meter, look_interval); at += 8) {
		char *meter = (char *)&runtime->shared.workers[1].meter;
		uint32_t grown = 0;

		before = stats_of(1);
		pin_meter_add((struct pin_atomic_u64 *)(void *)(meter + at), 1000);
		after = stats_of(1);
		pinion_worker_stats_subtract(&after, &before, sizeof(after));
		for (uint32_t i = 0; i < PIN_COUNTS; i++) {
			grown += ((const uint64_t *)(const void *)&after)[i] == 1000;
		}
		expect_true("each is shown", grown >= 1 || is_hidden(at));
	}
	before = stats_of(0);
	expect_number("of the other", 0, (long long)before.read_bytes);
	expect_text("first", "tasks_run", pin_counts_name(0));
	expect_text("last", "sent_bytes", pin_counts_name(PIN_COUNTS - 1));
	expect_number(
		"no worker", -ENOENT, pinion_worker_get_stats(runtime, 2, &before, sizeof(before)));
	expect_number("no worker", -ENOENT,
		pinion_worker_get_stats(runtime, -2, &before, sizeof(before)));
	pinion_runtime_destroy(runtime);
}

/* ---- where a worker is ---- */

static void check_info(void)
{
	struct tasks_hold hold = {0};
	struct pinion_worker_info info;

	runtime = runtimes_start(2, PINION_IO_FALLBACK);
	await_place(0, PINION_WORKER_PARKED_FUTEX);
	await_place(1, PINION_WORKER_PARKED_FUTEX);
	tasks_hold_begin(&hold, runtime, 1);
	await_place(0, PINION_WORKER_PARKED_FUTEX);
	expect_number("info", 0, pinion_worker_get_info(runtime, 1, &info, sizeof(info)));
	expect_number("runs", PINION_WORKER_RUNNING, (long long)info.place);
	expect_true("for some time", info.running_ns > 0);
	expect_true("until it ends", info.park_until_ns == UINT64_MAX);
	expect_number("all", -ENOENT,
		pinion_worker_get_info(runtime, PINION_ALL_WORKERS, &info, sizeof(info)));
	expect_number("info", 0, pinion_worker_get_info(runtime, 0, &info, sizeof(info)));
	expect_number("sleeps", 0, (long long)info.running_ns);
	tasks_hold_end(&hold);
	pinion_runtime_destroy(runtime);
}

/* Requests of both ways are in flight until they are completed. */
static void check_in_flight(void)
{
	static struct pin_meter meter;

	pin_meter_add(&meter.requests_submitted, 5);
	pin_meter_add(&meter.requests_posted, 3);
	pin_meter_add(&meter.requests_completed, 6);
	expect_number("in flight", 2, (long long)pin_counts_in_flight(&meter));
	pin_meter_add(&meter.requests_completed, 3);
	expect_number("seen before their begin", 0, (long long)pin_counts_in_flight(&meter));
}

int main(void)
{
	check_arithmetic();
	check_in_flight();
	check_fields();
	check_each_way(PINION_IO_FALLBACK);
	check_each_way(PINION_IO_AUTO);
	check_budget(10 * BUDGET, 10);
	check_budget(10 * BUDGET - 1, 9);
	check_budget_by_time();
	check_stop();
	check_announced();
	check_saved();
	check_buffers();
	check_info();
	return expect_status();
}
