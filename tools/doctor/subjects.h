/* SPDX-License-Identifier: MIT */
/*
 * What the doctor looks at. Each adds its subjects to the findings; nothing is
 * written to the machine and nothing is changed.
 */
#ifndef PINION_TOOLS_DOCTOR_SUBJECTS_H
#define PINION_TOOLS_DOCTOR_SUBJECTS_H

#include "tools/doctor/findings.h"

#include <pinion/machine.h>
#include <stdbool.h>
#include <stddef.h>

enum { DOCTOR_WORKERS_MAX = 4096 };

/* Where the workers of a runtime of default size were. */
struct doctor_workers {
	int cpus[DOCTOR_WORKERS_MAX]; /* -1: not known */
	uint32_t count;		      /* 0: there was no runtime */
};

/* CPUs, the kernel, io_uring and what keeps it from working. */
void doctor_machine(struct findings *findings, const struct pinion_machine *machine);
/* Locked memory, descriptors, the cgroup, huge pages. */
void doctor_limits(struct findings *findings, const struct pinion_machine *machine);
/* Probes, tracepoints, rings and processes that can be observed here. */
void doctor_observing(struct findings *findings);
/* Its memory, and to which CPUs it bound its workers. */
void doctor_arenas(struct findings *findings, struct doctor_workers *out_workers);
/* How the files below one path can be read, and how far those are from it. */
void doctor_path(struct findings *findings, const char *path, const struct doctor_workers *workers);

/*
 * Of a device: the node it is attached to, how many are there, and that none
 * is. `root` is where /sys is, "" but for tests.
 */
void doctor_distance(struct findings *findings, const char *root, uint32_t node_index,
	const struct doctor_workers *workers);

/*
 * The value of "NAME:" in a file of such lines, or with NULL its first line;
 * false, and "" in `out`, when there is none.
 */
bool doctor_line(const char *path, const char *name, char *out, size_t size);

#endif
