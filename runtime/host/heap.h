/* SPDX-License-Identifier: MIT */
/*
 * The heap of a host: the library allocates through these functions, which call
 * those in the host's table. The caller of a release passes size and alignment
 * again, so that no allocator has to store them.
 *
 * These allocate elsewhere, as they belong to no runtime: libc, hwloc and
 * liburing for themselves, files that a process opens by itself (io/file.c,
 * host/block_device.c), texts of control groups (host/cgroup.c), pinion_walk().
 */
#ifndef PIN_HOST_HEAP_H
#define PIN_HOST_HEAP_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <pinion/allocator.h>
#include <stdalign.h>
#include <string.h>

/* Enough for any struct without an alignment of its own. */
#define PIN_HEAP_ALIGN alignof(max_align_t)

/* The allocator of the C library, for the tables of hosts. */
void *pin_heap_system_allocate(void *arg, size_t align, size_t bytes);
void pin_heap_system_release(void *arg, void *memory, size_t align, size_t bytes);
void *pin_heap_system_zeroed(size_t align, size_t bytes);

/* Whether the embedder gave both functions or neither. */
static inline bool pin_heap_is_whole(const struct pinion_allocator *allocator)
{
	return allocator == NULL || (allocator->allocate == NULL) == (allocator->release == NULL);
}

/*
 * Returns the host that allocates by `allocator`: `host` itself if that is
 * NULL; else a copy of it in `room`, with the embedder's functions. The caller
 * keeps `room` as long as the host is used.
 */
const struct pin_host *pin_heap_choose(const struct pin_host *host,
	const struct pinion_allocator *allocator, struct pin_host *room);

static inline bool pin_heap_overflows(size_t count, size_t bytes)
{
	return bytes != 0 && count > SIZE_MAX / 2 / bytes;
}

/* At least one byte, as some heaps give nothing for none. */
static inline size_t pin_heap_product(size_t count, size_t bytes)
{
	PIN_DCHECK(!pin_heap_overflows(count, bytes));
	return count == 0 || bytes == 0 ? 1 : count * bytes;
}

/* NULL: no memory is left, or `count` times `bytes` exceeds SIZE_MAX / 2. */
static inline void *pin_heap_allocate(
	const struct pin_host *host, size_t align, size_t count, size_t bytes)
{
	PIN_DCHECK(pin_is_power_of_two(align));
	if (pin_heap_overflows(count, bytes)) {
		return NULL;
	}
	return host->heap.allocate(host->heap.arg, align, pin_heap_product(count, bytes));
}

/* As above, zeroed. Pages that the host has zeroed already are not touched. */
static inline void *pin_heap_zeroed(
	const struct pin_host *host, size_t align, size_t count, size_t bytes)
{
	void *memory;

	PIN_DCHECK(pin_is_power_of_two(align));
	if (host->heap_zeroed != NULL && !pin_heap_overflows(count, bytes)) {
		return host->heap_zeroed(align, pin_heap_product(count, bytes));
	}
	memory = pin_heap_allocate(host, align, count, bytes);
	if (memory != NULL) {
		memset(memory, 0, count * bytes);
	}
	return memory;
}

/* Takes the arguments of the allocation; NULL is accepted. */
static inline void pin_heap_release(
	const struct pin_host *host, void *memory, size_t align, size_t count, size_t bytes)
{
	if (memory != NULL) {
		PIN_DCHECK((uintptr_t)memory % align == 0); /* as it was allocated */
		host->heap.release(host->heap.arg, memory, align, pin_heap_product(count, bytes));
	}
}

/*
 * Moves `memory`, which has `bytes` bytes and PIN_HEAP_ALIGN or is NULL, to a
 * new allocation of `wanted_bytes`: copies its first `kept_bytes` and releases
 * it. NULL: no memory is left, and `memory` is as before.
 */
void *pin_heap_resize(const struct pin_host *host, void *memory, size_t bytes, size_t kept_bytes,
	size_t wanted_bytes);

#endif
