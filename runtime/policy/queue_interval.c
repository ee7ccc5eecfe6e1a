/* SPDX-License-Identifier: MIT */
/*
 * After how many tasks a busy worker checks the shared queue: an average of
 * task lengths, and the interval that follows, in fixed point.
 *
 * Each worker has its own and records every timed batch.
 */
#include "runtime/policy/queue_interval.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

/*
 * An average of at most 32 + 8 bits times a weight of at most 24 fits into 64.
 */
enum {
	AVERAGE_SHIFT = PIN_QUEUE_INTERVAL_AVERAGE_SHIFT,
	KEPT_SHIFT = 24,
};

static const uint64_t AVERAGE_MIN = UINT64_C(1) << AVERAGE_SHIFT; /* 1 ns */
static const uint64_t SAMPLE_MAX = (uint64_t)UINT32_MAX << AVERAGE_SHIFT;

/*
 * The interval follows from the average at once, so that a check is one
 * compare.
 */
static void set_average(struct pin_queue_interval *queue_interval, uint64_t average)
{
	const struct pin_queue_interval_options *options = &queue_interval->options;
	uint64_t interval;

	queue_interval->average = average < AVERAGE_MIN ? AVERAGE_MIN : average;
	interval = ((uint64_t)options->target_ns << AVERAGE_SHIFT) / queue_interval->average;
	if (interval < options->interval_min) {
		interval = options->interval_min;
	}
	if (interval > options->interval_max) {
		interval = options->interval_max;
	}
	queue_interval->interval = (uint32_t)interval;
	PIN_DCHECK(queue_interval->average >= AVERAGE_MIN);	       /* invariant 1 */
	PIN_DCHECK(queue_interval->interval >= options->interval_min); /* invariant 2 */
	PIN_DCHECK(queue_interval->interval <= options->interval_max);
}

/*
 * Precomputes how much of the old average is left after 1, 2, 4 and so on
 * tasks, as a batch may have any number of them.
 */
void pin_queue_interval_init(
	struct pin_queue_interval *queue_interval, const struct pin_queue_interval_options *options)
{
	uint64_t kept;

	PIN_CHECK(options->alpha_permille > 0 && options->alpha_permille < 1000);
	PIN_CHECK(options->target_ns > 0 && options->default_task_ns > 0);
	PIN_CHECK(options->interval_min > 0 && options->interval_min <= options->interval_max);
	*queue_interval = (struct pin_queue_interval){.options = *options};
	kept = ((uint64_t)(1000 - options->alpha_permille) << KEPT_SHIFT) / 1000;
	for (uint32_t i = 0; i < PIN_QUEUE_INTERVAL_POWERS; i++) {
		queue_interval->kept[i] = (uint32_t)kept;
		kept = (kept * kept) >> KEPT_SHIFT;
	}
	set_average(queue_interval, (uint64_t)options->default_task_ns << AVERAGE_SHIFT);
}

/* (1 - alpha)^n by the bits of n: at most 7 products for a batch of 128. */
static uint64_t kept_after(const struct pin_queue_interval *queue_interval, uint32_t task_count)
{
	uint64_t kept = UINT64_C(1) << KEPT_SHIFT;

	/* As most are that end before anything else is there to run. */
	if (task_count == 1) {
		return queue_interval->kept[0];
	}
	if (task_count >> PIN_QUEUE_INTERVAL_POWERS != 0) {
		return 0;
	}
	for (uint32_t i = 0; task_count != 0; i++, task_count >>= 1) {
		if ((task_count & 1) != 0) {
			kept = (kept * queue_interval->kept[i]) >> KEPT_SHIFT;
		}
	}
	PIN_DCHECK(kept <= UINT64_C(1) << KEPT_SHIFT);
	return kept;
}

/*
 * An exponential average weighted by the number of tasks; samples are capped,
 * so that one long stall does not set the interval for long.
 */
void pin_queue_interval_record(
	struct pin_queue_interval *queue_interval, uint64_t batch_ns, uint32_t task_count)
{
	uint64_t sample;
	uint64_t kept;

	if (task_count == 0) {
		return;
	}
	/* Two years. */
	if (batch_ns > UINT64_MAX >> AVERAGE_SHIFT) {
		batch_ns = UINT64_MAX >> AVERAGE_SHIFT;
	}
	sample = (batch_ns << AVERAGE_SHIFT) / task_count;
	if (sample > SAMPLE_MAX) {
		sample = SAMPLE_MAX;
	}
	kept = kept_after(queue_interval, task_count);
	/* Rounding down the remainder lets it arrive from both sides. */
	if (queue_interval->average > sample) {
		set_average(queue_interval,
			sample + (((queue_interval->average - sample) * kept) >> KEPT_SHIFT));
	} else {
		set_average(queue_interval,
			sample - (((sample - queue_interval->average) * kept) >> KEPT_SHIFT));
	}
}
