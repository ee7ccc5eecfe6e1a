/* SPDX-License-Identifier: MIT */
/*
 * A record for each thread that uses the library: found by a thread-specific
 * key, freed when the thread ends.
 *
 * Pools and jobs keep their per-thread state in it, so that it takes no
 * thread-local memory, which is scarce for libraries that are loaded late.
 */
#include "runtime/base/thread.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

/* [const] from the library's load on. */
static pthread_key_t key;
static bool has_key;

/*
 * Destructors run in rounds while they set new values, in no promised order
 * within a round. The record stays for all rounds but the last.
 */
static void end(void *arg)
{
	struct pin_thread *thread = arg;

	PIN_DCHECK(thread->guard == NULL);
	PIN_DCHECK(
		thread->destructor_rounds < PTHREAD_DESTRUCTOR_ITERATIONS); /* else it is freed */
	thread->destructor_rounds++;
	if (thread->destructor_rounds >= PTHREAD_DESTRUCTOR_ITERATIONS ||
		pthread_setspecific(key, thread) != 0) {
		free(thread);
	}
}

__attribute__((constructor)) static void create_key(void)
{
	has_key = pthread_key_create(&key, end) == 0;
}

struct pin_thread *pin_thread_find(void)
{
	return has_key ? pthread_getspecific(key) : NULL;
}

int pin_thread_provide(struct pin_thread *thread)
{
	PIN_DCHECK(thread->guard == NULL && thread->destructor_rounds == 0); /* it is zeroed */
	if (pin_thread_find() != NULL) {
		return 0;
	}
	return has_key && pthread_setspecific(key, thread) == 0 ? 0 : -ENOMEM;
}

void pin_thread_take_back(struct pin_thread *thread)
{
	if (pin_thread_find() == thread) {
		int rc = pthread_setspecific(key, NULL);

		PIN_CHECK(rc == 0); /* else the destructor would free the caller's memory */
	}
}

struct pin_thread *pin_thread_own(void)
{
	struct pin_thread *thread = pin_thread_find();

	if (thread == NULL && has_key) {
		thread = calloc(1, sizeof(*thread));
		if (thread != NULL && pthread_setspecific(key, thread) != 0) {
			free(thread);
			thread = NULL;
		}
	}
	return thread;
}
