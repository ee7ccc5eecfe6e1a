/* SPDX-License-Identifier: MIT */
/*
 * The queue-check interval: how often a busy worker looks into the shared
 * queue.
 *
 * A check costs a shared cache line, so it should be rare; but tasks there
 * should wait about `target_ns` at most, however busy the worker is with its
 * own tasks. So the distance between two looks, counted in polls, is as many
 * average tasks as fill the target. The average is exponential: each task moves
 * it by `alpha` towards its own length, so one slow task changes little, and
 * ten bring 65 % of a lasting change. Tasks are not timed singly: a batch of n
 * weighs as much as n samples of its mean, 1 - (1 - alpha)^n.
 *
 * Polls alone would not keep the promise: where tasks are longer than target /
 * interval_min, even the least distance is too far. So a check is due as well
 * when more than the target has passed since the last one.
 *
 * Policy only: no atomics, no clock, integers throughout, so that equal inputs
 * give equal decisions on every machine. One per worker, used by it alone. The
 * worker times the running of tasks and nothing else (no waiting, no reaping),
 * counts polls from check to check, and reads the shared queue first when a
 * check is due.
 *
 * Invariants: 1. the average is at least 1 ns; 2. the interval is within
 * interval_min … interval_max; 3. it is that of the average, at all times.
 */
#ifndef PIN_POLICY_QUEUE_INTERVAL_H
#define PIN_POLICY_QUEUE_INTERVAL_H

#include "runtime/base/check.h"

#include <stdbool.h>
#include <stdint.h>

/* Tasks of one batch are counted up to 2^16 - 1, as budgets are. */
#define PIN_QUEUE_INTERVAL_POWERS 16u
/* Of the average: units of 2^-8 ns. */
#define PIN_QUEUE_INTERVAL_AVERAGE_SHIFT 8u

/* Ranges are the caller's to check; pin_queue_interval_init() asserts them. */
struct pin_queue_interval_options {
	/* Weight of one task, thousandths, 1 … 999. Default 100. */
	uint32_t alpha_permille;
	/* How long work may wait in the shared queue, ns, > 0. Default 1 ms. */
	uint32_t target_ns;
	/* Bounds of the interval in polls, 1 <= min <= max. Default 8, 255. */
	uint32_t interval_min;
	uint32_t interval_max;
	/* The average before the first batch, ns, > 0. Default 50 us. */
	uint32_t default_task_ns;
};

struct pin_queue_interval {
	/* [const] after init */
	struct pin_queue_interval_options options;
	/* The share of the old average after 2^i samples, in units of 2^-24. */
	uint32_t kept[PIN_QUEUE_INTERVAL_POWERS];
	/* [own] */
	uint32_t interval;
	uint64_t average; /* in the units above */
};

void pin_queue_interval_init(struct pin_queue_interval *queue_interval,
	const struct pin_queue_interval_options *options);

/*
 * Learns from a batch: `task_count` tasks took `batch_ns` together. A batch
 * without tasks changes nothing. Tasks longer than 4 s count as 4 s.
 */
void pin_queue_interval_record(
	struct pin_queue_interval *queue_interval, uint64_t batch_ns, uint32_t task_count);

/* Polls from one check to the next. */
static inline uint32_t pin_queue_interval_interval(const struct pin_queue_interval *queue_interval)
{
	PIN_DCHECK(queue_interval->interval >= 1);
	return queue_interval->interval;
}

/* Rounded down, but at least 1. */
static inline uint64_t pin_queue_interval_average_ns(
	const struct pin_queue_interval *queue_interval)
{
	PIN_DCHECK(queue_interval->average >> PIN_QUEUE_INTERVAL_AVERAGE_SHIFT >= 1);
	return queue_interval->average >> PIN_QUEUE_INTERVAL_AVERAGE_SHIFT;
}

/* Whether to check now, that many polls and that long after the last check. */
static inline bool pin_queue_interval_is_due(
	const struct pin_queue_interval *queue_interval, uint64_t polls_since, uint64_t ns_since)
{
	return polls_since >= queue_interval->interval ||
		ns_since > queue_interval->options.target_ns;
}

#endif
