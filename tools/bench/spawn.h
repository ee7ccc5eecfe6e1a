/* SPDX-License-Identifier: MIT */
/*
 * What an empty task costs that is spawned from inside a worker and run by it.
 *
 * Ours goes on by itself: the last task of a batch spawns the next. The floor
 * calls the same tasks in the same batches by way of a bare deque, on the same
 * thread, so on the same core.
 *
 * With several workers each does so for itself, at the same time. None begins
 * before all have, and none leaves its last task before all have ended, so that
 * no worker has time to steal: the remaining cost is that of memory which
 * workers share.
 */
#ifndef PINION_TOOLS_BENCH_SPAWN_H
#define PINION_TOOLS_BENCH_SPAWN_H

#include "tools/bench/subject.h"

/* Half of a worker's queue, so that none is passed on to others. */
enum { SPAWN_BATCH_MAX = 128 };

/* The differences between one subject and the other. */
struct spawn_way {
	uint32_t batch_count; /* 1 … SPAWN_BATCH_MAX */
};

int spawn_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int spawn_run(void *state, enum bench_side side, struct samples *out_figures);
void spawn_stop(void *state);

/* What both of them have. */
#define SPAWN_SHARED \
	.unit = "ns", .axes = BENCH_BY(BENCH_WORKERS), .start = spawn_start, .run = spawn_run, \
	.stop = spawn_stop

#endif
