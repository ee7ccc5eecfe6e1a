/* SPDX-License-Identifier: MIT */
/*
 * What the command line asks about archives.
 */
#ifndef PINION_TOOLS_SCAN_ARCHIVE_OPTIONS_H
#define PINION_TOOLS_SCAN_ARCHIVE_OPTIONS_H

#include "tools/scan/archive.h"

struct archive_options {
	bool is_on; /* -z */
	struct archive_limits limits;
};

#define ARCHIVE_OPTIONS_STANDARD ((struct archive_options){.limits = ARCHIVE_LIMITS_STANDARD})

/* Rows for a command's table of options, to be used between braces. */
#define ARCHIVE_SPEC_ON \
	'z', "archives", NULL, "search what archives and compressed files hold", \
		"tar, zip (jar), 7z, cpio, ar (deb), rpm; gzip, bzip2, xz, zstd, lz4, lzip, " \
		"compress; and those in them. Findings are in ARCHIVE!NAME."
#define ARCHIVE_SPEC_LIMIT \
	0, "archive-limit", "NAME=VALUE", "depth=4, entry=1G, size=4G, ratio=1000 or time=300", \
		"Where an archive is given up; these are the defaults. May be given several " \
		"times."

/* The value of --archive-limit. False: it is bad, which is reported. */
bool archive_options_limit(struct archive_options *options, const char *value);

/* After the last one. False: they cannot be had, which is reported. */
bool archive_options_check(const struct archive_options *options);

#endif
