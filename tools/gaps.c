/* SPDX-License-Identifier: MIT */
/*
 * The list of gaps.
 */
#include "tools/gaps.h"

#include "tools/growing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void gaps_init(struct gaps *gaps)
{
	pthread_mutex_init(&gaps->lock, NULL);
}

void gaps_fini(struct gaps *gaps)
{
	free(gaps->items);
	pthread_mutex_destroy(&gaps->lock);
	memset(gaps, 0, sizeof(*gaps));
}

static int add(struct gaps *gaps, const struct pinion_gap *gap)
{
	struct pinion_gap *items =
		growing_make_room(gaps->items, gaps->count, &gaps->capacity, sizeof(*items));

	if (items == NULL) {
		return -ENOMEM;
	}
	gaps->items = items;
	gaps->items[gaps->count++] = *gap;
	return 0;
}

int gaps_add(struct gaps *gaps, const struct pinion_window *window)
{
	uint64_t start = window->base_offset_bytes + window->prefix_bytes;
	int error = 0;

	if (window->gap_count == 0) {
		return 0;
	}
	pthread_mutex_lock(&gaps->lock);
	for (size_t i = 0; i < window->gap_count && error == 0; i++) {
		struct pinion_gap gap = window->gaps[i];
		uint64_t end = gap.offset_bytes + gap.length_bytes;

		if (end > start) {
			gap.offset_bytes = gap.offset_bytes > start ? gap.offset_bytes : start;
			gap.length_bytes = end - gap.offset_bytes;
			error = add(gaps, &gap);
		}
	}
	pthread_mutex_unlock(&gaps->lock);
	return error;
}

static int compare(const void *left, const void *right)
{
	const struct pinion_gap *a = left;
	const struct pinion_gap *b = right;

	return a->offset_bytes < b->offset_bytes ? -1 : a->offset_bytes > b->offset_bytes;
}

void gaps_join(struct gaps *gaps)
{
	size_t kept = 0;

	if (gaps->count == 0) {
		return;
	}
	qsort(gaps->items, gaps->count, sizeof(gaps->items[0]), compare);
	for (size_t i = 1; i < gaps->count; i++) {
		struct pinion_gap *last = &gaps->items[kept];

		if (last->offset_bytes + last->length_bytes == gaps->items[i].offset_bytes) {
			last->length_bytes += gaps->items[i].length_bytes;
		} else {
			gaps->items[++kept] = gaps->items[i];
		}
	}
	gaps->count = kept + 1;
}
