/* SPDX-License-Identifier: MIT */
/*
 * Runs a test's dangerous part in a forked child: an abort, a changed limit,
 * another user, a filter on system calls.
 */
#ifndef PIN_TESTS_SUPPORT_CHILD_H
#define PIN_TESTS_SUPPORT_CHILD_H

#include "tests/support/expect.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Runs `body` in a child and returns its wait status; `body`'s result is its
 * exit status. What it writes to stderr comes back in `output`, which may be
 * NULL: then it goes where ours goes. To be called while there is one thread.
 */
static inline int child_run(int (*body)(void *), void *arg, char *output, size_t output_bytes)
{
	size_t length = 0;
	int ends[2];
	int status = 0;
	pid_t child;

	fflush(stdout);
	expect_ready("pipe", pipe(ends) == 0);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		struct rlimit none = {0, 0};
		int result;

		expect_failure_count = 0;
		close(ends[0]);
		setrlimit(RLIMIT_CORE, &none);
		if (output != NULL) {
			dup2(ends[1], STDERR_FILENO);
		}
		close(ends[1]);
		result = body(arg);
		fflush(stdout);
		_exit(result);
	}
	close(ends[1]);
	for (;;) {
		char byte;
		ssize_t got = read(ends[0], &byte, 1);

		if (got <= 0) {
			break;
		}
		if (output != NULL && length + 1 < output_bytes) {
			output[length] = byte;
			length++;
		}
	}
	if (output != NULL) {
		output[length] = '\0';
	}
	close(ends[0]);
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
	return status;
}

/* The exit status of a child that ended by itself, 128 + signal of another. */
static inline int child_code(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The child aborts and says `wanted` on stderr. */
static inline void child_expect_abort(
	const char *what, int (*body)(void *), void *arg, const char *wanted)
{
	char output[1024];
	int status = child_run(body, arg, output, sizeof(output));

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(output, wanted) == NULL) {
		printf("%s: expected SIGABRT and \"%s\", got status %d and \"%.200s\"\n", what,
			wanted, child_code(status), output);
		expect_failure_count++;
	}
}

#endif
