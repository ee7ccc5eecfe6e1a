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

/* CPUs, the kernel, io_uring and what keeps it from working. */
void doctor_machine(struct findings *findings, const struct pinion_machine *machine);
/* Locked memory, descriptors, the cgroup, huge pages. */
void doctor_limits(struct findings *findings, const struct pinion_machine *machine);
void doctor_arenas(struct findings *findings);
/* How the files below one path can be read. */
void doctor_path(struct findings *findings, const char *path);

/*
 * The value of "NAME:" in a file of such lines, or with NULL its first line;
 * false, and "" in `out`, when there is none.
 */
bool doctor_line(const char *path, const char *name, char *out, size_t size);

#endif
