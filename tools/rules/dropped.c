/* SPDX-License-Identifier: MIT */
/*
 * Searches a file that is in memory for the rules that have filters, one by
 * one, and asks each part of a filter alone about each match.
 */
#include "tools/rules/dropped.h"

#include "tools/report.h"
#include "tools/scan/confirm.h"
#include "tools/scan/examples.h"
#include "tools/scan/rule_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Of a file: each rule is searched for apart. */
	FILE_BYTES_MAX = 4 << 20,
	/* Of a rule in a file; an author needs no more. */
	MATCHES_MAX = 1000,
};

struct trial {
	struct output_text *text;
	const char *path;
	uint8_t *bytes;
	size_t length;
	struct confirm_room *room;
};

/* The reason for which a file cannot be tried, NULL: it is in memory. */
static const char *read_file(struct trial *trial)
{
	int fd = open(trial->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	const char *reason = NULL;
	struct stat status;

	if (fd < 0 || fstat(fd, &status) != 0) {
		reason = report_reason(errno);
	} else if (!S_ISREG(status.st_mode)) {
		reason = "is no regular file: matches that are no findings are not shown";
	} else if (status.st_size > FILE_BYTES_MAX) {
		reason = "is larger than 4 MiB: matches that are no findings are not shown";
	} else {
		trial->bytes = malloc((size_t)status.st_size + 1);
		reason = trial->bytes == NULL ? report_reason(ENOMEM) : NULL;
	}
	while (reason == NULL && trial->length < (size_t)status.st_size) {
		ssize_t count = read(
			fd, trial->bytes + trial->length, (size_t)status.st_size - trial->length);

		if (count <= 0) {
			reason = count == 0 ? NULL : report_reason(errno);
			break;
		}
		trial->length += (size_t)count;
	}
	if (fd >= 0) {
		close(fd);
	}
	return reason;
}

/* Whether that part of a filter alone drops the match. */
static bool drops(struct trial *trial, const struct rule_filter *part, struct rule_subject *subject)
{
	struct rule_filter copy = *part;

	return rule_filter_decide(&copy, trial->room, subject) == 0;
}

static bool list_drops(struct trial *trial, const struct rule_filter *filter,
	struct rule_allowlist *list, struct rule_subject *subject)
{
	struct rule_allowlists one = {.items = list, .count = 1};
	struct rule_filter part = {.dialect = filter->dialect, .own = &one};

	return drops(trial, &part, subject);
}

/* Why a match is no finding, into the text; false: no part drops it. */
static bool append_reason(
	struct trial *trial, const struct rule *rule, struct rule_subject *subject)
{
	const struct rule_filter *filter = rule->filter;
	struct rule_allowlists *const lists[] = {filter->own, filter->shared};
	struct rule_filter part = {.dialect = filter->dialect, .condition = filter->condition};
	double bits = rule_entropy(subject->secret, subject->secret_bytes);

	if (rule->leaves_examples_out &&
		examples_include(rule->id, subject->match, subject->match_bytes)) {
		output_text_string(trial->text, "it is a well-known example or a placeholder");
		return true;
	}
	if (filter->entropy_min > 0 && bits <= filter->entropy_min) {
		output_text_format(trial->text, "its secret has %.2f bits a byte, not more than %g",
			bits, filter->entropy_min);
		return true;
	}
	for (int i = 0; i < 2; i++) {
		for (uint32_t k = 0; lists[i] != NULL && k < lists[i]->count; k++) {
			struct rule_allowlist *list = &lists[i]->items[k];

			if (list_drops(trial, filter, list, subject)) {
				output_text_format(trial->text, "exception %u of %s", k + 1,
					i == 0 ? "the rule" : "its file");
				return true;
			}
		}
	}
	if (filter->condition.object != NULL && drops(trial, &part, subject)) {
		output_text_string(trial->text, "its filter expression");
		return true;
	}
	return false;
}

static void set_line(
	const struct trial *trial, size_t start, size_t end, struct rule_subject *subject)
{
	while (start > 0 && trial->bytes[start - 1] != '\n') {
		start--;
	}
	while (end < trial->length && trial->bytes[end] != '\n') {
		end++;
	}
	subject->line = trial->bytes + start;
	subject->line_bytes = end - start;
}

static void try_match(
	struct trial *trial, const struct rule *rule, const struct confirm_match *match)
{
	struct rule_subject subject = {
		.rule_id = rule->id,
		.path = trial->path,
		.path_bytes = strlen(trial->path),
		.match = trial->bytes + match->start,
		.match_bytes = match->end - match->start,
		.secret = trial->bytes + match->secret_start,
		.secret_bytes = match->secret_end - match->secret_start,
	};
	size_t line_start = trial->text->length;

	set_line(trial, match->start, match->end, &subject);
	output_text_escaped(trial->text, trial->path, strlen(trial->path), true);
	output_text_format(
		trial->text, ":%zu-%zu: %s: no finding: ", match->start, match->end, rule->id);
	if (append_reason(trial, rule, &subject)) {
		output_text_string(trial->text, "\n");
	} else {
		trial->text->length = line_start;
	}
}

static void try_rule(struct trial *trial, const struct rule *rule)
{
	struct confirm_part part = {
		.bytes = trial->bytes, .length = trial->length, .has_start = true, .has_end = true};
	uint32_t group =
		rule->filter->secret_is_match ? CONFIRM_NO_GROUP : rule->filter->secret_group;
	size_t from = 0;

	if (rule_filter_takes_path(rule->filter, trial->room, trial->path, strlen(trial->path)) !=
		1) {
		return;
	}
	for (int count = 0; count < MATCHES_MAX && from <= trial->length; count++) {
		struct confirm_match match;

		if (confirm_regex_match(rule->filter->pattern, trial->room, &part, from,
			    trial->length, group, &match) != 1) {
			return;
		}
		try_match(trial, rule, &match);
		from = match.end > match.start ? match.end : match.end + 1;
	}
}

bool rules_append_dropped(struct output_text *text, const struct rules *rules, const char *path)
{
	struct trial trial = {.text = text, .path = path, .room = confirm_room_create()};
	const char *reason = trial.room == NULL ? report_reason(ENOMEM) : read_file(&trial);

	if (reason != NULL) {
		report_path(path, reason);
	}
	for (uint32_t i = 0; reason == NULL && i < rules->count; i++) {
		if (rules->items[i].filter != NULL && rules->items[i].filter->pattern != NULL) {
			try_rule(&trial, &rules->items[i]);
		}
	}
	free(trial.bytes);
	confirm_room_destroy(trial.room);
	return reason == NULL;
}
