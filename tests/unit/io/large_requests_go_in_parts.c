/* SPDX-License-Identifier: MIT */
/*
 * Goal: requests of more than 2 GiB are done whole, in parts, as one request
 * with one end: no byte at the wrong place where parts meet, at a tail or in a
 * hole, past the cache and through it; an error, a cancel and a deadline in the
 * middle say how far it has got. With rings and without. G2, G3, G4.
 * Hazard that others met: bytes that were moved are hidden by ECANCELED.
 * Method: most of the memory is the same few pages over and over; the bytes
 * around the ends of parts are memory of their own, and are compared. /dev/null
 * takes any number of bytes without reading them, a sealed file this number.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include "runtime/io/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PART ((uint64_t)PIN_REQUEST_PART_BYTES)
/* ThreadSanitizer keeps four bytes for each that is read. */
#ifdef __SANITIZE_THREAD__
#define PARTS UINT64_C(4)
#else
#define PARTS UINT64_C(32)
#endif
#define TAIL_BYTES UINT64_C(4096)
#define FILE_BYTES (PARTS * PART + TAIL_BYTES + 100)
#define MAP_BYTES (FILE_BYTES + PART)
/* Enough parts that other requests come in between. */
#define ENDLESS_BYTES (UINT64_C(1) << 46)

enum {
	SEAM_BYTES = 32 << 10, /* of memory of its own, at each end of a part */
	BLOCK = 4096,
	LIMIT_SECONDS = 200,
};

static struct pinion_runtime *runtime;
static uint8_t *memory;
static uint8_t seam[SEAM_BYTES] __attribute__((aligned(BLOCK)));

/* ---- memory that is larger than it is ---- */

static void map_memory(void)
{
	int fd = memfd_create("same pages", MFD_CLOEXEC);
	uint8_t *at;

	expect_ready("memfd", fd >= 0 && ftruncate(fd, (off_t)PART) == 0);
	at = mmap(NULL, MAP_BYTES + PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		-1, 0);
	expect_ready("address space", at != MAP_FAILED);
	memory = at;
	for (uint64_t offset = 0; offset < MAP_BYTES; offset += PART) {
		expect_ready("pages",
			mmap(memory + offset, PART, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
				fd, 0) != MAP_FAILED);
	}
	for (uint64_t offset = PART; offset < MAP_BYTES; offset += PART) {
		expect_ready("a seam",
			mmap(memory + offset - SEAM_BYTES / 2, SEAM_BYTES, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	}
	close(fd);
}

/* What the file holds around the end of a part; of odd ones nothing: a hole. */
static void fill_seam(uint64_t number)
{
	for (size_t i = 0; i < SEAM_BYTES; i++) {
		seam[i] = number % 2 != 0 ? 0 : (uint8_t)(number * 31 + i * 7 + (i >> 8));
	}
}

static size_t seam_length(uint64_t start)
{
	return start + SEAM_BYTES < FILE_BYTES ? SEAM_BYTES : (size_t)(FILE_BYTES - start);
}

static void write_seams(int fd)
{
	expect_ready("size", ftruncate(fd, (off_t)FILE_BYTES) == 0);
	for (uint64_t number = 2; number <= PARTS; number += 2) {
		uint64_t start = number * PART - SEAM_BYTES / 2;
		size_t length = seam_length(start);

		fill_seam(number);
		expect_ready("write", pwrite(fd, seam, length, (off_t)start) == (ssize_t)length);
	}
	expect_ready("sync", fsync(fd) == 0);
}

static void spoil_seams(void)
{
	for (uint64_t number = 1; number <= PARTS; number++) {
		memset(memory + number * PART - SEAM_BYTES / 2, 0xaa, SEAM_BYTES);
	}
}

static void check_seams(void)
{
	for (uint64_t number = 1; number <= PARTS; number++) {
		uint64_t start = number * PART - SEAM_BYTES / 2;
		size_t length = seam_length(start);

		fill_seam(number);
		if (memcmp(memory + start, seam, length) != 0) {
			expect_number("a seam of wrong bytes: none", 0, (long long)number);
			return;
		}
	}
}

/* ---- whole ---- */

static void check_read(struct pinion_file *file, const char *what)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_READ);
	struct pinion_runtime_stats before = runtimes_counters(runtime);
	struct pinion_runtime_stats after;

	spoil_seams();
	request->file = file;
	request->bytes = memory;
	request->length_bytes = pin_round_up(FILE_BYTES, BLOCK) + BLOCK;
	expect_number(what, (long long)FILE_BYTES, requests_do(runtime, &one));
	expect_number("done", (long long)FILE_BYTES, (long long)request->done_bytes);
	check_seams();
	/* Past the cache, kernels fill the whole of the requested length. */
	expect_true("nothing after the end", file->is_direct != 0 || memory[FILE_BYTES] == 0xaa);
	after = runtimes_counters(runtime);
	expect_number("one request", 1,
		(long long)(after.requests_completed - before.requests_completed));
	expect_number("of all bytes", (long long)FILE_BYTES,
		(long long)(after.read_bytes - before.read_bytes));
}

