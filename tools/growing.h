/* SPDX-License-Identifier: MIT */
/*
 * Arrays that grow as items are added, and are sorted when that is over.
 */
#ifndef PINION_TOOLS_GROWING_H
#define PINION_TOOLS_GROWING_H

#include <stddef.h>

/* The array with twice the capacity; see growing_make_room(). */
void *growing_double(void *items, size_t *capacity, size_t item_bytes);

/*
 * Makes room for one item after the `count` there are: returns the array, which
 * may have moved. NULL: no memory; the array stays as it is. `items` is NULL
 * while *capacity is 0. Inline, since matchers add an item for each match.
 */
static inline void *growing_make_room(
	void *items, size_t count, size_t *capacity, size_t item_bytes)
{
	return count < *capacity ? items : growing_double(items, capacity, item_bytes);
}

/*
 * By an order that is total, so that equal ones may change places. Most arrays
 * are in order already: it looks whether they are.
 */
void growing_sort(
	void *items, size_t count, size_t item_bytes, int (*order)(const void *, const void *));

#endif
