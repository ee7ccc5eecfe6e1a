/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker's own queue holds 256 tasks; the next task goes to the queue
 * that all share, after the older half of the waiting ones, in one batch, and
 * the younger half stays. While a thief is still copying what it has claimed,
 * that is half of the rest. AS-33.
 * Method: one worker that does not look into the shared queue before its own is
 * empty; a task spawns 257 that note their turn, and looks at both queues
 * before and after the last. It also plays the thief: claims the oldest 16 in
 * the deque's word, and afterwards hands them on through the shared queue.
 */
#include "runtime/worker/state.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	QUEUE = 256,
	HALF = QUEUE / 2,
	COUNT = QUEUE + 1,
	CLAIMED = 16,
	REST_HALF = (QUEUE - CLAIMED) / 2,
	DEEP_END = QUEUE / 4,
	LOOK_US = 1000000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[COUNT];
static uint32_t order[COUNT]; /* by one worker; read after a drain */
static uint32_t order_count;
static bool has_thief;
static bool goes_deep;

static int note(struct pinion_task *task)
{
	order[order_count++] = (uint32_t)(task - tasks);
	return 0;
}

static void spawn(uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
}

static void expect_queues(const char *what, uint32_t own, uint32_t shared)
{
	const struct pin_worker *worker = pin_worker_current();

	expect_number(what, own, pin_deque_count(&worker->deque));
	expect_number(what, shared, (long long)pin_meter_read(&worker->meter.tasks_shared));
	expect_true(what, pin_injector_is_empty(&worker->shared->injector) == (shared == 0));
}

/* As a thief does it, up to where it would copy. */
static void claim(struct pin_deque *deque)
{
	uint64_t head = pin_load_acquire_u64(&deque->head);
	uint32_t first = pin_deque_first_of(head);

	expect_number("no other steals", first, pin_deque_kept_of(head));
	pin_store_release_u64(&deque->head, pin_deque_head_of(first, first + CLAIMED));
}

/* Copies it, and lets the owner have the slots. */
static void take_claimed(struct pin_worker *worker)
{
	uint64_t head = pin_load_acquire_u64(&worker->deque.head);
	uint32_t kept = pin_deque_kept_of(head);
	uint32_t first = pin_deque_first_of(head);
	struct pin_list list = {0};

	for (uint32_t i = 0; i < CLAIMED; i++) {
		pin_list_push(&list, pin_deque_read_slot(&worker->deque, kept + i));
	}
	pin_store_release_u64(&worker->deque.head, pin_deque_head_of(first, first));
	pin_meter_add(&worker->meter.tasks_shared, CLAIMED);
	pin_injector_push(&worker->shared->injector, &list);
}

static int fill(struct pinion_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	(void)task;
	goes_deep = worker->shared->has_fence_all;
	spawn(0, QUEUE);
	expect_queues("full", QUEUE, 0);
	if (!has_thief) {
		spawn(QUEUE, COUNT);
		expect_queues("after one more", HALF, HALF + 1);
		return 0;
	}
	claim(&worker->deque);
	spawn(QUEUE, COUNT);
	expect_queues("beside a thief", REST_HALF, REST_HALF + 1);
	take_claimed(worker);
	return 0;
}

/* The numbers from `first` to `end`, in turn, from *at on. */
static void expect_order(uint32_t *at, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++, (*at)++) {
		expect_number("order", i, order[*at]);
	}
}

/* The oldest, then the newest until a quarter is left, then the others. */
static void expect_deep_order(uint32_t *at, uint32_t first, uint32_t end)
{
	uint32_t left = end - first - 1;

	if (!goes_deep) {
		expect_order(at, first, end);
		return;
	}
	expect_order(at, first, first + 1);
	for (; left > DEEP_END; left--, (*at)++) {
		expect_number("newest", first + left, order[*at]);
	}
	expect_order(at, first + 1, first + 1 + left);
}

/* Until all have run; false: it took so long that another look was due. */
static bool run(bool is_robbed)
{
	struct pinion_task first = {.run = fill};
	struct pinion_config config;
	uint64_t begin_ns;
	uint64_t lasted_ns;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.lifo_polls = 0;
	runtimes_tuning.injector_target_us = LOOK_US;
	runtimes_tuning.interval_min = 65535;
	runtimes_tuning.interval_max = 65535;
	expect_number("the default", QUEUE, runtimes_tuning.queue_tasks);
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	for (uint32_t i = 0; i < COUNT; i++) {
		tasks[i] = (struct pinion_task){.run = note};
	}
	order_count = 0;
	has_thief = is_robbed;
	begin_ns = pinion_clock_now_ns();
	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &first));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	lasted_ns = pinion_clock_now_ns() - begin_ns;
	expect_ready("all have run", order_count == COUNT);
	pinion_runtime_destroy(runtime);
	return lasted_ns < LOOK_US * UINT64_C(1000);
}

static void check(bool is_robbed)
{
	uint32_t claimed = is_robbed ? CLAIMED : 0;
	uint32_t half = is_robbed ? REST_HALF : HALF;
	uint32_t at = 0;

	while (!run(is_robbed)) {
	}
	/* The younger half, the older one, the last, and the stolen ones. */
	expect_deep_order(&at, claimed + half, QUEUE);
	expect_order(&at, claimed, claimed + half);
	expect_order(&at, QUEUE, COUNT);
	expect_order(&at, 0, claimed);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check(false);
	check(true);
	return expect_status();
}
