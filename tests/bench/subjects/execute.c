/* SPDX-License-Identifier: MIT */
/*
 * The subjects `execute` and `execute_together`: from a task of one runtime to
 * a function on a worker of another and back to a task on the first, one call
 * at a time. Both workers have nothing else to do, so each waits, awake or
 * asleep, while the other runs. They are on CPUs of their own, or together on
 * one. The floor is a word that goes to and fro between the same two workers'
 * threads, each asleep in futex(2) meanwhile.
 */
#include "tools/bench/place.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	EXECUTE_FIGURES = 8, /* of one turn */
	EXECUTE_TRIPS = 32,  /* of one figure */
};

/* The differences between one subject and the other. */
struct execute_way {
	bool is_together; /* on one CPU */
};

struct execute {
	struct pinion_runtime *own;
	struct pinion_runtime *other;
	struct bench_place place;
	struct pinion_task turn;
	struct pinion_call call;
	struct pinion_wait wait;
	enum bench_side side;
	uint32_t trip_count; /* of the figure in hand */
	uint32_t figure_count;
	double samples[EXECUTE_FIGURES];
	uint64_t start_ns;
	int error;
	uint32_t done;
	/* The floor's. */
	struct pinion_task answerer;
	uint32_t answerer_ended;
	uint32_t call_word BENCH_LINE_ALIGNED;
	uint32_t answer_word BENCH_LINE_ALIGNED;
};

static int called(void *arg)
{
	(void)arg;
	return 0;
}

/* Notes a finished trip. True if another one is to follow. */
static bool next_trip(struct execute *execute)
{
	uint64_t now_ns;

	if (++execute->trip_count < EXECUTE_TRIPS) {
		return true;
	}
	now_ns = bench_now_ns();
	execute->samples[execute->figure_count++] =
		(double)(now_ns - execute->start_ns) / 1000 / EXECUTE_TRIPS;
	execute->trip_count = 0;
	execute->start_ns = now_ns;
	return execute->figure_count < EXECUTE_FIGURES;
}

static void end_turn(struct execute *execute, int error)
{
	execute->error = error;
	bench_word_raise(&execute->done);
}

/* ---- ours ---- */

static int call_other(struct execute *execute);

static int came_back(struct pinion_task *task)
{
	struct execute *execute =
		(struct execute *)(void *)((char *)task - offsetof(struct execute, wait.task));
	int rc = execute->wait.result != 0 ? execute->wait.result : execute->call.result;

	if (rc == 0 && next_trip(execute)) {
		rc = call_other(execute);
		if (rc == 0) {
			return 0;
		}
	}
	end_turn(execute, rc);
	return 0;
}

static int call_other(struct execute *execute)
{
	execute->call = (struct pinion_call){.run = called};
	execute->wait = (struct pinion_wait){
		.task.run = came_back,
		.deadline_ns = UINT64_MAX,
	};
	return pinion_call_run_async(execute->other, &execute->call, execute->own, &execute->wait);
}

/* ---- the floor ---- */

static int answer_all(struct pinion_task *task)
{
	struct execute *execute =
		(struct execute *)(void *)((char *)task - offsetof(struct execute, answerer));
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < EXECUTE_FIGURES * EXECUTE_TRIPS; i++) {
		rc = bench_word_wait(&execute->call_word, i);
		if (rc == 0) {
			bench_word_raise(&execute->answer_word);
		}
	}
	bench_word_raise(&execute->answerer_ended);
	return 0;
}

static int call_by_futex(struct execute *execute)
{
	int rc = 0;

	do {
		uint32_t before = bench_word_read(&execute->answer_word);

		bench_word_raise(&execute->call_word);
		rc = bench_word_wait(&execute->answer_word, before);
	} while (rc == 0 && next_trip(execute));
	return rc;
}

static int execute_turn(struct pinion_task *task)
{
	struct execute *execute =
		(struct execute *)(void *)((char *)task - offsetof(struct execute, turn));
	int rc;

	execute->start_ns = bench_now_ns();
	if (execute->side == BENCH_OURS) {
		rc = call_other(execute);
		if (rc == 0) {
			return 0;
		}
	} else {
		rc = call_by_futex(execute);
	}
	end_turn(execute, rc);
	return 0;
}

/* ---- the subject ---- */

static int run_floor(struct execute *execute)
{
	uint32_t ended = bench_word_read(&execute->answerer_ended);
	int rc;

	execute->call_word = 0;
	execute->answer_word = 0;
	rc = bench_spawn_task(execute->other, &execute->answerer);
	if (rc == 0) {
		rc = bench_run_turn(execute->own, &execute->turn, &execute->done);
	}
	return rc == 0 ? bench_word_wait(&execute->answerer_ended, ended) : rc;
}

static int execute_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct execute *execute = state;
	int rc;

	execute->side = side;
	execute->trip_count = 0;
	execute->figure_count = 0;
	rc = side == BENCH_OURS ? bench_run_turn(execute->own, &execute->turn, &execute->done)
				: run_floor(execute);
	if (rc == 0 && execute->error != 0) {
		rc = execute->error;
		if (rc != -ECANCELED) {
			report_line("a call failed: %s", report_reason(rc));
		}
	}
	for (uint32_t i = 0; rc == 0 && i < execute->figure_count; i++) {
		rc = samples_add(out_figures, execute->samples[i]);
	}
	return rc;
}

static void execute_stop(void *state)
{
	struct execute *execute = state;

	/* The caller first: until it has ended it may call the other. */
	pinion_runtime_destroy(execute->own);
	pinion_runtime_destroy(execute->other);
	bench_place_restore(&execute->place);
	free(execute);
}

static int execute_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct execute_way *way = bench->subject->variant;
	struct bench_setting other_setting = *out_setting;
	struct execute *execute;
	int rc = way->is_together ? 0 : bench_require_cores(bench->subject, 2);

	if (rc != 0) {
		return rc;
	}
	execute = bench_allocate(sizeof(*execute));
	if (execute == NULL) {
		return -ENOMEM;
	}
	execute->turn.run = execute_turn;
	execute->answerer.run = answer_all;
	if (way->is_together) {
		/* Workers are bound to CPUs of the thread that starts them. */
		bench_place_on_one(&execute->place);
	}
	rc = bench_start_workers(bench, 1, out_setting, &execute->own);
	if (rc == 0) {
		rc = bench_start_workers(bench, 1, &other_setting, &execute->other);
	}
	if (rc != 0) {
		execute_stop(execute);
		return rc;
	}
	bench_setting_add(out_setting, "and 1 of another runtime");
	*out_state = execute;
	return 0;
}

const struct bench_subject bench_execute = {
	.name = "execute",
	.unit = "us",
	.brief = "a call on another runtime's worker and back, against a word between two threads",
	.sides = {[BENCH_OURS] = "pinion_call_run_async", [BENCH_FLOOR] = "futex-round-trip"},
	.variant = &(const struct execute_way){.is_together = false},
	.start = execute_start,
	.run = execute_run,
	.stop = execute_stop,
};

const struct bench_subject bench_execute_together = {
	.name = "execute_together",
	.unit = "us",
	.brief = "as execute, both on one CPU",
	.sides = {[BENCH_OURS] = "pinion_call_run_async", [BENCH_FLOOR] = "futex-round-trip"},
	.variant = &(const struct execute_way){.is_together = true},
	.start = execute_start,
	.run = execute_run,
	.stop = execute_stop,
};
