/* SPDX-License-Identifier: MIT */
/*
 * Begins waits on a worker and ends them: served, timed out, cancelled or
 * stopped.
 *
 * Tasks begin waits by the public `_async` calls; any thread may serve or
 * cancel one. wait.h has the protocol.
 *
 * Invariant: the thread that takes a wait out of its queue of waiters ends it,
 * so it ends once.
 */
#include "runtime/worker/wait.h"
#include "runtime/base/check.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"

#include <errno.h>

struct pin_wait_entry {
	/*
	 * [W:worker R:any] struct pin_waiters *, of the queue that it is in or
	 * about to enter; 0: none, it may not be cancelled.
	 */
	struct pin_atomic_u64 queue;
	struct pin_waiter waiter;
	struct pin_timer deadline;
	struct pin_wait_entry *next; /* [own] of the worker's list */
	struct pin_wait_entry *previous;
	struct pin_worker *worker; /* [const] while it waits */
	pin_wait_finish_fn finish;
	void *target;
};

_Static_assert(sizeof(struct pin_wait_entry) <= sizeof(((struct pinion_wait *)0)->private_),
	"fits into a wait");
_Static_assert(sizeof(struct pinion_wait) == 192, "released size");

static struct pin_wait_entry *entry_of(struct pinion_wait *wait)
{
	return (struct pin_wait_entry *)(void *)wait->private_;
}

static struct pinion_wait *wait_of(struct pin_wait_entry *entry)
{
	return PIN_CONTAINER_OF((uint64_t *)(void *)entry, struct pinion_wait, private_);
}

/* ---- on its worker ---- */

static void enlist(struct pin_worker *worker, struct pin_wait_entry *entry)
{
	struct pin_wait_entry *first = worker->waits;

	PIN_DCHECK(first == NULL || first->previous == NULL);
	PIN_DCHECK(entry->worker == worker);
	entry->previous = NULL;
	entry->next = first;
	if (first != NULL) {
		first->previous = entry;
	}
	worker->waits = entry;
}

/* A canceller finds the wait from here on. */
static void publish(struct pin_wait_entry *entry, struct pin_waiters *waiters)
{
	PIN_DCHECK(waiters != NULL); /* NULL would say that it may not be cancelled */
	pin_store_release_u64(&entry->queue, (uintptr_t)waiters); /* [WAIT-4] */
}

/* A canceller finds nothing any more: the queue may be freed soon. */
static void take_back(struct pin_wait_entry *entry)
{
	/* Relaxed: the task's end publishes it to its next readers. */
	pin_store_relaxed_u64(&entry->queue, 0);
}

/* Off the list and the wheel. */
static void forget(struct pin_worker *worker, struct pin_wait_entry *entry)
{
	PIN_DCHECK(pin_task_kind(&wait_of(entry)->task) == PIN_TASK_WAIT);
	take_back(entry);
	PIN_DCHECK(
		entry->previous == NULL ? worker->waits == entry : entry->previous->next == entry);
	PIN_DCHECK(entry->next == NULL || entry->next->previous == entry);
	if (entry->previous == NULL) {
		worker->waits = entry->next;
	} else {
		entry->previous->next = entry->next;
	}
	if (entry->next != NULL) {
		entry->next->previous = entry->previous;
	}
	pin_remote_reap_enter(worker);
	pin_timers_cancel(&worker->deadlines, &entry->deadline);
	pin_remote_reap_leave(worker);
	PIN_DCHECK(!pin_timer_is_armed(&entry->deadline));
	pin_task_set_kind(&wait_of(entry)->task, PIN_TASK_PLAIN);
}

static void finish(struct pin_wait_entry *entry)
{
	struct pinion_wait *wait = wait_of(entry);

	PIN_DCHECK(!entry->waiter.is_queued);
	if (wait->result == 0 && entry->finish != NULL) {
		wait->result = entry->finish(entry->target, &entry->waiter.value);
	}
}

static void make_ready(struct pin_worker *worker, struct pinion_wait *wait)
{
	PIN_DCHECK(wait->task.private_kind == PIN_TASK_PLAIN); /* in no list of waits */
	pin_list_push(&worker->ready, pin_task_link(&wait->task));
}

/* Ends it here, unless another thread has just served or cancelled it. */
static void end_here(struct pin_worker *worker, struct pin_wait_entry *entry, int result)
{
	struct pinion_wait *wait = wait_of(entry);

	PIN_CHECK(entry->worker == worker);
	if (pin_waiter_withdraw(&entry->waiter)) {
		forget(worker, entry);
		wait->result = result;
		make_ready(worker, wait);
	}
}

void pin_wait_take(struct pin_worker *worker, struct pinion_task *task)
{
	struct pinion_wait *wait = PIN_CONTAINER_OF(task, struct pinion_wait, task);
	struct pin_wait_entry *entry = entry_of(wait);

	PIN_CHECK(entry->worker == worker);
	forget(worker, entry);
	finish(entry);
}

