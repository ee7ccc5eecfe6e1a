/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tells of a thread of this process. Those that it makes for
 * rings are among them, and have the name of who made them at first.
 */
#ifndef PIN_TESTS_SUPPORT_THREADS_H
#define PIN_TESTS_SUPPORT_THREADS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct threads_seen {
	char state;	 /* 0: it has ended meanwhile */
	bool is_kernels; /* it works for a ring; from its first instant */
};

/* `thread`: its name in /proc/self/task. */
static inline struct threads_seen threads_look(const char *thread)
{
	enum { PF_IO_WORKER = 0x10 }; /* of the kernel, since Linux 5.12 */

	char path[sizeof("/proc/self/task//stat") + 256];
	struct threads_seen seen = {.state = 0};
	char line[512] = "";
	unsigned flags = 0;
	const char *end;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", thread);
	stat = fopen(path, "re");
	if (stat == NULL) {
		return seen;
	}
	end = fgets(line, sizeof(line), stat) == NULL ? NULL : strrchr(line, ')');
	fclose(stat);
	if (end != NULL && sscanf(end, ") %c %*d %*d %*d %*d %*d %u", &seen.state, &flags) == 2) {
		seen.is_kernels = (flags & PF_IO_WORKER) != 0;
	}
	return seen;
}

#endif
