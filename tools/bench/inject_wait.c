/* SPDX-License-Identifier: MIT */
/*
 * The subject `inject_wait`: how long a task from outside waits while every
 * worker has more to do than it can ever finish: tasks of 1 to 100 us that
 * spawn themselves anew, so that no worker's own queue is ever empty.
 *
 * The floor are the same workers' threads in a loop over tasks of the same
 * lengths, who look at one pointer after each: a task waits until the nearest
 * end of another, which nobody can do without. How much more it is with a queue
 * of one's own that comes first is what is measured.
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
	WAIT_FIGURES = 32, /* of one turn */
	WAIT_OWN_TASKS = 16,
	WAIT_TASK_NS_MIN = 1000,
	WAIT_TASK_NS_MAX = 100 * 1000,
	/* Between the end of one wait and the next, at most. */
	WAIT_GAP_NS_MAX = 200 * 1000,
};

struct inject_wait;

/* Spins for a while and spawns itself. */
struct busy_task {
	struct pinion_task task;
	struct inject_wait *owner;
	uint64_t random;
};

struct busy_worker {
	struct pinion_task turn BENCH_LINE_ALIGNED; /* the floor's loop */
	struct inject_wait *owner;
	uint64_t random;
	struct busy_task tasks[WAIT_OWN_TASKS];
};

_Static_assert(offsetof(struct busy_worker, turn) == 0, "a cast leads back");
_Static_assert(offsetof(struct busy_task, task) == 0, "a cast leads back");

struct inject_wait {
	struct pinion_runtime *runtime;
	struct busy_worker *workers;
	uint32_t worker_count;
	uint64_t random;
	double max_us;
	struct pinion_task probe;
	uint64_t started_ns;		   /* of the probe's run */
	uint32_t probed;		   /* raised by it */
	struct pinion_task *slot;	   /* the floor's */
	uint32_t is_over;		   /* nobody spawns itself any more */
	uint32_t begun BENCH_LINE_ALIGNED; /* busy tasks or loops, raised */
	uint32_t ended;
	int error;
};

/* xorshift64: as good as any for lengths. */
static uint64_t random_below(uint64_t *state, uint64_t end)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state % end;
}

static void be_busy(uint64_t *random)
{
	uint64_t end_ns = bench_now_ns() + WAIT_TASK_NS_MIN +
		random_below(random, WAIT_TASK_NS_MAX - WAIT_TASK_NS_MIN + 1);

	while (bench_now_ns() < end_ns) {
		bench_relax();
	}
}

static bool is_over(const struct inject_wait *wait)
{
	return __atomic_load_n(&wait->is_over, __ATOMIC_ACQUIRE) != 0;
}

static int probe_run(struct pinion_task *task)
{
	struct inject_wait *wait =
		(struct inject_wait *)(void *)((char *)task - offsetof(struct inject_wait, probe));

	wait->started_ns = bench_now_ns();
	bench_word_raise(&wait->probed);
	return 0;
}

/* ---- on the workers ---- */

static int busy_run(struct pinion_task *task)
{
	struct busy_task *busy = (struct busy_task *)(void *)task;
	struct inject_wait *wait = busy->owner;
	int rc = -ECANCELED;

	be_busy(&busy->random);
	if (!is_over(wait)) {
		rc = pinion_spawn(wait->runtime, task);
		if (rc != 0) {
			__atomic_store_n(&wait->error, rc, __ATOMIC_RELEASE);
		}
	}
	if (rc != 0) {
		bench_word_raise(&wait->ended);
	}
	return 0;
}

static int begin_busy(struct pinion_task *task)
{
	struct busy_worker *worker = (struct busy_worker *)(void *)task;
	struct inject_wait *wait = worker->owner;

	for (int i = 0; i < WAIT_OWN_TASKS; i++) {
		int rc = pinion_spawn(wait->runtime, &worker->tasks[i].task);

		if (rc != 0) {
			__atomic_store_n(&wait->error, rc, __ATOMIC_RELEASE);
			bench_word_raise(&wait->ended);
		}
	}
	bench_word_raise(&wait->begun);
	return 0;
}

static int floor_loop(struct pinion_task *task)
{
	struct busy_worker *worker = (struct busy_worker *)(void *)task;
	struct inject_wait *wait = worker->owner;

	bench_word_raise(&wait->begun);
	while (!is_over(wait)) {
		struct pinion_task *found;

		be_busy(&worker->random);
		found = __atomic_load_n(&wait->slot, __ATOMIC_RELAXED);
		if (found != NULL) {
			found = __atomic_exchange_n(&wait->slot, NULL, __ATOMIC_ACQ_REL);
		}
		if (found != NULL) {
			(void)found->run(found);
		}
	}
	bench_word_raise(&wait->ended);
	return 0;
}

/* ---- outside ---- */

static int await_count(const uint32_t *word, uint32_t count)
{
	uint32_t value;
	int rc = 0;

	while (rc == 0 && (value = bench_word_read(word)) < count) {
		rc = bench_word_wait(word, value);
	}
	return rc;
}

