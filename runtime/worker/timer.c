/* SPDX-License-Identifier: MIT */
/*
 * Moves timers between their states, for the threads that start and cancel them
 * and the worker whose wheel they are on.
 *
 * timer.h has the states and the orderings. All changes of the state word are
 * compare-and-swaps, so of expiry and cancel exactly one wins.
 */
#include "runtime/worker/timer.h"
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/state.h"
#include "runtime/worker/worker.h"

#include <errno.h>

enum timer_state {
	TIMER_IDLE = 0,	     /* -> POSTED or ARMED by start */
	TIMER_POSTED = 1,    /* -> ARMED by the worker, CANCELLED by cancel */
	TIMER_ARMED = 2,     /* -> IDLE, POSTED by the worker, CANCELLED by cancel */
	TIMER_CANCELLED = 3, /* -> IDLE by the worker in whose list it is */
};

struct timer_private {
	struct pin_timer timer;
	struct pin_atomic_u32 state; /* [W:any R:any] */
	uint32_t worker_index;
	uint64_t deadline_ns;
};

_Static_assert(sizeof(struct timer_private) <= sizeof(((struct pinion_timer *)0)->private_),
	"fits into a timer");

static struct timer_private *private_of(struct pinion_timer *timer)
{
	return (struct timer_private *)(void *)timer->private_;
}

static bool change(struct timer_private *private, enum timer_state from, enum timer_state to)
{
	uint32_t state = from;

	PIN_DCHECK(from != to && from <= TIMER_CANCELLED && to <= TIMER_CANCELLED);
	return pin_cas_seq_cst_u32(&private->state, &state, to); /* [TIMER-1] */
}

static PIN_COLD _Noreturn void report_changed(
	const struct pin_log *log, const struct pinion_timer *timer)
{
	pin_check_misused(log,
		"a pinion_timer at %p was started by two threads at once, or written to while it "
		"was: start it again when it is over",
		(const void *)timer);
}

int pin_timer_claim(struct pinion_timer *timer, uint64_t deadline_ns)
{
	struct timer_private *private = private_of(timer);

	if (!pin_task_is_idle(&timer->task) ||
		pin_load_acquire_u32(&private->state) != TIMER_IDLE) {
		return -EBUSY;
	}
	PIN_DCHECK(!pin_timer_is_armed(&private->timer)); /* in no wheel */
	private->deadline_ns = deadline_ns;
	pin_task_set_kind(&timer->task, PIN_TASK_TIMER);
	return 0;
}

void pin_timer_disclaim(struct pinion_timer *timer)
{
	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	pin_task_release(&timer->task);
}

/* The worker must not see it too late; others may. */
static void publish(struct pin_worker *worker)
{
	uint64_t next_ns = pin_timers_next_ns(&worker->timers);

	if (!pin_list_is_empty(&worker->cancelled_timers) && worker->cancelled_ns < next_ns) {
		next_ns = worker->cancelled_ns;
	}
	pin_store_relaxed_u64(&worker->timer_ns, next_ns);
}

static void enter(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_biased_enter(&worker->timers_lock, worker->shared->host);
}

static void leave(struct pin_worker *worker)
{
	publish(worker);
	worker->has_timers = pin_timers_count(&worker->timers) > 0;
	pin_biased_leave(&worker->timers_lock);
}

void pin_timer_arm(struct pin_worker *worker, struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);

	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	private->worker_index = worker->index;
	enter(worker);
	pin_timers_insert(&worker->timers, &private->timer, private->deadline_ns);
	if (PIN_UNLIKELY(!change(private, TIMER_IDLE, TIMER_ARMED))) { /* [TIMER-1] */
		report_changed(&worker->shared->log, timer);
	}
	PIN_DCHECK(pin_timers_next_ns(&worker->timers) <= private->timer.due_ns);
	leave(worker);
}

void pin_timer_post(struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);

	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	if (PIN_UNLIKELY(!change(private, TIMER_IDLE, TIMER_POSTED))) {
		report_changed(NULL, timer);
	}
}

static bool is_pending(const struct timer_private *private)
{
	uint32_t state = pin_load_acquire_u32(&private->state);

	PIN_DCHECK(state <= TIMER_CANCELLED);
	return state == TIMER_POSTED || state == TIMER_ARMED;
}

