/* SPDX-License-Identifier: MIT */
/*
 * Batches of empty tasks, and the subject `spawn`.
 */
#include "tools/bench/spawn.h"
#include "tools/bench/chaselev.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	/* Tasks per figure: large against the clock's own cost, 50 us or so. */
	SPAWN_FIGURE_TASKS = 64 * SPAWN_BATCH_MAX,
	SPAWN_FIGURES = 32, /* of one turn */
	/* Checks before the CPU is offered to the other thread. */
	SPAWN_SPIN_COUNT = 2000,
};

struct spawn;

/* As empty as a task can be whose end is to be noticed: it counts itself. */
struct spawn_task {
	struct pinion_task task;
	struct spawn *spawn;
};

struct spawners;

/* Belongs to one worker, and no other touches it while a turn is running. */
struct spawn {
	struct pinion_task turn BENCH_LINE_ALIGNED;
	struct spawners *all;
	struct pinion_runtime *runtime;
	struct spawn_task tasks[SPAWN_BATCH_MAX];
	uint32_t batch_count;	  /* of them in use */
	uint64_t left_count;	  /* tasks of the batch in hand */
	uint64_t remaining_count; /* tasks of the figure in hand */
	uint64_t start_ns;
	uint32_t figure_count;
	double samples[SPAWN_FIGURES];
	enum bench_side side;
	int error;
	/* The floor's queue. */
	struct bench_chaselev deque;
};

_Static_assert(offsetof(struct spawn, turn) == 0, "a cast leads back");

struct spawners {
	struct pinion_runtime *runtime;
	struct spawn *spawns; /* one for each worker */
	uint32_t worker_count;
	/* Workers of all turns; never set back. */
	uint32_t begun_count BENCH_LINE_ALIGNED;
	uint32_t ended_count BENCH_LINE_ALIGNED;
	uint32_t done; /* raised when a turn has ended */
};

static void spawn_batch(struct spawn *spawn);

/* Adds itself, and waits for all others, in a task, so that it is busy. */
static void meet_others(const struct spawners *all, uint32_t *count)
{
	uint32_t before = __atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL);
	/* By the count itself: some still look when the next turn begins. */
	uint32_t wanted = (before / all->worker_count + 1) * all->worker_count;

	for (uint32_t spins = 1; bench_word_read(count) < wanted; spins++) {
		bench_relax();
		if (spins % SPAWN_SPIN_COUNT == 0) {
			if (signals_interrupted()) {
				return;
			}
			sched_yield();
		}
	}
}

static void end_turn(struct spawn *spawn, int error)
{
	struct spawners *all = spawn->all;

	spawn->error |= error;
	meet_others(all, &all->ended_count);
	/* One of them says so, once all have got here. */
	if (spawn == all->spawns) {
		bench_word_raise(&all->done);
	}
}

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

	spawn->samples[spawn->figure_count++] =
		(double)(now_ns - spawn->start_ns) / SPAWN_FIGURE_TASKS;
	spawn->remaining_count = SPAWN_FIGURE_TASKS;
	spawn->start_ns = bench_now_ns();
	return spawn->figure_count < SPAWN_FIGURES;
}

/* Runs where the last task of a batch does: the loop goes by way of tasks. */
static void spawn_batch(struct spawn *spawn)
{
	if (spawn->remaining_count == 0 && !spawn_next_figure(spawn)) {
		end_turn(spawn, 0);
		return;
	}
	spawn->remaining_count -= spawn->batch_count;
	spawn->left_count = spawn->batch_count;
	for (uint32_t i = 0; i < spawn->batch_count; i++) {
		int rc = pinion_task_spawn(spawn->runtime, &spawn->tasks[i].task);

		if (rc != 0) {
			/* Those before it still run, but start no other. */
			spawn->left_count = UINT64_MAX;
			end_turn(spawn, rc);
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
	struct spawn *spawn = (struct spawn *)(void *)task;

	meet_others(spawn->all, &spawn->all->begun_count);
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
	end_turn(spawn, 0);
	return 0;
}

static int spawn_turns(struct spawners *all, enum bench_side side)
{
	uint32_t before = bench_word_read(&all->done);

	for (uint32_t i = 0; i < all->worker_count; i++) {
		int rc;

		all->spawns[i].side = side;
		rc = pinion_task_spawn_on(all->runtime, i, &all->spawns[i].turn);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
			return rc;
		}
	}
	return bench_word_wait(&all->done, before);
}

int spawn_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct spawners *all = state;
	int rc = spawn_turns(all, side);

	for (uint32_t worker = 0; rc == 0 && worker < all->worker_count; worker++) {
		const struct spawn *spawn = &all->spawns[worker];

		if (spawn->error != 0) {
			rc = spawn->error;
			report_line("cannot spawn: %s", report_reason(rc));
		}
		for (uint32_t i = 0; rc == 0 && i < SPAWN_FIGURES; i++) {
			rc = samples_add(out_figures, spawn->samples[i]);
		}
	}
	return rc;
}

void spawn_stop(void *state)
{
	struct spawners *all = state;

	pinion_runtime_destroy(all->runtime);
	free(all->spawns);
	free(all);
}

static void init_spawn(struct spawn *spawn, struct spawners *all, uint32_t batch_count)
{
	spawn->all = all;
	spawn->runtime = all->runtime;
	spawn->turn.run = spawn_turn;
	spawn->batch_count = batch_count;
	for (uint32_t i = 0; i < batch_count; i++) {
		spawn->tasks[i].task.run = spawn_empty;
		spawn->tasks[i].spawn = spawn;
	}
}

int spawn_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct spawn_way *way = bench->subject->variant;
	struct spawners *all = bench_allocate(sizeof(*all));
	uint32_t worker_count = bench->options->runtime.worker_count;
	int rc = -ENOMEM;

	if (all == NULL) {
		return rc;
	}
	all->worker_count = worker_count == 0 ? 1 : worker_count;
	all->spawns = bench_allocate(all->worker_count * sizeof(*all->spawns));
	if (all->spawns != NULL) {
		rc = bench_start_workers(bench, all->worker_count, out_setting, &all->runtime);
	}
	if (rc != 0) {
		spawn_stop(all);
		return rc;
	}
	for (uint32_t i = 0; i < all->worker_count; i++) {
		init_spawn(&all->spawns[i], all, way->batch_count);
	}
	*out_state = all;
	return 0;
}

const struct bench_subject bench_spawn = {
	.name = "spawn",
	.brief = "an empty task spawned and run by its worker, against calls from a bare deque",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "chase-lev-deque"},
	.variant = &(const struct spawn_way){.batch_count = SPAWN_BATCH_MAX},
	SPAWN_SHARED,
};
