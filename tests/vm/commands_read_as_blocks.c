/* SPDX-License-Identifier: MIT */
/*
 * Goal: commands read from an NVMe namespace the bytes that its block device
 * has, in pieces of any size; a piece that its block device cannot read fails
 * with that error, after no more bytes than are right; reads end at the end of
 * the namespace; writes and unaligned reads are refused; and reads that are
 * cancelled, past their deadline or stopped in flight end. G12.
 * Method: a guest of `make check-vm` has the drive, some of whose blocks may be
 * bad. By rings and by calls: without that feature, without io_uring, with
 * rings that are shared. With TEST_BAD some pieces have to fail.
 *
 *     commands_read_as_blocks GENERIC BLOCK-DEVICE OFFSET BYTES
 */
#include "tests/vm/readings.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/file.h>
#include <pinion/pool.h>

enum {
	BLOCK = 4096,
	PIECE_MAX = 2 << 20, /* more than any drive takes in one command */
	BUFFER = 64 << 10,
	REQUESTS = 32,
};

static uint8_t *wanted;
static int block_fd;
static uint32_t bad_count;

/* What the block device makes of it: bytes, or an error. */
static ssize_t read_block_device(uint64_t offset, uint64_t length)
{
	ssize_t count = pread(block_fd, wanted, length, (off_t)offset);

	return count < 0 ? -errno : count;
}

/* The number of bytes before the first with trouble. */
static uint64_t good_bytes(uint64_t offset, uint64_t length)
{
	uint64_t good = 0;

	while (good < length && read_block_device(offset + good, BLOCK) == BLOCK) {
		good += BLOCK;
	}
	return good;
}

static void check_reading(const struct reading *reading)
{
	const struct pinion_request *request = &reading->request;
	uint64_t offset = request->offset_bytes;
	ssize_t want = read_block_device(offset, request->length_bytes);
	char what[64];

	snprintf(what, sizeof(what), "%llu bytes at %llu",
		(unsigned long long)request->length_bytes, (unsigned long long)offset);
	if (want < 0) {
		bad_count++;
		/* The block layer's word for it, whichever command met it. */
		expect_number(what, -ENODATA, request->result);
		expect_true("no more than can be",
			request->done_bytes <= good_bytes(offset, request->length_bytes));
		(void)read_block_device(offset, request->done_bytes);
	} else {
		expect_number(what, want, request->result);
	}
	if (memcmp(request->bytes, wanted, request->done_bytes) != 0) {
		expect_true(what, false);
	}
}

static int64_t read_one(struct pinion_runtime *runtime, struct pinion_file *file, uint16_t op,
	uint64_t offset, uint64_t length)
{
	struct pinion_request *request = readings_prepare(&readings[0], file, offset, length);
	int rc;

	request->op = op;
	readings_begin();
	rc = pinion_request_submit(runtime, request);
	if (rc < 0) {
		return rc;
	}
	readings_await(1);
	return request->result;
}

static void check_edges(struct pinion_runtime *runtime, struct pinion_file *file)
{
	uint64_t size = file->size_bytes;

	expect_number("across the end", BLOCK,
		read_one(runtime, file, PINION_OP_READ, size - BLOCK, 8 * BLOCK));
	expect_number("present data", read_block_device(size - BLOCK, 8 * BLOCK), BLOCK);
	expect_number("as the block device has it", 0, memcmp(readings[0].bytes, wanted, BLOCK));
	expect_number("at the end", 0, read_one(runtime, file, PINION_OP_READ, size, BLOCK));
	expect_number("far after it", 0,
		read_one(runtime, file, PINION_OP_READ, UINT64_C(1) << 60, BLOCK));
	expect_number("a write", -EROFS, read_one(runtime, file, PINION_OP_WRITE, 0, BLOCK));
	expect_number("half a block", -EINVAL,
		read_one(runtime, file, PINION_OP_READ, 0, file->offset_align_bytes / 2));
	expect_number("between blocks", -EINVAL, read_one(runtime, file, PINION_OP_READ, 1, BLOCK));
}

/* With that error, or though it was to come too early, with what it read. */
static void check_ends(int32_t error)
{
	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (readings[i].request.result != error) {
			check_reading(&readings[i]);
		}
	}
}

/* Both requests in flight and waiting ones; the device takes no cancel. */
static void check_ended_early(struct pinion_runtime *runtime, struct pinion_file *file)
{
	for (int way = 0; way < 3; way++) {
		uint64_t offset = file->size_bytes - PIECE_MAX;
		uint64_t deadline_ns = way == 1 ? pinion_clock_now_ns() + 1000 : 0;

		readings_begin();
		for (uint32_t i = 0; i < REQUESTS; i++) {
			readings_prepare(&readings[i], file, offset, PIECE_MAX)->deadline_ns =
				deadline_ns;
			readings_submit(runtime, &readings[i]);
		}
		for (uint32_t i = 0; i < REQUESTS && way == 0; i++) {
			(void)pinion_request_cancel(runtime, &readings[i].request);
		}
		if (way == 2) {
			expect_number("stop", 0, pinion_runtime_stop(runtime));
		}
		readings_await(REQUESTS);
		check_ends(way == 1 ? -ETIME : -ECANCELED);
	}
}

