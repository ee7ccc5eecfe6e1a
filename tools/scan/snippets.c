/* SPDX-License-Identifier: MIT */
/*
 * The list of snippets.
 */
#include "tools/scan/snippets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint64_t end_of(const struct snippet *item)
{
	return item->start + item->length;
}

/* Makes room for an empty snippet before that of an index. NULL: no memory. */
static struct snippet *insert(struct snippets *list, size_t index)
{
	struct snippet unused;

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
	/* The item after the last may hold memory to use again. */
	unused = list->items[list->count];
	memmove(&list->items[index + 1], &list->items[index],
		(list->count - index) * sizeof(*list->items));
	list->items[index] = unused;
	list->items[index].length = 0;
	list->items[index].has_end = false;
	list->count++;
	return &list->items[index];
}

/* Removes some; their memory may be used again. */
static void remove_items(struct snippets *list, size_t from, size_t until)
{
	for (size_t gone = until; gone > from; gone--) {
		struct snippet unused = list->items[gone - 1];

		memmove(&list->items[gone - 1], &list->items[gone],
			(list->count - gone) * sizeof(*list->items));
		list->items[--list->count] = unused;
	}
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

/* Goes on with the other's bytes, as far as they are further right. */
static int append_rest(struct snippet *item, const struct snippet *other)
{
	uint64_t end = end_of(item);

	if (end_of(other) < end) {
		return 0;
	}
	item->has_end = item->has_end || other->has_end;
	return end_of(other) == end ? 0
				    : append_bytes(item, other->bytes + (end - other->start),
					      (size_t)(end_of(other) - end));
}

size_t snippets_first(const struct snippets *list, uint64_t offset)
{
	size_t low = 0;
	size_t high = list->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (end_of(&list->items[middle]) < offset) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

int snippets_add(struct snippets *list, const struct snippet *bytes)
{
	size_t first = snippets_first(list, bytes->start);
	size_t until = first;
	struct snippet *item;
	int error = 0;

	/* Those that the bytes touch become one. */
	while (until < list->count && list->items[until].start <= end_of(bytes)) {
		until++;
	}
	if (first == until || bytes->start < list->items[first].start) {
		item = insert(list, first);
		if (item == NULL) {
			return -ENOMEM;
		}
		item->start = bytes->start;
		until++;
	} else {
		item = &list->items[first];
	}
	error = append_rest(item, bytes);
	if (error == 0 && until - first > 1) {
		error = append_rest(item, &list->items[until - 1]);
	}
	remove_items(list, first + 1, until);
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
	size_t index = snippets_first(list, offset + 1);

	return index < list->count && list->items[index].start <= offset ? &list->items[index]
									 : NULL;
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
