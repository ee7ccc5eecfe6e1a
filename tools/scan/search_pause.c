/* SPDX-License-Identifier: MIT */
/*
 * What findings and evidence have of a file when nothing is pending, as bytes.
 *
 * Called for files of a scan with --checkpoint, when one takes long.
 *
 * Invariant: bytes are only taken over whole.
 */
#include "tools/scan/search_pause.h"

#include "tools/scan/evidence_window.h"

#include <stdlib.h>
#include <string.h>

/* A byte's line: its number, from 0, and where it starts. */
struct pause_line {
	uint64_t number;
	uint64_t start;
};

struct pause {
	uint64_t complete_to;
	uint64_t has_lines;
	uint64_t prefix; /* offset of the next window's first byte */
	struct pause_line prefix_line;
	struct pause_line line;
	uint64_t rule_count;
};

struct pause_rule {
	uint64_t rule;
	uint64_t taken_to;
	uint64_t taken_count;
	uint64_t shown_to;
	uint64_t work;
	uint64_t searched_to;
};

static bool has_gaps(struct gaps *gaps)
{
	bool has_some;

	pthread_mutex_lock(&gaps->lock);
	has_some = gaps->count > 0;
	pthread_mutex_unlock(&gaps->lock);
	return has_some;
}

static bool is_pending(const struct findings_file *file)
{
	if (file->next_index == 0 || file->complete_to == UINT64_MAX || file->held.count > 0 ||
		file->over.bits != NULL) {
		return true;
	}
	for (size_t i = 0; i < file->rule_count; i++) {
		const struct findings_rule *rule = &file->rules[i];

		if (rule->open.count > 0 || rule->is_over || rule->is_cut ||
			rule->costly_count > 0) {
			return true;
		}
	}
	return false;
}

/* Whether a word that allows findings may concern one after the border. */
static bool has_allows(const struct evidence *evidence, uint64_t prefix)
{
	for (size_t i = 0; i < evidence->window_count; i++) {
		const struct evidence_window *window = evidence->windows[i];

		for (size_t k = 0; k < window->allow_count; k++) {
			if (window->allows[k].offset + EVIDENCE_REACH + EVIDENCE_OVERLAP >=
				prefix) {
				return true;
			}
		}
	}
	return false;
}

static bool find_lines(const struct evidence *evidence, uint64_t offset, struct pause *pause)
{
	if (evidence->resolved_to < offset || has_allows(evidence, pause->prefix)) {
		return false;
	}
	if (evidence->resolved_to == offset) {
		pause->line = (struct pause_line){evidence->newlines, evidence->line_start};
	} else if (!evidence_find_line(evidence, offset, &pause->line.number, &pause->line.start)) {
		return false;
	}
	return evidence_find_line(
		evidence, pause->prefix, &pause->prefix_line.number, &pause->prefix_line.start);
}

bool search_pause(const struct search *search, struct search_file *file, struct output_text *out,
	uint64_t *out_offset)
{
	const struct findings_file *findings = &file->findings;
	struct pause pause = {
		.complete_to = findings->complete_to,
		.has_lines = evidence_needed(&search->evidence.needs),
		.rule_count = findings->rule_count,
	};
	uint64_t offset;

	if (search->evidence.in_order || search->findings.rules->has_companions ||
		file->decoding != NULL || file->extra_windows > 0 || is_pending(findings) ||
		has_gaps(&file->gaps)) {
		return false;
	}
	offset = findings->complete_to + engine_held_back(search->engine);
	pause.prefix = offset > search->evidence.overlap_bytes
		? offset - search->evidence.overlap_bytes
		: 0;
	if (pause.has_lines != 0 && !find_lines(&file->evidence, offset, &pause)) {
		return false;
	}
	output_text_append(out, &pause, sizeof(pause));
	for (size_t i = 0; i < findings->rule_count; i++) {
		const struct findings_rule *state = &findings->rules[i];
		struct pause_rule rule = {
			.rule = state->rule,
			.taken_to = state->taken_to,
			.taken_count = state->taken_count,
			.shown_to = state->shown_to,
			.work = state->work,
			.searched_to = state->searched_to,
		};

		output_text_append(out, &rule, sizeof(rule));
	}
	*out_offset = offset;
	return !out->failed;
}

/* ---- taking over ---- */

static bool take_rules(const struct search *search, struct findings_file *findings,
	const struct pause *pause, const uint8_t *bytes)
{
	struct findings_rule *rules = calloc((size_t)pause->rule_count + 1, sizeof(*rules));

	if (rules == NULL) {
		return false;
	}
	for (size_t i = 0; i < pause->rule_count; i++) {
		struct pause_rule rule;

		memcpy(&rule, bytes + i * sizeof(rule), sizeof(rule));
		if (rule.rule >= search->findings.rules->count) {
			free(rules);
			return false;
		}
		rules[i] = (struct findings_rule){
			.rule = (uint32_t)rule.rule,
			.taken_to = rule.taken_to,
			.taken_count = rule.taken_count,
			.shown_to = rule.shown_to,
			.work = rule.work,
			.searched_to = rule.searched_to,
		};
	}
	findings->rules = rules;
	findings->rule_count = (size_t)pause->rule_count;
	findings->rule_capacity = (size_t)pause->rule_count + 1;
	findings->complete_to = pause->complete_to;
	return true;
}

/* A window in place of all those before the border: it has their last lines. */
static bool take_lines(const struct search *search, struct evidence *evidence,
	const struct pause *pause, uint64_t offset)
{
	struct evidence_window *window = calloc(1, sizeof(*window));

	if (window == NULL) {
		return false;
	}
	*window = (struct evidence_window){
		.base = pause->prefix,
		.from = pause->prefix,
		.until = offset,
		.newlines = pause->line.number - pause->prefix_line.number,
		.last_start =
			pause->line.number > pause->prefix_line.number ? pause->line.start : 0,
	};
	evidence->resolved_to = pause->prefix;
	evidence->newlines = pause->prefix_line.number;
	evidence->line_start = pause->prefix_line.start;
	return evidence_add(&search->evidence, evidence, window) == 0;
}

bool search_resume(const struct search *search, struct search_file *file, const void *bytes,
	size_t length, uint64_t offset)
{
	struct pause pause;

	if (length < sizeof(pause)) {
		return false;
	}
	memcpy(&pause, bytes, sizeof(pause));
	if (pause.rule_count > search->findings.rules->count ||
		length != sizeof(pause) + pause.rule_count * sizeof(struct pause_rule) ||
		offset != pause.complete_to + engine_held_back(search->engine) ||
		pause.has_lines != (evidence_needed(&search->evidence.needs) ? 1 : 0) ||
		search->evidence.in_order) {
		return false;
	}
	if (pause.has_lines != 0 && !take_lines(search, &file->evidence, &pause, offset)) {
		evidence_fini(&file->evidence);
		return false;
	}
	if (take_rules(search, &file->findings, &pause, (const uint8_t *)bytes + sizeof(pause))) {
		return true;
	}
	evidence_fini(&file->evidence);
	return false;
}
