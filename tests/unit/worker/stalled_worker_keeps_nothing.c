/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a task leaves in its worker's own queues runs elsewhere when that
 * task then blocks, though it was not worth a wake: few tasks in the deque, of
 * either order, a lone one in the LIFO slot, or both; and again each time,
 * after all workers have slept and while they have not. Timers that are due
 * meanwhile run as well: started by that task, by an earlier one, or from
 * outside; and cancels of timers meanwhile, or before by the task itself, take
 * effect, though the first of them be stalled as well. Each due one is counted
 * once, the cancelled ones are not. AS-21, AS-31, AS-37, EX-31, C3, C7. Hazard
 * that others met: a task in the slot waits for a long one.
 * Method: a chain of empty tasks teaches a worker that tasks are short. The
 * last of them waits until all others sleep, spawns the tasks of the case and
 * blocks until they have run. Nothing else would wake a sleeper, so without
 * the watchdog it hangs and trips the watchdog.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"

enum {
	WORKERS = 3,
	CHAIN = 2000,
	ROUNDS = 5,
	KEPT_MAX = 8,
	LIMIT_SECONDS = 60,
	TIMERS = 2 * WORKERS,
	SOON_NS = 1000 * 1000,
	LATER_NS = 30 * 1000 * 1000,
};

struct way {
	const char *what;
	uint32_t queue_order;
	uint32_t lifo_polls;
	uint32_t kept_count;
	bool is_batch;
};

static const struct way ways[] = {
	{"three in the deque and one in the slot", PINION_QUEUE_FIFO, 3, 4, false},
	{"one in the slot", PINION_QUEUE_FIFO, 3, 1, false},
	{"one in the deque", PINION_QUEUE_FIFO, 0, 1, false},
	{"a batch", PINION_QUEUE_FIFO, 3, 3, true},
	{"three in a deque taken from at the newest end", PINION_QUEUE_LIFO, 3, 3, false},
};

static struct pinion_runtime *runtime;
static const struct way *way;
static struct pinion_task chain;
static struct pinion_task kept[KEPT_MAX];
static uint32_t chain_left;
static struct pin_atomic_u32 kept_run;
static struct pin_atomic_u32 has_started;
static struct pin_atomic_u32 has_ended;

static int run_kept(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&kept_run);
	return 0;
}

static void await_sleepers(void)
{
	int own = pinion_worker_index(runtime);

	for (int i = 0; i < WORKERS; i++) {
		while (i != own && !pin_parker_is_parked(&runtime->shared.workers[i].parker)) {
			pin_host_linux.yield();
		}
	}
}

static void keep(void)
{
	struct pinion_task *pointers[KEPT_MAX];

	for (uint32_t i = 0; i < way->kept_count; i++) {
		kept[i] = (struct pinion_task){.run = run_kept};
		pointers[i] = &kept[i];
		if (!way->is_batch) {
			expect_number("spawn", 0, pinion_task_spawn(runtime, &kept[i]));
		}
	}
	if (way->is_batch) {
		expect_number(
			"batch", 0, pinion_task_spawn_batch(runtime, pointers, way->kept_count));
	}
}

static int run_chain(struct pinion_task *task)
{
	if (chain_left > 0) {
		chain_left--;
		return pinion_task_spawn(runtime, task);
	}
	await_sleepers();
	keep();
	tasks_await(&kept_run, way->kept_count);
	tasks_signal(&has_ended);
	return 0;
}

static void run_round(void)
{
	pin_store_release_u32(&kept_run, 0);
	pin_store_release_u32(&has_ended, 0);
	chain_left = CHAIN;
	chain = (struct pinion_task){.run = run_chain};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &chain));
	tasks_await(&has_ended, 1);
}

/* Until the watchdog sleeps as well, so that it has to be woken. */
static void await_silence(void)
{
	while (pin_load_acquire_u32(&runtime->shared.watchdog) == 0) {
		pin_host_linux.yield();
	}
}

static void check_way(void)
{
	struct pinion_config config;

	printf("%s\n", way->what);
	runtimes_config(&config, WORKERS, PINION_IO_FALLBACK);
	runtimes_tuning.queue_order = way->queue_order;
	runtimes_tuning.lifo_polls = way->lifo_polls;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		run_round();
		if (i % 2 == 0) {
			await_silence();
		}
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("caught", 0, (long long)runtimes_counters(runtime).park_timeout_found_work);
	pinion_runtime_destroy(runtime);
}

/* ---- timers ---- */

static struct pinion_timer timers[TIMERS];
static struct pinion_task starter;
static uint32_t starter_index;

static void start_timer(uint32_t number, uint64_t after_ns)
{
	timers[number] = (struct pinion_timer){.task.run = run_kept};
	expect_number("timer", 0,
		pinion_timer_start(runtime, &timers[number], pinion_clock_now_ns() + after_ns));
}

static int start_and_end(struct pinion_task *task)
{
	(void)task;
	starter_index = (uint32_t)pinion_worker_index(runtime);
	start_timer(0, LATER_NS);
	tasks_signal(&has_ended);
	return 0;
}

