/* SPDX-License-Identifier: MIT */
/*
 * The one global of the library: how often this process's line has forked.
 */
#include "runtime/host/process.h"
#include "runtime/base/check.h"

#include <pthread.h>

struct pin_atomic_u32 pin_forked_count;

enum {
	/* One for each part of the library that a child has to forget. */
	WATCHERS_MAX = 4,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*watchers[WATCHERS_MAX])(void); /* [lock:lock] */

/* In the child, which has this one thread. Nobody forks while it is held. */
static void note_fork(void)
{
	pin_store_relaxed_u32(&pin_forked_count, pin_load_relaxed_u32(&pin_forked_count) + 1);
	for (uint32_t i = 0; i < WATCHERS_MAX && watchers[i] != NULL; i++) {
		watchers[i]();
	}
	pthread_mutex_unlock(&lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch(void)
{
	pthread_atfork(before_fork, after_fork, note_fork);
}

void pin_forked_watch(void (*in_child)(void))
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint32_t i = 0;

	pthread_mutex_lock(&lock);
	while (watchers[i] != NULL && watchers[i] != in_child) {
		i++;
		PIN_CHECK(i < WATCHERS_MAX);
	}
	watchers[i] = in_child;
	pthread_mutex_unlock(&lock);
	pthread_once(&once, watch);
}
