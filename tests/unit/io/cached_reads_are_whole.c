/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read of the page cache is taken whole or not at all, and counted
 * once; it is tried where the file's cached share says that it may pay, and
 * after each miss less often, up to every 64th time.
 * Method: white box: preadv2(2) has made-up results: answers.h.
 */
#include "tests/support/answers.h"

static bool read_cached(struct pin_cached *cached, uint16_t flags, uint64_t offset, int64_t got)
{
	begin(PINION_OP_READ, 1000, offset);
	file.flags = flags;
	file.cached_percent = 100;
	answers[0] = got;
	return pin_cached_read(cached, &rings_meter, &request);
}

static void check_cached(void)
{
	struct pin_cached cached = {0};
	uint32_t skips = 1;

	expect_true("whole", read_cached(&cached, 0, 70, 1000));
	expect_call(0, 1000, 70, 0);
	expect_number("result", 1000, (long long)request.result);
	expect_number("done", 1000, (long long)request.done_bytes);
	expect_meters("cached", 1000, 0);
	expect_count("cached reads", &rings_meter.cached_reads, 1);
	/* Offsets of 2^32 and more are given whole. */
	expect_true("far", read_cached(&cached, 0, UINT64_C(5) << 32, 1000));
	expect_call(0, 1000, (off_t)5 << 32, 0);

	expect_true("to the end", read_cached(&cached, 0, SIZE - 400, 400));
	expect_number("short", 400, (long long)request.result);
	expect_true("not to the end", !read_cached(&cached, 0, SIZE - 400, 399));
	expect_number("as it was", 0, (long long)request.done_bytes);
	expect_meters("nothing", 0, 0);
	expect_count("none", &rings_meter.cached_reads, 0);
	expect_true("it grows", !read_cached(&cached, PIN_FILE_WRITABLE, SIZE - 400, 400));
	expect_true("nothing there", !read_cached(&cached, 0, SIZE, 0));
	expect_true("would block", !read_cached(&cached, 0, 70, -EAGAIN));

	cached = (struct pin_cached){0};
	for (uint32_t i = 0; i < 10; i++) {
		read_cached(&cached, 0, 70, -EAGAIN);
		expect_number("reads to skip", skips, cached.skips_left);
		for (; cached.skips_left > 0;) {
			expect_true("skipped", !pin_cached_is_worth_it(&cached, &request));
		}
		expect_true("tried", pin_cached_is_worth_it(&cached, &request));
		skips = skips < 64 ? 2 * skips : 64;
	}
	read_cached(&cached, 0, 70, 1000);
	read_cached(&cached, 0, 70, -EAGAIN);
	expect_number("a hit forgets", 1, cached.skips_left);
}

static void check_what_is_worth_it(void)
{
	struct pin_cached cached = {0};

	begin(PINION_OP_READ, 1000, 0);
	file.cached_percent = 1;
	expect_true("a little", pin_cached_is_worth_it(&cached, &request));
	file.cached_percent = 100;
	expect_true("all", pin_cached_is_worth_it(&cached, &request));
	file.cached_percent = 0;
	expect_true("nothing", !pin_cached_is_worth_it(&cached, &request));
	file.cached_percent = 101;
	expect_true("unknown", !pin_cached_is_worth_it(&cached, &request));
	file.cached_percent = 100;
	request.length_bytes = PIN_CACHED_BYTES_MAX;
	expect_true("as long", pin_cached_is_worth_it(&cached, &request));
	request.length_bytes++;
	expect_true("longer", !pin_cached_is_worth_it(&cached, &request));
	request.length_bytes = 1000;
	file.is_direct = 1;
	expect_true("direct", !pin_cached_is_worth_it(&cached, &request));
	file.is_direct = 0;
	request.op = PINION_OP_WRITE;
	expect_true("a write", !pin_cached_is_worth_it(&cached, &request));
	cached.skips_left = 5;
	expect_true("nor", !pin_cached_is_worth_it(&cached, &request));
	expect_number("which skips nothing", 5, cached.skips_left);
}

int main(void)
{
	syscalls_begin();
	syscalls_hook = answer_syscall;
	check_cached();
	check_what_is_worth_it();
	return expect_status();
}
