/* SPDX-License-Identifier: MIT */
/*
 * The heap of a running case: each execution starts with an empty one, so
 * addresses repeat, and no memory is reused, so a touch of freed memory is
 * seen: an atomic one by its address, a plain one by the poison there.
 */
#include "tests/model/heap.h"
#include "tests/model/explorer.h"
#include "tests/model/snapshot.h"

#include <stdalign.h>
#include <stddef.h>
#include <string.h>

enum {
	HEAP_BYTES = 1 << 20,
	BLOCKS_MAX = 64,
	/* A pointer, index or count of such bytes goes astray: see crash.h. */
	POISON = 0xa5,
};

struct block {
	size_t start;
	size_t bytes;
	bool is_freed;
};

static struct heap {
	alignas(4096) uint8_t bytes[HEAP_BYTES];
	size_t used; /* from here on, all of it is part of a snapshot */
	uint32_t block_count;
	size_t freed_start; /* every freed block is between these two */
	size_t freed_end;
	struct block blocks[BLOCKS_MAX];
} heap;

void heap_exclude(void)
{
	snapshot_exclude(&heap, sizeof(heap));
}

void heap_snapshot(void)
{
	snapshot_add(heap.bytes, heap.used);
	snapshot_add(&heap.used, sizeof(heap) - offsetof(struct heap, used));
}

void heap_begin(void)
{
	heap.used = 0;
	heap.block_count = 0;
	heap.freed_start = HEAP_BYTES;
	heap.freed_end = 0;
}

void *model_aligned_alloc(size_t align, size_t bytes)
{
	size_t start = (heap.used + align - 1) / align * align;

	MODEL_CHECK(start + bytes <= HEAP_BYTES && heap.block_count < BLOCKS_MAX);
	heap.used = start + bytes;
	heap.blocks[heap.block_count] = (struct block){.start = start, .bytes = bytes};
	heap.block_count++;
	return heap.bytes + start;
}

static struct block *block_of(const void *memory)
{
	const uint8_t *byte = memory;

	for (uint32_t i = 0; i < heap.block_count; i++) {
		struct block *block = &heap.blocks[i];

		if (byte >= heap.bytes + block->start &&
			byte < heap.bytes + block->start + block->bytes) {
			return block;
		}
	}
	return NULL;
}

void model_free(void *memory)
{
	struct block *block = block_of(memory);

	if (memory == NULL) {
		return;
	}
	MODEL_CHECK(block != NULL && !block->is_freed);
	block->is_freed = true;
	heap.freed_start = block->start < heap.freed_start ? block->start : heap.freed_start;
	heap.freed_end = block->start + block->bytes > heap.freed_end ? block->start + block->bytes
								      : heap.freed_end;
	memset(heap.bytes + block->start, POISON, block->bytes);
}

bool model_is_freed(const void *address)
{
	const uint8_t *byte = address;
	const struct block *block;

	if (byte < heap.bytes + heap.freed_start || byte >= heap.bytes + heap.freed_end) {
		return false;
	}
	block = block_of(address);
	return block != NULL && block->is_freed;
}
