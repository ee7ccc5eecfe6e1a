/* SPDX-License-Identifier: MIT */
/*
 * CPU time of threads that have nothing to do, and the subject `idle`.
 */
#include "tools/bench/idle.h"
#include "tools/bench/load.h"
#include "tools/bench/pending.h"
#include "tools/bench/sleeper.h"
#include "tools/bench/tasks.h"
#include "tools/bench/usage.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

enum {
	IDLE_WORKERS = 8,
	IDLE_PERIOD_MS_MIN = 50,
	/* Of work, in each millisecond of a period; one takes about 3 ns. */
	IDLE_STEPS_PER_MS = 1000,
};

struct idle;

struct idle_reader {
	struct pinion_task task;
	struct bench_pending pending;
	struct idle *idle;
};

struct idle {
	struct pinion_runtime *runtime;
	uint32_t period_ms;
	uint64_t random; /* what the work is done on */
	bool is_reading;
	struct idle_reader readers[IDLE_WORKERS];
	uint32_t reading_count; /* how many have begun */
	int error;
	struct bare_sleeper bare[IDLE_WORKERS];
	struct usage_threads bare_threads;
	struct usage_threads own_threads; /* of the bench before it started */
	/* Ours, at the end of the first period and of the last. */
	struct usage first;
	struct usage last;
	uint64_t first_ns;
	uint64_t last_ns;
};

/* Those of one side. Threads that a ring has added are the runtime's. */
static int list_side(const struct idle *idle, enum bench_side side, struct usage_threads *out)
{
	uint32_t count = 0;
	int rc;

	if (side == BENCH_FLOOR) {
		*out = idle->bare_threads;
		return 0;
	}
	rc = usage_list(out);
	for (uint32_t i = 0; rc == 0 && i < out->count; i++) {
		if (!usage_holds(&idle->own_threads, out->ids[i]) &&
			!usage_holds(&idle->bare_threads, out->ids[i])) {
			out->ids[count++] = out->ids[i];
		}
	}
	out->count = count;
	return rc;
}

static uint64_t own_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* Returns the CPU time that it took. */
static uint64_t work(struct idle *idle)
{
	uint64_t start_ns = own_cpu_ns();

	for (uint32_t i = 0; i < idle->period_ms * IDLE_STEPS_PER_MS; i++) {
		(void)load_random_below(&idle->random, UINT64_MAX);
	}
	return own_cpu_ns() - start_ns;
}

/* Ends early when a signal comes. */
static void sleep_for(uint32_t period_ms)
{
	struct pollfd poll_fd = {.fd = signals_fd(), .events = POLLIN};

	(void)poll(&poll_fd, 1, (int)period_ms);
}

int idle_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct idle *idle = state;
	struct usage_threads threads;
	struct usage before;
	struct usage after;
	uint64_t start_ns;
	uint64_t own_ns;
	uint64_t end_ns;
	int rc = list_side(idle, side, &threads);

	if (rc != 0) {
		return rc;
	}
	usage_read(&threads, &before);
	start_ns = bench_now_ns();
	sleep_for(idle->period_ms);
	own_ns = work(idle);
	end_ns = bench_now_ns();
	usage_read(&threads, &after);
	if (side == BENCH_OURS) {
		idle->last = after;
		idle->last_ns = end_ns;
		if (idle->first_ns == 0) {
			idle->first = after;
			idle->first_ns = end_ns;
		}
	}
	for (uint32_t i = 0; rc == 0 && idle->is_reading && i < IDLE_WORKERS; i++) {
		rc = bench_pending_check(&idle->readers[i].pending);
	}
	return rc != 0 ? rc
		       : samples_add(out_figures,
				 1e6 * (double)(after.cpu_ns - before.cpu_ns + own_ns) /
					 (double)(end_ns - start_ns));
}

