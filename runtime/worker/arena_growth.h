/* SPDX-License-Identifier: MIT */
/*
 * Memory of a worker's buffers: taken as they are used, given back after rest.
 *
 * A worker's own buffers are address space until they are used. Their memory is
 * taken in steps, from the front of the arena: populated, registered with the
 * worker's rings, and opened in the pool. After a time of rest the last steps
 * are given back: closed in the pool, unregistered, returned to the kernel.
 *
 *     acquire, none free          after rest
 *     1  give pages               a  none of the step's buffers is out:
 *     2  register, if that goes      take them out of the pool
 *     3  open in the pool         b  empty the rings' entries
 *                                 c  give the pages back
 *
 * Only the worker opens and closes. Other threads meet the memory in two ways.
 * A request of another worker may be in flight into a buffer: the buffer cannot
 * be released before the request ends, so its step stays. A request may also
 * begin with a free buffer: the buffer's state refuses it, open or closed,
 * before the memory is touched.
 *
 * A request of another thread ends with a release of the buffer's state, and
 * the owner's release of the buffer, which comes before a, acquires it:
 * [POOL-4]. Otherwise the kernel could still write into pages that are given
 * back.
 *
 * b comes before c: an entry of a ring's table holds the pages themselves, not
 * the addresses. After c the addresses get other pages, and a transfer by the
 * old entry would move bytes that the program never sees.
 *
 * Each step of growth may fail: there are no pages, or a memory cgroup's limit
 * does not allow them. Then the acquire fails, with -ENOMEM if no release can
 * help. If an entry cannot be filled, the step is used unregistered, and its
 * transfers are counted.
 *
 * A worker needs at most the buffers that are out, and as many more as it
 * acquired in the last period; it gives the rest back. It checks once in each
 * period. A sleeping worker wakes for that only if it has used buffers since
 * the last check: so a worker at rest wakes twice, and then sleeps on.
 */
#ifndef PIN_WORKER_ARENA_GROWTH_H
#define PIN_WORKER_ARENA_GROWTH_H

#include "runtime/base/base.h"
#include "runtime/worker/state.h"

#include <stdbool.h>
#include <stdint.h>

/* After the pools were made. */
void pin_arena_growth_start(struct pin_worker *worker);

/*
 * Takes memory for one more step of buffers. -EAGAIN: there are no more.
 * -ENOMEM, or what the kernel says: no pages; logged once for all workers.
 */
int pin_arena_grow(struct pin_worker *worker, enum pin_grown_kind kind);

/* Registers with a new ring of the worker what there is already. */
void pin_arena_growth_tell(struct pin_worker *worker, struct pin_ring *ring);

/* Gives back what rests. */
void pin_arena_growth_look(struct pin_worker *worker);

/* When a worker that goes to sleep has to look. */
uint64_t pin_arena_growth_due_ns(const struct pin_worker *worker);

/* The worker ends: all that is free is given back. */
void pin_arena_growth_end(struct pin_worker *worker);

/* Entries for it in tables of buffers; 0: nothing grows. */
uint32_t pin_arena_growth_slots(const struct pin_shared *shared);

static inline struct pin_pool *pin_arena_growth_pool(
	struct pin_worker *worker, enum pin_grown_kind kind)
{
	return kind == PIN_GROWN_SMALL ? &worker->small_buffers : &worker->buffers;
}

static inline bool pin_arena_growth_is_due(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->now_ns >= worker->growth.look_ns);
}

#endif
