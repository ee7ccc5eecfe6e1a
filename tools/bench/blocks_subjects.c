/* SPDX-License-Identifier: MIT */
/*
 * The subjects about blocks: `read_random`, `read_random_cached` and
 * `write_random`, small ones at random places; `read_blocks`,
 * `read_blocks_cached` and `write`, larger ones in order.
 */
#include "tools/bench/blocks.h"

enum {
	RANDOM_BYTES = 4096,
	IN_ORDER_BYTES = 65536,
};

#define BLOCKS_AXES (BENCH_BY(BENCH_WORKERS) | BENCH_BY(BENCH_DEPTH) | BENCH_BY(BENCH_BLOCK))

static int random_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_read_random,
		.block_bytes = RANDOM_BYTES,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

static int random_cached_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_read_random_cached,
		.block_bytes = RANDOM_BYTES,
		.is_cached = true,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

static int in_order_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_read_blocks,
		.block_bytes = IN_ORDER_BYTES,
		.is_sequential = true,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

static int in_order_cached_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_read_blocks_cached,
		.block_bytes = IN_ORDER_BYTES,
		.is_cached = true,
		.is_sequential = true,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

static int write_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_write,
		.block_bytes = IN_ORDER_BYTES,
		.is_sequential = true,
		.is_written = true,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

static int write_random_start(
	struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	static const struct blocks_plan plan = {
		.subject = &bench_write_random,
		.block_bytes = RANDOM_BYTES,
		.is_written = true,
	};

	return blocks_start(bench, &plan, out_setting, out_state);
}

const struct bench_subject bench_read_random = {
	.name = "read_random",
	.unit = "kIOPS",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks read at random past the page cache, against a bare io_uring",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"},
	.start = random_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};

const struct bench_subject bench_read_random_cached = {
	.name = "read_random_cached",
	.unit = "kIOPS",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks read at random from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.start = random_cached_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};

const struct bench_subject bench_read_blocks = {
	.name = "read_blocks",
	.unit = "GB/s",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks read in order past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pread-direct",
		},
	.start = in_order_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};

const struct bench_subject bench_read_blocks_cached = {
	.name = "read_blocks_cached",
	.unit = "GB/s",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks read in order from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.start = in_order_cached_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};

const struct bench_subject bench_write = {
	.name = "write",
	.unit = "GB/s",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks written in order past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pwrite-direct",
		},
	.start = write_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};

const struct bench_subject bench_write_random = {
	.name = "write_random",
	.unit = "kIOPS",
	.is_rate = true,
	.axes = BLOCKS_AXES,
	.brief = "blocks written at random past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pwrite-direct",
		},
	.start = write_random_start,
	.run = blocks_run,
	.stop = blocks_stop,
	.further = blocks_further,
};
