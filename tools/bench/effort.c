/* SPDX-License-Identifier: MIT */
/*
 * Differences of what the kernel and the runtime count.
 */
#include "tools/bench/effort.h"

#include <time.h>

static uint64_t process_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

void effort_begin(struct effort *effort, const struct pinion_runtime *runtime)
{
	pinion_runtime_get_stats(runtime, &effort->before, sizeof(effort->before));
	effort->cpu_before_ns = process_cpu_ns();
}

void effort_end(struct effort *effort, const struct pinion_runtime *runtime, enum bench_side side,
	uint64_t bytes)
{
	uint64_t cpu_ns = process_cpu_ns() - effort->cpu_before_ns;
	struct pinion_runtime_stats after;

	if (!effort->sides[side].has_warmed_up) {
		effort->sides[side].has_warmed_up = true;
		return;
	}
	effort->sides[side].cpu_ns += cpu_ns;
	effort->sides[side].bytes += bytes;
	if (side == BENCH_OURS) {
		pinion_runtime_get_stats(runtime, &after, sizeof(after));
		effort->enters += after.ring_enters - effort->before.ring_enters;
		effort->completed += after.requests_completed - effort->before.requests_completed;
	}
}

static double cpu_s_per_gib(const struct effort *effort, enum bench_side side)
{
	double gib = (double)effort->sides[side].bytes / (1u << 30);

	return (double)effort->sides[side].cpu_ns / 1e9 / gib;
}

uint32_t effort_further(
	const struct effort *effort, struct bench_further further[BENCH_FURTHER_MAX])
{
	uint32_t count = 0;

	if (effort->sides[BENCH_OURS].bytes > 0) {
		further[count++] =
			(struct bench_further){"cpu_s_per_gib", cpu_s_per_gib(effort, BENCH_OURS)};
		further[count++] = (struct bench_further){
			"floor_cpu_s_per_gib", cpu_s_per_gib(effort, BENCH_FLOOR)};
	}
	if (effort->enters > 0) {
		further[count++] = (struct bench_further){
			"enters_per_request", (double)effort->enters / (double)effort->completed};
		further[count++] = (struct bench_further){"completions_per_enter",
			(double)effort->completed / (double)effort->enters};
	}
	return count;
}
