/* SPDX-License-Identifier: MIT */
/*
 * The one global of the library: how often this process's line has forked.
 */
#include "runtime/core/forked.h"

#include <pthread.h>

struct pin_atomic_u32 pin_forked_count;

static void (*call_in_child)(void);

static void note_fork(void)
{
	pin_store_relaxed_u32(&pin_forked_count, pin_load_relaxed_u32(&pin_forked_count) + 1);
	call_in_child();
}

static void watch(void)
{
	pthread_atfork(NULL, NULL, note_fork);
}

void pin_forked_watch(void (*in_child)(void))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	/* The same one each time. */
	call_in_child = in_child;
	pthread_once(&once, watch);
}
