/* SPDX-License-Identifier: MIT */
/*
 * The subject `timer`: what it costs to start a timer and to cancel it before
 * it is due, which is what most timers come to, while others wait. The floor
 * keeps the same deadlines in a bare binary heap, on the same worker's thread.
 *
 * Ours includes the call of each timer's `cancel`, through the worker's loop;
 * the floor calls the same function directly.
 */
#include "tools/bench/heap.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>

enum {
	TIMER_BATCH = 64,
	TIMER_FIGURE_TIMERS = 64 * TIMER_BATCH, /* of one figure */
	TIMER_FIGURES = 16,			/* of one turn */
	TIMER_OTHERS = 1000,			/* unless --depth says how many */
};

struct timers;

struct one_timer {
	struct pinion_timer timer;
	struct bench_heap_entry entry;
	struct timers *timers;
};

_Static_assert(offsetof(struct one_timer, timer.task) == 0, "a cast leads back");

/* Everything but `done` is the worker's alone while a turn is running. */
struct timers {
	struct pinion_runtime *runtime;
	struct pinion_task turn;
	struct pinion_task next;
	struct one_timer batch[TIMER_BATCH];
	struct one_timer *others; /* started once, on both sides */
	uint32_t other_count;
	bool has_others;
	struct bench_heap heap;
	uint64_t random;
	uint32_t open_count;	  /* of the batch, not cancelled yet */
	uint32_t remaining_count; /* of the figure in hand */
	uint64_t start_ns;
	uint32_t figure_count;
	double samples[TIMER_FIGURES];
	enum bench_side side;
	int error;
	uint32_t done;
};

/* An hour ahead, and up to another, so that none of them ever expires. */
static uint64_t choose_deadline(struct timers *timers, uint64_t now_ns)
{
	timers->random ^= timers->random >> 12;
	timers->random ^= timers->random << 25;
	timers->random ^= timers->random >> 27;
	return now_ns + 3600000000000u + timers->random % 3600000000000u;
}

static void end_turn(struct timers *timers, int error)
{
	timers->error = error;
	bench_word_raise(&timers->done);
}

static int timer_expired(struct pinion_task *task)
{
	end_turn(((struct one_timer *)(void *)task)->timers, -ETIME);
	return 0;
}

static void other_cancelled(struct pinion_task *task)
{
	(void)task;
}

/* The last of a batch begins the next, as a task, so that it does not nest. */
static void timer_cancelled(struct pinion_task *task)
{
	struct timers *timers = ((struct one_timer *)(void *)task)->timers;

	if (--timers->open_count == 0 && timers->side == BENCH_OURS) {
		int rc = pinion_task_spawn(timers->runtime, &timers->next);

		if (rc != 0) {
			end_turn(timers, rc);
		}
	}
}

/* Notes a figure and says whether another is to come. */
static bool next_figure(struct timers *timers)
{
	uint64_t now_ns = bench_now_ns();

	timers->samples[timers->figure_count++] =
		(double)(now_ns - timers->start_ns) / TIMER_FIGURE_TIMERS;
	timers->remaining_count = TIMER_FIGURE_TIMERS;
	timers->start_ns = bench_now_ns();
	return timers->figure_count < TIMER_FIGURES;
}

static int run_batch(struct timers *timers)
{
	uint64_t now_ns = timers->start_ns;
	int rc = 0;

	timers->open_count = TIMER_BATCH;
	for (uint32_t i = 0; rc == 0 && i < TIMER_BATCH; i++) {
		rc = pinion_timer_start(
			timers->runtime, &timers->batch[i].timer, choose_deadline(timers, now_ns));
	}
	for (uint32_t i = 0; rc == 0 && i < TIMER_BATCH; i++) {
		rc = pinion_timer_cancel(timers->runtime, &timers->batch[i].timer);
	}
	return rc;
}

static int timer_next(struct pinion_task *task)
{
	struct timers *timers =
		(struct timers *)(void *)((char *)task - offsetof(struct timers, next));
	int rc;

	if (timers->remaining_count == 0 && !next_figure(timers)) {
		end_turn(timers, 0);
		return 0;
	}
	timers->remaining_count -= TIMER_BATCH;
	rc = run_batch(timers);
	if (rc != 0) {
		end_turn(timers, rc);
	}
	return 0;
}

