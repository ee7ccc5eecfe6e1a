/* SPDX-License-Identifier: MIT */
/*
 * Shared by the subjects about single requests: blocks of files, read or
 * written, at random or in order, a fixed number in flight on each worker; past
 * the page cache, or from it.
 *
 * Ours keeps a request for each block in flight; its task submits it anew. The
 * floor runs on the same workers' threads: a bare ring for each, or pread(2)
 * one by one where the data is cached, as nothing is faster there.
 */
#ifndef PINION_TOOLS_BENCH_BLOCKS_H
#define PINION_TOOLS_BENCH_BLOCKS_H

#include "tools/bench/effort.h"
#include "tools/bench/fileset.h"
#include "tools/bench/placing.h"
#include "tools/bench/rawring.h"
#include "tools/bench/tasks.h"

#include <pinion/file.h>
#include <pinion/request.h>

/* Of a block, unless the user says otherwise. */
enum {
	BLOCKS_RANDOM_BYTES = 4096,
	BLOCKS_IN_ORDER_BYTES = 65536,
};

/* The differences between one subject and another. */
struct blocks_plan {
	uint32_t block_bytes; /* by default */
	bool is_cached;
	bool is_sequential;
	bool is_written;
	const char *lanes;    /* of the workers, as pinion_config(3) has it; NULL: all */
	uint32_t first_index; /* workers that read no blocks: those before */
};

struct blocks_worker;

struct blocks_chain {
	struct pinion_request request;
	struct blocks_worker *worker;
};

/* Everything is its worker's while a turn is running. */
struct blocks_worker {
	struct pinion_task turn BENCH_LINE_ALIGNED;
	struct blocks *owner;
	struct blocks_chain *chains; /* as many as the depth */
	bool has_buffers;
	struct rawring *rawring; /* of the floor, made at its first turn */
	uint8_t *block;		 /* of the sides that go one by one */
	struct placing placing;
	uint32_t unbegun_count;
	uint32_t in_flight_count;
	uint64_t start_ns;
	uint64_t end_ns;
	int error;
};

struct blocks {
	const struct blocks_plan *plan;
	struct pinion_runtime *runtime;
	struct fileset *set;
	struct pinion_file *files; /* as ours opens them */
	int *cached_fds;	   /* of the floor, without O_DIRECT */
	uint64_t *block_counts;	   /* of each file, from its start on */
	uint32_t opened_count;
	struct blocks_worker *workers;
	uint32_t worker_count;
	uint32_t depth_count;
	uint32_t block_bytes;
	uint32_t turn_count; /* blocks of each worker for one figure */
	enum bench_side side;
	struct effort effort;
	uint32_t done_before;			 /* what `done` was when the turn began */
	uint32_t ended_count BENCH_LINE_ALIGNED; /* workers, of this turn */
	uint32_t done;
};

/* For a subject's table. */
int blocks_start(struct bench *bench, struct bench_setting *out_setting, void **out_state);
int blocks_run(void *state, enum bench_side side, struct samples *out_figures);
uint32_t blocks_further(void *state, struct bench_further further[BENCH_FURTHER_MAX]);
void blocks_stop(void *state);

/*
 * blocks_run() in two calls, for what goes on meanwhile: a turn is begun, and
 * waited for. The rate is in the unit of the subject. 0 or a negative errno.
 */
int blocks_begin(struct blocks *blocks, enum bench_side side);
bool blocks_has_ended(const struct blocks *blocks);
int blocks_end(struct blocks *blocks, double *out_rate);

/* What all of them have. */
#define BLOCKS_SHARED \
	.is_rate = true, \
	.axes = BENCH_BY(BENCH_WORKERS) | BENCH_BY(BENCH_DEPTH) | BENCH_BY(BENCH_BLOCK), \
	.start = blocks_start, .run = blocks_run, .stop = blocks_stop, .further = blocks_further

#endif
