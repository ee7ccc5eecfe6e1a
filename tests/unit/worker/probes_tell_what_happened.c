/* SPDX-License-Identifier: MIT */
/*
 * Goal: the probes of a steal say which worker took how many tasks from which,
 * from a queue and from the slot; that of a task's end says its result also
 * when it ended by a panic. EX-37.
 * Method: the sources with these probes are compiled into this program, with
 * probes that note what they are given. Two workers without threads, one of
 * which steals; a runtime whose tasks return and panic.
 */
#include "runtime/worker/state.h"

#undef PIN_TRACE1
#undef PIN_TRACE2
#undef PIN_TRACE3
#define PIN_TRACE1(name, a) ((void)(a))
#define PIN_TRACE2(name, a, b) note(#name, (int64_t)(a), (int64_t)(b), 0)
#define PIN_TRACE3(name, a, b, c) note(#name, (int64_t)(a), (int64_t)(b), (int64_t)(c))

static void note(const char *name, int64_t first, int64_t second, int64_t third);

#include "runtime/worker/fault.c"
#include "runtime/worker/steal.c"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	WORKERS = 2,
	SLOTS = 8,
	QUEUED = 6,
	LIMIT_SECONDS = 60,
};

/* The last one, as "name first second third". */
static char noted[64];
static uint32_t noted_count;

static void note(const char *name, int64_t first, int64_t second, int64_t third)
{
	snprintf(noted, sizeof(noted), "%s %lld %lld %lld", name, (long long)first,
		(long long)second, (long long)third);
	noted_count++;
}

/* One since the last call. */
static void expect_noted(const char *expected)
{
	expect_text("probe", expected, noted);
	expect_number("probes", 1, noted_count);
	noted_count = 0;
}

static bool fence_all(void)
{
	return true;
}

static uint64_t now_ns(void)
{
	return 0;
}

static void check_steals(void)
{
	static const struct pin_host host = {.now_ns = now_ns, .fence_all = fence_all};
	static struct pin_shared shared;
	static struct pin_worker workers[WORKERS];
	static struct pin_atomic_u64 slots[WORKERS][SLOTS];
	static struct pinion_task tasks[QUEUED];
	struct pin_worker *victim = &workers[1];

	shared = (struct pin_shared){.host = &host, .worker_count = WORKERS, .workers = workers};
	shared.tuning.steal_tries = 1;
	shared.tuning.searchers_percent = 50;
	shared.class_count = 1;
	pin_store_release_u32(&shared.classes[0].serving_count, WORKERS);
	shared.classes[0].order.mask = PIN_LANE_BIT(PINION_LANE_NORMAL);
	pin_injector_init(&shared.injector, &host);
	expect_ready("victims",
		pin_victims_init(&shared.victims, &pin_host_linux, NULL, 0, WORKERS, NULL) == 0);
	for (uint32_t i = 0; i < WORKERS; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = &shared.classes[0];
		workers[i].index = i;
		pin_timers_init(&workers[i].timers, 0);
		pin_store_relaxed_u64(&workers[i].timer_ns, PIN_NO_DEADLINE);
		pin_deque_init(&workers[i].deque, slots[i], SLOTS, PIN_DEQUE_FIFO);
	}
	for (uint32_t i = 0; i < QUEUED; i++) {
		expect_true("given", pin_deque_push(&victim->deque, pin_task_link(&tasks[i])));
	}
	pin_worker_self = &workers[0];
	expect_true("stolen", pin_search_others(&workers[0]) == pin_task_link(&tasks[0]));
	expect_noted("steal 0 1 3");
	while (pin_deque_pop(&victim->deque) != NULL) {
	}
	while (pin_deque_pop(&workers[0].deque) != NULL) {
	}
	pin_lifo_exchange(&victim->lifo, pin_task_link(&tasks[0]));
	expect_true("of its slot", pin_search_others(&workers[0]) == pin_task_link(&tasks[0]));
	expect_noted("steal 0 1 1");
	pin_worker_self = NULL;
	pin_victims_fini(&shared.victims);
}

static int panic(struct pinion_task *task)
{
	(void)task;
	pinion_task_panic(-EIO, "as planned");
}

static void check_panic(void)
{
	struct pinion_runtime *runtime = runtimes_start(1, PINION_IO_FALLBACK);
	struct pinion_task task = {.run = panic};

	noted_count = 0;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	pinion_runtime_drain(runtime);
	pinion_runtime_destroy(runtime);
	expect_noted("task_end 0 -5 0");
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_steals();
	check_panic();
	return expect_status();
}
