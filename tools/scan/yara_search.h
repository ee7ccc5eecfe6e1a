/* SPDX-License-Identifier: MIT */
/*
 * YARA's rules in a scan: a file is searched for them with its last window, all
 * of it at once, and its findings come after those of pinion's own rules.
 *
 * A file that is longer than --yara-max-filesize, or in part unreadable, is not
 * searched for them. Text that --decode finds in a file is not, either: rules
 * have words for that, and conditions about the file.
 *
 * Memory: so many files are in flight that their bytes are YARA_HELD_BYTES at
 * most, but two for each worker.
 */
#ifndef PINION_TOOLS_SCAN_YARA_SEARCH_H
#define PINION_TOOLS_SCAN_YARA_SEARCH_H

#include <pinion/scan.h>
#include <stdbool.h>
#include <stdint.h>

struct scan_job;
struct scan_worker;

enum {
	YARA_FILE_BYTES = 64 << 20,
	YARA_HELD_BYTES = 1 << 30,
};

#define YARA_SPEC_MAX_FILESIZE \
	0, "yara-max-filesize", "SIZE", "search files up to SIZE for YARA rules; default: 64M", \
		"Of the larger ones there is a count at the end."

/* Files, and entries of archives. Zero-initialise. */
struct yara_counts {
	uint64_t searched;
	uint64_t larger; /* than --yara-max-filesize */
	uint64_t failed;
};

/* What one worker has for it, made for its first file. */
struct yara_worker;
/* NULL is accepted. */
void yara_worker_destroy(struct yara_worker *worker);

bool yara_search_is_on(const struct scan_job *job);

/* The number of files in flight that memory is for. */
uint32_t yara_search_files_in_flight(const struct scan_job *job, uint32_t worker_count);

/*
 * Each window of a file, after it was searched with that result. As
 * scan_job_window().
 */
int yara_search_window(struct scan_job *job, struct scan_worker *worker,
	struct pinion_scan_file *file, const struct pinion_window *window, int result);

/* Adds what the worker has counted; NULL is accepted. */
void yara_search_count(const struct yara_worker *worker, struct yara_counts *sum);

/* A line at the end of a run; without --stats where files were larger. */
void yara_search_note(const struct scan_job *job, const struct yara_counts *counts);

#endif
