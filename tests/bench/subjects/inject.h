/* SPDX-License-Identifier: MIT */
/*
 * What the subjects about work from outside have in common: a thread that is
 * no worker pushes a burst of empty tasks, and one worker runs them.
 *
 * A worker that finds nothing to do may go to sleep, and its waking would be
 * all that is measured. So the worker never gets as far as that during a
 * burst: it waits inside of a task, before and whenever it has caught up with
 * the producer, until there is another one in the queue. Both sides run the
 * same tasks by the same producer and on the same worker's thread; they differ
 * in the queue between the two.
 */
#ifndef PIN_TESTS_BENCH_SUBJECTS_INJECT_H
#define PIN_TESTS_BENCH_SUBJECTS_INJECT_H

#include "tools/bench/mpmc.h"
#include "tools/bench/place.h"
#include "tools/bench/tasks.h"

enum {
	/* Tasks per figure; fewer than the floor's queue holds. */
	INJECT_FIGURE_TASKS = 4096,
	/*
	 * The producer publishes its progress at this interval; a batch, too.
	 */
	INJECT_STRIDE = 64,
};

struct inject;

/* As empty as a task can be whose end is to be noticed: it counts itself. */
struct inject_task {
	struct pinion_task task;
	struct inject *inject;
};

/* Pushes INJECT_STRIDE tasks from this one on. 0 or a negative errno. */
typedef int (*inject_push_fn)(struct inject *inject, uint32_t first_index);

/* The differences between one subject and another. */
struct inject_way {
	inject_push_fn push; /* what ours does */
};

struct inject {
	/* Constant while a burst is under way. */
	struct pinion_runtime *runtime;
	inject_push_fn push;
	enum bench_side side;
	struct bench_place place;
	struct inject_task tasks[INJECT_FIGURE_TASKS];
	struct pinion_task *pointers[INJECT_FIGURE_TASKS];
	struct bench_mpmc queue;
	/* Written by the producer. */
	uint32_t pushed_count BENCH_LINE_ALIGNED;
	/* Written by the worker. */
	struct pinion_task turn BENCH_LINE_ALIGNED;
	uint32_t known_count; /* pushed, as it saw last */
	uint32_t run_count;
	uint64_t end_ns;
	pid_t thread_id;
	uint32_t is_ready; /* the worker waits for the first task */
	uint32_t done;
};

/* For a subject's table. */
int inject_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int inject_run(void *state, enum bench_side side, struct samples *out_figures);
void inject_stop(void *state);

#endif
