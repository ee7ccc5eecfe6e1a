/* SPDX-License-Identifier: MIT */
/*
 * Goal: vectored reads and writes move each element, in order, whole but where
 * the file ends, an element is no memory, or a cancel or deadline comes: then
 * done_bytes says how far they got. With rings and without, past the page cache
 * and through it. Their device has them in its books, and rates hold them back.
 * G2, G3, G4.
 * Method: the same bytes cut in several ways, written, read, and compared with
 * plain system calls; a pipe that is filled little by little makes short reads.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/limit.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>

/* Used again for another operation, it keeps no count as its flags. */
_Static_assert(offsetof(struct pinion_request, vector_count) >=
		offsetof(struct pinion_request, flags) + sizeof(uint32_t),
	"the count has a field of its own");

enum {
	BLOCK = 4096,
	BLOCKS = 40,
	BYTES = BLOCKS * BLOCK,
	VECTOR_MAX = 1024, /* IOV_MAX */
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static uint8_t written[BYTES] __attribute__((aligned(BLOCK)));
static uint8_t memory[BYTES] __attribute__((aligned(BLOCK)));
static uint8_t in_order[BYTES];
static struct iovec vector[VECTOR_MAX + 1];

/* Elements from the end of the memory on; how many bytes they are. */
static uint64_t cut(const uint32_t *lengths, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += lengths[i];
		vector[i] = (struct iovec){.iov_base = memory + BYTES - sum, .iov_len = lengths[i]};
	}
	return sum;
}

/* So many bytes of the elements, one after the other. */
static void gather(uint64_t length)
{
	uint64_t done = 0;

	for (uint32_t i = 0; done < length; i++) {
		uint64_t part = vector[i].iov_len;

		part = part < length - done ? part : length - done;
		memcpy(in_order + done, vector[i].iov_base, part);
		done += part;
	}
}

static void scatter(uint64_t length)
{
	uint64_t done = 0;

	for (uint32_t i = 0; done < length; i++) {
		memcpy(vector[i].iov_base, written + done, vector[i].iov_len);
		done += vector[i].iov_len;
	}
}

static struct pinion_request *begin(struct requests_one *one, uint16_t op, struct pinion_file *file,
	uint64_t offset, uint32_t count, uint64_t length)
{
	struct pinion_request *request = requests_begin(one, op);

	request->file = file;
	request->vector = vector;
	request->vector_count = count;
	request->offset_bytes = offset;
	request->length_bytes = length;
	return request;
}

static int64_t move(
	uint16_t op, struct pinion_file *file, uint64_t offset, uint32_t count, uint64_t length)
{
	struct requests_one one;
	int64_t result;

	begin(&one, op, file, offset, count, length);
	result = requests_do(runtime, &one);
	if (result >= 0) {
		expect_number("done_bytes", result, (long long)one.request.done_bytes);
	}
	return result;
}

static struct pinion_file open_file(const char *path, uint32_t direct)
{
	struct pinion_file_options options;
	struct pinion_file file;

	pinion_file_options_init(&options);
	options.flags =
		PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = direct;
	expect_number("open", 0, pinion_file_open_with(&file, path, &options));
	return file;
}

/* ---- whole ---- */

static void expect_content(const char *path, uint64_t offset, uint64_t length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	expect_number("size", (long long)length, pread(fd, in_order, BYTES, (off_t)offset));
	expect_true("written in order", memcmp(written, in_order, length) == 0);
	close(fd);
}

static void check_content(uint32_t direct)
{
	static const uint32_t odd[] = {1, 4095, 0, 7000, 100, 20000, 31};
	static const uint32_t blocks[] = {BLOCK, 3 * BLOCK, 2 * BLOCK, 10 * BLOCK, 4 * BLOCK};
	static const uint32_t others[] = {7 * BLOCK, BLOCK, BLOCK, 11 * BLOCK};
	struct pinion_file file = open_file("content", direct);
	uint64_t length = cut(blocks, 5);

	scatter(length);
	expect_number(
		"written", (long long)length, move(PINION_OP_WRITEV, &file, BLOCK, 5, length));
	expect_content("content", BLOCK, length);
	expect_number("cut otherwise", (long long)length, (long long)cut(others, 4));
	memset(memory, 0, BYTES);
	expect_number("read", (long long)length, move(PINION_OP_READV, &file, BLOCK, 4, length));
	gather(length);
	expect_true("bytes written", memcmp(written, in_order, length) == 0);
	memset(memory, 0xaa, BYTES);
	expect_number("across the end", (long long)length - 2 * BLOCK,
		move(PINION_OP_READV, &file, 3 * (uint64_t)BLOCK, 4, length));
	gather(length - 2 * BLOCK);
	expect_true(
		"the last bytes", memcmp(written + 2 * BLOCK, in_order, length - 2 * BLOCK) == 0);
	expect_number(
		"after the end", 0, move(PINION_OP_READV, &file, 30 * (uint64_t)BLOCK, 4, length));
	if (file.is_direct == 0) {
		length = cut(odd, 7);
		scatter(length);
		expect_number("of any length", (long long)length,
			move(PINION_OP_WRITEV, &file, 26 * (uint64_t)BLOCK + 5, 7, length));
		expect_content("content", 26 * (uint64_t)BLOCK + 5, length);
	} else {
		cut(blocks, 2);
		vector[1].iov_base = (uint8_t *)vector[1].iov_base + 1;
		expect_number("memory that is not aligned", -EINVAL,
			move(PINION_OP_READV, &file, 0, 2, 4 * BLOCK));
		vector[1].iov_base = (uint8_t *)vector[1].iov_base - 1;
		vector[1].iov_len++;
		expect_number(
			"a length", -EINVAL, move(PINION_OP_WRITEV, &file, 0, 2, 4 * BLOCK + 1));
	}
	pinion_file_close(&file);
}

