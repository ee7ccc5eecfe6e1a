/* SPDX-License-Identifier: MIT */
/*
 * Affinities of single threads.
 */
#include "tools/bench/place.h"

#include <stdio.h>

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

/*
 * The lowest hardware thread of that CPU's core; the CPU itself where sysfs
 * does not say.
 */
static unsigned first_of_core(unsigned cpu)
{
	char path[96];
	unsigned first = cpu;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		cpu);
	file = fopen(path, "re");
	if (file != NULL) {
		if (fscanf(file, "%u", &first) != 1 || first > cpu) {
			first = cpu;
		}
		fclose(file);
	}
	return first;
}

/* One bit for each core that has one of these CPUs. */
static void find_cores(const cpu_set_t *cpus, cpu_set_t *out_cores)
{
	CPU_ZERO(out_cores);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, cpus)) {
			CPU_SET(first_of_core(cpu), out_cores);
		}
	}
}

/* Of `cores`, in their order, the first half or the others. */
static void choose_half(const cpu_set_t *cores, int half, cpu_set_t *out_chosen)
{
	int half_count = CPU_COUNT(cores) / 2;
	int position = 0;

	CPU_ZERO(out_chosen);
	for (unsigned core = 0; core < CPU_SETSIZE; core++) {
		if (CPU_ISSET(core, cores) && position++ / half_count == half) {
			CPU_SET(core, out_chosen);
		}
	}
}

uint32_t bench_place_cores(void)
{
	cpu_set_t cpus;
	cpu_set_t cores;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) {
		return 1;
	}
	find_cores(&cpus, &cores);
	return (uint32_t)CPU_COUNT(&cores);
}

bool bench_place_in_half(struct bench_place *place, int half)
{
	cpu_set_t cores;
	cpu_set_t chosen;
	cpu_set_t cpus;

	if (!place->was_moved &&
		sched_getaffinity(0, sizeof(place->own_cpus), &place->own_cpus) != 0) {
		return false;
	}
	find_cores(&place->own_cpus, &cores);
	if (CPU_COUNT(&cores) < 2) {
		return false;
	}
	choose_half(&cores, half, &chosen);
	CPU_ZERO(&cpus);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &place->own_cpus) && CPU_ISSET(first_of_core(cpu), &chosen)) {
			CPU_SET(cpu, &cpus);
		}
	}
	if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) {
		return false;
	}
	place->was_moved = true;
	return true;
}

void bench_place_on_one(struct bench_place *place)
{
	cpu_set_t chosen;
	unsigned cpu = 0;

	if (place->was_moved ||
		sched_getaffinity(0, sizeof(place->own_cpus), &place->own_cpus) != 0) {
		return;
	}
	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &place->own_cpus)) {
		cpu++;
	}
	CPU_ZERO(&chosen);
	CPU_SET(cpu, &chosen);
	place->was_moved = sched_setaffinity(0, sizeof(chosen), &chosen) == 0;
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
