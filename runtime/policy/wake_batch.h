/* SPDX-License-Identifier: MIT */
/*
 * Unannounced spawns: the tasks that a worker has spawned since it last woke a
 * sleeper for its queue, and when to check for a sleeper to wake.
 *
 * A check reads lines that others write, six loads for each spawn. It is of use
 * only where its answer could be "wake": with enough tasks batched, or with as
 * many as are longer than a wake. So with no sleeper at the last check the next
 * comes when either might be the case; with a sleeper whom it is not worth
 * waking yet, at the next spawn. Sleepers that a check misses in between, or
 * since it has no fence, are found by the fence after `fence_spawns`, and by
 * the check at the end of the turn.
 *
 * The pause. Work that is not batched, as one task in the LIFO slot, is worth a
 * wake as well if its spawner goes on for long, which cannot be known. So a
 * spawn wakes a sleeper if none was woken so for `pause_ns`; the pause doubles
 * with each such wake in vain, as where the spawner runs the task itself at
 * once. A number of spawns that is worth a wake is counted in vain as well.
 *
 * Policy only: no atomics, no clock. One per worker, used by it alone: it
 * checks with the spawn that is due, and reports how that ended; each answer is
 * how many spawns may pass before the next one that checks. The caller counts
 * them, as its queue can do that by the way: by its mark (queue/deque.h).
 *
 * Invariant: from one wake to the next no more than `fence_spawns` spawns are
 * counted.
 */
#ifndef PIN_POLICY_WAKE_BATCH_H
#define PIN_POLICY_WAKE_BATCH_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <stdbool.h>
#include <stdint.h>

/* `worth_spawns` and `fence_spawns` of a worker that wakes no other. */
#define PIN_WAKE_BATCH_NEVER UINT32_MAX

enum {
	/* Spawns from one check to the next at most. */
	PIN_WAKE_BATCH_STRIDE_MAX = 32,
	/* A pause is doubled at most as often: 100 us become 26 ms. */
	PIN_WAKE_BATCH_VAIN_MAX = 8,
};

struct pin_wake_batch {
	/* [const] after init */
	uint32_t worth_spawns; /* number worth a wake */
	uint32_t fence_spawns; /* number that needs a fence */
	uint64_t worth_ns;     /* and so long a queue is worth a wake */
	uint64_t pause_ns;     /* between wakes for lone spawns; 0: there are none */
	/* [own] */
	uint32_t look_count;   /* spawns since the last wake, at the check that is due */
	uint32_t vain_count;   /* wakes in a row that were in vain */
	uint64_t pause_end_ns; /* no wake for a lone spawn before */
};

/* 1 <= worth_spawns <= fence_spawns. The first spawn looks. */
static inline void pin_wake_batch_init(struct pin_wake_batch *wake_batch, uint32_t worth_spawns,
	uint32_t fence_spawns, uint64_t worth_ns, uint64_t pause_ns)
{
	PIN_CHECK(worth_spawns >= 1 && worth_spawns <= fence_spawns);
	*wake_batch = (struct pin_wake_batch){
		.worth_spawns = worth_spawns,
		.fence_spawns = fence_spawns,
		.worth_ns = worth_ns,
		.pause_ns = pause_ns,
		.look_count = 1,
	};
}

/* ---- at a check ---- */

/* Spawns since the last wake. */
static inline uint32_t pin_wake_batch_count(const struct pin_wake_batch *wake_batch)
{
	return wake_batch->look_count;
}

/* Whether that number, unchecked, needs a check after a fence. */
static inline bool pin_wake_batch_is_fence_due(const struct pin_wake_batch *wake_batch)
{
	return pin_wake_batch_count(wake_batch) >= wake_batch->fence_spawns;
}

/* Whether to wake a sleeper for a queue of `queued` tasks of that length. */
static inline bool pin_wake_batch_is_long(
	const struct pin_wake_batch *wake_batch, uint32_t queued, uint64_t average_ns)
{
	return queued * average_ns >= wake_batch->worth_ns;
}

