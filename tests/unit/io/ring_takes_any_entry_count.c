/* SPDX-License-Identifier: MIT */
/*
 * Goal: every ring_entries that the configuration allows makes a ring whose
 * credit stays below its completion queue. G1.
 * Method: each power of two from 8 to 32768, in a child because a broken
 * invariant aborts.
 */
#include "tests/support/child.h"
#include "tests/support/rings.h"

enum {
	ENTRIES_MAX = 32768,
};

static int make_ring(void *arg)
{
	struct pin_ring ring;
	int rc = rings_init(&ring, &pin_host_linux, *(uint32_t *)arg);

	if (rc == -ENOMEM) {
		return EXPECT_SKIPPED;
	}
	if (rc == 0) {
		expect_true("credit is less than the completion queue",
			ring.credit < ring.uring.cq.ring_entries);
		rings_end(&ring);
	}
	expect_number("init", 0, rc);
	return expect_status();
}

int main(void)
{
	rings_require();
	for (uint32_t entries = 8; entries <= ENTRIES_MAX; entries *= 2) {
		char output[512];
		int code = child_code(child_run(make_ring, &entries, output, sizeof(output)));

		if (code != 0 && code != EXPECT_SKIPPED) {
			printf("ring of %u entries: expected exit status 0, got %d: %s\n", entries,
				code, output);
			expect_failure_count++;
		}
	}
	return expect_status();
}
