/* SPDX-License-Identifier: MIT */
/*
 * The subject `thread_pool`: from pinion_call_run() on a thread outside until
 * it returns with the result of a function that does nothing, on a thread pool
 * of 1, 2 and 1 workers that have nothing else to do. The floor is a word that
 * goes to a thread asleep in futex(2) and back. Where there are several cores,
 * that thread and the thread pool are on one half of them and the calling one
 * on the other; else the kernel would decide who of them shares a core, which
 * costs more than all that is compared.
 *
 * Further figures: by how much the median of a turn is above that of the
 * floor's turn beside it, in the median of all pairs; and with as many jobs as
 * make them busy for some time, each 10 ms long, how many of those there are in
 * a second, in percent of 100 for each worker. These jobs sleep but for their
 * last moments, so workers need no core each.
 */
#include "tools/bench/place.h"
#include "tools/bench/sleeper.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

enum {
	THREAD_POOL_FIGURES = 32, /* of one turn */
	THREAD_POOL_JOB_NS = 10 * 1000 * 1000,
	THREAD_POOL_JOB_SPIN_NS = 100 * 1000,
	THREAD_POOL_JOBS_EACH = 25,
	THREAD_POOL_JOBS_MAX = 4 * THREAD_POOL_JOBS_EACH,
};

struct thread_pool {
	struct pinion_runtime *runtime;
	uint32_t worker_count;
	struct bare_sleeper bare;
	struct bench_place place;
	struct samples turn;	    /* the turn in progress */
	double medians[2];	    /* of ours and the floor, in the pair in hand; or 0 */
	struct samples differences; /* ours less the floor's, of each pair */
	struct pinion_call calls[THREAD_POOL_JOBS_MAX];
};

static int do_nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int take_figure(
	struct thread_pool *thread_pool, enum bench_side side, struct samples *out_figures)
{
	uint32_t answers = bench_word_read(&thread_pool->bare.sleeper.answers);
	uint64_t start_ns = bench_now_ns();
	double trip_us;
	int result;
	int rc;

	if (side == BENCH_OURS) {
		rc = pinion_call_run(thread_pool->runtime, do_nothing, NULL, &result);
		if (rc != 0) {
			report_line("a call failed: %s", report_reason(rc));
		}
	} else {
		bare_sleeper_call(&thread_pool->bare);
		rc = bench_word_wait(&thread_pool->bare.sleeper.answers, answers);
	}
	trip_us = (double)(bench_now_ns() - start_ns) / 1000;
	if (rc == 0) {
		rc = samples_add(&thread_pool->turn, trip_us);
	}
	return rc == 0 ? samples_add(out_figures, trip_us) : rc;
}

/* A turn is over, and with the second one its pair. */
static int note_median(struct thread_pool *thread_pool, enum bench_side side)
{
	double *medians = thread_pool->medians;
	double difference;

	samples_sort(&thread_pool->turn);
	medians[side] = samples_quantile(&thread_pool->turn, 0.5);
	if (medians[BENCH_OURS] == 0 || medians[BENCH_FLOOR] == 0) {
		return 0;
	}
	difference = medians[BENCH_OURS] - medians[BENCH_FLOOR];
	medians[BENCH_OURS] = 0;
	medians[BENCH_FLOOR] = 0;
	return samples_add(&thread_pool->differences, difference);
}

static int thread_pool_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct thread_pool *thread_pool = state;
	int rc = 0;

	samples_clear(&thread_pool->turn);
	for (int i = 0; rc == 0 && i < THREAD_POOL_FIGURES; i++) {
		rc = take_figure(thread_pool, side, out_figures);
	}
	return rc == 0 ? note_median(thread_pool, side) : rc;
}

/* ---- jobs of 10 ms ---- */

