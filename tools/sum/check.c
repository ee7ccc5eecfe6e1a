/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum -c`: reads lists line by line and verifies what they name.
 *
 * The digest that a line expects is kept in struct order under the line's
 * sequence number, where the worker that hashes the file finds it; there is no
 * table of paths. Verdicts, warnings and their order are those of sha256sum -c.
 */
#include "tools/sum/job.h"

#include "tools/input.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/sum/checklist.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Malloc'ed by the reader of the list, owned by the order. */
struct expected {
	const struct digest_algorithm *algorithm;
	uint8_t digest[DIGEST_BYTES_MAX];
};

/* Lines of the current list. */
struct list_counts {
	uint64_t number; /* of the line just read */
	uint64_t good;
	uint64_t bad;
	const struct digest_algorithm *guessed; /* as in struct checklist */
};

static const struct digest_algorithm *check_algorithm(struct sum_job *job, uint64_t sequence)
{
	const struct expected *expected = order_item(&job->order, sequence);

	return expected->algorithm;
}

static void append_verdict(struct sum_job *job, struct output_text *text, const char *path,
	const struct expected *expected, const uint8_t *digest)
{
	const struct sum_options *options = job->options;
	const char *verdict = "OK";
	bool is_ok = false;

	pthread_mutex_lock(&job->lock);
	if (digest == NULL) {
		job->unreadable_count++;
		verdict = "FAILED open or read";
	} else if (memcmp(digest, expected->digest, expected->algorithm->digest_bytes) != 0) {
		job->mismatch_count++;
		job->has_mismatch = true;
		verdict = "FAILED";
	} else {
		job->verified_count++;
		is_ok = true;
	}
	pthread_mutex_unlock(&job->lock);
	if (!options->is_status && !(is_ok && options->is_quiet)) {
		checklist_append_verdict(text, path, verdict);
	}
}

static void check_line(struct sum_job *job, struct output_text *text, const char *path,
	uint64_t sequence, const uint8_t *digest)
{
	append_verdict(job, text, path, order_item(&job->order, sequence), digest);
}

static const struct sum_mode check_mode = {
	.algorithm = check_algorithm,
	.line = check_line,
};

/* xxhsum's name for standard input may also be a file's, which comes first. */
static bool is_stdin(const struct checklist_entry *entry)
{
	return strcmp(entry->path, "-") == 0 ||
		(strcmp(entry->path, entry->algorithm->stdin_name) == 0 &&
			access(entry->path, F_OK) != 0);
}

static void check_stdin(struct sum_job *job, const struct checklist_entry *entry)
{
	struct expected expected = {.algorithm = entry->algorithm};
	uint8_t digest[DIGEST_BYTES_MAX];
	struct output_text text = {0};
	int error;

	memcpy(expected.digest, entry->digest, sizeof(expected.digest));
	sum_end(job);
	error = sum_stdin(job, entry->algorithm, digest);
	if (error == -ECANCELED) {
		return;
	}
	append_verdict(job, &text, entry->path, &expected, error == 0 ? digest : NULL);
	output_write(text.bytes, text.length);
	output_text_free(&text);
}

/* Adds the path of one line to the scan. Returns 0 to go on with the list. */
static int check_entry(struct sum_job *job, const struct checklist_entry *entry)
{
	struct expected *expected;
	int error;

	if (!digest_is_built(entry->algorithm)) {
		sum_trouble(job);
		return -ENOTSUP;
	}
	if (job->options->audited_count > 0) {
		error = audit_add(&job->audit, entry->path);
		if (error != 0) {
			report_path(entry->path, report_reason(error));
			sum_trouble(job);
			return error;
		}
	}
	if (is_stdin(entry)) {
		check_stdin(job, entry);
		return signals_interrupted() ? -ECANCELED : 0;
	}
	error = sum_begin(job);
	if (error != 0) {
		return error;
	}
	expected = malloc(sizeof(*expected));
	error = expected == NULL ? -ENOMEM : 0;
	if (error == 0) {
		expected->algorithm = entry->algorithm;
		memcpy(expected->digest, entry->digest, sizeof(expected->digest));
		error = order_attach(&job->order, job->next_sequence, expected);
	}
	if (error != 0) {
		free(expected);
		report_path(entry->path, report_reason(error));
		sum_trouble(job);
		return error;
	}
	job->next_sequence++;
	error = pinion_scan_add_file(job->scan, entry->path);
	return error == -ECANCELED ? error : 0;
}

/*
 * The first one is always reported by its number, the others are counted; a
 * file that is no list at all would fill the screen.
 */
static void note_bad_line(
	const struct sum_options *options, const char *name, struct list_counts *counts)
{
	char reason[80];

	counts->bad++;
	if (!options->is_status && (options->names_bad_lines || counts->bad == 1)) {
		snprintf(reason, sizeof(reason), "%llu: improperly formatted checksum line",
			(unsigned long long)counts->number);
		report_path(name, reason);
	}
}

/* Returns 0 at the end of the list, or a negative errno that ended it. */
static int check_lines(struct sum_job *job, struct input_lines *lines, const char *name,
	struct list_counts *counts)
{
	struct checklist list = {.only = job->options->algorithm};
	struct checklist_entry entry;
	char *line;
	size_t length;
	int error = 0;

	while (error == 0) {
		int status = input_lines_next(lines, &line, &length);

		counts->number++;
		if (status == -E2BIG) {
			note_bad_line(job->options, name, counts);
			continue;
		}
		if (status < 0 && status != -ECANCELED) {
			report_path(name,
				status == -EISDIR ? "is a directory, not a list"
						  : report_reason(status));
			sum_trouble(job);
		}
		if (status <= 0) {
			return status;
		}
		switch (checklist_parse(&list, line, length, &entry)) {
		case CHECKLIST_ENTRY:
			counts->good++;
			counts->guessed = list.guessed;
			error = check_entry(job, &entry);
			break;
		case CHECKLIST_BAD:
			note_bad_line(job->options, name, counts);
			break;
		case CHECKLIST_BLANK:
			break;
		}
	}
	return error;
}

static void warn_count(uint64_t count, const char *one, const char *many)
{
	if (count > 0) {
		report_line("WARNING: %llu %s", (unsigned long long)count, count == 1 ? one : many);
	}
}

/* No file matched: the list may be of another algorithm with as many digits. */
static void suggest_algorithm(
	const struct sum_job *job, const char *name, const struct digest_algorithm *guessed)
{
	char reason[128];

	if (guessed == NULL || job->verified_count > 0 || job->mismatch_count == 0) {
		return;
	}
	snprintf(reason, sizeof(reason), "no file matches as %s; a list of %s", guessed->name,
		guessed == &digest_algorithms[DIGEST_SHA256] ? "b3sum is checked with -a blake3"
							     : "md5sum is checked with -a md5");
	report_path(name, reason);
}

static void warn(struct sum_job *job, const char *name, const struct list_counts *counts)
{
	if (counts->good == 0) {
		report_path(name, "no properly formatted checksum lines found");
		sum_trouble(job);
		return;
	}
	/* Nor is it a success where everything is missing. */
	if (job->options->ignores_missing && job->verified_count + job->mismatch_count == 0 &&
		!signals_interrupted()) {
		sum_trouble(job);
	}
	if (counts->bad > 0 && job->options->is_strict) {
		sum_trouble(job);
	}
	if (job->options->is_status) {
		return;
	}
	warn_count(counts->bad, "line is improperly formatted", "lines are improperly formatted");
	warn_count(job->unreadable_count, "listed file could not be read",
		"listed files could not be read");
	warn_count(job->mismatch_count, "computed checksum did NOT match",
		"computed checksums did NOT match");
	if (job->options->ignores_missing && job->verified_count == 0) {
		report_path(name, "no file was verified");
	}
	suggest_algorithm(job, name, counts->guessed);
}

static void check_list(struct sum_job *job, const char *path)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	struct list_counts counts = {0};
	struct input_lines lines;
	int error = input_lines_init(&lines, path, '\n');

	if (error != 0) {
		report_path(name, report_reason(error));
		sum_trouble(job);
		job->has_unread_list = true;
		return;
	}
	job->mismatch_count = 0;
	job->unreadable_count = 0;
	job->verified_count = 0;
	error = check_lines(job, &lines, name, &counts);
	job->has_unread_list = job->has_unread_list || error != 0;
	input_lines_fini(&lines);
	sum_end(job);
	if (counts.good > 0 || error == 0) {
		warn(job, name, &counts);
	}
}

/* A file below the roots that no list names. */
static void report_new(void *arg, const char *path)
{
	struct sum_job *job = arg;
	struct output_text text = {0};

	pthread_mutex_lock(&job->lock);
	job->has_mismatch = true;
	pthread_mutex_unlock(&job->lock);
	if (job->options->is_status) {
		return;
	}
	checklist_append_verdict(&text, path, "NEW");
	output_write(text.bytes, text.length);
	if (text.failed) {
		sum_trouble(job);
	}
	output_text_free(&text);
}

static void audit_roots(struct sum_job *job, char *const *lists, int list_count)
{
	const struct sum_options *options = job->options;
	struct audit_search search = {
		.lists = lists,
		.list_count = list_count,
		.skip_ignored = options->scanning.scan.skip_ignored,
		.report = report_new,
		.arg = job,
	};

	if (job->has_unread_list) {
		report_line("--audit is left out, since not all lists could be read");
		return;
	}
	for (uint32_t i = 0; i < options->audited_count; i++) {
		if (audit_search(&job->audit, options->audited[i], &search) != 0) {
			sum_trouble(job);
		}
	}
	if (!options->is_status) {
		warn_count(search.new_count, "file is in no list", "files are in no list");
	}
}

void sum_check(struct sum_job *job, char *const *paths, int path_count)
{
	job->mode = &check_mode;
	signals_hold();
	for (int i = 0; i < path_count; i++) {
		if (signals_interrupted() || !output_ok()) {
			return;
		}
		check_list(job, paths[i]);
	}
	if (job->options->audited_count > 0 && !signals_interrupted() && output_ok()) {
		audit_roots(job, paths, path_count);
	}
	audit_fini(&job->audit);
}
