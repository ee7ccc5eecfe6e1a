/* SPDX-License-Identifier: MIT */
/*
 * Where the threads of a subject run. A worker may be bound to a core and the
 * bench's own threads are not; both sides of a comparison have to run on the
 * same cores. Where a call fails, things stay as they are, on both sides.
 */
#ifndef PINION_TOOLS_BENCH_PLACE_H
#define PINION_TOOLS_BENCH_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where the calling thread was before it moved. Zero-initialise. */
struct bench_place {
	cpu_set_t own_cpus;
	bool was_moved;
};

/* Moves the calling thread off the CPUs of another, where there are others. */
void bench_place_apart(struct bench_place *place, pid_t other_id);

/*
 * Moves the calling thread to one half of the cores it was on: `half` is 0 or
 * 1, and no core has hardware threads in both; of an odd number one is left
 * out. False: it stays, as a half would be empty.
 */
bool bench_place_in_half(struct bench_place *place, int half);

/* Moves the calling thread to one of the CPUs it was on. */
void bench_place_on_one(struct bench_place *place);

/* How many cores the calling thread may use. */
uint32_t bench_place_cores(void);

/* Back again, by the same thread. */
void bench_place_restore(struct bench_place *place);

/* Moves a thread to the CPUs of another. */
void bench_place_together(pid_t thread_id, pid_t other_id);

#endif
