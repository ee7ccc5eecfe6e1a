/* SPDX-License-Identifier: MIT */
/*
 * How long a high job from outside waits while normal and low jobs saturate
 * every worker that serves them (load.h).
 *
 * With a free worker: it serves high alone and sleeps, the others' jobs take 1
 * to 2 ms. The first to come takes the job: it, or another that has just ended
 * a job. The floor is a bare thread on its CPU that sleeps in a futex, woken
 * from the same thread under the same load. Without: all workers serve all
 * lanes, so the job waits until one of the others' has ended; the floor is the
 * workers' threads in loops that check one pointer after each of their tasks.
 */
#ifndef PINION_TOOLS_BENCH_LANES_H
#define PINION_TOOLS_BENCH_LANES_H

#include "tools/bench/subject.h"

/* The differences between one subject and another. */
struct lanes_way {
	bool has_free_worker;
	bool keeps_cpus_awake; /* idle ones are asked to be */
};

int lanes_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int lanes_run(void *state, enum bench_side side, struct samples *out_figures);
void lanes_stop(void *state);
uint32_t lanes_further(void *state, struct bench_further further[BENCH_FURTHER_MAX]);

/* What all of them have. */
#define LANES_SHARED \
	.unit = "us", .start = lanes_start, .run = lanes_run, .stop = lanes_stop, \
	.further = lanes_further

#endif