static int start_and_block(struct pinion_task *task)
{
	(void)task;
	await_sleepers();
	start_timer(0, SOON_NS);
	tasks_await(&kept_run, 1);
	tasks_signal(&has_ended);
	return 0;
}

static int block(struct pinion_task *task)
{
	(void)task;
	tasks_await(&kept_run, 1);
	tasks_signal(&has_ended);
	return 0;
}

static void run_starter(int (*run)(struct pinion_task *task), uint32_t index)
{
	starter = (struct pinion_task){.run = run};
	pin_store_release_u32(&has_ended, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, index, &starter));
	tasks_await(&has_ended, 1);
}

static void check_own_timers(void)
{
	pin_store_release_u32(&kept_run, 0);
	run_starter(start_and_block, 1);
	await_silence();
	pin_store_release_u32(&kept_run, 0);
	run_starter(start_and_end, 1);
	await_silence();
	run_starter(block, starter_index);
}

static void check_outside_timers(void)
{
	struct tasks_hold hold = {0};

	pin_store_release_u32(&kept_run, 0);
	tasks_hold_begin(&hold, runtime, 0);
	for (int i = 1; i < WORKERS; i++) {
		while (!pin_parker_is_parked(&runtime->shared.workers[i].parker)) {
			pin_host_linux.yield();
		}
	}
	for (uint32_t i = 0; i < TIMERS; i++) {
		start_timer(i, SOON_NS);
	}
	tasks_await(&kept_run, TIMERS);
	tasks_hold_end(&hold);
}

/* ---- cancelled timers ---- */

static void cancel_kept(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&kept_run);
}

static int start_and_await_cancel(struct pinion_task *task)
{
	(void)task;
	timers[0] = (struct pinion_timer){.task = {.run = run_kept, .cancel = cancel_kept}};
	expect_number("timer", 0, pinion_timer_start(runtime, &timers[0], UINT64_MAX));
	tasks_signal(&has_started);
	tasks_await(&kept_run, 1);
	tasks_signal(&has_ended);
	return 0;
}

/*
 * Cancels its own timer, and blocks until another worker has called its cancel.
 */
static int cancel_own_and_block(struct pinion_task *task)
{
	(void)task;
	await_sleepers();
	timers[0] = (struct pinion_timer){.task = {.run = run_kept, .cancel = cancel_kept}};
	expect_number("timer", 0, pinion_timer_start(runtime, &timers[0], UINT64_MAX));
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &timers[0]));
	tasks_await(&kept_run, 1);
	tasks_signal(&has_ended);
	return 0;
}

static void cancel_and_block(struct pinion_task *task)
{
	(void)task;
	tasks_await(&kept_run, TIMERS - 1);
	tasks_signal(&has_ended);
}

/* All are cancelled; in the first one's cancel its worker is stalled. */
static int cancel_all(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < TIMERS; i++) {
		timers[i] = (struct pinion_timer){
			.task = {.run = run_kept,
				.cancel = i == 0 ? cancel_and_block : cancel_kept}};
		expect_number("timer", 0, pinion_timer_start(runtime, &timers[i], UINT64_MAX));
	}
	for (uint32_t i = 0; i < TIMERS; i++) {
		expect_number("cancel", 0, pinion_timer_cancel(runtime, &timers[i]));
	}
	return 0;
}

static void check_cancelled_by_itself(void)
{
	if (!runtime->shared.has_fence_all) {
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		pin_store_release_u32(&kept_run, 0);
		run_starter(cancel_own_and_block, 1);
		if (i % 2 == 0) {
			await_silence();
		}
		pin_store_release_u32(&kept_run, 0);
		run_starter(cancel_all, 1);
	}
}

/* Others are to call its cancel, whether they sleep or not. */
static void check_cancelled(void)
{
	if (!runtime->shared.has_fence_all) {
		printf("skipped: no membarrier(2)\n");
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		pin_store_release_u32(&kept_run, 0);
		pin_store_release_u32(&has_ended, 0);
		pin_store_release_u32(&has_started, 0);
		starter = (struct pinion_task){.run = start_and_await_cancel};
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 1, &starter));
		tasks_await(&has_started, 1);
		expect_number("cancel", 0, pinion_timer_cancel(runtime, &timers[0]));
		tasks_await(&has_ended, 1);
		if (i % 2 == 0) {
			await_silence();
		}
	}
}

static void check_timers(void)
{
	runtime = runtimes_start(WORKERS, PINION_IO_FALLBACK);
	printf("timers on its wheel\n");
	check_own_timers();
	printf("timers from outside\n");
	check_outside_timers();
	printf("timers that are cancelled\n");
	check_cancelled();
	printf("timers that it cancels itself\n");
	check_cancelled_by_itself();
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	/* Two of its own, those from outside; by whichever worker. */
	expect_number("timers_processed", 2 + TIMERS,
		(long long)runtimes_counters(runtime).timers_processed);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	runtimes_watchdog(LIMIT_SECONDS);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(ways); i++) {
		way = &ways[i];
		check_way();
	}
	check_timers();
	return expect_status();
}
