/* SPDX-License-Identifier: MIT */
/*
 * The blobs that are done, and those whose turn it is.
 */
#include "tools/scan/git/results.h"

#include "tools/growing.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/scan/git/facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_FIRST = 256 };

struct git_seen {
	struct fingerprint print;
	uint32_t place;	     /* of the first blob that has it */
	uint32_t generation; /* another: the slot is free */
};

int git_results_init(
	struct git_results *results, struct scan_job *job, const struct git_blobs *blobs)
{
	*results = (struct git_results){.job = job, .blobs = blobs, .seen_path = UINT32_MAX};
	pthread_mutex_init(&results->lock, NULL);
	results->worker = scan_job_add_worker(job);
	results->lists = calloc(blobs->order_count + 1, sizeof(*results->lists));
	results->are_done = calloc(blobs->order_count + 1, sizeof(*results->are_done));
	results->seen = calloc(SEEN_FIRST, sizeof(*results->seen));
	results->seen_capacity = SEEN_FIRST;
	if (results->worker == NULL || results->lists == NULL || results->are_done == NULL ||
		results->seen == NULL) {
		return -ENOMEM;
	}
	return 0;
}

void git_kept_list_free(struct git_kept_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].line);
	}
	free(list->items);
	*list = (struct git_kept_list){.items = NULL};
}

void git_results_fini(struct git_results *results)
{
	for (size_t i = 0; results->lists != NULL && i < results->blobs->order_count; i++) {
		git_kept_list_free(&results->lists[i]);
	}
	free(results->lists);
	free(results->are_done);
	free(results->seen);
	pthread_mutex_destroy(&results->lock);
}

int git_kept_add(struct git_kept_list *list, const struct finding *finding,
	const struct reporter_worker *lines)
{
	const struct output_text *line = &lines->lines;
	struct git_kept *items =
		growing_make_room(list->items, list->count, &list->capacity, sizeof(*items));
	struct git_kept *kept;

	if (items == NULL) {
		return -ENOMEM;
	}
	list->items = items;
	kept = &list->items[list->count];
	*kept = (struct git_kept){
		.has_print = finding != NULL,
		.is_hidden = finding != NULL && finding->is_of_allowed_commit,
		.print = lines->print,
		.length = line->length,
	};
	kept->line = malloc(line->length + 1);
	if (kept->line == NULL) {
		return -ENOMEM;
	}
	if (line->length > 0) {
		memcpy(kept->line, line->bytes, line->length);
	}
	list->count++;
	return 0;
}

/* ---- fingerprints of a path ---- */

/* The slot of this one, or the free one where it belongs. */
static struct git_seen *find_seen(
	struct git_results *results, const struct fingerprint *print, size_t capacity)
{
	size_t slot;

	memcpy(&slot, print->bytes, sizeof(slot));
	for (;; slot++) {
		struct git_seen *seen = &results->seen[slot & (capacity - 1)];

		if (seen->generation != results->generation ||
			memcmp(&seen->print, print, sizeof(*print)) == 0) {
			return seen;
		}
	}
}

static int grow_seen(struct git_results *results)
{
	struct git_seen *old = results->seen;
	size_t capacity = results->seen_capacity;

	results->seen = calloc(2 * capacity, sizeof(*results->seen));
	if (results->seen == NULL) {
		results->seen = old;
		return -ENOMEM;
	}
	results->seen_capacity = 2 * capacity;
	for (size_t i = 0; i < capacity; i++) {
		if (old[i].generation == results->generation) {
			*find_seen(results, &old[i].print, 2 * capacity) = old[i];
		}
	}
	free(old);
	return 0;
}

/* Whether an older version has it, which this one then is to those after it. */
static int is_repeated(struct git_results *results, const struct fingerprint *print, size_t place,
	bool *out_is_repeated)
{
	struct git_seen *seen;

	if (2 * results->seen_count >= results->seen_capacity && grow_seen(results) != 0) {
		return -ENOMEM;
	}
	seen = find_seen(results, print, results->seen_capacity);
	if (seen->generation == results->generation) {
		*out_is_repeated = seen->place != (uint32_t)place;
		return 0;
	}
	*seen = (struct git_seen){
		.print = *print,
		.place = (uint32_t)place,
		.generation = results->generation,
	};
	results->seen_count++;
	*out_is_repeated = false;
	return 0;
}

/* ---- writing ---- */

/* The rest of what a blob's findings are shown with. */
static void add_end(struct git_results *results, const struct git_blob *blob, uint64_t shown)
{
	struct git_facts facts = {.name = NULL};
	struct search_file searched = {.facts = &facts.facts};
	const struct git_name *path = &results->blobs->paths.items[blob->path];
	struct pinion_scan_file file = {
		.path = path->bytes,
		.path_bytes = path->length,
		.user = &searched,
	};

	if (git_facts_set(&facts, results->blobs, blob) != 0) {
		results->has_failed = true;
	} else {
		reporter_file_end(
			&results->job->reporter, &results->worker->reporter, &file, shown);
	}
	git_facts_fini(&facts);
}

static void write_list(struct git_results *results, size_t place)
{
	const struct git_blob *blob = &results->blobs->items[results->blobs->order[place]];
	struct git_kept_list *list = &results->lists[place];
	struct reporter_worker *writer = &results->worker->reporter;
	uint64_t shown = 0;

	if (blob->path != results->seen_path) {
		results->seen_path = blob->path;
		results->seen_count = 0;
		results->generation++;
	}
	writer->lines.length = 0;
	for (size_t i = 0; i < list->count; i++) {
		const struct git_kept *kept = &list->items[i];
		bool is_known = false;

		if (kept->has_print && is_repeated(results, &kept->print, place, &is_known) != 0) {
			results->has_failed = true;
			return;
		}
		if (kept->has_print && (is_known || blob->is_base || kept->is_hidden)) {
			results->repeated_count++;
			writer->finding_count--; /* its reader has counted it */
			continue;
		}
		shown += kept->has_print;
		output_text_append(&writer->lines, kept->line, kept->length);
	}
	if (results->job->options->report.format->file_end != NULL && shown > 0) {
		add_end(results, blob, shown);
	}
	progress_add(results->job->runtime, &(struct progress){.findings = shown});
	if (writer->lines.failed ||
		(writer->lines.length > 0 &&
			(!scan_job_is_sound(results->job) ||
				!reporter_write(&results->job->reporter, writer, place)))) {
		results->has_failed = true;
	}
}

bool git_results_put(struct git_results *results, size_t place, struct git_kept_list *list)
{
	bool goes_on;

	pthread_mutex_lock(&results->lock);
	results->lists[place] = *list;
	results->are_done[place] = true;
	*list = (struct git_kept_list){.items = NULL};
	while (!results->has_failed && results->next < results->blobs->order_count &&
		results->are_done[results->next]) {
		if (results->lists[results->next].count > 0) {
			write_list(results, results->next);
			git_kept_list_free(&results->lists[results->next]);
		}
		results->next++;
	}
	goes_on = !results->has_failed;
	pthread_mutex_unlock(&results->lock);
	return goes_on;
}
