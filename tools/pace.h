/* SPDX-License-Identifier: MIT */
/*
 * The pace of a scan that must not disturb others: which rate it may read at,
 * found from what it does to the device.
 *
 * Ten times a second the throttle (throttle.h) reports whether a target was
 * exceeded, and how much was read. The rate starts low and climbs by an eighth
 * each time. A fall halves it, and remembers the rate that was too high as the
 * ceiling. Up to three quarters of the ceiling the rate returns by a sixteenth
 * each time. From there on it is held, and only trials raise it: for six
 * reports it is a sixteenth higher. A trial that exceeds a target is taken
 * back, and the pause before the next one doubles, up to 24 reports. A trial
 * that exceeds none is kept, and the next one raises twice as much, up to a
 * quarter. A third above the ceiling nothing is known any more, and the rate
 * climbs as at the start.
 *
 * A held rate that exceeds a target is lowered by an eighth; if it still does
 * in the next 12 reports, or if the target is exceeded several times over, it
 * falls. After each step down 3 reports are ignored: they are about reads that
 * were submitted before.
 *
 * Why this does not swing: near the ceiling the rate rises by trials alone; a
 * failed trial returns to the rate that was held, makes trials rarer and short
 * again. A fall takes a report against a rate that was climbing, or a device
 * that has less room than before.
 *
 * Pure arithmetic: no clock, no I/O, integers throughout.
 *
 * Source: docs/decisions/programs.md, "A scan keeps to targets by its pace".
 */
#ifndef PINION_TOOLS_PACE_H
#define PINION_TOOLS_PACE_H

#include <stdbool.h>
#include <stdint.h>

/* Between two reports. */
#define PACE_TICK_NS UINT64_C(100000000)

/* Bytes in a second, 0 < min <= start <= max. */
struct pace_options {
	uint64_t min;
	uint64_t start;
	uint64_t max;
};

enum pace_phase {
	PACE_CLIMBS,  /* no rate is known to be too high; to RETURNS by a fall */
	PACE_RETURNS, /* from a fall towards the ceiling; to HOLDS near it */
	PACE_HOLDS,   /* to TRIES after a pause; to RETURNS by a fall */
	PACE_TRIES,   /* a sixteenth above `held`; to HOLDS, or to CLIMBS above the ceiling */
};

struct pace {
	struct pace_options options;
	enum pace_phase phase;
	uint64_t rate;	     /* in force */
	uint64_t held;	     /* before the trial */
	uint64_t ceiling;    /* that exceeded a target; 0: none did */
	uint32_t deaf;	     /* reports still to be ignored */
	uint32_t count;	     /* reports since the phase began */
	uint32_t pause;	     /* reports before the next trial */
	uint32_t again;	     /* reports in which another one against the rate halves it */
	uint32_t trial_part; /* a trial raises the rate by one in that number */
	uint64_t fall_count; /* halvings */
};

/* One tick. */
struct pace_report {
	bool is_over;		   /* a target was exceeded, */
	bool is_far_over;	   /* several times */
	bool is_used;		   /* reads waited for the rate: a higher one would be used */
	uint64_t bytes_per_second; /* that were read */
};

void pace_init(struct pace *pace, const struct pace_options *options);

/* From now on each rate is between these. */
void pace_limit(struct pace *pace, uint64_t min, uint64_t max);

/* Returns the rate until the next report. */
uint64_t pace_step(struct pace *pace, const struct pace_report *report);

/* How far from a target. */
enum pace_verdict {
	PACE_WITHIN,
	PACE_OVER,
	PACE_FAR_OVER,
};

/*
 * Whether more than one read in a hundred was slow, lately, far over: one in
 * ten. The weight of a report falls by an eighth with each later one. A single
 * slow read among few says nothing yet, and four of them nothing of far.
 */
struct pace_latency {
	uint64_t timed; /* weighted, in 256ths */
	uint64_t slow;
};

enum pace_verdict pace_latency(struct pace_latency *latency, uint64_t timed, uint64_t slow);

/*
 * Whether tasks waited for longer than a part of the time, on average over
 * some reports; far over: for twice as long.
 */
struct pace_pressure {
	bool is_known;
	uint64_t ppm; /* millionths */
};

enum pace_verdict pace_pressure(struct pace_pressure *pressure, uint64_t stalled_ns,
	uint64_t elapsed_ns, uint64_t limit_ppm);

#endif
