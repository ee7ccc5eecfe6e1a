/* SPDX-License-Identifier: MIT */
/*
 * How long a task takes to start on a worker that sleeps, against a thread that
 * sleeps in a futex. Both ends read CLOCK_MONOTONIC. The subjects differ in
 * where the waker runs, where the worker sleeps, and how deep the CPUs do.
 *
 * Either side is woken only once the kernel says that it sleeps; no thread
 * spins while the other side wakes up.
 */
#ifndef PINION_TOOLS_BENCH_WAKE_H
#define PINION_TOOLS_BENCH_WAKE_H

#include "tools/bench/subject.h"

/* The differences between one subject and another. */
struct wake_way {
	uint32_t worker_count; /* 1: this thread wakes it; 2: one wakes the other in a task */
	bool sleeps_in_ring;   /* since a read of its own is pending; else in its futex */
	bool keeps_cpus_awake; /* so that no CPU has to start */
};

int wake_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int wake_run(void *state, enum bench_side side, struct samples *out_figures);
void wake_stop(void *state);
uint32_t wake_further(void *state, struct bench_further further[BENCH_FURTHER_MAX]);

/* What all of them have. */
#define WAKE_SHARED \
	.unit = "us", .start = wake_start, .run = wake_run, .stop = wake_stop, \
	.further = wake_further

#endif
