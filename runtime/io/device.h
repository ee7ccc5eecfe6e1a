/* SPDX-License-Identifier: MIT */
/*
 * Disks: the devices that a runtime's requests go to, with what all its workers
 * have in common about each: the credit (io/device_credit.h), whose limit is
 * what was set, or else the depth that was found (io/device_depth.h), and the
 * limiter (io/rate_limit.h).
 *
 * A disk is added when the first request for it comes; it stays. Partitions are
 * on the disk they are part of. When there are PIN_DISKS of them all others
 * share the last one.
 *
 * A worker's account with a disk is its ledger. From time to time a worker that
 * ends requests looks whether an interval is over; one at a time then adds up
 * all ledgers and learns from that. So nothing is written that all share but
 * once per interval.
 *
 * [DISK-1] who adds a disk stores its number in `count` (release) -> who looks
 * for one loads that (acquire): it finds the disk complete.
 * [DISK-2] a ledger's owner stores which disk it is for (release) -> who adds
 * up ledgers loads that (acquire): its figures are those of this disk.
 */
#ifndef PIN_IO_DEVICE_H
#define PIN_IO_DEVICE_H

#include "runtime/io/device_credit.h"
#include "runtime/io/device_depth.h"
#include "runtime/io/device_lineup.h"
#include "runtime/io/rate_limit.h"

#include <pinion/config.h>
#include <pinion/limit.h>

#define PIN_DISKS 16u
/* Values of st_dev that a worker knows the disk of. */
#define PIN_LEDGERS 16u

struct pin_worker;

struct pin_disk {
	/* [const] once it is counted */
	uint64_t device;
	bool is_rotational;
	bool is_polled;
	/* [lock:disks] */
	bool is_manual; /* limits were set for this one */
	struct pin_depth depth;
	uint32_t kept_depth; /* the largest since workers were told */
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

struct pin_disks {
	struct pin_lock lock; /* rank 4, before those of a disk */
	struct pin_atomic_u32 count;
	struct pinion_limits standard;		      /* [lock:lock] of disks without their own */
	struct pin_limiter limiter PIN_CACHE_ALIGNED; /* of all together */
	struct pin_disk disks[PIN_DISKS];
};

/* What a worker has to do with one st_dev. */
struct pin_ledger {
	/* [own], from the first request on [const] */
	uint64_t device;
	struct pin_disk *disk;
	struct pin_worker *worker;
	bool is_polled; /* [own] its transfers may be: worker/extra_rings.h */
	/* [own]; [lock:ring_lock] if the worker's ring is shared */
	struct pin_holding holding;
	struct pin_lineup lineup;
	struct pin_allowance allowance;
	struct pin_timer timer; /* when a rate lets the first of the line-up go */
	uint64_t blocked_ns;	/* since when a rate keeps it; 0: none does */
	uint32_t starts_since_timed;
	uint32_t ends_since_look;
	uint32_t look_ends; /* from a look to the next */
	uint64_t look_ns;   /* when the last one was */
	/* [W:own R:any] */
	struct pin_atomic_u32 disk_place; /* 1 + that of the disk; 0: unused */
	struct pin_atomic_u64 requests;	  /* that have ended */
	struct pin_atomic_u64 units;	  /* of those */
	struct pin_atomic_u64 bytes;	  /* likewise */
	struct pin_atomic_u64 waited;	  /* lined up for credit */
	struct pin_atomic_u64 throttled;  /* lined up for a rate */
	struct pin_atomic_u64 throttled_ns;
	struct pin_atomic_u64 latency_ns; /* of some, */
	struct pin_atomic_u64 timed;	  /* so many */
};

void pin_disks_init(
	struct pin_disks *disks, const struct pin_host *host, const struct pinion_config *config);

/* The disk of st_dev `device`, which is added if need be. */
struct pin_disk *pin_disks_find(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_config *config, uint64_t device);

/* Whether it is that of `device`, and not the one that others share. */
bool pin_disk_is(const struct pin_disk *disk, uint64_t device);

/*
 * Sets what all disks without limits of their own have, and the rates of all
 * together; or the limits of one. Workers are the caller's to tell.
 */
void pin_disks_limit(struct pin_disks *disks, const struct pin_host *host,
	const struct pinion_config *config, const struct pinion_limits *limits);
void pin_disk_limit(struct pin_disks *disks, struct pin_disk *disk, const struct pin_host *host,
	const struct pinion_config *config, const struct pinion_limits *limits);

/* Sums of all ledgers of a disk. */
struct pin_disk_sums {
	uint64_t requests;
	uint64_t units;
	uint64_t bytes;
	uint64_t waited;
	uint64_t throttled;
	uint64_t throttled_ns;
	uint64_t latency_ns;
	uint64_t timed;
};

/*
 * If an interval is over: learns from it. One at a time; others go on. True:
 * workers that start nothing keep too much for what the depth has become, and
 * are the caller's to tell.
 */
bool pin_disk_learn(struct pin_disks *disks, struct pin_disk *disk, const struct pin_host *host,
	const struct pinion_config *config, uint64_t now_ns, const struct pin_disk_sums *sums);

static inline bool pin_disk_is_look_due(const struct pin_disk *disk, uint64_t now_ns)
{
	return now_ns >= pin_load_relaxed_u64(&disk->look_ns);
}

#endif
