/* SPDX-License-Identifier: MIT */
/*
 * Files, memory and workers of the subjects about blocks.
 */
#include "tools/bench/blocks.h"
#include "tools/bench/files.h"
#include "tools/bench/pending.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/pinion.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	BLOCKS_DEPTH = 32,
	/* Of each worker for one figure, unless blocks are large. */
	BLOCKS_DIRECT = 2048,
	BLOCKS_CACHED = 16384,
	PAGE_BYTES = 4096,
	RING_ENTRIES_MIN = 256,
};

/* Bytes of each cached file; leaves room in the page cache for others. */
#define CACHED_BYTES (64ull << 20)
/* Of each worker for one figure, unless that were less than are in flight. */
#define TURN_BYTES_MAX (256ull << 20)

/* Leaves the cache as it was found, where that was without these files. */
static void close_files(struct blocks *blocks)
{
	for (uint32_t i = 0; i < blocks->opened_count; i++) {
		struct pinion_file *file = &blocks->files[i];

		if (blocks->plan->is_cached && file->cached_percent == 0) {
			(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_DONTNEED);
		}
		pinion_file_close(file);
		if (blocks->cached_fds[i] >= 0) {
			close(blocks->cached_fds[i]);
		}
	}
}

void blocks_stop(void *state)
{
	struct blocks *blocks = state;

	pinion_runtime_destroy(blocks->runtime);
	for (uint32_t i = 0; blocks->workers != NULL && i < blocks->worker_count; i++) {
		rawring_destroy(blocks->workers[i].rawring);
		free(blocks->workers[i].chains);
		free(blocks->workers[i].block);
	}
	close_files(blocks);
	free(blocks->workers);
	free(blocks->files);
	free(blocks->cached_fds);
	free(blocks->block_counts);
	free(blocks);
}

/* ---- files ---- */

static int warm(int fd, uint8_t *block, uint32_t block_bytes, uint64_t end_bytes)
{
	for (uint64_t offset = 0; offset < end_bytes; offset += block_bytes) {
		ssize_t count = pread(fd, block, block_bytes, (off_t)offset);

		if (count <= 0) {
			return count < 0 ? -errno : 0;
		}
		if (signals_interrupted()) {
			return -ECANCELED;
		}
	}
	return 0;
}

static int check_file(const struct blocks *blocks, const struct pinion_file *file, const char *path)
{
	if (file->size_bytes < blocks->block_bytes) {
		report_path(path, "is smaller than one block");
		return -EINVAL;
	}
	if (blocks->block_bytes % file->offset_align_bytes != 0) {
		report_line("--block: this device takes multiples of %u", file->offset_align_bytes);
		return -EINVAL;
	}
	return 0;
}

static int open_cached(struct blocks *blocks, uint32_t index)
{
	const char *path = blocks->set->files[index].path;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	blocks->cached_fds[index] = fd;
	rc = fd < 0 ? -errno
		    : warm(fd, blocks->workers[0].block, blocks->block_bytes, CACHED_BYTES);
	if (rc != 0 && rc != -ECANCELED) {
		report_path(path, report_reason(rc));
	}
	return rc;
}

/* More than 2^32 of them are not chosen from. */
static uint64_t count_places(const struct blocks *blocks, uint64_t size_bytes)
{
	uint64_t range_bytes = size_bytes;

	if (blocks->plan->is_cached && range_bytes > CACHED_BYTES) {
		range_bytes = CACHED_BYTES;
	}
	range_bytes /= blocks->block_bytes;
	return range_bytes > UINT32_MAX ? UINT32_MAX : range_bytes;
}

static int open_file(struct blocks *blocks, uint32_t index)
{
	const char *path = blocks->set->files[index].path;
	struct pinion_file_options options;
	int rc;

	pinion_file_options_init(&options);
	options.direct = blocks->plan->is_cached ? PINION_DIRECT_NEVER : PINION_DIRECT_ALWAYS;
	options.flags = PINION_FILE_READ | (blocks->plan->is_written ? PINION_FILE_WRITE : 0);
	rc = pinion_file_open_with(&blocks->files[index], path, &options);
	if (rc != 0) {
		report_path(path, report_reason(rc));
		return rc;
	}
	blocks->cached_fds[index] = -1;
	blocks->block_counts[index] = count_places(blocks, blocks->files[index].size_bytes);
	blocks->opened_count++;
	rc = check_file(blocks, &blocks->files[index], path);
	return rc == 0 && blocks->plan->is_cached ? open_cached(blocks, index) : rc;
}

static int open_files(struct blocks *blocks, struct bench *bench)
{
	int rc = bench_provide_files(bench, blocks->worker_count);

	if (rc != 0) {
		return rc;
	}
	blocks->set = bench->files;
	blocks->files = calloc(blocks->set->count, sizeof(*blocks->files));
	blocks->cached_fds = calloc(blocks->set->count, sizeof(*blocks->cached_fds));
	blocks->block_counts = calloc(blocks->set->count, sizeof(*blocks->block_counts));
	if (blocks->files == NULL || blocks->cached_fds == NULL || blocks->block_counts == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < blocks->set->count; i++) {
		rc = open_file(blocks, i);
	}
	return rc;
}

/* ---- workers ---- */

