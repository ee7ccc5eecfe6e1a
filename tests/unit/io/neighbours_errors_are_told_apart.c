/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read that fails for its sectors is tried once more, in an enter of
 * its own, so that the kernel makes it one request with no other: sound sectors
 * then come. G4. Hazard that others met: the kernel submits neighbours on the
 * disk as one request, so that a bad sector of either read fails both; reads of
 * one piece of the page cache fail together as well.
 * Method: white box: reads of a file of pages, once said to go past the cache,
 * once through it, end with made-up errors the first time.
 */
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <errno.h>

enum {
	READS = 3,
	LENGTH = 4096,
	LIMIT_SECONDS = 60,
};

static struct pin_ring ring;
static struct pinion_file file;
static struct pinion_request requests[READS];
static uint8_t bytes[READS][LENGTH] __attribute__((aligned(LENGTH)));
static uint32_t completed_count;
static uint32_t ended_count;

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static uint64_t enters(void)
{
	return pin_meter_read(&rings_meter.ring_enters);
}

/* Each fails the first time, whatever it has read. */
static void deliver(void *arg, uint64_t user_data, int32_t result)
{
	bool fails = completed_count < READS;
	uint64_t before = enters();

	(void)arg;
	completed_count++;
	if (pin_request_complete(&ring, user_data, fails ? -EIO : result) != NULL) {
		expect_true("it was tried twice", !fails);
		ended_count++;
		return;
	}
	expect_true("it is tried once more", fails);
	expect_number("at once", 0, pin_ring_unsubmitted(&ring));
	expect_number("in an enter of its own", 1, (long long)(enters() - before));
}

static void submit_all(void)
{
	for (uint32_t i = 0; i < READS; i++) {
		requests[i] = (struct pinion_request){
			.task.run = never_run,
			.op = PINION_OP_READ,
			.file = &file,
			.bytes = bytes[i],
			.offset_bytes = (uint64_t)i * LENGTH,
			.length_bytes = LENGTH,
		};
		expect_number("check", 0, pin_request_check(&requests[i]));
		pin_request_reset(&requests[i]);
		expect_true("submit", pin_request_submit(&ring, &requests[i]));
	}
	expect_number("together", READS, pin_ring_unsubmitted(&ring));
}

static void try(bool is_direct)
{
	file.is_direct = is_direct;
	completed_count = ended_count = 0;
	memset(bytes, 0, sizeof(bytes));
	expect_ready("ring", rings_init(&ring, &pin_host_linux, 64) == 0);
	submit_all();
	while (ended_count < READS) {
		pin_ring_poll(&ring, deliver, NULL);
	}
	for (uint32_t i = 0; i < READS; i++) {
		expect_number("result", LENGTH, requests[i].result);
		for (uint32_t k = 0; k < LENGTH; k++) {
			if (bytes[i][k] != i + 1) {
				expect_number("byte", i + 1, bytes[i][k]);
				break;
			}
		}
	}
	rings_end(&ring);
}

int main(void)
{
	static uint8_t wanted[READS][LENGTH];

	runtimes_watchdog(LIMIT_SECONDS);
	rings_require();
	scratch_enter("neighbours_errors_are_told_apart");
	for (uint32_t i = 0; i < READS; i++) {
		memset(wanted[i], (int)i + 1, LENGTH);
	}
	file = (struct pinion_file){
		.fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644),
		.memory_align_bytes = LENGTH,
		.offset_align_bytes = LENGTH,
		.size_bytes = sizeof(wanted),
	};
	expect_ready("write", write(file.fd, wanted, sizeof(wanted)) == (ssize_t)sizeof(wanted));
	try(true);
	expect_number("counted", READS, (long long)pin_meter_read(&rings_meter.errors_tried_alone));
	try(false);
	expect_number(
		"once more", 2 * READS, (long long)pin_meter_read(&rings_meter.errors_tried_alone));
	close(file.fd);
	scratch_leave();
	return expect_status();
}
