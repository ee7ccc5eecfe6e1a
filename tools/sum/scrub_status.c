/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum --status STATE`: what a scrub knows, for people and as JSON. It
 * takes no lock, so a run may write STATE meanwhile.
 */
#include "tools/sum/scrub.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/sum/checklist.h"
#include "tools/sum/scrub_state.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TIME_BYTES = 32, REASON_BYTES = 192 };

#define NS_PER_S INT64_C(1000000000)

struct summary {
	const struct scrub_state *state;
	const char *algorithm;
	uint64_t file_count;
	uint64_t rotten_count;
	uint64_t unreadable_count;
	int64_t oldest_ns; /* of the last checks */
	int64_t newest_ns;
	uint64_t left_count; /* of the last run */
};

static bool is_there(const struct scrub_file *file)
{
	return (file->flags & SCRUB_IS_GONE) == 0;
}

static bool is_unreadable(const struct scrub_file *file)
{
	return is_there(file) && file->error != 0;
}

static bool is_rotten(const struct scrub_file *file)
{
	return is_there(file) && file->error == 0 && (file->flags & SCRUB_IS_ROTTEN) != 0;
}

static void sum_up(struct summary *out, const struct scrub_state *state)
{
	const struct scrub_run *run = &state->run;

	*out = (struct summary){
		.state = state,
		.algorithm = pinion_checkpoint_fact_value(state->log, "algorithm"),
		.left_count = run->due_count > run->checked_count
			? run->due_count - run->checked_count
			: 0,
	};
	for (size_t i = 0; i < state->count; i++) {
		const struct scrub_file *file = &state->files[i];

		if (!is_there(file)) {
			continue;
		}
		if (out->file_count == 0 || file->checked_ns < out->oldest_ns) {
			out->oldest_ns = file->checked_ns;
		}
		if (out->file_count == 0 || file->checked_ns > out->newest_ns) {
			out->newest_ns = file->checked_ns;
		}
		out->file_count++;
		out->rotten_count += is_rotten(file);
		out->unreadable_count += is_unreadable(file);
	}
}

/* In UTC; `none` stands for 0. */
static const char *time_text(int64_t ns, const char *none, char out[TIME_BYTES])
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm parts;

	if (ns == 0 || gmtime_r(&seconds, &parts) == NULL) {
		return none;
	}
	strftime(out, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
	return out;
}

/* ---- for people ---- */

static void append_file(
	struct output_text *text, const struct scrub_state *state, const struct scrub_file *file)
{
	struct pinion_gap *gaps;
	size_t count;

	if (is_rotten(file)) {
		checklist_append_verdict(text, file->path, "ROTTEN");
	}
	if (!is_unreadable(file)) {
		return;
	}
	gaps = scrub_state_gaps(state, file, &count);
	for (size_t i = 0; i < count; i++) {
		char reason[REASON_BYTES];

		report_gap_reason(&gaps[i], reason, sizeof(reason));
		checklist_append_verdict(text, file->path, reason);
	}
	free(gaps);
	if (count == 0) {
		checklist_append_verdict(text, file->path, report_reason(file->error));
	}
}

static void append_text(struct output_text *text, const struct summary *summary)
{
	const struct scrub_state *state = summary->state;
	const struct scrub_run *run = &state->run;
	char first[TIME_BYTES];
	char last[TIME_BYTES];

	output_text_format(text, "%llu files by %s: %llu rotten, %llu unreadable\n",
		(unsigned long long)summary->file_count, summary->algorithm,
		(unsigned long long)summary->rotten_count,
		(unsigned long long)summary->unreadable_count);
	output_text_format(text, "last checks: from %s to %s\n",
		time_text(summary->oldest_ns, "never", first),
		time_text(summary->newest_ns, "never", last));
	output_text_format(text,
		"last run: from %s to %s, %llu of %llu due files checked, %llu left\n",
		time_text(run->began_ns, "never", first),
		time_text(run->ended_ns, "now, or it was stopped", last),
		(unsigned long long)run->checked_count, (unsigned long long)run->due_count,
		(unsigned long long)summary->left_count);
	for (size_t i = 0; i < state->count; i++) {
		append_file(text, state, &state->files[i]);
	}
}

/* ---- JSON ---- */

static void append_number(struct output_text *text, const char *name, uint64_t value)
{
	output_text_format(text, "\"%s\":%llu,", name, (unsigned long long)value);
}

static void append_time(struct output_text *text, const char *name, int64_t ns)
{
	char bytes[TIME_BYTES];
	const char *value = time_text(ns, NULL, bytes);

	if (value == NULL) {
		output_text_format(text, "\"%s\":null,", name);
	} else {
		output_text_format(text, "\"%s\":\"%s\",", name, value);
	}
}

/* In place of the comma after the last member. */
static void end_list(struct output_text *text, const char *end)
{
	if (!text->failed && text->length > 0 && text->bytes[text->length - 1] == ',') {
		text->length--;
	}
	output_text_string(text, end);
}

static void append_unreadable(
	struct output_text *text, const struct scrub_state *state, const struct scrub_file *file)
{
	const char *reason = report_reason(file->error);
	size_t count;
	struct pinion_gap *gaps = scrub_state_gaps(state, file, &count);

	output_text_string(text, "{\"path\":");
	output_text_json(text, file->path, strlen(file->path));
	output_text_string(text, ",\"error\":");
	output_text_json(text, reason, strlen(reason));
	output_text_string(text, ",\"ranges\":[");
	for (size_t i = 0; i < count; i++) {
		output_text_string(text, "{");
		append_number(text, "start", gaps[i].offset_bytes);
		append_number(text, "length", gaps[i].length_bytes);
		end_list(text, "},");
	}
	end_list(text, "]},");
	free(gaps);
}

static void append_json(struct output_text *text, const struct summary *summary)
{
	const struct scrub_state *state = summary->state;

	output_text_format(text, "{\"algorithm\":\"%s\",", summary->algorithm);
	append_number(text, "files", summary->file_count);
	append_time(text, "oldest_check", summary->oldest_ns);
	append_time(text, "newest_check", summary->newest_ns);
	output_text_string(text, "\"run\":{");
	append_time(text, "began", state->run.began_ns);
	append_time(text, "ended", state->run.ended_ns);
	append_number(text, "files", state->run.file_count);
	append_number(text, "due", state->run.due_count);
	append_number(text, "checked", state->run.checked_count);
	append_number(text, "left", summary->left_count);
	end_list(text, "},\"rotten\":[");
	for (size_t i = 0; i < state->count; i++) {
		if (is_rotten(&state->files[i])) {
			output_text_json(text, state->files[i].path, strlen(state->files[i].path));
			output_text_string(text, ",");
		}
	}
	end_list(text, "],\"unreadable\":[");
	for (size_t i = 0; i < state->count; i++) {
		if (is_unreadable(&state->files[i])) {
			append_unreadable(text, state, &state->files[i]);
		}
	}
	end_list(text, "]}\n");
}

int scrub_status(const char *path, bool is_json)
{
	const struct scrub_state_config config = {.path = path, .is_read = true};
	struct output_text text = {.bytes = NULL};
	struct scrub_state state;
	struct summary summary;
	int status = EXIT_STATUS_TROUBLE;

	if (scrub_state_open(&state, &config)) {
		sum_up(&summary, &state);
		(is_json ? append_json : append_text)(&text, &summary);
		if (output_print(&text) && summary.unreadable_count == 0) {
			status = summary.rotten_count > 0 ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
		}
	}
	(void)scrub_state_close(&state);
	return status;
}
