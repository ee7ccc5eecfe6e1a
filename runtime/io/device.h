/* SPDX-License-Identifier: MIT */
/*
 * Disks: the devices that a runtime's requests go to, with the state that all
 * its workers share for each: the credit (io/device_credit.h), whose limit is
 * the configured one, or else the depth that was found (io/device.h), and the
 * limiter (io/rate_limit.h).
 *
 * A disk is added when the first request for it comes; it stays. Partitions are
 * on the disk they are part of. When there are PIN_DISKS of them all others
 * share the last one.
 *
 * Limits that are set before a disk's first request are kept apart, as early
 * limits: they reserve a place, and free it if they are taken back before that
 * request. Threads read places without a lock, so a place that is counted
 * cannot be freed. When a disk comes and only reserved places are left, the
 * disks that they are reserved for are added, and the new disk shares the last
 * place.
 *
 * Each worker has an account with each disk. From time to time a worker that
 * ends requests checks whether an interval is over; one worker at a time then
 * adds up all accounts and learns from the sum. So memory that all workers
 * share is written once in an interval.
 *
 * [DISK-1] a thread that adds a disk stores its number in `count` (release) ->
 * a search loads that (acquire): it finds the disk complete.
 * [DISK-2] the owner of an account stores which disk it is for (release) -> a
 * reader that adds up accounts loads that (acquire): the account's numbers are
 * those of this disk.
 */
#ifndef PIN_IO_DEVICE_H
#define PIN_IO_DEVICE_H

#include "runtime/base/check.h"
#include "runtime/host/block_device.h"
#include "runtime/io/device_credit.h"
#include "runtime/io/rate_limit.h"
#include "runtime/io/request.h"

#include <pinion/limit.h>
#include <pinion/tuning.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- the queue of waiting workers ---- */

/*
 * A device wait queue: requests of one device that wait on one worker, in a
 * line for each file. The lines have turns, one request each, so that a file
 * with a thousand requests does not keep one with a single request waiting.
 *
 * Lines come from the worker, which has a fixed number. When they are used up,
 * all further files of a device share one line.
 *
 * Urgent requests, those of the high lane, are in lines of their own and pass
 * the others; after PIN_PASSED_MAX in a row another request has its turn, so
 * that these go on however many urgent ones come.
 *
 * [own] by the worker, or by the holder of its ring's lock. Finding a file's
 * line is O(files that wait); all else is O(1), except for lines that have
 * become empty.
 *
 * Invariants: 1. an empty line is removed when its turn comes. 2. requests of
 * one file that are equally urgent start in their order. 3. while others wait,
 * no more than PIN_PASSED_MAX urgent ones start in a row.
 */

/* Files of one worker that may have a line of their own. */
#define PIN_LINES 32u

/* Urgent requests in a row that pass others. */
#define PIN_PASSED_MAX 8u

struct pin_line {
	struct pin_line *next;		  /* in the circle, or of those that are free */
	const struct pinion_file *file;	  /* NULL: of several */
	struct pin_request_link requests; /* a circle */
};

/* Those of one worker. */
struct pin_lines {
	struct pin_line *free;
	struct pin_line lines[PIN_LINES];
};

struct pin_line_circle {
	struct pin_line *last; /* `next` has its turn; NULL: there are no lines */
	uint32_t count;	       /* requests */
	struct pin_line rest;  /* of files without a line */
};

struct pin_device_waiters {
	uint32_t count;	       /* requests, urgent and others */
	uint32_t passed_count; /* urgent requests that have passed others, in a row */
	struct pin_line_circle urgent;
	struct pin_line_circle others;
};

void pin_lines_init(struct pin_lines *lines);
void pin_device_waiters_init(struct pin_device_waiters *device_waiters);

void pin_device_waiters_push(struct pin_device_waiters *device_waiters, struct pin_lines *lines,
	struct pinion_request *request);

/* Whose turn it is, or NULL; it stays where it is. */
struct pinion_request *pin_device_waiters_first(
	struct pin_device_waiters *device_waiters, struct pin_lines *lines);

/* Takes that one out: the next line has its turn. */
void pin_device_waiters_pop(struct pin_device_waiters *device_waiters);

/* Any other that is in there; the caller unlinks it. */
static inline void pin_device_waiters_note_left(
	struct pin_device_waiters *device_waiters, struct pinion_request *request)
{
	struct pin_line_circle *circle = pin_request_of(request)->cost.is_urgent
		? &device_waiters->urgent
		: &device_waiters->others;

	PIN_CHECK(circle->count > 0 && device_waiters->count > 0);
	circle->count--;
	device_waiters->count--;
}

/* No more urgent ones may pass for now. */
static inline bool pin_device_waiters_is_row_full(const struct pin_device_waiters *device_waiters)
{
	PIN_DCHECK(device_waiters->passed_count <= PIN_PASSED_MAX);
	return device_waiters->others.count > 0 && device_waiters->passed_count == PIN_PASSED_MAX;
}