static void check_many(void)
{
	static uint32_t lengths[VECTOR_MAX + 1];
	struct pinion_file file = open_file("many", PINION_DIRECT_NEVER);
	uint64_t length;

	for (uint32_t i = 0; i <= VECTOR_MAX; i++) {
		lengths[i] = i % 3;
	}
	length = cut(lengths, VECTOR_MAX);
	scatter(length);
	expect_number("as many as can be", (long long)length,
		move(PINION_OP_WRITEV, &file, 0, VECTOR_MAX, length));
	expect_content("many", 0, length);
	memset(memory, 0, BYTES);
	expect_number("as many as can be", (long long)length,
		move(PINION_OP_READV, &file, 0, VECTOR_MAX, length));
	gather(length);
	expect_true("each of them", memcmp(written, in_order, length) == 0);
	length = cut(lengths, VECTOR_MAX + 1);
	expect_number("one more", -EINVAL, move(PINION_OP_READV, &file, 0, VECTOR_MAX + 1, length));
	expect_number("none", 0, move(PINION_OP_READV, &file, 0, 0, 0));
	expect_number("none", 0, move(PINION_OP_WRITEV, &file, 0, 0, 0));
	expect_number("one without a byte", 0, move(PINION_OP_WRITEV, &file, 0, 1, 0));
	pinion_file_close(&file);
	expect_number("of no file", -EBADF, move(PINION_OP_READV, &file, 0, 0, 0));
}

/* ---- not whole ---- */

