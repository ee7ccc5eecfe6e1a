/* SPDX-License-Identifier: MIT */
/*
 * The list of candidates. Both orders are total over (rule, start, end), and
 * the second over those with a string, too.
 */
#include "tools/scan/candidates.h"

#include "tools/growing.h"

#include <errno.h>
#include <stdlib.h>

int candidates_add(struct candidates *list, const struct candidate *item)
{
	struct candidate *items =
		growing_make_room(list->items, list->count, &list->capacity, sizeof(*items));

	if (items == NULL) {
		return -ENOMEM;
	}
	list->items = items;
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
	order = order != 0 ? order : compare(a->rule, b->rule);
	return order != 0 ? order : compare(a->string, b->string);
}

void candidates_sort_by_end(struct candidates *list)
{
	growing_sort(list->items, list->count, sizeof(list->items[0]), compare_by_end);
}

void candidates_sort_by_start(struct candidates *list)
{
	growing_sort(list->items, list->count, sizeof(list->items[0]), compare_by_start);
}

void candidates_free(struct candidates *list)
{
	free(list->items);
	*list = (struct candidates){0};
}
