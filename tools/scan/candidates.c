/* SPDX-License-Identifier: MIT */
/*
 * The list of candidates. Both orders are total over (rule, start, end), so
 * sorting needs no stability; both are mostly in place already, so a check
 * comes first.
 */
#include "tools/scan/candidates.h"

#include <errno.h>
#include <stdlib.h>

int candidates_add(struct candidates *list, const struct candidate *item)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
		struct candidate *items = realloc(list->items, capacity * sizeof(*items));

		if (items == NULL) {
			return -ENOMEM;
		}
		list->items = items;
		list->capacity = capacity;
	}
	list->items[list->count++] = *item;
	return 0;
}

static int compare(uint64_t left, uint64_t right)
{
	return left < right ? -1 : left > right;
}

static int compare_by_end(const void *left, const void *right)
{
	const struct candidate *a = left;
	const struct candidate *b = right;
	int order = compare(a->rule, b->rule);

	order = order != 0 ? order : compare(a->end, b->end);
	return order != 0 ? order : compare(a->start, b->start);
}

static int compare_by_start(const void *left, const void *right)
{
	const struct candidate *a = left;
	const struct candidate *b = right;
	int order = compare(a->start, b->start);

	order = order != 0 ? order : compare(a->end, b->end);
	return order != 0 ? order : compare(a->rule, b->rule);
}

static void sort(struct candidates *list, int (*order)(const void *, const void *))
{
	for (size_t i = 1; i < list->count; i++) {
		if (order(&list->items[i - 1], &list->items[i]) > 0) {
			qsort(list->items, list->count, sizeof(list->items[0]), order);
			return;
		}
	}
}

void candidates_sort_by_end(struct candidates *list)
{
	sort(list, compare_by_end);
}

void candidates_sort_by_start(struct candidates *list)
{
	sort(list, compare_by_start);
}

void candidates_free(struct candidates *list)
{
	free(list->items);
	*list = (struct candidates){0};
}
