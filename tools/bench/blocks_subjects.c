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

/* What all of them have. */
#define BLOCKS_SHARED \
	.is_rate = true, \
	.axes = BENCH_BY(BENCH_WORKERS) | BENCH_BY(BENCH_DEPTH) | BENCH_BY(BENCH_BLOCK), \
	.start = blocks_start, .run = blocks_run, .stop = blocks_stop, .further = blocks_further

const struct bench_subject bench_read_random = {
	.name = "read_random",
	.unit = "kIOPS",
	.brief = "blocks read at random past the page cache, against a bare io_uring",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "io_uring-by-hand"},
	.variant = &(const struct blocks_plan){.block_bytes = RANDOM_BYTES},
	BLOCKS_SHARED,
};

const struct bench_subject bench_read_random_cached = {
	.name = "read_random_cached",
	.unit = "kIOPS",
	.brief = "blocks read at random from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.variant = &(const struct blocks_plan){.block_bytes = RANDOM_BYTES, .is_cached = true},
	BLOCKS_SHARED,
};

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
	.variant =
		&(const struct blocks_plan){.block_bytes = IN_ORDER_BYTES, .is_sequential = true},
	BLOCKS_SHARED,
};

const struct bench_subject bench_read_blocks_cached = {
	.name = "read_blocks_cached",
	.unit = "GB/s",
	.brief = "blocks read in order from the page cache, against a loop of pread(2)",
	.sides = {[BENCH_OURS] = "pinion_request_submit", [BENCH_FLOOR] = "pread-cached"},
	.variant =
		&(const struct blocks_plan){
			.block_bytes = IN_ORDER_BYTES, .is_cached = true, .is_sequential = true},
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
	.variant =
		&(const struct blocks_plan){
			.block_bytes = IN_ORDER_BYTES, .is_sequential = true, .is_written = true},
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
	.variant = &(const struct blocks_plan){.block_bytes = RANDOM_BYTES, .is_written = true},
	BLOCKS_SHARED,
};
