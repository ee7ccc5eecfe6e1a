/* SPDX-License-Identifier: MIT */
/*
 * Everything that a worker may be watched at, once each: for tests of what
 * others see of it. One worker runs tasks from each source, a request and a
 * timer, falls asleep, is woken, fails, panics; a second runtime stops with a
 * task in its queue; two workers without threads steal.
 */
#ifndef PIN_TESTS_SUPPORT_HAPPENINGS_H
#define PIN_TESTS_SUPPORT_HAPPENINGS_H

#include "tests/support/runtimes.h"
#include "tests/support/sleepers.h"
#include "tests/support/tasks.h"

#include "runtime/task/entry.h"
#include "runtime/worker/events.h"
#include "runtime/worker/worker.h"

#include <errno.h>

enum {
	HAPPENINGS_EVENTS = 1024,
	HAPPENINGS_QUEUED = 6, /* tasks of the victim, of which half are stolen */
	HAPPENINGS_SLOTS = 8,
	HAPPENINGS_COUNTED = 9, /* root, and those below but `late` */
	HAPPENINGS_FAILURE = -EDOM,
	HAPPENINGS_PANIC = -EIO,
};

static struct pin_atomic_u32 happenings_count;
static struct pinion_runtime *happenings_runtime;
static struct pinion_task happenings_slot, happenings_local, happenings_shared, happenings_posted,
	happenings_urgent, happenings_late, happenings_root, happenings_failing,
	happenings_panicking, happenings_cancelled, happenings_batch;
static struct pinion_timer happenings_timer;
static struct pinion_request happenings_request;

static int happenings_run_root(struct pinion_task *task);
/* Each task has a function of its own. */
#define HAPPENINGS_RUN(name) \
	static int happenings_run_##name(struct pinion_task *task) \
	{ \
		(void)task; \
		tasks_signal(&happenings_count); \
		return 0; \
	}
HAPPENINGS_RUN(slot)
HAPPENINGS_RUN(local)
HAPPENINGS_RUN(shared)
HAPPENINGS_RUN(posted)
HAPPENINGS_RUN(urgent)
HAPPENINGS_RUN(expired)
HAPPENINGS_RUN(completed)
HAPPENINGS_RUN(late)
HAPPENINGS_RUN(batch)

static int happenings_fail(struct pinion_task *task)
{
	(void)task;
	return HAPPENINGS_FAILURE;
}

static int happenings_panic(struct pinion_task *task)
{
	(void)task;
	pinion_task_panic(HAPPENINGS_PANIC, "as planned");
}

static void happenings_cancel(struct pinion_task *task)
{
	(void)task;
}

/* The last spawn is in the slot, the others are in the own queue. */
static int happenings_run_root(struct pinion_task *task)
{
	struct pinion_runtime *runtime = happenings_runtime;
	struct pinion_task *batch = &happenings_batch;

	(void)task;
	expect_number("local", 0, pinion_task_spawn(runtime, &happenings_local));
	expect_number("failing", 0, pinion_task_spawn(runtime, &happenings_failing));
	expect_number("panicking", 0, pinion_task_spawn(runtime, &happenings_panicking));
	expect_number("batch", 0, pinion_task_spawn_batch(runtime, &batch, 1));
	expect_number("slot", 0, pinion_task_spawn(runtime, &happenings_slot));
	expect_number("shared", 0, pinion_task_spawn_shared(runtime, &happenings_shared));
	expect_number("posted", 0, pinion_task_spawn_on(runtime, 0, &happenings_posted));
	expect_number("urgent", 0, pinion_task_spawn(runtime, &happenings_urgent));
	expect_number("timer", 0, pinion_timer_start(runtime, &happenings_timer, 1));
	expect_number("request", 0, pinion_request_submit(runtime, &happenings_request));
	tasks_signal(&happenings_count);
	return 0;
}

static void happenings_prepare(void)
{
	happenings_slot = (struct pinion_task){.run = happenings_run_slot};
	happenings_local = (struct pinion_task){.run = happenings_run_local};
	happenings_shared = (struct pinion_task){.run = happenings_run_shared};
	happenings_posted = (struct pinion_task){.run = happenings_run_posted};
	happenings_urgent =
		(struct pinion_task){.run = happenings_run_urgent, .flags = PINION_TASK_HIGH};
	happenings_late = (struct pinion_task){.run = happenings_run_late};
	happenings_batch = (struct pinion_task){.run = happenings_run_batch};
	happenings_root = (struct pinion_task){.run = happenings_run_root};
	happenings_failing = (struct pinion_task){.run = happenings_fail};
	happenings_panicking = (struct pinion_task){.run = happenings_panic};
	happenings_timer = (struct pinion_timer){.task.run = happenings_run_expired};
	happenings_request =
		(struct pinion_request){.task.run = happenings_run_completed, .op = PINION_OP_NOP};
	pin_store_relaxed_u32(&happenings_count, 0);
}