static void check_reads(void)
{
	struct pinion_file file = {.fd = memfd_create("sparse", MFD_CLOEXEC),
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = FILE_BYTES};
	int fd;

	write_seams(file.fd);
	check_read(&file, "through the cache");
	close(file.fd);
	fd = open("sparse", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	write_seams(fd);
	close(fd);
	expect_number("open", 0, pinion_file_open(&file, "sparse", PINION_DIRECT_ALWAYS));
	/* Where there is no O_DIRECT that would fill the page cache. */
	if (file.is_direct != 0) {
		check_read(&file, "past the cache");
	} else {
		printf("not tried past the cache: no O_DIRECT here\n");
	}
	pinion_file_close(&file);
	expect_ready("unlink", unlink("sparse") == 0);
}

static void begin_write(struct requests_one *one, struct pinion_file *file, uint64_t length)
{
	struct pinion_request *request = requests_begin(one, PINION_OP_WRITE);

	request->file = file;
	request->bytes = memory;
	request->length_bytes = length;
}

static void check_writes(void)
{
	struct pinion_file file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	struct requests_one one;

	begin_write(&one, &file, FILE_BYTES);
	expect_number("written", (long long)FILE_BYTES, requests_do(runtime, &one));
	expect_number("done", (long long)FILE_BYTES, (long long)one.request.done_bytes);
	close(file.fd);
}

/* ---- not whole ---- */

static void check_error(void)
{
	uint64_t room = PART + BLOCK;
	struct pinion_file file =
		runtimes_plain_file(memfd_create("full", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	struct requests_one one;
	uint8_t byte;

	expect_ready("seal",
		ftruncate(file.fd, (off_t)room) == 0 &&
			fcntl(file.fd, F_ADD_SEALS, F_SEAL_GROW) == 0);
	memset(memory + PART, 0x5a, SEAM_BYTES / 2);
	begin_write(&one, &file, FILE_BYTES);
	expect_number("no more room", -EPERM, requests_do(runtime, &one));
	expect_ready("read", pread(file.fd, &byte, 1, (off_t)room - 1) == 1);
	/* Some kernels begin what crosses the seal, others refuse it whole. */
	expect_true("done", one.request.done_bytes == room || one.request.done_bytes == PART);
	expect_number("its last byte", one.request.done_bytes == room ? 0x5a : 0, byte);
	close(file.fd);
}

/* Memory that is never read need not exist, only be valid. */
static void begin_endless(struct requests_one *one, struct pinion_file *file)
{
	begin_write(one, file, ENDLESS_BYTES);
	one->request.bytes = (uint8_t *)(uintptr_t)BLOCK;
}

/* A task that submits, makes way until there is progress, and cancels. */
struct canceller {
	struct pinion_task task;
	struct requests_one one;
	bool has_begun;
	int rc;
};

static int cancel_later(struct pinion_task *task)
{
	struct canceller *canceller = PIN_CONTAINER_OF(task, struct canceller, task);
	struct pinion_request *request = &canceller->one.request;

	if (!canceller->has_begun) {
		canceller->has_begun = true;
		canceller->rc = pinion_request_submit(runtime, request);
	}
	/* Its worker, this one, counts them. */
	if (canceller->rc == 0 && request->done_bytes == 0) {
		return pinion_task_respawn(runtime, task);
	}
	canceller->rc = pinion_request_cancel(runtime, request);
	return 0;
}

static void expect_middle(const struct requests_one *one)
{
	expect_true("not all of it", one->request.done_bytes < ENDLESS_BYTES);
	expect_number("whole parts", 0, (long long)(one->request.done_bytes % PART));
}

static void check_cancel(void)
{
	struct pinion_file file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	struct canceller canceller = {.task.run = cancel_later};

	begin_endless(&canceller.one, &file);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &canceller.task));
	expect_number("cancelled", -ECANCELED, requests_await(&canceller.one));
	expect_number("by the task", 0, canceller.rc);
	expect_true("some of it", canceller.one.request.done_bytes > 0);
	expect_middle(&canceller.one);
	close(file.fd);
}

/* On a paused machine the first part may come too late. */
static void check_deadline(void)
{
	struct pinion_file file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	struct requests_one one;
	uint64_t span_ns = 1000 * 1000;

	do {
		begin_endless(&one, &file);
		one.request.deadline_ns = pinion_clock_now_ns() + span_ns;
		expect_number("too late", -ETIME, requests_do(runtime, &one));
		expect_middle(&one);
		span_ns *= 2;
	} while (one.request.done_bytes == 0);
	close(file.fd);
}

static void check_level(uint32_t io_level)
{
	runtime = runtimes_start(1, io_level);
	check_reads();
	check_writes();
	check_error();
	check_cancel();
	check_deadline();
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("large_requests");
	map_memory();
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	scratch_leave();
	return expect_status();
}
