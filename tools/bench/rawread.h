/* SPDX-License-Identifier: MIT */
/*
 * The floor of everything that reads files: threads that call pread(2) with
 * O_DIRECT, 1 MiB at a time, each into a huge page of its own that was touched
 * before. Whatever a library adds, it adds to this.
 *
 * Files are handed out one by one; when there are fewer files than threads,
 * each is cut into as many parts as make enough.
 */
#ifndef PINION_TOOLS_BENCH_RAWREAD_H
#define PINION_TOOLS_BENCH_RAWREAD_H

#include "tools/bench/fileset.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The work on the data; each function returns 0 or a negative errno. */
struct rawread_touch {
	void *arg;
	/* A part begins. The parts of a thread do not overlap. */
	int (*begin)(void *arg, uint32_t thread_index);
	int (*bytes)(void *arg, uint32_t thread_index, const uint8_t *bytes, size_t length,
		uint64_t offset_bytes);
	/* It ends, also after an error. */
	void (*end)(void *arg, uint32_t thread_index);
};

struct rawread;

/* The set must outlive it. Returns 0 or -ENOMEM. */
int rawread_create(const struct fileset *set, uint32_t thread_count, struct rawread **out_rawread);
void rawread_destroy(struct rawread *rawread);

/*
 * Reads everything once; `touch` may be NULL. The time is that from the start
 * of threads that were waiting to the end of the last one.
 *
 * Errors: -ECANCELED: a signal came. -ESTALE: a file shrank. -EAGAIN: a thread
 * could not be started. Others of pread(2) and of `touch`.
 */
int rawread_run(
	struct rawread *rawread, const struct rawread_touch *touch, uint64_t *out_elapsed_ns);

#endif
