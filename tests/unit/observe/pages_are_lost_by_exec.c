/* SPDX-License-Identifier: MIT */
/*
 * Goal: a process that calls exec(2) has lost its page, although number and
 * start of the process stay: pinion_metrics_is_open() and `pinion top` say so,
 * of files and of pages that were open before. It is open as long as its
 * writer has it so, and by a reader, or by the writer of another page, it is
 * not. WP-33.
 * Method: a child that makes two pages, and becomes another program when it is
 * told to.
 */
#include "runtime/observe/metrics_page.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/top/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pinion/metrics.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static const struct pin_log log_lines = {.fn = NULL};

static struct pin_metrics_page *make(const char *path)
{
	struct pin_page_setup setup = {.host = &pin_host_linux,
		.log = &log_lines,
		.worker_count = 1,
		.is_shared = true,
		.path = path};
	struct pin_metrics_page *page = NULL;

	expect_ready("page", pin_metrics_page_create(&setup, &page) == 0);
	return page;
}

static void wait_for(int fd)
{
	char byte;

	expect_ready("a byte, or the end", read(fd, &byte, 1) >= 0);
}

/* The end of `ready` is closed by its exec. */
static void be_replaced(int ready, int told)
{
	make("page");
	make(NULL);
	expect_ready("ready", write(ready, "", 1) == 1);
	wait_for(told);
	execlp("sleep", "sleep", "60", (char *)NULL);
	_exit(1);
}

static void expect_states(struct top_watch *watch, enum top_state state)
{
	top_watch_read(watch);
	/* By its number both, and the file by its name. */
	expect_ready("pages", watch->count == 3);
	for (size_t i = 0; i < watch->count; i++) {
		expect_number(watch->pages[i].path == NULL ? "of the process" : "of the file",
			state, watch->pages[i].state);
		expect_number("a process", state == TOP_ALIVE, watch->pages[i].has_process);
	}
}

static void check_exec(void)
{
	char number[16];
	char file[] = "./page";
	char *operands[] = {number, file};
	struct top_watch watch = {.operands = operands, .operand_count = 2};
	struct pinion_metrics *metrics = NULL;
	int ready[2];
	int told[2];
	pid_t child;

	expect_ready("pipes", pipe2(ready, O_CLOEXEC) == 0 && pipe2(told, O_CLOEXEC) == 0);
	child = fork();
	if (child == 0) {
		close(ready[0]);
		close(told[1]);
		be_replaced(ready[1], told[0]);
	}
	expect_ready("fork", child > 0);
	close(ready[1]);
	wait_for(ready[0]);
	snprintf(number, sizeof(number), "%d", (int)child);
	expect_ready("open", pinion_metrics_open("page", NULL, NULL, &metrics) == 0);
	expect_number("before", 1, pinion_metrics_is_open(metrics, child));
	expect_number("a reader has it not", 0, pinion_metrics_is_open(metrics, getpid()));
	expect_ready("find", top_watch_find(&watch));
	expect_states(&watch, TOP_ALIVE);
	expect_ready("told", write(told[1], "", 1) == 1);
	wait_for(ready[0]);
	/* Perhaps one descriptor is closed before the other. */
	for (int i = 0; i < 1000 && pinion_metrics_is_open(metrics, child) == 1; i++) {
		usleep(1000);
	}
	expect_number("after", 0, pinion_metrics_is_open(metrics, child));
	expect_states(&watch, TOP_DEAD);
	expect_ready("kill", kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	expect_number("no process", -ESRCH, pinion_metrics_is_open(metrics, child));
	while (watch.count > 0) {
		top_page_fini(&watch.pages[--watch.count]);
	}
	free(watch.pages);
	free(watch.files);
	pinion_metrics_close(metrics);
	close(ready[0]);
	close(told[0]);
	close(told[1]);
}

/* By another user, where there is one; else as the folder itself is opened. */
static void check_rights(void)
{
	struct pin_metrics_page *page = make(NULL);
	struct pin_metrics_page *other;
	struct pinion_metrics *metrics = NULL;
	pid_t child;
	int status = -1;

	expect_ready("open", pinion_metrics_open_pid(getpid(), 0, NULL, NULL, &metrics) == 0);
	expect_number("its own", 1, pinion_metrics_is_open(metrics, getpid()));
	child = fork();
	if (child == 0) {
		bool is_other = geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0;
		DIR *folder = opendir("/proc/1/fd");
		int expected = folder != NULL ? 0 : -errno;

		/* /proc/1 is hidden (hidepid), or this user's own. */
		if (is_other && expected == -ENOENT) {
			expected = -ESRCH;
		}
		_exit(pinion_metrics_is_open(metrics, 1) == expected ? 0 : 2);
	}
	expect_ready("fork", child > 0 && waitpid(child, &status, 0) == child);
	expect_number("as for the folder: EACCES of another user", 0, status);
	other = make(NULL);
	pin_metrics_page_destroy(page, &pin_host_linux);
	expect_number("given back", 0, pinion_metrics_is_open(metrics, getpid()));
	pin_metrics_page_destroy(other, &pin_host_linux);
	pinion_metrics_close(metrics);
}

int main(void)
{
	scratch_enter("pages_are_lost_by_exec");
	check_exec();
	check_rights();
	scratch_leave();
	return expect_status();
}