uint32_t idle_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct idle *idle = state;
	double elapsed_ns = (double)(idle->last_ns - idle->first_ns);

	further[0] = (struct bench_further){
		"cpu_percent", 100 * (double)(idle->last.cpu_ns - idle->first.cpu_ns) / elapsed_ns};
	further[1] = (struct bench_further){"switches_per_worker_s",
		1e9 * (double)(idle->last.switch_count - idle->first.switch_count) /
			(IDLE_WORKERS * elapsed_ns)};
	return 2;
}

void idle_stop(void *state)
{
	struct idle *idle = state;

	pinion_runtime_destroy(idle->runtime);
	for (uint32_t i = 0; i < IDLE_WORKERS; i++) {
		bench_pending_close(&idle->readers[i].pending);
		bare_sleeper_stop(&idle->bare[i]);
	}
	free(idle);
}

/*
 * Begins to read once every worker is in such a task, so that each gets one.
 */
static int idle_read(struct pinion_task *task)
{
	struct idle_reader *reader = (struct idle_reader *)(void *)task;
	struct idle *idle = reader->idle;
	int rc = 0;

	__atomic_fetch_add(&idle->reading_count, 1, __ATOMIC_ACQ_REL);
	while (bench_word_read(&idle->reading_count) < IDLE_WORKERS) {
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		(void)poll(NULL, 0, 1);
	}
	rc = bench_pending_submit(&reader->pending, idle->runtime);
	if (rc != 0) {
		__atomic_store_n(&idle->error, rc, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&idle->reading_count, 1, __ATOMIC_ACQ_REL);
	return 0;
}

static int start_reads(struct idle *idle)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < IDLE_WORKERS; i++) {
		rc = bench_pending_open(&idle->readers[i].pending);
	}
	for (uint32_t i = 0; rc == 0 && i < IDLE_WORKERS; i++) {
		idle->readers[i].idle = idle;
		idle->readers[i].task.run = idle_read;
		rc = bench_spawn_task(idle->runtime, &idle->readers[i].task);
	}
	while (rc == 0 && bench_word_read(&idle->reading_count) < 2 * IDLE_WORKERS) {
		if (signals_interrupted()) {
			return -ECANCELED;
		}
		(void)poll(NULL, 0, 1);
	}
	return rc == 0 ? __atomic_load_n(&idle->error, __ATOMIC_RELAXED) : rc;
}

static int start_bare(struct idle *idle)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < IDLE_WORKERS; i++) {
		rc = bare_sleeper_start(&idle->bare[i]);
		if (rc == 0) {
			idle->bare_threads.ids[i] = idle->bare[i].sleeper.thread_id;
		}
	}
	idle->bare_threads.count = IDLE_WORKERS;
	return rc;
}

int idle_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct idle_way *way = bench->subject->variant;
	/* As many pairs as there have to be fit into the time, at two turns. */
	uint64_t period_ms = bench->options->duration_ns / 1000000 / (2 * (SAMPLES_PAIRS_MIN + 1));
	struct idle *idle = bench_allocate(sizeof(*idle));
	int rc;

	if (idle == NULL) {
		return -ENOMEM;
	}
	idle->period_ms =
		(uint32_t)(period_ms < IDLE_PERIOD_MS_MIN ? IDLE_PERIOD_MS_MIN : period_ms);
	idle->random = 1;
	idle->is_reading = way->is_reading;
	rc = usage_list(&idle->own_threads);
	if (rc == 0) {
		rc = start_bare(idle);
	}
	if (rc == 0) {
		rc = bench_start_workers(bench, IDLE_WORKERS, out_setting, &idle->runtime);
	}
	if (rc == 0 && way->is_reading) {
		rc = bench_require_rings(bench->subject, out_setting);
		rc = rc == 0 ? start_reads(idle) : rc;
	}
	if (rc != 0) {
		idle_stop(idle);
		return rc;
	}
	*out_state = idle;
	return 0;
}

const struct bench_subject bench_idle = {
	.name = "idle",
	.brief = "CPU time of 8 workers with nothing to do, against threads asleep in futexes",
	.sides = {[BENCH_OURS] = "pinion_runtime_create", [BENCH_FLOOR] = "futex-wait"},
	.variant = &(const struct idle_way){.is_reading = false},
	IDLE_SHARED,
};
