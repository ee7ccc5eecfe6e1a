/* SPDX-License-Identifier: MIT */
/*
 * The subject `spawn`: what an empty task costs that is spawned from inside a
 * worker and run by it. And `yield`: the same of a task that spawns itself, so
 * that the queue is empty each time.
 *
 * Ours goes on by itself: the last task of a batch spawns the next. The floor
 * calls the same tasks in the same batches by way of a bare deque, on the same
 * thread, so on the same core.
 */
#include "tools/bench/chaselev.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	/* Half of a worker's queue, so that none is passed on to others. */
	SPAWN_BATCH_MAX = 128,
	/* Tasks per figure: large against the clock's own cost, 50 us or so. */
	SPAWN_FIGURE_TASKS = 64 * SPAWN_BATCH_MAX,
	SPAWN_FIGURES = 32, /* of one turn */
};

struct spawn;

/* As empty as a task can be whose end is to be noticed: it counts itself. */
struct spawn_task {
	struct pinion_task task;
	struct spawn *spawn;
};

/* Everything but `done` is the worker's alone while a turn is running. */
struct spawn {
	struct pinion_runtime *runtime;
	struct pinion_task turn;
	struct spawn_task tasks[SPAWN_BATCH_MAX];
	uint32_t batch_count;	  /* of them in use: 1 for `yield` */
	uint64_t left_count;	  /* tasks of the batch in hand */
	uint64_t remaining_count; /* tasks of the figure in hand */
	uint64_t start_ns;
	uint32_t figure_count;
	double figures[SPAWN_FIGURES];
	enum bench_side side;
	int error;
	/* The floor's queue. */
	struct bench_chaselev deque;
	uint32_t done; /* raised when a turn has ended */
};

static void spawn_batch(struct spawn *spawn);

static int spawn_empty(struct pinion_task *task)
{
	struct spawn *spawn = ((struct spawn_task *)(void *)task)->spawn;

	if (--spawn->left_count == 0) {
		spawn_batch(spawn);
	}
	return 0;
}

/* Notes a figure and says whether another is to come. */
static bool spawn_next_figure(struct spawn *spawn)
{
	uint64_t now_ns = bench_now_ns();

	spawn->figures[spawn->figure_count++] =
		(double)(now_ns - spawn->start_ns) / SPAWN_FIGURE_TASKS;
	spawn->remaining_count = SPAWN_FIGURE_TASKS;
	spawn->start_ns = bench_now_ns();
	return spawn->figure_count < SPAWN_FIGURES;
}

/* Runs where the last task of a batch does: the loop goes by way of tasks. */
static void spawn_batch(struct spawn *spawn)
{
	if (spawn->remaining_count == 0 && !spawn_next_figure(spawn)) {
		bench_word_raise(&spawn->done);
		return;
	}
	spawn->remaining_count -= spawn->batch_count;
	spawn->left_count = spawn->batch_count;
	for (uint32_t i = 0; i < spawn->batch_count; i++) {
		int rc = pinion_spawn(spawn->runtime, &spawn->tasks[i].task);

		if (rc != 0) {
			/* Those before it still run, but start no other. */
			spawn->left_count = UINT64_MAX;
			spawn->error = rc;
			bench_word_raise(&spawn->done);
			return;
		}
	}
}

/* The same tasks in the same batches, called from a loop. */
static void floor_figure(struct spawn *spawn)
{
	while (spawn->remaining_count > 0) {
		/* One more than there are, so that none is the last. */
		spawn->left_count = spawn->batch_count + 1;
		for (uint32_t i = 0; i < spawn->batch_count; i++) {
			bench_chaselev_push(&spawn->deque, &spawn->tasks[i].task);
		}
		for (uint32_t i = 0; i < spawn->batch_count; i++) {
			struct pinion_task *task = bench_chaselev_pop(&spawn->deque);

			spawn->error |= task->run(task);
		}
		spawn->remaining_count -= spawn->batch_count;
	}
}

/* A turn begins: on the worker for both sides, so on the same core. */
static int spawn_turn(struct pinion_task *task)
{
	struct spawn *spawn = (struct spawn *)(void *)((char *)task - offsetof(struct spawn, turn));

	spawn->figure_count = 0;
	spawn->remaining_count = SPAWN_FIGURE_TASKS;
	spawn->start_ns = bench_now_ns();
	if (spawn->side == BENCH_OURS) {
		spawn_batch(spawn);
		return 0;
	}
	do {
		floor_figure(spawn);
	} while (spawn_next_figure(spawn));
	bench_word_raise(&spawn->done);
	return 0;
}

static int spawn_run(void *state, enum bench_side side, struct figures *out_figures)
{
	struct spawn *spawn = state;
	int rc;

	spawn->side = side;
	rc = bench_run_turn(spawn->runtime, &spawn->turn, &spawn->done);
	if (rc == 0 && spawn->error != 0) {
		rc = spawn->error;
		report_line("cannot spawn: %s", report_reason(rc));
	}
	for (uint32_t i = 0; rc == 0 && i < SPAWN_FIGURES; i++) {
		rc = figures_add(out_figures, spawn->figures[i]);
	}
	return rc;
}

static void spawn_stop(void *state)
{
	struct spawn *spawn = state;

	pinion_runtime_destroy(spawn->runtime);
	free(spawn);
}

static int start(struct bench *bench, uint32_t batch_count, struct bench_setting *out_setting,
	void **out_state)
{
	struct spawn *spawn = bench_allocate(sizeof(*spawn));
	int rc;

	if (spawn == NULL) {
		return -ENOMEM;
	}
	spawn->turn.run = spawn_turn;
	spawn->batch_count = batch_count;
	for (uint32_t i = 0; i < batch_count; i++) {
		spawn->tasks[i].task.run = spawn_empty;
		spawn->tasks[i].spawn = spawn;
	}
	rc = bench_start_workers(bench, 1, out_setting, &spawn->runtime);
	if (rc != 0) {
		spawn_stop(spawn);
		return rc;
	}
	*out_state = spawn;
	return 0;
}

static int spawn_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	return start(bench, SPAWN_BATCH_MAX, out_setting, out_state);
}

static int yield_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	return start(bench, 1, out_setting, out_state);
}

const struct bench_subject bench_spawn = {
	.name = "spawn",
	.unit = "ns",
	.brief = "an empty task spawned and run by its worker, against calls from a bare deque",
	.sides = {[BENCH_OURS] = "pinion_spawn", [BENCH_FLOOR] = "chase-lev-deque"},
	.start = spawn_start,
	.run = spawn_run,
	.stop = spawn_stop,
};

const struct bench_subject bench_yield = {
	.name = "yield",
	.unit = "ns",
	.brief = "a task that spawns itself and returns, against calls from a bare deque",
	.sides = {[BENCH_OURS] = "pinion_spawn", [BENCH_FLOOR] = "chase-lev-deque"},
	.start = yield_start,
	.run = spawn_run,
	.stop = spawn_stop,
};
