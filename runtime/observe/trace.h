/* SPDX-License-Identifier: MIT */
/*
 * The trace of a runtime: a ring of events for each worker, and a last one for
 * all other threads, in one piece of memory that other processes may read.
 *
 *     header     what it is, whose, and where the rings are
 *     rings      one for each worker, one for the threads that are none
 *
 * There is one only where `trace_events` of the tuning asks for it. It is an
 * anonymous file, as the metrics page is (host/shared_page.h); where that
 * cannot be had it is in the heap, and only this process reads it.
 *
 * A worker writes its own ring, without a lock. Other threads share theirs by a
 * lock, which they hold for the words of one event.
 */
#ifndef PIN_OBSERVE_TRACE_H
#define PIN_OBSERVE_TRACE_H

#include "runtime/base/base.h"
#include "runtime/base/log.h"
#include "runtime/base/thread.h"
#include "runtime/host/host.h"
#include "runtime/host/shared_page.h"
#include "runtime/observe/trace_ring.h"

/* As /proc/PID/fd shows it: "/memfd:pinion-trace (deleted)". */
#define PIN_TRACE_PAGE_NAME "pinion-trace"

/* "pinionTR" in memory, if byte order is little. */
#define PIN_TRACE_MAGIC UINT64_C(0x52546e6f696e6970)

enum {
	PIN_TRACE_VERSION = 1,
	/* Events of a ring. */
	PIN_TRACE_EVENTS_MIN = 16,
	PIN_TRACE_EVENTS_MAX = 1 << 20,
};

/* All places and sizes are in words of 8 bytes, but for `event_bytes`. */
struct pin_trace_header {
	struct pin_atomic_u64 magic; /* written last */
	uint32_t version;
	uint32_t header_words;
	uint64_t word_count; /* of all */
	uint32_t ring_count; /* of the workers, and the last one */
	uint32_t event_bytes;
	uint64_t slots; /* of each ring, a power of two */
	uint64_t rings_at;
	uint64_t ring_words;
	struct pin_page_owner owner;
};

_Static_assert(sizeof(struct pin_trace_header) == 168, "as documented");

/* In words: rings begin at a cache line. */
enum {
	PIN_TRACE_RINGS_AT =
		(sizeof(struct pin_trace_header) / sizeof(uint64_t) + PIN_TRACE_HEAD_WORDS - 1) /
		PIN_TRACE_HEAD_WORDS * PIN_TRACE_HEAD_WORDS,
};

struct pin_trace {
	struct pin_lock lock; /* rank 8; of the last ring */
	/* [const] after creation */
	const struct pin_host *host;
	struct pin_shared_page page;  /* which the words are in, unless in the heap */
	struct pin_atomic_u64 *words; /* [W:owners of the rings R:any] */
	size_t word_count;
	uint32_t ring_count;
	struct pin_trace_ring *rings;
};

/* Of the words of a trace, in whole pages; each is touched sooner or later. */
static inline size_t pin_trace_bytes(uint32_t worker_count, uint64_t slots)
{
	/* The last ring is for all other threads. */
	size_t words =
		PIN_TRACE_RINGS_AT + (worker_count + (size_t)1) * pin_trace_ring_words(slots);

	return pin_round_up(words * sizeof(uint64_t), PIN_PAGE_BYTES);
}

/*
 * Makes one with rings of `slots` events. -ENOMEM. A trace that others cannot
 * see is no error: the log says why.
 */
int pin_trace_create(const struct pin_host *host, const struct pin_log *log, uint32_t worker_count,
	uint64_t slots, struct pin_trace **out_trace);

/* When nothing writes any more. Accepts NULL. */
void pin_trace_destroy(struct pin_trace *trace);

/* By the owner of the ring, at the host's time. */
static inline void pin_trace_put(
	struct pin_trace *trace, struct pin_trace_ring *ring, const struct pin_trace_event *event)
{
	struct pin_trace_event timed = *event;

	timed.time_ns = trace->host->now_ns();
	pin_trace_ring_put(ring, &timed);
}

/* By a thread that is no worker of the runtime. */
static inline void pin_trace_put_outside(
	struct pin_trace *trace, const struct pin_trace_event *event)
{
	pin_lock_acquire(&trace->lock, trace->host);
	pin_trace_put(trace, &trace->rings[trace->ring_count - 1], event);
	pin_lock_release(&trace->lock, trace->host);
}

#endif
