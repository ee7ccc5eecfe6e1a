/* SPDX-License-Identifier: MIT */
/*
 * A timer's states.
 */
#include "runtime/core/timer.h"
#include "runtime/base/check.h"
#include "runtime/core/task.h"

#include <errno.h>

enum timer_state {
	TIMER_IDLE = 0,	     /* -> POSTED or ARMED by start */
	TIMER_POSTED = 1,    /* -> ARMED by the worker, CANCELLED by cancel */
	TIMER_ARMED = 2,     /* -> IDLE by the worker, CANCELLED by cancel */
	TIMER_CANCELLED = 3, /* -> IDLE by the worker */
};

/* Marks a task whose link carries a timer's message. */
enum { KIND_TIMER = 1 };

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

	return pin_cas_seq_cst_u32(&private->state, &state, to); /* [TIMER-1] */
}

int pin_timer_claim(struct pinion_timer *timer, uint64_t deadline_ns)
{
	struct timer_private *private = private_of(timer);

	if (pin_load_acquire_u32(&private->state) != TIMER_IDLE) {
		return -EBUSY;
	}
	private->deadline_ns = deadline_ns;
	timer->task.private_kind = KIND_TIMER;
	return 0;
}

void pin_timer_disclaim(struct pinion_timer *timer)
{
	timer->task.private_kind = 0;
}

void pin_timer_arm(struct pin_worker *worker, struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);

	private->worker_index = worker->index;
	pin_timers_insert(&worker->timers, &private->timer, private->deadline_ns);
	PIN_CHECK(change(private, TIMER_IDLE, TIMER_ARMED));
}

void pin_timer_post(struct pin_worker *target, struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);

	private->worker_index = target->index;
	PIN_CHECK(change(private, TIMER_IDLE, TIMER_POSTED)); /* [TIMER-1] */
}

bool pin_timer_cancel(struct pinion_timer *timer, bool *out_must_post, uint32_t *out_index)
{
	struct timer_private *private = private_of(timer);

	*out_must_post = false;
	/* The worker may arm it between the two. */
	if (change(private, TIMER_POSTED, TIMER_CANCELLED)) {
		return true;
	}
	if (!change(private, TIMER_ARMED, TIMER_CANCELLED)) {
		return false;
	}
	*out_must_post = true;
	*out_index = private->worker_index;
	return true;
}

bool pin_timer_take(struct pin_worker *worker, struct pinion_timer *timer)
{
	struct timer_private *private = private_of(timer);

	/* On the wheel first: once it is ARMED it may be cancelled again. */
	if (pin_load_acquire_u32(&private->state) == TIMER_POSTED) {
		pin_timers_insert(&worker->timers, &private->timer, private->deadline_ns);
		if (change(private, TIMER_POSTED, TIMER_ARMED)) {
			return true;
		}
	}
	pin_timers_cancel(&worker->timers, &private->timer);
	timer->task.private_kind = 0;
	PIN_CHECK(change(private, TIMER_CANCELLED, TIMER_IDLE));
	return false;
}

bool pin_timer_is_message(const struct pinion_task *task)
{
	return task->private_kind == KIND_TIMER;
}

struct pinion_timer *pin_timer_of(struct pinion_task *task)
{
	return PIN_CONTAINER_OF(task, struct pinion_timer, task);
}

struct pinion_task *pin_timer_expire(struct pin_worker *worker)
{
	struct pin_timer *expired;

	for (;;) {
		struct timer_private *private;
		struct pinion_timer *timer;

		expired = pin_timers_pop(&worker->timers);
		if (expired == NULL) {
			return NULL;
		}
		private = PIN_CONTAINER_OF(expired, struct timer_private, timer);
		timer = PIN_CONTAINER_OF(
			(uint64_t *)(void *)private, struct pinion_timer, private_);
		/* One that was cancelled meanwhile comes by the inbox. */
		if (change(private, TIMER_ARMED, TIMER_IDLE)) {
			timer->task.private_kind = 0;
			return &timer->task;
		}
	}
}
