/* SPDX-License-Identifier: MIT */
/*
 * Goal: misaligned requests are refused; short, interrupted and refused reads
 * continue at their offset, a bounded number of times, and end with the right
 * result; all other errors pass through. Hazard that others met: a short direct
 * read continues at its offset, which is unaligned, and is refused, or tried
 * for ever.
 * Method: white box: made-up results are handed to pin_request_complete on a
 * fallback ring that is never polled, and the entry it queues is looked at.
 */
#include "runtime/io/request.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

enum {
	LENGTH = 8192,
	SIZE = 6000,
	ROUNDS_MAX = 1000,
};

static struct pin_ring ring;
static struct pinion_file file;
static struct pinion_request request;
static uint16_t op = PINION_OP_READ;
static uint8_t bytes[LENGTH] __attribute__((aligned(4096)));

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static void begin(uint32_t is_direct, uint32_t align, uint64_t size)
{
	struct io_uring_sqe sqe = {0};

	file.way = PINION_WAY_ASKED; /* nothing is asked of its descriptor */
	file.is_direct = is_direct;
	file.memory_align_bytes = align;
	file.offset_align_bytes = align;
	file.size_bytes = size;
	request = (struct pinion_request){
		.task.run = never_run, .file = &file, .bytes = bytes, .length_bytes = LENGTH};
	request.op = op;
	expect_number("check", 0, pin_request_check(&request));
	expect_true("submit", pin_request_submit(&ring, &request));
	expect_true("one entry", rings_take_entry(&ring, &sqe));
	expect_number("length at first", LENGTH, sqe.len);
}

/* From the beginning, whatever became of it before. */
static bool submit(void)
{
	pin_request_reset(&request);
	return pin_request_submit(&ring, &request);
}

/* The request goes on at `offset` with all that is left. */
static void expect_on(const char *what, int32_t result, uint64_t offset)
{
	struct io_uring_sqe sqe = {0};

	expect_true(what, pin_request_complete(&ring, (uintptr_t)&request, result) == NULL);
	if (expect_true(what, rings_take_entry(&ring, &sqe))) {
		expect_number(what, (long long)offset, (long long)sqe.off);
		expect_number(what, (long long)(LENGTH - offset), sqe.len);
		expect_true(what, (uintptr_t)sqe.addr == (uintptr_t)bytes + offset);
	}
}

static void expect_end(const char *what, int32_t result, int32_t expected)
{
	struct io_uring_sqe sqe;

	expect_true(what, pin_request_complete(&ring, (uintptr_t)&request, result) == &request);
	expect_true(what, !rings_take_entry(&ring, &sqe));
	expect_number(what, expected, request.result);
}

static int check_with(uint32_t memory_offset, uint64_t offset, uint64_t length)
{
	request = (struct pinion_request){.task.run = never_run,
		.file = &file,
		.bytes = bytes + memory_offset,
		.offset_bytes = offset,
		.length_bytes = length};
	return pin_request_check(&request);
}

static void check_arguments(void)
{
	file.memory_align_bytes = 512;
	file.offset_align_bytes = 512;
	expect_number("aligned", 0, check_with(512, 1024, 1536));
	expect_number("memory off by 4", -EINVAL, check_with(4, 0, 512));
	expect_number("offset off by 1", -EINVAL, check_with(0, 1, 512));
	expect_number("length off by 1", -EINVAL, check_with(0, 0, 511));
	expect_number("no length", -EINVAL, check_with(0, 0, 0));
	expect_number("length over the kernel's", 0, check_with(0, 0, 0x7ffff000u + 512));
	expect_number("up to the last offset", 0, check_with(0, 1024, INT64_MAX - 1535));
	expect_number("beyond it", -EINVAL, check_with(0, 1024, INT64_MAX - 1023));
	expect_number("no offset", -EINVAL, check_with(0, UINT64_MAX - 511, 512));
	expect_number("no length", -EINVAL, check_with(0, 0, UINT64_MAX - 511));
	request.task.run = NULL;
	request.length_bytes = 512;
	expect_number("no function", -EINVAL, pin_request_check(&request));
	request.task.run = never_run;
	request.file = NULL;
	expect_number("no file", -EINVAL, pin_request_check(&request));
}

