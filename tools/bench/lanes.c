/* SPDX-License-Identifier: MIT */
/*
 * Waits of high jobs, timed, and the subject `lanes`.
 */
#include "tools/bench/lanes.h"
#include "tools/bench/load.h"
#include "tools/bench/place.h"
#include "tools/bench/sleeper.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	LANES_FIGURES = 32, /* of one turn */
	/* Between the end of one wait and the next, at most. */
	LANES_GAP_NS_MAX = 200 * 1000,
	/* Of what saturates the others while one is free. */
	LANES_LONG_NS_MIN = 1000 * 1000,
	LANES_LONG_NS_MAX = 2 * 1000 * 1000,
	LANES_FREE_INDEX = 0, /* the worker of the first worker class */
};

struct lanes {
	struct load load;
	struct pinion_runtime *runtime;
	bool has_free_worker;
	bool has_warmed_up;
	uint64_t random;
	struct pinion_task probe;
	struct sleeper worker; /* the free one; `woken_ns` of the one that took the probe */
	uint32_t taken_count;  /* of the turns that count, by the free one */
	struct bare_sleeper bare;
	struct bench_place place;
	struct samples waits[BENCH_FLOOR + 1]; /* of all turns that count */
};

static int probe_run(struct pinion_task *task)
{
	char *probe = (char *)task;
	struct lanes *lanes = (struct lanes *)(void *)(probe - offsetof(struct lanes, probe));

	lanes->worker.woken_ns = bench_now_ns();
	if (lanes->has_warmed_up && pinion_worker_index(lanes->runtime) == LANES_FREE_INDEX) {
		lanes->taken_count++;
	}
	bench_word_raise(&lanes->worker.answers);
	return 0;
}

static int meet_run(struct pinion_task *task)
{
	char *probe = (char *)task;
	struct lanes *lanes = (struct lanes *)(void *)(probe - offsetof(struct lanes, probe));

	sleeper_answer(&lanes->worker);
	return 0;
}

/* The sleeper whose answer says when the job started. */
static struct sleeper *sleeper_of(struct lanes *lanes, enum bench_side side)
{
	return side == BENCH_FLOOR && lanes->has_free_worker ? &lanes->bare.sleeper
							     : &lanes->worker;
}

static int submit(struct lanes *lanes, enum bench_side side)
{
	if (side == BENCH_OURS) {
		return bench_spawn_task(lanes->runtime, &lanes->probe);
	}
	if (lanes->has_free_worker) {
		bare_sleeper_call(&lanes->bare);
	} else {
		__atomic_store_n(&lanes->load.slot, &lanes->probe, __ATOMIC_RELEASE);
	}
	return 0;
}

static int take_figure(struct lanes *lanes, enum bench_side side, struct samples *out_figures)
{
	struct sleeper *sleeper = sleeper_of(lanes, side);
	uint32_t before = bench_word_read(&sleeper->answers);
	uint64_t start_ns;
	int rc = 0;

	load_sleep_gap(&lanes->random, LANES_GAP_NS_MAX);
	if (lanes->has_free_worker) {
		rc = sleeper_wait_asleep(sleeper);
	}
	start_ns = bench_now_ns();
	if (rc == 0) {
		rc = submit(lanes, side);
	}
	if (rc == 0) {
		rc = bench_word_wait(&sleeper->answers, before);
	}
	if (rc != 0) {
		return rc;
	}
	return samples_add(out_figures, (double)(sleeper->woken_ns - start_ns) / 1000);
}

/* Turns come in pairs, and the first pair does not count. */
static int keep_figures(struct lanes *lanes, enum bench_side side, const struct samples *block)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && lanes->has_warmed_up && i < block->count; i++) {
		rc = samples_add(&lanes->waits[side], block->values[i]);
	}
	lanes->has_warmed_up |= side == BENCH_FLOOR;
	return rc;
}

int lanes_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct lanes *lanes = state;
	bool is_shared = !lanes->has_free_worker;
	/* Without a free worker either side needs all workers for itself. */
	int rc = is_shared ? load_begin(&lanes->load, side == BENCH_FLOOR) : 0;

	for (int i = 0; rc == 0 && i < LANES_FIGURES; i++) {
		rc = take_figure(lanes, side, out_figures);
	}
	rc = rc == 0 ? keep_figures(lanes, side, out_figures) : rc;
	return rc == 0 && is_shared ? load_end(&lanes->load) : rc;
}

