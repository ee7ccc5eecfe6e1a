/* SPDX-License-Identifier: MIT */
/*
 * What `read` and `sum` do with bytes: count them, and hash each file from its
 * start to its end.
 */
#include "tools/bench/files.h"

#include <errno.h>
#include <string.h>

/* ---- read: the callback only counts ---- */

static int read_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)file;
	bench_files_worker(arg)->byte_count += window->length_bytes - window->prefix_bytes;
	return 0;
}

const struct work bench_read_work = {
	.order = PINION_SCAN_PARALLEL,
	.scan = {.window = read_window},
};

/* ---- sum: XXH3 over each file from its start to its end ---- */

static int sum_start(struct files_bench *bench)
{
	bench->algorithm = &digest_algorithms[DIGEST_XXH3_64];
	return digest_is_built(bench->algorithm) ? 0 : -EOPNOTSUPP;
}

static int sum_open(void *arg, struct pinion_scan_file *file)
{
	const struct files_bench *bench = arg;

	return bench->algorithm->init(file->user);
}

static int sum_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	const struct files_bench *bench = arg;

	return bench->algorithm->update(file->user, window->bytes, window->length_bytes);
}

static int sum_end(const struct files_bench *bench, struct digest_state *state)
{
	uint8_t digest[DIGEST_BYTES_MAX];

	return bench->algorithm->final(state, digest);
}

static int sum_close(void *arg, struct pinion_scan_file *file, int error)
{
	(void)error;
	return sum_end(arg, file->user);
}

static int sum_touch_begin(void *arg, uint32_t thread_index)
{
	struct files_bench *bench = arg;
	struct digest_state *state = &bench->workers[thread_index].digest;

	memset(state, 0, sizeof(*state));
	return bench->algorithm->init(state);
}

static int sum_touch(void *arg, uint32_t thread_index, const uint8_t *bytes, size_t length,
	uint64_t offset_bytes)
{
	struct files_bench *bench = arg;

	(void)offset_bytes;
	return bench->algorithm->update(&bench->workers[thread_index].digest, bytes, length);
}

static void sum_touch_end(void *arg, uint32_t thread_index)
{
	struct files_bench *bench = arg;

	(void)sum_end(bench, &bench->workers[thread_index].digest);
}

const struct work bench_sum_work = {
	.order = PINION_SCAN_IN_ORDER,
	.file_user_bytes = sizeof(struct digest_state),
	.start = sum_start,
	.scan = {.open = sum_open, .window = sum_window, .close = sum_close},
	.touch = {.begin = sum_touch_begin, .bytes = sum_touch, .end = sum_touch_end},
};
