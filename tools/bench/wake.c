/* SPDX-License-Identifier: MIT */
/*
 * Wakes, timed, and the subject `wake`.
 */
#include "tools/bench/wake.h"
#include "tools/bench/pending.h"
#include "tools/bench/place.h"
#include "tools/bench/sleeper.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	WAKE_FIGURES = 32, /* of one turn */
	WAKE_WORKERS_MAX = 2,
};

struct wake {
	struct pinion_runtime *runtime;
	uint32_t worker_count;
	struct pinion_task task;
	struct sleeper workers[WAKE_WORKERS_MAX];
	struct bare_sleeper bare;
	struct bench_pending pending[WAKE_WORKERS_MAX]; /* of `…_ring` */
	struct bench_place place;
	/* Of the turn in hand, where a worker wakes. */
	struct pinion_task turn;
	enum bench_side side;
	struct samples *samples;
	struct samples waker_ns[BENCH_SIDE_COUNT]; /* of all turns but the first */
	bool has_warmed_up[BENCH_SIDE_COUNT];
	int error;
	uint32_t done;
};

static int wake_task(struct pinion_task *task)
{
	struct wake *wake = (struct wake *)(void *)((char *)task - offsetof(struct wake, task));

	sleeper_answer(&wake->workers[pinion_worker_index(wake->runtime)]);
	return 0;
}

/* What a worker spawns goes to the other one, as this one is in a task. */
static int wake_once(struct wake *wake, enum bench_side side, uint64_t *out_start_ns)
{
	uint64_t end_ns;
	int rc = 0;

	*out_start_ns = bench_now_ns();
	if (side == BENCH_FLOOR) {
		bare_sleeper_call(&wake->bare);
	} else {
		rc = wake->worker_count == 1 ? pinion_task_spawn(wake->runtime, &wake->task)
					     : pinion_task_spawn_shared(wake->runtime, &wake->task);
	}
	end_ns = bench_now_ns();
	if (rc != 0) {
		report_line("cannot spawn: %s", report_reason(rc));
	} else if (wake->has_warmed_up[side]) {
		rc = samples_add(&wake->waker_ns[side], (double)(end_ns - *out_start_ns));
	}
	return rc;
}

static int take_figures(struct wake *wake, struct sleeper *worker)
{
	struct sleeper *sleeper = wake->side == BENCH_OURS ? worker : &wake->bare.sleeper;
	int rc = 0;

	for (int i = 0; rc == 0 && i < WAKE_FIGURES; i++) {
		uint32_t answers = bench_word_read(&sleeper->answers);
		uint64_t start_ns;

		rc = sleeper_wait_asleep(sleeper);
		if (rc == 0) {
			rc = wake_once(wake, wake->side, &start_ns);
		}
		if (rc == 0) {
			rc = bench_word_wait(&sleeper->answers, answers);
		}
		if (rc == 0) {
			rc = samples_add(
				wake->samples, (double)(sleeper->woken_ns - start_ns) / 1000);
		}
	}
	return rc;
}

/*
 * Where a worker wakes. It is in a task meanwhile, so only the other one can
 * take what it spawns; the bare thread sleeps where that other one does.
 */
static int wake_turn(struct pinion_task *task)
{
	struct wake *wake = (struct wake *)(void *)((char *)task - offsetof(struct wake, turn));
	uint32_t own_index = (uint32_t)pinion_worker_index(wake->runtime);
	struct sleeper *own = &wake->workers[own_index];
	struct sleeper *other = &wake->workers[1 - own_index];
	uint64_t start_ns;
	int rc = 0;

	own->thread_id = (pid_t)syscall(SYS_gettid);
	if (other->thread_id == 0) {
		rc = wake_once(wake, BENCH_OURS, &start_ns);
		if (rc == 0) {
			rc = bench_word_wait(&other->answers, 0);
		}
	}
	if (rc == 0) {
		bench_place_together(wake->bare.sleeper.thread_id, other->thread_id);
		rc = take_figures(wake, other);
	}
	wake->error = rc;
	bench_word_raise(&wake->done);
	return 0;
}

int wake_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct wake *wake = state;
	int rc;

	wake->side = side;
	wake->samples = out_figures;
	if (wake->worker_count == 1) {
		rc = take_figures(wake, &wake->workers[0]);
	} else {
		rc = bench_run_turn(wake->runtime, &wake->turn, &wake->done);
		rc = rc == 0 ? wake->error : rc;
	}
	for (uint32_t i = 0; rc == 0 && i < wake->worker_count; i++) {
		rc = bench_pending_check(&wake->pending[i]);
	}
	wake->has_warmed_up[side] = true;
	return rc;
}

