/* SPDX-License-Identifier: MIT */
/*
 * A registry: the memory that a ring's kernel side knows, so that reads into it
 * skip the mapping.
 *
 * It consists of regions, one arena each, which are registered with the kernel
 * as ranges of at most 1 GiB; which range holds a buffer follows from its
 * address. The kernel locks the memory and charges it to the user, up to
 * RLIMIT_MEMLOCK. When that is too little, half of each region is tried, then a
 * quarter and so on: the buffers used most are at its front.
 *
 * One registry may serve many rings. Registering an arena on each of them would
 * charge it as often; instead all are registered once, on a ring of no other
 * use, and each worker's ring clones its table (Linux 6.12), which charges
 * nothing. Only a ring's own thread may copy from it when it was set up for a
 * single issuer, as the workers' are; hence the shared ring is not.
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
};

/*
 * The largest ranges such that no buffer is on two, if buffers of that size
 * fill a region from its start.
 */
size_t pin_registry_range_bytes(size_t buffer_bytes);

/*
 * Registers as much of the regions on `uring` as may be, and has them say how
 * much it is. Returns the sum. `*out_error`: why it is not all, negative, or 0.
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
