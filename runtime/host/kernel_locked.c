/* SPDX-License-Identifier: MIT */
/* See kernel_locked.c. */
#include "runtime/host/kernel.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>

enum {
	/* 1, 2, 4 … 64 ms. */
	TRIES_MAX = 7,
	FIRST_NS = 1000000,
};

bool pin_locked_await(uint64_t bytes, uint32_t *tries)
{
	struct timespec pause = {.tv_nsec = (long)FIRST_NS << *tries};
	struct rlimit limit;

	if (*tries >= TRIES_MAX || getrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
		limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur < bytes) {
		return false;
	}
	(*tries)++;
	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, &pause) == EINTR) {
	}
	return true;
}