/* One worker, up to the end; `watch` is called when all tasks have run. */
static inline void happenings_run(
	uint32_t trace_events, void (*watch)(struct pinion_runtime *runtime))
{
	struct pinion_config config;

	happenings_prepare();
	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.trace_events = trace_events;
	expect_ready("runtime", pinion_runtime_create(&config, &happenings_runtime) == 0);
	expect_number("root", 0, pinion_task_spawn(happenings_runtime, &happenings_root));
	tasks_await(&happenings_count, HAPPENINGS_COUNTED);
	sleepers_await(&happenings_runtime->shared.classes[0], 1);
	expect_number("late", 0, pinion_task_spawn(happenings_runtime, &happenings_late));
	expect_number("drain", 0, pinion_runtime_drain(happenings_runtime));
	watch(happenings_runtime);
	pinion_runtime_destroy(happenings_runtime);
}

/* Spawns a task, and fails, which stops the runtime before that runs. */
static int happenings_run_to_stop(struct pinion_task *task)
{
	(void)task;
	expect_number("cancelled", 0, pinion_task_spawn(happenings_runtime, &happenings_cancelled));
	return HAPPENINGS_FAILURE;
}

static inline void happenings_stop(
	uint32_t trace_events, void (*watch)(struct pinion_runtime *runtime))
{
	struct pinion_task root = {.run = happenings_run_to_stop};
	struct pinion_config config;

	happenings_cancelled =
		(struct pinion_task){.run = happenings_run_slot, .cancel = happenings_cancel};
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	runtimes_tuning.trace_events = trace_events;
	runtimes_tuning.fault_policy = PINION_FAULT_FAIL_FAST;
	expect_ready("runtime", pinion_runtime_create(&config, &happenings_runtime) == 0);
	expect_number("root", 0, pinion_task_spawn(happenings_runtime, &root));
	expect_number("drain", 0, pinion_runtime_drain(happenings_runtime));
	watch(happenings_runtime);
	pinion_runtime_destroy(happenings_runtime);
}

/* ---- thefts ---- */

static bool happenings_fence_all(void)
{
	return true;
}

static uint64_t happenings_now_ns(void)
{
	return 1;
}

/* Worker 0 takes half of six from worker 1. `trace` may be NULL. */
static inline void happenings_steal(struct pin_trace *trace)
{
	static const struct pin_host host = {
		.now_ns = happenings_now_ns, .fence_all = happenings_fence_all};
	static struct pin_shared shared;
	static struct pin_worker workers[2];
	static struct pin_atomic_u64 slots[2][HAPPENINGS_SLOTS];
	static struct pinion_task tasks[HAPPENINGS_QUEUED];

	memset(workers, 0, sizeof(workers));
	shared = (struct pin_shared){
		.host = &host, .worker_count = 2, .workers = workers, .trace = trace};
	shared.tuning.steal_tries = 1;
	shared.tuning.searchers_percent = 50;
	shared.class_count = 1;
	pin_store_release_u32(&shared.classes[0].serving_count, 2);
	shared.classes[0].order.mask = PIN_LANE_BIT(PINION_LANE_NORMAL);
	pin_injector_init(&shared.injector, &host);
	expect_ready("victims",
		pin_victims_init(&shared.victims, &pin_host_linux, NULL, 0, 2, NULL) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = &shared.classes[0];
		workers[i].index = i;
		workers[i].trace_ring = trace == NULL ? NULL : &trace->rings[i];
		pin_timers_init(&workers[i].timers, 0);
		pin_store_relaxed_u64(&workers[i].timer_ns, PIN_NO_DEADLINE);
		pin_deque_init(&workers[i].deque, slots[i], HAPPENINGS_SLOTS, PIN_DEQUE_FIFO);
	}
	for (uint32_t i = 0; i < HAPPENINGS_QUEUED; i++) {
		tasks[i] = (struct pinion_task){0};
		expect_true("given", pin_deque_push(&workers[1].deque, pin_task_link(&tasks[i])));
	}
	pin_worker_self = &workers[0];
	expect_true("stolen", pin_search_others(&workers[0]) == pin_task_link(&tasks[0]));
	while (pin_deque_pop(&workers[1].deque) != NULL) {
	}
	while (pin_deque_pop(&workers[0].deque) != NULL) {
	}
	pin_lifo_exchange(&workers[1].lifo, pin_task_link(&tasks[0]));
	expect_true("of its slot", pin_search_others(&workers[0]) == pin_task_link(&tasks[0]));
	pin_worker_self = NULL;
	pin_victims_fini(&shared.victims);
}

#endif
