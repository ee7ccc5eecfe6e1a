/* SPDX-License-Identifier: MIT */
/*
 * Goal: a signal that comes while a command writes a file does not end it, nor
 * do those that come with it, as timeout(1) sends two; a later one does,
 * removes the part that is there, also while it is being made, and says so;
 * SIGQUIT does so at once. A file that is done stays. EX-37.
 * Method: children that write, and say by a pipe how far they are. Two signals
 * come at once where both wait when the thread that takes them begins.
 */
#include "tests/support/child.h"
#include "tests/support/scratch.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <time.h>

enum part { FIRST, SECOND, MAKING, DONE, QUIT, PARTS };

/* Longer than those that come with the first signal are ignored. */
enum { LATER_MS = 600 };

static const struct timespec a_while = {.tv_nsec = 10000000};

static struct writer {
	int came[2]; /* a byte when the child has gone so far */
	int error[2];
	pid_t child;
} writers[PARTS];

static const char *const drafts[PARTS] = {"first", "second", "making", "done", "quit"};

static uint64_t milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* In the child. */
static void say_so(enum part part)
{
	expect_ready("pipe", write(writers[part].came[1], "x", 1) == 1);
}

static int make_draft(void *arg)
{
	enum part part = *(const enum part *)arg;
	uint64_t end_ms = milliseconds_now() + LATER_MS;

	scratch_file(drafts[part], "half");
	if (part == MAKING) {
		say_so(part);
		/* It is to last: a second signal waits until it returns. */
		while (milliseconds_now() < end_ms) {
			nanosleep(&a_while, NULL);
		}
	}
	return 0;
}

/* Writes for ever, or until the second signal. */
static int write_file(enum part part)
{
	sigset_t both;

	report_name_command("test");
	signal(SIGHUP, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&both);
	sigaddset(&both, SIGHUP);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, NULL);
	if (part != QUIT) {
		kill(getpid(), SIGHUP);
		kill(getpid(), SIGTERM);
	}
	signals_hold();
	while (part != QUIT && !signals_interrupted()) {
		sched_yield();
	}
	expect_number("made", 0, signals_begin_draft("file", drafts[part], make_draft, &part));
	if (part == FIRST) {
		signals_end_file();
		signals_release();
		return expect_status();
	}
	say_so(part);
	for (;;) {
		pause();
	}
}

static void start(enum part part)
{
	struct writer *writer = &writers[part];

	expect_ready("pipes", pipe(writer->came) == 0 && pipe(writer->error) == 0);
	writer->child = fork();
	expect_ready("fork", writer->child >= 0);
	if (writer->child == 0) {
		struct rlimit none = {0, 0};

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGQUIT, SIG_DFL);
		dup2(writer->error[1], STDERR_FILENO);
		_exit(write_file(part));
	}
	close(writer->came[1]);
	close(writer->error[1]);
}

/* False: it has ended before. */
static bool await(enum part part)
{
	char byte;

	return read(writers[part].came[0], &byte, 1) == 1;
}

/*
 * Sends signals until it ends by one; those at first are part of the first. One
 * SIGQUIT suffices.
 */
static void check(enum part part, int code, const char *line)
{
	const struct writer *writer = &writers[part];
	char text[256];
	ssize_t length;
	int status;

	if (part == QUIT) {
		kill(writer->child, SIGQUIT);
	}
	while (waitpid(writer->child, &status, part == FIRST || part == QUIT ? 0 : WNOHANG) == 0) {
		kill(writer->child, SIGTERM);
		nanosleep(&a_while, NULL);
	}
	length = read(writer->error[0], text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = '\0';
	close(writer->error[0]);
	close(writer->came[0]);
	expect_number("ends", code, child_code(status));
	expect_text("says", line, text);
}

int main(void)
{
	static const char line[] = "pinion test: stopped by a signal: file is not written\n";

	scratch_enter("files_survive_signals");
	for (enum part part = FIRST; part < PARTS; part++) {
		start(part);
	}
	expect_true("it writes", await(SECOND) && await(MAKING) && await(DONE) && await(QUIT));
	(void)rename(drafts[DONE], "file");
	check(FIRST, 0, "");
	check(MAKING, 128 + SIGTERM, line);
	check(SECOND, 128 + SIGTERM, line);
	check(QUIT, 128 + SIGQUIT, line);
	/* It has its name already. */
	check(DONE, 128 + SIGTERM, "");
	expect_true("no draft is left",
		access(drafts[MAKING], F_OK) != 0 && access(drafts[SECOND], F_OK) != 0 &&
			access(drafts[QUIT], F_OK) != 0);
	expect_true("what is done stays", access(drafts[FIRST], F_OK) == 0);
	expect_true("and has its name", access("file", F_OK) == 0);
	scratch_leave();
	return expect_status();
}
