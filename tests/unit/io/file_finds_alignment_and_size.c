/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a file says of itself is true: size, holes, device, and an
 * alignment with which O_DIRECT reads work; alignments that the rest of the
 * library cannot serve are not taken.
 * Method: files on this file system and on tmpfs; reads with the reported
 * alignment; a remembered device with an alignment larger than a page.
 */
#include "runtime/base/base.h"
#include "runtime/io/file.h"
#include "tests/support/expect.h"
#include "tests/support/scratch.h"

#include <pinion/file.h>
#include <sys/vfs.h>

#define TMPFS_MAGIC 0x01021994

enum {
	SIZE = 3 * 65536 + 100,
	SPARSE_SIZE = 1 << 20,
};

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	static char block[4096];

	memset(block, 'x', sizeof(block));
	expect_ready(path, fd >= 0);
	for (size_t left = SIZE; left > 0;) {
		size_t part = left < sizeof(block) ? left : sizeof(block);

		expect_ready(path, write(fd, block, part) == (ssize_t)part);
		left -= part;
	}
	expect_ready(path, fsync(fd) == 0);
	close(fd);
}

static void check_reads(const struct pinion_file *file)
{
	uint32_t align = file->offset_align_bytes;
	uint8_t *memory = aligned_alloc(2 * PIN_PAGE_BYTES, 4 * PIN_PAGE_BYTES);
	uint32_t length = align < 512 ? 512 : align;
	uint8_t *bytes = memory + file->memory_align_bytes;

	expect_ready("memory", memory != NULL);
	expect_number("a read at the first block", length, pread(file->fd, bytes, length, 0));
	expect_number("at the second", length, pread(file->fd, bytes, length, (off_t)length));
	expect_number("its last byte", 'x', bytes[length - 1]);
	free(memory);
}

static void check_file(const char *path, uint32_t direct)
{
	struct pinion_file file;
	struct stat status;

	expect_ready(path, stat(path, &status) == 0);
	if (!expect_number("open", 0, pinion_file_open(&file, path, direct))) {
		return;
	}
	expect_number("size", SIZE, (long long)file.size_bytes);
	expect_number("device", (long long)status.st_dev, (long long)file.device);
	expect_number("inode", (long long)status.st_ino, (long long)file.inode);
	expect_number(
		"flag and fact", file.is_direct != 0, (fcntl(file.fd, F_GETFL) & O_DIRECT) != 0);
	expect_number("close on exec", FD_CLOEXEC, fcntl(file.fd, F_GETFD));
	expect_true("alignments are powers of two up to a page",
		pin_is_power_of_two(file.memory_align_bytes) &&
			pin_is_power_of_two(file.offset_align_bytes) &&
			file.memory_align_bytes <= PIN_PAGE_BYTES &&
			file.offset_align_bytes <= PIN_PAGE_BYTES);
	if (file.is_direct == 0) {
		expect_number("memory alignment", 1, file.memory_align_bytes);
		expect_number("offset alignment", 1, file.offset_align_bytes);
	}
	if (direct == PINION_DIRECT_NEVER) {
		expect_number("is direct", 0, file.is_direct);
	}
	expect_true("cached share is a percentage or unknown",
		file.cached_percent <= 100 || file.cached_percent == 255);
	check_reads(&file);
	pinion_file_close(&file);
}

static void check_sparse(void)
{
	struct pinion_file file;
	int fd = open("sparse", O_CREAT | O_RDWR | O_CLOEXEC, 0644);

	expect_ready("sparse", fd >= 0 && ftruncate(fd, SPARSE_SIZE) == 0);
	close(fd);
	expect_number("open", 0, pinion_file_open(&file, "sparse", PINION_DIRECT_AUTO));
	expect_number("size", SPARSE_SIZE, (long long)file.size_bytes);
	expect_true("less is allocated", file.allocated_bytes < SPARSE_SIZE);
	expect_true("and known", (file.flags & PIN_FILE_SPARSE) != 0);
	pinion_file_close(&file);
}

/* Windows start at multiples of a page; larger blocks cannot be read so. */
static void check_large_blocks(void)
{
	struct pin_device_cache cache = {.count = 1, .next = 1};
	struct pinion_file file;
	struct stat status;
	int fd = open("plain", O_RDONLY | O_CLOEXEC);

	expect_ready("plain", fd >= 0 && fstat(fd, &status) == 0);
	cache.devices[0] = (struct pin_device){
		.device = status.st_dev,
		.memory_align_bytes = 512,
		.offset_align_bytes = 4 * PIN_PAGE_BYTES,
	};
	expect_number("adopt", 0, pin_file_adopt(&file, fd, PINION_DIRECT_ALWAYS, 0, &cache));
	expect_true(
		"offset alignment is at most a page", file.offset_align_bytes <= PIN_PAGE_BYTES);
	pinion_file_close(&file);
}

int main(void)
{
	struct statfs status;

	scratch_enter("file_finds_alignment_and_size");
	make_file("plain");
	for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER; direct++) {
		check_file("plain", direct);
	}
	check_sparse();
	check_large_blocks();
	if (statfs("/dev/shm", &status) == 0 && status.f_type == TMPFS_MAGIC) {
		char path[64];

		snprintf(path, sizeof(path), "/dev/shm/pinion-test-%d", (int)getpid());
		make_file(path);
		for (uint32_t direct = PINION_DIRECT_AUTO; direct <= PINION_DIRECT_NEVER;
			direct++) {
			check_file(path, direct);
		}
		unlink(path);
	}
	scratch_leave();
	return expect_status();
}
