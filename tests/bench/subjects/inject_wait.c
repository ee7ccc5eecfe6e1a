/* SPDX-License-Identifier: MIT */
/*
 * The subject `inject_wait`: how long a task from outside waits while every
 * worker has more to do than it can ever finish (load.h).
 *
 * The floor is the same workers' threads in a loop over tasks of the same
 * lengths, which check one pointer after each: a task waits for the nearest end
 * of another, which no scheduler can avoid. The difference is the cost of a
 * worker's own queue, which comes first.
 */
#include "tools/bench/load.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	WAIT_FIGURES = 32, /* of one turn */
	/* Between the end of one wait and the next, at most. */
	WAIT_GAP_NS_MAX = 200 * 1000,
};

struct inject_wait {
	struct load load;
	struct pinion_runtime *runtime;
	uint64_t random;
	double max_us;
	struct pinion_task probe;
	uint64_t started_ns; /* of the probe's run */
	uint32_t probed;     /* raised by it */
};

static int probe_run(struct pinion_task *task)
{
	struct inject_wait *wait =
		(struct inject_wait *)(void *)((char *)task - offsetof(struct inject_wait, probe));

	wait->started_ns = bench_now_ns();
	bench_word_raise(&wait->probed);
	return 0;
}

static int take_figure(struct inject_wait *wait, enum bench_side side, struct samples *out_figures)
{
	uint32_t before = bench_word_read(&wait->probed);
	uint64_t start_ns;
	double figure;
	int rc = 0;

	load_sleep_gap(&wait->random, WAIT_GAP_NS_MAX);
	start_ns = bench_now_ns();
	if (side == BENCH_OURS) {
		rc = bench_spawn_task(wait->runtime, &wait->probe);
	} else {
		__atomic_store_n(&wait->load.slot, &wait->probe, __ATOMIC_RELEASE);
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
	return samples_add(out_figures, figure);
}

static int wait_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct inject_wait *wait = state;
	int rc = load_begin(&wait->load, side == BENCH_FLOOR);

	for (int i = 0; rc == 0 && i < WAIT_FIGURES; i++) {
		rc = take_figure(wait, side, out_figures);
	}
	if (rc != 0) {
		/* The runtime's end makes an end of the tasks. */
		load_abandon(&wait->load);
		return rc;
	}
	return load_end(&wait->load);
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
	load_fini(&wait->load);
	free(wait);
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
		wait->load.task_ns_min = LOAD_SHORT_NS_MIN;
		wait->load.task_ns_max = LOAD_SHORT_NS_MAX;
		rc = load_init(&wait->load, wait->runtime);
	}
	if (rc != 0) {
		wait_stop(wait);
		return rc;
	}
	*out_state = wait;
	return 0;
}

const struct bench_subject bench_inject_wait = {
	.name = "inject_wait",
	.unit = "us",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "how long a task from outside waits while all workers have tasks of their own",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "look-between-tasks"},
	.start = wait_start,
	.run = wait_run,
	.stop = wait_stop,
	.further = wait_further,
};
