/* SPDX-License-Identifier: MIT */
/*
 * A ring of events: one thread writes what it does, and overwrites the oldest;
 * any other thread or process takes copies without a lock and without a trace.
 *
 * The ring is words of a page that others may read: a head, which counts the
 * events written so far, then a power of two of slots. Event number n is in
 * slot n modulo that. There is no sequence in a slot: the head says which
 * events a copy may hold.
 *
 *     writer                               reader
 *     a  words of slot n (release)         1  head: events before it are whole
 *     b  head := n + 1 (release)           2  fence
 *                                          3  words of the slots
 *                                          4  fence
 *                                          5  head again: an event `slots` or
 *                                             more before it is dropped
 *
 * [TRACE-1] a (release) -> 4 (fence): a reader that has copied a word of event
 * n, in place of event n - slots, sees in 5 a head of at least n: the writer
 * stored that before a. So it drops the event that it meant to copy. Without
 * either it could take an event that is mixed of two.
 * [TRACE-2] b (release) -> 1 and 2 (fence): a reader that has seen the head
 * sees all words of the events before it. Without either it could take the
 * older event of that slot.
 *
 * Progress: the writer never waits and takes no locked instruction. A reader
 * takes one copy, and counts events that were overwritten meanwhile as lost.
 *
 *               write   read
 *     write     X       -        X: one thread, or the holder of a lock
 *     read      -       -
 *
 * Source: observe/seqlock.h, for a ring in which the sequence is the head.
 */
#ifndef PIN_OBSERVE_TRACE_RING_H
#define PIN_OBSERVE_TRACE_RING_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/observe/seqlock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What happened; the numbers are in pages of other versions, and stay. */
enum pin_trace_kind {
	PIN_TRACE_NONE = 0,
	/* way: the source; number: the lane; task, its function */
	PIN_TRACE_TASK_BEGIN = 1,
	PIN_TRACE_TASK_END = 2,	   /* number: the result */
	PIN_TRACE_TASK_CANCEL = 3, /* task, the function; ends by TASK_END */
	PIN_TRACE_PANIC = 4,	   /* number: the error; 0, the task's function */
	/* lane; number: the worker it is for, -1: any; task, its function */
	PIN_TRACE_SPAWN_LOCAL = 5,
	PIN_TRACE_SPAWN_GLOBAL = 6,
	PIN_TRACE_SPAWN_EXTERNAL = 7,
	PIN_TRACE_TIMER = 8, /* a timer has expired; task, nanoseconds too late */
	PIN_TRACE_STEAL = 9, /* number: the victim; how many */
	PIN_TRACE_PARK = 10, /* way: of the sleep; deadline */
	PIN_TRACE_UNPARK = 11,
	PIN_TRACE_WAKE = 12, /* number: the worker that is woken */
	PIN_TRACE_DONE = 13, /* the runtime's last task has run */
	/* way: the operation; number: bytes, or UINT32_MAX; request, offset */
	PIN_TRACE_SUBMIT = 14,
	/* way: the operation; number: the result; request, descriptor */
	PIN_TRACE_COMPLETE = 15,
	/* way: of what; number: its place; nanoseconds; function, or dev_t */
	PIN_TRACE_STALL = 16,
	/* After an open's submission, or FILE. way: bytes of `text` */
	PIN_TRACE_PATH = 17,
	/* A file that was opened without a request. second: the descriptor */
	PIN_TRACE_FILE = 18,
	PIN_TRACE_KINDS = 19,
};

/* Where a task that begins was taken from. */
enum pin_trace_source {
	PIN_SOURCE_SLOT = 0,	   /* the worker's last spawn */
	PIN_SOURCE_LOCAL = 1,	   /* its own queue */
	PIN_SOURCE_COMPLETION = 2, /* its ready list: requests that are over */
	PIN_SOURCE_INBOX = 3,
	PIN_SOURCE_INJECTOR = 4,
	PIN_SOURCE_STEAL = 5,
	PIN_SOURCE_LANE = 6, /* the queue of the high or low lane */
	PIN_SOURCES = 7,
};

/* What has stalled: a place is an index of workers, devices or lanes. */
enum pin_trace_stall {
	PIN_STALLED_TASK = 0,
	PIN_STALLED_RING = 1, /* of a worker: completions wait during a task */
	PIN_STALLED_DEVICE = 2,
	PIN_STALLED_LANE = 3,
};

