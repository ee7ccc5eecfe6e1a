/* SPDX-License-Identifier: MIT */
/*
 * Goal: misaligned requests are refused; short, interrupted and refused reads
 * go on where they stood, a bounded number of times, and end with the right
 * result; all other errors pass through.
 * Method: white box: made-up results are handed to pin_request_complete on a
 * fallback ring that is never polled, and the entry it queues is looked at.
 */
#include "runtime/io/request.h"
#include "tests/support/rings.h"

#include <fcntl.h>
#include <unistd.h>

enum {
	LENGTH = 8192,
	SIZE = 6000,
	ROUNDS_MAX = 1000,
	TAG_OPEN = 4,
};

static struct pin_ring ring;
static struct pinion_file file;
static struct pinion_request request;
static uint8_t bytes[LENGTH] __attribute__((aligned(4096)));

static int never_run(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/* Takes the one queued entry away, as if the kernel had. */
static bool take_entry(struct io_uring_sqe *out_sqe)
{
	if (ring.queued_count != 1) {
		return false;
	}
	*out_sqe = ring.queued[ring.queued_head];
	ring.queued_head = (ring.queued_head + 1) % ring.credit;
	ring.queued_count--;
	ring.in_flight--;
	return true;
}

static void begin(uint32_t is_direct, uint32_t align, uint64_t size)
{
	struct io_uring_sqe sqe = {0};

	file.is_direct = is_direct;
	file.memory_align_bytes = align;
	file.offset_align_bytes = align;
	file.size_bytes = size;
	request = (struct pinion_request){
		.task.run = never_run, .file = &file, .bytes = bytes, .length_bytes = LENGTH};
	expect_number("submit", 0, pin_request_submit(&ring, &request));
	expect_true("one entry", take_entry(&sqe));
	expect_number("length at first", LENGTH, sqe.len);
}

/* The request goes on at `offset` with all that is left. */
static void expect_on(const char *what, int32_t result, uint64_t offset)
{
	struct io_uring_sqe sqe = {0};

	expect_true(what, pin_request_complete(&ring, (uintptr_t)&request, result) == NULL);
	if (expect_true(what, take_entry(&sqe))) {
		expect_number(what, (long long)offset, (long long)sqe.off);
		expect_number(what, (long long)(LENGTH - offset), sqe.len);
		expect_true(what, (uintptr_t)sqe.addr == (uintptr_t)bytes + offset);
	}
}

static void expect_end(const char *what, int32_t result, int32_t expected)
{
	struct io_uring_sqe sqe;

	expect_true(
		what, pin_request_complete(&ring, (uintptr_t)&request, result) == &request.task);
	expect_true(what, !take_entry(&sqe));
	expect_number(what, expected, request.result);
}

static int submit_with(uint32_t memory_offset, uint64_t offset, uint32_t length)
{
	request = (struct pinion_request){.task.run = never_run,
		.file = &file,
		.bytes = bytes + memory_offset,
		.offset_bytes = offset,
		.length_bytes = length};
	return pin_request_submit(&ring, &request);
}

static void check_arguments(void)
{
	struct io_uring_sqe sqe;

	file.memory_align_bytes = 512;
	file.offset_align_bytes = 512;
	expect_number("aligned", 0, submit_with(512, 1024, 1536));
	expect_true("its entry", take_entry(&sqe));
	expect_number("memory off by 4", -EINVAL, submit_with(4, 0, 512));
	expect_number("offset off by 1", -EINVAL, submit_with(0, 1, 512));
	expect_number("length off by 1", -EINVAL, submit_with(0, 0, 511));
	expect_number("no length", -EINVAL, submit_with(0, 0, 0));
	expect_number("length over the kernel's", -EINVAL, submit_with(0, 0, 0x7ffff000u + 512));
	request.task.run = NULL;
	request.length_bytes = 512;
	expect_number("no function", -EINVAL, pin_request_submit(&ring, &request));
	request.task.run = never_run;
	request.file = NULL;
	expect_number("no file", -EINVAL, pin_request_submit(&ring, &request));
	expect_number("nothing was queued", 0, ring.queued_count);
}

static void check_short_reads(void)
{
	begin(0, 1, SIZE);
	expect_on("after 1000", 1000, 1000);
	expect_on("interrupted", -EINTR, 1000);
	expect_on("after 1 more", 1, 1001);
	expect_on("would block", -EAGAIN, 1001);
	expect_end("at the size", SIZE - 1001, SIZE);

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

	/* A size that is not told: only a read of nothing is the end. */
	begin(0, 1, 0);
	expect_on("unsized", 100, 100);
	expect_end("unsized, nothing", 0, 100);
}

static void check_errors(void)
{
	static const int32_t errors[] = {-EIO, -EINVAL, -EBADF, -ECANCELED, -ENXIO, -ENODATA};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		begin(0, 1, SIZE);
		expect_end("error", errors[i], errors[i]);
	}
	begin(0, 1, SIZE);
	expect_on("a part", 10, 10);
	expect_end("error after a part", -EIO, -EIO);

	/* A direct read that is refused is tried once through the cache. */
	begin(1, 512, SIZE);
	expect_ready("O_DIRECT", fcntl(file.fd, F_SETFL, O_DIRECT) == 0);
	expect_on("direct refused", -EINVAL, 0);
	expect_number("O_DIRECT is off", 0, fcntl(file.fd, F_GETFL) & O_DIRECT);
	expect_end("refused again", -EINVAL, -EINVAL);
}

