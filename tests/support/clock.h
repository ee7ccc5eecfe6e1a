/* SPDX-License-Identifier: MIT */
/*
 * Stands in for clock_gettime() in the program that includes it, so that a test
 * sets the time of a thread by hand. What the library measures on that thread
 * is then exact; all others have the machine's time.
 */
#ifndef PIN_TESTS_SUPPORT_CLOCK_H
#define PIN_TESTS_SUPPORT_CLOCK_H

#include "tests/support/tasks.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The monotonic time of this thread; 0: the machine's. */
static _Thread_local uint64_t clock_own_ns;

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
	if (clock != CLOCK_MONOTONIC || clock_own_ns == 0) {
		return (int)syscall(SYS_clock_gettime, clock, out_time);
	}
	*out_time = (struct timespec){
		.tv_sec = (time_t)(clock_own_ns / 1000000000),
		.tv_nsec = (long)(clock_own_ns % 1000000000),
	};
	return 0;
}

static inline void clock_hold(struct tasks_hold *hold)
{
	(void)hold;
	clock_own_ns = pinion_clock_now_ns();
}

/* From now on worker `worker_index` has a stopped clock. */
static inline void clock_stop(struct pinion_runtime *runtime, uint32_t worker_index)
{
	struct tasks_hold hold = {.prepare = clock_hold};

	tasks_hold_begin(&hold, runtime, worker_index);
	tasks_hold_end(&hold);
}

#endif
