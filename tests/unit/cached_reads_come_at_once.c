/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read of what is in the page cache is answered with the file's bytes
 * by the call that submits it, also at its end; what is not there, large, or
 * behind the end goes through the ring, with the same bytes; misses in a row
 * are tried ever more rarely, a hit brings them all back. G3, G4.
 * Method: the policy against a count of the reads it tries; then a file that is
 * kept in the cache by mlock(2), where that and RWF_NOWAIT can be had.
 */
#include "runtime/io/cached.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum {
	SIZE = 200 * 1024 + 100,
	BLOCK = 4096,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_request request;
static sem_t has_ended;
static uint8_t written[SIZE];
static uint8_t bytes[SIZE];

/* Of `count` reads that all miss: how many are tried. */
static uint32_t count_tries(struct pin_cached *cached, int fd, uint32_t count)
{
	struct pinion_file file = {.fd = fd, .cached_percent = 100};
	struct pin_meter meter = {0};
	uint32_t tries = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct pinion_request one = {.file = &file, .bytes = bytes, .length_bytes = BLOCK};

		if (pin_cached_is_worth_it(cached, &one)) {
			tries++;
			expect_true("a miss", !pin_cached_read(cached, &meter, &one));
			expect_number("leaves it alone", 0, one.result);
		}
	}
	return tries;
}

static void check_policy(int fd)
{
	struct pin_cached cached = {0};
	struct pinion_file file = {.fd = fd, .cached_percent = 100, .size_bytes = SIZE};
	struct pinion_request one = {.file = &file, .bytes = bytes, .length_bytes = BLOCK};
	struct pin_meter meter = {0};

	/* The 1st, 3rd, 6th, 11th, 20th, 37th and 70th. */
	expect_number("tries", 7, count_tries(&cached, -1, 70));
	expect_number("at last one in 65", 10, count_tries(&cached, -1, 650));
	while (!pin_cached_is_worth_it(&cached, &one)) {
	}
	expect_true("a hit", pin_cached_read(&cached, &meter, &one));
	expect_true("all are tried again", pin_cached_is_worth_it(&cached, &one));
	one.length_bytes = PIN_CACHED_BYTES_MAX + 1;
	expect_true("not the large ones", !pin_cached_is_worth_it(&cached, &one));
	one.length_bytes = BLOCK;
	one.op = PINION_OP_WRITE;
	expect_true("not writes", !pin_cached_is_worth_it(&cached, &one));
	one.op = PINION_OP_READ;
	file.cached_percent = 255;
	expect_true("not what is unknown", !pin_cached_is_worth_it(&cached, &one));
	file.cached_percent = 0;
	expect_true("not what was not there", !pin_cached_is_worth_it(&cached, &one));
	file.cached_percent = 100;
	file.is_direct = 1;
	expect_true("not past the cache", !pin_cached_is_worth_it(&cached, &one));
}

static int note_end(struct pinion_task *task)
{
	(void)task;
	sem_post(&has_ended);
	return 0;
}

static void read_at(struct pinion_file *file, uint64_t offset, uint64_t length, long at_once)
{
	uint64_t before = runtimes_counters(runtime).cached_reads;
	uint64_t there = offset < SIZE ? SIZE - offset : 0;
	uint64_t expected = length < there ? length : there;

	memset(bytes, 0, sizeof(bytes));
	request = (struct pinion_request){.task.run = note_end,
		.file = file,
		.bytes = bytes,
		.offset_bytes = offset,
		.length_bytes = length};
	expect_number("submit", 0, pinion_request_submit(runtime, &request));
	while (sem_wait(&has_ended) != 0) {
	}
	expect_number("result", (long long)expected, request.result);
	expect_number("done", (long long)expected, (long long)request.done_bytes);
	expect_true("bytes", memcmp(bytes, &written[offset < SIZE ? offset : 0], expected) == 0);
	if (at_once >= 0) {
		expect_number("at once", at_once,
			(long long)(runtimes_counters(runtime).cached_reads - before));
	}
}

/* `hits`: 1 where the file system can promise that it does not wait, or -1. */
static void check_reads(struct pinion_file *file, long hits)
{
	expect_number("cached", 100, file->cached_percent);
	read_at(file, 0, BLOCK, hits);
	read_at(file, 12345, 678, hits);
	read_at(file, SIZE - 100, BLOCK, hits);
	read_at(file, 0, SIZE, 0);
	read_at(file, SIZE, BLOCK, 0);
	read_at(file, 2ull * SIZE, BLOCK, 0);
}

static struct pinion_file open_written(void)
{
	struct pinion_file file;
	int fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);

	expect_ready("file", fd >= 0 && write(fd, written, SIZE) == SIZE && close(fd) == 0);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	return file;
}

/* Keeps it in the cache; false also where no read can promise not to wait. */
static bool can_promise(const struct pinion_file *file)
{
	struct iovec vector = {.iov_base = bytes, .iov_len = BLOCK};
	void *memory = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, file->fd, 0);

	return memory != MAP_FAILED && mlock(memory, SIZE) == 0 &&
		preadv2(file->fd, &vector, 1, 0, RWF_NOWAIT) == BLOCK;
}

int main(void)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_FALLBACK};
	struct pinion_file file;
	bool promises;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("cached_reads_come_at_once");
	for (int i = 0; i < SIZE; i++) {
		written[i] = (uint8_t)(i * 7 + i / 4096);
	}
	sem_init(&has_ended, 0, 0);
	file = open_written();
	promises = can_promise(&file);
	if (promises) {
		check_policy(file.fd);
	}
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		runtime = runtimes_start(1, levels[i]);
		check_reads(&file, promises ? 1 : -1);
		pinion_runtime_destroy(runtime);
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
