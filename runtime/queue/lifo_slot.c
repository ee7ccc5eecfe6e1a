/* SPDX-License-Identifier: MIT */
/*
 * The thief's side of the LIFO slot.
 */
#include "runtime/queue/lifo_slot.h"

struct pin_link *pin_lifo_steal(struct pin_lifo *lifo, const struct pin_host *host)
{
	struct pin_link *link = NULL;

	if (pin_lifo_is_empty(lifo) ||
		(pin_fetch_or_seq_cst_u32(&lifo->closed, PIN_LIFO_THIEF) & PIN_LIFO_THIEF) != 0) {
		return NULL;
	}
	if (host->fence_all() && pin_load_acquire_u32(&lifo->busy) == 0) { /* [LIFO-1] */
		link = (struct pin_link *)(uintptr_t)pin_load_relaxed_u64(&lifo->link);
		pin_store_relaxed_u64(&lifo->link, 0);
	}
	pin_fetch_and_seq_cst_u32(&lifo->closed, ~PIN_LIFO_THIEF); /* [LIFO-2] */
	return link;
}
