/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum --scrub=STATE`: hashes the files of a tree again and again, those
 * first whose last check is longest ago, and compares them with what STATE has
 * of them. A file whose content differs while its size and times do not is
 * rotten: no program has written it.
 *
 * Invariant: a file that is read is noted in STATE, whatever came of it, so
 * runs that are stopped early read all files before they read one twice.
 */
#ifndef PINION_TOOLS_SUM_SCRUB_H
#define PINION_TOOLS_SUM_SCRUB_H

#include <stdbool.h>
#include <stdint.h>

struct sum_job;
struct sum_options;

struct scrub_options {
	const char *state;	  /* --scrub, NULL: none */
	uint64_t max_age_ns;	  /* files checked later than that are left alone */
	uint64_t max_duration_ns; /* no file is begun after it; with has_duration */
	bool has_age;
	bool has_duration;
	bool is_json; /* --json, with --status */
};

/* Options that go together. False: they do not, which is reported. */
bool scrub_check(const struct sum_options *options, int path_count);

/* A run over these trees. Trouble and rotten files are noted in the job. */
void sum_scrub(struct sum_job *job, char *const *paths, int path_count);

/* Prints what STATE says. Returns the exit status. */
int scrub_status(const char *path, bool is_json);

#endif
