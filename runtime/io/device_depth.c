/* SPDX-License-Identifier: MIT */
/*
 * Finds the depth at which a device does most: a trial upwards or downwards,
 * and the evaluation of its rate.
 *
 * device.c feeds it one sample for each interval, under its lock; nothing here
 * reads a clock or shares memory.
 *
 * Invariant: the depth stays within the options' limits, and at most one trial
 * is on.
 *
 * Source: docs/decisions/devices.md, "The depth of a device is found by trial".
 */
#include "runtime/io/device.h"
#include "runtime/base/check.h"

enum {
	/* An interval is at least this long, but never longer than that. */
	INTERVAL_NS_MIN = 10 * 1000 * 1000,
	INTERVAL_NS_MAX = 1000 * 1000 * 1000,
	/* Intervals at base between two trials. */
	PATIENCE_MIN = 2,
	PATIENCE_MAX = 64,
	/* Intervals in a row that are unlike before: the device is another. */
	ODD_MAX = 2,
	/* Units in 1000 s that are too many for heads to be moved. */
	HEADS_RATE_MAX = 6400 * 1000,
};

void pin_depth_init(struct pin_depth *depth, const struct pin_depth_options *options)
{
	PIN_CHECK(options->min >= 1 && options->min <= options->start);
	PIN_CHECK(options->start <= options->max);
	*depth = (struct pin_depth){
		.options = *options,
		.base = options->start,
		.depth = options->start,
		.spin = PATIENCE_MIN,
		.is_few = options->few != 0,
	};
}

bool pin_depth_is_ripe(const struct pin_depth *depth, uint64_t elapsed_ns, uint64_t units)
{
	uint32_t in_device = depth->is_few ? depth->options.few : depth->depth;

	return elapsed_ns >= INTERVAL_NS_MAX ||
		(elapsed_ns >= INTERVAL_NS_MIN && units >= 2 * (uint64_t)in_device);
}

static uint64_t rate_of(const struct pin_depth_sample *sample)
{
	uint64_t us = sample->elapsed_ns / 1000 + 1;
	uint64_t units = sample->units < (UINT64_C(1) << 33) ? sample->units : UINT64_C(1) << 33;

	return units * 1000000000 / us;
}

/* So little that less of it would hardly be sooner. */
static bool is_short(uint64_t latency_ns)
{
	return latency_ns != 0 && latency_ns <= PIN_DEPTH_SHORT_NS;
}

/*
 * A third more, or a quarter less, so that one undoes the other; a third less
 * where that must bring more, which is half of a third more.
 */
static uint32_t other_depth(const struct pin_depth *depth, uint64_t latency_ns)
{
	uint64_t base = depth->base;
	PIN_DCHECK(base >= depth->options.min && base <= depth->options.max); /* invariant 1 */
	uint64_t other = depth->tries_more     ? base + (base + 2) / 3
		: is_short(latency_ns / 4 * 3) ? base - base / 3
					       : base - (base + 3) / 4;

	if (other < depth->options.min) {
		other = depth->options.min;
	}
	return other > depth->options.max ? depth->options.max : (uint32_t)other;
}

static void stay(struct pin_depth *depth)
{
	PIN_DCHECK(depth->base >= depth->options.min && depth->base <= depth->options.max);
	depth->phase = depth->depth == depth->base ? PIN_DEPTH_MEASURES : PIN_DEPTH_SETTLES;
	depth->depth = depth->base;
	depth->interval_count = 0;
	PIN_DCHECK(depth->phase != PIN_DEPTH_TRIES); /* invariant 2 */
}

static void flip(struct pin_depth *depth)
{
	PIN_DCHECK(depth->spin >= PATIENCE_MIN && depth->spin <= PATIENCE_MAX);
	depth->tries_more = !depth->tries_more;
	if (depth->has_flipped) {
		depth->spin *= 2;
		depth->spin = depth->spin > PATIENCE_MAX ? PATIENCE_MAX : depth->spin;
	}
	depth->has_flipped = true;
}

static void begin_trial(struct pin_depth *depth, uint64_t latency_ns)
{
	uint32_t other = other_depth(depth, latency_ns);

	PIN_DCHECK(depth->phase == PIN_DEPTH_MEASURES);
	if (other == depth->base) {
		flip(depth);
		other = other_depth(depth, latency_ns);
	}
	PIN_DCHECK(other >= depth->options.min && other <= depth->options.max);
	depth->interval_count = 0;
	if (other != depth->base) {
		depth->depth = other;
		depth->phase = PIN_DEPTH_SETTLES;
	}
}

