/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that is written, read, cut, extended and allocated by requests,
 * past the cache and through it, from several workers at once, holds what a
 * plain array says. G3, G4.
 * Method: as fsx (Apple, 1991): random operations on one file, opened twice,
 * direct and buffered, against a model in memory. Each round starts a few at
 * once, on parts that do not overlap, and then looks at their results. Now and
 * then some are cancelled: what a cancelled write left is between the old and
 * the new, so the model takes it from a read. The file is in TMPDIR, whatever
 * file system that is. STRESS_ITERATIONS says how many operations.
 */
#include "tests/support/random.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>
#include <linux/falloc.h>

enum {
	BLOCK = 4096,
	AREA_BLOCKS = 32, /* each operation of a round has one to itself */
	AREA_BYTES = AREA_BLOCKS * BLOCK,
	AREAS = 6,
	FILE_BYTES_MAX = AREAS * AREA_BYTES,
	OPERATIONS = 3000,
	WORKERS = 2,
	CANCEL_INTERVAL = 12,
	SECONDS = 110,
};

struct move {
	struct requests_one one;
	uint8_t bytes[AREA_BYTES] __attribute__((aligned(BLOCK)));
	uint8_t pattern;
	bool was_cancelled;
};

static struct random_source source;
static struct pinion_runtime *runtime;
static struct pinion_file files[2]; /* direct where that can be had, buffered */
static uint8_t model[FILE_BYTES_MAX];
static uint64_t size_bytes;
static struct move moves[AREAS];
static uint64_t operation_count;
static uint64_t write_count;
static uint64_t cancelled_count;
static uint64_t refused_count; /* reads past the end */

static uint64_t below(uint64_t limit)
{
	return random_below(&source, limit);
}

static void complain(const char *what, const struct move *move, uint64_t at)
{
	const struct pinion_request *request = &move->one.request;

	printf("%s: operation %llu (op %u, %llu bytes at %llu, %s) result %lld, size %llu, at "
	       "%llu\n",
		what, (unsigned long long)operation_count, request->op,
		(unsigned long long)request->length_bytes,
		(unsigned long long)request->offset_bytes,
		request->file == &files[0] ? "direct" : "buffered", (long long)request->result,
		(unsigned long long)size_bytes, (unsigned long long)at);
	expect_failure_count++;
}

/* A range within area `index`, as its file wants it aligned. */
static void choose_range(struct move *move, uint32_t index)
{
	struct pinion_request *request = &move->one.request;
	uint64_t align = request->file->offset_align_bytes;
	uint64_t units = AREA_BYTES / align;
	uint64_t first = below(units);
	uint64_t count = 1 + below(below(4) == 0 ? units - first : 1 + (units - first) / 8);

	if (count > units - first) {
		count = units - first;
	}
	request->offset_bytes = (uint64_t)index * AREA_BYTES + first * align;
	request->length_bytes = count * align;
	request->bytes = move->bytes;
	if (request->file->memory_align_bytes == 1 && request->length_bytes < AREA_BYTES - 64) {
		request->bytes += below(64);
	}
}

static void start(uint32_t index, uint64_t size_at_start)
{
	struct move *move = &moves[index];
	uint16_t op = below(2) == 0 ? PINION_OP_READ : PINION_OP_WRITE;
	struct pinion_request *request = requests_begin(&move->one, op);

	request->file = &files[below(2)];
	choose_range(move, index);
	/*
	 * A direct write that begins after the end changes the block of that
	 * end in a way that depends on the file system, so those stay before
	 * it.
	 */
	if (op == PINION_OP_WRITE && request->offset_bytes > size_at_start) {
		request->op = PINION_OP_READ;
	}
	move->was_cancelled = false;
	move->pattern = (uint8_t)below(256);
	for (uint64_t i = 0; i < request->length_bytes; i++) {
		request->bytes[i] = (uint8_t)(request->offset_bytes + i * 7 + move->pattern);
	}
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	if (below(CANCEL_INTERVAL) == 0) {
		move->was_cancelled = pinion_request_cancel(runtime, request) == 0;
	}
}

/*
 * XFS sets blocks aside after the end of a file that grows, and past the cache
 * a read of such a block without a place on the disk gets -EIO. The bytes
 * before the end must come.
 */
static int64_t result_up_to_end(const struct move *move, uint64_t size_before)
{
	const struct pinion_request *request = &move->one.request;
	uint64_t left = pin_round_up(
		size_before - request->offset_bytes, request->file->offset_align_bytes);
	struct requests_one one;

	if (request->result != -EIO || !request->file->is_direct || request->length_bytes <= left) {
		return request->result;
	}
	refused_count++;
	requests_begin_transfer(
		&one, PINION_OP_READ, request->file, request->bytes, request->offset_bytes, left);
	return requests_do(runtime, &one);
}

static void check_read(const struct move *move, uint64_t size_before)
{
	const struct pinion_request *request = &move->one.request;
	uint64_t start = request->offset_bytes;
	uint64_t end = start + request->length_bytes;
	int64_t result = result_up_to_end(move, size_before);

	/* Writes of the same round may have made it longer meanwhile. */
	if (result < 0 || (uint64_t)result < (end < size_before ? end : size_before) - start ||
		(uint64_t)result > request->length_bytes) {
		complain("read", move, start);
		return;
	}
	for (uint64_t i = 0; i < (uint64_t)result; i++) {
		if (request->bytes[i] != model[start + i]) {
			complain("other bytes", move, start + i);
			return;
		}
	}
}