/* Into memory that is registered with the ring, where that costs nothing. */
static void check_registered(
	struct pinion_runtime *runtime, struct pinion_file *file, uint64_t offset)
{
	uint8_t *usual = readings[0].bytes;
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;
	struct pinion_buffer buffer;
	struct pinion_runtime_info facts;
	uint64_t before;

	pinion_pool_config_init(&config);
	config.local_count = 1;
	config.buffer_count = 4;
	config.buffer_bytes = BUFFER;
	expect_ready("pool", pinion_pool_create(runtime, &config, &pool) == 0);
	expect_ready("buffer", pinion_pool_try_acquire(pool, &buffer) == 0);
	readings[0].bytes = pinion_pool_bytes(pool, &buffer);
	before = runtimes_counters(runtime).unregistered_reads;
	expect_number(
		"into a buffer", BUFFER, read_one(runtime, file, PINION_OP_READ, offset, BUFFER));
	expect_number("present data", BUFFER, read_block_device(offset, BUFFER));
	expect_number("as the block device has it", 0, memcmp(readings[0].bytes, wanted, BUFFER));
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	printf("%u arenas are shared, %llu reads into memory that is not registered\n",
		facts.arenas_shared,
		(unsigned long long)(runtimes_counters(runtime).unregistered_reads - before));
	expect_true("registered where that can be",
		(runtimes_counters(runtime).unregistered_reads == before) ==
			(facts.arenas_shared > 0));
	expect_number("release", 0, pinion_pool_release(pool, &buffer));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	readings[0].bytes = usual;
}

struct way {
	uint32_t io_level;
	uint32_t without;
	uint32_t sharing;
	bool by_ring; /* the commands go by a ring, not by calls */
};

static void check_way(const char *path, uint64_t offset, uint64_t bytes, const struct way *way)
{
	static const uint64_t piece_bytes[] = {BLOCK, 3 * BLOCK, PIECE_MAX};
	struct pinion_runtime *runtime = NULL;
	struct pinion_runtime_stats counters;
	struct pinion_config config;
	struct pinion_file file;

	runtimes_config(&config, 2, way->io_level);
	runtimes_tuning.io_without |= way->without;
	runtimes_tuning.ring_sharing = way->sharing;
	config.pool_bytes = 1 << 20;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	expect_ready(path, pinion_file_open(&file, path, PINION_DIRECT_AUTO) == 0);
	expect_number("size", lseek(block_fd, 0, SEEK_END), (long long)file.size_bytes);
	expect_true("past the cache", file.is_direct != 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(piece_bytes); i++) {
		readings_read_range(
			runtime, &file, offset, offset + bytes, piece_bytes[i], check_reading);
	}
	check_edges(runtime, &file);
	if (way->by_ring) {
		check_registered(runtime, &file, file.size_bytes - BUFFER);
	}
	check_ended_early(runtime, &file);
	counters = runtimes_counters(runtime);
	printf("%llu requests, %llu of them by a ring\n",
		(unsigned long long)counters.requests_completed,
		(unsigned long long)counters.ring_commands);
	expect_true("by a ring", (counters.ring_commands > bytes / BLOCK) == way->by_ring);
	expect_true("or by none", (counters.ring_commands == 0) == !way->by_ring);
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

static void check_opening(const char *path)
{
	struct pinion_file_options options;
	struct pinion_file file;

	pinion_file_options_init(&options);
	options.flags = PINION_FILE_READ | PINION_FILE_WRITE;
	expect_number("for writing", -EROFS, pinion_file_open_with(&file, path, &options));
	expect_number("nothing is open", -1, file.fd);
}

int main(int argc, char **argv)
{
	static const struct way ways[] = {
		{.io_level = PINION_IO_AUTO, .by_ring = true},
		{.io_level = PINION_IO_AUTO, .without = PINION_IO_NVME_COMMANDS},
		{.io_level = PINION_IO_AUTO, .sharing = PINION_RING_SHARED},
		{.io_level = PINION_IO_FALLBACK},
	};
	uint64_t offset;
	uint64_t bytes;

	if (argc != 5) {
		printf("wants a drive and a part of it; make check-vm runs it\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(220);
	offset = strtoull(argv[3], NULL, 10);
	bytes = strtoull(argv[4], NULL, 10);
	block_fd = open(argv[2], O_RDONLY | O_DIRECT | O_CLOEXEC);
	expect_ready(argv[2], block_fd >= 0);
	wanted = aligned_alloc(BLOCK, PIECE_MAX);
	expect_ready("memory", wanted != NULL);
	readings_init(REQUESTS, BLOCK, PIECE_MAX);
	check_opening(argv[1]);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(ways); i++) {
		check_way(argv[1], offset, bytes, &ways[i]);
	}
	if (getenv("TEST_BAD") != NULL) {
		expect_true("some cannot be read", bad_count > 0);
	}
	return expect_status();
}
