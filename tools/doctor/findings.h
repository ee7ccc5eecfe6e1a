/* SPDX-License-Identifier: MIT */
/*
 * What the doctor has found, as text for people or as one JSON object.
 *
 * A report is a list of subjects; a subject is a list of facts, each a name and
 * a value, and of problems, each with what mends it. Facts are written as they
 * come, in one of the two forms; problems wait for the end of their subject, so
 * that a fact may follow the problem it has shown.
 *
 * Names are the same in both forms. One thread.
 */
#ifndef PINION_TOOLS_DOCTOR_FINDINGS_H
#define PINION_TOOLS_DOCTOR_FINDINGS_H

#include "tools/options.h"
#include "tools/output_text.h"

#include <stdint.h>

enum verdict {
	VERDICT_READY = EXIT_STATUS_CLEAN,
	VERDICT_DEGRADED = EXIT_STATUS_FOUND,	/* all works, slower than it could */
	VERDICT_UNUSABLE = EXIT_STATUS_TROUBLE, /* something cannot be read at all */
};

/* Zero-initialise but for is_json. */
struct findings {
	bool is_json;
	enum verdict verdict; /* the worst so far */
	struct output_text text;
	struct output_text problems; /* of the subject under way */
	uint32_t fact_count;	     /* of the subject under way */
	uint32_t subject_count;
	size_t column; /* of the line under way */
	bool is_in_paths;
};

/* Ends the subject under way and begins another. */
void findings_subject(struct findings *findings, const char *name);
/* The same for an entry of the list of paths; only more of them may follow. */
void findings_path(struct findings *findings, const char *path);

void findings_text(struct findings *findings, const char *name, const char *value);
void findings_number(struct findings *findings, const char *name, uint64_t value);
void findings_flag(struct findings *findings, const char *name, bool value);
/* A number, and UINT64_MAX for "none". */
void findings_limit(struct findings *findings, const char *name, uint64_t value);
/* Words with blanks between them: in JSON a list. */
void findings_words(struct findings *findings, const char *name, const char *words);

/* Of the subject under way. `mend` is a command. */
void findings_problem(
	struct findings *findings, enum verdict verdict, const char *what, const char *mend);

/* Ends the report and writes it. False: it did not arrive, which was said. */
bool findings_print(struct findings *findings);

#endif
