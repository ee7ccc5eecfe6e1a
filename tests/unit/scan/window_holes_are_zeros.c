/* SPDX-License-Identifier: MIT */
/*
 * Goal: ranges handed out as holes read as zeros, and so does a prefix of the
 * full overlap before them; with the data windows each byte comes once.
 * Method: sparse files with random pieces of data, some of them zeros, cut
 * with random windows and overlaps, compared with the file read whole.
 */
#include "runtime/base/base.h"
#include "runtime/scan/file_reader.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tests/support/scratch.h"

enum {
	FILES = 60,
	SIZE_MAX_BYTES = 2 << 20,
	PIECES_MAX = 12,
};

static uint8_t bytes[SIZE_MAX_BYTES];

static bool is_zero(uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++) {
		if (bytes[i] != 0) {
			return false;
		}
	}
	return true;
}

static uint64_t make_sparse(struct random_source *source, int fd)
{
	uint64_t size = 1 + random_below(source, SIZE_MAX_BYTES);
	uint64_t pieces = random_below(source, PIECES_MAX);

	expect_ready("truncate", ftruncate(fd, 0) == 0 && ftruncate(fd, (off_t)size) == 0);
	for (uint64_t i = 0; i < pieces; i++) {
		uint64_t offset = random_below(source, size);
		uint64_t length = 1 + random_below(source, 100000);
		uint8_t value = (uint8_t)random_below(source, 3);

		length = length < size - offset ? length : size - offset;
		memset(bytes, value, length);
		expect_ready("write", pwrite(fd, bytes, length, (off_t)offset) == (ssize_t)length);
	}
	if (random_below(source, 2) == 0) {
		expect_ready("fsync", fsync(fd) == 0);
	}
	expect_ready("read", pread(fd, bytes, size, 0) == (ssize_t)size);
	return size;
}

static bool check_file(struct random_source *source, int fd, uint64_t *hole_bytes)
{
	uint64_t size = make_sparse(source, fd);
	struct pin_window_plan plan = {
		.fd = fd,
		.size_bytes = size,
		.window_bytes = (uint32_t)(1 + random_below(source, 32)) * PIN_PAGE_BYTES,
		.overlap_bytes =
			(uint32_t)random_below(source, 2) * (uint32_t)random_below(source, 100000),
		.align_bytes = 512,
		.find_holes = true,
	};
	struct pin_window_claim claim;
	uint64_t position = 0;
	uint64_t index = 0;
	bool was_last = false;

	while (pin_window_next(&plan, &claim)) {
		if (!expect_number("start", (long long)position, (long long)claim.start) ||
			!expect_number("index", (long long)index, (long long)claim.index) ||
			!expect_true("not after the last", !was_last) ||
			!expect_true("something new", claim.end > claim.start)) {
			return false;
		}
		if (claim.is_hole) {
			if (!expect_true("enough data before a hole",
				    claim.start >= plan.overlap_bytes) ||
				!expect_true("a hole and its margin are zeros",
					is_zero(claim.start - plan.overlap_bytes, claim.end))) {
				return false;
			}
			*hole_bytes += claim.end - claim.start;
		}
		position = claim.end;
		was_last = claim.is_last;
		index++;
	}
	return expect_number("end", (long long)size, (long long)position) &&
		expect_true("the last one said so", was_last);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);
	uint64_t hole_bytes = 0;
	int fd;

	scratch_enter("window_holes_are_zeros");
	fd = open("file", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0);
	for (int i = 0; i < FILES && expect_failure_count == 0; i++) {
		if (!check_file(&source, fd, &hole_bytes)) {
			printf("file %d of seed %llu\n", i, (unsigned long long)seed);
		}
	}
	close(fd);
	scratch_leave();
	if (hole_bytes == 0 && expect_failure_count == 0) {
		printf("skipped: this file system reports no holes\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
