/* SPDX-License-Identifier: MIT */
/*
 * Searching clusters.
 */
#include "tools/scan/clusters.h"

#include "tools/scan/confirm.h"
#include "tools/scan/examples.h"
#include "tools/scan/rule_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	/*
	 * Starts that are searched at a time: a match that fails reads as many
	 * bytes as there are.
	 */
	STARTS_MAX = 4096,
	/* PCRE2 sees as many bytes on each side: more than REGEX_LOOK_MAX. */
	LOOK_BYTES = 512,
	/* Matches of a rule in a file that may take too many steps. */
	COSTLY_MAX = 32,
};

static uint64_t greatest(uint64_t left, uint64_t right)
{
	return left > right ? left : right;
}

static uint64_t least(uint64_t left, uint64_t right)
{
	return left < right ? left : right;
}

/* False: no memory. */
static bool need_room(struct findings_file *file)
{
	if (file->room == NULL) {
		file->room = confirm_room_create();
	}
	return file->room != NULL;
}

/* 1: the rule is about files of this path. */
static int takes_path(
	const struct findings *findings, struct findings_file *file, struct findings_rule *state)
{
	struct rule_filter *filter = findings->rules->items[state->rule].filter;

	if (filter->path.pattern == NULL || file->path == NULL || state->knows_path) {
		return !state->is_elsewhere;
	}
	if (!need_room(file)) {
		return -ENOMEM;
	}
	state->knows_path = true;
	switch (rule_filter_takes_path(filter, file->room, file->path, file->path_bytes)) {
	case 0:
		state->is_elsewhere = true;
		return 0;
	case 1:
		return 1;
	default:
		return -ELOOP;
	}
}

int clusters_take(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, const struct candidate *candidate)
{
	struct candidates *open = &state->open;
	struct candidate *last = open->count > 0 ? &open->items[open->count - 1] : NULL;
	struct candidate taken = *candidate;
	int status = takes_path(findings, file, state);

	if (status <= 0) {
		return status;
	}
	if (last != NULL && candidate->start <= last->end &&
		snippets_find(&file->snippets, candidate->start) ==
			snippets_find(&file->snippets, last->end - 1)) {
		last->end = greatest(last->end, candidate->end);
		return 0;
	}
	if (last != NULL) {
		taken.start = greatest(taken.start, last->end);
	}
	return candidates_add(open, &taken);
}

/* The last start of the cluster that is decided; false: none is. */
static bool last_decided(const struct findings *findings, const struct findings_file *file,
	const struct findings_rule *state, const struct candidate *cluster, uint64_t *out_last)
{
	const struct rule *rule = &findings->rules->items[state->rule];

	*out_last = least(cluster->end - rule->min_width, cluster->start + STARTS_MAX - 1);
	if (file->complete_to == UINT64_MAX || state->is_over) {
		return true;
	}
	if (file->complete_to < cluster->start + rule->max_width) {
		return false;
	}
	*out_last = least(*out_last, file->complete_to - rule->max_width);
	return true;
}

/* For matches that end before `match_end`. */
static struct confirm_part part_of(const struct snippet *snippet, const struct candidate *cluster,
	uint64_t match_end, uint64_t *out_offset)
{
	uint64_t end = snippet->start + snippet->length;
	uint64_t until = least(end, least(cluster->end, match_end) + LOOK_BYTES);
	uint64_t from = snippet->start;

	if (cluster->start > LOOK_BYTES) {
		from = greatest(from, cluster->start - LOOK_BYTES);
	}
	*out_offset = from;
	return (struct confirm_part){
		.bytes = snippet->bytes + (from - snippet->start),
		.length = (size_t)(until - from),
		.has_start = from == 0,
		.has_end = snippet->has_end && until == end,
	};
}

/* Offsets in the file. */
struct confirmed {
	struct finding finding;
	const struct snippet *snippet;
};

