/* SPDX-License-Identifier: MIT */
/*
 * The subjects `read_blocks` and `read_blocks_cached`, larger blocks in order,
 * and `write_random`, small ones at random places (tools/bench/blocks.h).
 */
#include "tools/bench/blocks.h"

const struct bench_subject bench_read_blocks = {
	.name = "read_blocks",
	.unit = "GB/s",
	.brief = "blocks read in order past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pread-direct",
		},
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_IN_ORDER_BYTES,
		.is_sequential = true},
	BLOCKS_SHARED,
};

const struct bench_subject bench_read_blocks_cached = {
	.name = "read_blocks_cached",
	.unit = "GB/s",
	.brief = "blocks read in order from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_IN_ORDER_BYTES,
		.is_cached = true,
		.is_sequential = true},
	BLOCKS_SHARED,
};

const struct bench_subject bench_write_random = {
	.name = "write_random",
	.unit = "kIOPS",
	.brief = "blocks written at random past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pwrite-direct",
		},
	.variant =
		&(const struct blocks_plan){.block_bytes = BLOCKS_RANDOM_BYTES, .is_written = true},
	BLOCKS_SHARED,
};