bool pin_timer_cancel(struct pinion_timer *timer, bool *out_must_post, uint32_t *out_index)
{
	struct timer_private *private = private_of(timer);

	*out_must_post = false;
	do {
		/* A worker may arm it between the two, or give it up. */
		if (change(private, TIMER_POSTED, TIMER_CANCELLED)) {
			return true;
		}
		if (change(private, TIMER_ARMED, TIMER_CANCELLED)) {
			*out_must_post = true;
			*out_index = private->worker_index;
			return true;
		}
	} while (is_pending(private));
	return false;
}

bool pin_timer_take_off(struct pin_worker *worker, struct pinion_timer *timer)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	if (!pin_biased_take(&worker->timers_lock, worker->shared->host)) {
		return false;
	}
	pin_timers_cancel(&worker->timers, &private_of(timer)->timer);
	publish(worker);
	pin_biased_release(&worker->timers_lock);
	return true;
}

/* In the lock. */
static void drop(struct pin_worker *worker, struct pinion_timer *timer)
{
	pin_timers_cancel(&worker->timers, &private_of(timer)->timer);
	PIN_DCHECK(!pin_timer_is_armed(&private_of(timer)->timer));
	PIN_DCHECK(timer->task.private_kind == PIN_TASK_TIMER);
	pin_list_push(&worker->cancelled_timers, pin_task_link(&timer->task));
}

/* In the lock, by any holder. */
static void drop_told(struct pin_worker *worker)
{
	struct pin_list told = {0};
	struct pin_link *link;

	pin_inbox_take(&worker->timer_cancels, &told);
	while ((link = pin_list_pop(&told)) != NULL) {
		drop(worker, pin_timer_of(pin_task_of(link)));
	}
}

/* On the worker, in the lock and before anything is added. */
static void note_time(struct pin_worker *worker)
{
	if (pin_list_is_empty(&worker->cancelled_timers)) {
		worker->cancelled_ns = worker->now_ns;
	}
	PIN_DCHECK(worker->cancelled_ns <= worker->now_ns);
}

void pin_timer_take(struct pin_worker *worker, struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);
	bool is_armed = false;

	PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
	PIN_DCHECK(!pin_timer_is_armed(&private->timer));
	enter(worker);
	/* On the wheel first: once it is ARMED it may be cancelled again. */
	if (pin_load_acquire_u32(&private->state) == TIMER_POSTED) {
		private->worker_index = worker->index;
		pin_timers_insert(&worker->timers, &private->timer, private->deadline_ns);
		is_armed = change(private, TIMER_POSTED, TIMER_ARMED); /* [TIMER-1] */
	}
	if (!is_armed) {
		note_time(worker);
		drop(worker, timer);
	}
	leave(worker);
}

void pin_timer_drop(struct pin_worker *worker, struct pinion_timer *timer)
{
	enter(worker);
	note_time(worker);
	drop(worker, timer);
	leave(worker);
}

void pin_timer_drop_told(struct pin_worker *worker)
{
	enter(worker);
	note_time(worker);
	drop_told(worker);
	leave(worker);
}

void pin_timer_adopt(struct pin_worker *worker, struct pin_list *cancelled)
{
	PIN_DCHECK(!pin_list_is_empty(cancelled));
	enter(worker);
	note_time(worker);
	pin_list_append(&worker->cancelled_timers, cancelled);
	leave(worker);
}

struct pinion_task *pin_timer_pop_cancelled(struct pin_worker *worker)
{
	struct pin_link *link;
	struct pinion_task *task;
	bool was_cancelled;

	enter(worker);
	link = pin_list_pop(&worker->cancelled_timers);
	leave(worker);
	if (link == NULL) {
		return NULL;
	}
	task = pin_task_of(link);
	PIN_DCHECK(pin_task_kind(task) == PIN_TASK_TIMER);
	pin_task_set_kind(task, PIN_TASK_PLAIN);
	was_cancelled = change(private_of(pin_timer_of(task)), TIMER_CANCELLED, TIMER_IDLE);
	PIN_CHECK(was_cancelled);
	return task;
}

