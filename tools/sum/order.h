/* SPDX-License-Identifier: MIT */
/*
 * Lines on standard output in the order in which their paths were added,
 * though files end in any order.
 *
 * A line that comes too early waits here, so memory grows with the number of
 * files that end while an earlier one is still being read: about the length of
 * the line plus 48 bytes each. The scan bounds that number: some 150 MB for the
 * most small files after a huge one. No thread waits here for room, so this
 * cannot deadlock.
 *
 * Invariant: at most slots[front … front + capacity) are in use; lines before
 * `front` are written, and the slot of `front` itself is not filled.
 */
#ifndef PINION_TOOLS_SUM_ORDER_H
#define PINION_TOOLS_SUM_ORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the scan: paths_ahead_max. */
enum { ORDER_PATHS_MAX = 1 << 20 };

struct order_slot {
	void *item; /* attached, owned */
	char *text;
	size_t length;
	bool is_filled;
};

struct order {
	pthread_mutex_t lock;
	uint64_t front;	 /* sequence of the next line to write */
	size_t capacity; /* a power of two */
	struct order_slot *slots;
	bool has_lost; /* memory ran out and a line is missing */
};

/* Returns 0 or -ENOMEM. */
int order_init(struct order *order);

/* Frees what it holds. The next line after order_init() has sequence 0. */
void order_fini(struct order *order);

/*
 * Keeps something for a sequence until its line is put. `item` is malloc'ed
 * and belongs to the order on success. Returns 0 or -ENOMEM.
 */
int order_attach(struct order *order, uint64_t sequence, void *item);

/* The attached item, or NULL. Valid until the line is put. */
void *order_item(struct order *order, uint64_t sequence);

/*
 * Hands in the line of a sequence, once for each, from any thread; nothing
 * when length is 0. Writes it and all that waited for it, or keeps a copy.
 */
void order_put(struct order *order, uint64_t sequence, const char *text, size_t length);

#endif