/* Whether an urgent one is the first. */
static inline bool pin_device_waiters_has_urgent(const struct pin_device_waiters *device_waiters)
{
	return device_waiters->urgent.count > 0 && !pin_device_waiters_is_row_full(device_waiters);
}

/* Whether a request that comes now may start before all that wait. */
static inline bool pin_device_waiters_lets_pass(
	const struct pin_device_waiters *device_waiters, struct pinion_request *request)
{
	return device_waiters->count == 0 ||
		(pin_request_of(request)->cost.is_urgent && device_waiters->urgent.count == 0 &&
			!pin_device_waiters_is_row_full(device_waiters));
}

/* It starts, and is not, or no longer, in there. */
static inline void pin_device_waiters_note_start(
	struct pin_device_waiters *device_waiters, struct pinion_request *request)
{
	bool has_passed =
		pin_request_of(request)->cost.is_urgent && device_waiters->others.count > 0;

	device_waiters->passed_count = has_passed ? device_waiters->passed_count + 1 : 0;
	PIN_DCHECK(device_waiters->passed_count <= PIN_PASSED_MAX);
}

/* ---- depth ---- */

/*
 * Depth: how much one device is given to do at a time, found while it works.
 *
 * A device answers sooner when it has little to do, and does more per second
 * when it has much, up to a knee: from there on more requests in its queue only
 * wait. The depth should be at the knee. Its place is not known beforehand, and
 * it moves.
 *
 * The unit is a request of up to 64 KiB; a longer one counts as several. So one
 * number bounds small requests by their count and large ones by their bytes.
 *
 * In each interval the worker reports how much was done, how long it took on
 * average, and whether any request had to wait for depth: if none had to, the
 * interval says nothing about depth. Between trials the depth stays at `base`,
 * and the rate there is averaged. A trial is one interval at a depth a third
 * higher or a quarter lower. A higher depth is kept if the rate grew by 6 %, a
 * lower one if it fell by less than 2 %: in between, the depth stays, so that
 * noise does not move it. Where a lower depth means 2 ms or less for a request,
 * a third less is tried, and must bring 6 % more as well: the device hardly
 * answers sooner, and each wake of a worker is for fewer requests; but fewer
 * buffers may fit into a cache.
 *
 * The longer trials have changed nothing, the rarer they become. A sudden
 * change of the rate makes them frequent again, and the latency says in which
 * direction to try first: while requests take about as long as they ever did,
 * none waits in the device, and it may be given more.
 *
 * Devices with heads to move do best with few requests, and the kernel reports
 * which these are; but it reports many virtual disks, too. So a device that
 * does more than any drive with heads, 400 MB or 6400 requests per second, is
 * not treated as one.
 *
 * Policy only: no atomics, no clock, integers throughout. One per device; the
 * caller makes sure that one thread uses it at a time.
 *
 * Invariants: 1. min <= base, depth <= max. 2. outside of a trial, and while
 * one is being settled, depth is base.
 *
 * Source: docs/decisions/devices.md, "The depth of a device is found by trial".
 */

/* Bytes of a unit. */
#define PIN_DEPTH_UNIT_BYTES (64u << 10)
/*
 * A request that waits no longer than this for the device need not wait less.
 */
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
	 * Not 0: the device claims to have heads to move, and is given this
	 * number of requests, whatever their size, until it does more than such
	 * a device can.
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
	uint32_t spin;		 /* intervals between two trials */
	uint32_t odd_count;	 /* intervals in a row that were much unlike the average */
	uint64_t base_rate;	 /* averaged, units in 1000 s */
	uint64_t latency_ns_min; /* slowly forgotten; 0: none yet */
};

void pin_depth_init(struct pin_depth *depth, const struct pin_depth_options *options);

/* Units of one request. */
static inline uint64_t pin_depth_units(uint64_t bytes)
{
	PIN_DCHECK(bytes <= UINT64_MAX - PIN_DEPTH_UNIT_BYTES);
	return bytes == 0 ? 1 : (bytes + PIN_DEPTH_UNIT_BYTES - 1) / PIN_DEPTH_UNIT_BYTES;
}

/*
 * Whether this is enough for an interval: some time, and more requests than
 * were in the device when it began; or a long time.
 */
bool pin_depth_is_ripe(const struct pin_depth *depth, uint64_t elapsed_ns, uint64_t units);

/*
 * Learns from an interval; returns the depth for the next, in units. With
 * `is_few` it is `few` requests, until this says otherwise.
 */
uint32_t pin_depth_learn(struct pin_depth *depth, const struct pin_depth_sample *sample);

/* ---- devices ---- */

#define PIN_DISKS 16u
/* Values of st_dev that a worker knows the disk of. */
#define PIN_ACCOUNTS 16u

