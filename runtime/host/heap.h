/* SPDX-License-Identifier: MIT */
/*
 * The heap of a host: what the library allocates goes through here, to the
 * functions in the host's table. The caller of a release passes size and
 * alignment again, so that no allocator has to store them.
 *
 * What libc, hwloc and liburing allocate for themselves is none of it; nor are
 * files that a process opens by itself (io/file.c,
 * host/block_device.c), texts of control groups (host/cgroup.c) and
 * pinion_walk(), which belong to no runtime.
 */
#ifndef PIN_HOST_HEAP_H
#define PIN_HOST_HEAP_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/host.h"

#include <pinion/allocator.h>
#include <stdalign.h>
#include <string.h>

/* For structs that ask for nothing more. */
#define PIN_HEAP_ALIGN alignof(max_align_t)

/* The C library's, for the tables of hosts. */
void *pin_heap_system_allocate(void *arg, size_t align, size_t bytes);
void pin_heap_system_release(void *arg, void *memory, size_t align, size_t bytes);
void *pin_heap_system_zeroed(size_t align, size_t bytes);

/* Both functions or neither. */
static inline bool pin_heap_is_whole(const struct pinion_allocator *allocator)
{
	return allocator == NULL || (allocator->allocate == NULL) == (allocator->release == NULL);
}

/*
 * The host for the owner of `allocator`: `host`, or `room`, which is then that
 * with the heap of the embedder's, and has to stay as long as it is used.
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

/* NULL: there is none, or `count` times `bytes` is beyond all there may be. */
static inline void *pin_heap_allocate(
	const struct pin_host *host, size_t align, size_t count, size_t bytes)
{
	PIN_DCHECK(pin_is_power_of_two(align));
	if (pin_heap_overflows(count, bytes)) {
		return NULL;
	}
	return host->heap.allocate(host->heap.arg, align, pin_heap_product(count, bytes));
}

/* The same, zeroed; where the host has zeroed pages they are not touched. */
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

/* With what it was allocated by; NULL: nothing. */
static inline void pin_heap_release(
	const struct pin_host *host, void *memory, size_t align, size_t count, size_t bytes)
{
	if (memory != NULL) {
		PIN_DCHECK((uintptr_t)memory % align == 0); /* as it was allocated */
		host->heap.release(host->heap.arg, memory, align, pin_heap_product(count, bytes));
	}
}

/*
 * What takes the place of `memory`, of `bytes` bytes and PIN_HEAP_ALIGN, which
 * may be NULL: the first `kept_bytes` are the same. NULL: there is none, and
 * that is as it was.
 */
void *pin_heap_resize(const struct pin_host *host, void *memory, size_t bytes, size_t kept_bytes,
	size_t wanted_bytes);

#endif