/* Of a cancelled write only the first bytes are known. */
static void adopt(const struct move *move)
{
	const struct pinion_request *request = &move->one.request;
	uint64_t start = request->offset_bytes;
	uint8_t found;

	for (uint64_t i = 0; i < request->length_bytes; i++) {
		if (pread(files[1].fd, &found, 1, (off_t)(start + i)) != 1) {
			found = 0;
		}
		if ((found != model[start + i] || i < request->done_bytes) &&
			found != request->bytes[i]) {
			complain("neither old nor new", move, start + i);
			return;
		}
		model[start + i] = found;
	}
}

static void finish(struct move *move, uint64_t size_before)
{
	struct pinion_request *request = &move->one.request;
	int64_t result = requests_await(&move->one);

	operation_count++;
	if (move->was_cancelled && result == -ECANCELED) {
		cancelled_count++;
		if (request->op == PINION_OP_WRITE) {
			adopt(move);
		}
		return;
	}
	if (request->op == PINION_OP_READ) {
		if (size_before > request->offset_bytes) {
			check_read(move, size_before);
		}
		return;
	}
	if (result != (int32_t)request->length_bytes) {
		complain("write", move, request->offset_bytes);
		return;
	}
	write_count++;
	memcpy(model + request->offset_bytes, request->bytes, (size_t)request->length_bytes);
}

static void learn_size(void)
{
	struct requests_one one;
	static struct statx status;
	struct pinion_request *request = requests_begin(&one, PINION_OP_STATX);

	request->file = &files[1];
	request->status = &status;
	request->flags = STATX_SIZE;
	expect_number("statx", 0, requests_do(runtime, &one));
	size_bytes = status.stx_size;
}

/* Several at once, each in an area of its own. */
static void play_round(void)
{
	uint32_t count = 1 + (uint32_t)below(AREAS);
	uint64_t size_before = size_bytes;
	uint64_t size_wanted = size_before;

	for (uint32_t i = 0; i < count; i++) {
		start(i, size_before);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct pinion_request *request = &moves[i].one.request;
		uint64_t end = request->offset_bytes + request->length_bytes;

		finish(&moves[i], size_before);
		if (request->op == PINION_OP_WRITE && request->result > 0 && end > size_wanted) {
			size_wanted = end;
		}
	}
	learn_size();
	if (size_bytes < size_wanted) {
		expect_number("size", (long long)size_wanted, (long long)size_bytes);
	}
}

static void cut(void)
{
	uint64_t wanted = below(FILE_BYTES_MAX);

	expect_number("resize", 0, pinion_file_resize(&files[below(2)], wanted));
	if (wanted < size_bytes) {
		memset(model + wanted, 0, (size_t)(size_bytes - wanted));
	}
	size_bytes = wanted;
	operation_count++;
}

static void one_of(uint16_t op)
{
	struct requests_one one;

	requests_begin(&one, op)->file = &files[below(2)];
	expect_number("sync", 0, requests_do(runtime, &one));
	operation_count++;
}

/* Makes a hole, where the file system can. */
static void punch(void)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_ALLOCATE);
	int64_t result;

	request->file = &files[below(2)];
	request->offset_bytes = below(FILE_BYTES_MAX - AREA_BYTES);
	request->length_bytes = 1 + below(AREA_BYTES);
	request->flags = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	result = requests_do(runtime, &one);
	if (result == 0) {
		memset(model + request->offset_bytes, 0, (size_t)request->length_bytes);
	} else {
		expect_number("hole", -EOPNOTSUPP, result);
	}
	operation_count++;
}

static void check_whole(void)
{
	static uint8_t whole[FILE_BYTES_MAX];
	struct stat status;

	expect_ready("fstat", fstat(files[1].fd, &status) == 0);
	expect_number("size", (long long)size_bytes, status.st_size);
	expect_number(
		"read of all", (long long)size_bytes, pread(files[1].fd, whole, sizeof(whole), 0));
	expect_true("all of it", memcmp(whole, model, (size_t)size_bytes) == 0);
}

static void play(uint64_t operations_max)
{
	while (operation_count < operations_max && expect_failure_count == 0) {
		switch (below(24)) {
		case 0:
			cut();
			break;
		case 1:
			one_of(below(2) == 0 ? PINION_OP_FSYNC : PINION_OP_FDATASYNC);
			break;
		case 2:
			punch();
			break;
		case 3:
			check_whole();
			break;
		default:
			play_round();
			break;
		}
	}
	check_whole();
}

static void open_files(void)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.flags =
		PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE | PINION_FILE_TRUNCATE;
	options.direct = PINION_DIRECT_ALWAYS;
	expect_ready("open", pinion_file_open_with(&files[0], "file", &options) == 0);
	options.direct = PINION_DIRECT_NEVER;
	expect_ready("open", pinion_file_open_with(&files[1], "file", &options) == 0);
	memset(model, 0, sizeof(model));
	size_bytes = 0;
	operation_count = 0;
}

int main(void)
{
	uint32_t operations_max = tasks_iterations(OPERATIONS);

	random_begin(&source);
	runtimes_watchdog(operations_max > OPERATIONS ? 7200 : SECONDS);
	scratch_enter("file_matches_model");
	for (uint32_t io_level = PINION_IO_AUTO; io_level <= PINION_IO_FALLBACK; io_level++) {
		runtime = runtimes_start(WORKERS, io_level);
		open_files();
		play(operations_max);
		printf("%llu operations, %llu writes, %llu cancelled, %llu refused, direct: %u\n",
			(unsigned long long)operation_count, (unsigned long long)write_count,
			(unsigned long long)cancelled_count, (unsigned long long)refused_count,
			files[0].is_direct);
		pinion_runtime_destroy(runtime);
		pinion_file_close(&files[0]);
		pinion_file_close(&files[1]);
	}
	expect_true("writes were made", write_count > 0 || operations_max < 100);
	scratch_leave();
	return expect_status();
}
