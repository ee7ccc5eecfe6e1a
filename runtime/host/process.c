/* SPDX-License-Identifier: MIT */
/*
 * Counts forks: a handler adds 1 in each child. A runtime keeps the count that
 * it was created at, so a call in a child finds another number and knows that
 * the runtime is its parent's.
 */
#include "runtime/host/process.h"
#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

#include <pthread.h>

struct pin_atomic_u32 pin_forked_count;

enum {
	/* One for each part of the library that resets its state in a child. */
	WATCHERS_MAX = 5,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*watchers[WATCHERS_MAX])(void); /* [lock:lock] */

/* Runs in the child, which has one thread and holds `lock`: before_fork(). */
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

	PIN_CHECK(in_child != NULL); /* it ends the list */
	pthread_mutex_lock(&lock);
	while (watchers[i] != NULL && watchers[i] != in_child) {
		i++;
		PIN_CHECK(i < WATCHERS_MAX);
	}
	watchers[i] = in_child;
	pthread_mutex_unlock(&lock);
	pthread_once(&once, watch);
}

void pin_fork_block(void)
{
	pthread_mutex_lock(&lock);
}

void pin_fork_unblock(void)
{
	pthread_mutex_unlock(&lock);
}

/* ---- CPU claims ---- */

/*
 * One count for each core; cores beyond are never taken.
 */

enum { CORES_MAX = 4096 };

/*
 * Workers bound to each. Relaxed: a guess of shared cores, nothing is ordered
 * by it.
 */
static struct pin_atomic_u32 taken[CORES_MAX]; /* [W:any R:any] */

static uint32_t count_taken(const struct pin_cpu_place *place)
{
	return place->core_index < CORES_MAX ? pin_load_relaxed_u32(&taken[place->core_index]) : 0;
}

/* By insertion, which keeps the order of equals; there are few places. */
void pin_cpu_claims_sort(struct pin_cpu_place *places, uint32_t count)
{
	PIN_DCHECK(count == 0 || places != NULL);
	for (uint32_t i = 1; i < count; i++) {
		struct pin_cpu_place place = places[i];
		uint32_t place_taken = count_taken(&place);
		uint32_t j = i;

		while (j > 0 && count_taken(&places[j - 1]) > place_taken) {
			places[j] = places[j - 1];
			j--;
		}
		places[j] = place;
	}
}

void pin_cpu_claims_take(const struct pin_cpu_place *place)
{
	if (place->core_index < CORES_MAX) {
		uint32_t before = pin_fetch_add_relaxed_u32(&taken[place->core_index], 1);

		PIN_CHECK(before < UINT32_MAX);
	}
}

void pin_cpu_claims_leave(const struct pin_cpu_place *place)
{
	if (place->core_index < CORES_MAX) {
		uint32_t before = pin_fetch_add_relaxed_u32(&taken[place->core_index], UINT32_MAX);

		PIN_CHECK(before > 0);
	}
}

void pin_cpu_claims_forget(void)
{
	for (uint32_t i = 0; i < CORES_MAX; i++) {
		pin_store_relaxed_u32(&taken[i], 0);
	}
}
