/* SPDX-License-Identifier: MIT */
/*
 * A bare bounded queue that any number of threads may push to and pop from:
 * the floor of what work from outside has to go through.
 *
 * Each cell holds whose turn it is: at position p of the queue a cell is to be
 * filled when its turn is p and to be emptied when it is p + 1. The thread that
 * moves `tail` or `head` past p owns the cell until it sets the next turn.
 *
 * Source: Dmitry Vyukov, bounded MPMC queue, 1024cores.net.
 */
#ifndef PINION_TOOLS_BENCH_MPMC_H
#define PINION_TOOLS_BENCH_MPMC_H

#include "tools/bench/tasks.h"

#include <stdbool.h>

#define BENCH_MPMC_CELLS 8192u

struct bench_mpmc_cell {
	uint64_t turn;
	struct pinion_task *task;
};

struct bench_mpmc {
	uint64_t tail BENCH_LINE_ALIGNED;
	uint64_t head BENCH_LINE_ALIGNED;
	struct bench_mpmc_cell cells[BENCH_MPMC_CELLS] BENCH_LINE_ALIGNED;
};

static inline void bench_mpmc_init(struct bench_mpmc *queue)
{
	queue->tail = 0;
	queue->head = 0;
	for (uint32_t i = 0; i < BENCH_MPMC_CELLS; i++) {
		queue->cells[i].turn = i;
	}
}

/* False: full. */
static inline bool bench_mpmc_push(struct bench_mpmc *queue, struct pinion_task *task)
{
	uint64_t position = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);

	for (;;) {
		struct bench_mpmc_cell *cell = &queue->cells[position % BENCH_MPMC_CELLS];
		uint64_t turn = __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE);

		if (turn < position) {
			return false;
		}
		if (turn > position) {
			position = __atomic_load_n(&queue->tail, __ATOMIC_RELAXED);
		} else if (__atomic_compare_exchange_n(&queue->tail, &position, position + 1, true,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			cell->task = task;
			__atomic_store_n(&cell->turn, position + 1, __ATOMIC_RELEASE);
			return true;
		}
	}
}

/* NULL: empty. */
static inline struct pinion_task *bench_mpmc_pop(struct bench_mpmc *queue)
{
	uint64_t position = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);

	for (;;) {
		struct bench_mpmc_cell *cell = &queue->cells[position % BENCH_MPMC_CELLS];
		uint64_t turn = __atomic_load_n(&cell->turn, __ATOMIC_ACQUIRE);

		if (turn < position + 1) {
			return NULL;
		}
		if (turn > position + 1) {
			position = __atomic_load_n(&queue->head, __ATOMIC_RELAXED);
		} else if (__atomic_compare_exchange_n(&queue->head, &position, position + 1, true,
				   __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			struct pinion_task *task = cell->task;

			__atomic_store_n(
				&cell->turn, position + BENCH_MPMC_CELLS, __ATOMIC_RELEASE);
			return task;
		}
	}
}

#endif
