/* SPDX-License-Identifier: MIT */
/*
 * The inbox: where others leave tasks that one worker, and no other, is to run.
 *
 * A stack to push on, which its worker takes whole and turns round, so what one
 * thread pushed comes out in the order it was pushed.
 *
 * Progress: push is lock-free, take is wait-free. Any thread pushes, the worker
 * takes.
 *
 * [INBOX-1] push (CAS) -> take (exchange): the worker sees all writes before
 * the push. [PARK-1] orders a push against a worker that goes to sleep.
 */
#ifndef PIN_QUEUE_INBOX_H
#define PIN_QUEUE_INBOX_H

#include "runtime/base/atomic.h"
#include "runtime/base/list.h"

struct pin_inbox {
	struct pin_atomic_u64 newest; /* [W:any R:any] */
};

void pin_inbox_push(struct pin_inbox *inbox, struct pin_link *link);

static inline bool pin_inbox_is_empty(const struct pin_inbox *inbox)
{
	return pin_load_acquire_u64(&inbox->newest) == 0;
}

/* Moves all of it to the end of `out_list`, oldest first. */
void pin_inbox_take(struct pin_inbox *inbox, struct pin_list *out_list);

#endif