/*
 * 1: the first match from the cluster's start to `last`. 0: there is none.
 * -ELOOP: that at the finding's start took too many steps.
 */
static int confirm(const struct findings *findings, struct findings_file *file,
	const struct candidate *cluster, uint64_t last, struct confirmed *out)
{
	const struct rule *rule = &findings->rules->items[cluster->rule];
	struct rule_filter *filter = rule->filter;
	struct confirm_match match = {0};
	struct confirm_part part;
	uint64_t offset;
	int status;

	out->snippet = snippets_find(&file->snippets, cluster->start);
	if (out->snippet == NULL) {
		return 0;
	}
	if (!need_room(file)) {
		return -ENOMEM;
	}
	part = part_of(out->snippet, cluster, last + rule->max_width, &offset);
	status = confirm_regex_match(filter->pattern, file->room, &part,
		(size_t)(cluster->start - offset), (size_t)(last - offset),
		filter->secret_is_match ? CONFIRM_NO_GROUP : filter->secret_group, &match);
	if (status == 1) {
		out->finding = (struct finding){
			.start = offset + match.start,
			.end = offset + match.end,
			.secret_start = offset + match.secret_start,
			.secret_end = offset + match.secret_end,
			.rule = cluster->rule,
		};
	} else if (status == -ELOOP) {
		out->finding.start = offset + match.start;
	}
	return status;
}

/* Bytes of the file from and until these offsets. */
static const uint8_t *bytes_at(const struct snippet *snippet, uint64_t offset)
{
	return snippet->bytes + (offset - snippet->start);
}

/* In Go's scanners, newlines at the ends of a match do not belong to it. */
static void trim(const struct confirmed *found, uint64_t *start, uint64_t *end)
{
	while (*start < *end && *bytes_at(found->snippet, *start) == '\n') {
		++*start;
	}
	while (*start < *end && *bytes_at(found->snippet, *end - 1) == '\n') {
		--*end;
	}
}

/* The bytes of a finding and as much context. */
static void bounds_of(
	const struct confirmed *found, uint64_t context, uint64_t *out_from, uint64_t *out_until)
{
	const struct finding *finding = &found->finding;
	uint64_t end = found->snippet->start + found->snippet->length;

	*out_from = found->snippet->start;
	if (finding->start > context) {
		*out_from = greatest(*out_from, finding->start - context);
	}
	*out_until = least(end, finding->end + context);
}

static void set_line(const struct confirmed *found, struct rule_subject *subject)
{
	uint64_t from;
	uint64_t until;
	uint64_t start = found->finding.start;
	uint64_t end = found->finding.end;

	bounds_of(found, SNIPPET_CONTEXT, &from, &until);
	while (start > from && *bytes_at(found->snippet, start - 1) != '\n') {
		start--;
	}
	while (end < until && *bytes_at(found->snippet, end) != '\n') {
		end++;
	}
	/* A byte of the line before it is context, so that it is no start. */
	subject->line_is_cut = start == from && start > 0;
	subject->line_end_is_cut = end == until &&
		(!found->snippet->has_end || end < found->snippet->start + found->snippet->length);
	subject->line = bytes_at(found->snippet, start);
	subject->line_bytes = (size_t)(end - start);
}

