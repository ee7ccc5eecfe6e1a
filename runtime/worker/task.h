/* SPDX-License-Identifier: MIT */
/*
 * A task's private words: whose it is, and the link by which it is queued.
 *
 * A spawn claims the task and the worker that enters it gives it back, both by
 * a plain store: the queue between them orders the two, and neither side pays a
 * locked instruction. So two threads that spawn one task at the same instant
 * may both find it idle, which only check builds see: their claim is a
 * compare-and-swap. Requests, timers, waits and jobs mark the tasks in them by
 * the same word.
 */
#ifndef PIN_WORKER_TASK_H
#define PIN_WORKER_TASK_H

#include "runtime/base/atomic.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"

#include <pinion/lane.h>
#include <pinion/task.h>

#if defined(PIN_ENABLE_DCHECK) && !defined(PIN_ATOMIC_MODEL)
#define PIN_TASK_CLAIMS_ATOMICALLY 1
#else
#define PIN_TASK_CLAIMS_ATOMICALLY 0
#endif

_Static_assert(sizeof(struct pin_link) <= sizeof(((struct pinion_task *)0)->private_),
	"a link fits into a task");
_Static_assert(sizeof(struct pinion_task) == 32, "released size");

/*
 * The tag on a task's link while it is in a queue; also the kind of a timer on
 * a worker's wheel. The library's own tasks, which are spawned once at a time
 * anyway, may be queued as IDLE. None is 1, so that a spawn compares the kind
 * and the flags of the normal lane at once: pin_task_is_plain_idle().
 */
enum pin_task_kind {
	PIN_TASK_IDLE = 0,	   /* nothing: the task is its user's; a spawn moves it to PLAIN */
	PIN_TASK_PLAIN = 2,	   /* the task itself, to be run; the worker that enters it: IDLE */
	PIN_TASK_TIMER = 3,	   /* the message of a timer: worker/timer.h */
	PIN_TASK_WAIT = 4,	   /* the message of a wait: worker/wait.h */
	PIN_TASK_REQUEST = 5,	   /* the message of a request: worker/request.h */
	PIN_TASK_COMPLETED = 6,	   /* a request that is over: run whatever happens */
	PIN_TASK_FILES = 7,	   /* a worker is to let go of closed files: file_close.c */
	PIN_TASK_DEVICE_QUEUE = 8, /* no task; a timer's: device queue: worker/request.h */
};

enum {
	PIN_TASK_LANES = PINION_TASK_HIGH | PINION_TASK_LOW,
};

static inline enum pinion_lane pin_task_lane(const struct pinion_task *task)
{
	if ((task->flags & PIN_TASK_LANES) == 0) {
		return PINION_LANE_NORMAL;
	}
	PIN_DCHECK((task->flags & PIN_TASK_LANES) != PIN_TASK_LANES); /* refused by spawns */
	return (task->flags & PINION_TASK_HIGH) != 0 ? PINION_LANE_HIGH : PINION_LANE_LOW;
}

/* In check builds another thread's refused claim may write it meanwhile. */
static PIN_INLINE uint32_t pin_task_kind(const struct pinion_task *task)
{
#if PIN_TASK_CLAIMS_ATOMICALLY
	return pin_load_relaxed_u32(
		(const struct pin_atomic_u32 *)(const void *)&task->private_kind);
#else
	return task->private_kind;
#endif
}

/* By its owner; another thread's check whether the task is idle may read it. */
static PIN_INLINE void pin_task_set_kind(struct pinion_task *task, uint32_t kind)
{
	PIN_DCHECK(kind <= PIN_TASK_DEVICE_QUEUE && kind != 1); /* see enum pin_task_kind */
#if PIN_TASK_CLAIMS_ATOMICALLY
	pin_store_relaxed_u32((struct pin_atomic_u32 *)(void *)&task->private_kind, kind);
#else
	task->private_kind = kind;
#endif
}

static inline bool pin_task_is_idle(const struct pinion_task *task)
{
	return pin_task_kind(task) == PIN_TASK_IDLE;
}

/* An idle task of the normal lane, with flags that are known. */
static inline bool pin_task_is_plain_idle(const struct pinion_task *task)
{
	_Static_assert(PINION_TASK_MANDATORY == 1 && PIN_TASK_IDLE == 0, "what is compared");
	return (task->flags | pin_task_kind(task)) <= PINION_TASK_MANDATORY;
}

/* A message, rather than a task to be run. */
static inline bool pin_task_is_message(const struct pinion_task *task)
{
	return pin_task_kind(task) > PIN_TASK_PLAIN;
}

/* For assertions: what a queue that several workers take from may hold. */
static inline bool pin_task_is_runnable(const struct pinion_task *task)
{
	return !pin_task_is_message(task) || pin_task_kind(task) == PIN_TASK_COMPLETED;
}

/*
 * Makes an idle task the runtime's, until a worker enters it. False: it is the
 * runtime's already, or belongs to a timer, request or wait under way.
 */
static PIN_INLINE bool pin_task_claim(struct pinion_task *task)
{
#if PIN_TASK_CLAIMS_ATOMICALLY
	struct pin_atomic_u32 *kind = (struct pin_atomic_u32 *)(void *)&task->private_kind;
	uint32_t idle = PIN_TASK_IDLE;

	return pin_cas_acq_rel_u32(kind, &idle, PIN_TASK_PLAIN);
#else
	if (PIN_UNLIKELY(task->private_kind != PIN_TASK_IDLE)) {
		return false;
	}
	task->private_kind = PIN_TASK_PLAIN;
	return true;
#endif
}

/* The same, for a task that was just seen to be idle. */
static PIN_INLINE bool pin_task_claim_idle(struct pinion_task *task)
{
#if PIN_TASK_CLAIMS_ATOMICALLY
	return pin_task_claim(task);
#else
	PIN_DCHECK(task->private_kind == PIN_TASK_IDLE);
	task->private_kind = PIN_TASK_PLAIN;
	return true;
#endif
}

/*
 * Gives it back: its worker before it enters the task, or a caller whose spawn
 * was refused.
 */
static PIN_INLINE void pin_task_release(struct pinion_task *task)
{
#if PIN_TASK_CLAIMS_ATOMICALLY
	pin_store_release_u32((struct pin_atomic_u32 *)(void *)&task->private_kind, PIN_TASK_IDLE);
#else
	task->private_kind = PIN_TASK_IDLE;
#endif
}

static inline struct pin_link *pin_task_link(struct pinion_task *task)
{
	return (struct pin_link *)(void *)&task->private_;
}

static inline struct pinion_task *pin_task_of(struct pin_link *link)
{
	return PIN_CONTAINER_OF(link, struct pinion_task, private_);
}

#endif
