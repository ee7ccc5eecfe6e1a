/* SPDX-License-Identifier: MIT */
/*
 * Limits that keep a scan from disturbing others, as options and as lines of a
 * limits file: both have the same names and values.
 */
#ifndef PINION_TOOLS_LIMITS_H
#define PINION_TOOLS_LIMITS_H

#include <pinion/limit.h>
#include <pinion/tuning.h>
#include <stdbool.h>
#include <stdint.h>

/* Of `nice` and `io_priority`: as the process had it when it started. */
#define LIMITS_AS_STARTED INT32_MAX

/* As ioprio_set(2) takes them, which glibc has no header for. */
#define LIMITS_IDLE (3 << 13)
static inline int32_t limits_best_effort(int32_t level)
{
	return (2 << 13) | level;
}

/* All zero but for the last two: no limits. */
struct limits {
	uint64_t bytes_per_second;
	uint64_t requests_per_second;
	bool has_bytes; /* also 0, which lifts the environment's rate */
	bool has_requests;
	uint64_t latency_ns;   /* 99 of 100 reads are to end within it */
	uint64_t pressure_ppm; /* the share of time that tasks may wait, in millionths */
	int32_t nice;	       /* 0 … 19, or LIMITS_AS_STARTED */
	int32_t io_priority;   /* as ioprio_set(2) takes it, or LIMITS_AS_STARTED */
};

#define LIMITS_NONE \
	{ \
		.nice = LIMITS_AS_STARTED, .io_priority = LIMITS_AS_STARTED \
	}

/* Rows for a command's table of options, to be used between braces. */
#define LIMITS_SPEC_BWLIMIT \
	0, "bwlimit", "SIZE", "read SIZE bytes a second from devices, no more", "0: no limit."
#define LIMITS_SPEC_IOPS 0, "iops-limit", "N", "begin N reads a second, no more", "0: no limit."
#define LIMITS_SPEC_IOPRIO \
	0, "ioprio", "PRIORITY", "I/O priority: idle, or 0 (high) … 7 (low)", \
		"As ionice(1); only some I/O schedulers heed it."
#define LIMITS_SPEC_NICE 0, "nice", "N", "niceness of all threads, 0 … 19", NULL
#define LIMITS_SPEC_PSI \
	0, "psi-target", "PERCENT", "slow down while tasks wait for I/O for longer", \
		"On average more than PERCENT of the time, by /proc/pressure/io and by " \
		"io.pressure of the own control group. 0: no target."
#define LIMITS_SPEC_LATENCY \
	0, "latency-target", "TIME", "slow down while 1 read in 100 takes longer", \
		"TIME is a number with us, ms or s: 3ms. 0: no target."
#define LIMITS_SPEC_FILE \
	0, "limits-file", "FILE", "the limits above, NAME=VALUE lines; SIGHUP reads it again", \
		"A line of FILE replaces the option of that name."

/*
 * Sets the limit of the option `name`, which has no dashes. False: the value is
 * bad, or there is no such limit; which is reported.
 */
bool limits_set(struct limits *limits, const char *name, const char *value);

/*
 * Changes *limits by the lines of a file. False, and it is as before: a line is
 * bad or the file cannot be read, which is reported.
 */
bool limits_load(struct limits *limits, const char *path);

/* The rate of --bwlimit, or else of the environment; 0: there is none. */
uint64_t limits_bytes(const struct limits *limits, const struct pinion_tuning *tuning);

/*
 * What a runtime is to keep: these limits, or what the environment has set
 * where there is none, and a pace in bytes a second, of which 0 is none. A read
 * counts as 16 KiB at least in a pace.
 */
void limits_rates(const struct limits *limits, const struct pinion_tuning *tuning, uint64_t pace,
	struct pinion_limits *out_rates);

static inline bool limits_has_target(const struct limits *limits)
{
	return limits->latency_ns != 0 || limits->pressure_ppm != 0;
}

/*
 * The window for a scan with limits, a power of two from 128 KiB to 1 MiB; 0:
 * any. The runtime reads a window in parts that suit the rate; short windows
 * bring findings soon where the rate is low, or moves, as with `is_moving`.
 * Shorter ones would read the overlaps of windows again and again.
 */
uint32_t limits_window_bytes(const struct limits *limits, uint32_t worker_count, bool is_moving);

#endif
