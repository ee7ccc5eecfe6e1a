/* SPDX-License-Identifier: MIT */
/*
 * Goal: a vectored transfer that the kernel did in part goes on at the byte it
 * has got to, also in the middle of an element, past the cache at blocks, and
 * never beyond a part; its result is the sum of all. Its entries have the
 * priority of the request, and are of the page cache as those of reads. Hazard
 * that others met: a short readv begins again at the first element.
 * Method: white box: made-up results are handed to pin_request_complete on a
 * fallback ring that is never polled, and the entries it queues are compared
 * with a list.
 */
#include "runtime/io/in_flight.h"
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

#include <sys/uio.h>

enum {
	BYTES = 8192,
	SIZE = 6000,
	MIB = 1 << 20,
	ROUNDS_MAX = 1000,
};

static struct pin_ring ring;
static struct pinion_file file;
static struct pinion_request request;
static uint8_t memory[BYTES] __attribute__((aligned(4096)));
/* Of elements that nothing moves; sanitizers mark that much of each. */
static uint8_t long_memory[MIB] __attribute__((aligned(4096)));
static struct iovec vector[8];

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* Elements of these lengths, from the end of the memory on. */
static void lay_out(const uint64_t *lengths, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += lengths[i];
		vector[i].iov_base = sum <= BYTES ? memory + BYTES - sum : long_memory;
		vector[i].iov_len = lengths[i];
	}
	request = (struct pinion_request){.task.run = never_run,
		.file = &file,
		.vector = vector,
		.vector_count = count,
		.length_bytes = sum};
}

