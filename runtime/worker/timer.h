/* SPDX-License-Identifier: MIT */
/*
 * Timers between the threads that start and cancel them and the worker on whose
 * wheel they are (queue/timer_wheel.h).
 *
 * Only its worker puts timers on a wheel; it sleeps until its next deadline at
 * most. A timer that another thread starts goes into an inbox from which any
 * worker takes it, so that none has to wait for a stalled worker. An expired
 * timer becomes a task of its worker or, if that is stalled, of another worker
 * that finds it late: so the wheel has a lock, which costs the worker next to
 * nothing.
 *
 * A cancelled timer is in a list beside the wheel, under the same lock, until
 * its `cancel` is called: by the worker at the start of a turn, or by another
 * that finds it there late. A timer that another thread cancels first goes to
 * an inbox that the lock's holder empties, the worker or another; but if the
 * worker seems stalled, the canceller takes it off the wheel, and any worker
 * ends it by the inbox for timers. While users' code runs no timer is where
 * only its worker can reach it, so none waits for that code to end.
 *
 *     IDLE       not started, or over
 *     POSTED     in the inbox for timers, to be put on a wheel
 *     ARMED      on the wheel
 *     CANCELLED  cancelled; in an inbox, and perhaps still on the wheel, or in
 *                the list
 *
 * The word is changed by compare-and-swap only, so of expiry and cancel one
 * wins: the worker moves POSTED to ARMED and ARMED to IDLE, a canceller moves
 * either to CANCELLED. A worker that leaves (loop/retire.c) moves ARMED timers
 * back to POSTED, for any other to arm. The task's link is free while a timer
 * is ARMED, so the one message at a time that a timer has needs no memory of
 * its own.
 *
 * [TIMER-1] the worker stores its number, then the state (release) ->
 * cancel loads the state (acquire): it finds the right inbox.
 */
#ifndef PIN_WORKER_TIMER_H
#define PIN_WORKER_TIMER_H

#include "runtime/worker/state.h"

#include <pinion/timer.h>

/* Twice the default budget of a turn. */
#define PIN_TIMER_LATE_NS (UINT64_C(1000) * 1000)

/* Makes it the runtime's. -EBUSY. */
int pin_timer_claim(struct pinion_timer *timer, uint64_t deadline_ns);

/* Undoes that, when the runtime refuses it. */
void pin_timer_disclaim(struct pinion_timer *timer);

/* On the worker: puts a claimed one on its wheel. */
void pin_timer_arm(struct pin_worker *worker, struct pinion_timer *timer);

/* Elsewhere: the caller is going to put it into the inbox for timers. */
void pin_timer_post(struct pinion_timer *timer);

/*
 * True: it is cancelled; *out_must_post: the caller must notify worker
 * *out_index, pin_worker_timer_cancelled().
 */
bool pin_timer_cancel(struct pinion_timer *timer, bool *out_must_post, uint32_t *out_index);

/*
 * Elsewhere: takes a cancelled one off the worker's wheel, for any other to end
 * it. False: not now, or not here.
 */
bool pin_timer_take_off(struct pin_worker *worker, struct pinion_timer *timer);

/*
 * On the worker, from the inbox for timers: onto the wheel, or to those that
 * are cancelled.
 */
void pin_timer_take(struct pin_worker *worker, struct pinion_timer *timer);
struct pinion_timer *pin_timer_of(struct pinion_task *task);

/* On the worker: a cancelled timer that is on its wheel, or on none. */
void pin_timer_drop(struct pin_worker *worker, struct pinion_timer *timer);

/* On the worker: those that others have cancelled. */
void pin_timer_drop_told(struct pin_worker *worker);

/* On the worker: the oldest that is cancelled, its user's again; or NULL. */
struct pinion_task *pin_timer_pop_cancelled(struct pin_worker *worker);

/* On the worker: those that it has got from another. */
void pin_timer_adopt(struct pin_worker *worker, struct pin_list *cancelled);

/*
 * On the worker: moves expired timers, except cancelled ones, to the end of
 * `out_list`; `is_all`: whatever their deadline. Returns how many.
 */
uint32_t pin_timer_expire(struct pin_worker *worker, bool is_all, struct pin_list *out_list);

/*
 * On the worker, which leaves: moves all to the end of `out_list`, as messages
 * for the inbox for timers.
 */
void pin_timer_give_up(struct pin_worker *worker, struct pin_list *out_list);

/*
 * Elsewhere: the same, up to `count_max`, not 0; returns how many. And all
 * cancelled ones to the end of `out_cancelled`, to be adopted.
 */
uint32_t pin_timer_steal(struct pin_worker *victim, uint64_t now_ns, uint32_t count_max,
	struct pin_list *out_list, struct pin_list *out_cancelled);

/*
 * When the worker has to check its wheel, and the cancelled ones; on the worker
 * it is no guess.
 */
static inline uint64_t pin_timer_next_ns(const struct pin_worker *worker)
{
	return pin_load_relaxed_u64(&worker->timer_ns);
}

/* Later than an awake worker is whose tasks are short. */
static inline bool pin_timer_is_late(const struct pin_worker *worker, uint64_t now_ns)
{
	uint64_t due_ns = pin_timer_next_ns(worker);

	return due_ns < now_ns && now_ns - due_ns >= PIN_TIMER_LATE_NS;
}

/* A guess: if it is stalled, others have to see to its timers. */
static inline bool pin_timer_needs_help(const struct pin_worker *worker, uint64_t now_ns)
{
	return pin_timer_is_late(worker, now_ns) || !pin_inbox_is_empty(&worker->timer_cancels);
}

#endif
