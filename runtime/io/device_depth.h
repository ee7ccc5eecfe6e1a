/* SPDX-License-Identifier: MIT */
/*
 * Depth: how much one device is given to do at a time, found while it works.
 *
 * A device answers sooner when it has little to do, and does more per second
 * when it has much, up to a knee: from there on more in its queue only makes
 * everything wait. The depth should lie at the knee. Nothing is known before of
 * where that is, and it moves.
 *
 * The unit is a request of up to 64 KiB; a longer one counts as several. So one
 * number bounds small requests by their count and large ones by their bytes.
 *
 * In each interval the worker tells how much was done, how long it took on
 * average, and whether anything had to wait for depth: if nothing had, the
 * interval says nothing about depth. Between trials the depth stays at `base`,
 * and the rate there is averaged. A trial is one interval at a depth a third
 * higher or a quarter lower. Higher is kept if the rate grew by 6 %, lower if
 * it fell by less than 2 %: in between, the depth stays, so that noise does not
 * move it. Where lower means 2 ms or less for a request, a third less is tried,
 * and must bring 6 % more as well: it hardly answers sooner, and each wake of a
 * worker is for fewer; but fewer buffers may fit into a cache.
 *
 * The longer nothing has come of trials, the rarer they are. A rate that is
 * suddenly another makes them frequent again, and the latency says in which
 * direction to try first: while requests take about as long as they ever did
 * nothing waits in the device, and it may be given more.
 *
 * Devices with heads to move do best with few requests, and the kernel says
 * which these are. It says so of many virtual disks that are none. So what does
 * more than any drive with heads, 400 MB or 6400 requests per second, is not
 * believed to be one.
 *
 * Policy only: no atomics, no clock, integers throughout. One per device; who
 * calls it sees to it that one does at a time.
 *
 * Invariants: 1. min <= base, depth <= max. 2. outside of a trial, and while
 * one is being settled, depth is base.
 *
 * Source: docs/decisions/devices.md, "The depth of a device is found by trial".
 */
#ifndef PIN_IO_DEVICE_DEPTH_H
#define PIN_IO_DEVICE_DEPTH_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a unit. */
#define PIN_DEPTH_UNIT_BYTES (64u << 10)
/* Who waits no longer than that for the device need not wait less. */
#define PIN_DEPTH_SHORT_NS (2u * 1000 * 1000)

enum pin_depth_phase {
	PIN_DEPTH_MEASURES = 0, /* at base; to SETTLES when a trial begins */
	PIN_DEPTH_SETTLES,	/* just changed; to MEASURES or TRIES */
	PIN_DEPTH_TRIES,	/* to MEASURES, or to SETTLES if it was in vain */
};

/* In units, 1 <= min <= start <= max. */
struct pin_depth_options {
	uint32_t start;
	uint32_t min;
	uint32_t max;
	/*
	 * Not 0: the device is said to have heads to move, and is given so many
	 * requests, whatever their size, until it does what no such device can.
	 */
	uint32_t few;
};

/* One interval. */
struct pin_depth_sample {
	uint64_t elapsed_ns;
	uint64_t units;	     /* done in it */
	uint64_t latency_ns; /* on average; 0: not known */
	bool was_full;	     /* requests had to wait for depth */
};

struct pin_depth {
	struct pin_depth_options options; /* [const] after init */
	uint32_t base;
	uint32_t depth; /* in force */
	bool is_few;	/* it is `few` instead */
	enum pin_depth_phase phase;
	bool tries_more;	 /* the next trial is upwards */
	bool has_flipped;	 /* since the last trial that was kept */
	uint32_t interval_count; /* at base, since the last trial */
	uint32_t patience;	 /* intervals between two trials */
	uint32_t odd_count;	 /* intervals in a row that were much unlike the average */
	uint64_t base_rate;	 /* averaged, units in 1000 s */
	uint64_t latency_ns_min; /* slowly forgotten; 0: none yet */
};

void pin_depth_init(struct pin_depth *depth, const struct pin_depth_options *options);

/* Units of one request. */
static inline uint64_t pin_depth_units(uint64_t bytes)
{
	uint64_t units = (bytes + PIN_DEPTH_UNIT_BYTES - 1) / PIN_DEPTH_UNIT_BYTES;

	return units == 0 ? 1 : units;
}

/*
 * Whether so much makes an interval: some time, and more than what was in the
 * device when it began; or a long time.
 */
bool pin_depth_is_ripe(const struct pin_depth *depth, uint64_t elapsed_ns, uint64_t units);

/*
 * Learns from an interval; returns the depth for the next, in units. With
 * `is_few` it is `few` requests, until this says otherwise.
 */
uint32_t pin_depth_learn(struct pin_depth *depth, const struct pin_depth_sample *sample);

#endif
