/* SPDX-License-Identifier: MIT */
/*
 * The subjects that read large files: `read` only counts bytes, `sum` hashes
 * them in order, `scan` searches them for the built-in rules.
 *
 * All three are one machine: the library's scan as ours, the raw loop as the
 * floor, and the raw loop that does to each buffer what ours does to each
 * window. Both sides read past the page cache, so nothing needs dropping in
 * between. They differ in a struct work: the work on bytes, once in the form
 * that the scan calls and once in that of the raw loop.
 *
 * One side runs at a time, so worker i and raw thread i share their state.
 */
#ifndef PINION_TOOLS_BENCH_FILES_H
#define PINION_TOOLS_BENCH_FILES_H

#include "tools/bench/effort.h"
#include "tools/bench/fileset.h"
#include "tools/bench/rawread.h"
#include "tools/bench/subject.h"
#include "tools/scan/search.h"
#include "tools/sum/digest.h"

#include <pinion/scan.h>
#include <stdalign.h>

struct files_worker {
	alignas(64) uint64_t byte_count;
	uint64_t finding_count;
	struct digest_state digest; /* of the raw loop's part */
	struct search_worker search;
	struct engine_file engine_file; /* of the raw loop's part */
};

struct files_bench;

struct work {
	uint32_t order;
	uint32_t file_user_bytes;
	/* Sets up what it needs, changes the configuration. May be NULL. */
	int (*start)(struct files_bench *bench);
	struct pinion_scan_ops scan; /* without `report` */
	struct rawread_touch touch;  /* without `arg` */
};

struct files_bench {
	const struct work *work;
	const struct fileset *set;
	struct pinion_runtime *runtime;
	struct pinion_scan_config scan;
	struct rawread *rawread;
	struct files_worker *workers;
	uint32_t worker_count;
	struct effort effort;
	/* `sum` */
	const struct digest_algorithm *algorithm;
	/* `scan` */
	struct rules rules;
	struct search search;
};

extern const struct work bench_read_work;
extern const struct work bench_sum_work;
extern const struct work bench_scan_work;

/*
 * Has the bench's files opened or made, for as many workers at least. They
 * serve all subjects of the call. 0 or a negative errno that is reported.
 */
int bench_provide_files(struct bench *bench, uint32_t worker_count);

/* "2 files, 64 MiB, 2 workers" */
void bench_setting_files(struct bench_setting *setting, const struct fileset *set);

/* The state of the worker that runs the calling callback. */
struct files_worker *bench_files_worker(struct files_bench *bench);

#endif
