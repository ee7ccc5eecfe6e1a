/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that has run dry takes the late timer of a stalled one also in
 * a turn that began without reading the clock, and so goes by an older time; it
 * leaves a timer that is not late yet, by the clock. C22, AS-31. Method: two
 * workers without threads, on a clock that is set by hand. One has a timer on
 * its wheel and ends no task; the other searches, its time being that of long
 * ago.
 */
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/worker.h"
#include "tests/support/expect.h"

#include <stdlib.h>

enum {
	WORKERS = 2,
	SLOTS = 8,
	DUE_NS = 1000 * 1000,
};

static uint64_t clock_ns;
static uint32_t look_count;

static uint64_t now_ns(void)
{
	look_count++;
	return clock_ns;
}

static bool fence_all(void)
{
	return true;
}

static struct pin_atomic_u64 slots[WORKERS][SLOTS];
static const struct pin_host host = {.now_ns = now_ns, .fence_all = fence_all};

static int run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void start_workers(struct pin_shared *shared)
{
	shared->host = &host;
	shared->worker_count = WORKERS;
	shared->class_count = 1;
	shared->tuning.steal_tries = 1;
	shared->tuning.searchers_percent = 50;
	shared->classes[0].order.mask = PIN_LANE_BIT(PINION_LANE_NORMAL);
	pin_store_release_u32(&shared->classes[0].serving_count, WORKERS);
	expect_ready("victims",
		pin_victims_init(&shared->victims, &pin_host_linux, NULL, 0, WORKERS, NULL) == 0);
	shared->workers = aligned_alloc(PIN_CACHE_LINE, WORKERS * sizeof(*shared->workers));
	expect_ready("memory", shared->workers != NULL);
	memset(shared->workers, 0, WORKERS * sizeof(*shared->workers));
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pin_worker *worker = &shared->workers[i];

		worker->shared = shared;
		worker->worker_class = &shared->classes[0];
		worker->index = i;
		pin_timers_init(&worker->timers, 0);
		pin_store_relaxed_u64(&worker->timer_ns, PIN_NO_DEADLINE);
		pin_deque_init(&worker->deque, slots[i], SLOTS, PIN_DEQUE_FIFO);
	}
}

static void end_workers(struct pin_shared *shared)
{
	pin_victims_fini(&shared->victims);
	free(shared->workers);
}

/* Whether the searcher finds the timer. */
static bool finds(struct pin_worker *searcher, const struct pinion_timer *timer)
{
	struct pin_link *link = pin_search_others(searcher);

	return link != NULL && pin_task_of(link) == &timer->task;
}

int main(void)
{
	static struct pin_shared shared;
	static struct pinion_timer timer = {.task.run = run};
	struct pin_worker *searcher;

	start_workers(&shared);
	searcher = &shared.workers[0];
	pin_worker_self = searcher;
	expect_true("nothing is there", !finds(searcher, &timer));
	expect_number("reads of the clock where no worker has timers", 0, look_count);
	expect_number("claim", 0, pin_timer_claim(&timer, DUE_NS));
	pin_worker_self = &shared.workers[1];
	pin_timer_arm(&shared.workers[1], &timer);
	pin_worker_self = searcher;
	clock_ns = DUE_NS + PIN_TIMER_LATE_NS - 1;
	expect_true("not late yet", !finds(searcher, &timer));
	clock_ns++;
	/* A timed turn goes by its own last reading. */
	searcher->now_ns = 1;
	searcher->turn_end_ns = DUE_NS;
	expect_true("the time of a timed turn counts", !finds(searcher, &timer));
	searcher->turn_end_ns = 0;
	expect_true("late by the clock", finds(searcher, &timer));
	expect_true("it comes once", !finds(searcher, &timer));
	end_workers(&shared);
	return expect_status();
}
