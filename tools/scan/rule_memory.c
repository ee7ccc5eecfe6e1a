/* SPDX-License-Identifier: MIT */
/*
 * Blocks from which pieces are cut; larger pieces have a block of their own.
 * The first is small, as a filter that is evaluated takes some hundred bytes,
 * and a block's bytes are set to zero.
 */
#include "tools/scan/rule_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct rule_memory_block {
	struct rule_memory_block *next;
	size_t used;
	size_t capacity;
	_Alignas(max_align_t) char bytes[];
};

enum {
	FIRST_BLOCK_BYTES = 1 << 10,
	BLOCK_BYTES = 16 << 10,
	ALIGNMENT = _Alignof(max_align_t),
};

static struct rule_memory_block *add_block(struct rule_memory *memory, size_t capacity)
{
	struct rule_memory_block *block = calloc(1, sizeof(*block) + capacity);

	if (block != NULL) {
		block->capacity = capacity;
		block->next = memory->blocks;
		memory->blocks = block;
	}
	return block;
}

static size_t next_capacity(const struct rule_memory_block *last)
{
	size_t capacity = last == NULL ? FIRST_BLOCK_BYTES : 2 * last->capacity;

	return capacity < BLOCK_BYTES ? capacity : BLOCK_BYTES;
}

void *rule_memory_take(struct rule_memory *memory, size_t bytes)
{
	struct rule_memory_block *block = memory->blocks;
	size_t rounded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	void *taken;

	if (bytes > SIZE_MAX / 2) {
		return NULL;
	}
	if (block == NULL || rounded > block->capacity - block->used) {
		size_t capacity = next_capacity(block);

		block = add_block(memory, rounded > capacity ? rounded : capacity);
		if (block == NULL) {
			return NULL;
		}
	}
	taken = block->bytes + block->used;
	block->used += rounded;
	return taken;
}

char *rule_memory_copy(struct rule_memory *memory, const char *bytes, size_t length)
{
	char *copy = rule_memory_take(memory, length + 1);

	if (copy != NULL && length > 0) {
		memcpy(copy, bytes, length);
	}
	return copy;
}

void rule_memory_free(struct rule_memory *memory)
{
	while (memory->blocks != NULL) {
		struct rule_memory_block *next = memory->blocks->next;

		free(memory->blocks);
		memory->blocks = next;
	}
}
