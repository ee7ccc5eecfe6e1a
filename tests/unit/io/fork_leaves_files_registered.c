/* SPDX-License-Identifier: MIT */
/*
 * Goal: a process forks while a ring has a file registered. The child may close
 * its copy of the file or read it by a runtime of its own, there by its
 * descriptor, and what it opens itself is registered there; it touches nothing
 * of the parent's, whose reads go on as registered, and whose ring lets go of
 * the file when the parent closes it, though the child lives. G5.
 * Method: a lock of flock(2) shows when the kernel has let go of a file; the
 * child has closed its copy then and waits for a pipe.
 */
#include "tests/support/child.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

enum {
	BYTES = 4096,
	READS = 64, /* more than it takes */
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct requests_one one;
static uint8_t bytes[BYTES];

static bool start(struct pinion_runtime **out_runtime)
{
	struct pinion_runtime_info facts;

	*out_runtime = runtimes_start(1, PINION_IO_AUTO);
	pinion_runtime_get_info(*out_runtime, &facts, sizeof(facts));
	return facts.file_slots > 0;
}

static void make_file(const char *name)
{
	static char text[BYTES + 1];

	memset(text, name[0], BYTES);
	scratch_file(name, text);
}

static struct pinion_file open_file(const char *name)
{
	struct pinion_file opened;

	expect_ready(name, pinion_file_open(&opened, name, PINION_DIRECT_NEVER) == 0);
	/* Else the worker copies it from the cache by itself. */
	opened.cached_percent = 255;
	return opened;
}

static void read_often(struct pinion_runtime *by, struct pinion_file *opened, uint8_t content)
{
	for (uint32_t i = 0; i < READS; i++) {
		struct pinion_request *request = requests_begin(&one, PINION_OP_READ);

		memset(bytes, 0, BYTES);
		request->file = opened;
		request->bytes = bytes;
		request->length_bytes = BYTES;
		expect_number("bytes read", BYTES, requests_do(by, &one));
		expect_number("first", content, bytes[0]);
		expect_number("last", content, bytes[BYTES - 1]);
	}
}

static uint64_t registered_count(const struct pinion_runtime *by)
{
	return runtimes_counters(by).files_registered;
}

/* As in fork_leaves_parent_working: sanitizers allow no threads there. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static void read_in_own_runtime(void)
{
	struct pinion_runtime *own;
	struct pinion_file opened;

	if (!start(&own)) {
		pinion_runtime_destroy(own);
		return;
	}
	read_often(own, &file, 'a');
	expect_number("registered, of the parent's", 0, (long long)registered_count(own));
	opened = open_file("b");
	read_often(own, &opened, 'b');
	expect_number("registered, of its own", 1, (long long)registered_count(own));
	pinion_file_close(&file);
	read_often(own, &opened, 'b');
	pinion_file_close(&opened);
	expect_number("join", 0, pinion_runtime_join(own));
	pinion_runtime_destroy(own);
}
#endif

static int close_file(void *arg)
{
	(void)arg;
	runtimes_watchdog(LIMIT_SECONDS);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
	read_in_own_runtime();
#endif
	pinion_file_close(&file);
	expect_number("closed", -1, file.fd);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

/* In a child that stays until the parent has seen what it wants. */
static pid_t fork_child(int *out_end)
{
	int closed[2];
	int ends[2];
	char byte;
	pid_t child;

	fflush(stdout);
	expect_ready("pipes", pipe(closed) == 0 && pipe(ends) == 0);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		int status;

		close(ends[1]);
		status = close_file(NULL);
		fflush(stdout);
		close(closed[1]);
		(void)!read(ends[0], &byte, 1);
		_exit(status);
	}
	close(closed[1]);
	close(ends[0]);
	/* It has no end but that of the file. */
	(void)!read(closed[0], &byte, 1);
	close(closed[0]);
	*out_end = ends[1];
	return child;
}

int main(void)
{
	uint64_t plain;
	int status = 0;
	int end;
	pid_t child;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("fork_leaves_files_registered");
	make_file("a");
	make_file("b");
	if (!start(&runtime)) {
		pinion_runtime_destroy(runtime);
		scratch_leave();
		printf("skipped: no file can be registered here\n");
		return EXPECT_SKIPPED;
	}
	file = open_file("a");
	read_often(runtime, &file, 'a');
	expect_number("registered", 1, (long long)registered_count(runtime));
	plain = runtimes_counters(runtime).plain_file_transfers;

	child = fork_child(&end);
	read_often(runtime, &file, 'a');
	expect_number("still registered", 1, (long long)registered_count(runtime));
	expect_number("by descriptor since", 0,
		(long long)(runtimes_counters(runtime).plain_file_transfers - plain));
	expect_number("lock", 0, flock(file.fd, LOCK_EX));
	pinion_file_close(&file);
	scratch_await_lock("a");
	if (expect_number("the child is there", 0, waitpid(child, &status, WNOHANG))) {
		close(end);
		expect_ready("waitpid", waitpid(child, &status, 0) == child);
	}
	expect_number("child", 0, child_code(status));
	expect_number("join", 0, pinion_runtime_join(runtime));
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
