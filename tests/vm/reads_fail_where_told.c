/* SPDX-License-Identifier: MIT */
/*
 * Goal: of a file on a drive with bad sectors, each read that touches none of
 * them is right, byte by byte, and each that touches one ends with EIO, or with
 * ENODATA as the kernel calls it past its cache, what it has read before that
 * being right; past the cache and through it, with
 * rings and without. G4.
 * Method: a guest of `make check-vm` has the drive. The words of the file are
 * made from their offset, so that no byte can come from elsewhere. Through the
 * cache a read may fail where pread(2) does. With TEST_POLLED, all of that with
 * rings whose completions are asked for (IOPOLL), which they must be where it
 * is "yes" and cannot be where it is "no"; then cancels, deadlines and a stop
 * with such reads in flight: each ends, with its bytes or the word for its end.
 * G12. RING_READS_FOR_EVER is set where the kernel goes on repeating a ring's
 * read through the cache when it fails.
 *
 *     reads_fail_where_told write FILE BYTES
 *     reads_fail_where_told FILE BLOCK…     the bad ones, of 4096 bytes
 */
#include "tests/vm/readings.h"

#include <errno.h>
#include <fcntl.h>

enum {
	BLOCK = 4096,
	PIECE_MAX = 64 << 10,
	BAD_MAX = 16,
};

static uint64_t bad_blocks[BAD_MAX];
static uint32_t bad_count;

static uint64_t word_at(uint64_t offset)
{
	return offset * 0x9e3779b97f4a7c15u + 1;
}

static int write_file(const char *path, uint64_t bytes)
{
	FILE *file = fopen(path, "w");

	expect_ready(path, file != NULL);
	for (uint64_t offset = 0; offset < bytes; offset += sizeof(uint64_t)) {
		uint64_t word = word_at(offset);

		expect_ready(path, fwrite(&word, sizeof(word), 1, file) == 1);
	}
	expect_ready(path, fclose(file) == 0);
	return 0;
}

/* Where the first bad byte of a range is, or its end. */
static uint64_t good_until(uint64_t offset, uint64_t end)
{
	uint64_t until = end;

	for (uint32_t i = 0; i < bad_count; i++) {
		uint64_t first = bad_blocks[i] * BLOCK;

		if (first + BLOCK > offset && first < until) {
			until = first > offset ? first : offset;
		}
	}
	return until;
}

/* A drive's own word for it comes through where no cache is in between. */
static bool is_medium_error(int64_t result)
{
	return result == -EIO || result == -ENODATA;
}

/*
 * Newer kernels cache in pieces larger than a page, and one bad block makes all
 * of its piece unreadable: then pread(2) fails as well.
 */
static bool is_lost_to_cache(const struct pinion_request *request)
{
	static uint8_t bytes[PIECE_MAX];

	return !request->file->is_direct &&
		pread(request->file->fd, bytes, request->length_bytes,
			(off_t)request->offset_bytes) < 0 &&
		errno == EIO;
}

static void check_reading(const struct reading *reading)
{
	const struct pinion_request *request = &reading->request;
	uint64_t offset = request->offset_bytes;
	uint64_t end = offset + request->length_bytes;
	uint64_t until = good_until(offset, end);
	bool is_good = until == end;
	char what[64];

	snprintf(what, sizeof(what), "bytes %llu to %llu", (unsigned long long)offset,
		(unsigned long long)end);
	if (is_good && request->result == -EIO && is_lost_to_cache(request)) {
		return;
	}
	if (is_good || !is_medium_error(request->result)) {
		expect_number(
			what, is_good ? (long long)request->length_bytes : -EIO, request->result);
	}
	expect_true(
		"nothing is said to be read that cannot be", request->done_bytes <= until - offset);
	for (uint64_t i = 0; i < request->done_bytes; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, request->bytes + i, sizeof(word));
		if (word != word_at(offset + i)) {
			expect_number(what, (long long)word_at(offset + i), (long long)word);
			return;
		}
	}
}

static void read_all(struct pinion_runtime *runtime, struct pinion_file *file, uint32_t piece_bytes)
{
	readings_read_range(runtime, file, 0, file->size_bytes, piece_bytes, check_reading);
}

