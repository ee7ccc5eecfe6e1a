/* SPDX-License-Identifier: MIT */
/*
 * What the command line asks of a scan of a repository.
 */
#ifndef PINION_TOOLS_SCAN_GIT_OPTIONS_H
#define PINION_TOOLS_SCAN_GIT_OPTIONS_H

#include <stdbool.h>

struct git_options {
	const char *repository; /* NULL: files are scanned */
	const char *since;	/* NULL: all commits */
	bool is_staged;
};

#endif
