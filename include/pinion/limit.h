/* SPDX-License-Identifier: MIT */
/*
 * Limits for the devices of a runtime's files: how many reads and writes are in
 * a device at once, which the library finds or the caller sets, and how many
 * bytes and requests there may be in a second. All of them may be changed at
 * any time.
 */
#ifndef PINION_LIMIT_H
#define PINION_LIMIT_H

#include <pinion/runtime.h>

PINION_BEGIN_DECLS

/*
 * Shape: size-versioned; only ever appended to. Initialise with
 * pinion_limits_init(), then set limits.
 * Since: 0.1
 */
struct pinion_limits {
	/* Bytes of this struct the caller knows, by pinion_limits_init(). */
	uint32_t size;
	/*
	 * Reads and writes in a device at once, all workers together, 0 …
	 * 1048575, and the bytes they ask for, 0 … 1 TiB; a request for more
	 * bytes is there alone. 0: only the other one limits; both 0: the
	 * library finds the depth, within the limits of the tuning.
	 */
	uint32_t depth_count;
	uint64_t depth_bytes;
	/*
	 * Bytes that reads and writes may ask for in a second, and how many of
	 * them may begin. 0: no limit.
	 */
	uint64_t bytes_per_second;
	uint64_t requests_per_second;
	/*
	 * A read or write that takes its device longer than this counts as
	 * slow, 0 … 2^62 ns. If it is not 0, every request is timed, not only
	 * samples. 0: none counts.
	 */
	uint64_t slow_ns;
};

/*
 * Writes every default, no limit; the macro passes the size this program was
 * compiled with.
 *
 * Context: any thread; never blocks.
 * Since: 0.1
 */
PINION_API void pinion_limits_init_sized(struct pinion_limits *limits, uint32_t size);
#define pinion_limits_init(limits) \
	pinion_limits_init_sized((limits), (uint32_t)sizeof(struct pinion_limits))

/*
 * Limits a runtime's use of devices: depths, for each device that has no limits
 * of its own, and rates, for all devices together. Takes effect at once: queued
 * requests go by the new rates; requests in a device stay there.
 *
 * A request that has to wait does so on its worker, whose other tasks go on; it
 * can be cancelled, and its deadline counts. Files take turns. Requests
 * answered from the page cache are not limited; short reads and repeated
 * attempts count once, with the bytes asked for.
 *
 * A request counts once, and its bytes part after part; others have their turn
 * in between. A part is a power of two from 4 KiB, or the alignment of the
 * file, to 64 MiB, and at most a 50th of a second's bytes divided by the number
 * of workers and one. In any time T at most as many bytes and requests begin as
 * the rates allow in T, and 10 ms' share or a part more, and for each worker a
 * millisecond's share or a part, however often limits are set. Up to 10 ms
 * without a start are made up for later. `limits` NULL: none.
 *
 * Context: any thread; takes a lock, never waits for a device.
 * Errors: -EINVAL: out of range. -E2BIG: the struct is newer than the library
 * and an unknown field is set. -ECHILD: as pinion_task_spawn().
 * Since: 0.1
 */
PINION_API int pinion_runtime_set_limits(
	struct pinion_runtime *runtime, const struct pinion_limits *limits);

/*
 * Limits one device, as struct pinion_file names it: its rates apply besides
 * the runtime's, its depths and its `slow_ns`, if not 0, replace them. A
 * partition means its disk. `limits` NULL: it has none of its own.
 *
 * Errors: as pinion_runtime_set_limits(); -ENOSPC: 16 other devices have limits
 * or have had requests: call it with NULL for one that no request went to. One
 * that requests went to counts until the runtime is destroyed.
 * Since: 0.1
 */
PINION_API int pinion_device_set_limits(
	struct pinion_runtime *runtime, uint64_t device, const struct pinion_limits *limits);

/*
 * Counts of one device in one runtime; sums are since its creation.
 *
 * Shape: size-versioned; pass sizeof(*out_stats).
 * Since: 0.1
 */
struct pinion_device_stats {
	uint64_t device; /* of the whole disk */
	/* The depth in force, and the part of it in use. */
	uint64_t depth_count;
	uint64_t depth_bytes;
	uint64_t taken_count;
	uint64_t taken_bytes;
	/* Reads and writes that have ended, and the bytes they asked for. */
	uint64_t requests;
	uint64_t bytes;
	uint64_t waited;       /* requests that waited for depth */
	uint64_t throttled;    /* requests, or parts of them, that waited for a rate */
	uint64_t throttled_ns; /* how long they held up their worker's requests there */
	uint64_t latency_ns;   /* average of those timed, by default some; 0: none */
	uint32_t is_rotational;
	uint32_t is_found_out; /* the library found the depth */
	uint64_t timed;	       /* requests that were timed */
	uint64_t slow;	       /* of those, slower than `slow_ns` */
};

/*
 * Writes the counts of a device to *out_stats: of the `index`th device that
 * requests went to, from 0 on, in the order of the first request to each. Once
 * more than 16 devices have limits or requests, those with limits are among
 * them.
 *
 * Context: any thread; never blocks.
 * Errors: -ENOENT: there are fewer devices. -ECHILD.
 * Since: 0.1
 */
PINION_API int pinion_device_get_stats(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_stats, size_t size);

PINION_END_DECLS

#endif