static int work(void *arg)
{
	const struct thread_pool *thread_pool = arg;
	uint64_t end_ns = bench_now_ns() + THREAD_POOL_JOB_NS;
	uint64_t wake_ns = end_ns - THREAD_POOL_JOB_SPIN_NS;
	struct timespec wake = {
		.tv_sec = (time_t)(wake_ns / 1000000000u),
		.tv_nsec = (long)(wake_ns % 1000000000u),
	};

	if (thread_pool->place.was_moved) {
		(void)sched_setaffinity(
			0, sizeof(thread_pool->place.own_cpus), &thread_pool->place.own_cpus);
	}
	/* Else the kernel may wake it 50 us late. */
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL);
	while (bench_now_ns() < end_ns) {
	}
	return 0;
}

/* All of them high, which each worker serves; 0 where that fails. */
static double measure_jobs(struct thread_pool *thread_pool)
{
	uint32_t job_count = thread_pool->worker_count * THREAD_POOL_JOBS_EACH;
	uint32_t started = 0;
	uint64_t start_ns = bench_now_ns();
	uint64_t busy_ns = (uint64_t)THREAD_POOL_JOBS_EACH * THREAD_POOL_JOB_NS;

	job_count = job_count < THREAD_POOL_JOBS_MAX ? job_count : THREAD_POOL_JOBS_MAX;
	while (started < job_count) {
		struct pinion_call *call = &thread_pool->calls[started];

		*call = (struct pinion_call){
			.task.flags = PINION_TASK_HIGH, .run = work, .arg = thread_pool};
		if (pinion_call_start(thread_pool->runtime, call) != 0) {
			break;
		}
		started++;
	}
	for (uint32_t i = 0; i < started; i++) {
		if (pinion_future_wait(&thread_pool->calls[i].done, UINT64_MAX) != 0) {
			started = 0;
		}
	}
	return started == job_count ? 100 * (double)busy_ns / (double)(bench_now_ns() - start_ns)
				    : 0;
}

static uint32_t thread_pool_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct thread_pool *thread_pool = state;
	uint32_t count = 0;

	if (thread_pool->differences.count > 0) {
		samples_sort(&thread_pool->differences);
		further[count++] = (struct bench_further){
			"above_floor_us", samples_quantile(&thread_pool->differences, 0.5)};
	}
	further[count++] = (struct bench_further){"jobs_10ms_percent", measure_jobs(thread_pool)};
	return count;
}

/* ---- the subject ---- */

static void thread_pool_stop(void *state)
{
	struct thread_pool *thread_pool = state;

	pinion_runtime_destroy(thread_pool->runtime);
	bare_sleeper_stop(&thread_pool->bare);
	bench_place_restore(&thread_pool->place);
	samples_free(&thread_pool->turn);
	samples_free(&thread_pool->differences);
	free(thread_pool);
}

static int thread_pool_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct thread_pool *thread_pool = bench_allocate(sizeof(*thread_pool));
	int rc;

	(void)bench;
	if (thread_pool == NULL) {
		return -ENOMEM;
	}
	/* Threads begin where their creator runs. */
	(void)bench_place_in_half(&thread_pool->place, 1);
	rc = pinion_thread_pool_create(NULL, NULL, &thread_pool->runtime);
	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
	} else {
		rc = bare_sleeper_start(&thread_pool->bare);
	}
	if (rc != 0) {
		thread_pool_stop(thread_pool);
		return rc;
	}
	(void)bench_place_in_half(&thread_pool->place, 0);
	pinion_runtime_get_info(
		thread_pool->runtime, &out_setting->facts, sizeof(out_setting->facts));
	thread_pool->worker_count = pinion_runtime_worker_count(thread_pool->runtime);
	bench_setting_add(out_setting, "a thread pool of %u workers", thread_pool->worker_count);
	*out_state = thread_pool;
	return 0;
}

const struct bench_subject bench_thread_pool = {
	.name = "thread_pool",
	.unit = "us",
	.brief = "a job in a thread pool and back to a thread outside, against a word to a thread",
	.sides = {[BENCH_OURS] = "pinion_call_run", [BENCH_FLOOR] = "futex-round-trip"},
	.start = thread_pool_start,
	.run = thread_pool_run,
	.stop = thread_pool_stop,
	.further = thread_pool_further,
};
