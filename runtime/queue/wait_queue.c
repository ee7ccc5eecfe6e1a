/* SPDX-License-Identifier: MIT */
/*
 * The queue of waiters: enter, serve, leave; FIFO, under its own lock.
 *
 * A thread or task that finds a resource missing enters; the thread that gives
 * some back serves the oldest first. wait_queue.h has the proof that no waiter
 * sleeps beside a free resource.
 */
#include "runtime/queue/wait_queue.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stddef.h>

enum waiter_state {
	WAITER_WAITS = 0, /* to SERVED by the thread that took it out of the queue */
	WAITER_SERVED = 1,
};

void pin_waiters_init(struct pin_waiters *waiters, const struct pin_host *host,
	pin_waiters_take_fn take, void *arg, enum pin_waiters_fences fences)
{
	*waiters = (struct pin_waiters){
		.host = host,
		.take = take,
		.arg = arg,
		.fences = fences,
	};
	waiters->lock = &waiters->own_lock;
	if (fences == PIN_WAITERS_RELEASE_LIGHT && !host->fence_all()) {
		waiters->fences = PIN_WAITERS_EVEN;
	}
}

void pin_waiters_share_lock(struct pin_waiters *waiters, struct pin_waiters *other)
{
	PIN_CHECK(waiters->fences == PIN_WAITERS_LOCKED && other->fences == PIN_WAITERS_LOCKED);
	waiters->lock = &other->own_lock;
}

/* ---- the queue, under the lock ---- */

static void note_count(struct pin_waiters *waiters, uint32_t change)
{
	uint32_t count = pin_load_relaxed_u32(&waiters->count) + change;

	PIN_CHECK(count != UINT32_MAX); /* as many out as in */
	PIN_DCHECK((count == 0) == (waiters->oldest == NULL));
	/* Relaxed: changed under the lock; step 2 makes it seen. */
	pin_store_relaxed_u32(&waiters->count, count);
}

static void push(struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	PIN_CHECK(!waiter->is_queued);
	PIN_DCHECK((waiters->newest == NULL) == (waiters->oldest == NULL));
	waiter->waiters = waiters;
	waiter->next = NULL;
	waiter->previous = waiters->newest;
	if (waiters->newest == NULL) {
		waiters->oldest = waiter;
	} else {
		waiters->newest->next = waiter;
	}
	waiters->newest = waiter;
	waiter->is_queued = true;
	note_count(waiters, 1);
}

static void unlink_waiter(struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	PIN_CHECK(waiter->is_queued);
	PIN_DCHECK(waiter->previous != NULL || waiters->oldest == waiter);
	PIN_DCHECK(waiter->next != NULL || waiters->newest == waiter);
	PIN_DCHECK(waiter->previous == NULL || waiter->previous->next == waiter);
	if (waiter->previous == NULL) {
		waiters->oldest = waiter->next;
	} else {
		waiter->previous->next = waiter->next;
	}
	if (waiter->next == NULL) {
		waiters->newest = waiter->previous;
	} else {
		waiter->next->previous = waiter->previous;
	}
	waiter->is_queued = false;
	note_count(waiters, UINT32_MAX);
}

static void append(struct pin_waiters_served *served, struct pin_waiter *waiter)
{
	PIN_DCHECK(!waiter->is_queued);
	PIN_DCHECK((served->first == NULL) == (served->last == NULL));
	waiter->next = NULL;
	if (served->last == NULL) {
		served->first = waiter;
	} else {
		served->last->next = waiter;
	}
	served->last = waiter;
}

bool pin_waiters_pop_served(struct pin_waiters *waiters, struct pin_waiters_served *out_served)
{
	bool has_any = false;

	for (;;) {
		struct pin_waiter *waiter = waiters->oldest;

		if (waiter == NULL ||
			!waiters->take(waiters->arg, waiter->demand, &waiter->value)) {
			return has_any;
		}
		unlink_waiter(waiters, waiter);
		append(out_served, waiter);
		has_any = true;
	}
}

void pin_waiters_pop_ended(struct pin_waiters *waiters, pin_waiters_take_fn ends,
	struct pin_waiters_served *out_served)
{
	struct pin_waiter *next = waiters->oldest;

	while (next != NULL) {
		struct pin_waiter *waiter = next;

		next = waiter->next;
		if (ends(waiters->arg, waiter->demand, &waiter->value)) {
			unlink_waiter(waiters, waiter);
			append(out_served, waiter);
		}
	}
}

/* ---- without the lock ---- */

/*
 * Without the lock: wakes threads and calls the others, in the order in which
 * they were served.
 */
