/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task in the queue all share runs within the queue-check interval of
 * polls, however full the worker's own queue is kept, in either order, and
 * within one task where these are longer than it may wait, whatever the
 * interval; tasks that wait for a task that does not end, in the deque and in
 * the LIFO slot, are run by another worker. AS-12, AS-13, AS-15, AS-19, C3, C4,
 * W19, W29, W36, W37.
 * Method: tasks that spawn themselves count the polls during which the shared
 * queue has something, once with tasks that last for longer than the target by
 * the clock; a task that queues 101 others and waits for them, which hangs if
 * no worker takes them.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/worker/worker.h"

enum {
	BUSY = 6,
	ROUNDS = 2000,
	INTERVAL = 32,
	QUEUED = 101,
	LONG_US = 1000000,
	TARGET_US = 5,
	/*
	 * The clock is read after this number of polls at the latest, where
	 * those before were short, and a check that is due then comes next.
	 */
	OVERDUE_POLLS = 32 + 1,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task busy[BUSY];
static uint64_t busy_ns; /* that each of them takes at least */
static struct pin_atomic_u32 is_over;
static struct pin_atomic_u32 busy_ended;
static struct pin_atomic_u32 done;
static uint32_t waited; /* polls since the shared queue got something */
static uint32_t waited_max;

static int keep_busy(struct pinion_task *task)
{
	const struct pin_shared *shared = pin_worker_current()->shared;
	bool is_waiting = !pin_injector_is_empty(&shared->injector);
	uint64_t begin_ns = busy_ns == 0 ? 0 : pinion_clock_now_ns();

	while (busy_ns != 0 && pinion_clock_now_ns() - begin_ns < busy_ns) {
	}
	waited = is_waiting ? waited + 1 : 0;
	waited_max = waited > waited_max ? waited : waited_max;
	if (pin_load_acquire_u32(&is_over) != 0) {
		tasks_signal(&busy_ended);
		return 0;
	}
	return (task - busy) % 2 == 0 ? pinion_task_spawn(runtime, task)
				      : pinion_task_respawn(runtime, task);
}

static int answer(struct pinion_task *task)
{
	(void)task;
	waited = 0;
	tasks_signal(&done);
	return 0;
}

/* Waiters are served, but seldom where a check comes with each poll. */
static void check_waits(const struct pinion_config *config, uint32_t polls_max, bool is_seen)
{
	struct pinion_task task = {.run = answer};

	expect_number("create", 0, pinion_runtime_create(config, &runtime));
	pin_store_release_u32(&is_over, 0);
	pin_store_release_u32(&busy_ended, 0);
	waited = 0;
	waited_max = 0;
	for (int i = 0; i < BUSY; i++) {
		busy[i] = (struct pinion_task){.run = keep_busy};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, 0, &busy[i]));
	}
	for (int i = 0; i < ROUNDS; i++) {
		pin_store_release_u32(&done, 0);
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		tasks_await(&done, 1);
	}
	tasks_signal(&is_over);
	tasks_await(&busy_ended, BUSY);
	expect_number("join", 0, pinion_runtime_join(runtime));
	printf("interval %u: waited %u polls at most\n", runtimes_tuning.interval_max, waited_max);
	expect_true("it was seen to wait", waited_max > 0 || !is_seen);
	if (waited_max > polls_max) {
		expect_number("polls it waited", polls_max, waited_max);
	}
	pinion_runtime_destroy(runtime);
}

static void check_injector(uint32_t lifo_polls, uint32_t interval, uint32_t task_ns)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.lifo_polls = lifo_polls;
	/* Polls alone decide: no check for being late. */
	runtimes_tuning.injector_target_us = LONG_US;
	runtimes_tuning.interval_min = interval;
	runtimes_tuning.interval_max = interval;
	runtimes_tuning.task_ns = task_ns;
	check_waits(&config, interval, true);
}

/* Time alone decides: the interval would have it wait for 65535 polls. */
static void check_overdue(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.injector_target_us = TARGET_US;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	busy_ns = 2 * TARGET_US * 1000;
	check_waits(&config, OVERDUE_POLLS, false);
	busy_ns = 0;
}

/* ---- queued on a stalled worker ---- */

static struct pinion_task queued[QUEUED];
static struct pin_atomic_u32 on_other;
static uint32_t wanted;

static int note_worker(struct pinion_task *task)
{
	(void)task;
	if (pinion_worker_index(runtime) == 1) {
		pin_fetch_add_acq_rel_u32(&on_other, 1);
	}
	tasks_signal(&done);
	return 0;
}

static int be_stalled(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < QUEUED; i++) {
		queued[i] = (struct pinion_task){.run = note_worker};
		if (pinion_task_spawn(runtime, &queued[i]) != 0) {
			abort();
		}
	}
	tasks_await(&done, wanted);
	return 0;
}

static void check_stalled(uint32_t queue_order, uint32_t queue_tasks, uint32_t lifo_polls)
{
	struct pinion_task stalled = {.run = be_stalled};
	struct pinion_config config;

	runtimes_config(&config, 2, PINION_IO_AUTO);
	runtimes_tuning.queue_order = queue_order;
	runtimes_tuning.queue_tasks = queue_tasks;
	runtimes_tuning.lifo_polls = lifo_polls;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pin_store_release_u32(&done, 0);
	pin_store_release_u32(&on_other, 0);
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, 0, &stalled));
	tasks_await(&done, wanted);
	expect_number("join", 0, pinion_runtime_join(runtime));
	expect_number("run while it was stalled", 1, pin_load_acquire_u32(&on_other) >= wanted);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_injector(3, INTERVAL, 50000);
	check_injector(0, INTERVAL, 50000);
	check_injector(3, 8, 1);
	check_injector(1, 255, 1000000);
	check_overdue();
	wanted = QUEUED;
	check_stalled(PINION_QUEUE_LIFO, 256, 3);
	check_stalled(PINION_QUEUE_FIFO, 256, 0);
	check_stalled(PINION_QUEUE_FIFO, 4, 0);
	/* Without membarrier(2) the LIFO slot is its owner's alone. */
	wanted = pin_host_linux.fence_all() ? QUEUED : QUEUED - 1;
	check_stalled(PINION_QUEUE_FIFO, 256, 3);
	check_stalled(PINION_QUEUE_FIFO, 4, 3);
	return expect_status();
}