/* Of reads and writes, on each attempt. */
static void check_priority(void)
{
	struct io_uring_sqe sqe = {0};

	begin(0, 1, SIZE);
	expect_number("none", 0, sqe.ioprio);
	request.io_priority = 2 << 13 | 7;
	expect_true("a part", pin_request_complete(&ring, (uintptr_t)&request, 10) == NULL);
	expect_true("the next", rings_take_entry(&ring, &sqe));
	expect_number("its priority", 2 << 13 | 7, sqe.ioprio);
	expect_end("the rest", SIZE - 10, SIZE);
}

/* A priority from its lane is dropped where it is refused, without an error. */
static void check_lane_priority(int32_t refusal)
{
	struct io_uring_sqe sqe = {0};

	begin(0, 1, SIZE);
	pin_request_of(&request)->lane_priority = 3 << 13;
	expect_true("a part", pin_request_complete(&ring, (uintptr_t)&request, 10) == NULL);
	expect_true("the next", rings_take_entry(&ring, &sqe));
	expect_number("its lane's", 3 << 13, sqe.ioprio);
	expect_true("refused", pin_request_complete(&ring, (uintptr_t)&request, refusal) == NULL);
	expect_true("without it", rings_take_entry(&ring, &sqe));
	expect_number("none", 0, sqe.ioprio);
	expect_number("from where it was", 10, (long long)sqe.off);
	expect_end("refused for another reason", refusal, refusal);
	begin(0, 1, SIZE);
	pin_request_of(&request)->lane_priority = 3 << 13;
	request.io_priority = 1 << 13;
	expect_end("its own is not dropped", refusal, refusal);
}

/* Memory that the ring knows goes by its number, any other by its address. */
static void check_registered(void)
{
	static const uint8_t opcodes[][2] = {
		[PINION_OP_READ] = {IORING_OP_READ, IORING_OP_READ_FIXED},
		[PINION_OP_WRITE] = {IORING_OP_WRITE, IORING_OP_WRITE_FIXED},
	};

	struct pin_region region = {.memory = bytes};
	struct pin_registry registry = {
		.range_bytes = PIN_HUGE_PAGE_BYTES, .region_count = 1, .regions = &region};

	for (op = PINION_OP_READ; op <= PINION_OP_WRITE; op++) {
		for (uint32_t length = LENGTH; length >= LENGTH - 1; length--) {
			struct io_uring_sqe sqe = {0};

			region.bytes = length;
			ring.registry = &registry;
			request = (struct pinion_request){.task.run = never_run,
				.op = op,
				.file = &file,
				.bytes = bytes,
				.length_bytes = LENGTH};
			expect_true("submit", submit());
			expect_true("its entry", rings_take_entry(&ring, &sqe));
			expect_number("opcode", opcodes[op][length == LENGTH], sqe.opcode);
		}
	}
	ring.registry = NULL;
	op = PINION_OP_READ;
}

static void reset_counts(void)
{
	pin_meter_set(&rings_meter.short_transfers, 0);
	pin_meter_set(&rings_meter.retries_interrupted, 0);
	pin_meter_set(&rings_meter.retries_again, 0);
}

static void expect_counts(long long shorts, long long interrupted, long long again)
{
	expect_number("short", shorts, (long long)pin_meter_read(&rings_meter.short_transfers));
	expect_number("interrupted", interrupted,
		(long long)pin_meter_read(&rings_meter.retries_interrupted));
	expect_number("again", again, (long long)pin_meter_read(&rings_meter.retries_again));
	reset_counts();
}

