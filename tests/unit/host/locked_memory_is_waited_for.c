/* SPDX-License-Identifier: MIT */
/*
 * Goal: a thread that is refused locked memory asks again only where that can
 * help, and not forever. G6.
 * Method: pin_locked_await() under limits above and below the requested amount.
 */
#include "runtime/host/kernel.h"
#include "tests/support/expect.h"
#include "tests/support/runtimes.h"

#include <sys/resource.h>

enum {
	LIMIT_BYTES = 65536,
	TRIES = 7, /* 1 to 64 ms: kernel.c */
	MANY = 1000,
	LIMIT_SECONDS = 60,
};

int main(void)
{
	struct rlimit limit;
	uint32_t tries = 0;
	uint32_t count = 0;

	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("limit", getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	if (limit.rlim_cur == RLIM_INFINITY) {
		expect_true("no limit", !pin_locked_await(1, &tries));
	}
	limit.rlim_cur = limit.rlim_max < LIMIT_BYTES ? limit.rlim_max : LIMIT_BYTES;
	expect_ready("lower limit", setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
	expect_true("more than the limit", !pin_locked_await(limit.rlim_cur + 1, &tries));
	expect_number("slept", 0, tries);
	while (count < MANY && pin_locked_await(limit.rlim_cur, &tries)) {
		count++;
	}
	expect_number("asked again within the limit", TRIES, count);
	expect_number("each counted", count, tries);
	expect_true("no more", !pin_locked_await(limit.rlim_cur, &tries));
	return expect_status();
}