uint32_t pin_waiters_tell(const struct pin_host *host, const struct pin_waiters_served *served)
{
	struct pin_waiter *next = served->first;
	uint32_t count = 0;

	while (next != NULL) {
		struct pin_waiter *waiter = next;

		/* First, as it may be gone afterwards. */
		next = waiter->next;
		count++;
		if (waiter->over != NULL) {
			waiter->over(waiter);
			continue;
		}
		pin_store_release_u32(&waiter->state, WAITER_SERVED); /* [WAIT-2] */
		/* The kernel takes the address for a name only. */
		host->futex_wake(&waiter->state, 1);
	}
	return count;
}

void pin_waiters_lock(struct pin_waiters *waiters)
{
	pin_lock_acquire(waiters->lock, waiters->host);
}

void pin_waiters_unlock(struct pin_waiters *waiters)
{
	pin_lock_release(waiters->lock, waiters->host);
}

uint32_t pin_waiters_serve_unlock(struct pin_waiters *waiters)
{
	const struct pin_host *host = waiters->host;
	struct pin_waiters_served served = {0};

	pin_waiters_pop_served(waiters, &served);
	pin_waiters_unlock(waiters);
	return pin_waiters_tell(host, &served);
}

uint32_t pin_waiters_serve(struct pin_waiters *waiters)
{
	pin_waiters_lock(waiters);
	return pin_waiters_serve_unlock(waiters);
}

void pin_waiter_init(
	struct pin_waiter *waiter, uint64_t demand, void (*over)(struct pin_waiter *waiter))
{
	*waiter = (struct pin_waiter){.demand = demand, .over = over};
}

bool pin_waiters_try(struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	bool is_had;

	pin_waiters_lock(waiters);
	is_had = waiters->oldest == NULL &&
		waiters->take(waiters->arg, waiter->demand, &waiter->value);
	pin_waiters_unlock(waiters);
	return is_had;
}

static void fence_waiter(const struct pin_waiters *waiters)
{
	if (waiters->fences == PIN_WAITERS_RELEASE_LIGHT) {
		bool is_fenced = waiters->host->fence_all(); /* [WAIT-1] */

		PIN_CHECK(is_fenced);
	} else {
		pin_fence_seq_cst(); /* [WAIT-1] */
	}
}

void pin_waiters_enter(struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	pin_waiters_lock(waiters);
	push(waiters, waiter);
	if (waiters->fences == PIN_WAITERS_LOCKED) {
		pin_waiters_serve_unlock(waiters);
		return;
	}
	pin_waiters_unlock(waiters);
	/* Not under the lock: others may serve while this takes its time. */
	fence_waiter(waiters);
	pin_waiters_serve(waiters);
}

bool pin_waiter_withdraw_from(struct pin_waiters *waiters, struct pin_waiter *waiter)
{
	bool is_withdrawn;

	pin_waiters_lock(waiters);
	is_withdrawn = waiter->is_queued;
	if (is_withdrawn) {
		unlink_waiter(waiters, waiter);
	}
	/* It may have held up later ones. */
	pin_waiters_serve_unlock(waiters);
	return is_withdrawn;
}

bool pin_waiter_withdraw(struct pin_waiter *waiter)
{
	return pin_waiter_withdraw_from(waiter->waiters, waiter);
}

/* Step 4 for a thread, after its enter. 0, or -ETIME. */
static int sleep_until_served(
	struct pin_waiters *waiters, struct pin_waiter *waiter, uint64_t deadline_ns)
{
	const struct pin_host *host = waiters->host;

	while (pin_load_acquire_u32(&waiter->state) == WAITER_WAITS) { /* [WAIT-2] */
		if (host->futex_wait(&waiter->state, WAITER_WAITS, deadline_ns) != -ETIMEDOUT) {
			continue;
		}
		if (pin_waiter_withdraw(waiter)) {
			return -ETIME;
		}
		/* Served in that moment, and notified in the next. */
		deadline_ns = PIN_NO_DEADLINE;
	}
	PIN_DCHECK(!waiter->is_queued); /* seen by [WAIT-2] */
	return 0;
}

int pin_waiters_wait(struct pin_waiters *waiters, struct pin_waiter *waiter, uint64_t deadline_ns)
{
	PIN_CHECK(waiter->over == NULL);
	if (pin_waiters_try(waiters, waiter)) {
		return 0;
	}
	if (deadline_ns != PIN_NO_DEADLINE && deadline_ns <= waiters->host->now_ns()) {
		return -ETIME;
	}
	pin_waiters_enter(waiters, waiter);
	return sleep_until_served(waiters, waiter, deadline_ns);
}
