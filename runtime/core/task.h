/* SPDX-License-Identifier: MIT */
/*
 * A task's private words: the link by which it is queued.
 */
#ifndef PIN_CORE_TASK_H
#define PIN_CORE_TASK_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"

#include <pinion/task.h>

_Static_assert(sizeof(struct pin_link) <= sizeof(((struct pinion_task *)0)->private_),
	"a link fits into a task");
_Static_assert(sizeof(struct pinion_task) == 32, "released size");

static inline struct pin_link *pin_task_link(struct pinion_task *task)
{
	return (struct pin_link *)(void *)&task->private_;
}

static inline struct pinion_task *pin_task_of(struct pin_link *link)
{
	return PIN_CONTAINER_OF(link, struct pinion_task, private_);
}

#endif
