/* SPDX-License-Identifier: MIT */
/*
 * Brings the events of all rings into one order.
 *
 * The maker of marks calls it, once for each trace. trace_order.h has the
 * order.
 */
#include "runtime/observe/trace_order.h"
#include "runtime/base/check.h"

#include <stdbool.h>
#include <string.h>

/* Stable, so that events of a ring that have one time keep their order. */
static int by_time(const void *left, const void *right)
{
	const struct pin_trace_taken *a = left;
	const struct pin_trace_taken *b = right;

	if (a->event.time_ns != b->event.time_ns) {
		return a->event.time_ns < b->event.time_ns ? -1 : 1;
	}
	return 0;
}

/* Merges two sorted halves, and so all of it: qsort(3) need not be stable. */
void pin_trace_sort(struct pin_trace_taken *events, struct pin_trace_taken *room, size_t count)
{
	size_t half = count / 2;
	size_t left = 0;
	size_t right = half;

	PIN_DCHECK(count == 0 || (events != NULL && room != NULL));
	if (count < 2) {
		return;
	}
	pin_trace_sort(events, room, half);
	pin_trace_sort(events + half, room + half, count - half);
	if (by_time(&events[half - 1], &events[half]) <= 0) {
		return;
	}
	memcpy(room, events, count * sizeof(*events));
	for (size_t i = 0; i < count; i++) {
		bool is_left =
			right == count || (left < half && by_time(&room[left], &room[right]) <= 0);

		PIN_DCHECK(left + right == half + i); /* each is taken once */
		events[i] = is_left ? room[left++] : room[right++];
	}
}
