/* SPDX-License-Identifier: MIT */
/*
 * How far the file is known decides which findings are shown.
 */
#include "tools/scan/findings_held.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Without it, a finding of a plain rule is one all the same. */
static int set_text(const struct snippet *snippet, struct finding *finding)
{
	uint64_t from;
	uint64_t until;

	if (snippet == NULL || finding->end > snippet->start + snippet->length) {
		return 0;
	}
	from = snippet->start;
	until = snippet->start + snippet->length;
	if (finding->start > from + FINDING_CONTEXT) {
		from = finding->start - FINDING_CONTEXT;
	}
	if (finding->end + FINDING_CONTEXT < until) {
		until = finding->end + FINDING_CONTEXT;
	}
	finding->text = malloc((size_t)(until - from));
	if (finding->text == NULL) {
		return -ENOMEM;
	}
	memcpy(finding->text, snippet->bytes + (from - snippet->start), (size_t)(until - from));
	finding->text_start = from;
	finding->text_bytes = (uint32_t)(until - from);
	return 0;
}

int findings_held_add_within(const struct findings *findings, struct findings_file *file,
	const struct snippet *snippet, const struct candidate *candidate)
{
	struct finding finding = {
		.start = candidate->start,
		.end = candidate->end,
		.secret_start = candidate->start,
		.secret_end = candidate->end,
		.rule = candidate->rule,
		.string = candidate->string,
	};
	int error;

	memcpy(finding.head, candidate->head, sizeof(finding.head));
	error = findings->rules->keeps_text ? set_text(snippet, &finding) : 0;
	if (error == 0) {
		error = finding_list_add(&file->held, &finding);
	}
	if (error != 0) {
		free(finding.text);
	}
	return error;
}

int findings_held_add(const struct findings *findings, struct findings_file *file,
	const struct candidate *candidate)
{
	const struct snippet *snippet = findings->rules->keeps_text
		? snippets_find(&file->snippets, candidate->start)
		: NULL;

	return findings_held_add_within(findings, file, snippet, candidate);
}

/* No finding that is still to come starts before this. */
static uint64_t find_watermark(const struct findings *findings, const struct findings_file *file)
{
	uint64_t watermark = 0;

	if (file->complete_to == UINT64_MAX) {
		return UINT64_MAX;
	}
	if (findings->widest != RULE_WIDTH_UNBOUNDED && file->complete_to >= findings->widest) {
		watermark = file->complete_to - findings->widest + 1;
	}
	for (size_t i = 0; i < file->rule_count; i++) {
		const struct candidates *open = &file->rules[i].open;

		if (open->count > 0 && open->items[0].start < watermark) {
			watermark = open->items[0].start;
		}
	}
	return watermark;
}

/*
 * Whether the bytes after it have come, too, and the findings in them, if they
 * are asked for: before `known_to` none is missing.
 */
static bool is_held_long(const struct findings *findings, const struct findings_file *file,
	const struct finding *finding, uint64_t known_to)
{
	uint64_t until = finding->end + findings->hold_bytes;

	if (findings->holds_for_others && known_to != UINT64_MAX && until > known_to) {
		return false;
	}
	return file->complete_to == UINT64_MAX || until <= file->complete_to;
}

/* Whether its companions are not decided yet. */
static bool is_waiting(const struct findings *findings, const struct findings_file *file,
	const struct finding *finding)
{
	return findings->rules->has_companions && !file->has_ended &&
		companions_concern(findings->rules, finding->rule);
}

/* No finding that starts before this is to come, or may be dropped. */
static uint64_t find_known(
	const struct findings *findings, const struct findings_file *file, uint64_t watermark)
{
	size_t index = 0;

	if (!findings->holds_for_others || !findings->rules->has_companions || file->has_ended) {
		return watermark;
	}
	while (index < file->held.count && !is_waiting(findings, file, &file->held.items[index])) {
		index++;
	}
	return index < file->held.count && file->held.items[index].start < watermark
		? file->held.items[index].start
		: watermark;
}

void findings_held_show(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg)
{
	uint64_t watermark = find_watermark(findings, file);
	uint64_t known_to;
	size_t count = 0;

	finding_list_sort(&file->held);
	known_to = find_known(findings, file, watermark);
	while (count < file->held.count && file->held.items[count].start < watermark &&
		is_held_long(findings, file, &file->held.items[count], known_to) &&
		!is_waiting(findings, file, &file->held.items[count])) {
		count++;
	}
	if (count == 0) {
		return;
	}
	show(arg, file->held.items, count);
	finding_list_drop(&file->held, count);
}

uint64_t findings_held_settled_to(const struct findings *findings, const struct findings_file *file)
{
	uint64_t settled_to = find_watermark(findings, file);

	if (file->held.count > 0 && file->held.items[0].start < settled_to) {
		settled_to = file->held.items[0].start;
	}
	return settled_to;
}
