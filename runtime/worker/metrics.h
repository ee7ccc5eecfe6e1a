/* SPDX-License-Identifier: MIT */
/*
 * What a worker's counters come to: the counts as users see them, with those
 * that are derived from others, in one table.
 *
 * A counter that most tasks would have to write is derived from others: a task
 * that comes from no other source came from the worker's own queue. So the
 * common way of a task pays nothing for it.
 *
 * Any thread; the worker itself where it is said.
 */
#ifndef PIN_WORKER_METRICS_H
#define PIN_WORKER_METRICS_H

#include "runtime/worker/state.h"

#include <pinion/metrics.h>

enum {
	/* Fields of struct pinion_worker_stats. */
	PIN_METRICS_COUNTS = sizeof(struct pinion_worker_stats) / sizeof(uint64_t),
};

/* A name of struct pinion_worker_stats, in the order of the fields. */
const char *pin_metrics_count_name(uint32_t number);

/*
 * The worker's counts of now. On the worker between two tasks they agree with
 * each other; else those that are derived may be too small.
 */
void pin_metrics_collect(const struct pin_worker *worker, struct pinion_worker_stats *out_stats);

/* The same, but where the worker is and for how long it has been running. */
void pin_metrics_observe_own(const struct pin_worker *worker, struct pinion_worker_info *out_info);

void pin_metrics_observe(const struct pin_worker *worker, struct pinion_worker_info *out_info);

#endif
