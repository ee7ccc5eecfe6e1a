/* SPDX-License-Identifier: MIT */
/*
 * Sleeping threads, as /proc shows them, and a bare thread beside the workers.
 */
#include "tools/bench/sleeper.h"

#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	/* Between seeing the other side asleep and waking it. */
	GAP_NS = 20 * 1000,
};

void sleeper_init(struct sleeper *sleeper)
{
	*sleeper = (struct sleeper){.status_fd = -1};
}

void sleeper_fini(struct sleeper *sleeper)
{
	if (sleeper->status_fd >= 0) {
		close(sleeper->status_fd);
	}
}

void sleeper_answer(struct sleeper *sleeper)
{
	sleeper->woken_ns = bench_now_ns();
	sleeper->thread_id = (pid_t)syscall(SYS_gettid);
	bench_word_raise(&sleeper->answers);
}

/* Whether it sleeps: a state of S. */
static int is_asleep(struct sleeper *sleeper, bool *out_is_asleep)
{
	char text[256];
	const char *name_end;
	ssize_t count;

	if (sleeper->status_fd < 0) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)sleeper->thread_id);
		sleeper->status_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	count = sleeper->status_fd < 0 ? -1 : pread(sleeper->status_fd, text, sizeof(text) - 1, 0);
	if (count < 0) {
		int error = -errno;

		report_line("cannot find out whether a thread sleeps, is /proc mounted? %s",
			report_reason(error));
		return error;
	}
	text[count] = '\0';
	name_end = strrchr(text, ')');
	*out_is_asleep = name_end != NULL && strncmp(name_end, ") S", 3) == 0;
	return 0;
}

int sleeper_wait_asleep(struct sleeper *sleeper)
{
	bool is_there = false;
	uint64_t gap_end_ns;

	while (!is_there) {
		int rc = is_asleep(sleeper, &is_there);

		if (rc != 0) {
			return rc;
		}
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		if (!is_there) {
			sched_yield();
		}
	}
	gap_end_ns = bench_now_ns() + GAP_NS;
	while (bench_now_ns() < gap_end_ns) {
	}
	return 0;
}

/* ---- the bare thread ---- */

static void *bare_main(void *arg)
{
	struct bare_sleeper *bare = arg;
	uint32_t seen = 0;

	sleeper_answer(&bare->sleeper);
	for (;;) {
		while (bench_word_read(&bare->calls) == seen) {
			(void)syscall(
				SYS_futex, &bare->calls, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		}
		seen++;
		if (bench_word_read(&bare->is_ending) != 0) {
			return NULL;
		}
		sleeper_answer(&bare->sleeper);
	}
}

int bare_sleeper_start(struct bare_sleeper *bare)
{
	int rc;

	sleeper_init(&bare->sleeper);
	rc = -pthread_create(&bare->thread, NULL, bare_main, bare);
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
		return rc;
	}
	bare->has_thread = true;
	return bench_word_wait(&bare->sleeper.answers, 0);
}

void bare_sleeper_call(struct bare_sleeper *bare)
{
	bench_word_raise(&bare->calls);
}

void bare_sleeper_stop(struct bare_sleeper *bare)
{
	if (bare->has_thread) {
		__atomic_store_n(&bare->is_ending, 1, __ATOMIC_RELEASE);
		bench_word_raise(&bare->calls);
		pthread_join(bare->thread, NULL);
		sleeper_fini(&bare->sleeper);
		bare->has_thread = false;
	}
}
