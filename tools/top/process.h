/* SPDX-License-Identifier: MIT */
/*
 * What /proc says of processes, for pinion top: reading it needs no help of
 * theirs.
 */
#ifndef PINION_TOOLS_TOP_PROCESS_H
#define PINION_TOOLS_TOP_PROCESS_H

#include <pinion/metrics.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TOP_COMM_BYTES = 64 }; /* the kernel's are of 16 */

struct top_process {
	int pid;
	uint64_t start; /* field 22 of its stat, in ticks since the boot */
	uint64_t cpu_ns;
	char state;		   /* as stat has it */
	char comm[TOP_COMM_BYTES]; /* any bytes: for output_text_escaped() */
};

/*
 * False: there is none, or it has ended and waits for its parent; then its
 * state and name are there.
 */
bool top_process_read(int pid, struct top_process *out_process);

static inline bool top_process_is_zombie(const struct top_process *process)
{
	return process->state == 'Z';
}

/* By a signal, or a debugger: it runs nothing, and this is no fault of its. */
static inline bool top_process_is_stopped(const struct top_process *process)
{
	return process->state == 'T' || process->state == 't';
}

/* Of its threads of now, all together. */
struct top_threads {
	uint64_t wait_ns;      /* for how long they could have run and had no CPU */
	uint32_t io_wq_count;  /* the kernel's own that do what its rings cannot */
	uint64_t io_wq_cpu_ns; /* CPU time of these */
};

/* False: the kernel does not say. */
bool top_process_read_threads(int pid, struct top_threads *out_threads);

/*
 * Returns the process that its own namespace calls `pid` and that has started
 * then, or 0: there is none that can be seen from here. Of several, as of
 * containers that were started together, the one that has `metrics` open.
 */
int top_process_find(uint64_t pid, uint64_t start, const struct pinion_metrics *metrics);

/* Whether it is this user's; all are root's. */
bool top_process_is_ours(int pid);

/*
 * The processes that /proc shows, in order. NULL: it could not be read, or
 * there is no memory.
 */
int *top_process_list(size_t *out_count);

/* Whether the machine has been running since then. */
bool top_boot_is(const char *boot_id);

#endif
