/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow by doubling.
 */
#include "tools/growing.h"

#include <stdint.h>
#include <stdlib.h>

enum { CAPACITY_FIRST = 8 };

void *growing_double(void *items, size_t *capacity, size_t item_bytes)
{
	size_t wanted = *capacity == 0 ? CAPACITY_FIRST : *capacity * 2;
	void *grown;

	if (wanted > SIZE_MAX / item_bytes) {
		return NULL;
	}
	grown = realloc(items, wanted * item_bytes);
	if (grown != NULL) {
		*capacity = wanted;
	}
	return grown;
}

void growing_sort(
	void *items, size_t count, size_t item_bytes, int (*order)(const void *, const void *))
{
	const char *bytes = items;

	for (size_t i = 1; i < count; i++) {
		if (order(bytes + (i - 1) * item_bytes, bytes + i * item_bytes) > 0) {
			qsort(items, count, item_bytes, order);
			return;
		}
	}
}
