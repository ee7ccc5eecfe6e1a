/* SPDX-License-Identifier: MIT */
/*
 * The subject `steal_spawn`: what an empty task costs that is spawned from
 * inside a worker while another worker steals from it.
 *
 * A generator spawns a few tasks and then itself, after them, until all are
 * spawned, and goes on spawning itself until all have run. Each worker counts
 * what it runs on a line of its own, so that nothing is shared but what the
 * queue shares. The generator may be stolen as well. The floor is a bare
 * work-stealing deque: one worker's thread pushes as many and pops, the other's
 * spins on stealing.
 */
#include "tools/bench/chaselev.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	STEAL_WORKERS = 2,
	STEAL_BATCH = 64,
	STEAL_FIGURE_TASKS = 128 * STEAL_BATCH,
	STEAL_FIGURES = 16, /* of one turn */
};

struct steal_spawn;

struct counted_task {
	struct pinion_task task;
	struct steal_spawn *owner;
};

struct steal_count {
	uint64_t run_count BENCH_LINE_ALIGNED;
};

struct steal_spawn {
	struct pinion_runtime *runtime;
	/* The generator's, on whichever worker. */
	struct pinion_task generator;
	uint32_t spawned_count; /* of the figure in hand */
	uint64_t before_count;	/* that had run when it began */
	uint64_t start_ns;
	uint32_t figure_count;
	double samples[STEAL_FIGURES];
	int error;
	struct counted_task *tasks; /* of a figure */
	uint64_t ours_counts[STEAL_WORKERS];
	/* The floor's. */
	struct pinion_task owner_turn;
	struct pinion_task thief;
	uint32_t thief_count; /* raised when it begins and when it ends */
	uint32_t is_over;
	struct bench_chaselev deque;
	uint32_t done;
	/* By worker; a thief of the floor has the second. */
	struct steal_count counts[STEAL_WORKERS];
};

/* Where the calling thread counts. */
static __thread struct steal_count *own_count;

static void count_one(void)
{
	__atomic_store_n(&own_count->run_count, own_count->run_count + 1, __ATOMIC_RELEASE);
}

static uint64_t read_count(const struct steal_spawn *spawn, int worker)
{
	return __atomic_load_n(&spawn->counts[worker].run_count, __ATOMIC_ACQUIRE);
}

static uint64_t read_counts(const struct steal_spawn *spawn)
{
	uint64_t sum = 0;

	for (int i = 0; i < STEAL_WORKERS; i++) {
		sum += read_count(spawn, i);
	}
	return sum;
}

static int counted_run(struct pinion_task *task)
{
	if (own_count == NULL) {
		struct steal_spawn *spawn = ((struct counted_task *)(void *)task)->owner;

		own_count = &spawn->counts[pinion_worker_index(spawn->runtime)];
	}
	count_one();
	return 0;
}

static void begin_figure(struct steal_spawn *spawn)
{
	spawn->spawned_count = 0;
	spawn->before_count = read_counts(spawn);
	spawn->start_ns = bench_now_ns();
}

/* Notes a figure and says whether another is to come. */
static bool next_figure(struct steal_spawn *spawn)
{
	spawn->samples[spawn->figure_count++] =
		(double)(bench_now_ns() - spawn->start_ns) / STEAL_FIGURE_TASKS;
	begin_figure(spawn);
	return spawn->figure_count < STEAL_FIGURES;
}

static bool has_run_all(const struct steal_spawn *spawn)
{
	return read_counts(spawn) - spawn->before_count == STEAL_FIGURE_TASKS;
}

/* ---- ours ---- */

static int spawn_some(struct steal_spawn *spawn)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < STEAL_BATCH; i++) {
		rc = pinion_task_spawn(spawn->runtime, &spawn->tasks[spawn->spawned_count].task);
		spawn->spawned_count += rc == 0;
	}
	return rc;
}

static int generator_run(struct pinion_task *task)
{
	struct steal_spawn *spawn = (struct steal_spawn *)(void *)((char *)task -
		offsetof(struct steal_spawn, generator));
	bool is_last = false;
	int rc = 0;

	if (spawn->spawned_count < STEAL_FIGURE_TASKS) {
		rc = spawn_some(spawn);
	} else if (has_run_all(spawn)) {
		is_last = !next_figure(spawn);
	}
	if (rc == 0 && !is_last) {
		rc = pinion_task_respawn(spawn->runtime, task);
	}
	if (rc != 0 || is_last) {
		spawn->error = rc;
		bench_word_raise(&spawn->done);
	}
	return 0;
}

/* ---- the floor ---- */

static int thief_run(struct pinion_task *task)
{
	struct steal_spawn *spawn =
		(struct steal_spawn *)(void *)((char *)task - offsetof(struct steal_spawn, thief));

	own_count = &spawn->counts[1];
	bench_word_raise(&spawn->thief_count);
	while (bench_word_read(&spawn->is_over) == 0) {
		struct pinion_task *found = bench_chaselev_steal(&spawn->deque);

		if (found != NULL) {
			(void)found->run(found);
		} else {
			bench_relax();
		}
	}
	own_count = NULL;
	bench_word_raise(&spawn->thief_count);
	return 0;
}