/* Whether to wake one for the number of spawns. */
static inline bool pin_wake_batch_is_full(const struct pin_wake_batch *wake_batch)
{
	return pin_wake_batch_count(wake_batch) >= wake_batch->worth_spawns;
}

/* A worker sleeps, and it was not worth a wake, or not called for. */
static inline uint32_t pin_wake_batch_note_kept(struct pin_wake_batch *wake_batch)
{
	wake_batch->look_count++;
	return 0;
}

/* No worker sleeps; `queued` tasks wait, of that length. */
static inline uint32_t pin_wake_batch_note_nobody(
	struct pin_wake_batch *wake_batch, uint32_t queued, uint64_t average_ns)
{
	uint32_t count = pin_wake_batch_count(wake_batch);
	uint32_t stride = pin_min_u32(wake_batch->worth_spawns, PIN_WAKE_BATCH_STRIDE_MAX);

	PIN_DCHECK(count < wake_batch->fence_spawns); /* else the caller fences, and wakes */
	if (count < wake_batch->worth_spawns) {
		stride = pin_min_u32(stride, wake_batch->worth_spawns - count);
	}
	/* No more than makes the queue worth it, without a division. */
	if ((uint64_t)(queued + stride) * average_ns >= wake_batch->worth_ns) {
		stride = 1;
	}
	stride = pin_min_u32(stride, wake_batch->fence_spawns - count);
	if (wake_batch->fence_spawns == PIN_WAKE_BATCH_NEVER) {
		stride = PIN_WAKE_BATCH_NEVER;
	}
	PIN_DCHECK(stride > 0); /* the next check is still to come */
	wake_batch->look_count = count + stride;
	return stride - 1;
}

/* ---- at any time ---- */

/* A worker was woken, if there was any. */
static inline uint32_t pin_wake_batch_note_told(struct pin_wake_batch *wake_batch)
{
	wake_batch->look_count = 1;
	return 0;
}

/* The usual length of tasks has changed, `unspent` spawns before the check. */
static inline uint32_t pin_wake_batch_look_soon(struct pin_wake_batch *wake_batch, uint32_t unspent)
{
	PIN_DCHECK(unspent < wake_batch->look_count ||
		wake_batch->fence_spawns == PIN_WAKE_BATCH_NEVER);
	wake_batch->look_count -= unspent;
	return 0;
}

/* ---- the pause ---- */

/* Whether wakes were in vain lately; else a number of spawns needs no clock. */
static inline bool pin_wake_batch_is_vain(const struct pin_wake_batch *wake_batch)
{
	PIN_DCHECK(wake_batch->vain_count <= PIN_WAKE_BATCH_VAIN_MAX);
	return wake_batch->vain_count > 0;
}

static inline bool pin_wake_batch_is_paused(
	const struct pin_wake_batch *wake_batch, uint64_t now_ns)
{
	return now_ns < wake_batch->pause_end_ns;
}

/* A sleeper was woken; `was_vain`: the last wake before was in vain. */
static inline void pin_wake_batch_begin_pause(
	struct pin_wake_batch *wake_batch, uint64_t now_ns, bool was_vain)
{
	wake_batch->vain_count =
		was_vain ? pin_min_u32(wake_batch->vain_count + 1, PIN_WAKE_BATCH_VAIN_MAX) : 0;
	wake_batch->pause_end_ns = now_ns + (wake_batch->pause_ns << wake_batch->vain_count);
	PIN_DCHECK(wake_batch->pause_end_ns >= now_ns);
}

/* A task has waited for its spawner although others slept. */
static inline void pin_wake_batch_end_pause(struct pin_wake_batch *wake_batch)
{
	wake_batch->vain_count = 0;
	wake_batch->pause_end_ns = 0;
}

#endif
