/* SPDX-License-Identifier: MIT */
/*
 * Where the bytes of a source come from, beyond its path: the version of a file
 * in a repository. Formats show it with each finding.
 */
#ifndef PINION_TOOLS_SCAN_SOURCE_FACTS_H
#define PINION_TOOLS_SCAN_SOURCE_FACTS_H

/* Strings are raw: any bytes but NUL. */
struct source_facts {
	const char *name; /* in lines on stderr: "1a2b3c4d5e6f:src/a.c" */
	const char *blob; /* its id */
	/* NULL, as all below: no commit has it. */
	const char *commit;
	const char *author;
	const char *email;
	const char *date; /* of the author: 2026-11-27T08:30:00+01:00 */
};

#endif
