/* SPDX-License-Identifier: MIT */
/*
 * The steps of the pace, and what counts as exceeding a target (pace.h).
 */
#include "tools/pace.h"

enum {
	CLIMB_PART = 8,
	RETURN_PART = 16,
	/* A trial is a sixteenth, an eighth or a quarter. */
	TRIAL_PART_MAX = 16,
	TRIAL_PART_MIN = 4,
	TRIAL_TICKS = 6,
	/* That far above the ceiling, it is out of date. */
	CLEAR_PART = 3,
	/* Of a rate that was held: once, then it is halved. */
	STEP_BACK_PART = 8,
	/* Another report against the rate within that time is a second one. */
	AGAIN_TICKS = 12,
	/* Reads that were submitted before a fall have ended then. */
	DEAF_TICKS = 3,
	PAUSE_TICKS_MIN = 3,
	PAUSE_TICKS_MAX = 24,
	/* One slow read in that number is the 99th percentile. */
	SLOW_PART = 100,
	SLOW_PART_FAR = 10,
	SLOW_ASIDE_FAR = 4,
	WEIGHT_UNIT = 256,
	LATENCY_PART = 8,
	PRESSURE_PART = 4,
};

#define PPM UINT64_C(1000000)

void pace_init(struct pace *pace, const struct pace_options *options)
{
	*pace = (struct pace){
		.options = *options,
		.phase = PACE_CLIMBS,
		.rate = options->start,
		.pause = PAUSE_TICKS_MIN,
		.trial_part = TRIAL_PART_MAX,
	};
}

static uint64_t within(const struct pace *pace, uint64_t rate)
{
	rate = rate < pace->options.min ? pace->options.min : rate;
	return rate > pace->options.max ? pace->options.max : rate;
}

void pace_limit(struct pace *pace, uint64_t min, uint64_t max)
{
	pace->options.min = min;
	pace->options.max = max;
	pace->rate = within(pace, pace->rate);
	pace->held = within(pace, pace->held);
}

static void enter(struct pace *pace, enum pace_phase phase)
{
	pace->phase = phase;
	pace->count = 0;
}

/* From the bytes read where they are fewer: the rest was not used. */
static void fall(struct pace *pace, uint64_t bytes_per_second)
{
	uint64_t from = bytes_per_second < pace->rate ? bytes_per_second : pace->rate;

	pace->ceiling = within(pace, from);
	pace->rate = within(pace, from / 2);
	pace->deaf = DEAF_TICKS;
	pace->pause = PAUSE_TICKS_MIN;
	pace->trial_part = TRIAL_PART_MAX;
	pace->fall_count++;
	enter(pace, PACE_RETURNS);
}

/* A trial is taken back; of a rate that was held, an eighth. */
static void step_back(struct pace *pace)
{
	uint64_t lower = pace->rate - pace->rate / STEP_BACK_PART;

	pace->again = pace->phase == PACE_TRIES ? 0 : AGAIN_TICKS;
	pace->ceiling = pace->rate;
	pace->rate = within(pace, pace->phase == PACE_TRIES ? pace->held : lower);
	pace->deaf = DEAF_TICKS;
	pace->pause = pace->pause * 2 < PAUSE_TICKS_MAX ? pace->pause * 2 : PAUSE_TICKS_MAX;
	pace->trial_part = TRIAL_PART_MAX;
	enter(pace, PACE_HOLDS);
}

static void keep(struct pace *pace)
{
	pace->pause = PAUSE_TICKS_MIN;
	if (pace->trial_part > TRIAL_PART_MIN) {
		pace->trial_part /= 2;
	}
	enter(pace,
		pace->rate > pace->ceiling + pace->ceiling / CLEAR_PART ? PACE_CLIMBS : PACE_HOLDS);
}

static void raise(struct pace *pace, uint32_t part)
{
	pace->rate = within(pace, pace->rate + pace->rate / part + 1);
}

static void go_on(struct pace *pace)
{
	pace->count++;
	switch (pace->phase) {
	case PACE_CLIMBS:
		raise(pace, CLIMB_PART);
		break;
	case PACE_RETURNS:
		if (pace->rate >= pace->ceiling - pace->ceiling / 4) {
			enter(pace, PACE_HOLDS);
		} else {
			raise(pace, RETURN_PART);
		}
		break;
	case PACE_HOLDS:
		if (pace->count >= pace->pause) {
			pace->held = pace->rate;
			raise(pace, pace->trial_part);
			enter(pace, PACE_TRIES);
		}
		break;
	case PACE_TRIES:
		if (pace->count >= TRIAL_TICKS) {
			keep(pace);
		}
		break;
	}
}

/* Whether the rate is a little too high, with the load as it was. */
static bool is_gentle(const struct pace *pace, const struct pace_report *report)
{
	return !report->is_far_over &&
		(pace->phase == PACE_TRIES || (pace->phase == PACE_HOLDS && pace->again == 0));
}

uint64_t pace_step(struct pace *pace, const struct pace_report *report)
{
	pace->again -= pace->again > 0;
	if (pace->deaf > 0) {
		pace->deaf--;
	} else if (report->is_over && is_gentle(pace, report)) {
		step_back(pace);
	} else if (report->is_over) {
		fall(pace, report->bytes_per_second);
	} else if (report->is_used) {
		go_on(pace);
	}
	return pace->rate;
}

/* More than one slow read in `part`, some aside. */
static bool is_above(const struct pace_latency *latency, uint64_t part, uint64_t aside)
{
	return latency->slow * part > latency->timed + part * aside * WEIGHT_UNIT;
}

enum pace_verdict pace_latency(struct pace_latency *latency, uint64_t timed, uint64_t slow)
{
	latency->timed += timed * WEIGHT_UNIT - latency->timed / LATENCY_PART;
	latency->slow += slow * WEIGHT_UNIT - latency->slow / LATENCY_PART;
	if (is_above(latency, SLOW_PART_FAR, SLOW_ASIDE_FAR)) {
		return PACE_FAR_OVER;
	}
	return is_above(latency, SLOW_PART, 1) ? PACE_OVER : PACE_WITHIN;
}

enum pace_verdict pace_pressure(struct pace_pressure *pressure, uint64_t stalled_ns,
	uint64_t elapsed_ns, uint64_t limit_ppm)
{
	uint64_t ppm;

	if (elapsed_ns == 0) {
		return PACE_WITHIN;
	}
	/* The kernel adds up at other instants than the caller's. */
	stalled_ns = stalled_ns < elapsed_ns ? stalled_ns : elapsed_ns;
	ppm = (uint64_t)((double)stalled_ns / (double)elapsed_ns * (double)PPM);
	pressure->ppm = pressure->is_known
		? (pressure->ppm * (PRESSURE_PART - 1) + ppm) / PRESSURE_PART
		: ppm;
	pressure->is_known = true;
	if (pressure->ppm <= limit_ppm) {
		return PACE_WITHIN;
	}
	return pressure->ppm / 2 > limit_ppm ? PACE_FAR_OVER : PACE_OVER;
}
