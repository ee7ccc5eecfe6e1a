/* SPDX-License-Identifier: MIT */
/*
 * A ring of waiting lines, indexed by sequence, that doubles when a line comes
 * from further ahead than it reaches.
 */
#include "tools/sum/order.h"

#include "tools/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 1024 };

static struct order_slot *slot_of(const struct order *order, uint64_t sequence)
{
	return &order->slots[sequence & (order->capacity - 1)];
}

int order_init(struct order *order)
{
	*order = (struct order){.lock = PTHREAD_MUTEX_INITIALIZER, .capacity = FIRST_CAPACITY};
	order->slots = calloc(FIRST_CAPACITY, sizeof(*order->slots));
	return order->slots == NULL ? -ENOMEM : 0;
}

void order_fini(struct order *order)
{
	if (order->slots != NULL) {
		for (size_t i = 0; i < order->capacity; i++) {
			free(order->slots[i].item);
			free(order->slots[i].text);
		}
		free(order->slots);
		order->slots = NULL;
		pthread_mutex_destroy(&order->lock);
	}
}

/* Makes the ring reach `sequence`. The lock is held. */
static int order_reach(struct order *order, uint64_t sequence)
{
	size_t capacity = order->capacity;
	struct order_slot *slots;

	while (sequence - order->front >= capacity) {
		if (capacity > SIZE_MAX / 2 / sizeof(*slots)) {
			return -ENOMEM;
		}
		capacity *= 2;
	}
	if (capacity == order->capacity) {
		return 0;
	}
	slots = calloc(capacity, sizeof(*slots));
	if (slots == NULL) {
		return -ENOMEM;
	}
	for (uint64_t i = order->front; i < order->front + order->capacity; i++) {
		slots[i & (capacity - 1)] = *slot_of(order, i);
	}
	free(order->slots);
	order->slots = slots;
	order->capacity = capacity;
	return 0;
}

int order_attach(struct order *order, uint64_t sequence, void *item)
{
	int error;

	pthread_mutex_lock(&order->lock);
	error = order_reach(order, sequence);
	if (error == 0) {
		slot_of(order, sequence)->item = item;
	}
	pthread_mutex_unlock(&order->lock);
	return error;
}

void *order_item(struct order *order, uint64_t sequence)
{
	void *item = NULL;

	pthread_mutex_lock(&order->lock);
	if (sequence - order->front < order->capacity) {
		item = slot_of(order, sequence)->item;
	}
	pthread_mutex_unlock(&order->lock);
	return item;
}

/* Empties the slot of `front` and moves on. */
static void order_advance(struct order *order)
{
	struct order_slot *slot = slot_of(order, order->front);

	free(slot->item);
	free(slot->text);
	*slot = (struct order_slot){0};
	order->front++;
}

/* Keeps a line that came early. False: there is no memory for it. */
static bool order_keep(struct order *order, uint64_t sequence, const char *text, size_t length)
{
	struct order_slot *slot;

	if (order_reach(order, sequence) != 0) {
		return false;
	}
	slot = slot_of(order, sequence);
	slot->is_filled = true;
	if (length == 0) {
		return true;
	}
	slot->text = malloc(length);
	if (slot->text == NULL) {
		return false;
	}
	memcpy(slot->text, text, length);
	slot->length = length;
	return true;
}

void order_put(struct order *order, uint64_t sequence, const char *text, size_t length)
{
	pthread_mutex_lock(&order->lock);
	if (sequence != order->front) {
		if (!order_keep(order, sequence, text, length)) {
			order->has_lost = true;
		}
		pthread_mutex_unlock(&order->lock);
		return;
	}
	output_write(text, length);
	order_advance(order);
	while (slot_of(order, order->front)->is_filled) {
		output_write(
			slot_of(order, order->front)->text, slot_of(order, order->front)->length);
		order_advance(order);
	}
	pthread_mutex_unlock(&order->lock);
}