/* What the calls took who woke. */
uint32_t wake_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	static const char *const names[] = {"waker_ns", "floor_waker_ns"};
	struct wake *wake = state;

	for (int side = BENCH_OURS; side <= BENCH_FLOOR; side++) {
		samples_sort(&wake->waker_ns[side]);
		further[side] = (struct bench_further){
			names[side], samples_quantile(&wake->waker_ns[side], 0.5)};
	}
	return 2;
}

void wake_stop(void *state)
{
	struct wake *wake = state;

	pinion_runtime_destroy(wake->runtime);
	bare_sleeper_stop(&wake->bare);
	bench_place_restore(&wake->place);
	for (int side = BENCH_OURS; side <= BENCH_FLOOR; side++) {
		samples_free(&wake->waker_ns[side]);
	}
	for (int i = 0; i < WAKE_WORKERS_MAX; i++) {
		bench_pending_close(&wake->pending[i]);
		sleeper_fini(&wake->workers[i]);
	}
	free(wake);
}

/* The only worker answers once, with its thread id. */
static int meet_worker(struct wake *wake)
{
	struct sleeper *worker = &wake->workers[0];
	int rc = bench_spawn_task(wake->runtime, &wake->task);

	if (rc == 0) {
		rc = bench_word_wait(&worker->answers, 0);
	}
	if (rc == 0) {
		bench_place_together(wake->bare.sleeper.thread_id, worker->thread_id);
		bench_place_apart(&wake->place, worker->thread_id);
	}
	return rc;
}

static int start_workers(const struct bench *bench, struct bench_setting *out_setting,
	struct pinion_runtime **out_runtime)
{
	const struct wake_way *way = bench->subject->variant;
	struct bench_options options = *bench->options;
	struct bench own = *bench;

	if (way->keeps_cpus_awake) {
		options.tuning.cpu_latency_us = 0;
		options.runtime.tuning = &options.tuning;
	}
	own.options = &options;
	return bench_start_workers(&own, way->worker_count, out_setting, out_runtime);
}

static int require(const struct bench_subject *subject, const struct bench_setting *setting)
{
	const struct wake_way *way = subject->variant;
	int rc = way->keeps_cpus_awake ? bench_require_awake(subject, setting) : 0;

	return rc == 0 && way->sleeps_in_ring ? bench_require_rings(subject, setting) : rc;
}

static int submit_turn(struct pinion_task *task)
{
	struct wake *wake = (struct wake *)(void *)((char *)task - offsetof(struct wake, turn));
	int index = pinion_worker_index(wake->runtime);

	wake->error = bench_pending_submit(&wake->pending[index], wake->runtime);
	bench_word_raise(&wake->done);
	return 0;
}

/* From then on that worker sleeps in its ring. */
static int begin_read(struct wake *wake, uint32_t worker_index)
{
	uint32_t before = bench_word_read(&wake->done);
	int rc = bench_pending_open(&wake->pending[worker_index]);

	if (rc == 0) {
		wake->turn.run = submit_turn;
		rc = pinion_task_spawn_on(wake->runtime, worker_index, &wake->turn);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
		}
	}
	if (rc == 0) {
		rc = bench_word_wait(&wake->done, before);
	}
	return rc == 0 ? wake->error : rc;
}

int wake_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct wake_way *way = bench->subject->variant;
	struct wake *wake = bench_allocate(sizeof(*wake));
	int rc;

	if (wake == NULL) {
		return -ENOMEM;
	}
	wake->worker_count = way->worker_count;
	wake->task.run = wake_task;
	wake->turn.run = wake_turn;
	for (int i = 0; i < WAKE_WORKERS_MAX; i++) {
		sleeper_init(&wake->workers[i]);
	}
	rc = start_workers(bench, out_setting, &wake->runtime);
	if (rc == 0) {
		rc = require(bench->subject, out_setting);
	}
	if (rc == 0) {
		rc = bare_sleeper_start(&wake->bare);
	}
	if (rc == 0 && way->worker_count == 1) {
		rc = meet_worker(wake);
	}
	for (uint32_t i = 0; rc == 0 && way->sleeps_in_ring && i < way->worker_count; i++) {
		rc = begin_read(wake, i);
	}
	if (rc != 0) {
		wake_stop(wake);
		return rc;
	}
	wake->turn.run = wake_turn;
	*out_state = wake;
	return 0;
}

const struct bench_subject bench_wake = {
	.name = "wake",
	.brief = "from pinion_task_spawn outside to the task on a sleeping worker, against a futex",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct wake_way){.worker_count = 1},
	WAKE_SHARED,
};
