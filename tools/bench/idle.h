/* SPDX-License-Identifier: MIT */
/*
 * What a runtime of eight workers uses while there is nothing to do, against as
 * many threads that sleep in futexes.
 *
 * A figure is the CPU time of one side's threads, over a period in which
 * nothing happens to them, and of a piece of work that the thread beside them
 * does in it. The latter, some 3 ms in each second, is there because nothing
 * at all could not be compared; what a thread uses that only waits could not
 * either, as it depends on how deep the CPU slept. What the workers alone have
 * used since the first period, the other side's included, is a further figure.
 */
#ifndef PINION_TOOLS_BENCH_IDLE_H
#define PINION_TOOLS_BENCH_IDLE_H

#include "tools/bench/subject.h"

/* The differences between one subject and the other. */
struct idle_way {
	bool is_reading; /* each worker has a read pending, and sleeps in its ring */
};

int idle_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int idle_run(void *state, enum bench_side side, struct samples *out_figures);
void idle_stop(void *state);
uint32_t idle_further(void *state, struct bench_further further[BENCH_FURTHER_MAX]);

/* What both of them have. */
#define IDLE_SHARED \
	.unit = "us/s", .start = idle_start, .run = idle_run, .stop = idle_stop, \
	.further = idle_further

#endif
