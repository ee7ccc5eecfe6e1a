/* SPDX-License-Identifier: MIT */
/*
 * Goal: a block device is read and written like a file of its size, past the
 * cache and through it, with rings and without: every byte to its end, which is
 * no multiple of a page, nothing after it; written bytes are there for others
 * after an fsync. It has its own number and no other, and no other size.
 * Method: a loop device over a file of random bytes, compared with that file.
 * Needs root and a loop device.
 */
#include "tests/support/loops.h"
#include "tests/support/random.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <sys/sysmacros.h>

enum {
	SECTOR = 512,
	PIECE = 64 << 10,
	SIZE = 20 * PIECE + 7 * SECTOR,
	PIECES = 21, /* the last is short */
	LIMIT_SECONDS = 60,
};

static uint8_t contents[PIECES * PIECE] __attribute__((aligned(4096)));
static uint8_t bytes[PIECE] __attribute__((aligned(4096)));
static char device_path[LOOPS_PATH_BYTES];

static struct pinion_file open_device(uint32_t direct)
{
	struct pinion_file_options options;
	struct pinion_file file;
	struct stat status;

	pinion_file_options_init(&options);
	/* An existing device cannot be created, nor cut. */
	options.flags =
		PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = direct;
	expect_ready(device_path, pinion_file_open_with(&file, device_path, &options) == 0);
	expect_ready("stat", stat(device_path, &status) == 0);
	expect_number("size", SIZE, (long long)file.size_bytes);
	expect_number("allocated", SIZE, (long long)file.allocated_bytes);
	expect_number("device", (long long)status.st_rdev, (long long)file.device);
	expect_number("inode", 0, (long long)file.inode);
	expect_number("direct", direct != PINION_DIRECT_NEVER, file.is_direct);
	expect_true("blocks", file.offset_align_bytes <= 4096);
	return file;
}

static void check_reads(struct pinion_runtime *runtime, struct pinion_file *file)
{
	for (uint32_t i = 0; i < PIECES; i++) {
		uint32_t wanted = i + 1 < PIECES ? PIECE : SIZE % PIECE;

		memset(bytes, 0, sizeof(bytes));
		expect_number("read", wanted,
			requests_transfer(
				runtime, PINION_OP_READ, file, bytes, (uint64_t)i * PIECE, PIECE));
		expect_number("bytes", 0, memcmp(bytes, contents + i * PIECE, wanted));
	}
	if (!file->is_direct) {
		expect_number("odd", 100,
			requests_transfer(runtime, PINION_OP_READ, file, bytes, 777, 100));
		expect_number("its bytes", 0, memcmp(bytes, contents + 777, 100));
	}
	expect_number("at the end", 0,
		requests_transfer(runtime, PINION_OP_READ, file, bytes, SIZE, PIECE));
	expect_number("after it", 0,
		requests_transfer(runtime, PINION_OP_READ, file, bytes, SIZE + 4096, PIECE));
}

/* One of a few blocks, then to the end and no further. */
static void check_writes(struct pinion_runtime *runtime, struct pinion_file *file, uint8_t seed)
{
	static uint8_t seen[PIECE];
	struct requests_one one;
	uint64_t last = (uint64_t)(PIECES - 1) * PIECE;
	int fd = open(device_path, O_RDONLY | O_CLOEXEC);

	memset(bytes, seed, sizeof(bytes));
	expect_number("write", 3 * 4096,
		requests_transfer(runtime, PINION_OP_WRITE, file, bytes, PIECE, 3 * 4096));
	memset(contents + PIECE, seed, 3 * 4096);
	expect_number("to the end", SIZE % PIECE,
		requests_transfer(runtime, PINION_OP_WRITE, file, bytes, last, SIZE % PIECE));
	memset(contents + last, seed, SIZE % PIECE);
	expect_number("no room", -ENOSPC,
		requests_transfer(runtime, PINION_OP_WRITE, file, bytes, SIZE, SECTOR));
	requests_begin(&one, PINION_OP_FSYNC)->file = file;
	expect_number("fsync", 0, requests_do(runtime, &one));
	expect_true("others see it", fd >= 0 && pread(fd, seen, 3 * 4096, PIECE) == 3 * 4096);
	expect_number("bytes", 0, memcmp(seen, contents + PIECE, 3 * 4096));
	close(fd);
}

static void check(uint32_t io_level, uint32_t direct)
{
	struct pinion_runtime *runtime = runtimes_start(2, io_level);
	struct pinion_file file = open_device(direct);

	check_reads(runtime, &file);
	check_writes(runtime, &file, (uint8_t)(io_level * 16 + direct + 1));
	check_reads(runtime, &file);
	expect_number("no resize", -EINVAL, pinion_file_resize(&file, SECTOR));
	expect_number("its size", SIZE, (long long)file.size_bytes);
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
}

int main(void)
{
	struct random_source source;
	int backing_fd;
	int fd;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("block_devices");
	random_begin(&source);
	for (size_t i = 0; i < SIZE; i++) {
		contents[i] = (uint8_t)random_next(&source);
	}
	backing_fd = open("disk", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	expect_ready("disk", write(backing_fd, contents, SIZE) == SIZE);
	fd = loops_open(backing_fd, O_RDWR, device_path);
	if (fd < 0) {
		scratch_leave();
		printf("needs root and a loop device\n");
		return EXPECT_SKIPPED;
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (uint32_t direct = PINION_DIRECT_ALWAYS; direct <= PINION_DIRECT_NEVER;
			direct++) {
			check(level, direct);
		}
	}
	close(fd);
	scratch_leave();
	return expect_status();
}