static int begin_turn(struct inject_wait *wait, enum bench_side side)
{
	__atomic_store_n(&wait->is_over, 0, __ATOMIC_RELEASE);
	wait->begun = 0;
	wait->ended = 0;
	wait->error = 0;
	wait->slot = NULL;
	for (uint32_t i = 0; i < wait->worker_count; i++) {
		struct busy_worker *worker = &wait->workers[i];
		int rc;

		worker->turn.run = side == BENCH_OURS ? begin_busy : floor_loop;
		rc = pinion_spawn_on(wait->runtime, i, &worker->turn);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
			return rc;
		}
	}
	return await_count(&wait->begun, wait->worker_count);
}

static int end_turn(struct inject_wait *wait, enum bench_side side)
{
	uint32_t count = wait->worker_count * (side == BENCH_OURS ? WAIT_OWN_TASKS : 1);

	__atomic_store_n(&wait->is_over, 1, __ATOMIC_RELEASE);
	return await_count(&wait->ended, count);
}

/* So that a wait begins at any moment of a task, and not at its end. */
static void sleep_gap(struct inject_wait *wait)
{
	struct timespec gap = {.tv_nsec = (long)random_below(&wait->random, WAIT_GAP_NS_MAX)};

	(void)nanosleep(&gap, NULL);
}

static int take_figure(struct inject_wait *wait, enum bench_side side, struct figures *out_figures)
{
	uint32_t before = bench_word_read(&wait->probed);
	uint64_t start_ns;
	double figure;
	int rc = 0;

	sleep_gap(wait);
	start_ns = bench_now_ns();
	if (side == BENCH_OURS) {
		rc = bench_spawn_task(wait->runtime, &wait->probe);
	} else {
		__atomic_store_n(&wait->slot, &wait->probe, __ATOMIC_RELEASE);
	}
	if (rc == 0) {
		rc = bench_word_wait(&wait->probed, before);
	}
	if (rc != 0) {
		return rc;
	}
	figure = (double)(wait->started_ns - start_ns) / 1000;
	if (side == BENCH_OURS && figure > wait->max_us) {
		wait->max_us = figure;
	}
	return figures_add(out_figures, figure);
}

static int wait_run(void *state, enum bench_side side, struct figures *out_figures)
{
	struct inject_wait *wait = state;
	int rc = begin_turn(wait, side);

	for (int i = 0; rc == 0 && i < WAIT_FIGURES; i++) {
		rc = take_figure(wait, side, out_figures);
	}
	if (rc != 0) {
		/* The runtime's end makes an end of the tasks. */
		__atomic_store_n(&wait->is_over, 1, __ATOMIC_RELEASE);
		return rc;
	}
	rc = end_turn(wait, side);
	if (rc == 0 && wait->error != 0) {
		rc = wait->error;
		report_line("cannot spawn: %s", report_reason(rc));
	}
	return rc;
}

static uint32_t wait_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct inject_wait *wait = state;

	further[0] = (struct bench_further){"max_us", wait->max_us};
	return 1;
}

static void wait_stop(void *state)
{
	struct inject_wait *wait = state;

	pinion_runtime_destroy(wait->runtime);
	free(wait->workers);
	free(wait);
}

static void init_worker(struct inject_wait *wait, uint32_t index)
{
	struct busy_worker *worker = &wait->workers[index];

	worker->owner = wait;
	worker->random = 88172645463325252u + index;
	for (uint32_t i = 0; i < WAIT_OWN_TASKS; i++) {
		worker->tasks[i].task.run = busy_run;
		worker->tasks[i].owner = wait;
		worker->tasks[i].random = worker->random + (i + 1) * 1000003u;
	}
}

static int wait_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct inject_wait *wait = bench_allocate(sizeof(*wait));
	int rc;

	if (wait == NULL) {
		return -ENOMEM;
	}
	wait->probe.run = probe_run;
	wait->random = 362436069362436069u;
	rc = bench_start_workers(
		bench, bench->options->runtime.worker_count, out_setting, &wait->runtime);
	if (rc == 0) {
		wait->worker_count = pinion_runtime_worker_count(wait->runtime);
		wait->workers = bench_allocate(wait->worker_count * sizeof(*wait->workers));
		rc = wait->workers == NULL ? -ENOMEM : 0;
	}
	if (rc != 0) {
		wait_stop(wait);
		return rc;
	}
	for (uint32_t i = 0; i < wait->worker_count; i++) {
		init_worker(wait, i);
	}
	*out_state = wait;
	return 0;
}

const struct bench_subject bench_inject_wait = {
	.name = "inject_wait",
	.unit = "us",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "how long a task from outside waits while all workers have tasks of their own",
	.sides = {[BENCH_OURS] = "pinion_spawn", [BENCH_FLOOR] = "look-between-tasks"},
	.start = wait_start,
	.run = wait_run,
	.stop = wait_stop,
	.further = wait_further,
};
