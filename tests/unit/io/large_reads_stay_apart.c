/* SPDX-License-Identifier: MIT */
/*
 * Goal: large transfers past the page cache leave for the kernel two at a time,
 * so it merges none of them with its neighbour on the disk; small ones, and
 * large ones through the cache, are gathered until the next poll. All end with
 * the requested bytes. G2.
 * Method: white box: requests on a ring of our own, and its count of entries
 * that were not submitted yet. The file alone says whether it is read past the
 * cache.
 */
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <unistd.h>

enum {
	REQUESTS = 7,
	LARGE_MIN = 128 << 10,
	LARGE = 1 << 20,
	SMALL_MAX = 124 << 10,
	SMALL = 4096,
	ALIGN = 4096,
};

static struct pin_ring ring;
static struct pinion_file file;
static struct pinion_request requests[REQUESTS];
static uint8_t bytes[REQUESTS][LARGE] __attribute__((aligned(ALIGN)));

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void end(void *arg, uint64_t user_data, int32_t result)
{
	uint32_t *count = arg;

	if (pin_request_complete(&ring, user_data, result) != NULL) {
		(*count)++;
	}
}

/* The most that had gathered after any of them. */
static uint32_t submit_all(uint32_t length_bytes, bool is_direct)
{
	uint32_t ended_count = 0;
	uint32_t gathered_max = 0;

	file.is_direct = is_direct;
	for (uint32_t i = 0; i < REQUESTS; i++) {
		requests[i] = (struct pinion_request){
			.task.run = never_run,
			.file = &file,
			.bytes = bytes[i],
			.offset_bytes = (uint64_t)i * length_bytes,
			.length_bytes = length_bytes,
		};
		expect_number("check", 0, pin_request_check(&requests[i]));
		expect_true("submit", pin_request_submit(&ring, &requests[i]));
		if (pin_ring_unsubmitted(&ring) > gathered_max) {
			gathered_max = pin_ring_unsubmitted(&ring);
		}
	}
	while (ended_count < REQUESTS) {
		pin_ring_poll(&ring, end, &ended_count);
	}
	for (uint32_t i = 0; i < REQUESTS; i++) {
		expect_number("result", length_bytes, requests[i].result);
	}
	return gathered_max;
}

int main(void)
{
	int fd;

	rings_require();
	scratch_enter("large_reads_stay_apart");
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0 && ftruncate(fd, (off_t)REQUESTS * LARGE) == 0);
	file.fd = fd;
	file.memory_align_bytes = ALIGN;
	file.offset_align_bytes = ALIGN;
	file.size_bytes = (uint64_t)REQUESTS * LARGE;
	expect_number("init", 0, rings_init(&ring, &pin_host_linux, 64));
	expect_number("large, direct", 1, submit_all(LARGE, true));
	expect_number("large, cached", REQUESTS, submit_all(LARGE, false));
	expect_number("just large, direct", 1, submit_all(LARGE_MIN, true));
	expect_number("just small, direct", REQUESTS, submit_all(SMALL_MAX, true));
	expect_number("small, direct", REQUESTS, submit_all(SMALL, true));
	pin_ring_fini(&ring);
	close(fd);
	scratch_leave();
	return expect_status();
}