uint32_t lanes_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	struct lanes *lanes = state;
	int rc = lanes->has_free_worker ? load_end(&lanes->load) : 0;
	double low = (double)load_runs(&lanes->load, true);
	double normal = (double)load_runs(&lanes->load, false);

	if (rc != 0) {
		return 0;
	}
	for (int side = BENCH_OURS; side <= BENCH_FLOOR; side++) {
		samples_sort(&lanes->waits[side]);
	}
	further[0] = (struct bench_further){
		"high_start_p99_us", samples_quantile(&lanes->waits[BENCH_OURS], 0.99)};
	further[1] = (struct bench_further){
		"floor_p99_us", samples_quantile(&lanes->waits[BENCH_FLOOR], 0.99)};
	further[2] = (struct bench_further){"low_share_percent", 100 * low / (low + normal)};
	further[3] = (struct bench_further){"by_free_worker_percent",
		100.0 * lanes->taken_count / lanes->waits[BENCH_OURS].count};
	return lanes->has_free_worker ? 4 : 3;
}

void lanes_stop(void *state)
{
	struct lanes *lanes = state;

	/* Else the runtime's end makes an end of the tasks. */
	load_abandon(&lanes->load);
	pinion_runtime_destroy(lanes->runtime);
	bare_sleeper_stop(&lanes->bare);
	bench_place_restore(&lanes->place);
	sleeper_fini(&lanes->worker);
	load_fini(&lanes->load);
	for (int side = BENCH_OURS; side <= BENCH_FLOOR; side++) {
		samples_free(&lanes->waits[side]);
	}
	free(lanes);
}

/*
 * The free worker answers once, with its thread id. It keeps its CPU to itself,
 * but for the bare thread.
 */
static int meet_free_worker(struct lanes *lanes)
{
	int rc = bare_sleeper_start(&lanes->bare);

	lanes->probe.run = meet_run;
	if (rc == 0) {
		rc = pinion_task_spawn_on(lanes->runtime, LANES_FREE_INDEX, &lanes->probe);
		if (rc != 0) {
			report_line("cannot spawn: %s", report_reason(rc));
		}
	}
	if (rc == 0) {
		rc = bench_word_wait(&lanes->worker.answers, 0);
	}
	if (rc == 0) {
		bench_place_together(lanes->bare.sleeper.thread_id, lanes->worker.thread_id);
		bench_place_apart(&lanes->place, lanes->worker.thread_id);
		rc = sleeper_wait_asleep(&lanes->worker);
	}
	return rc;
}

static int start_runtime(struct bench *bench, struct lanes *lanes, uint32_t worker_count,
	struct bench_setting *out_setting)
{
	const struct lanes_way *way = bench->subject->variant;
	struct bench_options options = *bench->options;
	struct bench own = *bench;

	options.runtime.lanes = lanes->has_free_worker ? "h:1,hnl" : NULL;
	if (way->keeps_cpus_awake) {
		options.tuning.cpu_latency_us = 0;
		options.runtime.tuning = &options.tuning;
	}
	own.options = &options;
	return bench_start_workers(&own, worker_count, out_setting, &lanes->runtime);
}

int lanes_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct lanes_way *way = bench->subject->variant;
	bool has_free_worker = way->has_free_worker;
	uint32_t worker_count = has_free_worker ? 0 : bench->options->runtime.worker_count;
	struct lanes *lanes;
	int rc = has_free_worker ? bench_require_cpus(bench->subject, 2) : 0;

	if (rc != 0) {
		return rc;
	}
	lanes = bench_allocate(sizeof(*lanes));
	if (lanes == NULL) {
		return -ENOMEM;
	}
	lanes->has_free_worker = has_free_worker;
	lanes->load.first_index = has_free_worker ? 1 : 0;
	lanes->load.low_count = LOAD_TASKS / 2;
	lanes->load.task_ns_min = has_free_worker ? LANES_LONG_NS_MIN : LOAD_SHORT_NS_MIN;
	lanes->load.task_ns_max = has_free_worker ? LANES_LONG_NS_MAX : LOAD_SHORT_NS_MAX;
	lanes->probe.flags = PINION_TASK_HIGH;
	lanes->random = 362436069362436069u;
	sleeper_init(&lanes->worker);
	rc = start_runtime(bench, lanes, worker_count, out_setting);
	if (rc == 0 && way->keeps_cpus_awake) {
		rc = bench_require_awake(bench->subject, out_setting);
	}
	if (rc == 0 && has_free_worker) {
		rc = meet_free_worker(lanes);
	}
	if (rc == 0) {
		lanes->probe.run = probe_run;
		rc = load_init(&lanes->load, lanes->runtime);
	}
	if (rc == 0 && has_free_worker) {
		rc = load_begin(&lanes->load, false);
	}
	if (rc != 0) {
		lanes_stop(lanes);
		return rc;
	}
	*out_state = lanes;
	return 0;
}

const struct bench_subject bench_lanes = {
	.name = "lanes",
	.brief = "from a high job's spawn to its start, one worker free, the others full",
	.sides = {[BENCH_OURS] = "pinion_task_spawn", [BENCH_FLOOR] = "futex-wake"},
	.variant = &(const struct lanes_way){.has_free_worker = true},
	LANES_SHARED,
};