#define LAY_OUT(...) \
	lay_out((const uint64_t[]){__VA_ARGS__}, \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void expect_entry(
	const char *what, uint8_t opcode, const void *address, uint32_t length, uint64_t offset)
{
	struct io_uring_sqe sqe = {0};

	if (expect_true(what, rings_take_entry(&ring, &sqe))) {
		expect_number(what, opcode, sqe.opcode);
		expect_true(what, (uintptr_t)sqe.addr == (uintptr_t)address);
		expect_number(what, length, sqe.len);
		expect_number(what, (long long)offset, (long long)sqe.off);
		expect_number(what, file.fd, sqe.fd);
	}
}

/* `count` elements, from the `first` one on. */
static void expect_elements(const char *what, uint32_t first, uint32_t count, uint64_t offset)
{
	expect_entry(what, request.op == PINION_OP_READV ? IORING_OP_READV : IORING_OP_WRITEV,
		&vector[first], count, offset);
}

/* One range, `inside` an element. */
static void expect_range(
	const char *what, uint32_t index, uint64_t inside, uint32_t length, uint64_t offset)
{
	expect_entry(what, request.op == PINION_OP_READV ? IORING_OP_READ : IORING_OP_WRITE,
		(uint8_t *)vector[index].iov_base + inside, length, offset);
}

static void begin(uint16_t op, uint32_t align)
{
	request.op = op;
	file.way = PINION_WAY_ASKED;
	file.is_direct = align > 1 ? 1 : 0;
	file.memory_align_bytes = align;
	file.offset_align_bytes = align;
	expect_number("check", 0, pin_request_check(&request));
	pin_request_reset(&request);
	expect_true("submit", pin_request_submit(&ring, &request));
}

static void goes_on(const char *what, int32_t result)
{
	expect_true(what, pin_request_complete(&ring, (uintptr_t)&request, result) == NULL);
}

static void ends(const char *what, int32_t result, int64_t expected)
{
	struct io_uring_sqe sqe;

	expect_true(what, pin_request_complete(&ring, (uintptr_t)&request, result) == &request);
	expect_true(what, !rings_take_entry(&ring, &sqe));
	expect_number(what, expected, request.result);
}

static void check_whole(uint16_t op)
{
	LAY_OUT(1000, 0, 3000, 4192);
	begin(op, 1);
	expect_elements("all", 0, 4, 0);
	ends("at once", BYTES, BYTES);
	expect_number("done", BYTES, (long long)request.done_bytes);
	LAY_OUT(0, 0);
	begin(op, 1);
	expect_elements("elements of no bytes", 0, 2, 0);
	ends("nothing", 0, 0);
	request.vector = NULL;
	request.vector_count = 0;
	begin(op, 1);
	expect_entry("no elements", op == PINION_OP_READV ? IORING_OP_READV : IORING_OP_WRITEV,
		NULL, 0, 0);
	ends("an error all the same", -EBADF, -EBADF);
}

static void check_short(uint16_t op)
{
	LAY_OUT(1000, 0, 3000, 4192);
	file.size_bytes = 0;
	begin(op, 1);
	expect_elements("all", 0, 4, 0);
	goes_on("within the first", 400);
	expect_range("its rest", 0, 400, 600, 400);
	goes_on("less than that", 100);
	expect_range("what is left of it", 0, 500, 500, 500);
	goes_on("interrupted", -EINTR);
	expect_range("the same", 0, 500, 500, 500);
	goes_on("to its end", 500);
	expect_elements("after the empty one", 2, 2, 1000);
	goes_on("across the third", 3001);
	expect_range("the rest of the last", 3, 1, 4191, 4001);
	expect_number("so far", 4001, (long long)request.done_bytes);
	ends("all", 4191, BYTES);
	expect_number("done", BYTES, (long long)request.done_bytes);

	LAY_OUT(1000, 3000, 4192);
	begin(op, 1);
	expect_elements("all", 0, 3, 0);
	goes_on("at the end of an element", 4000);
	expect_elements("the last", 2, 1, 4000);
	ends("an error there", -ENOSPC, -ENOSPC);
	expect_number("and what came before", 4000, (long long)request.done_bytes);
	begin(op, 1);
	expect_elements("all", 0, 3, 0);
	goes_on("a part", 1);
	expect_range("the rest", 0, 1, 999, 1);
	pin_request_of(&request)->ended_by = -ETIME;
	ends("too late", -ECANCELED, -ETIME);
	expect_number("so far", 1, (long long)request.done_bytes);
}

/* O_DIRECT goes on at blocks. */
static void check_blocks(uint16_t op)
{
	LAY_OUT(1024, 512, 6656);
	file.size_bytes = 0;
	begin(op, 512);
	expect_elements("all", 0, 3, 0);
	goes_on("a block and a part", 700);
	expect_range("from the block on", 0, 512, 512, 512);
	goes_on("and on", 512);
	expect_elements("the others", 1, 2, 1024);
	goes_on("not a block", 511);
	expect_elements("the same", 1, 2, 1024);
	goes_on("across both", 512 + 600);
	expect_range("the last", 2, 512, 6144, 2048);
	ends("whole", 6144, BYTES);
}

static void check_end_of_file(void)
{
	LAY_OUT(5000, 3192);
	file.size_bytes = SIZE;
	begin(PINION_OP_READV, 1);
	expect_elements("all", 0, 2, 0);
	ends("at the size", SIZE, SIZE);
	begin(PINION_OP_READV, 1);
	expect_elements("all", 0, 2, 0);
	goes_on("before it", 5500);
	expect_range("the rest", 1, 500, 2692, 5500);
	ends("to the size", SIZE - 5500, SIZE);
	begin(PINION_OP_READV, 1);
	expect_elements("all", 0, 2, 0);
	goes_on("before it", 5000);
	expect_elements("the last", 1, 1, 5000);
	ends("the file shrank", 0, 5000);
}

/* As for one that is in one piece, no more than a part at a time. */
static void check_parts(uint16_t op)
{
	file.size_bytes = 0;
	LAY_OUT(UINT64_C(40) * MIB, UINT64_C(40) * MIB, UINT64_C(100) * MIB, 4096, 4096);
	begin(op, 4096);
	expect_elements("as many as go into a part", 0, 1, 0);
	goes_on("the first", 40 * MIB);
	expect_range("the rest of the part", 1, 0, 24 * MIB, UINT64_C(40) * MIB);
	goes_on("a part", 24 * MIB);
	expect_range("of the next part", 1, 24 * MIB, 16 * MIB, UINT64_C(64) * MIB);
	goes_on("the second", 16 * MIB);
	expect_range("up to its end", 2, 0, 48 * MIB, UINT64_C(80) * MIB);
	goes_on("two parts", 48 * MIB);
	expect_range("of the third", 2, 48 * MIB, 52 * MIB, UINT64_C(128) * MIB);
	goes_on("the third", 52 * MIB);
	expect_elements("all others", 3, 2, UINT64_C(180) * MIB);
	ends("whole", 8192, UINT64_C(180) * MIB + 8192);
	/* Whole elements up to the end of the part, and no byte more. */
	LAY_OUT(UINT64_C(32) * MIB, UINT64_C(32) * MIB, UINT64_C(5) << 32);
	begin(op, 4096);
	expect_elements("a part of two", 0, 2, 0);
	goes_on("a part", 64 * MIB);
	expect_range("of a long one", 2, 0, 64 * MIB, UINT64_C(64) * MIB);
	goes_on("another", 64 * MIB);
	expect_range("and on", 2, UINT64_C(64) * MIB, 64 * MIB, UINT64_C(128) * MIB);
	ends("an error", -ENXIO, -ENXIO);
	expect_number("so far", 128ll * MIB, (long long)request.done_bytes);
}

static void check_bounded(uint16_t op)
{
	int rounds = 0;
	struct io_uring_sqe sqe;

	LAY_OUT(512, 512);
	file.size_bytes = 0;
	begin(op, 512);
	while (rings_take_entry(&ring, &sqe) && rounds < ROUNDS_MAX) {
		(void)pin_request_complete(&ring, (uintptr_t)&request, 100);
		rounds++;
	}
	expect_true("tried more than once and ended", rounds > 1 && rounds < ROUNDS_MAX);
	expect_number("as what", -EIO, request.result);
}

/* Of each entry, whatever its kind. */
static void check_flags(void)
{
	struct io_uring_sqe sqe = {0};
	uint64_t before = pin_meter_read(&rings_meter.unregistered_reads);

	LAY_OUT(1000, 3000);
	file.size_bytes = 0;
	file.flags = PIN_FILE_DONTCACHE | PIN_FILE_EVICT;
	request.io_priority = 2 << 13 | 7;
	begin(PINION_OP_READV, 1);
	expect_true("elements", rings_take_entry(&ring, &sqe));
	expect_number("their priority", 2 << 13 | 7, sqe.ioprio);
	expect_number("leave no pages", RWF_DONTCACHE, (long long)sqe.rw_flags);
	goes_on("a part", 10);
	expect_true("a range", rings_take_entry(&ring, &sqe));
	expect_number("its priority", 2 << 13 | 7, sqe.ioprio);
	expect_number("leaves no pages", RWF_DONTCACHE, (long long)sqe.rw_flags);
	goes_on("not by this file system", -EOPNOTSUPP);
	expect_true("the same", rings_take_entry(&ring, &sqe));
	expect_number("with them", 0, (long long)sqe.rw_flags);
	ends("whole", 3990, 4000);
	expect_number("of memory that is not registered", 3,
		(long long)(pin_meter_read(&rings_meter.unregistered_reads) - before));
	file.flags = 0;
}

/* What copies or commands move is in one piece. */
static void check_kept_apart(void)
{
	struct pin_cached cached = {0};

	LAY_OUT(1000, 3000);
	request.op = PINION_OP_READ;
	file.is_direct = 0;
	file.cached_percent = 100;
	expect_true("a read is worth a copy", pin_cached_is_worth_it(&cached, &request));
	request.op = PINION_OP_READV;
	expect_true("a vectored one is not", !pin_cached_is_worth_it(&cached, &request));
	expect_true("nor is it a command", !pin_request_submit_command(&ring, &request));
	expect_number("nothing is queued", 0, ring.queued_count);
	file.cached_percent = 0;
}

/* By calls: element after element, the last one in part. */
static void check_calls(void)
{
	static uint8_t content[SIZE];

	for (int i = 0; i < SIZE; i++) {
		content[i] = (uint8_t)(i * 7 + (i >> 8));
	}
	LAY_OUT(1000, 0, 3000, 2000);
	request.op = PINION_OP_WRITEV;
	for (uint32_t i = 0, at = 0; i < 4; i++) {
		memcpy(vector[i].iov_base, content + at, vector[i].iov_len);
		at += (uint32_t)vector[i].iov_len;
	}
	file.size_bytes = 0;
	file.memory_align_bytes = 1;
	file.offset_align_bytes = 1;
	pin_request_reset(&request);
	expect_true("by calls", pin_request_carry_out(&ring, &request));
	expect_number("written", SIZE, request.result);
	memset(memory, 0, BYTES);
	expect_number("there", SIZE, pread(file.fd, memory, BYTES, 0));
	expect_true("in order", memcmp(memory, content, SIZE) == 0);

	LAY_OUT(500, 2500, 0, 5192);
	memset(memory, 0, BYTES);
	request.op = PINION_OP_READV;
	pin_request_reset(&request);
	expect_true("by calls", pin_request_carry_out(&ring, &request));
	expect_number("read", SIZE, request.result);
	expect_true("the first", memcmp(vector[0].iov_base, content, 500) == 0);
	expect_true("the second", memcmp(vector[1].iov_base, content + 500, 2500) == 0);
	expect_true("of the last", memcmp(vector[3].iov_base, content + 3000, SIZE - 3000) == 0);
	expect_number("and no more", 0, ((uint8_t *)vector[3].iov_base)[SIZE - 3000]);

	LAY_OUT(0);
	request.op = PINION_OP_WRITEV;
	pin_request_reset(&request);
	expect_true("by calls", pin_request_carry_out(&ring, &request));
	expect_number("nothing", 0, request.result);
}

int main(void)
{
	struct pin_ring_options options = {.entries = 8, .helper_count = 1, .is_fallback = true};

	scratch_enter("vectors_go_on_within_elements");
	file.fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", file.fd >= 0 && ftruncate(file.fd, SIZE) == 0);
	expect_ready("ring",
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log) == 0);
	for (uint16_t op = PINION_OP_READV; op <= PINION_OP_WRITEV; op++) {
		check_whole(op);
		/* Longer than any file there is here, so that none ends. */
		expect_ready("no size", ftruncate(file.fd, 0) == 0);
		check_short(op);
		check_blocks(op);
		check_parts(op);
		check_bounded(op);
		expect_ready("size", ftruncate(file.fd, SIZE) == 0);
	}
	check_end_of_file();
	expect_ready("no size", ftruncate(file.fd, 0) == 0);
	check_flags();
	check_kept_apart();
	check_calls();
	expect_number("in flight", 0, ring.in_flight);
	rings_end(&ring);
	close(file.fd);
	scratch_leave();
	return expect_status();
}
