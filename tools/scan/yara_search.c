/* SPDX-License-Identifier: MIT */
/*
 * Gathers files, has them searched, and hands on the matches.
 */
#include "tools/scan/yara_search.h"

#include "tools/report.h"
#include "tools/scan/job.h"
#include "tools/scan/source_facts.h"
#include "tools/scan/yara_scanner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	REASON_BYTES = 256,
	/* The most that a scan may be told. */
	FILES_IN_FLIGHT_MAX = 65536,
};

static const uint64_t ns_per_s = 1000000000;

struct yara_worker {
	struct yara_scanner *scanner;
	struct candidates found;
	struct yara_counts counts;
};

void yara_worker_destroy(struct yara_worker *worker)
{
	if (worker != NULL) {
		yara_scanner_destroy(worker->scanner);
		candidates_free(&worker->found);
		free(worker);
	}
}

bool yara_search_is_on(const struct scan_job *job)
{
	return job->reporter.rules->yara_count > 0;
}

uint32_t yara_search_files_in_flight(const struct scan_job *job, uint32_t worker_count)
{
	uint64_t count = YARA_HELD_BYTES / job->options->yara_bytes_max;
	uint64_t least = 2 * (uint64_t)worker_count;
	uint64_t standard = 64 * (uint64_t)worker_count;

	/* While one is searched the next one is read. */
	count = count > least ? count : least;
	count = count < standard ? count : standard;
	return (uint32_t)(count < FILES_IN_FLIGHT_MAX ? count : FILES_IN_FLIGHT_MAX);
}

/* NULL: no memory. */
static struct yara_worker *need_worker(struct scan_job *job, struct scan_worker *worker)
{
	struct yara_worker *yara = worker->yara;

	if (yara != NULL) {
		return yara;
	}
	yara = calloc(1, sizeof(*yara));
	if (yara != NULL &&
		yara_scanner_create(job->reporter.rules,
			job->options->scanning.scan.file_timeout_ns, &yara->scanner) != 0) {
		free(yara);
		return NULL;
	}
	worker->yara = yara;
	return yara;
}

/* Of a file that was not searched as it should be. */
static void complain(
	struct scan_worker *worker, const struct pinion_scan_file *file, const char *reason)
{
	struct search_file *searched = file->user;

	report_path(searched->facts != NULL ? searched->facts->name : file->path, reason);
	searched->kept.is_noted = true;
	worker->has_trouble = true;
	worker->yara->counts.failed++;
}

static void complain_error(const struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, int error, const struct yara_trouble *trouble)
{
	uint64_t timeout_ns = job->options->scanning.scan.file_timeout_ns;
	char reason[REASON_BYTES];

	if (error == -ETIME) {
		snprintf(reason, sizeof(reason),
			"the YARA rules took longer than %g s (--file-timeout)",
			(double)timeout_ns / (double)ns_per_s);
	} else {
		snprintf(reason, sizeof(reason), "libyara cannot search it: error %d",
			trouble->code);
	}
	complain(worker, file, reason);
}

/* All of a file. */
static int search_whole(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct yara_worker *yara = worker->yara;
	struct yara_trouble trouble = {.code = 0};
	char reason[REASON_BYTES];
	int error = yara_scanner_search(
		yara->scanner, window->bytes, window->length_bytes, &yara->found, &trouble);

	if (error == -ENOMEM) {
		return error;
	}
	if (error != 0) {
		complain_error(job, worker, file, error, &trouble);
		return 0;
	}
	if (trouble.crowded != NULL) {
		snprintf(reason, sizeof(reason),
			"a string of the YARA rule %.128s has more matches than libyara counts",
			trouble.crowded);
		complain(worker, file, reason);
	} else {
		yara->counts.searched++;
	}
	return yara->found.count == 0
		? 0
		: scan_job_take_whole(job, worker, file, window, &yara->found);
}

static int end_file(struct scan_job *job, struct scan_worker *worker,
	const struct pinion_scan_file *file, const struct pinion_window *last)
{
	struct search_file *searched = file->user;
	struct pinion_window window;
	int error = 0;

	if (whole_window(&searched->whole_bytes, last, &window)) {
		if (searched->whole_bytes.has_gaps) {
			complain(worker, file,
				"is not searched for YARA rules, as some of it is "
				"missing");
		} else {
			error = search_whole(job, worker, file, &window);
		}
	}
	whole_free(&searched->whole_bytes);
	return error;
}

int yara_search_window(struct scan_job *job, struct scan_worker *worker,
	struct pinion_scan_file *file, const struct pinion_window *window, int result)
{
	struct search_file *searched = file->user;
	struct whole *whole = &searched->whole_bytes;
	uint64_t expected = file->file.size_bytes;
	bool was_dropped = whole->is_dropped;
	int error;

	if (result < 0 || searched->decoded != NULL ||
		__atomic_load_n(&searched->is_taken, __ATOMIC_RELAXED)) {
		return result;
	}
	if (need_worker(job, worker) == NULL) {
		return -ENOMEM;
	}
	if (expected > job->options->yara_bytes_max) {
		whole_drop(whole);
	}
	error = whole_add(whole, window, expected, job->options->yara_bytes_max);
	worker->yara->counts.larger += whole->is_dropped && !was_dropped;
	if (error == 0 && window->is_last) {
		error = end_file(job, worker, file, window);
	}
	if (error != 0) {
		return error;
	}
	if (whole->is_dropped) {
		return job->reporter.rules->count == 0 ? PINION_SCAN_ENOUGH : result;
	}
	return 0;
}

void yara_search_count(const struct yara_worker *worker, struct yara_counts *sum)
{
	if (worker != NULL) {
		sum->searched += worker->counts.searched;
		sum->larger += worker->counts.larger;
		sum->failed += worker->counts.failed;
	}
}

void yara_search_note(const struct scan_job *job, const struct yara_counts *counts)
{
	bool has_text_stats = job->options->scanning.has_stats && !job->options->has_json_stats;

	if (has_text_stats) {
		report_note(
			"YARA: %llu searched, %llu larger than --yara-max-filesize, %llu failed",
			(unsigned long long)counts->searched, (unsigned long long)counts->larger,
			(unsigned long long)counts->failed);
	} else if (counts->larger > 0) {
		report_note("%llu file%s not searched for YARA rules: larger than "
			    "--yara-max-filesize",
			(unsigned long long)counts->larger, counts->larger == 1 ? "" : "s");
	}
}
