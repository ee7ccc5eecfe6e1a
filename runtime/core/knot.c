/* SPDX-License-Identifier: MIT */
/*
 * The list of blocked workers, and what of it is a knot.
 */
#include "runtime/core/knot.h"
#include "runtime/core/supply.h"

struct pin_atomic_u32 pin_knot_blocked_count;

static struct pin_lock lock;
static struct pin_blocked *newest; /* [lock:lock] */

/* What a call that has not begun adds to a runtime. */
struct addition {
	const struct pin_shared *shared;
	uint64_t tasks;
};

/* ---- the list ---- */

static void enlist(struct pin_blocked *blocked)
{
	blocked->previous = NULL;
	blocked->next = newest;
	if (newest != NULL) {
		newest->previous = blocked;
	}
	newest = blocked;
	blocked->below = blocked->worker->blocked;
	blocked->worker->blocked = blocked;
	/* Relaxed: changed under the lock; the fence makes it seen. */
	pin_store_relaxed_u32(
		&pin_knot_blocked_count, pin_load_relaxed_u32(&pin_knot_blocked_count) + 1);
}

static void delist(struct pin_blocked *blocked)
{
	if (blocked->previous == NULL) {
		newest = blocked->next;
	} else {
		blocked->previous->next = blocked->next;
	}
	if (blocked->next != NULL) {
		blocked->next->previous = blocked->previous;
	}
	blocked->worker->blocked = blocked->below;
	pin_store_relaxed_u32(
		&pin_knot_blocked_count, pin_load_relaxed_u32(&pin_knot_blocked_count) - 1);
}

/* ---- what is stuck: under the lock ---- */

static const struct pin_shared *runtime_of(const struct pin_blocked *blocked)
{
	return blocked->worker->shared;
}

/*
 * One of its blocked workers, by which it is looked up: a runtime that has any
 * is there, while a target may be gone that nobody waits for in earnest.
 */
static struct pin_blocked *first_of(const struct pin_shared *shared)
{
	struct pin_blocked *blocked = newest;

	while (blocked != NULL && runtime_of(blocked) != shared) {
		blocked = blocked->next;
	}
	return blocked;
}

static uint32_t serving_count(const struct pin_shared *shared)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		count += pin_load_acquire_u32(&shared->workers[i].service) != PIN_SERVICE_OUT;
	}
	return count;
}

/* One that is about to leave will do so, and then look again: [KNOT-1]. */
static bool has_leaver(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		if (worker->blocked == NULL && pin_worker_is_leaving(worker)) {
			return true;
		}
	}
	return false;
}

static bool is_stuck(const struct pin_shared *shared, const struct addition *addition)
{
	uint64_t left = addition->shared == shared ? addition->tasks : 0;
	uint64_t blocked_tasks = 0;
	uint32_t bound_count = 0;

	for (const struct pin_blocked *it = newest; it != NULL; it = it->next) {
		bool is_waiting;

		if (runtime_of(it) != shared) {
			continue;
		}
		is_waiting = pin_waiter_is_queued(it->waiter);
		/* One below others may be over, and cannot go on. */
		if (!is_waiting && it->worker->blocked == it) {
			return false;
		}
		/* A wait of one that helps counts as a task as well. */
		blocked_tasks += (uint64_t)it->is_in_task + (uint64_t)(it->helps && is_waiting);
		bound_count += !it->helps;
	}
	if (has_leaver(shared)) {
		return false;
	}
	left += pin_supply_count_left(shared);
	return left <= blocked_tasks || bound_count >= serving_count(shared);
}

static bool is_in_knot(const struct pin_shared *shared)
{
	const struct pin_blocked *first = first_of(shared);

	return first != NULL && first->worker->shared->is_knotted;
}

/* Most waits are for runtimes none of whose workers blocks. */
static bool is_worth_a_look(void)
{
	for (const struct pin_blocked *it = newest; it != NULL; it = it->next) {
		if (it->target != NULL && first_of(it->target) != NULL) {
			return true;
		}
	}
	return false;
}

