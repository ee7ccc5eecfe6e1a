/* SPDX-License-Identifier: MIT */
/*
 * What commands have to know of the other ranks.
 */
#include "tools/distribution.h"

#include "tools/report.h"

#include <string.h>

const struct distribution *distribution;

void distribution_configure(struct pinion_scan_config *config)
{
	if (distribution == NULL) {
		return;
	}
	if (distribution->count > 1) {
		config->share = distribution->share;
	}
	/* Parts come in no order; pinion merge sorts. */
	if (config->walk_order == PINION_SCAN_WALK_BY_PATH) {
		config->walk_order = PINION_SCAN_WALK_ANY;
	}
}

/* Those that are about one process, one output, or all files of a tree. */
static const struct {
	const char *option;
	const char *instead;
} refused[] = {
	{"shard", "ranks share the files out by themselves"},
	{"shard-from-env", "ranks share the files out by themselves"},
	{"hard-links", "a rank does not know which files others have met"},
	{"output", "pinion merge writes the output, from the logs"},
	{"trace", "all ranks would write the same file"},
	{"git", "a repository is searched by pinion scan"},
	{"since", "a repository is searched by pinion scan"},
	{"staged", "a repository is searched by pinion scan"},
	{"archives", "logs lack what archives hold"},
	{"explain", "pinion scan explains"},
	{"print-patterns", "pinion scan prints them"},
	{"check", "lists are verified by pinion sum"},
	{"audit", "lists are verified by pinion sum"},
	{"scrub", "a STATE is kept by pinion sum"},
	{"status", "a STATE is read by pinion sum"},
};

bool distribution_allows_format(const char *name, bool is_document)
{
	if (distribution != NULL && is_document) {
		report_line("--format=%s does not go with pinion-mpi: parts of a document cannot "
			    "be joined, lines of --format=json or csv can",
			name);
		return false;
	}
	return true;
}

bool distribution_allows(const char *option)
{
	for (size_t i = 0; distribution != NULL && i < sizeof(refused) / sizeof(refused[0]); i++) {
		if (strcmp(option, refused[i].option) == 0) {
			report_line(
				"--%s does not go with pinion-mpi: %s", option, refused[i].instead);
			return false;
		}
	}
	return true;
}
