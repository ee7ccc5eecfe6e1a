/* SPDX-License-Identifier: MIT */
/*
 * A worker's own queue: a bounded ring in FIFO order.
 *
 * Only its owner touches it, so it needs no atomics. When it is full the owner
 * takes the older half out in one piece and gives it to the injector, where
 * others find it.
 */
#ifndef PIN_SCHED_DEQUE_H
#define PIN_SCHED_DEQUE_H

#include "runtime/base/base.h"
#include "runtime/base/list.h"

#define PIN_DEQUE_CAPACITY 256u

struct pin_deque {
	uint32_t head; /* [own] next to pop; counts up and wraps */
	uint32_t tail; /* [own] next free */
	struct pin_link *slots[PIN_DEQUE_CAPACITY];
};

void pin_deque_init(struct pin_deque *deque);

static inline uint32_t pin_deque_count(const struct pin_deque *deque)
{
	return deque->tail - deque->head;
}

/* False when full; the element stays with the caller. */
bool pin_deque_push(struct pin_deque *deque, struct pin_link *link);

/* The oldest element, or NULL. */
struct pin_link *pin_deque_pop(struct pin_deque *deque);

/* Moves the older half behind `out_list`; returns how many. */
uint32_t pin_deque_pop_half(struct pin_deque *deque, struct pin_list *out_list);

#endif