static void check_error(void)
{
	static const uint32_t lengths[] = {2 * BLOCK, BLOCK, BLOCK};
	struct pinion_file file = open_file("error", PINION_DIRECT_NEVER);
	uint64_t length = cut(lengths, 3);
	uint8_t *no_memory = mmap(NULL, BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct requests_one one;

	expect_ready("address space", no_memory != MAP_FAILED);
	scatter(length);
	expect_number("written", (long long)length, move(PINION_OP_WRITEV, &file, 0, 3, length));
	memset(memory, 0, BYTES);
	vector[1].iov_base = no_memory;
	begin(&one, PINION_OP_READV, &file, 0, 3, length);
	expect_number("no memory", -EFAULT, requests_do(runtime, &one));
	expect_number("what was read", 2 * BLOCK, (long long)one.request.done_bytes);
	expect_true("of the file", memcmp(vector[0].iov_base, written, 2 * BLOCK) == 0);
	expect_number("nothing after it", 0, ((uint8_t *)vector[2].iov_base)[0]);
	expect_number("empty", 0, pinion_file_resize(&file, 0));
	begin(&one, PINION_OP_WRITEV, &file, 0, 3, length);
	expect_number("no memory", -EFAULT, requests_do(runtime, &one));
	expect_number("what was written", 2 * BLOCK, (long long)one.request.done_bytes);
	expect_content("error", 0, 2 * BLOCK);
	munmap(no_memory, BLOCK);
	pinion_file_close(&file);
}

static int bytes_in(int fd)
{
	int count = 0;

	expect_ready("bytes in the pipe", ioctl(fd, FIONREAD, &count) == 0);
	return count;
}

/* Its reader has taken all. */
static void await_empty(int fd)
{
	while (bytes_in(fd) > 0) {
		sched_yield();
	}
}

/* A pipe's reader gets the bytes there are; the library asks for the rest. */
static void check_pipe(void)
{
	static const uint32_t lengths[] = {100, 200, 50};
	struct requests_one one;
	struct pinion_file file;
	int ends[2];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	file = runtimes_plain_file(ends[0]);
	begin(&one, PINION_OP_READV, &file, 0, 3, cut(lengths, 3));
	expect_ready("write", write(ends[1], written, 30) == 30);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	for (int done = 30; done < 350; done += 40) {
		await_empty(ends[0]);
		expect_ready("write", write(ends[1], written + done, 40) == 40);
	}
	expect_number("in the end", 350, requests_await(&one));
	gather(350);
	expect_true("all in order", memcmp(written, in_order, 350) == 0);

	begin(&one, PINION_OP_READV, &file, 0, 3, 350);
	expect_ready("write", write(ends[1], written, 150) == 150);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	await_empty(ends[0]);
	expect_number("cancel", 0, pinion_request_cancel(runtime, &one.request));
	expect_number("cancelled", -ECANCELED, requests_await(&one));
	expect_number("so far", 150, (long long)one.request.done_bytes);

	begin(&one, PINION_OP_READV, &file, 0, 3, 350);
	expect_ready("write", write(ends[1], written, 150) == 150);
	one.request.deadline_ns = pinion_clock_now_ns() + 50 * 1000 * 1000;
	expect_number("too late", -ETIME, requests_do(runtime, &one));
	expect_true("so far", one.request.done_bytes == 150 || one.request.done_bytes == 0);
	close(ends[0]);
	close(ends[1]);
}

static void check_too_late(void)
{
	static const uint32_t lengths[] = {BLOCK, BLOCK};
	struct pinion_file file = open_file("late", PINION_DIRECT_NEVER);
	struct requests_one one;

	begin(&one, PINION_OP_WRITEV, &file, 0, 2, cut(lengths, 2))->deadline_ns = 1;
	expect_number("too late", -ETIME, requests_do(runtime, &one));
	expect_number("nothing is written", 0, lseek(file.fd, 0, SEEK_END));
	pinion_file_close(&file);
}

/* ---- books ---- */

static void limit(uint64_t bytes_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.bytes_per_second = bytes_per_second;
	limits.depth_count = 4; /* exact, so that workers keep none of it */
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

static struct pinion_device_stats figures(void)
{
	struct pinion_device_stats stats;

	expect_number("figures", 0, pinion_device_get_stats(runtime, 0, &stats, sizeof(stats)));
	return stats;
}

static void check_books(void)
{
	static const uint32_t lengths[] = {BLOCK, 0, 3 * BLOCK};
	struct pinion_file file = open_file("books", PINION_DIRECT_NEVER);
	struct pinion_runtime_stats before = runtimes_counters(runtime);
	struct pinion_runtime_stats after;
	struct pinion_device_stats device;
	struct pinion_device_stats device_before;
	struct requests_one one;
	uint64_t length = cut(lengths, 3);

	expect_number("written", (long long)length, move(PINION_OP_WRITEV, &file, 0, 3, length));
	device_before = figures();
	expect_number("read", (long long)length, move(PINION_OP_READV, &file, 0, 3, length));
	expect_number("none", 0, move(PINION_OP_READV, &file, 0, 0, 0));
	after = runtimes_counters(runtime);
	device = figures();
	expect_number(
		"bytes read", (long long)length, (long long)(after.read_bytes - before.read_bytes));
	expect_number("bytes written", (long long)length,
		(long long)(after.write_bytes - before.write_bytes));
	expect_number("not registered", 2,
		(long long)(after.unregistered_reads - before.unregistered_reads));
	expect_number("not registered", 1,
		(long long)(after.unregistered_writes - before.unregistered_writes));
	expect_number("no copies", 0, (long long)(after.cached_reads - before.cached_reads));
	expect_number("of the device", 2, (long long)(device.requests - device_before.requests));
	expect_number(
		"its bytes", (long long)length, (long long)(device.bytes - device_before.bytes));

	limit(1);
	/* A block is paid at once, the next would be in an hour. */
	begin(&one, PINION_OP_READV, &file, 0, 3, length);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	while (figures().throttled == device.throttled) {
		sched_yield();
	}
	expect_number("nothing in the device", 0, (long long)figures().taken_count);
	limit(0);
	expect_number("in the end", (long long)length, requests_await(&one));
	pinion_file_close(&file);
}

static void check(uint32_t io_level)
{
	struct pinion_runtime_info facts;

	runtime = runtimes_start(1, io_level);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	check_books();
	check_content(PINION_DIRECT_ALWAYS);
	check_content(PINION_DIRECT_NEVER);
	check_many();
	check_error();
	check_too_late();
	if (facts.uses_ring != 0) {
		check_pipe();
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("vectors_are_moved_whole");
	for (size_t i = 0; i < BYTES; i++) {
		written[i] = (uint8_t)(i * 37 + i / BLOCK + 1);
	}
	check(PINION_IO_AUTO);
	check(PINION_IO_FALLBACK);
	scratch_leave();
	return expect_status();
}
