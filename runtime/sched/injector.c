/* SPDX-License-Identifier: MIT */
/*
 * The shared queue behind a lock.
 */
#include "runtime/sched/injector.h"
#include "runtime/base/check.h"

enum {
	BATCH_MIN = 4,
	BATCH_MAX = 64,
};

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

static uint32_t batch_of(uint64_t length, uint32_t share_count, uint32_t room)
{
	uint64_t count = length / share_count;

	if (count < BATCH_MIN) {
		count = BATCH_MIN;
	}
	if (count > BATCH_MAX) {
		count = BATCH_MAX;
	}
	if (count > room) {
		count = room;
	}
	return (uint32_t)(count < length ? count : length);
}

uint32_t pin_injector_pop(struct pin_injector *injector, uint32_t share_count, uint32_t room,
	struct pin_list *out_list, uint64_t *out_left)
{
	uint64_t length;
	uint32_t count;

	*out_left = 0;
	if (pin_injector_length(injector) == 0) {
		return 0;
	}
	pin_lock_acquire(&injector->lock, injector->host);
	length = pin_load_relaxed_u64(&injector->length);
	count = batch_of(length, share_count, room);
	for (uint32_t i = 0; i < count; i++) {
		struct pin_link *link = pin_list_pop(&injector->list);

		PIN_CHECK(link != NULL);
		pin_list_push(out_list, link);
	}
	*out_left = length - count;
	pin_store_release_u64(&injector->length, length - count);
	pin_lock_release(&injector->lock, injector->host);
	return count;
}
