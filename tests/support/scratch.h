/* SPDX-License-Identifier: MIT */
/*
 * A folder of a test's own, made below TMPDIR and entered, so that tests name
 * files by short relative paths; and trees deeper than a path can say.
 */
#ifndef PIN_TESTS_SUPPORT_SCRATCH_H
#define PIN_TESTS_SUPPORT_SCRATCH_H

#include "tests/support/expect.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char scratch_path[256];

/* The folder is open to other users, for tests that change theirs. */
static inline void scratch_enter(const char *name)
{
	const char *temporary = getenv("TMPDIR");

	snprintf(scratch_path, sizeof(scratch_path), "%.180s/%s.XXXXXX",
		temporary == NULL ? "/tmp" : temporary, name);
	expect_ready(scratch_path, mkdtemp(scratch_path) != NULL);
	expect_ready(scratch_path, chmod(scratch_path, 0755) == 0 && chdir(scratch_path) == 0);
}

/* rm(1) knows how to remove files that have no path. */
static inline void scratch_leave(void)
{
	pid_t child;

	expect_ready("chdir", chdir("/") == 0);
	child = fork();
	if (child == 0) {
		execlp("rm", "rm", "-rf", scratch_path, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(child, NULL, 0);
}

static inline void scratch_file(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);

	expect_ready(path, fd >= 0);
	expect_ready(path, write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/*
 * Makes `depth` folders one in the other, each named by `name_bytes` times
 * 'd', and in the last the file "leaf" with the text "leaf". Returns the
 * relative path of the last, for the caller to free.
 */
static inline char *scratch_deep(const char *top, size_t depth, size_t name_bytes)
{
	size_t top_bytes = strlen(top);
	char *path = malloc(top_bytes + depth * (name_bytes + 1) + 1);
	char name[256];
	char *end;
	int fd;

	expect_ready("malloc", path != NULL && name_bytes < sizeof(name));
	memset(name, 'd', name_bytes);
	name[name_bytes] = '\0';
	memcpy(path, top, top_bytes + 1);
	end = path + top_bytes;
	expect_ready(top, mkdir(top, 0755) == 0);
	fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	expect_ready(top, fd >= 0);
	for (size_t i = 0; i < depth; i++) {
		int next;

		expect_ready("mkdirat", mkdirat(fd, name, 0755) == 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		expect_ready("openat", next >= 0);
		close(fd);
		fd = next;
		*end++ = '/';
		memcpy(end, name, name_bytes + 1);
		end += name_bytes;
	}
	{
		int leaf = openat(fd, "leaf", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

		expect_ready("leaf", leaf >= 0 && write(leaf, "leaf", 4) == 4);
		close(leaf);
	}
	close(fd);
	return path;
}

/* Until the kernel has closed the file that had the lock; or the watchdog. */
static inline void scratch_await_lock(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC);

	expect_ready(name, fd >= 0);
	while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		sched_yield();
	}
	close(fd);
}

#endif
