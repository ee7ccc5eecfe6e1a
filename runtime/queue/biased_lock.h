/* SPDX-License-Identifier: MIT */
/*
 * A lock that its owner takes all the time and others hardly ever.
 *
 * The owner takes it without a locked instruction or a fence. Others pay for
 * both sides with the host's fence_all, which makes all other threads pass a
 * fence, and go away when the owner is in it; the owner waits for them.
 *
 *     owner                          other
 *     busy := 1                      taken := 1, if it was 0
 *     light fence                    fence_all
 *     taken: busy := 0, wait, again  busy: taken := 0, go away
 *     …                              …
 *     busy := 0                      taken := 0
 *
 * [BIASED-1] of "busy := 1" and "taken := 1" one comes first, and the other
 * side sees it: either before fence_all, and then the other does, or after it,
 * and then the owner does.
 * [BIASED-2] each leaves by a release store that the next one reads (acquire).
 *
 * Where there is no fence_all, an owner that wants to let others in
 * says so (`is_fenced`): then each side passes a full fence of its own.
 *
 * The LIFO slot (lifo_slot.h) has the same inside, but its owner goes by.
 *
 * Progress: the owner waits while another is in it, which must be short; others
 * never wait.
 */
#ifndef PIN_QUEUE_BIASED_LOCK_H
#define PIN_QUEUE_BIASED_LOCK_H

#include "runtime/base/base.h"
#include "runtime/host/host.h"

struct pin_biased_lock {
	struct pin_atomic_u32 busy;  /* [W:owner R:others] */
	struct pin_atomic_u32 taken; /* [W:others R:any] */
	bool is_fenced;		     /* [const] the owner's fence is a full one */
};

static inline void pin_biased_fence(const struct pin_biased_lock *owned)
{
	if (PIN_UNLIKELY(owned->is_fenced)) {
		pin_fence_seq_cst(); /* [BIASED-1] */
	} else {
		pin_fence_light();
	}
}

static inline bool pin_biased_try(struct pin_biased_lock *owned)
{
	pin_store_relaxed_u32(&owned->busy, 1); /* [BIASED-1] */
	pin_biased_fence(owned);
	return pin_load_acquire_u32(&owned->taken) == 0; /* [BIASED-1] [BIASED-2] */
}

static inline PIN_COLD void pin_biased_wait(
	struct pin_biased_lock *owned, const struct pin_host *host)
{
	do {
		pin_store_release_u32(&owned->busy, 0);
		host->yield();
	} while (!pin_biased_try(owned));
}

/* By the owner, who must not be in it. */
static inline void pin_biased_enter(struct pin_biased_lock *owned, const struct pin_host *host)
{
	if (PIN_UNLIKELY(!pin_biased_try(owned))) {
		pin_biased_wait(owned, host);
	}
}

static inline void pin_biased_leave(struct pin_biased_lock *owned)
{
	pin_store_release_u32(&owned->busy, 0); /* [BIASED-2] */
}

static inline bool pin_biased_fence_other(
	const struct pin_biased_lock *owned, const struct pin_host *host)
{
	if (!owned->is_fenced) {
		return host->fence_all(); /* [BIASED-1] */
	}
	pin_fence_seq_cst(); /* [BIASED-1] */
	return true;
}

/*
 * By any other thread. False: a thread is in it, or there is no fence_all here
 * and the owner's fence is a light one.
 */
static inline bool pin_biased_take(struct pin_biased_lock *owned, const struct pin_host *host)
{
	uint32_t nobody = 0;

	if (!pin_cas_seq_cst_u32(&owned->taken, &nobody, 1)) {
		return false;
	}
	if (pin_biased_fence_other(owned, host) &&
		pin_load_acquire_u32(&owned->busy) == 0) { /* [BIASED-1] */
		return true;
	}
	pin_store_release_u32(&owned->taken, 0);
	return false;
}

static inline void pin_biased_release(struct pin_biased_lock *owned)
{
	pin_store_release_u32(&owned->taken, 0); /* [BIASED-2] */
}

#endif
