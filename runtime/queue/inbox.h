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
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/list.h"

struct pin_inbox {
	struct pin_atomic_u64 newest; /* [W:any R:any] */
};

static inline void pin_inbox_push(struct pin_inbox *inbox, struct pin_link *link)
{
	uint64_t newest = pin_load_relaxed_u64(&inbox->newest);

	do {
		PIN_DCHECK((uintptr_t)link != newest); /* it is there already */
		link->next = (struct pin_link *)(uintptr_t)newest;
	} while (!pin_cas_seq_cst_u64(&inbox->newest, &newest, (uintptr_t)link)); /* [INBOX-1] */
}

static inline bool pin_inbox_is_empty(const struct pin_inbox *inbox)
{
	return pin_load_acquire_u64(&inbox->newest) == 0;
}

/* Moves all of it to the end of `out_list`, oldest first. */
static inline void pin_inbox_take(struct pin_inbox *inbox, struct pin_list *out_list)
{
	struct pin_link *link;
	struct pin_link *older = NULL;

	if (pin_inbox_is_empty(inbox)) {
		return;
	}
	link = (struct pin_link *)(uintptr_t)pin_exchange_seq_cst_u64(
		&inbox->newest, 0); /* [INBOX-1] */
	while (link != NULL) {
		struct pin_link *next = link->next;

		link->next = older;
		older = link;
		link = next;
	}
	while (older != NULL) {
		struct pin_link *next = older->next;

		pin_list_push(out_list, older);
		older = next;
	}
}

#endif