static void check_short_reads(void)
{
	reset_counts();
	begin(0, 1, SIZE);
	expect_on("after 1000", 1000, 1000);
	expect_on("interrupted", -EINTR, 1000);
	/* The kernel's own ways to say so, as a helper thread of 6.1 does. */
	expect_on("to be restarted", -512, 1000);
	expect_on("always restarted", -513, 1000);
	expect_on("restarted without a handler", -514, 1000);
	expect_on("restarted with less time", -516, 1000);
	expect_on("after 1 more", 1, 1001);
	expect_on("would block", -EAGAIN, 1001);
	expect_end("at the size", SIZE - 1001, SIZE);
	expect_counts(2, 5, 1); /* what reaches the end is not short */

	begin(0, 1, SIZE);
	expect_end("all at once", LENGTH, LENGTH);
	begin(0, 1, SIZE);
	expect_end("nothing", 0, 0);
	begin(0, 1, SIZE);
	expect_on("a part", 100, 100);
	expect_end("then nothing, the file shrank", 0, 100);

	/* O_DIRECT goes on at blocks: 700 bytes are one block and a part. */
	begin(1, 512, SIZE);
	expect_on("part of a block", 700, 512);
	expect_on("no whole block", 511, 512);
	expect_on("one block", 512, 1024);
	expect_end("to the size", SIZE - 1024, SIZE);

	/* An unknown size: only a read of nothing is the end. */
	begin(0, 1, 0);
	expect_on("unsized", 100, 100);
	expect_end("unsized, nothing", 0, 100);
}

static void check_errors(void)
{
	static const int32_t errors[] = {-EINVAL, -EBADF, -ECANCELED, -ENXIO, -ENOMEM};
	static const int32_t of_sectors[] = {-EIO, -ENODATA, -EREMOTEIO, -EILSEQ};
	uint64_t before;

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		begin(0, 1, SIZE);
		expect_end("error", errors[i], errors[i]);
	}
	begin(0, 1, SIZE);
	expect_on("a part", 10, 10);
	expect_end("error after a part", -ENOMEM, -ENOMEM);

	/* Of a sector it may be a neighbour's, so it is tried once more. */
	for (size_t i = 0; i < sizeof(of_sectors) / sizeof(of_sectors[0]); i++) {
		begin(0, 1, SIZE);
		expect_on("through the cache", of_sectors[i], 0);
		expect_end("again", of_sectors[i], of_sectors[i]);
		begin(1, 512, SIZE);
		expect_on("of sectors", of_sectors[i], 0);
		expect_end("again", of_sectors[i], of_sectors[i]);
		begin(1, 512, SIZE);
		expect_on("one block", 512, 512);
		expect_on("of sectors", of_sectors[i], 512);
		expect_on("its own part was sound", 512, 1024);
		expect_on("of others again", of_sectors[i], 1024);
		expect_end("and its own", of_sectors[i], of_sectors[i]);
	}

	/* A direct read that is refused is tried once through the cache. */
	before = pin_meter_read(&rings_meter.direct_refusals);
	begin(1, 512, SIZE);
	/* Some file systems refuse the flag already. */
	(void)fcntl(file.fd, F_SETFL, O_DIRECT);
	expect_on("direct refused", -EINVAL, 0);
	expect_number("O_DIRECT is off", 0, fcntl(file.fd, F_GETFL) & O_DIRECT);
	expect_end("refused again", -EINVAL, -EINVAL);
	expect_true("counted", pin_meter_read(&rings_meter.direct_refusals) > before);
}

/* The same result for ever: it ends, and as what. */
static void check_bounded(const char *what, uint32_t align, int32_t result, int32_t expected)
{
	int rounds = 0;

	begin(align > 1 ? 1 : 0, align, SIZE);
	while (rounds < ROUNDS_MAX &&
		pin_request_complete(&ring, (uintptr_t)&request, result) == NULL) {
		struct io_uring_sqe sqe;

		expect_true(what, rings_take_entry(&ring, &sqe));
		rounds++;
	}
	expect_true("it was tried more than once and ended", rounds > 1 && rounds < ROUNDS_MAX);
	expect_number(what, expected, request.result);
}

