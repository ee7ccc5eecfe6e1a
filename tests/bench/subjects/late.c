/* SPDX-License-Identifier: MIT */
/*
 * The subject `timer_late`: how long after its deadline a timer's task starts
 * on a worker that has slept until then. The floor sleeps until the same kind
 * of deadline in clock_nanosleep(2), on the same worker's thread.
 */
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

enum {
	LATE_FIGURES = 16, /* of one turn */
	/* How far ahead, and as much again at random, against ticks. */
	LATE_AHEAD_NS = 300 * 1000,
};

struct late {
	struct pinion_timer timer;
	struct pinion_runtime *runtime;
	struct pinion_task turn;
	uint64_t deadline_ns;
	uint64_t random;
	uint32_t figure_count;
	double samples[LATE_FIGURES];
	enum bench_side side;
	int error;
	uint32_t done;
};

_Static_assert(offsetof(struct late, timer.task) == 0, "a cast leads back");

static void choose_deadline(struct late *late)
{
	late->random ^= late->random >> 12;
	late->random ^= late->random << 25;
	late->random ^= late->random >> 27;
	late->deadline_ns = bench_now_ns() + LATE_AHEAD_NS + late->random % LATE_AHEAD_NS;
}

static void end_turn(struct late *late, int error)
{
	late->error = error;
	bench_word_raise(&late->done);
}

static void note(struct late *late)
{
	late->samples[late->figure_count++] = (double)(bench_now_ns() - late->deadline_ns) / 1000;
}

static void start_next(struct late *late)
{
	int rc;

	if (late->figure_count == LATE_FIGURES) {
		end_turn(late, 0);
		return;
	}
	choose_deadline(late);
	rc = pinion_timer_start(late->runtime, &late->timer, late->deadline_ns);
	if (rc != 0) {
		end_turn(late, rc);
	}
}

static int timer_due(struct pinion_task *task)
{
	struct late *late = (struct late *)(void *)task;

	note(late);
	start_next(late);
	return 0;
}

static void timer_given_up(struct pinion_task *task)
{
	(void)task;
}

static void run_floor(struct late *late)
{
	while (late->figure_count < LATE_FIGURES && !signals_interrupted()) {
		struct timespec deadline;

		choose_deadline(late);
		deadline.tv_sec = (time_t)(late->deadline_ns / 1000000000u);
		deadline.tv_nsec = (long)(late->deadline_ns % 1000000000u);
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR) {
		}
		note(late);
	}
	end_turn(late, 0);
}

static int late_turn(struct pinion_task *task)
{
	struct late *late = (struct late *)(void *)((char *)task - offsetof(struct late, turn));

	late->figure_count = 0;
	if (late->side == BENCH_OURS) {
		start_next(late);
	} else {
		run_floor(late);
	}
	return 0;
}

static int late_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct late *late = state;
	int rc;

	late->side = side;
	rc = bench_run_turn(late->runtime, &late->turn, &late->done);
	if (rc == 0 && late->error != 0) {
		rc = late->error;
		report_line("cannot start a timer: %s", report_reason(rc));
	}
	for (uint32_t i = 0; rc == 0 && i < late->figure_count; i++) {
		rc = samples_add(out_figures, late->samples[i]);
	}
	return rc;
}

static void late_stop(void *state)
{
	struct late *late = state;

	pinion_runtime_destroy(late->runtime);
	free(late);
}

static int late_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct late *late = bench_allocate(sizeof(*late));
	int rc;

	if (late == NULL) {
		return -ENOMEM;
	}
	late->random = 88172645463325252u;
	late->turn.run = late_turn;
	late->timer.task.run = timer_due;
	late->timer.task.cancel = timer_given_up;
	rc = bench_start_workers(bench, 1, out_setting, &late->runtime);
	if (rc != 0) {
		late_stop(late);
		return rc;
	}
	*out_state = late;
	return 0;
}

const struct bench_subject bench_timer_late = {
	.name = "timer_late",
	.unit = "us",
	.brief = "from a timer's deadline to its task on a sleeping worker, against a nanosleep",
	.sides = {[BENCH_OURS] = "pinion_timer_start", [BENCH_FLOOR] = "clock_nanosleep"},
	.start = late_start,
	.run = late_run,
	.stop = late_stop,
};
