/* SPDX-License-Identifier: MIT */
/*
 * The counts of a worker as users see them, with those that are derived from
 * others, in one table.
 *
 * A counter that most tasks would have to write is derived from others: a task
 * that comes from no other source came from the worker's own queue. So the
 * common way of a task pays nothing for it.
 *
 * Any thread; the worker itself where it is said.
 */
#ifndef PIN_OBSERVE_COUNTS_H
#define PIN_OBSERVE_COUNTS_H

#include "runtime/base/metrics.h"

#include <pinion/metrics.h>

enum {
	/* Fields of struct pinion_worker_stats. */
	PIN_COUNTS = sizeof(struct pinion_worker_stats) / sizeof(uint64_t),
};

/* A name of struct pinion_worker_stats, in the order of the fields. */
const char *pin_counts_name(uint32_t number);

/*
 * A worker's counts of now. On the worker between two tasks they agree with
 * each other; else those that are derived may be too small.
 */
void pin_counts_collect(const struct pin_meter *meter, struct pinion_worker_stats *out_stats);

/* Requests submitted, or taken over from outside, that are not completed. */
uint64_t pin_counts_in_flight(const struct pin_meter *meter);

#endif