static struct pinion_runtime *start(uint32_t io_level, uint32_t polled)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, 2, io_level);
	runtimes_tuning.polled = polled;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static void check_way(const char *path, uint32_t io_level, uint32_t direct)
{
	struct pinion_runtime *runtime = start(io_level, PINION_POLLED_NEVER);
	struct pinion_file file;

	for (uint32_t piece_bytes = BLOCK; piece_bytes <= PIECE_MAX; piece_bytes *= 16) {
		expect_ready(path, pinion_file_open(&file, path, direct) == 0);
		expect_true("past the cache", file.is_direct == (direct == PINION_DIRECT_ALWAYS));
		/* What the way before has left in the cache would hide it. */
		posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
		expect_number("whole pieces", 0, (long long)(file.size_bytes % PIECE_MAX));
		read_all(runtime, &file, piece_bytes);
		pinion_file_close(&file);
	}
	pinion_runtime_destroy(runtime);
}

/* ---- polled ---- */

/* Reads of one block each are in flight, or have ended already. */
static void submit_blocks(
	struct pinion_runtime *runtime, struct pinion_file *file, uint64_t deadline_ns)
{
	readings_begin();
	for (uint32_t i = 0; i < readings_count; i++) {
		uint64_t offset = (uint64_t)i * BLOCK % file->size_bytes;

		readings_prepare(&readings[i], file, offset, BLOCK)->deadline_ns = deadline_ns;
		readings_submit(runtime, &readings[i]);
	}
}

static void check_ends(int32_t error)
{
	for (uint32_t i = 0; i < readings_count; i++) {
		if (readings[i].request.result != error) {
			check_reading(&readings[i]);
		}
	}
}

/* Reads end though the device does not answer; it takes no cancel. */
static void check_ended_early(struct pinion_runtime *runtime, struct pinion_file *file)
{
	submit_blocks(runtime, file, 0);
	for (uint32_t i = 0; i < readings_count; i++) {
		(void)pinion_request_cancel(runtime, &readings[i].request);
	}
	readings_await(readings_count);
	check_ends(-ECANCELED);
	submit_blocks(runtime, file, pinion_clock_now_ns() + 1000);
	readings_await(readings_count);
	check_ends(-ETIME);
	submit_blocks(runtime, file, 0);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("all have ended", readings_count, pin_load_relaxed_u32(&readings_ended));
	check_ends(-ECANCELED);
}

static void check_polled(const char *path, uint32_t polled, bool must_poll)
{
	struct pinion_runtime *runtime = start(PINION_IO_AUTO, polled);
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	struct pinion_file file;
	uint64_t requests;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	expect_number("workers with a second ring", 2, facts.polled_rings);
	expect_ready(path, pinion_file_open(&file, path, PINION_DIRECT_ALWAYS) == 0);
	expect_true("past the cache", file.is_direct != 0);
	read_all(runtime, &file, BLOCK);
	read_all(runtime, &file, PIECE_MAX);
	requests = runtimes_counters(runtime).requests_completed;
	counters = runtimes_counters(runtime);
	if (must_poll) {
		expect_number("polled", (long long)requests, (long long)counters.polled_transfers);
		expect_number("refused", 0, (long long)counters.polled_refusals);
	} else if (polled == PINION_POLLED_AUTO) {
		expect_number("polled", 0, (long long)counters.polled_transfers);
	}
	printf("%llu requests, %llu polled, %llu refused\n", (unsigned long long)requests,
		(unsigned long long)counters.polled_transfers,
		(unsigned long long)counters.polled_refusals);
	check_ended_early(runtime, &file);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

int main(int argc, char **argv)
{
	const char *polled = getenv("TEST_POLLED");

	if (argc == 4 && strcmp(argv[1], "write") == 0) {
		return write_file(argv[2], strtoull(argv[3], NULL, 10));
	}
	if (argc < 2 || argc - 2 > BAD_MAX) {
		printf("wants a file and its bad blocks; make check-vm runs it\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(110);
	for (int i = 2; i < argc; i++) {
		bad_blocks[bad_count++] = strtoull(argv[i], NULL, 10);
	}
	readings_init(READINGS_MAX, BLOCK, PIECE_MAX);
	if (polled != NULL) {
		bool must_poll = strcmp(polled, "yes") == 0;

		check_polled(argv[1], PINION_POLLED_AUTO, must_poll);
		check_polled(argv[1], PINION_POLLED_ALWAYS, must_poll);
		return expect_status();
	}
	check_way(argv[1], PINION_IO_AUTO, PINION_DIRECT_ALWAYS);
	if (getenv("RING_READS_FOR_EVER") == NULL) {
		check_way(argv[1], PINION_IO_AUTO, PINION_DIRECT_NEVER);
	}
	check_way(argv[1], PINION_IO_FALLBACK, PINION_DIRECT_ALWAYS);
	check_way(argv[1], PINION_IO_FALLBACK, PINION_DIRECT_NEVER);
	return expect_status();
}
