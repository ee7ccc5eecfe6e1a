/* SPDX-License-Identifier: MIT */
/*
 * Threads by /proc/self/task and their CPU clocks.
 */
#include "tools/bench/usage.h"

#include "tools/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int usage_list(struct usage_threads *out_threads)
{
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	int rc = 0;

	out_threads->count = 0;
	if (folder == NULL) {
		rc = -errno;
		report_line("cannot list threads, is /proc mounted? %s", report_reason(rc));
		return rc;
	}
	while ((entry = readdir(folder)) != NULL && out_threads->count < USAGE_THREADS_MAX) {
		pid_t id = (pid_t)strtol(entry->d_name, NULL, 10);

		if (id > 0) {
			out_threads->ids[out_threads->count++] = id;
		}
	}
	closedir(folder);
	return rc;
}

bool usage_holds(const struct usage_threads *threads, pid_t id)
{
	for (uint32_t i = 0; i < threads->count; i++) {
		if (threads->ids[i] == id) {
			return true;
		}
	}
	return false;
}

/*
 * The kernel's number for the CPU clock of a thread, which the C library only
 * gives for threads that it started: the complement of the id, then 4 for a
 * thread, not a process, and 2 for exact time.
 */
static clockid_t thread_clock(pid_t id)
{
	return (clockid_t)((~(unsigned int)id << 3) | 4u | 2u);
}

static uint64_t read_cpu_ns(pid_t id)
{
	struct timespec used;

	if (clock_gettime(thread_clock(id), &used) != 0) {
		return 0;
	}
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static uint64_t read_switches(pid_t id)
{
	char path[64];
	char line[256];
	uint64_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)id);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *key = strstr(line, "voluntary_ctxt_switches:");

		/* Also the line that begins with "non". */
		if (key != NULL) {
			count += strtoull(strchr(key, ':') + 1, NULL, 10);
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return count;
}

void usage_read(const struct usage_threads *threads, struct usage *out_usage)
{
	*out_usage = (struct usage){0};
	for (uint32_t i = 0; i < threads->count; i++) {
		out_usage->cpu_ns += read_cpu_ns(threads->ids[i]);
		out_usage->switch_count += read_switches(threads->ids[i]);
	}
}