/*
 * A look takes its time: what was left to run in one runtime when another was
 * looked at may have served that one before it was over.
 */
static void leave_out_served(void)
{
	for (struct pin_blocked *it = newest; it != NULL; it = it->next) {
		/* Those below others change nothing. */
		if (it->worker->blocked == it && runtime_of(it)->is_knotted &&
			!pin_waiter_is_queued(it->waiter)) {
			it->worker->shared->is_knotted = false;
		}
	}
}

/* Leaves out what waits for others, until nothing changes. */
static void narrow(void)
{
	bool has_changed = true;

	while (has_changed) {
		has_changed = false;
		for (struct pin_blocked *it = newest; it != NULL; it = it->next) {
			struct pin_shared *shared = it->worker->shared;

			/* Those below others change nothing. */
			if (it->worker->blocked == it && shared->is_knotted &&
				(it->target == NULL || !is_in_knot(it->target))) {
				shared->is_knotted = false;
				has_changed = true;
			}
		}
	}
}

/* Marks the runtimes that are in a knot. */
static void mark(const struct addition *addition)
{
	for (struct pin_blocked *it = newest; it != NULL; it = it->next) {
		if (first_of(runtime_of(it)) == it) {
			it->worker->shared->is_knotted = is_stuck(runtime_of(it), addition);
		}
	}
	leave_out_served();
	narrow();
}

/* Takes out one that can go on then, the newest: each worker's topmost. */
static struct pin_blocked *pick(enum pin_blocked_end end)
{
	for (struct pin_blocked *it = newest; it != NULL; it = it->next) {
		if (it->end == end && it->worker->blocked == it && runtime_of(it)->is_knotted &&
			pin_waiter_withdraw(it->waiter)) {
			return it;
		}
	}
	return NULL;
}

/* Lets go of the lock. */
static void settle_unlock(const struct pin_host *host)
{
	static const struct addition none;
	struct pin_blocked *failed = NULL;
	struct pin_waiters_served served = {0};

	if (is_worth_a_look()) {
		mark(&none);
		failed = pick(PIN_BLOCKED_FIRST);
		failed = failed != NULL ? failed : pick(PIN_BLOCKED_LAST);
	}
	if (failed != NULL) {
		failed->has_failed = true;
		served.first = failed->waiter;
		served.last = failed->waiter;
		served.first->next = NULL;
	}
	pin_lock_release(&lock, host);
	/* It stays until it is told. */
	pin_waiters_tell(host, &served);
}

/* ---- from outside ---- */

void pin_knot_enter(struct pin_blocked *blocked)
{
	const struct pin_host *host = blocked->worker->shared->host;

	pin_lock_acquire(&lock, host);
	enlist(blocked);
	pin_fence_seq_cst(); /* [KNOT-1] */
	settle_unlock(host);
}

bool pin_knot_enter_call(struct pin_blocked *blocked)
{
	const struct pin_host *host = blocked->worker->shared->host;
	struct addition call = {.shared = blocked->target, .tasks = 1};
	bool is_in_vain = false;

	pin_lock_acquire(&lock, host);
	enlist(blocked);
	pin_fence_seq_cst(); /* [KNOT-1] */
	if (is_worth_a_look()) {
		mark(&call);
		is_in_vain = runtime_of(blocked)->is_knotted;
	}
	if (is_in_vain) {
		delist(blocked);
	}
	pin_lock_release(&lock, host);
	return !is_in_vain;
}

void pin_knot_leave(struct pin_blocked *blocked)
{
	const struct pin_host *host = blocked->worker->shared->host;

	pin_lock_acquire(&lock, host);
	delist(blocked);
	pin_lock_release(&lock, host);
}

void pin_knot_look(const struct pin_host *host)
{
	pin_lock_acquire(&lock, host);
	settle_unlock(host);
}

void pin_knot_forget(void)
{
	lock = (struct pin_lock){0};
	newest = NULL;
	pin_store_relaxed_u32(&pin_knot_blocked_count, 0);
}
