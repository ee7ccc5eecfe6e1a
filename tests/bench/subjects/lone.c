/* SPDX-License-Identifier: MIT */
/*
 * The subjects `lone` and `lone_stream`: a task that goes on working spawns
 * others, which a worker that sleeps could run meanwhile.
 *
 * `lone`: a task spawns one child and works on for as long as the child does.
 * The figure is the time until both have ended; the floor is the task without a
 * child, so the ratio is that to the ideal. Beside it a bare thread, which the
 * task wakes by a futex, does the child's work. All work is by the clock: on a
 * machine with other work a thread that has lost its CPU at the end of its time
 * ends as much later, and two threads more often than one.
 *
 * `lone_stream`: a task spawns an empty child every 3 us, until another worker
 * has begun one. The figure is the time until then; the floor wakes a bare
 * thread by a futex.
 */
#include "tools/bench/sleeper.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

enum {
	LONE_WORKERS = 2,
	LONE_SHORT_NS = 500 * 1000,
	LONE_FURTHER = 2, /* longer ones: samples of their own */
	/* In which a worker without work falls asleep. */
	LONE_REST_NS = 1000 * 1000,
	STREAM_STEP_NS = 3 * 1000,
	STREAM_TASKS = 8192, /* 25 ms: then no worker has come */
	STREAM_FIGURES = 16, /* streams in each turn */
};

static const uint64_t lone_longer_ns[LONE_FURTHER] = {2000 * 1000, 5000 * 1000};

struct lone {
	/* Constant while a turn is under way. */
	struct pinion_runtime *runtime;
	enum bench_side side;
	uint64_t work_ns;
	struct bare_sleeper bare;			       /* of `lone_stream` */
	struct samples longer[BENCH_SIDE_COUNT][LONE_FURTHER]; /* us */
	pthread_t thread; /* of the other side: does the child's work */
	bool has_thread;
	/* Written by the workers. */
	struct pinion_task parent;
	struct pinion_task child;
	struct pinion_task stream[STREAM_TASKS];
	int parent_worker;
	uint64_t start_ns;
	uint64_t stolen_ns; /* when another worker began one of the stream; 0: none has */
	uint64_t end_ns;
	uint32_t left_count;
	uint32_t done;
	uint32_t calls; /* of the thread */
	uint32_t is_ending;
	int error;
};

static struct lone *the_lone; /* the subject under way, for its tasks */

static void rest(void)
{
	struct timespec duration = {0, LONE_REST_NS};

	nanosleep(&duration, NULL);
}

static void work_until(uint64_t end_ns)
{
	while (bench_now_ns() < end_ns) {
		bench_relax();
	}
}

/* ---- one child ---- */

static void end_one(struct lone *lone)
{
	if (__atomic_fetch_sub(&lone->left_count, 1, __ATOMIC_ACQ_REL) == 1) {
		lone->end_ns = bench_now_ns();
		bench_word_raise(&lone->done);
	}
}

static int run_child(struct pinion_task *task)
{
	(void)task;
	work_until(bench_now_ns() + the_lone->work_ns);
	end_one(the_lone);
	return 0;
}

/* The other side's child. */
static void *live_as_child(void *arg)
{
	struct lone *lone = arg;
	uint32_t calls = 0;

	while (bench_word_wait(&lone->calls, calls) == 0 &&
		bench_word_read(&lone->is_ending) == 0) {
		calls++;
		run_child(NULL);
	}
	return NULL;
}

static int run_parent(struct pinion_task *task)
{
	struct lone *lone = the_lone;

	(void)task;
	lone->start_ns = bench_now_ns();
	lone->left_count = lone->side == BENCH_FLOOR ? 1 : 2;
	if (lone->side == BENCH_OURS) {
		lone->error = pinion_task_spawn(lone->runtime, &lone->child);
	} else if (lone->side == BENCH_SECOND) {
		bench_word_raise(&lone->calls);
	}
	work_until(lone->start_ns + lone->work_ns);
	end_one(lone);
	return 0;
}

static int run_turn(struct lone *lone, uint64_t work_ns, double *out_us)
{
	int rc;

	lone->work_ns = work_ns;
	rest();
	rc = bench_run_turn(lone->runtime, &lone->parent, &lone->done);
	if (rc == 0) {
		rc = lone->error;
	}
	*out_us = (double)(lone->end_ns - lone->start_ns) / 1000;
	return rc;
}

static int lone_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct lone *lone = state;
	double figure;
	int rc;

	lone->side = side;
	rc = run_turn(lone, LONE_SHORT_NS, &figure);
	if (rc == 0) {
		rc = samples_add(out_figures, figure);
	}
	for (int i = 0; rc == 0 && i < LONE_FURTHER; i++) {
		rc = run_turn(lone, lone_longer_ns[i], &figure);
		if (rc == 0) {
			rc = samples_add(&lone->longer[side][i], figure);
		}
	}
	return rc;
}

/* Ours over that side, medians. */
static double of_side(struct lone *lone, enum bench_side side, uint32_t longer)
{
	samples_sort(&lone->longer[BENCH_OURS][longer]);
	samples_sort(&lone->longer[side][longer]);
	return samples_quantile(&lone->longer[BENCH_OURS][longer], 0.5) /
		samples_quantile(&lone->longer[side][longer], 0.5);
}

static uint32_t lone_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	static const char *const names[2][LONE_FURTHER] = {
		{"of_ideal_2ms", "of_ideal_5ms"}, {"of_thread_2ms", "of_thread_5ms"}};
	struct lone *lone = state;

	for (uint32_t i = 0; i < LONE_FURTHER; i++) {
		further[i] = (struct bench_further){names[0][i], of_side(lone, BENCH_FLOOR, i)};
		further[LONE_FURTHER + i] =
			(struct bench_further){names[1][i], of_side(lone, BENCH_SECOND, i)};
	}
	return 2 * LONE_FURTHER;
}

