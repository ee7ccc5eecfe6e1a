/* SPDX-License-Identifier: MIT */
/*
 * One run of `pinion scan`, as its command line asks for it.
 */
#ifndef PINION_TOOLS_SCAN_RUN_H
#define PINION_TOOLS_SCAN_RUN_H

#include "tools/scan/archive_options.h"
#include "tools/scan/decode.h"
#include "tools/scan/git/options.h"
#include "tools/scan/matcher.h"
#include "tools/scan/patterns.h"
#include "tools/scan/report_options.h"
#include "tools/scan/yara_search.h"
#include "tools/scanning.h"

#include <stdbool.h>

struct scan_options {
	struct scan_patterns patterns;
	struct report_options report;
	struct archive_options archives;
	struct decode_options decode;
	uint64_t yara_bytes_max; /* --yara-max-filesize */
	bool has_json_stats;	 /* --stats=json */
	struct git_options git;
	const char *explained; /* --explain, NULL: it is not given */
	bool prints_patterns;
	bool skips_binary; /* --binary=skip */
	char *const *paths;
	int path_count;
	struct scanning_options scanning;
};

/* Scans; returns an exit status. */
int scan_run(const struct scan_options *options, const struct matcher_ops *matcher,
	const struct rules *rules);

#endif