void pin_wait_expire(struct pin_worker *worker, struct pin_timer *timer)
{
	PIN_DCHECK(timer->owner_kind == PIN_TASK_WAIT);
	PIN_DCHECK(!pin_timer_is_armed(timer)); /* it was popped as due */
	end_here(worker, PIN_CONTAINER_OF(timer, struct pin_wait_entry, deadline), -ETIME);
}

void pin_wait_cancel_all(struct pin_worker *worker)
{
	struct pin_wait_entry *entry = worker->waits;

	PIN_DCHECK(pin_worker_is_current(worker));
	while (entry != NULL) {
		struct pin_wait_entry *next = entry->next;

		end_here(worker, entry, -ECANCELED);
		entry = next;
	}
}

bool pin_wait_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_WAIT;
}

/* ---- from anywhere ---- */

/* Out of the queue: to its worker. The last touch of the wait. */
static void post(struct pinion_wait *wait)
{
	struct pin_worker *target = entry_of(wait)->worker;
	struct pin_shared *shared = target->shared;
	struct pin_worker *self = pin_worker_current();
	struct pin_link *link = pin_task_link(&wait->task);
	uint32_t before;

	PIN_CHECK(wait->task.private_kind == PIN_TASK_WAIT);
	if (self == target) {
		pin_list_push(&target->posted, link);
		return;
	}
	if (self != NULL && self->shared == shared) {
		pin_inbox_push(&target->inbox, link);
		pin_wake_worker(target, self);
		return;
	}
	/* Relaxed: the runtime cannot end before the push. */
	pin_fetch_add_relaxed_u32(&shared->outside_callers, 1);
	pin_inbox_push(&target->inbox, link);
	pin_wake_worker(target, NULL);
	before = pin_fetch_sub_acq_rel_u32(&shared->outside_callers, 1); /* [WAIT-3] */
	PIN_CHECK(before > 0);
}

static void post_served(struct pin_waiter *waiter)
{
	post(wait_of(PIN_CONTAINER_OF(waiter, struct pin_wait_entry, waiter)));
}

int pin_wait_cancel(struct pinion_wait *wait)
{
	struct pin_wait_entry *entry = entry_of(wait);
	struct pin_waiters *waiters =
		(struct pin_waiters *)(uintptr_t)pin_load_acquire_u64(&entry->queue); /* [WAIT-4] */

	if (waiters == NULL || !pin_waiter_withdraw_from(waiters, &entry->waiter)) {
		return -EALREADY;
	}
	wait->result = -ECANCELED;
	post(wait);
	return 0;
}

void pin_wait_stop_pools(struct pin_shared *shared)
{
	pin_lock_acquire(&shared->pools_lock, shared->host);
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		if (shared->pool_waiters[i] != NULL) {
			pin_waiters_serve(shared->pool_waiters[i]);
		}
	}
	pin_lock_release(&shared->pools_lock, shared->host);
}

void pin_wait_for_callers(struct pin_shared *shared)
{
	while (pin_load_acquire_u32(&shared->outside_callers) != 0) { /* [WAIT-3] */
		shared->host->yield();
	}
}

/* ---- the beginning ---- */

static bool is_past(const struct pin_worker *worker, uint64_t deadline_ns)
{
	return deadline_ns != PIN_NO_DEADLINE && deadline_ns <= worker->shared->host->now_ns();
}

/*
 * Tries to be served at once, before the wait is in any list or on the wheel,
 * and then ends it here. Else the wait is complete before publish() lets
 * another thread end it.
 */
int pin_wait_begin(
	struct pin_worker *worker, struct pinion_wait *wait, const struct pin_wait_aim *aim)
{
	struct pin_wait_entry *entry = entry_of(wait);

	PIN_DCHECK(pin_worker_is_current(worker));
	if (wait->task.run == NULL || wait->task.flags != 0 || wait->reserved != 0) {
		return -EINVAL;
	}
	if (!pin_task_is_idle(&wait->task)) {
		return -EBUSY;
	}
	if (pin_shared_is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	/* Not as a whole: others may be looking at `queue`. */
	take_back(entry);
	entry->deadline = (struct pin_timer){.owner_kind = PIN_TASK_WAIT};
	entry->worker = worker;
	entry->finish = aim->finish;
	entry->target = aim->target;
	pin_waiter_init(&entry->waiter, aim->demand, post_served);
	wait->result = 0;
	pin_task_set_kind(&wait->task, PIN_TASK_PLAIN);
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if (pin_waiters_try(aim->waiters, &entry->waiter)) {
		finish(entry);
		make_ready(worker, wait);
	} else if (is_past(worker, wait->deadline_ns)) {
		wait->result = -ETIME;
		make_ready(worker, wait);
	} else {
		pin_task_set_kind(&wait->task, PIN_TASK_WAIT);
		enlist(worker, entry);
		if (wait->deadline_ns != PIN_NO_DEADLINE) {
			pin_remote_reap_enter(worker);
			pin_timers_insert(&worker->deadlines, &entry->deadline, wait->deadline_ns);
			pin_remote_reap_leave(worker);
		}
		publish(entry, aim->waiters);
		pin_waiters_enter(aim->waiters, &entry->waiter);
	}
	return 0;
}