/* ---- a stream of them ---- */

static int run_streamed(struct pinion_task *task)
{
	struct lone *lone = the_lone;
	uint64_t none = 0;

	(void)task;
	if (pinion_worker_index(lone->runtime) != lone->parent_worker) {
		__atomic_compare_exchange_n(&lone->stolen_ns, &none, bench_now_ns(), false,
			__ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	end_one(lone);
	return 0;
}

static int run_stream(struct pinion_task *task)
{
	struct lone *lone = the_lone;
	uint64_t next_ns = bench_now_ns();

	(void)task;
	lone->parent_worker = pinion_worker_index(lone->runtime);
	lone->start_ns = next_ns;
	lone->left_count = 1;
	for (uint32_t i = 0; i < STREAM_TASKS && lone->error == 0 &&
		__atomic_load_n(&lone->stolen_ns, __ATOMIC_ACQUIRE) == 0;
		i++) {
		__atomic_fetch_add(&lone->left_count, 1, __ATOMIC_RELAXED);
		lone->error = pinion_task_spawn(lone->runtime, &lone->stream[i]);
		next_ns += STREAM_STEP_NS;
		work_until(next_ns);
	}
	end_one(lone);
	return 0;
}

/* Where no worker has come, the time of the wait for it counts. */
static int run_stream_turn(struct lone *lone, double *out_us)
{
	int rc;

	lone->stolen_ns = 0;
	rest();
	rc = bench_run_turn(lone->runtime, &lone->parent, &lone->done);
	if (rc == 0) {
		rc = lone->error;
	}
	*out_us =
		(double)((lone->stolen_ns != 0 ? lone->stolen_ns : lone->end_ns) - lone->start_ns) /
		1000;
	return rc;
}

static int run_futex_turn(struct lone *lone, double *out_us)
{
	struct sleeper *sleeper = &lone->bare.sleeper;
	uint32_t answers = bench_word_read(&sleeper->answers);
	uint64_t start_ns;
	int rc = sleeper_wait_asleep(sleeper);

	if (rc != 0) {
		return rc;
	}
	start_ns = bench_now_ns();
	bare_sleeper_call(&lone->bare);
	while (bench_word_read(&sleeper->answers) == answers) {
		bench_relax();
	}
	*out_us = (double)(sleeper->woken_ns - start_ns) / 1000;
	return 0;
}

static int stream_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct lone *lone = state;
	int rc = 0;

	for (int i = 0; rc == 0 && i < STREAM_FIGURES; i++) {
		double figure;

		rc = side == BENCH_OURS ? run_stream_turn(lone, &figure)
					: run_futex_turn(lone, &figure);
		if (rc == 0) {
			rc = samples_add(out_figures, figure);
		}
	}
	return rc;
}

/* ---- both ---- */

static void lone_stop(void *state)
{
	struct lone *lone = state;

	pinion_runtime_destroy(lone->runtime);
	bare_sleeper_stop(&lone->bare);
	if (lone->has_thread) {
		__atomic_store_n(&lone->is_ending, 1, __ATOMIC_RELEASE);
		bench_word_raise(&lone->calls);
		pthread_join(lone->thread, NULL);
	}
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		for (int i = 0; i < LONE_FURTHER; i++) {
			samples_free(&lone->longer[side][i]);
		}
	}
	free(lone);
	the_lone = NULL;
}

static int start(struct bench *bench, struct bench_setting *out_setting, pinion_task_fn run,
	struct lone **out_lone)
{
	struct lone *lone;
	int rc = bench_require_cpus(bench->subject, LONE_WORKERS);

	if (rc != 0) {
		return rc;
	}
	lone = bench_allocate(sizeof(*lone));
	if (lone == NULL) {
		return -ENOMEM;
	}
	the_lone = lone;
	lone->parent.run = run;
	lone->child.run = run_child;
	for (uint32_t i = 0; i < STREAM_TASKS; i++) {
		lone->stream[i].run = run_streamed;
	}
	rc = bench_start_workers(bench, LONE_WORKERS, out_setting, &lone->runtime);
	if (rc != 0) {
		lone_stop(lone);
		return rc;
	}
	*out_lone = lone;
	return 0;
}

static int lone_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct lone *lone;
	int rc = start(bench, out_setting, run_parent, &lone);

	if (rc != 0) {
		return rc;
	}
	rc = -pthread_create(&lone->thread, NULL, live_as_child, lone);
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
		lone_stop(lone);
		return rc;
	}
	lone->has_thread = true;
	*out_state = lone;
	return 0;
}

static int stream_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct lone *lone;
	int rc = start(bench, out_setting, run_stream, &lone);

	if (rc != 0) {
		return rc;
	}
	rc = bare_sleeper_start(&lone->bare);
	if (rc != 0) {
		lone_stop(lone);
		return rc;
	}
	*out_state = lone;
	return 0;
}

const struct bench_subject bench_lone = {
	.name = "lone",
	.unit = "us",
	.brief = "a task of 500 us that spawns one as long at its start, against itself alone",
	.sides = {[BENCH_OURS] = "pinion_task_spawn",
		[BENCH_FLOOR] = "without-the-child",
		[BENCH_SECOND] = "bare-thread"},
	.start = lone_start,
	.run = lone_run,
	.stop = lone_stop,
	.further = lone_further,
};

const struct bench_subject bench_lone_stream = {
	.name = "lone_stream",
	.unit = "us",
	.brief = "a task that spawns every 3 us, until another worker runs one, against a futex",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.start = stream_start,
	.run = stream_run,
	.stop = lone_stop,
};
