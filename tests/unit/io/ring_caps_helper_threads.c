/* SPDX-License-Identifier: MIT */
/*
 * Goal: the kernel may start no more threads for a ring than its options say,
 * of either kind, so that opening cold files never starts hundreds.
 * docs/decisions/workers.md, "The kernel's helper threads stay on their
 * worker's node". G7.
 * Method: the kernel is asked for the limits in force.
 */
#include "tests/support/rings.h"

static void check(uint32_t helper_count)
{
	struct pin_ring_options options = {
		.entries = 8,
		.helper_count = helper_count,
		.kernel = &rings_kernel,
	};
	/* Zeros change nothing and ask. */
	uint32_t limits[2] = {0, 0};
	struct pin_ring ring;

	expect_number("init", 0,
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log));
	expect_number("ask", 0, io_uring_register_iowq_max_workers(&ring.uring, limits));
	expect_number("for files", helper_count, limits[0]);
	expect_number("for all else", helper_count, limits[1]);
	rings_end(&ring);
}

int main(void)
{
	rings_require();
	check(1);
	check(3);
	check(16);
	return expect_status();
}
