/* SPDX-License-Identifier: MIT */
/*
 * --explain: what a scan with these options and PATHs does with one path, and
 * why. The tree is walked, and the start of that file is read.
 */
#ifndef PINION_TOOLS_SCAN_EXPLAIN_H
#define PINION_TOOLS_SCAN_EXPLAIN_H

#include "tools/scan/run.h"

/*
 * Walks the paths and lists, and prints the answer about `path`. Exit status: 0
 * it is scanned, 1 it is not, 2 no walk came by, or bad usage.
 */
int explain_run(const struct scan_options *options);

#endif