struct pinion_timer *pin_timer_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct pinion_timer, task);
}

/* The next that is due and was not cancelled, or NULL; in the lock. */
static struct pinion_task *pop_due(struct pin_worker *worker, enum timer_state to)
{
	struct pin_timer *expired;

	PIN_DCHECK(to == TIMER_IDLE || to == TIMER_POSTED);
	while ((expired = pin_timers_pop(&worker->timers)) != NULL) {
		struct timer_private *private =
			PIN_CONTAINER_OF(expired, struct timer_private, timer);
		struct pinion_timer *timer = PIN_CONTAINER_OF(
			(uint64_t *)(void *)private, struct pinion_timer, private_);

		/* A timer cancelled meanwhile comes by an inbox. */
		PIN_DCHECK(!pin_timer_is_armed(expired));
		PIN_DCHECK(pin_task_kind(&timer->task) == PIN_TASK_TIMER);
		if (change(private, TIMER_ARMED, to)) {
			pin_task_set_kind(
				&timer->task, to == TIMER_IDLE ? PIN_TASK_PLAIN : PIN_TASK_TIMER);
			return &timer->task;
		}
	}
	return NULL;
}

/* By the worker that has popped it. The wheel's time may be a little later. */
static uint64_t lag_of(struct pinion_task *task, uint64_t now_ns)
{
	uint64_t due_ns = private_of(pin_timer_of(task))->timer.due_ns;

	return now_ns > due_ns ? now_ns - due_ns : 0;
}

static void note_lag(struct pin_worker *worker, struct pinion_task *task, uint64_t now_ns)
{
	pin_metrics_record(worker, PINION_TIMING_TIMER, lag_of(task, now_ns));
}

uint32_t pin_timer_expire(struct pin_worker *worker, bool is_all, struct pin_list *out_list)
{
	struct pinion_task *task;
	uint32_t count = 0;

	enter(worker);
	if (is_all) {
		pin_timers_expire_all(&worker->timers);
	} else {
		pin_timers_advance(&worker->timers, worker->now_ns);
	}
	while ((task = pop_due(worker, TIMER_IDLE)) != NULL) {
		if (!is_all) {
			note_lag(worker, task, worker->now_ns);
		}
		pin_event_timer(worker, task, lag_of(task, worker->now_ns));
		pin_list_push(out_list, pin_task_link(task));
		count++;
	}
	PIN_DCHECK(!is_all || pin_timers_count(&worker->timers) == 0);
	PIN_DCHECK(pin_timers_next_ns(&worker->timers) > worker->now_ns); /* none due is left */
	leave(worker);
	return count;
}

void pin_timer_give_up(struct pin_worker *worker, struct pin_list *out_list)
{
	struct pinion_task *task;

	enter(worker);
	pin_timers_expire_all(&worker->timers);
	/* A timer cancelled from here on is so by the inbox for timers. */
	while ((task = pop_due(worker, TIMER_POSTED)) != NULL) {
		pin_list_push(out_list, pin_task_link(task));
	}
	drop_told(worker);
	pin_list_append(out_list, &worker->cancelled_timers);
	PIN_DCHECK(pin_timers_count(&worker->timers) == 0);
	leave(worker);
}

uint32_t pin_timer_steal(struct pin_worker *victim, uint64_t now_ns, uint32_t count_max,
	struct pin_list *out_list, struct pin_list *out_cancelled)
{
	struct pinion_task *task;
	uint32_t count = 0;

	PIN_DCHECK(count_max > 0);
	PIN_DCHECK(!pin_worker_is_current(victim));
	if (!pin_biased_take(&victim->timers_lock, victim->shared->host)) {
		return 0;
	}
	pin_timers_advance(&victim->timers, now_ns);
	while (count < count_max && (task = pop_due(victim, TIMER_IDLE)) != NULL) {
		note_lag(pin_worker_current(), task, now_ns);
		pin_list_push(out_list, pin_task_link(task));
		count++;
	}
	drop_told(victim);
	pin_list_append(out_cancelled, &victim->cancelled_timers);
	publish(victim);
	pin_biased_release(&victim->timers_lock);
	return count;
}
