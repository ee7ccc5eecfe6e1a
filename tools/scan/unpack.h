/* SPDX-License-Identifier: MIT */
/*
 * Archives among the files of a scan. The first window of a file shows whether
 * it is one. Then none of its own bytes are searched: what it holds is, on the
 * threads of a lane, which read the file again from its start. The file is
 * reported, and counted, when that has ended.
 *
 * The lane reads with a descriptor of its own of the file that the scan has
 * opened, so that no name is looked up again.
 */
#ifndef PINION_TOOLS_SCAN_UNPACK_H
#define PINION_TOOLS_SCAN_UNPACK_H

#include "tools/scan/archive.h"
#include "tools/scan/job.h"

struct unpack;

/* Returns 0 or an error of lane_create(), -ENOMEM. */
int unpack_create(struct scan_job *job, struct unpack **out_unpack);

/*
 * A window of a file. 1: it is an archive, and no more of it is needed; 0:
 * it is none; negative: it cannot be opened once more.
 */
int unpack_claim(const struct pinion_scan_file *file, const struct pinion_window *window);

/*
 * At the report of each file: unpacks it if it was claimed. Waits while many
 * archives wait. 1: it is counted later. 0: it is counted by its outcome.
 * Negative: it is not unpacked, for that reason.
 */
int unpack_begin(struct unpack *unpack, const struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome);

/* Waits for the end of all; their counts. */
void unpack_finish(struct unpack *unpack, struct archive_counts *out_counts);

/* After unpack_finish(). NULL is accepted. */
void unpack_destroy(struct unpack *unpack);

#endif
