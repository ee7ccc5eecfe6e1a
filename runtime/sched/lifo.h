/* SPDX-License-Identifier: MIT */
/*
 * The LIFO slot: one place for the task its worker spawned last, which it runs
 * next, while its data is warm.
 *
 * Its owner passes through it with every task, so that side takes no locked
 * instruction and no fence. A thief comes only as a last resort, when a task
 * sits here behind a long one; it pays for both with the host's fence_all,
 * which makes all other threads pass a fence.
 *
 *     owner                          thief
 *     busy := 1                      thief := 1, if it was 0
 *     light fence                    fence_all
 *     thief set: leave it alone      busy set: leave it alone
 *     exchange the link              take the link
 *     busy := 0                      thief := 0
 *
 * [LIFO-1] of "busy := 1" and "thief := 1" one comes first, and the other side
 * sees it: either before fence_all, and then the thief does, or after it, and
 * then the owner does.
 * [LIFO-2] each leaves by a release store that the other reads (acquire), so
 * the link it finds is the newest.
 *
 * Progress: wait-free on both sides. An owner who finds a thief in it goes by:
 * it keeps what it wanted to put in, or finds nothing to take.
 */
#ifndef PIN_SCHED_LIFO_H
#define PIN_SCHED_LIFO_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"
#include "runtime/host/host.h"

struct pin_lifo {
	struct pin_atomic_u32 busy;  /* [W:owner R:thieves] */
	struct pin_atomic_u32 thief; /* [W:thieves R:any] */
	struct pin_atomic_u64 link;  /* [W:owner thief R:any] 0: empty */
};

/*
 * By the owner: puts `link` in and returns what was there, which may be NULL;
 * returns `link` itself when a thief is in it.
 */
static inline struct pin_link *pin_lifo_replace(struct pin_lifo *lifo, struct pin_link *link)
{
	pin_store_relaxed_u32(&lifo->busy, 1); /* [LIFO-1] */
	pin_fence_light();
	if (pin_load_acquire_u32(&lifo->thief) == 0) { /* [LIFO-1] [LIFO-2] */
		uint64_t before = pin_load_relaxed_u64(&lifo->link);

		pin_store_relaxed_u64(&lifo->link, (uintptr_t)link);
		link = (struct pin_link *)(uintptr_t)before;
	}
	pin_store_release_u32(&lifo->busy, 0); /* [LIFO-2] */
	return link;
}

static inline bool pin_lifo_is_empty(const struct pin_lifo *lifo)
{
	return pin_load_relaxed_u64(&lifo->link) == 0;
}

/* By the owner: takes what is there; NULL: nothing, or a thief is in it. */
static inline struct pin_link *pin_lifo_take(struct pin_lifo *lifo)
{
	return pin_lifo_is_empty(lifo) ? NULL : pin_lifo_replace(lifo, NULL);
}

/* By anyone else. NULL: nothing, or somebody is in it, or no fence_all here. */
struct pin_link *pin_lifo_steal(struct pin_lifo *lifo, const struct pin_host *host);

#endif
