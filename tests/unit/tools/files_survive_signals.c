/* SPDX-License-Identifier: MIT */
/*
 * Goal: a signal that comes while a command writes a file does not end it; a
 * second one does, removes the part that is there, and says so. A file that is
 * done stays. EX-37.
 * Method: children that write, and say by pipes how far they are.
 */
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tools/report.h"
#include "tools/signals.h"

enum part { FIRST, SECOND, DONE };

static int came[2]; /* a byte when the child has gone so far */

static void say_so(void)
{
	expect_ready("pipe", write(came[1], "x", 1) == 1);
}

static void await(void)
{
	char byte;

	expect_ready("pipe", read(came[0], &byte, 1) == 1);
}

/* Writes for ever, or until the second signal. */
static int write_file(void *arg)
{
	enum part part = *(const enum part *)arg;

	report_name_command("test");
	signals_hold();
	signals_begin_file("file", part == DONE ? "gone" : "draft");
	scratch_file("draft", "half");
	say_so();
	while (!signals_interrupted()) {
		sched_yield();
	}
	if (part == FIRST) {
		signals_end_file();
		signals_release();
		return expect_status();
	}
	say_so();
	for (;;) {
		pause();
	}
}

static pid_t start(enum part *part, int *error_fd)
{
	int ends[2];
	pid_t child;

	expect_ready("pipes", pipe(came) == 0 && pipe(ends) == 0);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		_exit(write_file(part));
	}
	close(ends[1]);
	*error_fd = ends[0];
	await();
	expect_ready("kill", kill(child, SIGTERM) == 0);
	return child;
}

/* What it has said; its code. */
static int finish(pid_t child, int error_fd, char text[256])
{
	int status;
	ssize_t length;

	expect_ready("waitpid", waitpid(child, &status, 0) == child);
	length = read(error_fd, text, 255);
	text[length > 0 ? length : 0] = '\0';
	close(error_fd);
	close(came[0]);
	close(came[1]);
	return child_code(status);
}

static void check(enum part part, int code, bool is_left, const char *line)
{
	char text[256];
	int error_fd;
	pid_t child = start(&part, &error_fd);

	if (part != FIRST) {
		await();
		expect_ready("kill", kill(child, SIGTERM) == 0);
	}
	expect_number("ends", code, finish(child, error_fd, text));
	expect_text("says", line, text);
	expect_true("the draft", (access("draft", F_OK) == 0) == is_left);
	(void)unlink("draft");
}

int main(void)
{
	scratch_enter("files_survive_signals");
	check(FIRST, 0, true, "");
	check(SECOND, 128 + SIGTERM, false,
		"pinion test: stopped by a signal: file is not written\n");
	/* It has its name already. */
	check(DONE, 128 + SIGTERM, true, "");
	scratch_leave();
	return expect_status();
}
