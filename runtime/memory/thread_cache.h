/* SPDX-License-Identifier: MIT */
/*
 * What a thread remembers of the pool it used last, so that the next use finds
 * its short way by one comparison. Pools are told by their numbers, which are
 * never used again; 0: nothing is remembered.
 */
#ifndef PIN_MEMORY_THREAD_CACHE_H
#define PIN_MEMORY_THREAD_CACHE_H

#include "runtime/memory/pool.h"

struct pin_recent {
	/* In which it has a cache, and the short way to it. */
	uint64_t number;
	struct pin_magazine *magazine;
	uint32_t cache;
	/* In which it has none; inverted: one without a short way. */
	uint64_t without;
	/* If that has a short way: what the thread did there last. */
	struct pin_pool_listed listed;
};

extern _Thread_local struct pin_recent pin_recent PIN_TLS_INITIAL;

/* In a forked child, and as a worker's thread ends: its caches are no more. */
void pin_recent_forget(void);

#endif
