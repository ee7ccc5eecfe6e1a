/* SPDX-License-Identifier: MIT */
/*
 * The unread ranges of a file: the gaps of its windows, joined. A range that
 * crosses windows is one again, so the list does not depend on where windows
 * begin. Windows come in any order and from any thread.
 */
#ifndef PINION_TOOLS_GAPS_H
#define PINION_TOOLS_GAPS_H

#include <pinion/scan.h>
#include <pthread.h>

/* One file's. All zero before gaps_init(). */
struct gaps {
	pthread_mutex_t lock; /* guards what follows */
	struct pinion_gap *items;
	size_t count;
	size_t capacity;
};

void gaps_init(struct gaps *gaps);
void gaps_fini(struct gaps *gaps);

/* Adds the gaps in a window's new bytes. Returns 0 or -ENOMEM. */
int gaps_add(struct gaps *gaps, const struct pinion_window *window);

/* Sorts them and joins neighbours; after the last window. */
void gaps_join(struct gaps *gaps);

#endif
