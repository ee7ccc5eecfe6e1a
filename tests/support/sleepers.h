/* SPDX-License-Identifier: MIT */
/*
 * Workers that really sleep. A worker in the set of the parked searches for
 * work once more before it sleeps, and may find tasks that a test spawns
 * meanwhile; of a worker that the kernel has put to sleep the next sign is a
 * wake.
 */
#ifndef PIN_TESTS_SUPPORT_SLEEPERS_H
#define PIN_TESTS_SUPPORT_SLEEPERS_H

#include "tests/support/expect.h"
#include "tests/support/idle.h"
#include "tests/support/threads.h"

#include "runtime/worker/state.h"
#include "runtime/worker/wake.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

/* But for the first one and the caller's. */
static inline bool sleepers_are_all_threads(void)
{
	long own = gettid();
	long first = getpid();
	DIR *entries = opendir("/proc/self/task");
	const struct dirent *entry;
	bool all = true;

	expect_ready("/proc/self/task", entries != NULL);
	while (all && (entry = readdir(entries)) != NULL) {
		long id = strtol(entry->d_name, NULL, 10);
		char state = 0;

		if (id != 0 && id != own && id != first) {
			state = threads_look(entry->d_name).state;
		}
		all = state == 0 || state == 'S';
	}
	closedir(entries);
	return all;
}

/*
 * Returns when `count` workers of this class sleep and none of it searches. All
 * threads of the process but the first, the caller's and the sleepers have to
 * be asleep as well.
 */
static inline void sleepers_await(const struct pin_worker_class *worker_class, uint32_t count)
{
	const struct pin_idle *parked = worker_class->parked;

	do {
		sched_yield();
	} while (idle_count(&parked[PIN_PARKED_FUTEX]) + idle_count(&parked[PIN_PARKED_RING]) <
			count ||
		pin_load_acquire_u32(&worker_class->searching) != 0 || !sleepers_are_all_threads());
}

#endif
