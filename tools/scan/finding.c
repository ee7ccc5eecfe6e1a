/* SPDX-License-Identifier: MIT */
/*
 * The list of findings. Its order is total over (start, end, rule), and mostly
 * in place already, so a check comes first.
 */
#include "tools/scan/finding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int finding_list_add(struct finding_list *list, const struct finding *item)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
		struct finding *items = realloc(list->items, capacity * sizeof(*items));

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

static int compare_findings(const void *left, const void *right)
{
	const struct finding *a = left;
	const struct finding *b = right;
	int order = compare(a->start, b->start);

	order = order != 0 ? order : compare(a->end, b->end);
	return order != 0 ? order : compare(a->rule, b->rule);
}

void finding_list_sort(struct finding_list *list)
{
	for (size_t i = 1; i < list->count; i++) {
		if (compare_findings(&list->items[i - 1], &list->items[i]) > 0) {
			qsort(list->items, list->count, sizeof(list->items[0]), compare_findings);
			return;
		}
	}
}

void finding_list_drop(struct finding_list *list, size_t count)
{
	if (count == 0) {
		return;
	}
	for (size_t i = 0; i < count; i++) {
		free(list->items[i].text);
	}
	list->count -= count;
	memmove(list->items, list->items + count, list->count * sizeof(list->items[0]));
}

void finding_list_free(struct finding_list *list)
{
	finding_list_drop(list, list->count);
	free(list->items);
	*list = (struct finding_list){0};
}