static void floor_figure(struct steal_spawn *spawn)
{
	struct pinion_task *task;

	while (spawn->spawned_count < STEAL_FIGURE_TASKS) {
		for (int i = 0; i < STEAL_BATCH; i++) {
			bench_chaselev_push(
				&spawn->deque, &spawn->tasks[spawn->spawned_count++].task);
		}
		while ((task = bench_chaselev_pop(&spawn->deque)) != NULL) {
			(void)task->run(task);
		}
	}
	while (!has_run_all(spawn)) {
		bench_relax();
	}
}

static int floor_turn(struct pinion_task *task)
{
	struct steal_spawn *spawn = (struct steal_spawn *)(void *)((char *)task -
		offsetof(struct steal_spawn, owner_turn));
	uint32_t thief_count = bench_word_read(&spawn->thief_count);

	__atomic_store_n(&spawn->is_over, 0, __ATOMIC_RELEASE);
	/* Only the other worker can take it. */
	spawn->error = pinion_task_spawn_shared(spawn->runtime, &spawn->thief);
	if (spawn->error == 0) {
		spawn->error = bench_word_wait(&spawn->thief_count, thief_count);
	}
	if (spawn->error != 0) {
		/* The thief may still come. */
		__atomic_store_n(&spawn->is_over, 1, __ATOMIC_RELEASE);
	} else {
		own_count = &spawn->counts[0];
		begin_figure(spawn);
		do {
			floor_figure(spawn);
		} while (next_figure(spawn));
		own_count = NULL;
		__atomic_store_n(&spawn->is_over, 1, __ATOMIC_RELEASE);
		spawn->error = bench_word_wait(&spawn->thief_count, thief_count + 1);
	}
	bench_word_raise(&spawn->done);
	return 0;
}

/* ---- the subject ---- */

static int run_ours(struct steal_spawn *spawn)
{
	uint64_t before[STEAL_WORKERS];
	int rc;

	for (int i = 0; i < STEAL_WORKERS; i++) {
		before[i] = read_count(spawn, i);
	}
	begin_figure(spawn);
	rc = bench_run_turn(spawn->runtime, &spawn->generator, &spawn->done);
	for (int i = 0; i < STEAL_WORKERS; i++) {
		spawn->ours_counts[i] += read_count(spawn, i) - before[i];
	}
	return rc;
}

static int steal_spawn_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct steal_spawn *spawn = state;
	int rc;

	spawn->figure_count = 0;
	spawn->error = 0;
	rc = side == BENCH_OURS ? run_ours(spawn)
				: bench_run_turn(spawn->runtime, &spawn->owner_turn, &spawn->done);
	if (rc == 0 && spawn->error != 0) {
		rc = spawn->error;
		if (rc != -ECANCELED) {
			report_line("cannot spawn: %s", report_reason(rc));
		}
	}
	for (uint32_t i = 0; rc == 0 && i < spawn->figure_count; i++) {
		rc = samples_add(out_figures, spawn->samples[i]);
	}
	return rc;
}

/*
 * The share of the tasks that the other worker has taken off the busier worker.
 */
static uint32_t steal_spawn_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct steal_spawn *spawn = state;
	uint64_t sum = spawn->ours_counts[0] + spawn->ours_counts[1];
	uint64_t less = spawn->ours_counts[0] < spawn->ours_counts[1] ? spawn->ours_counts[0]
								      : spawn->ours_counts[1];

	further[0] = (struct bench_further){
		"other_worker_percent", sum == 0 ? 0 : 100 * (double)less / (double)sum};
	return 1;
}

static void steal_spawn_stop(void *state)
{
	struct steal_spawn *spawn = state;

	/* A thief of the floor would spin for ever after a signal. */
	__atomic_store_n(&spawn->is_over, 1, __ATOMIC_RELEASE);
	pinion_runtime_destroy(spawn->runtime);
	free(spawn->tasks);
	free(spawn);
}

static int steal_spawn_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct steal_spawn *spawn;
	int rc = bench_require_cpus(bench->subject, STEAL_WORKERS);

	if (rc != 0) {
		return rc;
	}
	spawn = bench_allocate(sizeof(*spawn));
	if (spawn == NULL) {
		return -ENOMEM;
	}
	spawn->generator.run = generator_run;
	spawn->owner_turn.run = floor_turn;
	spawn->thief.run = thief_run;
	spawn->tasks = bench_allocate(STEAL_FIGURE_TASKS * sizeof(*spawn->tasks));
	rc = spawn->tasks == NULL
		? -ENOMEM
		: bench_start_workers(bench, STEAL_WORKERS, out_setting, &spawn->runtime);
	if (rc != 0) {
		steal_spawn_stop(spawn);
		return rc;
	}
	for (uint32_t i = 0; i < STEAL_FIGURE_TASKS; i++) {
		spawn->tasks[i].task.run = counted_run;
		spawn->tasks[i].owner = spawn;
	}
	*out_state = spawn;
	return 0;
}

const struct bench_subject bench_steal_spawn = {
	.name = "steal_spawn",
	.unit = "ns",
	.brief = "as spawn, while a second worker steals, against a bare deque with a thief",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "chase-lev-deque"},
	.start = steal_spawn_start,
	.run = steal_spawn_run,
	.stop = steal_spawn_stop,
	.further = steal_spawn_further,
};
