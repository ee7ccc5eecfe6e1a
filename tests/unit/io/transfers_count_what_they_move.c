/* SPDX-License-Identifier: MIT */
/*
 * Goal: a transfer that is done in parts goes on exactly where the last part
 * ended, adds its bytes to the counters once, at its end, and gives up after
 * the 65th attempt in a row without a byte, and not earlier; by ring entries,
 * and by plain calls. The counters take a refused, a retried and an evicted
 * request once each.
 * Method: white box: results are made up, for pin_request_complete() on a
 * fallback ring that is never polled, and for calls of the kernel: answers.h.
 */
#include "tests/support/answers.h"
#include "tests/support/scratch.h"

/* ---- the request ---- */

static struct pin_ring ring;

/* Submits it; its entry. */
static struct io_uring_sqe entry(void)
{
	struct io_uring_sqe sqe = {0};

	expect_true("submitted", pin_request_submit(&ring, &request));
	expect_true("an entry", rings_take_entry(&ring, &sqe));
	return sqe;
}

/* The entry with which it goes on after that result. */
static struct io_uring_sqe entry_after(int32_t result)
{
	struct io_uring_sqe sqe = {0};

	expect_true("goes on", pin_request_complete(&ring, (uintptr_t)&request, result) == NULL);
	expect_true("by an entry", rings_take_entry(&ring, &sqe));
	return sqe;
}

static void expect_end(int32_t result, int64_t expected)
{
	struct io_uring_sqe sqe;

	expect_true("ends", pin_request_complete(&ring, (uintptr_t)&request, result) == &request);
	expect_true("without an entry", !rings_take_entry(&ring, &sqe));
	expect_number("result", (long long)expected, (long long)request.result);
}

/* ---- by entries ---- */

static void check_parts(uint16_t op)
{
	bool reads = op == PINION_OP_READ;
	struct io_uring_sqe sqe;

	begin(op, 1000, 300);
	sqe = entry();
	expect_number("first offset", 300, (long long)sqe.off);
	sqe = entry_after(400);
	expect_number("second offset", 700, (long long)sqe.off);
	expect_number("second length", 600, sqe.len);
	expect_true("second memory", sqe.addr == (uintptr_t)bytes + 400);
	expect_number("done", 400, (long long)request.done_bytes);
	expect_meters("not before the end", 0, 0);
	sqe = entry_after(-EINTR);
	expect_number("the same", 700, (long long)sqe.off);
	sqe = entry_after(599);
	expect_number("last offset", 1299, (long long)sqe.off);
	expect_number("last length", 1, sqe.len);
	expect_number("done by then", 999, (long long)request.done_bytes);
	expect_end(1, 1000);
	expect_number("done at last", 1000, (long long)request.done_bytes);
	expect_meters("once, at the end", reads ? 1000 : 0, reads ? 0 : 1000);
	expect_count("unregistered reads", &rings_meter.unregistered_reads, reads ? 4 : 0);
	expect_count("unregistered writes", &rings_meter.unregistered_writes, reads ? 0 : 4);
}

static void check_whole(uint16_t op)
{
	bool reads = op == PINION_OP_READ;

	begin(op, 1000, 300);
	entry();
	expect_end(1000, 1000);
	expect_number("done", 1000, (long long)request.done_bytes);
	expect_meters("whole", reads ? 1000 : 0, reads ? 0 : 1000);
	/* An error adds nothing, whatever was done before. */
	begin(op, 1000, 300);
	entry();
	entry_after(400);
	expect_end(-ENXIO, -ENXIO);
	expect_number("done before", 400, (long long)request.done_bytes);
	expect_meters("of an error", 0, 0);
}

/* 64 attempts in a row may move nothing; a byte begins a new row. */
static void check_attempts(uint16_t op, int32_t nothing, int64_t last)
{
	struct io_uring_sqe sqe;

	begin(op, 1000, 0);
	entry();
	for (uint32_t row = 0; row < 2; row++) {
		for (uint32_t i = 0; i < 64; i++) {
			sqe = entry_after(nothing);
			expect_number("offset", row, (long long)sqe.off);
		}
		if (row == 0) {
			sqe = entry_after(1);
			expect_number("one byte on", 1, (long long)sqe.off);
		}
	}
	expect_end(nothing, last);
}

