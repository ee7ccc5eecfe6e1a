/* SPDX-License-Identifier: MIT */
/*
 * The worker's own bounded FIFO ring.
 */
#include "runtime/sched/deque.h"
#include "runtime/base/check.h"

_Static_assert((PIN_DEQUE_CAPACITY & (PIN_DEQUE_CAPACITY - 1)) == 0, "indices are masked");

static uint32_t slot_index(uint32_t position)
{
	return position & (PIN_DEQUE_CAPACITY - 1);
}

void pin_deque_init(struct pin_deque *deque)
{
	deque->head = 0;
	deque->tail = 0;
}

bool pin_deque_push(struct pin_deque *deque, struct pin_link *link)
{
	PIN_DCHECK(link != NULL);
	if (pin_deque_count(deque) == PIN_DEQUE_CAPACITY) {
		return false;
	}
	deque->slots[slot_index(deque->tail)] = link;
	deque->tail++;
	return true;
}

struct pin_link *pin_deque_pop(struct pin_deque *deque)
{
	struct pin_link *link;

	if (deque->head == deque->tail) {
		return NULL;
	}
	link = deque->slots[slot_index(deque->head)];
	deque->head++;
	return link;
}

uint32_t pin_deque_pop_half(struct pin_deque *deque, struct pin_list *out_list)
{
	uint32_t count = pin_deque_count(deque) / 2;

	for (uint32_t i = 0; i < count; i++) {
		pin_list_push(out_list, pin_deque_pop(deque));
	}
	return count;
}
