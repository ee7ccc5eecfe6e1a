/* SPDX-License-Identifier: MIT */
/*
 * What threads of this process have used: CPU time, and how often they were
 * switched to something else.
 */
#ifndef PINION_TOOLS_BENCH_USAGE_H
#define PINION_TOOLS_BENCH_USAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { USAGE_THREADS_MAX = 256 };

struct usage_threads {
	uint32_t count;
	pid_t ids[USAGE_THREADS_MAX];
};

struct usage {
	uint64_t cpu_ns;
	uint64_t switch_count; /* voluntary and others */
};

/* All there are now. Returns 0 or an error that is reported. */
int usage_list(struct usage_threads *out_threads);
bool usage_holds(const struct usage_threads *threads, pid_t id);

/*
 * Sums of those threads; a thread that has ended since it was listed counts
 * nothing.
 */
void usage_read(const struct usage_threads *threads, struct usage *out_usage);

#endif
