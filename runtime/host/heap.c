/* SPDX-License-Identifier: MIT */
/*
 * The library's allocations: from the C library, or from the embedder's
 * functions, by the table in host.h.
 *
 * Sizes and alignments are given again at the release, as some embedders' heaps
 * need them.
 */
#include "runtime/host/heap.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <stdlib.h>

void *pin_heap_system_allocate(void *arg, size_t align, size_t bytes)
{
	(void)arg;
	PIN_DCHECK(bytes > 0); /* for none NULL would be no failure */
	return align <= PIN_HEAP_ALIGN ? malloc(bytes)
				       : aligned_alloc(align, pin_round_up(bytes, align));
}

void pin_heap_system_release(void *arg, void *memory, size_t align, size_t bytes)
{
	(void)arg;
	(void)align;
	(void)bytes;
	free(memory);
}

void *pin_heap_system_zeroed(size_t align, size_t bytes)
{
	void *memory;

	PIN_DCHECK(bytes > 0);
	if (align <= PIN_HEAP_ALIGN) {
		return calloc(1, bytes);
	}
	memory = pin_heap_system_allocate(NULL, align, bytes);
	if (memory != NULL) {
		memset(memory, 0, bytes);
	}
	return memory;
}

void *pin_heap_resize(const struct pin_host *host, void *memory, size_t bytes, size_t kept_bytes,
	size_t wanted_bytes)
{
	void *resized = pin_heap_allocate(host, PIN_HEAP_ALIGN, wanted_bytes, 1);

	PIN_CHECK(kept_bytes <= bytes);
	PIN_CHECK(kept_bytes <= wanted_bytes);
	if (resized == NULL) {
		return NULL;
	}
	if (kept_bytes > 0) {
		memcpy(resized, memory, kept_bytes);
	}
	pin_heap_release(host, memory, PIN_HEAP_ALIGN, bytes, 1);
	return resized;
}

const struct pin_host *pin_heap_choose(const struct pin_host *host,
	const struct pinion_allocator *allocator, struct pin_host *room)
{
	if (allocator == NULL || allocator->allocate == NULL) {
		return host;
	}
	PIN_CHECK(room != host); /* that stays as it is */
	PIN_DCHECK(pin_heap_is_whole(allocator));
	*room = *host;
	room->heap = (struct pin_heap){
		.allocate = allocator->allocate,
		.release = allocator->release,
		.arg = allocator->arg,
	};
	room->heap_zeroed = NULL;
	return room;
}