/* Of a trial: whether what it showed is worth its depth. */
static bool is_better(const struct pin_depth *depth, uint64_t rate, uint64_t latency_ns)
{
	if (depth->tries_more || is_short(latency_ns)) {
		return rate >= depth->base_rate + depth->base_rate / 16;
	}
	return rate + depth->base_rate / 48 >= depth->base_rate;
}

static void conclude(struct pin_depth *depth, uint64_t rate, uint64_t latency_ns)
{
	PIN_DCHECK(depth->phase == PIN_DEPTH_TRIES);
	PIN_DCHECK(depth->depth != depth->base);
	if (!is_better(depth, rate, latency_ns)) {
		flip(depth);
		stay(depth);
		return;
	}
	depth->base = depth->depth;
	depth->base_rate = rate;
	depth->spin = PATIENCE_MIN;
	depth->has_flipped = false;
	stay(depth);
}

/* Requests that take longer than they must mostly wait in the device. */
static bool has_queue(const struct pin_depth *depth, uint64_t latency_ns)
{
	return latency_ns > depth->latency_ns_min + depth->latency_ns_min / 2;
}

static void begin_anew(struct pin_depth *depth, uint64_t rate, uint64_t latency_ns)
{
	depth->odd_count = 0;
	depth->base_rate = rate;
	depth->spin = PATIENCE_MIN;
	depth->has_flipped = false;
	depth->tries_more = !has_queue(depth, latency_ns);
}

/*
 * Follows the rate at the present depth. After a few odd intervals it begins
 * anew, since the load has changed; after enough steady ones a trial begins.
 */
static void measure(struct pin_depth *depth, uint64_t rate, uint64_t latency_ns)
{
	uint64_t margin = depth->base_rate / 4;
	bool is_odd = rate > depth->base_rate + margin || rate + margin < depth->base_rate;

	if (depth->base_rate == 0) {
		begin_anew(depth, rate, latency_ns);
	} else if (is_odd) {
		depth->odd_count++;
		if (depth->odd_count >= ODD_MAX) {
			begin_anew(depth, rate, latency_ns);
		}
	} else {
		depth->odd_count = 0;
		depth->base_rate = (3 * depth->base_rate + rate) / 4;
	}
	PIN_DCHECK(depth->spin >= PATIENCE_MIN && depth->spin <= PATIENCE_MAX);
	PIN_DCHECK(depth->depth == depth->base); /* no trial is on */
	depth->interval_count++;
	if (depth->interval_count >= depth->spin && depth->odd_count == 0) {
		begin_trial(depth, latency_ns);
	}
}

static void note_latency(struct pin_depth *depth, uint64_t latency_ns)
{
	if (latency_ns == 0) {
		return;
	}
	depth->latency_ns_min += depth->latency_ns_min / 256 + 1;
	if (depth->latency_ns_min == 1 || latency_ns < depth->latency_ns_min) {
		depth->latency_ns_min = latency_ns;
	}
	PIN_DCHECK(depth->latency_ns_min > 0 && depth->latency_ns_min <= latency_ns);
}

/*
 * One interval's sample moves the phases on: settle after a change, try,
 * conclude, measure. An interval in which the device was not full says nothing
 * about depth.
 */
uint32_t pin_depth_learn(struct pin_depth *depth, const struct pin_depth_sample *sample)
{
	uint64_t rate = rate_of(sample);
	bool is_trial = depth->depth != depth->base;

	PIN_DCHECK(sample->elapsed_ns > 0);
	PIN_DCHECK(depth->phase != PIN_DEPTH_MEASURES || !is_trial); /* invariant 2 */
	PIN_DCHECK(depth->phase != PIN_DEPTH_TRIES || is_trial);
	if (depth->is_few) {
		PIN_DCHECK(depth->options.few > 0);
		depth->is_few = rate <= HEADS_RATE_MAX;
		return depth->depth;
	}
	note_latency(depth, sample->latency_ns);
	if (!sample->was_full) {
		stay(depth);
	} else if (depth->phase == PIN_DEPTH_SETTLES) {
		depth->phase = is_trial ? PIN_DEPTH_TRIES : PIN_DEPTH_MEASURES;
	} else if (depth->phase == PIN_DEPTH_TRIES) {
		conclude(depth, rate, sample->latency_ns);
	} else {
		measure(depth, rate, sample->latency_ns);
	}
	PIN_CHECK(depth->depth >= depth->options.min);
	PIN_CHECK(depth->depth <= depth->options.max);
	return depth->depth;
}
