/* SPDX-License-Identifier: MIT */
/*
 * Facts about a blob, shown beside its path, as strings.
 */
#ifndef PINION_TOOLS_SCAN_GIT_FACTS_H
#define PINION_TOOLS_SCAN_GIT_FACTS_H

#include "tools/scan/git/blobs.h"
#include "tools/scan/source_facts.h"

/* Facts about a blob as strings, all within. */
struct git_facts {
	struct source_facts facts;
	char *name;
	size_t name_capacity;
	char blob[GIT_ID_CHARS_MAX + 1];
	char commit[GIT_ID_CHARS_MAX + 1];
	char author[256];
	char email[256];
	char date[48];
};

/* Zero-initialise it once. 0 or -ENOMEM. */
int git_facts_set(
	struct git_facts *facts, const struct git_blobs *blobs, const struct git_blob *blob);
void git_facts_fini(struct git_facts *facts);

#endif