static int init_worker(struct blocks *blocks, uint32_t index)
{
	struct blocks_worker *worker = &blocks->workers[index];
	bool is_sequential = blocks->plan->is_sequential;

	worker->owner = blocks;
	worker->chains = calloc(blocks->depth_count, sizeof(*worker->chains));
	if (posix_memalign((void **)&worker->block, PAGE_BYTES,
		    (blocks->block_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES) != 0) {
		worker->block = NULL;
	}
	if (worker->chains == NULL || worker->block == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return -ENOMEM;
	}
	fileset_fill(worker->block, blocks->block_bytes, index + 1);
	for (uint32_t i = 0; i < blocks->depth_count; i++) {
		worker->chains[i].worker = worker;
	}
	worker->placing = (struct placing){
		.block_bytes = blocks->block_bytes,
		.is_sequential = is_sequential,
		.state = is_sequential ? 0 : 88172645463325252u + index,
	};
	return 0;
}

/*
 * In order, each worker begins in a file of its own, as far as there are enough
 * files.
 */
static void place_workers(struct blocks *blocks)
{
	for (uint32_t i = 0; i < blocks->worker_count; i++) {
		struct placing *placing = &blocks->workers[i].placing;

		placing->block_counts = blocks->block_counts;
		placing->file_count = blocks->set->count;
		placing->file_index = i % blocks->set->count;
	}
}

static int start_workers(
	struct blocks *blocks, const struct bench *bench, struct bench_setting *out_setting)
{
	struct pinion_config config = bench->options->runtime;
	struct pinion_tuning tuning = bench->options->tuning;
	uint32_t entries = RING_ENTRIES_MIN;
	int rc;

	while (entries < blocks->depth_count) {
		entries *= 2;
	}
	config.worker_count = blocks->plan->first_index + blocks->worker_count;
	config.lanes = blocks->plan->lanes != NULL ? blocks->plan->lanes : config.lanes;
	config.tuning = &tuning;
	tuning.ring_entries = tuning.ring_entries < entries ? entries : tuning.ring_entries;
	config.buffer_count = 1;
	config.small_buffer_count = blocks->depth_count;
	config.small_buffer_bytes =
		(blocks->block_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	config.buffer_bytes = config.small_buffer_bytes;
	rc = pinion_runtime_create(&config, &blocks->runtime);
	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_get_info(blocks->runtime, &out_setting->facts, sizeof(out_setting->facts));
	return 0;
}

static int start_all(struct blocks *blocks, struct bench *bench, struct bench_setting *out_setting)
{
	int rc = 0;

	blocks->workers = bench_allocate(blocks->worker_count * sizeof(*blocks->workers));
	if (blocks->workers == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < blocks->worker_count; i++) {
		rc = init_worker(blocks, i);
	}
	if (rc == 0) {
		rc = start_workers(blocks, bench, out_setting);
	}
	if (rc == 0 && !blocks->plan->is_cached) {
		rc = bench_require_rings(bench->subject, out_setting);
	}
	if (rc == 0) {
		rc = open_files(blocks, bench);
	}
	if (rc == 0) {
		place_workers(blocks);
	}
	return rc;
}

/* Twice as many as are in flight at least, so that most begin one by one. */
static uint32_t count_blocks(const struct blocks *blocks, uint64_t turn_bytes)
{
	uint64_t count = blocks->plan->is_cached ? BLOCKS_CACHED : BLOCKS_DIRECT;
	uint64_t most = TURN_BYTES_MAX / blocks->block_bytes;

	if (turn_bytes != 0) {
		count = turn_bytes / blocks->block_bytes;
	} else if (count > most) {
		count = most;
	}
	count = count > UINT32_MAX ? UINT32_MAX : count;
	return count < 2 * blocks->depth_count ? 2 * blocks->depth_count : (uint32_t)count;
}

int blocks_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	const struct blocks_plan *plan = bench->subject->variant;
	uint32_t *values = out_setting->point.values;
	struct blocks *blocks;
	int rc;

	if (plan->is_written && bench->options->file_count > 0) {
		report_line(
			"%s: skipped, it would overwrite what --file names", bench->subject->name);
		return BENCH_SKIPPED;
	}
	blocks = bench_allocate(sizeof(*blocks));
	if (blocks == NULL) {
		return -ENOMEM;
	}
	values[BENCH_DEPTH] = values[BENCH_DEPTH] == 0 ? BLOCKS_DEPTH : values[BENCH_DEPTH];
	values[BENCH_BLOCK] = values[BENCH_BLOCK] == 0 ? plan->block_bytes : values[BENCH_BLOCK];
	blocks->plan = plan;
	blocks->worker_count = values[BENCH_WORKERS] == 0 ? 1 : values[BENCH_WORKERS];
	blocks->depth_count = values[BENCH_DEPTH];
	blocks->block_bytes = values[BENCH_BLOCK];
	blocks->turn_count = count_blocks(blocks, bench->options->turn_bytes);
	rc = start_all(blocks, bench, out_setting);
	if (rc != 0) {
		blocks_stop(blocks);
		return rc;
	}
	bench_setting_files(out_setting, blocks->set);
	bench_setting_add(out_setting, "%u in flight on each, blocks of %u, %u in a turn",
		blocks->depth_count, blocks->block_bytes, blocks->turn_count);
	*out_state = blocks;
	return 0;
}
