/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file system that delays, shortens, interrupts and refuses reads costs
 * time and nothing else; an error of a read fails its file with that error; a
 * file system that dies meanwhile fails the requests in flight. Each file ends
 * once, finished files have every byte, nothing hangs, with and without rings.
 * REQ-4, W16.
 * Method: tests/support/fuses.h, one kind of misbehaviour for each file.
 */
#include "tests/support/fuses.h"
#include "tests/support/requests.h"
#include "tests/support/scans.h"

#include <errno.h>
#include <time.h>

enum kind {
	KIND_HONEST,
	KIND_SHORT,	  /* half of the requested bytes, but one at least */
	KIND_FAILS,	  /* EIO from a certain offset on */
	KIND_INTERRUPTED, /* EINTR at the first attempt */
	KIND_LATE,
	KIND_BUSY, /* EAGAIN at the first attempt */
	KIND_DIES, /* the server, at the first read */
	KIND_COUNT,
};

enum {
	SIZE = 70001,
	FAILS_FROM = 40000,
	LATE_MS = 20,
	WINDOW = 16 << 10,
	LIMIT_SECONDS = 90,
};

/* ---- the server ---- */

static uint32_t read_count; /* the first attempt is every other one */

static bool is_cached(uint32_t file)
{
	return file == KIND_HONEST;
}

static void serve_read(uint64_t unique, uint32_t file, uint64_t offset, size_t length)
{
	const struct timespec late = {.tv_nsec = LATE_MS * 1000000};
	enum kind kind = (enum kind)file;
	int error = 0;

	read_count++;
	switch (kind) {
	case KIND_SHORT:
		length = length > 1 ? length / 2 : length;
		break;
	case KIND_FAILS:
		error = offset + length > FAILS_FROM ? -EIO : 0;
		break;
	case KIND_INTERRUPTED:
		error = read_count % 2 == 1 ? -EINTR : 0;
		break;
	case KIND_BUSY:
		error = read_count % 2 == 1 ? -EAGAIN : 0;
		break;
	case KIND_LATE:
		/* Nothing is waited for: to be late is what it is asked for. */
		nanosleep(&late, NULL);
		break;
	case KIND_DIES:
		_exit(0);
	case KIND_HONEST:
	case KIND_COUNT:
		break;
	}
	fuses_answer(unique, error, error != 0 ? NULL : scans_files[kind].bytes + offset,
		error != 0 ? 0 : length);
}

static const struct fuses served = {
	.file_count = KIND_COUNT, .file_bytes = SIZE, .is_cached = is_cached, .read = serve_read};

/* ---- the test ---- */

static void scan_kinds(uint32_t io_level, uint32_t direct, enum kind first, enum kind last)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_scan_config config;
	struct pinion_scan *scan;
	static char setting[64];

	snprintf(setting, sizeof(setting), "level %u direct %u", io_level, direct);
	scans_setting = setting;
	scans_config(&config);
	config.direct = direct;
	config.window_bytes = WINDOW;
	expect_ready("mnt", chdir("mnt") == 0);
	scan = scans_create(runtime, &config);
	for (enum kind kind = first; kind <= last; kind++) {
		scans_add(scan, kind);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_ready("..", chdir("..") == 0);
	pinion_scan_destroy(scan);
	pinion_runtime_destroy(runtime);
}

/* The whole file by one request, from outside. */
static void read_whole(uint32_t io_level, uint32_t direct, enum kind kind)
{
	static uint8_t expected[SIZE];
	static uint8_t bytes[(SIZE / 4096 + 1) * 4096] __attribute__((aligned(4096)));
	struct pinion_runtime *runtime = runtimes_start(1, io_level);
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_READ);
	struct pinion_file file;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "mnt/%u", (unsigned)kind);
	expect_number("open", 0, pinion_file_open(&file, path, direct));
	memset(bytes, 0, sizeof(bytes));
	request->file = &file;
	request->bytes = bytes;
	request->length_bytes = sizeof(bytes);
	expect_number("one read", SIZE, requests_do(runtime, &one));
	fd = open(path + strlen("mnt/"), O_RDONLY);
	expect_ready("original", fd >= 0 && read(fd, expected, SIZE) == SIZE && close(fd) == 0);
	expect_true("every byte of one read", memcmp(bytes, expected, SIZE) == 0);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

static void check(uint32_t io_level, uint32_t direct)
{
	pid_t server = fuses_start(&served);

	scan_kinds(io_level, direct, KIND_HONEST, KIND_BUSY);
	for (uint32_t kind = KIND_HONEST; kind <= KIND_BUSY; kind++) {
		scans_expect_end(kind, kind == KIND_FAILS ? PINION_SCAN_FAILED : PINION_SCAN_DONE,
			kind == KIND_FAILS ? -EIO : 0);
	}
	read_whole(io_level, direct, KIND_HONEST);
	read_whole(io_level, direct, KIND_SHORT);
	read_whole(io_level, direct, KIND_INTERRUPTED);
	read_whole(io_level, direct, KIND_BUSY);
	scan_kinds(io_level, direct, KIND_DIES, KIND_DIES);
	expect_number("reports", 1, pin_load_acquire_u32(&scans_files[KIND_DIES].reports));
	expect_number("it died", PINION_SCAN_FAILED, scans_files[KIND_DIES].outcome);
	fuses_end(server);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	if (!fuses_may_mount()) {
		return EXPECT_SKIPPED;
	}
	scratch_enter("fuse_reads_misbehave");
	expect_ready("mnt", mkdir("mnt", 0755) == 0);
	for (uint32_t kind = 0; kind < KIND_COUNT; kind++) {
		scans_make(kind, SIZE);
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER;
			direct++) {
			check(level, direct);
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}
