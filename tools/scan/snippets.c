/* SPDX-License-Identifier: MIT */
/*
 * The list of snippets.
 */
#include "tools/scan/snippets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An empty snippet at the end of the list. NULL: no memory. */
static struct snippet *append(struct snippets *list, uint64_t start)
{
	struct snippet *item;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
		struct snippet *items = realloc(list->items, capacity * sizeof(*items));

		if (items == NULL) {
			return NULL;
		}
		memset(items + list->capacity, 0, (capacity - list->capacity) * sizeof(*items));
		list->items = items;
		list->capacity = capacity;
	}
	item = &list->items[list->count++];
	item->start = start;
	item->length = 0;
	item->has_end = false;
	return item;
}

static int append_bytes(struct snippet *item, const uint8_t *bytes, size_t length)
{
	if (length > item->capacity - item->length) {
		size_t capacity = 2 * (item->length + length);
		uint8_t *grown = realloc(item->bytes, capacity);

		if (grown == NULL) {
			return -ENOMEM;
		}
		item->bytes = grown;
		item->capacity = capacity;
	}
	memcpy(item->bytes + item->length, bytes, length);
	item->length += length;
	return 0;
}

int snippets_add(struct snippets *list, const struct snippet *bytes)
{
	struct snippet *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
	uint64_t end = bytes->start + bytes->length;
	uint64_t known = last != NULL ? last->start + last->length : 0;
	int error;

	if (last == NULL || bytes->start > known) {
		last = append(list, bytes->start);
		known = bytes->start;
	}
	if (last == NULL) {
		return -ENOMEM;
	}
	if (end <= known) {
		last->has_end = last->has_end || (bytes->has_end && end == known);
		return 0;
	}
	error = append_bytes(last, bytes->bytes + (known - bytes->start), (size_t)(end - known));
	if (error == 0) {
		last->has_end = bytes->has_end;
	}
	return error;
}

int snippets_add_all(struct snippets *list, const struct snippets *from)
{
	int error = 0;

	for (size_t i = 0; i < from->count && error == 0; i++) {
		error = snippets_add(list, &from->items[i]);
	}
	return error;
}

const struct snippet *snippets_find(const struct snippets *list, uint64_t offset)
{
	size_t low = 0;
	size_t high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->items[middle].start + list->items[middle].length <= offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < list->count && list->items[low].start <= offset ? &list->items[low] : NULL;
}

static void drop_front(struct snippet *item, uint64_t offset)
{
	size_t gone = offset > item->start ? (size_t)(offset - item->start) : 0;

	/* Moving the rest is worth it when most of it goes. */
	if (gone > item->length / 2) {
		item->length -= gone;
		memmove(item->bytes, item->bytes + gone, item->length);
		item->start = offset;
	}
}

void snippets_drop(struct snippets *list, uint64_t offset)
{
	size_t gone = 0;

	while (gone < list->count && list->items[gone].start + list->items[gone].length <= offset) {
		free(list->items[gone].bytes);
		gone++;
	}
	if (gone > 0) {
		size_t kept = list->count - gone;

		memmove(list->items, list->items + gone, kept * sizeof(*list->items));
		memset(list->items + kept, 0, gone * sizeof(*list->items));
		list->count = kept;
	}
	if (list->count > 0) {
		drop_front(&list->items[0], offset);
	}
}

void snippets_clear(struct snippets *list)
{
	list->count = 0;
}

void snippets_free(struct snippets *list)
{
	for (size_t i = 0; i < list->capacity; i++) {
		free(list->items[i].bytes);
	}
	free(list->items);
	*list = (struct snippets){0};
}
