/* SPDX-License-Identifier: MIT */
/*
 * Keeps a scan within its limits while it runs: priorities of the process,
 * rates of the runtime, and for targets the pace (pace.h), which a thread of
 * its own steps ten times a second. SIGHUP loads a limits file again.
 *
 * One scan at a time; all calls are for the main thread.
 */
#ifndef PINION_TOOLS_THROTTLE_H
#define PINION_TOOLS_THROTTLE_H

#include "tools/scanning.h"

#include <pinion/runtime.h>
#include <stdbool.h>

/*
 * Loads the limits file and sets the priorities, before the process has other
 * threads, which inherit them; and sets the window that suits the limits where
 * none is given. False: that failed, and is reported.
 */
bool throttle_prepare(struct scanning_options *options);

/* Whether the limits that were loaded have a rate, or a target. */
bool throttle_has_rate(void);

/* From now on the runtime keeps the limits; before its first read. */
void throttle_begin(struct pinion_runtime *runtime);

/* Before the runtime is destroyed. Nothing happens if it has not begun. */
void throttle_end(void);

/* How targets were kept, in the last runtime. */
struct throttle_targets {
	uint64_t bytes_per_second; /* the pace at the end */
	uint64_t halved;	   /* how often the pace fell */
	uint64_t slow;		   /* reads slower than --latency-target, */
	uint64_t timed;		   /* of these */
	bool has_latency;	   /* else the last two are 0 */
};

/* False: there is no target. */
bool throttle_get_targets(struct throttle_targets *out);

/* A line about the targets for --stats; nothing without a target. */
void throttle_report(void);

#endif
