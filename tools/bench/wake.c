/* SPDX-License-Identifier: MIT */
/*
 * The subject `wake`: how long a task from outside takes to start on a worker
 * that sleeps, against a thread that sleeps in a futex. Both ends read
 * CLOCK_MONOTONIC.
 *
 * Either side is woken only once the kernel says that it sleeps, and a fixed
 * short while after that. Nobody spins while the other side wakes up.
 */
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WAKE_FIGURES = 32, /* of one turn */
	/* Between seeing the other side asleep and waking it. */
	WAKE_GAP_NS = 20 * 1000,
};

/* A thread that is woken: the worker, or the floor's own. */
struct sleeper {
	pid_t thread_id;
	int status_fd; /* of its /proc status, -1: not open yet */
	uint64_t woken_ns;
	uint32_t answers; /* raised at each wake, after `woken_ns` was set */
};

struct wake {
	struct pinion_runtime *runtime;
	struct pinion_task task;
	struct sleeper worker;
	struct sleeper thread;
	pthread_t thread_handle;
	bool has_thread;
	uint32_t calls; /* the futex that the floor's thread sleeps on */
	uint32_t is_ending;
	cpu_set_t own_cpus; /* of the calling thread, to be restored */
	bool was_moved;
};

/* The first instruction on the other side. */
static void answer(struct sleeper *sleeper)
{
	sleeper->woken_ns = bench_now_ns();
	sleeper->thread_id = (pid_t)syscall(SYS_gettid);
	bench_word_raise(&sleeper->answers);
}

static int wake_task(struct pinion_task *task)
{
	struct wake *wake = (struct wake *)(void *)((char *)task - offsetof(struct wake, task));

	answer(&wake->worker);
	return 0;
}

static void *wake_thread(void *arg)
{
	struct wake *wake = arg;
	uint32_t seen = 0;

	answer(&wake->thread);
	for (;;) {
		while (bench_word_read(&wake->calls) == seen) {
			(void)syscall(
				SYS_futex, &wake->calls, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		}
		seen++;
		if (bench_word_read(&wake->is_ending) != 0) {
			return NULL;
		}
		answer(&wake->thread);
	}
}

/*
 * Whether it sleeps: a state of S. After its answer the only place where
 * either side does is the one it is to be woken from.
 */
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

		report_line("cannot tell whether a thread sleeps, is /proc mounted? %s",
			report_reason(error));
		return error;
	}
	text[count] = '\0';
	name_end = strrchr(text, ')');
	*out_is_asleep = name_end != NULL && strncmp(name_end, ") S", 3) == 0;
	return 0;
}

static int wait_asleep(struct sleeper *sleeper)
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
	gap_end_ns = bench_now_ns() + WAKE_GAP_NS;
	while (bench_now_ns() < gap_end_ns) {
	}
	return 0;
}

static int wake_once(struct wake *wake, enum bench_side side, uint64_t *out_start_ns)
{
	*out_start_ns = bench_now_ns();
	if (side == BENCH_OURS) {
		return bench_spawn_task(wake->runtime, &wake->task);
	}
	bench_word_raise(&wake->calls);
	return 0;
}

static int wake_run(void *state, enum bench_side side, struct figures *out_figures)
{
	struct wake *wake = state;
	struct sleeper *sleeper = side == BENCH_OURS ? &wake->worker : &wake->thread;
	int rc = 0;

	for (int i = 0; rc == 0 && i < WAKE_FIGURES; i++) {
		uint32_t answers = bench_word_read(&sleeper->answers);
		uint64_t start_ns;

		rc = wait_asleep(sleeper);
		if (rc == 0) {
			rc = wake_once(wake, side, &start_ns);
		}
		if (rc == 0) {
			rc = bench_word_wait(&sleeper->answers, answers);
		}
		if (rc == 0) {
			rc = figures_add(
				out_figures, (double)(sleeper->woken_ns - start_ns) / 1000);
		}
	}
	return rc;
}

static void wake_stop(void *state)
{
	struct wake *wake = state;

	pinion_runtime_destroy(wake->runtime);
	if (wake->has_thread) {
		__atomic_store_n(&wake->is_ending, 1, __ATOMIC_RELEASE);
		bench_word_raise(&wake->calls);
		pthread_join(wake->thread_handle, NULL);
	}
	if (wake->was_moved) {
		(void)sched_setaffinity(0, sizeof(wake->own_cpus), &wake->own_cpus);
	}
	if (wake->worker.status_fd >= 0) {
		close(wake->worker.status_fd);
	}
	if (wake->thread.status_fd >= 0) {
		close(wake->thread.status_fd);
	}
	free(wake);
}

/*
 * Both sleepers on the worker's CPU, the waker on another where there is one:
 * else the worker would be bound, the thread not, and the ratio would show
 * that. Where a call fails, things stay as they are on both sides.
 */
static void place_threads(struct wake *wake)
{
	cpu_set_t worker_cpus;
	cpu_set_t other_cpus;

	if (sched_getaffinity(wake->worker.thread_id, sizeof(worker_cpus), &worker_cpus) != 0 ||
		sched_getaffinity(0, sizeof(wake->own_cpus), &wake->own_cpus) != 0) {
		return;
	}
	(void)sched_setaffinity(wake->thread.thread_id, sizeof(worker_cpus), &worker_cpus);
	CPU_AND(&other_cpus, &wake->own_cpus, &worker_cpus);
	CPU_XOR(&other_cpus, &other_cpus, &wake->own_cpus);
	if (CPU_COUNT(&other_cpus) > 0) {
		wake->was_moved = sched_setaffinity(0, sizeof(other_cpus), &other_cpus) == 0;
	}
}

/* Has both sides answer once, which tells who they are. */
static int start_sleepers(struct wake *wake)
{
	int rc = bench_spawn_task(wake->runtime, &wake->task);

	if (rc == 0) {
		rc = bench_word_wait(&wake->worker.answers, 0);
	}
	if (rc == 0) {
		rc = -pthread_create(&wake->thread_handle, NULL, wake_thread, wake);
		wake->has_thread = rc == 0;
		if (rc != 0) {
			report_line("cannot start a thread: %s", report_reason(rc));
		}
	}
	return rc == 0 ? bench_word_wait(&wake->thread.answers, 0) : rc;
}

static int wake_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct wake *wake = calloc(1, sizeof(*wake));
	int rc;

	if (wake == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	wake->task.run = wake_task;
	wake->worker.status_fd = -1;
	wake->thread.status_fd = -1;
	rc = bench_start_worker(bench, out_setting, &wake->runtime);
	if (rc == 0) {
		rc = start_sleepers(wake);
	}
	if (rc != 0) {
		wake_stop(wake);
		return rc;
	}
	place_threads(wake);
	*out_state = wake;
	return 0;
}

const struct bench_subject bench_wake = {
	.name = "wake",
	.unit = "us",
	.brief = "from pinion_spawn outside to the task on a sleeping worker, against a futex",
	.sides = {[BENCH_OURS] = "pinion_spawn", [BENCH_FLOOR] = "futex-wake"},
	.start = wake_start,
	.run = wake_run,
	.stop = wake_stop,
};
