/* SPDX-License-Identifier: MIT */
/*
 * The subject `inject`: the cost of an empty task that is spawned from outside
 * and run by a worker that is awake, and the bursts that measure it.
 */
#include "tests/bench/subjects/inject.h"

#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	INJECT_FIGURES = 16, /* of one turn */
	/* Checks before the CPU is offered to the other thread. */
	INJECT_SPIN_COUNT = 2000,
};

_Static_assert(INJECT_FIGURE_TASKS % INJECT_STRIDE == 0, "whole strides");
_Static_assert(INJECT_FIGURE_TASKS <= BENCH_MPMC_CELLS, "the floor's queue is never full");

/* ---- on the worker ---- */

/* Until more was pushed than has run: then the queue holds at least one. */
static void await_more(struct inject *inject)
{
	for (uint32_t spins = 1;; spins++) {
		inject->known_count = bench_word_read(&inject->pushed_count);
		if (inject->known_count > inject->run_count) {
			return;
		}
		bench_relax();
		if (spins % INJECT_SPIN_COUNT == 0) {
			sched_yield();
		}
	}
}

static int inject_empty(struct pinion_task *task)
{
	struct inject *inject = ((struct inject_task *)(void *)task)->inject;

	if (++inject->run_count == INJECT_FIGURE_TASKS) {
		inject->end_ns = bench_now_ns();
		bench_word_raise(&inject->done);
	} else if (inject->run_count == inject->known_count) {
		await_more(inject);
	}
	return 0;
}

/* The floor's worker: the same tasks out of the bare queue. */
static void run_floor(struct inject *inject)
{
	while (inject->run_count < INJECT_FIGURE_TASKS) {
		struct pinion_task *task = bench_mpmc_pop(&inject->queue);

		if (task == NULL) {
			return; /* only when the producer gave up */
		}
		(void)task->run(task);
	}
}

/* A burst begins: on the worker for both sides, so on the same core. */
static int inject_turn(struct pinion_task *task)
{
	struct inject *inject =
		(struct inject *)(void *)((char *)task - offsetof(struct inject, turn));

	inject->thread_id = (pid_t)syscall(SYS_gettid);
	inject->run_count = 0;
	__atomic_store_n(&inject->is_ready, 1, __ATOMIC_RELEASE);
	await_more(inject);
	if (inject->side == BENCH_FLOOR) {
		run_floor(inject);
	}
	return 0;
}

/* ---- the producer ---- */

static int push_spawn(struct inject *inject, uint32_t first_index)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < INJECT_STRIDE; i++) {
		rc = pinion_task_spawn(inject->runtime, inject->pointers[first_index + i]);
	}
	return rc;
}

static int push_floor(struct inject *inject, uint32_t first_index)
{
	bool has_room = true;

	for (uint32_t i = 0; i < INJECT_STRIDE; i++) {
		has_room &= bench_mpmc_push(&inject->queue, inject->pointers[first_index + i]);
	}
	return has_room ? 0 : -EAGAIN;
}

static int await_ready(struct inject *inject)
{
	while (bench_word_read(&inject->is_ready) == 0) {
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		sched_yield();
	}
	return 0;
}

static int push_all(struct inject *inject)
{
	inject_push_fn push = inject->side == BENCH_OURS ? inject->push : push_floor;

	for (uint32_t i = 0; i < INJECT_FIGURE_TASKS; i += INJECT_STRIDE) {
		int rc = push(inject, i);

		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
			return rc;
		}
		__atomic_store_n(&inject->pushed_count, i + INJECT_STRIDE, __ATOMIC_RELEASE);
	}
	return 0;
}

static int run_burst(struct inject *inject, double *out_figure)
{
	uint32_t done = bench_word_read(&inject->done);
	uint64_t start_ns;
	int rc;

	inject->pushed_count = 0;
	inject->is_ready = 0;
	rc = bench_spawn_task(inject->runtime, &inject->turn);
	if (rc == 0) {
		rc = await_ready(inject);
	}
	start_ns = bench_now_ns();
	if (rc == 0) {
		rc = push_all(inject);
	}
	if (rc != 0) {
		/* The worker no longer waits for what does not come. */
		__atomic_store_n(&inject->pushed_count, UINT32_MAX, __ATOMIC_RELEASE);
		return rc;
	}
	rc = bench_word_wait(&inject->done, done);
	if (rc == 0) {
		*out_figure = (double)(inject->end_ns - start_ns) / INJECT_FIGURE_TASKS;
	}
	return rc;
}

int inject_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct inject *inject = state;
	int rc = 0;

	inject->side = side;
	for (int i = 0; rc == 0 && i < INJECT_FIGURES; i++) {
		double figure;

		rc = run_burst(inject, &figure);
		if (rc == 0) {
			bench_place_apart(&inject->place, inject->thread_id);
			rc = samples_add(out_figures, figure);
		}
	}
	return rc;
}

void inject_stop(void *state)
{
	struct inject *inject = state;

	pinion_runtime_destroy(inject->runtime);
	bench_place_restore(&inject->place);
	free(inject);
}

int inject_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct inject_way *way = bench->subject->variant;
	struct inject *inject = bench_allocate(sizeof(*inject));
	int rc;

	if (inject == NULL) {
		return -ENOMEM;
	}
	inject->push = way->push;
	inject->turn.run = inject_turn;
	bench_mpmc_init(&inject->queue);
	for (uint32_t i = 0; i < INJECT_FIGURE_TASKS; i++) {
		inject->tasks[i].task.run = inject_empty;
		inject->tasks[i].inject = inject;
		inject->pointers[i] = &inject->tasks[i].task;
	}
	rc = bench_start_workers(bench, 1, out_setting, &inject->runtime);
	if (rc != 0) {
		inject_stop(inject);
		return rc;
	}
	*out_state = inject;
	return 0;
}

const struct bench_subject bench_inject = {
	.name = "inject",
	.unit = "ns",
	.brief = "an empty task spawned outside and run by a worker that is awake, against a queue",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "mpmc-ring"},
	.variant = &(const struct inject_way){push_spawn},
	.start = inject_start,
	.run = inject_run,
	.stop = inject_stop,
};
