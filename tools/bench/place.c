/* SPDX-License-Identifier: MIT */
/*
 * Affinities of single threads.
 */
#include "tools/bench/place.h"

void bench_place_apart(struct bench_place *place, pid_t other_id)
{
	cpu_set_t other_cpus;
	cpu_set_t left_cpus;

	if (place->was_moved || sched_getaffinity(other_id, sizeof(other_cpus), &other_cpus) != 0 ||
		sched_getaffinity(0, sizeof(place->own_cpus), &place->own_cpus) != 0) {
		return;
	}
	CPU_AND(&left_cpus, &place->own_cpus, &other_cpus);
	CPU_XOR(&left_cpus, &left_cpus, &place->own_cpus);
	if (CPU_COUNT(&left_cpus) > 0) {
		place->was_moved = sched_setaffinity(0, sizeof(left_cpus), &left_cpus) == 0;
	}
}

void bench_place_restore(struct bench_place *place)
{
	if (place->was_moved) {
		(void)sched_setaffinity(0, sizeof(place->own_cpus), &place->own_cpus);
		place->was_moved = false;
	}
}

void bench_place_together(pid_t thread_id, pid_t other_id)
{
	cpu_set_t cpus;

	if (sched_getaffinity(other_id, sizeof(cpus), &cpus) == 0) {
		(void)sched_setaffinity(thread_id, sizeof(cpus), &cpus);
	}
}
