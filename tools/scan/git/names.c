/* SPDX-License-Identifier: MIT */
/*
 * A table of chains, at most one string for each head on average; the strings
 * are in blocks, which never move.
 */
#include "tools/scan/git/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	HEADS_FIRST = 1024,
	BLOCK_BYTES = 64 << 10,
};

struct git_name_block {
	struct git_name_block *next;
	size_t used;
	size_t size;
	char bytes[];
};

uint64_t git_hash(const void *bytes, size_t length)
{
	const uint8_t *byte = bytes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < length; i++) {
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	}
	return hash ^ (hash >> 32);
}

/* Twice as many heads. 0 or -ENOMEM. */
static int grow_heads(struct git_names *names)
{
	size_t count = names->head_count == 0 ? HEADS_FIRST : 2 * names->head_count;
	uint32_t *heads = calloc(count, sizeof(*heads));

	if (heads == NULL) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < names->count; i++) {
		struct git_name *item = &names->items[i];
		uint32_t *head = &heads[git_hash(item->bytes, item->length) & (count - 1)];

		item->next = *head;
		*head = (uint32_t)i + 1;
	}
	free(names->heads);
	names->heads = heads;
	names->head_count = count;
	return 0;
}

static int grow(struct git_names *names)
{
	size_t capacity = names->capacity == 0 ? HEADS_FIRST : 2 * names->capacity;
	struct git_name *items = realloc(names->items, capacity * sizeof(*items));

	if (items == NULL) {
		return -ENOMEM;
	}
	names->items = items;
	names->capacity = capacity;
	return 0;
}

/* NULL: no memory. */
static const char *copy(struct git_names *names, const char *bytes, size_t length)
{
	struct git_name_block *block = names->blocks;
	char *place;

	if (block == NULL || block->size - block->used < length + 1) {
		size_t size = length + 1 > BLOCK_BYTES ? length + 1 : BLOCK_BYTES;

		block = malloc(sizeof(*block) + size);
		if (block == NULL) {
			return NULL;
		}
		block->next = names->blocks;
		block->used = 0;
		block->size = size;
		names->blocks = block;
	}
	place = block->bytes + block->used;
	memcpy(place, bytes, length);
	place[length] = '\0';
	block->used += length + 1;
	return place;
}

int git_names_add(struct git_names *names, const char *bytes, size_t length, uint32_t *out_index)
{
	uint64_t hash = git_hash(bytes, length);
	struct git_name *item;
	uint32_t *head;
	int error = 0;

	if (names->head_count > 0) {
		uint32_t index = names->heads[hash & (names->head_count - 1)];

		for (; index != 0; index = names->items[index - 1].next) {
			item = &names->items[index - 1];
			if (item->length == length && memcmp(item->bytes, bytes, length) == 0) {
				*out_index = index - 1;
				return 0;
			}
		}
	}
	if (names->count >= UINT32_MAX - 1 || length >= UINT32_MAX) {
		return -E2BIG;
	}
	if (names->count == names->head_count) {
		error = grow_heads(names);
	}
	if (error == 0 && names->count == names->capacity) {
		error = grow(names);
	}
	if (error != 0) {
		return error;
	}
	item = &names->items[names->count];
	item->bytes = copy(names, bytes, length);
	item->length = (uint32_t)length;
	if (item->bytes == NULL) {
		return -ENOMEM;
	}
	head = &names->heads[hash & (names->head_count - 1)];
	item->next = *head;
	*head = (uint32_t)names->count + 1;
	*out_index = (uint32_t)names->count++;
	return 0;
}

void git_names_fini(struct git_names *names)
{
	while (names->blocks != NULL) {
		struct git_name_block *block = names->blocks;

		names->blocks = block->next;
		free(block);
	}
	free(names->items);
	free(names->heads);
	*names = (struct git_names){.items = NULL};
}