/* Operations that are done whole or not at all. */
static void check_whole(uint16_t which, int32_t done)
{
	static struct statx status;
	struct io_uring_sqe sqe = {0};
	int rounds = 0;

	request = (struct pinion_request){.task.run = never_run,
		.op = which,
		.file = &file,
		.bytes = bytes,
		.path = "x",
		.new_path = "y",
		.status = &status,
		.length_bytes = LENGTH};
	expect_number("check", 0, pin_request_check(&request));
	expect_true("submit", submit());
	expect_true("its entry", rings_take_entry(&ring, &sqe));
	expect_true("interrupted", pin_request_complete(&ring, sqe.user_data, -EINTR) == NULL);
	expect_true("again", rings_take_entry(&ring, &sqe));
	expect_true("done", pin_request_complete(&ring, sqe.user_data, done) == &request);
	expect_number("result", done, request.result);

	expect_true("submit", submit());
	while (rings_take_entry(&ring, &sqe) && rounds < ROUNDS_MAX) {
		pin_request_complete(&ring, sqe.user_data, -EAGAIN);
		rounds++;
	}
	expect_true("bounded", rounds > 1 && rounds < ROUNDS_MAX);
	expect_number("as what", -EAGAIN, request.result);
	expect_true("submit", submit());
	expect_true("its entry", rings_take_entry(&ring, &sqe));
	expect_end("passed through", -ENOSPC, -ENOSPC);
}

/* A write that was done in part goes on, past the end of the file as well. */
static void check_short_writes(void)
{
	op = PINION_OP_WRITE;
	begin(0, 1, SIZE);
	reset_counts();
	expect_on("after 1000", 1000, 1000);
	expect_on("after the old size", SIZE, 1000 + SIZE);
	expect_on("nothing", 0, 1000 + SIZE);
	expect_counts(3, 0, 0);
	expect_number("so far", 1000 + SIZE, (long long)request.done_bytes);
	expect_end("no space", -ENOSPC, -ENOSPC);
	expect_number("that much was written", 1000 + SIZE, (long long)request.done_bytes);
	begin(1, 512, SIZE);
	expect_on("part of a block", 700, 512);
	expect_number("so far", 700, (long long)request.done_bytes);
	expect_on("less of it", 100, 512);
	expect_number("still", 700, (long long)request.done_bytes);
	expect_end("the rest", LENGTH - 512, LENGTH);
	check_bounded("nothing for ever", 1, 0, -EIO);
	op = PINION_OP_READ;
}

/* Cancelled, it goes on no more; the first outcome counts. */
static void check_ended_early(void)
{
	static const int32_t errors[] = {-ECANCELED, -EINTR, -EAGAIN, -512};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		begin(0, 1, SIZE);
		expect_on("a part", 100, 100);
		pin_request_of(&request)->ended_by = -ETIME;
		expect_end("ended", errors[i], -ETIME);
		expect_number("so far", 100, (long long)request.done_bytes);
	}
	begin(0, 1, SIZE);
	pin_request_of(&request)->ended_by = -ECANCELED;
	expect_end("a part", 100, -ECANCELED);
	expect_number("of that many bytes", 100, (long long)request.done_bytes);
	begin(0, 1, SIZE);
	pin_request_of(&request)->ended_by = -ECANCELED;
	expect_end("whole all the same", LENGTH, LENGTH);
	begin(0, 1, SIZE);
	pin_request_of(&request)->ended_by = -ECANCELED;
	expect_end("another error", -ENOMEM, -ENOMEM);
}

int main(void)
{
	struct pin_ring_options options = {.entries = 8, .helper_count = 1, .is_fallback = true};

	scratch_enter("request_continues_with_progress");
	file.fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", file.fd >= 0 && ftruncate(file.fd, SIZE) == 0);
	expect_ready("ring",
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log) == 0);
	check_arguments();
	check_priority();
	check_lane_priority(-EPERM);
	check_lane_priority(-EINVAL);
	check_registered();
	check_short_reads();
	check_errors();
	check_bounded("less than a block for ever", 512, 100, -EIO);
	check_bounded("interrupted for ever", 1, -EINTR, -EINTR);
	check_bounded("would block for ever", 1, -EAGAIN, -EAGAIN);
	check_bounded("to be restarted for ever", 1, -512, -EINTR);
	check_short_writes();
	check_ended_early();
	for (uint16_t i = 0; i < PIN_OP_COUNT; i++) {
		if (pin_op_is_in(i, PIN_OPS_WITH(PIN_OP_IS_WHOLE))) {
			check_whole(i, pin_op_is_in(i, PIN_OPS_WITH(PIN_OP_OPENS)) ? 99 : 0);
		}
	}
	expect_number("in flight", 0, ring.in_flight);
	rings_end(&ring);
	close(file.fd);
	scratch_leave();
	return expect_status();
}
