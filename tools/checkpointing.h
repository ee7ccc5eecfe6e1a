/* SPDX-License-Identifier: MIT */
/*
 * --checkpoint: the files that a command has done are in a log with their
 * results, so that --resume goes on where a killed run was. Results of files
 * that have not changed come from the log, and the output is the same as that
 * of a run that nothing has stopped.
 *
 * A file that takes longer than the log's interval is noted in parts: where it
 * was read up to, and what the command needs to go on from there.
 *
 * A file's record has its path, inode, size and times as they were when the
 * file was opened. A file is done again if any of these differs, if it failed,
 * if something about it was said on stderr, or if it was changed less than a
 * second before it was opened, since a later change may then have the same
 * time.
 *
 * At its end a run notes which files of earlier runs it has not seen any more,
 * and its counts: so the log has what the output has, and logs of shards can be
 * merged (tools/merge/).
 */
#ifndef PINION_TOOLS_CHECKPOINTING_H
#define PINION_TOOLS_CHECKPOINTING_H

#include "tools/checkpoint_records.h"
#include "tools/output_text.h"
#include "tools/sharding.h"

#include <pinion/checkpoint.h>
#include <pinion/scan.h>
#include <stdbool.h>
#include <stdint.h>

struct checkpointing;
struct option_spec;

struct checkpointing_options {
	const char *file; /* --checkpoint, NULL: none */
	bool resumes;
	bool salvages;
	uint64_t interval_ns; /* 0: the log's standard */
	/* Options that results depend on, as they were given. */
	struct output_text given;
	/* Digests of the files that such options name. */
	struct output_text contents;
	struct sharding sharding;
};

/* Rows for a command's table of options, to be used between braces. */
#define CHECKPOINTING_SPEC_FILE \
	0, "checkpoint", "FILE", "note each file that is done in FILE, for --resume", \
		"What a file comes to is shown when it is done. FILE must not be there, but for " \
		"--resume."
#define CHECKPOINTING_SPEC_RESUME \
	0, "resume", NULL, "with --checkpoint: go on where an earlier run was stopped", \
		"Shows all that both runs have come to. Files that have changed are done again. " \
		"Without FILE it begins anew."
#define CHECKPOINTING_SPEC_SALVAGE \
	0, "salvage", NULL, "with --resume: leave out damaged records of FILE", \
		"What they were about is done again."

#define CHECKPOINTING_SPEC_INTERVAL \
	0, "checkpoint-interval", "SECONDS", "write FILE to the disk so often; default: 1", \
		"And for each GiB that is read. A crash costs the work since then."

/* One of them by its name. False: its value is bad, which is reported. */
bool checkpointing_parse(
	struct checkpointing_options *options, const char *name, const char *value);

/*
 * Notes an option that was given, whatever it is. False: it does not go with
 * several ranks, which is reported.
 */
bool checkpointing_note(
	struct checkpointing_options *options, const struct option_spec *spec, const char *value);

/* After the last one. False: they do not fit together, which is reported. */
bool checkpointing_check(const struct checkpointing_options *options);

void checkpointing_options_fini(struct checkpointing_options *options);

/* What a file has come to. */
struct checkpointing_result {
	const char *bytes; /* output */
	size_t length;
	uint64_t counts[CHECKPOINT_COUNTS]; /* the command's */
};

/* A file as it was opened; zero: it was not. */
struct checkpointing_file {
	uint64_t inode;
	uint64_t size_bytes;
	int64_t modified_ns; /* since 1970, as are the others */
	int64_t changed_ns;
	bool is_fresh;	  /* it may change again without a trace */
	uint64_t part_ns; /* [W:any R:any] when a part was noted or asked for; 0: never */
};

/*
 * Opens the log of a command with these roots. Without --checkpoint there is
 * none: NULL. False: reported.
 */
bool checkpointing_begin(const struct checkpointing_options *options, const char *command,
	char *const *paths, int path_count, struct checkpointing **out_checkpointing);

/* What an earlier run has of a file. Zero-initialise; free the texts. */
struct checkpointing_found {
	struct output_text text; /* its output, so far */
	uint64_t counts[CHECKPOINT_COUNTS];
	struct output_text state; /* of a part: for the command, at `offset` */
	uint64_t offset;
};

enum checkpointing_outcome {
	CHECKPOINTING_NOTHING, /* it is to be done */
	CHECKPOINTING_PART,    /* from `offset` on */
	CHECKPOINTING_ALL,
};

/* Looks at an open file, and what an earlier run has of it. Any thread. */
enum checkpointing_outcome checkpointing_find(struct checkpointing *checkpointing,
	const struct pinion_scan_file *file, struct checkpointing_file *out_own,
	struct checkpointing_found *out_found);

/*
 * Whether the next part of a file is due: an interval after the last or the
 * first call, or more where that has many bytes of output. Any thread; a read
 * of the clock.
 */
bool checkpointing_wants_part(const struct checkpointing *checkpointing,
	struct checkpointing_file *own, size_t text_bytes);

/*
 * Notes that a file was read up to `offset`, and what it came to there: a later
 * run may go on from `state`. One thread at a time for a file. An error is that
 * of the next checkpointing_add().
 */
void checkpointing_add_part(struct checkpointing *checkpointing,
	const struct pinion_scan_file *file, struct checkpointing_file *own,
	const struct checkpointing_result *result, uint64_t offset,
	const struct output_text *state);

/*
 * A file has ended; `is_whole`: its result is all that there is to say of it.
 * Any thread. False: the log takes no more, which has been reported; the
 * command is to stop, as its work would be lost.
 */
bool checkpointing_add(struct checkpointing *checkpointing, const struct pinion_scan_file *file,
	const struct checkpointing_file *own, int error, const struct checkpointing_result *result,
	bool is_whole);

/* Whether that open file is a log, of any rank; NULL: there is none. */
bool checkpointing_has(
	const struct checkpointing *checkpointing, const struct pinion_scan_file *file);

/* What a run that has done everything leaves for a merge. */
struct checkpointing_end {
	struct checkpoint_totals totals;
	uint64_t noted_count; /* calls of checkpointing_add(), and files found */
	bool has_trouble;
	enum checkpoint_form form;
	const struct output_text *head; /* what the output begins with; NULL: nothing */
};

/*
 * Closes the log; NULL is accepted. `end` NULL: the run was stopped, or has
 * failed. False: reported.
 */
bool checkpointing_end(struct checkpointing *checkpointing, const struct checkpointing_end *end);

/*
 * Says on stderr that a signal has stopped the command, and how many results
 * came from the log; NULL: of no log.
 */
void checkpointing_report(const struct checkpointing *checkpointing, bool is_stopped);

#endif
