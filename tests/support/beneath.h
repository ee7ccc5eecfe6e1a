/* SPDX-License-Identifier: MIT */
/*
 * Scans beneath a root while the owner of its files exchanges them for links:
 * the ways in which the library can open a file there, each in a process of its
 * own, and the exchange.
 */
#ifndef PIN_TESTS_SUPPORT_BENEATH_H
#define PIN_TESTS_SUPPORT_BENEATH_H

#include "runtime/base/base.h"
#include "tests/support/child.h"
#include "tests/support/filter.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

enum {
	BENEATH_EXCHANGE = 2, /* RENAME_EXCHANGE */
	BENEATH_WORKERS = 2,
};

struct beneath_way {
	const char *name;
	enum pinion_io_level level;
	int answer; /* to openat2, 0: the kernel's own */
};

static inline void beneath_exchange(const char *left, const char *right)
{
	long rc = syscall(SYS_renameat2, AT_FDCWD, left, AT_FDCWD, right, BENEATH_EXCHANGE);

	expect_ready("renameat2", rc == 0);
}

/* A runtime of that way; for good in this process. NULL: not allowed here. */
static inline struct pinion_runtime *beneath_start(const struct beneath_way *way)
{
	if (way->answer != 0 && !filter_refuse(SYS_openat2, way->answer)) {
		return NULL;
	}
	return runtimes_start(BENEATH_WORKERS, way->level);
}

/* Calls it with each struct beneath_way, in a child. */
static inline void beneath_each_way(int (*live)(void *way))
{
	static const struct beneath_way ways[] = {
		{"auto", PINION_IO_AUTO, 0},
		{"fallback", PINION_IO_FALLBACK, 0},
		{"auto without openat2", PINION_IO_AUTO, ENOSYS},
		{"fallback without openat2", PINION_IO_FALLBACK, EPERM},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(ways); i++) {
		struct beneath_way way = ways[i];
		int code = child_code(child_run(live, &way, NULL, 0));

		if (code == EXPECT_SKIPPED) {
			printf("%s: seccomp filters are not allowed here\n", way.name);
		} else {
			expect_number(way.name, 0, code);
		}
	}
}

#endif