static void run_floor(struct timers *timers)
{
	while (timers->remaining_count > 0) {
		timers->open_count = TIMER_BATCH;
		for (uint32_t i = 0; i < TIMER_BATCH; i++) {
			bench_heap_insert(&timers->heap, &timers->batch[i].entry,
				choose_deadline(timers, timers->start_ns));
		}
		for (uint32_t i = 0; i < TIMER_BATCH; i++) {
			struct pinion_task *task = &timers->batch[i].timer.task;

			bench_heap_remove(&timers->heap, &timers->batch[i].entry);
			task->cancel(task);
		}
		timers->remaining_count -= TIMER_BATCH;
	}
}

static int start_others(struct timers *timers)
{
	uint64_t now_ns = bench_now_ns();
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < timers->other_count; i++) {
		uint64_t deadline_ns = choose_deadline(timers, now_ns);

		bench_heap_insert(&timers->heap, &timers->others[i].entry, deadline_ns);
		rc = pinion_timer_start(timers->runtime, &timers->others[i].timer, deadline_ns);
	}
	timers->has_others = true;
	return rc;
}

static int timer_turn(struct pinion_task *task)
{
	struct timers *timers =
		(struct timers *)(void *)((char *)task - offsetof(struct timers, turn));
	int rc = timers->has_others ? 0 : start_others(timers);

	if (rc != 0) {
		end_turn(timers, rc);
		return 0;
	}
	timers->figure_count = 0;
	timers->remaining_count = TIMER_FIGURE_TIMERS;
	timers->start_ns = bench_now_ns();
	if (timers->side == BENCH_OURS) {
		return timer_next(&timers->next);
	}
	do {
		run_floor(timers);
	} while (next_figure(timers));
	end_turn(timers, 0);
	return 0;
}

static int timer_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct timers *timers = state;
	int rc;

	timers->side = side;
	rc = bench_run_turn(timers->runtime, &timers->turn, &timers->done);
	if (rc == 0 && timers->error != 0) {
		rc = timers->error;
		report_line("timers fail: %s", report_reason(rc));
	}
	for (uint32_t i = 0; rc == 0 && i < TIMER_FIGURES; i++) {
		rc = samples_add(out_figures, timers->samples[i]);
	}
	return rc;
}

static void timer_stop(void *state)
{
	struct timers *timers = state;

	/* A turn that a signal ended goes on; its tasks are given up. */
	pinion_runtime_destroy(timers->runtime);
	free(timers->heap.entries);
	free(timers->others);
	free(timers);
}

static void init_timer(
	struct timers *timers, struct one_timer *timer, void (*cancelled)(struct pinion_task *task))
{
	timer->timers = timers;
	timer->timer.task.run = timer_expired;
	timer->timer.task.cancel = cancelled;
}

static int timer_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct timers *timers = bench_allocate(sizeof(*timers));
	uint32_t *depth = &out_setting->point.values[BENCH_DEPTH];
	int rc = 0;

	if (timers == NULL) {
		return -ENOMEM;
	}
	*depth = *depth == 0 ? TIMER_OTHERS : *depth;
	timers->random = 88172645463325252u;
	timers->turn.run = timer_turn;
	timers->next.run = timer_next;
	timers->other_count = *depth;
	timers->others = bench_allocate(*depth * sizeof(*timers->others));
	timers->heap.entries =
		bench_allocate((*depth + TIMER_BATCH) * sizeof(*timers->heap.entries));
	if (timers->others == NULL || timers->heap.entries == NULL) {
		rc = -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < *depth; i++) {
		init_timer(timers, &timers->others[i], other_cancelled);
	}
	for (uint32_t i = 0; i < TIMER_BATCH; i++) {
		init_timer(timers, &timers->batch[i], timer_cancelled);
	}
	if (rc == 0) {
		rc = bench_start_workers(bench, 1, out_setting, &timers->runtime);
	}
	if (rc != 0) {
		timer_stop(timers);
		return rc;
	}
	bench_setting_add(out_setting, "%u other timers", *depth);
	*out_state = timers;
	return 0;
}

const struct bench_subject bench_timer = {
	.name = "timer",
	.unit = "ns",
	.axes = BENCH_BY(BENCH_DEPTH),
	.brief = "a timer started and cancelled while others wait, against a binary heap",
	.sides = {[BENCH_OURS] = "pinion_timer_start+cancel", [BENCH_FLOOR] = "binary-heap"},
	.start = timer_start,
	.run = timer_run,
	.stop = timer_stop,
};
