/* SPDX-License-Identifier: MIT */
/*
 * Whether threads of this process were kept from running though they could, by
 * others that had the CPU or by a machine around this one. What a thread does
 * late for that is no fault of its program.
 */
#ifndef PIN_TESTS_SUPPORT_HOLDUPS_H
#define PIN_TESTS_SUPPORT_HOLDUPS_H

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct holdups {
	uint64_t waited_ns; /* for a CPU, all threads together */
	uint64_t stolen;    /* from this machine, in ticks of all CPUs */
};

/* Some kernels do not tell: 0. */
static inline uint64_t holdups_of_thread(const char *thread)
{
	char path[sizeof("/proc/self/task//schedstat") + 256];
	uint64_t waited_ns = 0;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", thread);
	stream = fopen(path, "re");
	if (stream != NULL) {
		if (fscanf(stream, "%*u %" SCNu64, &waited_ns) != 1) {
			waited_ns = 0;
		}
		fclose(stream);
	}
	return waited_ns;
}

static inline uint64_t holdups_by_machine(void)
{
	FILE *stream = fopen("/proc/stat", "re");
	uint64_t stolen = 0;

	if (stream != NULL) {
		if (fscanf(stream, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &stolen) != 1) {
			stolen = 0;
		}
		fclose(stream);
	}
	return stolen;
}

/* Since each of its threads began. */
static inline struct holdups holdups_look(void)
{
	struct holdups now = {.stolen = holdups_by_machine()};
	DIR *entries = opendir("/proc/self/task");
	const struct dirent *entry;

	while (entries != NULL && (entry = readdir(entries)) != NULL) {
		if (entry->d_name[0] != '.') {
			now.waited_ns += holdups_of_thread(entry->d_name);
		}
	}
	if (entries != NULL) {
		closedir(entries);
	}
	return now;
}

/* Whether some thread may have been held up for so long since that look. */
static inline bool holdups_may_have(const struct holdups *before, uint64_t limit_ns)
{
	struct holdups now = holdups_look();

	return now.waited_ns - before->waited_ns >= limit_ns || now.stolen != before->stolen;
}

#endif