/* Says what the rule's filter does; trims a secret that is the whole match. */
static int filter(
	const struct findings *findings, struct findings_file *file, struct confirmed *found)
{
	const struct rule *rule = &findings->rules->items[found->finding.rule];
	struct finding *finding = &found->finding;
	uint64_t start = finding->start;
	uint64_t end = finding->end;
	struct rule_subject subject = {
		.rule_id = rule->id,
		.path = file->path != NULL ? file->path : "",
		.path_bytes = file->path_bytes,
		.commit = file->commit,
	};
	int status;

	if (rule->filter->dialect == RULE_DIALECT_GO) {
		bool is_all = finding->secret_start == start && finding->secret_end == end;

		trim(found, &start, &end);
		if (is_all) {
			finding->secret_start = start;
			finding->secret_end = end;
		}
	}
	subject.match = bytes_at(found->snippet, start);
	subject.match_bytes = (size_t)(end - start);
	if (rule->leaves_examples_out &&
		examples_include(rule->id, subject.match, subject.match_bytes)) {
		return 0;
	}
	subject.secret = bytes_at(found->snippet, finding->secret_start);
	subject.secret_bytes = (size_t)(finding->secret_end - finding->secret_start);
	set_line(found, &subject);
	status = rule_filter_decide(rule->filter, file->room, &subject);
	finding->is_of_allowed_commit = subject.is_of_allowed_commit;
	return status;
}

static int set_text(struct confirmed *found)
{
	struct finding *finding = &found->finding;
	uint64_t width = finding->end - finding->start;
	uint64_t from;
	uint64_t until;

	bounds_of(found, FINDING_CONTEXT, &from, &until);
	finding->text = malloc((size_t)(until - from));
	if (finding->text == NULL) {
		return -ENOMEM;
	}
	finding->text_start = from;
	finding->text_bytes = (uint32_t)(until - from);
	memcpy(finding->text, bytes_at(found->snippet, from), (size_t)(until - from));
	memcpy(finding->head, bytes_at(found->snippet, finding->start),
		width < sizeof(finding->head) ? width : sizeof(finding->head));
	return 0;
}

static void remove_first(struct candidates *open)
{
	open->count--;
	memmove(open->items, open->items + 1, open->count * sizeof(open->items[0]));
}

/* Counts bytes before they are searched; false: they are too many. */
static bool count_work(const struct findings *findings, struct findings_rule *state, uint64_t bytes)
{
	state->work += bytes;
	return findings->rules->findings_max == 0 || state->work <= CLUSTERS_WORK_MAX;
}

/* Goes on after the start of a costly match; or they are too many. */
static int skip_costly(struct findings_rule *state, struct candidate *cluster, uint64_t start)
{
	state->searched_to = start;
	if (state->costly_count++ == 0) {
		state->costly_at = start;
	}
	state->work += start + 1 - cluster->start;
	cluster->start = start + 1;
	return state->costly_count < COSTLY_MAX ? 0 : -ELOOP;
}

int clusters_next(const struct findings *findings, struct findings_file *file,
	struct findings_rule *state, struct finding *out_finding)
{
	uint32_t min_width = findings->rules->items[state->rule].min_width;

	while (state->open.count > 0) {
		struct candidate *cluster = &state->open.items[0];
		struct confirmed found;
		uint64_t last;
		int status;

		cluster->start = greatest(cluster->start, state->taken_to);
		if (cluster->start + min_width > cluster->end) {
			remove_first(&state->open);
			continue;
		}
		if (!last_decided(findings, file, state, cluster, &last)) {
			return 0;
		}
		state->searched_to = cluster->start;
		status = confirm(findings, file, cluster, last, &found);
		if (status == -ELOOP) {
			status = skip_costly(state, cluster, found.finding.start);
			if (status != 0) {
				return status;
			}
			continue;
		}
		if (status == 0) {
			bool is_within = count_work(findings, state, last + 1 - cluster->start);

			cluster->start = last + 1;
			if (!is_within) {
				return -E2BIG;
			}
			continue;
		}
		if (status == 1) {
			bool is_within =
				count_work(findings, state, found.finding.end - cluster->start);

			state->taken_to = found.finding.end;
			status = is_within ? filter(findings, file, &found) : -E2BIG;
			if (status == -ELOOP) {
				status = skip_costly(state, cluster, found.finding.start);
			}
		}
		if (status == 1) {
			status = set_text(&found);
			*out_finding = found.finding;
			return status == 0 ? 1 : status;
		}
		if (status < 0) {
			return status;
		}
	}
	return 0;
}