/* O_DIRECT goes on at blocks; half a block again and again is no progress. */
static void check_half_blocks(void)
{
	struct io_uring_sqe sqe;

	begin(PINION_OP_READ, LENGTH, 0);
	file.is_direct = 1;
	file.offset_align_bytes = 512;
	entry();
	sqe = entry_after(512 + 100);
	expect_number("at the block", 512, (long long)sqe.off);
	expect_number("done", 612, (long long)request.done_bytes);
	for (uint32_t i = 0; i < 64; i++) {
		sqe = entry_after(511);
		expect_number("still there", 512, (long long)sqe.off);
	}
	expect_number("of all it has seen", 1023, (long long)request.done_bytes);
	expect_end(511, -EIO);
	expect_meters("nothing came of it", 0, 0);
}

/* A file ends at the size it was opened with, unless it may grow. */
static void check_file_end(void)
{
	begin(PINION_OP_READ, LENGTH, 1000);
	entry();
	expect_end(SIZE - 1000, SIZE - 1000);
	expect_meters("to the end", SIZE - 1000, 0);
	/* Of a file that is only read the size of its open holds. */
	begin(PINION_OP_READ, LENGTH, 0);
	file.size_bytes = 4000;
	entry();
	entry_after(3999);
	expect_end(1, 4000);
	/* One to be written to is asked. */
	begin(PINION_OP_READ, LENGTH, 0);
	file.size_bytes = 4000;
	file.flags = PIN_FILE_WRITABLE;
	entry();
	entry_after(4000);
	entry_after(SIZE - 4000 - 1);
	expect_end(1, SIZE);
	/* So is a file whose size is not known. */
	begin(PINION_OP_READ, LENGTH, 0);
	file.size_bytes = 0;
	entry();
	entry_after(SIZE - 1);
	expect_end(1, SIZE);
	/* A write goes past it. */
	begin(PINION_OP_WRITE, LENGTH, 0);
	entry();
	entry_after(SIZE);
	expect_end(LENGTH - SIZE, LENGTH);
}

static void check_refusals(void)
{
	/* O_DIRECT that is refused, before anything has come. */
	begin(PINION_OP_READ, LENGTH, 0);
	file.is_direct = 1;
	entry();
	entry_after(-EINVAL);
	expect_count("refusals", &rings_meter.direct_refusals, 1);
	expect_end(-EINVAL, -EINVAL);
	expect_count("refused once", &rings_meter.direct_refusals, 1);
	begin(PINION_OP_READ, LENGTH, 0);
	entry();
	expect_end(-EINVAL, -EINVAL);
	expect_count("not direct", &rings_meter.direct_refusals, 0);

	/* A sector that may be a neighbour's. */
	begin(PINION_OP_READ, LENGTH, 0);
	file.is_direct = 1;
	entry();
	entry_after(-EIO);
	expect_count("tried alone", &rings_meter.errors_tried_alone, 1);
	expect_end(-EIO, -EIO);
	expect_count("once", &rings_meter.errors_tried_alone, 1);
}

static void check_sectors_of_commands(void)
{
	begin(PINION_OP_READ, LENGTH, 0);
	file.is_direct = 1;
	file.flags = PIN_FILE_COMMANDS;
	entry();
	expect_end(-EIO, -EIO);
	expect_count("a command is alone", &rings_meter.errors_tried_alone, 0);
	begin(PINION_OP_READ, LENGTH, 0);
	entry();
	entry_after(-EIO);
	expect_end(-EIO, -EIO);
	expect_count("through the cache", &rings_meter.errors_tried_alone, 1);
	begin(PINION_OP_WRITE, LENGTH, 0);
	entry();
	expect_end(-EIO, -EIO);
	expect_count("a write into the cache", &rings_meter.errors_tried_alone, 0);
	begin(PINION_OP_WRITE, LENGTH, 0);
	file.is_direct = 1;
	entry();
	entry_after(-EIO);
	expect_end(-EIO, -EIO);
	expect_count("a write past it", &rings_meter.errors_tried_alone, 1);
}

