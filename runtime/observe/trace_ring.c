/* SPDX-License-Identifier: MIT */
/*
 * Takes copies of events out of a ring that its writer goes on to overwrite.
 *
 * A reader calls it, in the writer's process or another, with a function that
 * reads words of the page. trace_ring.h has the protocol.
 *
 * Invariant: an event that is given out is whole, and none is given out twice;
 * each event is either given out or counted as lost, once.
 */
#include "runtime/observe/trace_ring.h"

#include <string.h>

/* Events before `oldest` are gone. */
static void lose(struct pin_trace_cursor *cursor, uint64_t oldest)
{
	if (cursor->next < oldest) {
		cursor->lost += oldest - cursor->next;
		cursor->next = oldest;
	}
}

bool pin_trace_cursor_skip(
	struct pin_trace_cursor *cursor, pin_seqlock_fetch_fn fetch, const void *source)
{
	return fetch(source, cursor->at, 1, &cursor->next);
}

/* From event `first` on, as they are in memory: in one piece, or two. */
static bool copy(const struct pin_trace_cursor *cursor, pin_seqlock_fetch_fn fetch,
	const void *source, uint64_t first, size_t count, struct pin_trace_event *out_events)
{
	size_t slots = cursor->at + PIN_TRACE_HEAD_WORDS;
	size_t place = (size_t)(first & (cursor->slots - 1));
	size_t until_end = (size_t)cursor->slots - place;
	size_t front = count < until_end ? count : until_end;
	uint64_t *words = (uint64_t *)(void *)out_events;

	PIN_DCHECK(count <= cursor->slots);
	if (!fetch(source, slots + place * PIN_TRACE_EVENT_WORDS, front * PIN_TRACE_EVENT_WORDS,
		    words)) {
		return false;
	}
	return front == count ||
		fetch(source, slots, (count - front) * PIN_TRACE_EVENT_WORDS,
			words + front * PIN_TRACE_EVENT_WORDS);
}

bool pin_trace_cursor_take(struct pin_trace_cursor *cursor, pin_seqlock_fetch_fn fetch,
	const void *source, struct pin_trace_event *out_events, size_t limit, size_t *out_count)
{
	uint64_t first;
	uint64_t head;
	size_t count;

	PIN_DCHECK(pin_is_power_of_two(cursor->slots));
	*out_count = 0;
	if (!fetch(source, cursor->at, 1, &head)) {
		return false;
	}
	pin_fence_seq_cst(); /* [TRACE-2] */
	lose(cursor, pin_trace_ring_oldest(cursor->slots, head));
	first = cursor->next;
	count = head - first < limit ? (size_t)(head - first) : limit;
	if (count > 0 && !copy(cursor, fetch, source, first, count, out_events)) {
		return false;
	}
	pin_fence_seq_cst(); /* [TRACE-1] */
	/* Nor may it have gone back before, in a page of a hostile writer. */
	if (!fetch(source, cursor->at, 1, &head) || head < first + count) {
		return false;
	}
	lose(cursor, pin_trace_ring_oldest(cursor->slots, head));
	if (cursor->next > first + count) {
		/* All of the copy; later events are counted the next time. */
		cursor->lost -= cursor->next - (first + count);
		cursor->next = first + count;
	}
	*out_count = (size_t)(first + count - cursor->next);
	memmove(out_events, out_events + (cursor->next - first), *out_count * sizeof(*out_events));
	cursor->next = first + count;
	return true;
}
