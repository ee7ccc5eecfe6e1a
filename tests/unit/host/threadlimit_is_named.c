/* SPDX-License-Identifier: MIT */
/*
 * Goal: of the limits that may refuse a thread, the line names the limit that
 * is reached, with its value. G6.
 * Method: recorded /proc and cgroup trees in tests/fixtures/cgroup, and limits
 * of this process; each line is compared as a whole.
 */
#include "runtime/host/cgroup.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void check(const char *name, int error, size_t stack_bytes, const char *expected)
{
	const char *top = getenv("top_srcdir");
	char root[2000];
	char hint[192];

	snprintf(root, sizeof(root), "%s/tests/fixtures/cgroup/%s", top == NULL ? "." : top, name);
	pin_threadlimit_hint_at(root, error, stack_bytes, hint, sizeof(hint));
	expect_text(name, expected, hint);
}

static void limit_softly(__rlimit_resource_t resource, rlim_t value)
{
	struct rlimit limit;

	expect_number("getrlimit", 0, getrlimit(resource, &limit));
	limit.rlim_cur = value;
	expect_number("setrlimit", 0, setrlimit(resource, &limit));
}

int main(void)
{
	const char *user = "the user has reached `ulimit -u` 77; raise that (LimitNPROC= in the "
			   "systemd unit)";
	const char *group = "the cgroup has reached its pids.max of 64; raise that (TasksMax= in "
			    "the systemd unit)";
	struct rlimit processes;
	struct rlimit space;
	struct rlimit data;

	expect_number("getrlimit", 0, getrlimit(RLIMIT_AS, &space));
	expect_number("getrlimit", 0, getrlimit(RLIMIT_DATA, &data));
	expect_number("getrlimit", 0, getrlimit(RLIMIT_NPROC, &processes));
	check("pids_v2_full", -EINVAL, 0, "Invalid argument");
	check("pids_v2_full", -EAGAIN, 65536, group);
	limit_softly(RLIMIT_NPROC, 77);
	check("pids_v2_full", -EAGAIN, 65536, group);
	check("pids_v2_free", -EAGAIN, 65536, user);
	check("no_such_machine", -EAGAIN, 65536, user);
	if (processes.rlim_max == RLIM_INFINITY) {
		limit_softly(RLIMIT_NPROC, RLIM_INFINITY);
		check("pids_v2_free", -EAGAIN, 65536,
			"the system has no thread left; raise sysctl kernel.threads-max and "
			"kernel.pid_max");
	}
	/* More than the addresses there are: only such a stack does not fit. */
	if (space.rlim_max == RLIM_INFINITY) {
		limit_softly(RLIMIT_AS, (rlim_t)1 << 62);
		check("pids_v2_full", -EAGAIN, (size_t)1 << 62,
			"its stack of 4503599627370496 KiB does not fit below `ulimit -v` "
			"4503599627370496; raise that (LimitAS= in the systemd unit)");
		check("pids_v2_full", -EAGAIN, 65536, group);
	}
	if (data.rlim_max == RLIM_INFINITY) {
		limit_softly(RLIMIT_DATA, (rlim_t)1 << 61);
		check("pids_v2_full", -EAGAIN, (size_t)1 << 61,
			"its stack of 2251799813685248 KiB does not fit below `ulimit -d` "
			"2251799813685248; raise that (LimitDATA= in the systemd unit)");
		check("pids_v2_full", -EAGAIN, 65536, group);
	}
	return expect_status();
}
