/* SPDX-License-Identifier: MIT */
/*
 * How much a runtime asks of the devices its files are on: how many reads and
 * writes are in a device at once, which is found out while it works or set, and
 * how many bytes and requests there may be in a second, which may be changed at
 * any time.
 */
#ifndef PINION_LIMIT_H
#define PINION_LIMIT_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_limits_init(), then set what should be limited.
 * Since: 0.1
 */
struct pinion_limits {
	/* Bytes of this struct the caller knows, by pinion_limits_init(). */
	uint32_t size;
	/*
	 * Reads and writes in a device at once, all workers together, 0 …
	 * 1048575, and the bytes they ask for, 0 … 1 TiB; one that asks for
	 * more is there alone. 0: the other one counts, and if both are 0 the
	 * depth is found out, within what the configuration allows.
	 */
	uint32_t depth_count;
	uint64_t depth_bytes;
	/*
	 * Bytes that reads and writes may ask for in a second, and how many of
	 * them may begin. 0: as many as there are.
	 */
	uint64_t bytes_per_second;
	uint64_t requests_per_second;
};

/*
 * Writes every default, no limit; the macro passes the size this program was
 * compiled with. Any thread; never blocks. Since: 0.1
 */
PINION_API void pinion_limits_init_sized(struct pinion_limits *limits, uint32_t size);
#define pinion_limits_init(limits) \
	pinion_limits_init_sized((limits), (uint32_t)sizeof(struct pinion_limits))

/*
 * Sets what a runtime asks of all devices: depths, for each that has no limits
 * of its own, and rates, for all together. Takes effect at once: what waits for
 * the former rates goes by the new ones, what is in a device already stays
 * there.
 *
 * Whatever a request has to wait for, it waits on its worker, whose other tasks
 * go on; it can be cancelled, and its deadline counts. Files have turns. What
 * the page cache answers at once is not limited; short reads and attempts that
 * are made again count once, with the bytes asked for. One of more than 64 MiB
 * counts as one request, and its bytes 64 MiB at a time, between which others
 * have their turn. Over any time T at most the rate's share of T goes out, and
 * of 10 ms, and for each worker, and once more, a millisecond's or one request
 * of up to 64 MiB.
 *
 * Context: any thread; takes a lock, never waits for a device.
 * Errors: -EINVAL: out of range. -E2BIG: the struct is newer than the library
 * and an unknown field is set. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_runtime_set_limits(
	struct pinion_runtime *runtime, const struct pinion_limits *limits);

/*
 * The same for one device, as struct pinion_file names it: it counts besides
 * the runtime's rates, and instead of its depths. A partition stands for its
 * disk.
 *
 * Errors: also -ENOSPC: there are limits, or requests, for 16 others already.
 * Since: 0.1
 */
PINION_API int pinion_device_set_limits(
	struct pinion_runtime *runtime, uint64_t device, const struct pinion_limits *limits);

/*
 * A device as one runtime sees it; sums are since its creation.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_device_stats {
	uint64_t device; /* of the whole disk */
	/* The depth in force, and what is taken of it. */
	uint64_t depth_count;
	uint64_t depth_bytes;
	uint64_t taken_count;
	uint64_t taken_bytes;
	/* Reads and writes that have ended, and the bytes they asked for. */
	uint64_t requests;
	uint64_t bytes;
	uint64_t waited;       /* requests that had to wait for depth */
	uint64_t throttled;    /* that had to wait for a rate, or parts that had to */
	uint64_t throttled_ns; /* how long they held up their worker's requests there */
	uint64_t latency_ns;   /* average of one in eight; 0: not known */
	uint32_t is_rotational;
	uint32_t is_found_out; /* the depth is, rather than set */
};

/*
 * Figures of the `index`th device that requests went to, from 0 on, in the
 * order of the first of each.
 *
 * Context: any thread; never blocks.
 * Errors: -ENOENT: there are not so many. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_device_get_stats(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_stats, size_t size);

PINION_END_DECLS

#endif
