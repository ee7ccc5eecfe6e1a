/* SPDX-License-Identifier: MIT */
/*
 * Timers between those who start and cancel them and the worker on whose wheel
 * they are (sched/timers.h).
 *
 * A wheel belongs to its worker alone. Started or cancelled from elsewhere, a
 * timer goes to that worker by its inbox, which also ends its sleep; the worker
 * then sleeps until its next deadline at most.
 *
 *     IDLE       not started, or over
 *     POSTED     in the inbox, to be put on the wheel
 *     ARMED      on the wheel
 *     CANCELLED  cancelled; in the inbox, and perhaps still on the wheel
 *
 * The word is changed by compare-and-swap only, so of expiry and cancel one
 * wins: the worker moves POSTED to ARMED and ARMED to IDLE, who cancels moves
 * either to CANCELLED. The task's link is free while a timer is ARMED, so the
 * one message at a time that a timer has needs no memory of its own.
 *
 * [TIMER-1] start stores the worker's number, then the state (release) ->
 * cancel loads the state (acquire): it finds the right inbox.
 */
#ifndef PIN_CORE_TIMER_H
#define PIN_CORE_TIMER_H

#include "runtime/core/worker_state.h"

#include <pinion/timer.h>

/* Makes it the runtime's. -EBUSY. */
int pin_timer_claim(struct pinion_timer *timer, uint64_t deadline_ns);

/* Undoes that, when the runtime refuses it. */
void pin_timer_disclaim(struct pinion_timer *timer);

/* On the worker: puts a claimed one on its wheel. */
void pin_timer_arm(struct pin_worker *worker, struct pinion_timer *timer);

/* Elsewhere: names the worker on whose inbox the caller is going to put it. */
void pin_timer_post(struct pin_worker *target, struct pinion_timer *timer);

/*
 * True: it is cancelled; *out_must_post: the caller must put it on the inbox
 * of worker *out_index.
 */
bool pin_timer_cancel(struct pinion_timer *timer, bool *out_must_post, uint32_t *out_index);

/* On the worker, from its inbox. True: on the wheel; false: it is cancelled. */
bool pin_timer_take(struct pin_worker *worker, struct pinion_timer *timer);

/* Whether `task` is a timer's message rather than a task to be run. */
bool pin_timer_is_message(const struct pinion_task *task);
struct pinion_timer *pin_timer_of(struct pinion_task *task);

/* The next one that is due on the wheel and was not cancelled, or NULL. */
struct pinion_task *pin_timer_expire(struct pin_worker *worker);

#endif
