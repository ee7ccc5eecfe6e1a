/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that has found nothing to steal reaps the ring of a stalled
 * one also when a timer of its own has just become due, which is run in its
 * next turn: that may take long, and a worker woken to reap would not have.
 * C22, EX-38. Method: two workers without threads, on a clock that is set by
 * hand. One has gathered something in its ring, which others may reap, and ends
 * no task; the other looks for work. To look after a ring it needs the fence
 * that all threads take part in: it is counted, and refused.
 */
#include "runtime/loop/next_task.h"
#include "runtime/worker/timer.h"
#include "tests/support/expect.h"

#include <stdlib.h>

enum {
	WORKERS = 2,
	SLOTS = 8,
	NOW_NS = 1000 * 1000,
};

static uint32_t remote_reap_count;

static uint64_t now_ns(void)
{
	return NOW_NS;
}

static bool fence_all(void)
{
	remote_reap_count++;
	return false;
}

static const struct pin_host host = {.now_ns = now_ns, .fence_all = fence_all};

static struct pin_worker *start_workers(struct pin_shared *shared)
{
	static struct pin_atomic_u64 slots[WORKERS][SLOTS];
	struct pin_worker *workers = aligned_alloc(PIN_CACHE_LINE, WORKERS * sizeof(*workers));

	expect_ready("memory", workers != NULL);
	memset(workers, 0, WORKERS * sizeof(*workers));
	shared->host = &host;
	shared->has_fence_all = true;
	shared->worker_count = WORKERS;
	shared->workers = workers;
	shared->class_count = 1;
	shared->tuning.steal_tries = 1;
	shared->tuning.searchers_percent = 50;
	shared->tuning.budget_polls = 1;
	shared->classes[0].order.mask = PIN_LANE_BIT(PINION_LANE_NORMAL);
	pin_store_release_u32(&shared->classes[0].serving_count, WORKERS);
	expect_ready("victims",
		pin_victims_init(&shared->victims, &pin_host_linux, NULL, 0, WORKERS, NULL) == 0);
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pin_worker *worker = &workers[i];

		worker->shared = shared;
		worker->worker_class = &shared->classes[0];
		worker->index = i;
		worker->shares_ring = true;
		worker->now_ns = NOW_NS;
		worker->turn_end_ns = 2 * NOW_NS;
		pin_timers_init(&worker->timers, 0);
		pin_store_relaxed_u64(&worker->timer_ns, PIN_NO_DEADLINE);
		pin_deque_init(&worker->deque, slots[i], SLOTS, PIN_DEQUE_FIFO);
	}
	return workers;
}

int main(void)
{
	static struct pin_shared shared;
	struct pin_worker *workers = start_workers(&shared);

	pin_worker_self = &workers[0];
	expect_true("nothing", !pin_poll_others(&workers[0]));
	expect_number("nor to look after", 0, remote_reap_count);
	pin_store_release_u32(&workers[1].ring_is_open, 1);
	pin_store_relaxed_u32(&workers[1].gathered_count, 1);
	expect_true("nothing", !pin_poll_others(&workers[0]));
	expect_number("a ring is looked after", 1, remote_reap_count);
	pin_store_relaxed_u64(&workers[0].timer_ns, NOW_NS);
	expect_true("nothing", !pin_poll_others(&workers[0]));
	expect_number("with a timer that is due, too", 2, remote_reap_count);
	pin_victims_fini(&shared.victims);
	free(workers);
	return expect_status();
}