static void expect_advice(uint32_t count, off_t offset, size_t length)
{
	expect_number("advised", count, advice_count);
	if (advice_count > 0) {
		expect_number("advised from", (long long)offset, (long long)advice.offset);
		expect_number("advised bytes", (long long)length, (long long)advice.length);
	}
}

/* Files of which nothing was cached leave nothing: by a flag, or afterwards. */
static void check_eviction(void)
{
	struct io_uring_sqe sqe;

	begin(PINION_OP_READ, 1000, 300);
	file.flags = PIN_FILE_EVICT;
	sqe = entry();
	expect_number("no flag", 0, sqe.rw_flags);
	entry_after(400);
	expect_advice(0, 0, 0);
	expect_end(600, 1000);
	expect_advice(1, 300, 1000);
	expect_count("evicted", &rings_meter.evicted_reads, 1);
	expect_count("asked", &rings_meter.dontcache_reads, 0);

	begin(PINION_OP_READ, 1000, 300);
	file.flags = PIN_FILE_EVICT | PIN_FILE_DONTCACHE;
	sqe = entry();
	expect_number("the flag", 0x80, sqe.rw_flags);
	expect_end(1000, 1000);
	expect_advice(0, 0, 0);
	expect_count("evicted", &rings_meter.evicted_reads, 0);
	expect_count("asked", &rings_meter.dontcache_reads, 1);

	/* A file system that does not know the flag. */
	begin(PINION_OP_READ, 1000, 300);
	file.flags = PIN_FILE_EVICT | PIN_FILE_DONTCACHE;
	entry();
	sqe = entry_after(-EOPNOTSUPP);
	expect_number("without the flag", 0, sqe.rw_flags);
	expect_end(1000, 1000);
	expect_advice(1, 300, 1000);
	expect_count("evicted", &rings_meter.evicted_reads, 1);
	expect_count("asked", &rings_meter.dontcache_reads, 0);
	begin(PINION_OP_READ, 1000, 300);
	file.flags = PIN_FILE_DONTCACHE;
	entry();
	entry_after(-EOPNOTSUPP);
	expect_end(-EOPNOTSUPP, -EOPNOTSUPP);

	begin(PINION_OP_WRITE, 1000, 300);
	file.flags = PIN_FILE_DONTCACHE;
	sqe = entry();
	expect_number("no flag for writes", 0, sqe.rw_flags);
	expect_end(-EOPNOTSUPP, -EOPNOTSUPP);
}

/* ---- by plain calls ---- */

static void carry_out(int64_t expected, uint32_t expected_calls)
{
	expect_true("over", pin_request_carry_out(&ring, &request));
	expect_number("result", (long long)expected, (long long)request.result);
	expect_number("calls", expected_calls, call_count);
}

static void check_calls(uint16_t op)
{
	static const int64_t parts[] = {300, -EINTR, 500, -EAGAIN, 200};
	bool reads = op == PINION_OP_READ;

	begin(op, 1000, 70);
	memcpy(answers, parts, sizeof(parts));
	carry_out(1000, 5);
	expect_number("by writes", reads ? 0 : 5, write_count);
	expect_call(0, 1000, 70, 0);
	expect_call(1, 700, 370, 300);
	expect_call(2, 700, 370, 300);
	expect_call(3, 200, 870, 800);
	expect_call(4, 200, 870, 800);
	expect_number("done", 1000, (long long)request.done_bytes);
	expect_meters("in parts", reads ? 1000 : 0, reads ? 0 : 1000);

	begin(op, 1000, 70);
	answers[0] = 300;
	answers[1] = 0;
	/* The end of the file; of a write that is an error. */
	carry_out(reads ? 300 : -EIO, 2);
	expect_number("so far", 300, (long long)request.done_bytes);
	expect_meters("up to the end", reads ? 300 : 0, 0);

	begin(op, 1000, 70);
	answers[0] = 300;
	answers[1] = -ENOSPC;
	carry_out(-ENOSPC, 2);
	expect_number("before it", 300, (long long)request.done_bytes);
	expect_meters("of an error", 0, 0);
}

