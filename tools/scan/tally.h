/* SPDX-License-Identifier: MIT */
/*
 * Paths counted by what became of them, so that each one seen is in one count:
 * scanned, skipped for a reason, failed with an errno, or cancelled.
 */
#ifndef PINION_TOOLS_SCAN_TALLY_H
#define PINION_TOOLS_SCAN_TALLY_H

#include "tools/output_text.h"
#include "tools/scan/archive.h"
#include "tools/scan/yara_search.h"

#include <pinion/scan.h>

enum tally_skip {
	TALLY_SYMLINK,
	TALLY_FIFO,
	TALLY_SOCKET,
	TALLY_CHARACTER_DEVICE,
	TALLY_BLOCK_DEVICE,
	TALLY_BINARY,
	TALLY_GONE,    /* since its directory was listed */
	TALLY_SPECIAL, /* its kind is not known */
	TALLY_SKIP_COUNT,
};

enum { TALLY_ERRNO_COUNT = 134 }; /* Linux's, and 0 for others */

/* What one worker has counted. Zero-initialise. */
struct tally {
	uint64_t scanned;
	uint64_t cancelled;
	uint64_t left_out[PINION_WALK_REASONS];
	uint64_t skipped[TALLY_SKIP_COUNT];
	uint64_t submodules; /* of a repository */
	uint64_t failed[TALLY_ERRNO_COUNT];
};

/* As the scan reports a path. */
void tally_add(struct tally *tally, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error);

void tally_sum(struct tally *sum, const struct tally *part);

/* Further members of the object. */
struct tally_extra {
	uint64_t findings;
	uint64_t known;
	uint64_t allowed;
	double seconds;
	const struct archive_counts *archives;	/* NULL: they were files like others */
	const struct yara_counts *yara;		/* NULL: there were no such rules */
	const struct throttle_targets *targets; /* NULL: there is none */
};

/* A line for people about archives. */
void tally_note_archives(const struct archive_counts *archives);

/* A JSON object, on one line. */
void tally_write(const struct tally *tally, const struct pinion_scan_stats *totals,
	const struct tally_extra *extra, struct output_text *out);

#endif