struct pin_worker;

struct pin_disk {
	/* [const] once it is counted */
	uint64_t device;
	bool is_rotational;
	bool is_polled;
	/* [lock:disks] */
	bool is_manual; /* limits were set for this one */
	struct pin_depth depth;
	uint32_t kept_depth; /* the largest since workers were notified */
	uint64_t base_ns;    /* the interval in hand began then, with these sums */
	uint64_t base_units;
	uint64_t base_requests;
	uint64_t base_waited;
	uint64_t base_latency_ns;
	uint64_t base_timed;
	/* [W:lock R:any] */
	struct pin_atomic_u64 look_ns; /* when the next interval may be over; never if manual */
	struct pin_credit credit PIN_CACHE_ALIGNED;
	struct pin_limiter limiter PIN_CACHE_ALIGNED;
};

/* Limits of a disk that no request went to. */
struct pin_early_limits {
	struct pin_block block;
	struct pinion_limits limits;
};

struct pin_disks {
	struct pin_lock lock; /* rank 4, before those of a disk */
	struct pin_atomic_u32 count;
	struct pin_atomic_u32 early_count;	      /* [W:lock R:any] */
	struct pin_early_limits early[PIN_DISKS];     /* [lock:lock] */
	uint32_t worker_count;			      /* [const] */
	struct pinion_limits standard;		      /* [lock:lock] of disks without their own */
	struct pin_limiter limiter PIN_CACHE_ALIGNED; /* of all together */
	struct pin_disk disks[PIN_DISKS];
};

/* What a worker has to do with one st_dev. */
struct pin_account {
	/* [own], from the first request on [const] */
	uint64_t device;
	struct pin_disk *disk;
	struct pin_worker *worker;
	bool is_polled; /* [own] its transfers may be: worker/worker.h */
	/* [own]; [lock:ring_lock] if the worker's ring is shared */
	struct pin_holding holding;
	struct pin_device_waiters device_waiters;
	struct pin_allowance allowance;
	struct pin_timer timer; /* when a rate lets the first of the device wait queue go */
	uint64_t blocked_ns;	/* since when a rate keeps it; 0: none does */
	uint32_t starts_since_timed;
	uint32_t ends_since_look;
	uint32_t look_ends; /* from one check to the next */
	uint64_t look_ns;   /* when the last one was */
	/* [W:own R:any] */
	struct pin_atomic_u32 disk_place; /* 1 + that of the disk; 0: unused */
	struct pin_atomic_u64 requests;	  /* that have ended */
	struct pin_atomic_u64 units;	  /* of those */
	struct pin_atomic_u64 bytes;	  /* of those */
	struct pin_atomic_u64 waited;	  /* queued for credit */
	struct pin_atomic_u64 throttled;  /* queued for a rate */
	struct pin_atomic_u64 throttled_ns;
	struct pin_atomic_u64 latency_ns; /* of some, */
	struct pin_atomic_u64 timed;	  /* how many were timed */
	struct pin_atomic_u64 slow;	  /* of those, slower than `slow_ns` */
};

void pin_disks_init(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint32_t worker_count);

/* The disk of st_dev `device`, for its requests; it is added if need be. */
struct pin_disk *pin_disks_find(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t device);

/*
 * Sets the limits of all disks without limits of their own, and the rates of
 * all together. The caller notifies the workers.
 */
void pin_disks_limit(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, const struct pinion_limits *limits);

/*
 * Sets the limits of one disk; NULL: it has none of its own. -ENOSPC: no place
 * is left. The caller notifies the workers.
 */
int pin_disks_limit_one(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t device, const struct pinion_limits *limits);

/*
 * Whether there are limits for a disk that no request went to; they may come or
 * go meanwhile.
 */
static inline bool pin_disks_have_early_limits(const struct pin_disks *disks)
{
	/* Relaxed: reads none of them, see pin_disks_find(). */
	return pin_load_relaxed_u32(&disks->early_count) != 0;
}

/* Sums of all accounts of a disk. */
struct pin_disk_sums {
	uint64_t requests;
	uint64_t units;
	uint64_t bytes;
	uint64_t waited;
	uint64_t throttled;
	uint64_t throttled_ns;
	uint64_t latency_ns;
	uint64_t timed;
	uint64_t slow;
};

/*
 * Learns from an interval, if one is over. One thread at a time; others go on.
 * True: workers that start no transfers keep too much for the new depth, and
 * the caller notifies them.
 */
bool pin_disk_learn(struct pin_disks *disks, struct pin_disk *disk, const struct pin_host *host,
	const struct pinion_tuning *tuning, uint64_t now_ns, const struct pin_disk_sums *sums);

static inline bool pin_disk_is_look_due(const struct pin_disk *disk, uint64_t now_ns)
{
	return now_ns >= pin_load_relaxed_u64(&disk->look_ns);
}

#endif
