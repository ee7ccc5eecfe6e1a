/* SPDX-License-Identifier: MIT */
/*
 * A registry: memory that is registered with a ring, so that for reads into it
 * the kernel need not map it.
 *
 * It consists of regions, one arena each, which are registered with the kernel
 * as ranges of at most 1 GiB; which range holds a buffer follows from its
 * address. The kernel locks the memory and charges it to the user, up to
 * RLIMIT_MEMLOCK. When that is too little, half of each region is tried, then a
 * quarter and so on: the buffers used most are at its front.
 *
 * One registry may serve many rings. Registering an arena on each of them would
 * charge it each time; instead all are registered once, on a ring that has no
 * other use, and each worker's ring clones its table (Linux 6.12), which
 * charges nothing. Only a ring's own thread may copy from it when it was set up
 * for a single issuer, as the workers' are; hence the shared ring is not.
 *
 * Filled in before any lookup; lookups are any thread's.
 *
 * Invariants: (1) regions are in order of their addresses. (2) each range of a
 * region but its last has `range_bytes`.
 *
 * Source: io_uring_register(2), "IORING_REGISTER_BUFFERS";
 * docs/decisions/memory.md, "Arenas are registered once and cloned".
 */
#ifndef PIN_IO_REGISTERED_BUFFERS_H
#define PIN_IO_REGISTERED_BUFFERS_H

#include "runtime/base/base.h"
#include "runtime/host/host.h"

#include <liburing.h>
#include <stddef.h>
#include <stdint.h>

struct pin_region {
	uint8_t *memory;
	size_t bytes; /* from the front: wanted, then registered */
	uint32_t first_index;
};

struct pin_registry {
	size_t range_bytes;
	uint32_t region_count;
	struct pin_region *regions;
	uint32_t slot_count;  /* empty entries after the ranges: struct pin_grown */
	uint32_t range_count; /* of all regions, when they are registered */
};

/*
 * Memory that a ring's owner registers step by step, from its front on, each
 * step in an entry of the table of its own. A step's bytes are only counted
 * when its entry is filled, and are no longer before it is emptied. Only the
 * holder of the ring looks here.
 */
struct pin_grown {
	uint8_t *memory;
	size_t bytes; /* registered, of its front */
	size_t step_bytes;
	uint32_t step_shift;  /* if that is a power of two, its logarithm; else 0 */
	uint32_t first_index; /* entry of the first step */
	uint32_t step_count;
};

/*
 * Index of the step that holds all of [bytes, bytes + length), or -1. No buffer
 * is on two steps.
 */
static inline int pin_grown_index(
	const struct pin_grown *grown, const uint8_t *bytes, size_t length)
{
	size_t offset = (uintptr_t)bytes - (uintptr_t)grown->memory;
	size_t step;

	if (offset >= grown->bytes || length > grown->bytes - offset) {
		return -1;
	}
	step = grown->step_shift != 0 ? offset >> grown->step_shift : offset / grown->step_bytes;
	if (length > (step + 1) * grown->step_bytes - offset) {
		return -1;
	}
	return (int)(grown->first_index + step);
}

/*
 * The largest ranges such that no buffer is on two, if buffers of that size
 * fill a region from its start.
 */
size_t pin_registry_range_bytes(size_t buffer_bytes);

/*
 * Registers as much of the regions on `uring` as the kernel allows, and stores
 * in them how much that is. Returns the sum. `*out_error`: why it is not all,
 * negative, or 0. `slot_count` empty entries follow, unless nothing was
 * registered.
 */
size_t pin_registry_register(struct pin_registry *registry, const struct pin_host *host,
	struct io_uring *uring, int *out_error);

/*
 * Index of the range that holds all of [bytes, bytes + length), or -1. Looks at
 * the region `home_region` first.
 */
int pin_registry_index(const struct pin_registry *registry, uint32_t home_region,
	const uint8_t *bytes, size_t length);

/* The same if the home region is one range and holds it; else -1. */
static inline int pin_registry_index_home(const struct pin_registry *registry, uint32_t home_region,
	const uint8_t *bytes, size_t length)
{
	if (home_region < registry->region_count) {
		const struct pin_region *home = &registry->regions[home_region];
		size_t offset = (uintptr_t)bytes - (uintptr_t)home->memory;

		if (offset < home->bytes && length <= home->bytes - offset &&
			home->bytes <= registry->range_bytes) {
			return (int)home->first_index;
		}
	}
	return -1;
}

/* The same, wherever it is. */
static inline int pin_registry_index_near(const struct pin_registry *registry, uint32_t home_region,
	const uint8_t *bytes, size_t length)
{
	int index = pin_registry_index_home(registry, home_region, bytes, length);

	return PIN_LIKELY(index >= 0) ? index
				      : pin_registry_index(registry, home_region, bytes, length);
}

#endif
