/* SPDX-License-Identifier: MIT */
/*
 * The parameters of one measurement of a subject: workers, depth, block size.
 * Options give lists of each; a subject is measured at every combination of
 * those that mean something to it.
 */
#ifndef PINION_TOOLS_BENCH_SWEEP_H
#define PINION_TOOLS_BENCH_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

enum bench_axis {
	BENCH_WORKERS = 0,
	BENCH_DEPTH = 1, /* requests in flight for each worker; timers that wait */
	BENCH_BLOCK = 2, /* bytes of a request */
	BENCH_AXIS_COUNT = 3,
};

/* Bits of `axes`: those that mean something to a subject. */
#define BENCH_BY(axis) (1u << (axis))

enum { BENCH_SWEEP_MAX = 16 };

struct bench_point {
	uint32_t values[BENCH_AXIS_COUNT];
};

/* No value: the default, whatever that is. Zero-initialise. */
struct bench_sweep {
	uint32_t counts[BENCH_AXIS_COUNT];
	uint32_t values[BENCH_AXIS_COUNT][BENCH_SWEEP_MAX];
};

/* "1,2,4", or "4K,64K" of blocks. False: that is bad, which is reported. */
bool bench_sweep_parse(struct bench_sweep *sweep, enum bench_axis axis, const char *text);

/* How many points there are by these axes, and the one of that index. */
uint32_t bench_sweep_points(const struct bench_sweep *sweep, uint32_t axes);
/* Axes that are left out or have no value get that of `defaults`. */
struct bench_point bench_sweep_point(const struct bench_sweep *sweep, uint32_t axes,
	const struct bench_point *defaults, uint32_t index);

/* "workers", as the option is called. */
const char *bench_axis_name(enum bench_axis axis);

#endif
