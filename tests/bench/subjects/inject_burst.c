/* SPDX-License-Identifier: MIT */
/*
 * The subject `inject_burst`: 10,000 empty tasks that a thread outside spawns
 * one by one into a runtime that sleeps, with the wakes that this takes: the
 * worker falls asleep again whenever it has caught up for long enough. The
 * floor passes the same tasks through a bare queue to the same worker's thread,
 * which is awake and stays so.
 */
#include "tools/bench/mpmc.h"
#include "tools/bench/place.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
	BURST_TASKS = 10000,
	BURST_FIGURES = 8, /* bursts in each turn */
	/* In which a worker without work falls asleep. */
	BURST_REST_NS = 500 * 1000,
	/* Failures in a row after which the other thread may have the CPU. */
	BURST_SPIN_COUNT = 2000,
};

struct burst;

/* As empty as a task can be whose end is to be noticed: it counts itself. */
struct burst_task {
	struct pinion_task task;
	struct burst *burst;
};

struct burst {
	/* Constant while a burst is under way. */
	struct pinion_runtime *runtime;
	enum bench_side side;
	struct bench_place place;
	struct burst_task tasks[BURST_TASKS];
	struct bench_mpmc queue;
	/* Written by the producer. */
	uint32_t has_ended BENCH_LINE_ALIGNED; /* it has given up */
	/* Written by the worker. */
	struct pinion_task turn BENCH_LINE_ALIGNED;
	uint32_t run_count;
	uint64_t end_ns;
	pid_t thread_id;
	uint32_t is_ready;
	uint32_t done;
};

/* ---- on the worker ---- */

static int burst_run_task(struct pinion_task *task)
{
	struct burst *burst = ((struct burst_task *)(void *)task)->burst;

	if (++burst->run_count == BURST_TASKS) {
		burst->end_ns = bench_now_ns();
		bench_word_raise(&burst->done);
	}
	return 0;
}

/* The floor's worker: the same tasks out of the bare queue. */
static void burst_consume(struct burst *burst)
{
	uint32_t spins = 0;

	while (burst->run_count < BURST_TASKS && bench_word_read(&burst->has_ended) == 0) {
		struct pinion_task *task = bench_mpmc_pop(&burst->queue);

		if (task != NULL) {
			(void)task->run(task);
			spins = 0;
		} else if (++spins % BURST_SPIN_COUNT == 0) {
			sched_yield();
		} else {
			bench_relax();
		}
	}
}

/*
 * Before each burst, on both sides. It alone sets the count back: the last one
 * of the floor may still be about to see that it is over.
 */
static int burst_turn(struct pinion_task *task)
{
	struct burst *burst = (struct burst *)(void *)((char *)task - offsetof(struct burst, turn));

	burst->thread_id = (pid_t)syscall(SYS_gettid);
	burst->run_count = 0;
	__atomic_store_n(&burst->is_ready, 1, __ATOMIC_RELEASE);
	if (burst->side == BENCH_FLOOR) {
		burst_consume(burst);
	}
	return 0;
}

/* ---- the producer ---- */

static int push_ours(struct burst *burst)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < BURST_TASKS; i++) {
		rc = pinion_task_spawn(burst->runtime, &burst->tasks[i].task);
	}
	if (rc != 0) {
		report_line("cannot spawn: %s", report_reason(rc));
	}
	return rc;
}

static int push_floor(struct burst *burst)
{
	for (uint32_t i = 0; i < BURST_TASKS; i++) {
		while (!bench_mpmc_push(&burst->queue, &burst->tasks[i].task)) {
			sched_yield(); /* it is full */
		}
	}
	return 0;
}

/* The floor's consumer is awake; ours sleeps. */
static int get_ready(struct burst *burst)
{
	struct timespec rest = {0, BURST_REST_NS};
	int rc;

	burst->is_ready = 0;
	rc = bench_spawn_task(burst->runtime, &burst->turn);
	while (rc == 0 && bench_word_read(&burst->is_ready) == 0) {
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		sched_yield();
	}
	if (rc == 0 && burst->side == BENCH_OURS) {
		nanosleep(&rest, NULL);
	}
	return rc;
}

static int run_burst(struct burst *burst, double *out_figure)
{
	uint32_t done = bench_word_read(&burst->done);
	uint64_t start_ns;
	int rc = get_ready(burst);

	start_ns = bench_now_ns();
	if (rc == 0) {
		rc = burst->side == BENCH_OURS ? push_ours(burst) : push_floor(burst);
	}
	if (rc != 0) {
		/* The floor's worker no longer waits for what does not come. */
		__atomic_store_n(&burst->has_ended, 1, __ATOMIC_RELEASE);
		return rc;
	}
	rc = bench_word_wait(&burst->done, done);
	if (rc == 0) {
		*out_figure = (double)(burst->end_ns - start_ns) / BURST_TASKS;
	}
	return rc;
}

static int burst_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct burst *burst = state;
	int rc = 0;

	burst->side = side;
	for (int i = 0; rc == 0 && i < BURST_FIGURES; i++) {
		double figure;

		rc = run_burst(burst, &figure);
		if (rc == 0) {
			bench_place_apart(&burst->place, burst->thread_id);
			rc = samples_add(out_figures, figure);
		}
	}
	return rc;
}

static void burst_stop(void *state)
{
	struct burst *burst = state;

	pinion_runtime_destroy(burst->runtime);
	bench_place_restore(&burst->place);
	free(burst);
}

static int burst_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct burst *burst = bench_allocate(sizeof(*burst));
	int rc;

	if (burst == NULL) {
		return -ENOMEM;
	}
	burst->turn.run = burst_turn;
	bench_mpmc_init(&burst->queue);
	for (uint32_t i = 0; i < BURST_TASKS; i++) {
		burst->tasks[i].task.run = burst_run_task;
		burst->tasks[i].burst = burst;
	}
	rc = bench_start_workers(bench, 1, out_setting, &burst->runtime);
	if (rc != 0) {
		burst_stop(burst);
		return rc;
	}
	*out_state = burst;
	return 0;
}

const struct bench_subject bench_inject_burst = {
	.name = "inject_burst",
	.unit = "ns",
	.brief = "an empty task of 10000 spawned outside one by one into a sleeping runtime",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "mpmc-ring"},
	.start = burst_start,
	.run = burst_run,
	.stop = burst_stop,
};
