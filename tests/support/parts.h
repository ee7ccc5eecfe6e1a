/* SPDX-License-Identifier: MIT */
/*
 * Many runs of a test by several processes at once, for tests that sleep most
 * of the time.
 */
#ifndef PIN_TESTS_SUPPORT_PARTS_H
#define PIN_TESTS_SUPPORT_PARTS_H

#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	PARTS_RUNS = 20000, /* of a process at least, if there are several */
	PARTS_MAX = 16,
};

/* In a folder and with numbers of its own. */
static inline void parts_be(unsigned long part, struct random_source *source, unsigned long count,
	void (*run)(unsigned long))
{
	char folder[32];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(folder, sizeof(folder), "part%lu", part);
	expect_ready("folder", mkdir(folder, 0700) == 0 && chdir(folder) == 0);
	source->state += part;
	run(count);
	fflush(stdout);
	_exit(expect_status());
}

/* run(n), by one process or many; the n add up to `count`. */
static inline void parts_run(
	unsigned long count, struct random_source *source, void (*run)(unsigned long))
{
	unsigned long parts = count / PARTS_RUNS < PARTS_MAX ? count / PARTS_RUNS : PARTS_MAX;
	pid_t children[PARTS_MAX];

	if (parts < 2) {
		run(count);
		return;
	}
	fflush(stdout);
	for (unsigned long i = 0; i < parts; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			parts_be(i, source, count / parts + (i < count % parts), run);
		}
		expect_ready("fork", children[i] > 0);
	}
	for (unsigned long i = 0; i < parts; i++) {
		int status = -1;

		expect_ready("wait", waitpid(children[i], &status, 0) == children[i]);
		expect_number("a part", 0, status);
	}
}

#endif
