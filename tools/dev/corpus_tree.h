/* SPDX-License-Identifier: MIT */
/*
 * One corpus in the making.
 */
#ifndef PINION_TOOLS_DEV_CORPUS_TREE_H
#define PINION_TOOLS_DEV_CORPUS_TREE_H

#include <stdint.h>
#include <stdio.h>

struct corpus {
	const char *folder;
	uint64_t size;
	uint64_t seed;
	uint64_t small_count; /* files of up to 32 KiB */
	FILE *manifest;
	/* Progress. */
	char last_folder[256];
	uint32_t next_secret;
	uint64_t small_planted;
};

/* Makes the tree below an existing folder, and lines in the manifest. */
void corpus_make_tree(struct corpus *corpus);

/* Ends the program: "corpus: NAME: WHAT". */
__attribute__((noreturn)) void corpus_die(const char *what, const char *name);

#endif
