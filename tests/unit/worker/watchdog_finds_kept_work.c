/* SPDX-License-Identifier: MIT */
/*
 * Goal: the watchdog looks twice in `watchdog_us`. It wakes a sleeper at the
 * second look at a worker that has ended no task since the first and keeps
 * something that others may run. If that is a spawned task beside a sleeper, it
 * is counted, and the worker's next spawn looks for a sleeper and ends the
 * pause between wakes; where spawns are not announced it is only counted. A
 * worker that ends tasks, or keeps nothing, wakes none.
 * Method: one worker that is awake and a worker that sleeps, both without
 * threads. The watchdog's own loop runs on the test's thread, on a clock that
 * each of its waits moves to the end of the wait.
 */
#include "runtime/worker/timer.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"
#include "tests/support/expect.h"

#include <errno.h>

enum {
	WATCHDOG_US = 20000,
	LOOKS = 2,
	LOOK_NS = WATCHDOG_US * 1000 / LOOKS,
	NEVER = 0,
};

#define START_NS (UINT64_C(1000) * 1000 * 1000)

struct way {
	const char *what;
	bool keeps_task;
	bool keeps_timer;
	bool ends_tasks;
	bool is_beside_sleeper;
	bool announces;
	uint64_t wake_after_ns; /* NEVER: it wakes none */
	uint32_t found_count;
	uint32_t reasons; /* for which the worker's slot is closed then */
};

static const struct way ways[] = {
	{"a task", true, false, false, true, true, LOOKS *(uint64_t)LOOK_NS, 1,
		PIN_SLOW_REASON_ANNOUNCE | PIN_SLOW_REASON_FOUND},
	{"a task, not announced", true, false, false, true, false, LOOKS *(uint64_t)LOOK_NS, 1, 0},
	{"a timer", false, true, false, true, true, LOOKS *(uint64_t)LOOK_NS, 0, 0},
	{"a task of several", true, false, true, true, true, NEVER, 0, 0},
	{"a task, and none sleeps", true, false, false, false, true, NEVER, 0, 0},
	{"nothing", false, false, false, true, true, NEVER, 0, 0},
};

static const struct way *way;
static struct pin_shared shared;
static struct pin_worker workers[2];
static struct pin_worker *const busy = &workers[0];
static struct pin_worker *const sleeper = &workers[1];
static uint64_t clock_ns;
static uint64_t woken_ns;
static uint32_t wait_count;

static uint64_t now_ns(void)
{
	return clock_ns;
}

static int futex_wait(struct pin_atomic_u32 *word, uint32_t expected, uint64_t deadline_ns)
{
	expect_true("its own word", word == &shared.watchdog && expected == PIN_WATCHDOG_AWAKE);
	expect_number(way->what, LOOK_NS, (long long)(deadline_ns - clock_ns));
	clock_ns = deadline_ns;
	wait_count++;
	if (way->ends_tasks) {
		pin_meter_add(&busy->meter.tasks_run, 1);
	}
	if (wait_count == LOOKS) {
		pin_store_release_u32(&shared.watchdog, PIN_WATCHDOG_ENDED);
	}
	return -ETIMEDOUT;
}

static void futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	expect_true("the sleeper", word == &sleeper->parker.state && count == 1);
	woken_ns = clock_ns;
}

static const struct pin_host host = {
	.now_ns = now_ns,
	.futex_wait = futex_wait,
	.futex_wake = futex_wake,
};

static void start(void)
{
	static struct pin_cpu_place places[] = {{.cpu_index = 0}, {.cpu_index = 1}};
	static uint32_t node = 0;
	static uint32_t distance = 10;
	struct pin_node_distances distances = {1, &node, &distance};

	memset(&shared, 0, sizeof(shared));
	memset(workers, 0, sizeof(workers));
	shared.host = &host;
	shared.workers = workers;
	shared.worker_count = PIN_ARRAY_COUNT(workers);
	shared.class_count = 1;
	shared.classes[0].order.mask = PIN_LANES_ALL;
	shared.tuning.watchdog_us = WATCHDOG_US;
	shared.announces = way->announces;
	expect_ready("victims",
		pin_victims_init(&shared.victims, &pin_host_linux, places, shared.worker_count,
			shared.worker_count, &distances) == 0);
	for (int i = 0; i < PIN_PARKED_SETS; i++) {
		pin_idle_init(&shared.classes[0].parked[i], shared.worker_count);
	}
	for (uint32_t i = 0; i < shared.worker_count; i++) {
		workers[i].shared = &shared;
		workers[i].worker_class = &shared.classes[0];
		workers[i].index = i;
		/* As of a worker that has slept at the last check. */
		workers[i].watchdog_ended_tasks = UINT64_MAX;
		pin_store_relaxed_u64(&workers[i].timer_ns, PIN_NO_DEADLINE);
		pin_parker_init(&workers[i].parker);
	}
	clock_ns = START_NS;
	woken_ns = START_NS;
	wait_count = 0;
	pin_watchdog_init(&shared);
	/* As a worker that keeps something leaves it. */
	pin_store_release_u32(&shared.watchdog, PIN_WATCHDOG_AWAKE);
}

static void check_way(void)
{
	struct pinion_task task = {0};

	start();
	if (way->is_beside_sleeper) {
		expect_true("parks", pin_parker_prepare(&sleeper->parker, PIN_PARK_FUTEX));
		(void)pin_idle_publish(&shared.classes[0].parked[PIN_PARKED_FUTEX],
			pin_victims_rank(&shared.victims, sleeper->index));
	}
	if (way->keeps_task) {
		(void)pin_lifo_replace(&busy->lifo, pin_task_link(&task));
	}
	if (way->keeps_timer) {
		pin_store_relaxed_u64(&busy->timer_ns, 0);
	}
	expect_true("it ends", pin_watchdog_main(&shared) == NULL);
	expect_number(way->what, (long long)way->wake_after_ns, (long long)(woken_ns - START_NS));
	expect_number(way->what, way->found_count,
		(long long)pin_load_relaxed_u64(&shared.watchdog_found_work));
	expect_number(way->what, way->reasons, pin_lifo_closed_for(&busy->lifo));
	pin_victims_fini(&shared.victims);
}

int main(void)
{
	for (size_t i = 0; i < PIN_ARRAY_COUNT(ways); i++) {
		way = &ways[i];
		check_way();
	}
	return expect_status();
}
