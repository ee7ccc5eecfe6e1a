/* SPDX-License-Identifier: MIT */
/*
 * From limits and what is used of them to the one that is reached.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "runtime/host/cgroup.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static size_t default_stack_bytes(void)
{
	pthread_attr_t attributes;
	size_t bytes = 0;

	if (pthread_getattr_default_np(&attributes) == 0) {
		pthread_attr_getstacksize(&attributes, &bytes);
		pthread_attr_destroy(&attributes);
	}
	return bytes;
}

/*
 * The most address space the process has had, in bytes; 0: not known. What it
 * has now may be less than at the failure, when another thread has given back
 * some meanwhile.
 */
static unsigned long long peak_bytes(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long long kib = 0;

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "VmPeak: %llu", &kib) == 1) {
			break;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return kib << 10;
}

static long long read_number(const struct pin_cgroup *group, const char *name)
{
	FILE *file = pin_cgroup_open(group, name);
	long long number = -1;

	if (file != NULL) {
		/* "max" is no number. */
		if (fscanf(file, "%lld", &number) != 1) {
			number = -1;
		}
		fclose(file);
	}
	return number;
}

static void find_reached(void *arg, const struct pin_cgroup *group)
{
	long long *reached = arg;
	long long max = read_number(group, "pids.max");

	if (max >= 0 && read_number(group, "pids.current") >= max) {
		*reached = max;
	}
}

void pin_threadlimit_hint_at(
	const char *root, int error, size_t stack_bytes, char *out, size_t size)
{
	size_t stack = stack_bytes > 0 ? stack_bytes : default_stack_bytes();
	struct rlimit space = {.rlim_cur = RLIM_INFINITY};
	struct rlimit processes = {.rlim_cur = RLIM_INFINITY};
	long long reached = -1;

	if (error != -EAGAIN) {
		snprintf(out, size, "%s", strerror(-error));
		return;
	}
	getrlimit(RLIMIT_AS, &space);
	getrlimit(RLIMIT_NPROC, &processes);
	if (space.rlim_cur != RLIM_INFINITY && peak_bytes() + stack > space.rlim_cur) {
		snprintf(out, size,
			"its stack of %zu KiB does not fit below `ulimit -v` %llu; raise that "
			"(LimitAS= in the systemd unit)",
			stack >> 10, (unsigned long long)space.rlim_cur >> 10);
		return;
	}
	pin_cgroup_visit(root, "pids", find_reached, &reached);
	if (reached >= 0) {
		snprintf(out, size,
			"the cgroup has reached its pids.max of %lld; raise that (TasksMax= in the "
			"systemd unit)",
			reached);
	} else if (processes.rlim_cur != RLIM_INFINITY) {
		snprintf(out, size,
			"the user has reached `ulimit -u` %llu; raise that (LimitNPROC= in the "
			"systemd unit)",
			(unsigned long long)processes.rlim_cur);
	} else {
		snprintf(out, size,
			"the system has no thread left; raise sysctl kernel.threads-max and "
			"kernel.pid_max");
	}
}

void pin_threadlimit_hint(int error, size_t stack_bytes, char *out, size_t size)
{
	pin_threadlimit_hint_at("", error, stack_bytes, out, size);
}
