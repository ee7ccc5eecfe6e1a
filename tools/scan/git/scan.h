/* SPDX-License-Identifier: MIT */
/*
 * A scan of a repository in place of files: `pinion scan --git`.
 */
#ifndef PINION_TOOLS_SCAN_GIT_SCAN_H
#define PINION_TOOLS_SCAN_GIT_SCAN_H

#include "tools/scan/job.h"

/*
 * Searches the repository, and reports what of it could not be: the first
 * thread, in place of adding files to the job's scan. Leaves the counts to be
 * added to those of that scan, which has none.
 */
void git_scan(struct scan_job *job, struct pinion_scan_stats *out_totals);

#endif
