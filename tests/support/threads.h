/* SPDX-License-Identifier: MIT */
/*
 * The kernel's facts about a thread of this process. Those that it makes for
 * rings are among them, and have the name of their maker at first.
 */
#ifndef PIN_TESTS_SUPPORT_THREADS_H
#define PIN_TESTS_SUPPORT_THREADS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct threads_seen {
	char state;	 /* 0: it has ended meanwhile */
	bool is_kernels; /* it works for a ring; from its first instant */
	/*
	 * A joined thread may still be on its way out of the kernel, which has
	 * it in /proc until it is gone. True of a thread that has ended, too.
	 */
	bool is_leaving;
};

/* `thread`: its name in /proc/self/task. */
static inline struct threads_seen threads_look(const char *thread)
{
	/* The kernel's; the latter since Linux 5.12. */
	enum { PF_EXITING = 0x4, PF_IO_WORKER = 0x10 };

	char path[sizeof("/proc/self/task//stat") + 256];
	struct threads_seen seen = {.is_leaving = true};
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
		seen.is_leaving = (flags & PF_EXITING) != 0;
	}
	return seen;
}

#endif
