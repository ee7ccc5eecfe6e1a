/* SPDX-License-Identifier: MIT */
/*
 * Credit: how many requests, and how many pages of them, all workers together
 * may have in one device, through one word that says how much of it is taken.
 *
 * A worker takes more than it needs at once and keeps the credit of ended
 * requests, as long as no worker lacks it: so while it has credit of its own
 * neither the start nor the end of a request touches the word. It keeps little
 * unused credit (`keep`), an eighth of all credit if each worker does so, and
 * comes down to half of that when it has more, so that not each end gives back.
 * A worker that is alone keeps all it has had (`spare_max`).
 *
 * A worker that gets no credit queues its requests. If it has others in the
 * device their completions bring it credit, unless it has less than its share:
 * all credit divided by the workers that use it. Then, and when it has no
 * request there, it joins the wait queue (queue/wait_queue.h), oldest first.
 * While any worker is queued no other takes credit, and all workers give back
 * the credit of each ended request. So each worker comes to its share, and
 * small requests do not pass a large one. A worker that queues gives back its
 * unused credit, and queues for all that it needs: else two could wait for each
 * other's part.
 *
 * Under a lower limit (pin_credit_set) each worker comes down in proportion, as
 * its requests end. A request larger than the limit costs all of it, so it has
 * the device to itself. With `is_exact`, for limits that a user has set, no
 * credit is kept unused, since a large request could not get it; otherwise a
 * large one costs at most half of the limit, and while there are several
 * workers an eighth stays for those that have less than their share.
 *
 * [CREDIT-1] is [WAIT-1]: give back (RMW), fence, look for waiters; queue,
 * fence, look for credit. A new limit counts as credit given back.
 * [CREDIT-2] the granting worker stores the amount, then `is_granted` (release)
 * -> the worker loads that (acquire).
 *
 * Invariants: 1. taken is the sum of all holdings and of credit granted and not
 * collected; it exceeds the limit only after that was lowered. 2. used <= held
 * of each holding. 3. a waiting worker has a request in the device, or is
 * queued.
 *
 * Only its worker uses a holding, or the holder of the worker's ring
 * (worker/ring_lock.h); pin_credit_granted() describes how another thread gets
 * to it.
 */
#ifndef PIN_IO_DEVICE_CREDIT_H
#define PIN_IO_DEVICE_CREDIT_H

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/queue/wait_queue.h"

/*
 * An amount, or a sum of some: requests in the lowest 20 bits, pages of 4 KiB
 * in 28, workers that take part in 13. Above the first two a bit is free, from
 * which a comparison of both at once can borrow.
 */
#define PIN_CREDIT_COUNT_MAX ((UINT32_C(1) << 20) - 1)
#define PIN_CREDIT_PAGES_MAX ((UINT32_C(1) << 28) - 1)
#define PIN_CREDIT_PAGES_SHIFT 21u
#define PIN_CREDIT_WORKER (UINT64_C(1) << 50)
#define PIN_CREDIT_FREE_BITS (UINT64_C(1) << 49 | UINT64_C(1) << 20)

static inline uint64_t pin_credit_amount(uint32_t count, uint32_t pages)
{
	PIN_DCHECK(count <= PIN_CREDIT_COUNT_MAX);
	PIN_DCHECK(pages <= PIN_CREDIT_PAGES_MAX);
	return (uint64_t)pages << PIN_CREDIT_PAGES_SHIFT | count;
}

static inline uint32_t pin_credit_count(uint64_t amount)
{
	return (uint32_t)amount & PIN_CREDIT_COUNT_MAX;
}

static inline uint32_t pin_credit_pages(uint64_t amount)
{
	return (uint32_t)(amount >> PIN_CREDIT_PAGES_SHIFT) & PIN_CREDIT_PAGES_MAX;
}

static inline uint32_t pin_credit_workers(uint64_t amount)
{
	return (uint32_t)(amount / PIN_CREDIT_WORKER);
}

struct pin_credit {
	/* [W:setter R:any] read with every request, written when it changes */
	struct pin_atomic_u64 limit;
	struct pin_atomic_u64 keep;	 /* what a worker takes beyond its need */
	struct pin_atomic_u64 spare_max; /* what it may have unused */
	struct pin_atomic_u64 reserve;	 /* for those who have less than their share */
	struct pin_atomic_u64 cost_max;	 /* of one request */
	uint32_t worker_count;		 /* [const] */
	/* [W:any R:any] */
	struct pin_atomic_u64 taken PIN_CACHE_ALIGNED;
	struct pin_waiters waiters PIN_CACHE_ALIGNED;
};

