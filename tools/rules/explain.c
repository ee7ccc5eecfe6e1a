/* SPDX-License-Identifier: MIT */
/*
 * What a rule finds and what it leaves out, in words.
 */
#include "tools/rules/explain.h"

#include "tools/scan/confirm.h"
#include "tools/scan/rule_condition.h"
#include "tools/scan/rule_filter.h"

#include <string.h>

const char *rules_description(const struct rule *rule)
{
	const struct rule_builtin *builtin;
	uint32_t count;

	if (rule->description != NULL) {
		return rule->description;
	}
	if (rule->filter != NULL && rule->filter->description != NULL) {
		return rule->filter->description;
	}
	builtin = rules_builtin(&count);
	for (uint32_t i = 0; rule->file == NULL && i < count; i++) {
		if (strcmp(builtin[i].id, rule->id) == 0) {
			return builtin[i].description;
		}
	}
	return NULL;
}

static void append_words(
	struct output_text *text, const char *before, const struct rule_words *words)
{
	for (uint32_t i = 0; i < words->count; i++) {
		output_text_string(text, i == 0 ? before : ", ");
		output_text_string(text, words->items[i]);
	}
	if (words->count > 0) {
		output_text_string(text, "\n");
	}
}

static void append_regexes(
	struct output_text *text, const char *before, const struct rule_regexes *regexes)
{
	for (uint32_t i = 0; i < regexes->count; i++) {
		output_text_format(
			text, "    %s %s\n", i == 0 ? before : "  or", regexes->items[i].pattern);
	}
}

static void append_indented(struct output_text *text, const char *lines)
{
	while (*lines != '\0') {
		size_t length = strcspn(lines, "\n");

		if (strspn(lines, " \t\r") < length) {
			output_text_string(text, "    ");
			output_text_append(text, lines, length);
			output_text_string(text, "\n");
		}
		lines += length + (lines[length] == '\n');
	}
}

void rules_append_line(struct output_text *text, const struct rule *rule, size_t width)
{
	const char *description = rules_description(rule);
	const struct rule_words *tags = rule->filter != NULL ? &rule->filter->tags : NULL;

	output_text_string(text, rule->id);
	if (description != NULL) {
		output_text_format(text, "%*s", (int)(width - strlen(rule->id)), "");
		output_text_escaped(text, description, strlen(description), true);
	}
	for (uint32_t i = 0; tags != NULL && i < tags->count; i++) {
		output_text_format(text, "%s%s", i == 0 ? "  [" : ", ", tags->items[i]);
	}
	output_text_string(text, tags != NULL && tags->count > 0 ? "]\n" : "\n");
}

bool rules_are_cut(const struct rule *rule)
{
	return rule->filter != NULL && rule->filter->pattern != NULL &&
		confirm_regex_texts(rule->filter->pattern)->is_cut;
}

static void append_width(struct output_text *text, const struct rule *rule)
{
	if (rule->max_width == RULE_WIDTH_UNBOUNDED) {
		output_text_format(
			text, "  Matches are at least %u bytes long.\n", rule->min_width);
	} else if (rule->min_width == rule->max_width) {
		output_text_format(text, "  Matches are %u bytes long.\n", rule->min_width);
	} else {
		output_text_format(text, "  Matches are %u to %u bytes long.\n", rule->min_width,
			rule->max_width);
	}
	if (rules_are_cut(rule)) {
		output_text_format(
			text, "  Matches longer than %u bytes are not found.\n", rule->max_width);
	}
}

static const char *target_name(enum rule_target target)
{
	switch (target) {
	case RULE_TARGET_MATCH:
		return "the match has";
	case RULE_TARGET_LINE:
		return "its line has";
	case RULE_TARGET_SECRET:
		break;
	}
	return "the secret has";
}

static void append_allowlists(
	struct output_text *text, const struct rule_allowlists *lists, const char *whose)
{
	for (uint32_t i = 0; lists != NULL && i < lists->count; i++) {
		const struct rule_allowlist *list = &lists->items[i];

		output_text_format(text, "  %s exception%s%s, where %s:\n", whose,
			list->description != NULL ? ", " : "",
			list->description != NULL ? list->description : "",
			list->needs_all ? "all of these hold" : "one of these holds");
		append_regexes(text, target_name(list->target), &list->regexes);
		append_regexes(text, "the path has", &list->paths);
		append_words(text, "    the secret has one of ", &list->stopwords);
		append_words(text, "    its commit is one of ", &list->commits);
	}
}

static void append_companions(struct output_text *text, const struct rule_filter *filter)
{
	for (uint32_t i = 0; i < filter->companion_count; i++) {
		const struct rule_companion *companion = &filter->companions[i];

		output_text_format(
			text, "  It needs a finding of %s in the same file", companion->rule_id);
		if (companion->has_lines) {
			output_text_format(
				text, ", at most %u lines away", companion->within_lines);
		}
		if (companion->has_columns) {
			output_text_format(
				text, ", at most %u columns away", companion->within_columns);
		}
		output_text_string(text, ".\n");
	}
}

static void append_filter(struct output_text *text, const struct rule_filter *filter)
{
	const struct expression *expression = rule_condition_own(filter);

	if (filter->secret_is_match) {
		output_text_string(text, "  The secret is the match.\n");
	} else if (filter->secret_group > 0) {
		output_text_format(
			text, "  The secret is group %u of the pattern.\n", filter->secret_group);
	} else {
		output_text_string(
			text, "  The secret is the first group that is not empty, or the match.\n");
	}
	if (filter->path.pattern != NULL) {
		output_text_format(text, "  Only files whose path has %s\n", filter->path.pattern);
	}
	if (filter->entropy_min > 0) {
		output_text_format(
			text, "  The secret has more than %g bits a byte.\n", filter->entropy_min);
	}
	append_companions(text, filter);
	append_allowlists(text, filter->own, "An");
	append_allowlists(text, filter->shared, "For all rules of its file, an");
	if (expression != NULL) {
		output_text_string(text, "  It is no finding where this is true:\n");
		append_indented(text, expression->text);
	}
	if (filter->skips_report) {
		output_text_string(text, "  Its findings are not shown; other rules need them.\n");
	}
	append_words(text, "  Keywords: ", &filter->keywords);
	append_words(text, "  Tags: ", &filter->tags);
}

void rules_append_explanation(struct output_text *text, const struct rule *rule)
{
	const char *description = rules_description(rule);
	bool is_go = rule->filter != NULL && rule->filter->dialect == RULE_DIALECT_GO;

	output_text_format(text, "%s\n", rule->id);
	if (description != NULL) {
		output_text_string(text, "  ");
		output_text_escaped(text, description, strlen(description), true);
		output_text_string(text, "\n");
	}
	if (rule->is_yara) {
		output_text_format(text, "  A rule of YARA, from %s.\n", rule->file);
		return;
	}
	if (rule->file != NULL) {
		output_text_format(text, "  From %s:%u.\n", rule->file, rule->line);
	} else {
		output_text_string(text, "  Built in.\n");
	}
	output_text_format(text, "  %s:\n    ", is_go ? "Pattern, of Go" : "Pattern");
	output_text_append(text, rule->pattern, rule->pattern_bytes);
	output_text_string(text, "\n");
	append_width(text, rule);
	if (rule->leaves_examples_out) {
		output_text_string(text, "  Well-known examples and placeholders are left out.\n");
	}
	if (rule->filter != NULL) {
		append_filter(text, rule->filter);
	}
}
