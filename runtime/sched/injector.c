/* SPDX-License-Identifier: MIT */
/*
 * The shared queue behind a lock.
 */
#include "runtime/sched/injector.h"
#include "runtime/base/check.h"

void pin_injector_init(struct pin_injector *injector, const struct pin_host *host)
{
	*injector = (struct pin_injector){.host = host};
}

void pin_injector_push(struct pin_injector *injector, struct pin_list *list, uint64_t count)
{
	if (count == 0) {
		return;
	}
	pin_lock_acquire(&injector->lock, injector->host);
	pin_list_append(&injector->list, list);
	pin_store_release_u64(&injector->length,
		pin_load_relaxed_u64(&injector->length) + count); /* [INJECT-1] */
	pin_lock_release(&injector->lock, injector->host);
}

struct pin_link *pin_injector_pop(struct pin_injector *injector, uint64_t *out_left)
{
	struct pin_link *link;
	uint64_t length;

	*out_left = 0;
	if (pin_injector_length(injector) == 0) {
		return NULL;
	}
	pin_lock_acquire(&injector->lock, injector->host);
	link = pin_list_pop(&injector->list);
	length = pin_load_relaxed_u64(&injector->length);
	PIN_CHECK((link == NULL) == (length == 0));
	if (link != NULL) {
		*out_left = length - 1;
		pin_store_release_u64(&injector->length, length - 1);
	}
	pin_lock_release(&injector->lock, injector->host);
	return link;
}