/* A sector that may be a neighbour's is asked for once more. */
static void check_sectors_of_calls(void)
{
	begin(PINION_OP_READ, 1000, 0);
	answers[0] = 300;
	answers[1] = -EIO;
	answers[2] = 700;
	carry_out(1000, 3);
	expect_call(2, 700, 300, 300);
	expect_count("tried alone", &rings_meter.errors_tried_alone, 1);
	begin(PINION_OP_READ, 1000, 0);
	answers[0] = -EIO;
	answers[1] = -EIO;
	carry_out(-EIO, 2);
	begin(PINION_OP_WRITE, 1000, 0);
	answers[0] = -EIO;
	carry_out(-EIO, 1);
	expect_count("no write", &rings_meter.errors_tried_alone, 0);
}

static void check_interrupted_calls(void)
{
	begin(PINION_OP_READ, 1000, 0);
	for (uint32_t i = 0; i < CALLS_MAX; i++) {
		answers[i] = i % 2 == 0 ? -EINTR : -EAGAIN;
	}
	carry_out(-EINTR, 65);
	begin(PINION_OP_READ, 1000, 0);
	for (uint32_t i = 0; i < CALLS_MAX; i++) {
		answers[i] = i % 65 == 64 ? 500 : -EINTR;
	}
	carry_out(1000, 130);
	expect_meters("after all", 1000, 0);
}

/* One part of 64 MiB at a time: others run between. */
static void check_call_parts(void)
{
	uint64_t part = 64u << 20;

	/* The memory is not touched. */
	begin(PINION_OP_READ, part + 100, 10);
	answers[0] = (int64_t)part;
	answers[1] = 60;
	answers[2] = 40;
	expect_true("not yet", !pin_request_carry_out(&ring, &request));
	expect_number("one call", 1, call_count);
	expect_call(0, part, 10, 0);
	expect_meters("nothing yet", 0, 0);
	carry_out((int64_t)part + 100, 3);
	expect_call(1, 100, (off_t)part + 10, part);
	expect_call(2, 40, (off_t)part + 70, part + 60);
	expect_meters("both parts", part + 100, 0);
	/* The last part may be a whole one. */
	begin(PINION_OP_READ, part, 10);
	answers[0] = (int64_t)part;
	carry_out((int64_t)part, 1);
}

static void check_call_ends(void)
{
	begin(PINION_OP_READ, 1000, 300);
	file.flags = PIN_FILE_EVICT;
	answers[0] = 1000;
	carry_out(1000, 1);
	expect_advice(1, 300, 1000);
	expect_count("evicted", &rings_meter.evicted_reads, 1);
	begin(PINION_OP_WRITE, 1000, 300);
	file.flags = PIN_FILE_EVICT;
	answers[0] = 1000;
	carry_out(1000, 1);
	expect_advice(0, 0, 0);
	begin(PINION_OP_WRITE, 1000, 300);
	file.flags = PIN_FILE_COMMANDS;
	carry_out(-EROFS, 0);
}

int main(void)
{
	struct pin_ring_options options = {.entries = 8, .helper_count = 1, .is_fallback = true};

	scratch_enter("transfers_count_what_they_move");
	file.fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", file.fd >= 0 && ftruncate(file.fd, SIZE) == 0);
	expect_ready("ring",
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log) == 0);
	syscalls_begin();
	syscalls_hook = answer_syscall;
	for (uint16_t op = PINION_OP_READ; op <= PINION_OP_WRITE; op++) {
		check_parts(op);
		check_whole(op);
		check_attempts(op, -EINTR, -EINTR);
		check_attempts(op, -EAGAIN, -EAGAIN);
		check_calls(op);
	}
	check_attempts(PINION_OP_WRITE, 0, -EIO);
	check_half_blocks();
	check_file_end();
	check_sectors_of_commands();
	check_eviction();
	check_sectors_of_calls();
	check_interrupted_calls();
	check_call_parts();
	check_call_ends();
	check_refusals();
	rings_end(&ring);
	close(file.fd);
	scratch_leave();
	return expect_status();
}
