/* SPDX-License-Identifier: MIT */
/*
 * The subjects `read_random` and `read_random_cached`, small blocks at random
 * places, and `write`, larger ones in order.
 */
#include "tools/bench/blocks.h"

const struct bench_subject bench_read_random = {
	.name = "read_random",
	.unit = "kIOPS",
	.brief = "blocks read at random past the page cache, against a bare io_uring",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"},
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_RANDOM_BYTES},
	BLOCKS_SHARED,
};

const struct bench_subject bench_read_random_cached = {
	.name = "read_random_cached",
	.unit = "kIOPS",
	.brief = "blocks read at random from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.variant =
		&(const struct blocks_plan){.block_bytes = BLOCKS_RANDOM_BYTES, .is_cached = true},
	BLOCKS_SHARED,
};

const struct bench_subject bench_write = {
	.name = "write",
	.unit = "GB/s",
	.brief = "blocks written in order past the page cache, against a bare io_uring",
	.sides =
		{
			[BENCH_OURS] = "pinion_request_submit",
			[BENCH_FLOOR] = "io_uring-by-hand",
			[BENCH_SECOND] = "pwrite-direct",
		},
	.variant = &(const struct blocks_plan){.block_bytes = BLOCKS_IN_ORDER_BYTES,
		.is_sequential = true,
		.is_written = true},
	BLOCKS_SHARED,
};
