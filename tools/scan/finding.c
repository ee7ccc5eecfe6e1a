/* SPDX-License-Identifier: MIT */
/*
 * The list of findings. Its order is total over (start, end, rule).
 */
#include "tools/scan/finding.h"

#include "tools/growing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int finding_list_add(struct finding_list *list, const struct finding *item)
{
	struct finding *items =
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
	growing_sort(list->items, list->count, sizeof(list->items[0]), compare_findings);
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
