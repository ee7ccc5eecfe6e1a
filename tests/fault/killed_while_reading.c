/* SPDX-License-Identifier: MIT */
/*
 * Goal: SIGKILL while a process reads ends it at once, whatever is in flight,
 * and the next process can read the same files.
 * Method: 20 children scan a few files over and over and say so through a pipe;
 * each is killed after another number of files, with and without rings. In the
 * end this process scans them itself and compares every byte.
 */
#include "tests/support/scans.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum {
	CHILDREN = 20,
	FILES = 6,
	SIZE = 300000,
	LIMIT_SECONDS = 60,
};

static int said; /* in a child: where each file read is said */

static int say(const struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)file;
	return window->index == 0 && write(said, "x", 1) != 1 ? -EPIPE : 0;
}

static void scan_once(struct pinion_runtime *runtime, uint32_t direct)
{
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	scans_config(&config);
	config.direct = direct;
	config.window_bytes = 16 << 10;
	scan = scans_create(runtime, &config);
	for (uint32_t i = 0; i < FILES; i++) {
		scans_add(scan, i);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
}

/* Never returns; ends with the pipe's reader at the latest. */
static void read_for_ever(int number)
{
	struct pinion_runtime *runtime =
		runtimes_start(2, number % 4 == 3 ? PINION_IO_FALLBACK : PINION_IO_AUTO);

	scans_window_hook = say;
	for (;;) {
		scan_once(runtime, number % 2 == 0 ? PINION_DIRECT_ALWAYS : PINION_DIRECT_NEVER);
		if (expect_failure_count > 0) {
			_exit(1);
		}
	}
}

static void kill_one(int number)
{
	int ends[2];
	int status;
	pid_t child;

	fflush(stdout);
	expect_ready("pipe", pipe(ends) == 0);
	child = fork();
	expect_ready("fork", child >= 0);
	if (child == 0) {
		close(ends[0]);
		said = ends[1];
		read_for_ever(number);
	}
	close(ends[1]);
	for (int i = 0; i <= number * 3; i++) {
		char byte;

		expect_true("it reads", read(ends[0], &byte, 1) == 1);
	}
	expect_ready("kill", kill(child, SIGKILL) == 0);
	expect_ready("waitpid", waitpid(child, &status, 0) == child);
	expect_true("it was killed", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(ends[0]);
}

int main(void)
{
	struct pinion_runtime *runtime;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("killed_while_reading");
	for (uint32_t i = 0; i < FILES; i++) {
		scans_make(i, SIZE + i * 4097);
	}
	for (int i = 0; i < CHILDREN; i++) {
		kill_one(i);
	}
	runtime = runtimes_start(2, PINION_IO_AUTO);
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		scan_once(runtime, direct);
		for (uint32_t i = 0; i < FILES; i++) {
			scans_expect_end(i, PINION_SCAN_DONE, 0);
		}
	}
	pinion_runtime_destroy(runtime);
	scans_forget();
	scratch_leave();
	return expect_status();
}