/* The same result for ever: it ends, and as what. */
static void check_bounded(const char *what, uint32_t align, int32_t result, int32_t expected)
{
	int rounds = 0;

	begin(align > 1 ? 1 : 0, align, SIZE);
	while (rounds < ROUNDS_MAX &&
		pin_request_complete(&ring, (uintptr_t)&request, result) == NULL) {
		struct io_uring_sqe sqe;

		expect_true(what, take_entry(&sqe));
		rounds++;
	}
	expect_true("it was tried more than once and ended", rounds > 1 && rounds < ROUNDS_MAX);
	expect_number(what, expected, request.result);
}

static void check_open(void)
{
	struct pin_open open = {.task.run = never_run, .path = "x", .flags = O_RDONLY};
	struct io_uring_sqe sqe = {0};
	int rounds = 0;

	expect_number("open", 0, pin_open_submit(&ring, &open));
	expect_true("its entry", take_entry(&sqe));
	expect_number("its tag", TAG_OPEN, sqe.user_data & 7);
	expect_true("interrupted", pin_request_complete(&ring, sqe.user_data, -EINTR) == NULL);
	expect_true("again", take_entry(&sqe));
	expect_true("done", pin_request_complete(&ring, sqe.user_data, 99) == &open.task);
	expect_number("descriptor", 99, open.result);

	expect_number("open", 0, pin_open_submit(&ring, &open));
	while (take_entry(&sqe) && rounds < ROUNDS_MAX) {
		pin_request_complete(&ring, sqe.user_data, -EAGAIN);
		rounds++;
	}
	expect_true("bounded", rounds > 1 && rounds < ROUNDS_MAX);
	expect_number("as what", -EAGAIN, open.result);
}

int main(void)
{
	struct pin_ring_options options = {.entries = 8, .helper_count = 1, .is_fallback = true};
	FILE *stream = tmpfile();

	expect_ready("tmpfile", stream != NULL);
	file.fd = fileno(stream);
	expect_ready("size", ftruncate(file.fd, SIZE) == 0);
	expect_ready("ring",
		pin_ring_init(&ring, &pin_host_linux, &rings_meter, &options, &rings_log) == 0);
	check_arguments();
	check_short_reads();
	check_errors();
	check_bounded("less than a block for ever", 512, 100, -EIO);
	check_bounded("interrupted for ever", 1, -EINTR, -EINTR);
	check_bounded("would block for ever", 1, -EAGAIN, -EAGAIN);
	check_open();
	expect_number("in flight", 0, ring.in_flight);
	rings_end(&ring);
	fclose(stream);
	return expect_status();
}
