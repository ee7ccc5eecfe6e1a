/* SPDX-License-Identifier: MIT */
/*
 * Output of files in the order in which their paths were added, though they end
 * in any order: --sort.
 *
 * The first file that has not ended is written through. Lines of those after it
 * wait in pieces: SORTED_MEMORY_MAX bytes in memory, the others in a file
 * without a name in TMPDIR, or /tmp. The scan never has more than
 * SORTED_PATHS_MAX paths between the first that has not ended and the last
 * (paths_ahead_max), so there is a place for each. No thread waits here for
 * another file's end.
 *
 * Context: any worker, and the adding thread; one lock.
 */
#ifndef PINION_TOOLS_SCAN_SORTED_OUTPUT_H
#define PINION_TOOLS_SCAN_SORTED_OUTPUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	SORTED_PATHS_MAX = 16384,
	SORTED_MEMORY_MAX = 16 << 20,
};

/* Bytes that a file writes at once. */
struct sorted_text {
	const char *bytes;
	size_t length;
	bool is_note; /* for the end of a document */
};

/* Writes; the lock is held. False: it failed, and nothing more is written. */
typedef bool (*sorted_write_fn)(void *arg, const struct sorted_text *text);

struct sorted_piece;

struct sorted_file {
	struct sorted_piece *first; /* in the order they came */
	struct sorted_piece *last;
	bool has_ended;
};

struct sorted_output {
	pthread_mutex_t lock;
	sorted_write_fn write;
	void *arg;
	struct sorted_file *files; /* by sequence, modulo SORTED_PATHS_MAX */
	uint64_t front;		   /* sequence of the first that has not ended */
	size_t memory_bytes;	   /* of pieces */
	size_t memory_max;
	int spill_fd; /* -1: none yet */
	uint64_t spill_end;
	uint64_t spilled_count; /* pieces that are there */
	bool has_failed;
};

/* 0, or -ENOMEM. `memory_max` 0: the standard. */
int sorted_output_init(
	struct sorted_output *output, size_t memory_max, sorted_write_fn write, void *arg);
void sorted_output_fini(struct sorted_output *output);

/*
 * Text of a file, at once or when its turn comes. False: a write has failed, or
 * there is no room, which is reported.
 */
bool sorted_output_put(
	struct sorted_output *output, uint64_t sequence, const struct sorted_text *text);

/* The path has no more; once for each. False: as above. */
bool sorted_output_end(struct sorted_output *output, uint64_t sequence);

#endif
