/* SPDX-License-Identifier: MIT */
/*
 * What a future consists of. All of it is protected by the lock of its waiters,
 * also the mere question whether it is done: whoever hears "yes" has had that
 * lock after the one who made it so, who touches the future no more.
 */
#ifndef PIN_TASK_FUTURE_H
#define PIN_TASK_FUTURE_H

#include "runtime/worker/wait.h"

#include <pinion/future.h>

struct pin_future {
	struct pin_waiters waiters;
	struct pinion_runtime *runtime; /* [const] may be NULL */
	/* [lock:waiters] */
	pinion_future_release_fn release; /* NULL: not detached */
	uint8_t value[PINION_FUTURE_BYTES];
	int32_t error; /* of one that is done; 0: the value counts */
	bool is_done;
};

static inline struct pin_future *pin_future_of(struct pinion_future *future)
{
	return (struct pin_future *)(void *)future->private_;
}

_Static_assert(sizeof(struct pin_future) <= sizeof(struct pinion_future), "fits");
_Static_assert(sizeof(struct pinion_future) == 128, "released size");
_Static_assert(sizeof(struct pinion_future_callback) == 96, "released size");
_Static_assert(sizeof(struct pin_waiter) <= sizeof(((struct pinion_future_callback *)0)->private_),
	"a waiter fits into a callback");

#endif
