/* SPDX-License-Identifier: MIT */
/*
 * A task's private words: the link by which it is queued.
 */
#ifndef PIN_CORE_TASK_H
#define PIN_CORE_TASK_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"

#include <pinion/lane.h>
#include <pinion/task.h>

_Static_assert(sizeof(struct pin_link) <= sizeof(((struct pinion_task *)0)->private_),
	"a link fits into a task");
_Static_assert(sizeof(struct pinion_task) == 32, "released size");

/*
 * What a task's link carries while it stands in a queue; also whose a timer on
 * a worker's wheel is.
 */
enum pin_task_kind {
	PIN_TASK_PLAIN = 0,   /* itself, to be run */
	PIN_TASK_TIMER = 1,   /* the message of a timer: core/timer.h */
	PIN_TASK_WAIT = 2,    /* the message of a wait: core/wait.h */
	PIN_TASK_REQUEST = 3, /* the message of a request: core/flight.h */
	PIN_TASK_LANDED = 4,  /* a request that is over: run whatever happens */
	PIN_TASK_FILES = 5,   /* a worker is to let go of closed files: core/files.h */
	PIN_TASK_TOLL = 6,    /* no task; a timer's: the time of a line-up: core/throttle.h */
};

enum {
	PIN_TASK_LANES = PINION_TASK_HIGH | PINION_TASK_LOW,
};

static inline enum pinion_lane pin_task_lane(const struct pinion_task *task)
{
	if ((task->flags & PIN_TASK_LANES) == 0) {
		return PINION_LANE_NORMAL;
	}
	return (task->flags & PINION_TASK_HIGH) != 0 ? PINION_LANE_HIGH : PINION_LANE_LOW;
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
