/* SPDX-License-Identifier: MIT */
/*
 * Buffers of a worker, for code that runs on it.
 *
 * Buffers are the worker's own, so taking and giving back one is a few plain
 * instructions. Who finds none waits in a queue, in order, and gets the next
 * one that comes back handed over with its task.
 *
 * While a request uses a buffer, of the worker or of a pool, it is lent to the
 * kernel: it cannot be given back until the request has ended.
 *
 * [IO-1] who makes a pool stores it in `pools` (release) -> a worker loads it
 * (acquire): it finds the pool complete. One that is ended has no buffer out,
 * so no request uses one, but others' are looked for in it: it is taken out of
 * `pools`, and freed when those that could still see it are through. Before the
 * first, `has_pools` is set for good; who has a buffer of it sees that.
 *
 * [IO-2] a worker looks within `cancels`, as its owner, also before it sends
 * home what it has gathered in bundles (memory/pool.h); who ends a pool takes
 * that once of each worker, between taking it out and freeing it: [OWNED-1].
 * [IO-3] elsewhere: pool_searches + 1, fence, look, pool_searches - 1 (release)
 * -> taken out, fence, pool_searches (acquire) is 0: either the search sees the
 * pool taken out, or its end is waited for.
 *
 * [IO-4] each worker makes its arena and its buffers before it counts itself as
 * started; who has awaited all sets `arenas_beyond` (release) -> a request's
 * worker, or who posts one, loads it (acquire), and may look at all of them:
 * they stay as they are. Before, no worker has another's buffer. Where threads
 * come and go, in a crew, it is never set.
 */
#ifndef PIN_WORKER_BUFFERS_H
#define PIN_WORKER_BUFFERS_H

#include "runtime/worker/state.h"

/* False when none is free; `bytes` at most the configuration's buffer_bytes. */
bool pin_worker_buffer_acquire(
	struct pin_worker *worker, size_t bytes, struct pinion_buffer *out_buffer);

/*
 * As above, but when none is free `waiter` joins the queue: the first buffer
 * released while it is at the front is its own, and its task runs. False: it
 * waits; it must stay in place.
 */
bool pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter);

/*
 * Gives a buffer to the first in the queue for its size, or back to the pool.
 */
void pin_worker_buffer_release(struct pin_worker *worker, const struct pinion_buffer *buffer);

/*
 * `bytes` is about to be a request's, by whoever runs that worker's requests:
 * lends it the buffer they lie in; NULL: they are in none. PIN_POOL_IS_FREE: it
 * must not be used, which has been told.
 */
enum pin_pool_lent pin_worker_lend(
	struct pin_worker *worker, const uint8_t *bytes, struct pin_entry **out_entry);

/*
 * The same from outside, for a request on its way to `worker`, whose buffer may
 * be given back anywhere meanwhile; false: it is free. Any thread may end it.
 */
bool pin_worker_lend_posted(
	struct pin_worker *worker, const uint8_t *bytes, struct pin_entry **out_entry);

/* All workers have their buffers, for good. */
void pin_worker_buffers_publish(struct pin_shared *shared);

/* The worker has nothing to do: buffers of other nodes go home. */
void pin_worker_send_home(struct pin_worker *worker);

/*
 * A pool that is complete becomes known to the workers, and who waits for its
 * buffers to a stop; or -EMFILE. Under `pools_lock`, both.
 */
int pin_worker_pools_add(
	struct pin_shared *shared, struct pin_pool *pool, struct pin_waiters *waiters);
/* Returns when nobody looks into it any more. */
void pin_worker_pools_remove(struct pin_shared *shared, const struct pin_pool *pool);

static inline bool pin_worker_pool_has(const struct pin_pool *pool, const struct pin_entry *entry)
{
	return entry >= pool->entries && entry < pool->entries + pool->buffer_count;
}

/* Whether that buffer, or NULL, is the worker's own. */
static inline bool pin_worker_owns_entry(
	const struct pin_worker *worker, const struct pin_entry *entry)
{
	return entry != NULL &&
		(pin_worker_pool_has(&worker->buffers, entry) ||
			pin_worker_pool_has(&worker->small_buffers, entry));
}

#endif
