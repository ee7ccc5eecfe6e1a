/* SPDX-License-Identifier: MIT */
/*
 * Where the bytes of an archive come from: a file, or an entry of another
 * archive, held in memory as far as there is room and read on from there.
 */
#ifndef PINION_TOOLS_SCAN_ARCHIVE_INPUT_H
#define PINION_TOOLS_SCAN_ARCHIVE_INPUT_H

#include "tools/scan/archive.h"
#include "tools/scan/archive_library.h"

#if defined(HAVE_LIBARCHIVE)

/* What all archives within one share. */
struct archive_run {
	const struct archive_limits *limits;
	const struct archive_ops *ops;
	void *arg;
	struct archive_counts *counts;
	char *path; /* of the entry at hand */
	size_t path_bytes;
	size_t path_capacity;
	uint64_t end_ns;
	uint64_t file_bytes; /* read of the outermost archive, each once */
	uint64_t bytes;	     /* that its entries had */
	size_t held_bytes;
	uint32_t complaints; /* a bit for each kind that was made */
	int error;	     /* ends all: a limit, a cancel, a read that failed */
};

struct archive_input {
	struct archive_run *run;
	/* A file. */
	int fd; /* -1: an entry */
	uint64_t file_at;
	uint64_t file_size;
	uint8_t *buffer;
	/* An entry. */
	struct archive *outer;
	uint8_t *held; /* its first bytes */
	size_t held_length;
	size_t held_capacity;
	size_t held_at;
	bool is_whole; /* all of it is held */
};

/* True, and run->error is set, where all has to end. */
bool archive_run_is_over(struct archive_run *run);

/* The file is at its start. Returns 0 or -ENOMEM. */
int archive_input_of_file(struct archive_input *input, struct archive_run *run, int fd);

/* The entry that `outer` is at, of which nothing is held yet. */
void archive_input_of_entry(
	struct archive_input *input, struct archive_run *run, struct archive *outer);
/* Its next bytes; NULL: zeros. Set is_whole after the last. 0 or -ENOMEM. */
int archive_input_hold(struct archive_input *input, const uint8_t *bytes, size_t length);
/* For a second reader. False: its first bytes are gone. */
bool archive_input_rewind(struct archive_input *input);
void archive_input_fini(struct archive_input *input);

/* Sets the callbacks of a new reader, and opens it: archive_read_open1(3). */
int archive_input_open(struct archive_input *input, struct archive *archive);

#endif
#endif
