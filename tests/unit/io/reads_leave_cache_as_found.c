/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffered read of a file of which nothing was cached leaves nothing in
 * the cache, by RWF_DONTCACHE where the file system has it, else by a DONTNEED
 * after it; a file that refuses the flag although it seemed to take it is read
 * all the same; the counters say which it was. A user that asks for the cache
 * by name keeps it. G3.
 * Method: a file just evicted, read whole by one request, with a ring and
 * without; mincore(2) says which pages are cached. A memfd refuses the flag.
 */
#include "runtime/io/file.h"
#include "tests/support/cached.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <semaphore.h>
#include <sys/mman.h>

enum {
	PAGES = 64,
	SIZE = PAGES * CACHED_PAGE_BYTES,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_request request;
static sem_t has_ended;
static uint8_t written[SIZE];
static uint8_t bytes[SIZE] __attribute__((aligned(4096)));

/* False where the file system keeps what it has. */
static bool evict(void)
{
	int fd = open("file", O_RDONLY | O_CLOEXEC);
	bool is_gone;

	expect_ready("file", fd >= 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	is_gone = cached_count(fd, PAGES) == 0;
	close(fd);
	return is_gone;
}

static int note_end(struct pinion_task *task)
{
	(void)task;
	sem_post(&has_ended);
	return 0;
}

/* Whole, and as many of them as `counters` say. */
static void read_whole(
	const char *what, struct pinion_file *file, int dontcache_count, int evicted_count)
{
	struct pinion_runtime_stats before = runtimes_counters(runtime);
	struct pinion_runtime_stats after;

	memset(bytes, 0, sizeof(bytes));
	request = (struct pinion_request){
		.task.run = note_end, .file = file, .bytes = bytes, .length_bytes = SIZE};
	expect_number(what, 0, pinion_request_submit(runtime, &request));
	while (sem_wait(&has_ended) != 0) {
	}
	expect_number(what, SIZE, request.result);
	expect_true(what, memcmp(bytes, written, SIZE) == 0);
	after = runtimes_counters(runtime);
	expect_number(
		what, dontcache_count, (long long)(after.dontcache_reads - before.dontcache_reads));
	expect_number(what, evicted_count, (long long)(after.evicted_reads - before.evicted_reads));
}

static void adopt(struct pinion_file *file, const struct pin_device_cache *devices)
{
	struct pin_device_cache cache = *devices;
	int fd = open("file", O_RDONLY | O_CLOEXEC);

	expect_ready("file", fd >= 0);
	expect_number("adopt", 0, pin_file_adopt(file, fd, PINION_DIRECT_NEVER, 0, &cache));
	expect_number("nothing is cached", 0, file->cached_percent);
}

static void check_cold(void)
{
	const struct pin_device_cache asks = {0};
	const struct pin_device_cache skips = {.skips_dontcache = true};
	struct pinion_file file;
	bool has_flag;

	adopt(&file, &asks);
	has_flag = (file.flags & PIN_FILE_DONTCACHE) != 0;
	expect_number("asking reads nothing", 0, cached_count(file.fd, PAGES));
	read_whole("with the flag", &file, has_flag ? 1 : 0, has_flag ? 0 : 1);
	expect_number("left in the cache", 0, cached_count(file.fd, PAGES));
	pinion_file_close(&file);

	adopt(&file, &skips);
	expect_true("not asked", (file.flags & PIN_FILE_DONTCACHE) == 0);
	read_whole("without it", &file, 0, 1);
	expect_number("left in the cache", 0, cached_count(file.fd, PAGES));
	pinion_file_close(&file);

	expect_number("by name", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	read_whole("through the cache", &file, 0, 0);
	expect_number("kept", PAGES, cached_count(file.fd, PAGES));
	pinion_file_close(&file);
}

/* As a file whose file system would turn out not to have it. */
static void check_refused(void)
{
	int fd = memfd_create("refuses", MFD_CLOEXEC);
	struct pinion_file file;

	expect_ready("memfd", fd >= 0 && write(fd, written, SIZE) == SIZE);
	expect_number("adopt", 0, pin_file_adopt(&file, fd, PINION_DIRECT_NEVER, 0, NULL));
	expect_true("a memfd does not take it", (file.flags & PIN_FILE_DONTCACHE) == 0);
	file.flags |= PIN_FILE_EVICT | PIN_FILE_DONTCACHE;
	read_whole("refused", &file, 0, 1);
	pinion_file_close(&file);
}

int main(void)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_FALLBACK};
	bool can_evict;
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("reads_leave_cache_as_found");
	for (int i = 0; i < SIZE; i++) {
		written[i] = (uint8_t)(i * 7 + i / 4096);
	}
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file",
		fd >= 0 && write(fd, written, SIZE) == SIZE && fsync(fd) == 0 && close(fd) == 0);
	sem_init(&has_ended, 0, 0);
	can_evict = evict();
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		runtime = runtimes_start(1, levels[i]);
		if (can_evict) {
			expect_true("evicted", evict());
			check_cold();
		}
		check_refused();
		pinion_runtime_destroy(runtime);
	}
	scratch_leave();
	if (!can_evict && expect_failure_count == 0) {
		printf("skipped: this file system does not evict on request\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