enum {
	PIN_TRACE_EVENT_WORDS = 4,
	PIN_TRACE_TEXT = 20,
	PIN_TRACE_PATH_PARTS = 3, /* the end of a longer path */
	/* Of a ring: its head, alone in a cache line, then the slots. */
	PIN_TRACE_HEAD_WORDS = PIN_CACHE_LINE / sizeof(uint64_t),
};

/* As in the slot's words; all but `time_ns` is as the kind says. */
struct pin_trace_event {
	uint64_t time_ns;
	uint8_t kind;	 /* enum pin_trace_kind */
	uint8_t way;	 /* source, lane, operation or way */
	uint16_t unused; /* 0 */
	int32_t number;
	uint64_t first;
	uint64_t second;
};

_Static_assert(sizeof(struct pin_trace_event) == PIN_TRACE_EVENT_WORDS * sizeof(uint64_t),
	"a slot of 32 bytes");

_Static_assert(
	sizeof(struct pin_trace_event) - offsetof(struct pin_trace_event, number) == PIN_TRACE_TEXT,
	"a text takes the place of the last three");

/* The part of a path that a PIN_TRACE_PATH has, without an end. */
static inline char *pin_trace_event_text(struct pin_trace_event *event)
{
	return (char *)event + offsetof(struct pin_trace_event, number);
}

/* The writer's end of a ring. */
struct pin_trace_ring {
	struct pin_atomic_u64 *words; /* [const] the head and the slots */
	uint64_t mask;		      /* [const] slots less one */
	uint64_t head;		      /* [own] events written so far */
};

/* Words of a ring with that number of slots. */
static inline size_t pin_trace_ring_words(uint64_t slots)
{
	PIN_DCHECK(pin_is_power_of_two(slots));
	return PIN_TRACE_HEAD_WORDS + (size_t)slots * PIN_TRACE_EVENT_WORDS;
}

/* `words` are zero; they are used until the last event. */
static inline void pin_trace_ring_init(
	struct pin_trace_ring *ring, struct pin_atomic_u64 *words, uint64_t slots)
{
	PIN_CHECK(pin_is_power_of_two(slots));
	*ring = (struct pin_trace_ring){.words = words, .mask = slots - 1};
}

/* The next event into its slot, in place of an older one. */
static inline void pin_trace_ring_write(
	const struct pin_trace_ring *ring, const struct pin_trace_event *event)
{
	struct pin_atomic_u64 *slot = ring->words + PIN_TRACE_HEAD_WORDS +
		(ring->head & ring->mask) * PIN_TRACE_EVENT_WORDS;
	uint64_t words[PIN_TRACE_EVENT_WORDS];

	memcpy(words, event, sizeof(words));
	for (uint32_t i = 0; i < PIN_TRACE_EVENT_WORDS; i++) {
		pin_store_release_u64(&slot[i], words[i]); /* [TRACE-1] */
	}
}

/* By the one writer. */
static inline void pin_trace_ring_put(
	struct pin_trace_ring *ring, const struct pin_trace_event *event)
{
	PIN_DCHECK(event->kind > PIN_TRACE_NONE && event->kind < PIN_TRACE_KINDS);
	pin_trace_ring_write(ring, event);
	ring->head++;
	pin_store_release_u64(ring->words, ring->head); /* [TRACE-2] */
}

/* The oldest event that is surely not being overwritten under that head. */
static inline uint64_t pin_trace_ring_oldest(uint64_t slots, uint64_t head)
{
	return head < slots ? 0 : head - slots + 1;
}

/* A reader of one ring, whose words begin at word `at` of its source. */
struct pin_trace_cursor {
	size_t at;
	uint64_t slots;
	uint64_t next; /* number of the next event to take */
	uint64_t lost; /* events that were overwritten before they were taken */
};

/* Passes by all events that there are. False: the source has failed. */
bool pin_trace_cursor_skip(
	struct pin_trace_cursor *cursor, pin_seqlock_fetch_fn fetch, const void *source);

/*
 * Takes the events since the last call, oldest first, but at most `limit`; adds
 * to `lost` those that it cannot take any more. `out_events` has room for
 * `limit`. False: the source has failed, or its head went back.
 */
bool pin_trace_cursor_take(struct pin_trace_cursor *cursor, pin_seqlock_fetch_fn fetch,
	const void *source, struct pin_trace_event *out_events, size_t limit, size_t *out_count);

#endif
