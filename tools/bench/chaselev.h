/* SPDX-License-Identifier: MIT */
/*
 * A bare work-stealing deque: the floor of what a task spawned inside a worker
 * has to go through if another may steal it.
 *
 * The owner pushes and pops at the same end. Its pop announces itself, then
 * fences, then looks whether a thief was faster; only for the last element both
 * compare and swap.
 *
 * Source: Chase and Lev, "Dynamic Circular Work-Stealing Deque", 2005; Lê et
 * al., "Correct and Efficient Work-Stealing for Weak Memory Models", 2013.
 */
#ifndef PINION_TOOLS_BENCH_CHASELEV_H
#define PINION_TOOLS_BENCH_CHASELEV_H

#include "tools/bench/tasks.h"

#include <stdbool.h>

#define BENCH_CHASELEV_SLOTS 256u

struct bench_chaselev {
	int64_t top BENCH_LINE_ALIGNED;
	int64_t bottom BENCH_LINE_ALIGNED;
	struct pinion_task *slots[BENCH_CHASELEV_SLOTS];
};

/* There is room: the caller has counted. */
static inline void bench_chaselev_push(struct bench_chaselev *deque, struct pinion_task *task)
{
	int64_t bottom = __atomic_load_n(&deque->bottom, __ATOMIC_RELAXED);

	__atomic_store_n(&deque->slots[bottom % BENCH_CHASELEV_SLOTS], task, __ATOMIC_RELAXED);
	__atomic_store_n(&deque->bottom, bottom + 1, __ATOMIC_RELEASE);
}

static inline struct pinion_task *bench_chaselev_pop(struct bench_chaselev *deque)
{
	int64_t bottom = __atomic_load_n(&deque->bottom, __ATOMIC_RELAXED) - 1;
	struct pinion_task *task = NULL;
	int64_t top;

	__atomic_store_n(&deque->bottom, bottom, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	top = __atomic_load_n(&deque->top, __ATOMIC_RELAXED);
	if (top <= bottom) {
		task = __atomic_load_n(
			&deque->slots[bottom % BENCH_CHASELEV_SLOTS], __ATOMIC_RELAXED);
		if (top < bottom) {
			return task;
		}
		if (!__atomic_compare_exchange_n(&deque->top, &top, top + 1, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
			task = NULL;
		}
	}
	__atomic_store_n(&deque->bottom, bottom + 1, __ATOMIC_RELAXED);
	return task;
}

/* By any other thread. NULL: empty, or another was faster. */
static inline struct pinion_task *bench_chaselev_steal(struct bench_chaselev *deque)
{
	int64_t top = __atomic_load_n(&deque->top, __ATOMIC_ACQUIRE);
	struct pinion_task *task;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (top >= __atomic_load_n(&deque->bottom, __ATOMIC_ACQUIRE)) {
		return NULL;
	}
	task = __atomic_load_n(&deque->slots[top % BENCH_CHASELEV_SLOTS], __ATOMIC_RELAXED);
	if (!__atomic_compare_exchange_n(
		    &deque->top, &top, top + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
		return NULL;
	}
	return task;
}

#endif