struct pin_holding {
	/* [own] */
	uint64_t held;
	uint64_t used;
	uint64_t limit_seen;
	uint64_t target; /* comes down to that; UINT64_MAX: as it is */
	bool is_counted; /* as one of the workers that take part */
	bool is_queued;	 /* until the grant is collected, or it has left */
	struct pin_waiter waiter;
	/* [W:granter R:own] */
	struct pin_atomic_u32 is_granted;
	/* [const] called when credit was granted, on any thread */
	void (*granted)(struct pin_holding *holding);
};

/* Limited to next to nothing at all: the largest amount. */
void pin_credit_init(struct pin_credit *credit, const struct pin_host *host, uint32_t worker_count);

/*
 * Any thread, one at a time; counts from 1 on, cut to what an amount holds. To
 * be followed by pin_credit_serve() where a worker may be queued already.
 */
void pin_credit_set(struct pin_credit *credit, uint64_t count, uint64_t pages, bool is_exact);
void pin_credit_serve(struct pin_credit *credit);

void pin_holding_init(struct pin_holding *holding, void (*granted)(struct pin_holding *holding));

/* Slow ways of the two below. */
bool pin_credit_take(struct pin_credit *credit, struct pin_holding *holding, uint64_t *amount);
void pin_credit_settle(struct pin_credit *credit, struct pin_holding *holding, bool is_wanted);

/* `part` may be larger than any amount, by less than twice. */
static inline bool pin_credit_covers(uint64_t amount, uint64_t part)
{
	uint64_t rest = (amount | PIN_CREDIT_FREE_BITS) - part;

	/* No limit at all, or neither part has come to its free bit. */
	PIN_DCHECK(amount == UINT64_MAX || (amount & PIN_CREDIT_FREE_BITS) == 0);
	return (rest & PIN_CREDIT_FREE_BITS) == PIN_CREDIT_FREE_BITS;
}

/*
 * Takes this much for one request, if the holding has it, without touching the
 * shared word. False: pin_credit_use() has to be called, nothing has changed.
 */
static inline bool pin_credit_use_held(struct pin_holding *holding, uint64_t amount)
{
	uint64_t used = holding->used + amount;

	PIN_DCHECK(pin_credit_covers(holding->held, holding->used)); /* invariant 2 */
	if (PIN_UNLIKELY(!pin_credit_covers(holding->held, used))) {
		return false;
	}
	holding->used = used;
	return true;
}

/*
 * Takes credit for one request of `pages`. True: *out_amount is for its end.
 * False: there is none, and nothing has changed.
 */
static inline bool pin_credit_use(struct pin_credit *credit, struct pin_holding *holding,
	uint32_t pages, uint64_t *out_amount)
{
	*out_amount = pin_credit_amount(1, pages);
	return PIN_LIKELY(pin_credit_use_held(holding, *out_amount)) ||
		pin_credit_take(credit, holding, out_amount);
}

/*
 * Its end, if all of it may be kept here. False: pin_credit_end() has to be
 * called, nothing has changed.
 */
static inline bool pin_credit_end_held(
	const struct pin_credit *credit, struct pin_holding *holding, uint64_t amount)
{
	uint64_t used = holding->used - amount;

	PIN_DCHECK(pin_credit_covers(holding->used, amount));
	if (PIN_UNLIKELY(!pin_credit_covers(
				 pin_load_relaxed_u64(&credit->spare_max), holding->held - used) ||
		    holding->target != UINT64_MAX ||
		    holding->limit_seen != pin_load_relaxed_u64(&credit->limit) ||
		    pin_load_relaxed_u32(&credit->waiters.count) != 0)) {
		return false;
	}
	holding->used = used;
	return true;
}

/* Its end; `is_wanted`: other requests wait for credit here. */
static inline void pin_credit_end(
	struct pin_credit *credit, struct pin_holding *holding, uint64_t amount, bool is_wanted)
{
	if (PIN_UNLIKELY(!pin_credit_end_held(credit, holding, amount))) {
		PIN_CHECK(pin_credit_covers(holding->used, amount));
		holding->used -= amount;
		pin_credit_settle(credit, holding, is_wanted);
	}
}

/*
 * A request of `pages` waits here for credit, and got none. Joins the queue if
 * no completion would bring it any.
 */
void pin_credit_await(struct pin_credit *credit, struct pin_holding *holding, uint32_t pages);

/*
 * On the worker, after its notification, and at any other time: takes over
 * granted credit. True: there was some.
 */
bool pin_credit_collect(struct pin_holding *holding);

/* Nothing waits any more: leaves the queue, gives back the rest. */
void pin_credit_leave(struct pin_credit *credit, struct pin_holding *holding);

/*
 * Nothing is in the device either, and nothing more is to come: gives back all.
 * False: some is being granted, which has to be collected first.
 */
bool pin_credit_give_up(struct pin_credit *credit, struct pin_holding *holding);

#endif
