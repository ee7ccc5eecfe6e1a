/* SPDX-License-Identifier: MIT */
/*
 * The options about which entries of a tree are left out: one table row each,
 * one parser for all commands that walk.
 */
#ifndef PINION_TOOLS_CHOOSING_H
#define PINION_TOOLS_CHOOSING_H

#include "tools/sharding.h"

#include <pinion/walk.h>
#include <stdbool.h>

/* Zero-initialise. */
struct choosing {
	struct pinion_walk_filter filter; /* its size is 0: nothing was asked */
	char *exclude;			  /* lines */
	char *include;
	struct sharding sharding;
	bool is_about_trees; /* an option other than --shard is */
};

#define CHOOSING_SPEC_ONE_FILE_SYSTEM \
	'x', "one-file-system", NULL, "do not enter directories of other file systems", NULL
#define CHOOSING_SPEC_NO_HIDDEN 0, "no-hidden", NULL, "leave out names that begin with a dot", NULL
#define CHOOSING_SPEC_EXCLUDE \
	0, "exclude", "GLOB", "leave out what GLOB names; may be given several times", \
		"A line of gitignore(5); the last that matches decides, and !GLOB keeps."
#define CHOOSING_SPEC_INCLUDE \
	0, "include", "GLOB", "leave out files that no GLOB names; may be given several times", NULL
#define CHOOSING_SPEC_MIN_SIZE 0, "min-size", "SIZE", "leave out files below SIZE", NULL
#define CHOOSING_SPEC_MAX_SIZE 0, "max-filesize", "SIZE", "leave out files above SIZE", NULL
#define CHOOSING_SPEC_NEWER \
	0, "newer-than", "TIME", "leave out files modified before TIME", \
		"A date, 2026-11-27 or 2026-11-27T08:30:00, or an age: 7d, 12h, 30m, 10s."
#define CHOOSING_SPEC_OLDER 0, "older-than", "TIME", "leave out files modified after TIME", NULL
#define CHOOSING_SPEC_HARD_LINKS \
	0, "hard-links", "WHICH", "read a file by its first name alone: once; default: all", NULL

#define CHOOSING_SPEC_SHARD \
	0, "shard", "K/N", "read only shard K of N, 0 to N-1, of the files, by their paths", \
		"N runs read all files, each one once; pinion merge joins their logs."
#define CHOOSING_SPEC_SHARD_ENV \
	0, "shard-from-env", "N", "the same; K is the index of a Slurm, Kubernetes or PBS task", \
		NULL

/*
 * Takes the value of the option of that name, one of these. False: it is bad,
 * which is reported.
 */
bool choosing_parse(struct choosing *choosing, const char *name, const char *value);

/* After the last one. False: they do not fit together, which is reported. */
bool choosing_check(const struct choosing *choosing);

/* For a scan's configuration, or a walk's; NULL: nothing is left out. */
const struct pinion_walk_filter *choosing_filter(struct choosing *choosing);

void choosing_fini(struct choosing *choosing);

#endif
