/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read of bytes in the page cache is answered with the file's bytes by
 * the call that submits it, also at its end, when it comes alone; of several
 * the first is, and the others share the ring, as do all that are submitted
 * while ends wait to be run; but where there are rates to keep, all cached
 * reads are answered at once. Reads of bytes that are not cached, large, or
 * after the end go through the ring, with the same bytes; misses in a row are
 * tried ever more rarely, a hit brings them all back. G3, G4.
 * Method: the policy against a count of the reads it tries; then a file that is
 * kept in the cache by mlock(2), where that and RWF_NOWAIT can be had.
 */
#include "runtime/io/request.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <semaphore.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum {
	SIZE = 200 * 1024 + 100,
	BLOCK = 4096,
	BATCH = 8,
	ROUNDS = 5,
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
	expect_true("not of unknown state", !pin_cached_is_worth_it(&cached, &one));
	file.cached_percent = 0;
	expect_true("not of absent data", !pin_cached_is_worth_it(&cached, &one));
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

static struct pinion_request batch[BATCH];
static struct pinion_file *batch_file;
static uint32_t open_count;  /* of the round in hand */
static uint32_t rounds_left; /* besides it */

static int note_batch_end(struct pinion_task *task);

/* Each block of its own, to where it belongs. */
static void submit_one_of(uint32_t i)
{
	batch[i] = (struct pinion_request){.task.run = note_batch_end,
		.file = batch_file,
		.bytes = bytes + (size_t)i * BLOCK,
		.offset_bytes = (uint64_t)i * BLOCK,
		.length_bytes = BLOCK};
	expect_number("submit one of several", 0, pinion_request_submit(runtime, &batch[i]));
}

static int submit_round(struct pinion_task *task)
{
	(void)task;
	open_count = BATCH;
	for (uint32_t i = 0; i < BATCH; i++) {
		submit_one_of(i);
	}
	return 0;
}

static int note_batch_end(struct pinion_task *task)
{
	const struct pinion_request *one = PIN_CONTAINER_OF(task, struct pinion_request, task);

	expect_number("one of several", BLOCK, one->result);
	if (--open_count > 0) {
		return 0;
	}
	if (rounds_left-- == 0) {
		sem_post(&has_ended);
		return 0;
	}
	return submit_round(task);
}

/*
 * In this number of rounds of all, the call that submits them copies the bytes.
 */
static void check_several(struct pinion_file *file, bool promises, long at_once)
{
	static struct pinion_task first;
	uint64_t before = runtimes_counters(runtime).cached_reads;

	memset(bytes, 0, sizeof(bytes));
	batch_file = file;
	rounds_left = ROUNDS - 1;
	first = (struct pinion_task){.run = submit_round};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
	while (sem_wait(&has_ended) != 0) {
	}
	expect_true("bytes of several", memcmp(bytes, written, (size_t)BATCH * BLOCK) == 0);
	if (promises) {
		expect_number("at once, of several", at_once,
			(long long)(runtimes_counters(runtime).cached_reads - before));
	}
}

/* So high that nothing ever waits for them. */
static void set_rates(void)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.requests_per_second = 1000 * 1000 * 1000;
	expect_number("rates", 0, pinion_runtime_set_limits(runtime, &limits));
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
		/* Of each round only the first finds nothing before it. */
		check_several(&file, promises, ROUNDS);
		set_rates();
		check_several(&file, promises, BATCH * ROUNDS);
		pinion_runtime_destroy(runtime);
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
