/* SPDX-License-Identifier: MIT */
/*
 * What turns have taken besides time: CPU time for each GiB, of the whole
 * process and so of the kernel's part as well, and calls of io_uring_enter for
 * each request of ours.
 */
#ifndef PINION_TOOLS_BENCH_EFFORT_H
#define PINION_TOOLS_BENCH_EFFORT_H

#include "tools/bench/subject.h"

/* Zero-initialise. The first turn of a side goes before and does not count. */
struct effort {
	struct {
		bool has_warmed_up;
		uint64_t cpu_ns;
		uint64_t bytes;
	} sides[BENCH_SIDE_COUNT];
	uint64_t enters;
	uint64_t completed; /* requests */
	/* Of the turn in hand, as it began. */
	uint64_t cpu_before_ns;
	struct pinion_runtime_stats before;
};

void effort_begin(struct effort *effort, const struct pinion_runtime *runtime);

/* `bytes`: how much was moved; 0 where a subject moves none. */
void effort_end(struct effort *effort, const struct pinion_runtime *runtime, enum bench_side side,
	uint64_t bytes);

/*
 * cpu_s_per_gib, floor_cpu_s_per_gib; enters_per_request and its inverse,
 * completions_per_enter. None of the first two where no bytes were moved, none
 * of the others where nothing went through a ring. Returns how many.
 */
uint32_t effort_further(
	const struct effort *effort, struct bench_further further[BENCH_FURTHER_MAX]);

#endif
