/* SPDX-License-Identifier: MIT */
/*
 * One rule of a TOML file: its fields, its allowlists, the rules it needs, its
 * filter expression.
 */
#include "tools/scan/rules_import.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

enum {
	SECRET_GROUP_MAX = 1000,
	ENTROPY_MAX = 8, /* bits a byte */
	WITHIN_MAX = 1000000000,
	/* Of all filters of a file; each takes some 150 bytes. */
	EXPRESSION_NODES_TOTAL = 1000000,
};

static int add_word(void *list, const char *text)
{
	return rule_words_add(list, text);
}

static int add_regex(void *list, const char *text)
{
	return rule_regexes_add(list, text);
}

static void set_text(
	struct import *import, const struct toml_value *table, const char *key, char **text)
{
	const struct toml_value *value = import_text(import, table, key);

	if (value != NULL && import->error == 0) {
		import->error = rule_text_set(text, value->text);
	}
}

/* `condition` of an allowlist: whether all of its kinds have to hold. */
static bool needs_all(struct import *import, const struct toml_value *table)
{
	const struct toml_value *value = import_text(import, table, "condition");

	if (value == NULL || value->length == 0 || strcasecmp(value->text, "or") == 0 ||
		strcmp(value->text, "||") == 0) {
		return false;
	}
	if (strcasecmp(value->text, "and") != 0 && strcmp(value->text, "&&") != 0) {
		import_remark(import, RULES_REMARK_ERROR, value->line,
			"condition has to be AND or OR, not %.64s", value->text);
	}
	return true;
}

static enum rule_target target_of(struct import *import, const struct toml_value *table)
{
	const struct toml_value *value = import_text(import, table, "regexTarget");

	if (value == NULL || value->length == 0 || strcmp(value->text, "secret") == 0) {
		return RULE_TARGET_SECRET;
	}
	if (strcmp(value->text, "line") == 0) {
		return RULE_TARGET_LINE;
	}
	if (strcmp(value->text, "match") != 0) {
		import_remark(import, RULES_REMARK_ERROR, value->line,
			"regexTarget has to be secret, match or line, not %.64s", value->text);
	}
	return RULE_TARGET_MATCH;
}

void import_allowlist(struct import *import, const struct toml_value *table,
	struct rule_allowlists *lists, bool is_global)
{
	static const char *const known[] = {"commits", "condition", "description", "paths",
		"regexTarget", "regexes", "stopwords", "targetRules", NULL};
	struct rule_allowlist *list;

	import_unknown_keys(import, table, known);
	if (!is_global && toml_find(table, "targetRules") != NULL) {
		import_remark(import, RULES_REMARK_UNSUPPORTED, table->line,
			"targetRules is for allowlists of the whole file");
	}
	list = rule_allowlists_add(lists);
	if (list == NULL) {
		import->error = -ENOMEM;
		return;
	}
	list->needs_all = needs_all(import, table);
	list->target = target_of(import, table);
	set_text(import, table, "description", &list->description);
	import_texts(import, table, "commits", add_word, &list->commits);
	import_texts(import, table, "regexes", add_regex, &list->regexes);
	import_texts(import, table, "paths", add_regex, &list->paths);
	import_texts(import, table, "stopwords", add_word, &list->stopwords);
	if (list->commits.count + list->regexes.count + list->paths.count + list->stopwords.count ==
		0) {
		import_remark(import, RULES_REMARK_ERROR, table->line,
			"an allowlist has none of commits, paths, regexes, stopwords");
	}
}

static void import_rule_allowlists(
	struct import *import, const struct toml_value *value, struct rule_filter *filter)
{
	const struct toml_value *table = NULL;

	while ((table = import_next_table(value, table)) != NULL && import->error == 0) {
		import_allowlist(import, table, filter->own, false);
	}
}

static void import_companions(
	struct import *import, const struct toml_value *value, struct rule_filter *filter)
{
	static const char *const known[] = {"id", "withinColumns", "withinLines", NULL};
	const struct toml_value *table = NULL;

	while ((table = import_next_table(value, table)) != NULL && import->error == 0) {
		const struct toml_value *id = import_text(import, table, "id");
		struct rule_companion companion = {
			.has_lines = toml_find(table, "withinLines") != NULL,
			.has_columns = toml_find(table, "withinColumns") != NULL,
			.within_lines =
				(uint32_t)import_number(import, table, "withinLines", WITHIN_MAX),
			.within_columns =
				(uint32_t)import_number(import, table, "withinColumns", WITHIN_MAX),
		};

		import_unknown_keys(import, table, known);
		if (id == NULL || id->length == 0) {
			import_remark(import, RULES_REMARK_ERROR, table->line,
				"required names no rule: it has no id");
			continue;
		}
		companion.rule_id = (char *)id->text;
		import->error = rule_filter_add_companion(filter, &companion);
	}
}

/* Where an expression is, for remarks on its parts. */
struct expression_place {
	struct import *import;
	const struct toml_value *value;
};

static void note_expression(void *arg, uint32_t line, const char *reason)
{
	const struct expression_place *place = arg;

	import_remark(place->import, RULES_REMARK_UNSUPPORTED, place->value->text_line + line,
		"%s: %s", place->value->key, reason);
}

bool import_expression(struct import *import, const struct toml_value *table, const char *key,
	struct expression *out_expression)
{
	const struct toml_value *value = import_text(import, table, key);
	struct expression_place place = {import, value};
	struct expression_trouble trouble;
	char reason[RULE_FILTER_REASON_BYTES];
	int error;

	if (value == NULL || strspn(value->text, " \t\r\n") == value->length) {
		return false;
	}
	error = expression_parse(
		value->text, value->length, note_expression, &place, out_expression, &trouble);
	if (error == -EINVAL) {
		import_remark(import, RULES_REMARK_ERROR, value->text_line + trouble.line, "%s: %s",
			key, trouble.reason);
		return false;
	}
	if (error == 0) {
		import->globals->expression_nodes += out_expression->node_count;
		error = rule_condition_check(out_expression, reason);
		/* Without PCRE2 measuring refuses the rules themselves. */
		error = error == -ENOSYS ? 0 : error;
		if (error == -EINVAL) {
			import_remark(
				import, RULES_REMARK_ERROR, value->line, "%s: %s", key, reason);
		} else if (import->globals->expression_nodes > EXPRESSION_NODES_TOTAL) {
			import_remark(import, RULES_REMARK_ERROR, value->line,
				"the filters up to here have more than %d parts",
				EXPRESSION_NODES_TOTAL);
			error = -EINVAL;
			import->error = error;
		}
		if (error != 0) {
			expression_free(out_expression);
		}
	}
	if (error == -ENOMEM) {
		import->error = error;
	}
	return error == 0;
}

/* What pinion does otherwise, or not at all. */
static void remark_on_rest(struct import *import, const struct toml_value *table)
{
	static const char *const known[] = {"allowlist", "allowlists", "description", "entropy",
		"filter", "id", "keywords", "path", "regex", "required", "secretGroup",
		"skipReport", "specificity", "tags", "tokenEfficiency", "validate", NULL};
	const struct toml_value *specificity =
		import_find(import, table, "specificity", TOML_INTEGER);

	import_unknown_keys(import, table, known);
	if (specificity != NULL && specificity->integer != 100) {
		import_remark(import, RULES_REMARK_UNSUPPORTED, specificity->line,
			"specificity: findings of several rules at one place are all reported");
	}
	if (import_truth(import, table, "tokenEfficiency")) {
		import_remark(import, RULES_REMARK_UNSUPPORTED,
			toml_find(table, "tokenEfficiency")->line,
			"tokenEfficiency is not supported, and drops nothing");
	}
	if (import_text(import, table, "validate") != NULL) {
		import->reader->validated_count++;
	}
}

void import_rule_fields(struct import *import, const struct toml_value *table, struct rule *rule)
{
	struct rule_filter *filter = import_filter(import, rule);
	struct expression expression;

	if (filter == NULL) {
		return;
	}
	if (toml_find(table, "secretGroup") != NULL) {
		filter->secret_is_match = false;
		filter->secret_group =
			(uint32_t)import_number(import, table, "secretGroup", SECRET_GROUP_MAX);
	}
	if (toml_find(table, "entropy") != NULL) {
		filter->entropy_min = import_number(import, table, "entropy", ENTROPY_MAX);
	}
	if (toml_find(table, "skipReport") != NULL) {
		filter->skips_report = import_truth(import, table, "skipReport");
	}
	set_text(import, table, "description", &filter->description);
	set_text(import, table, "path", &filter->path.pattern);
	import_texts(import, table, "keywords", add_word, &filter->keywords);
	import_texts(import, table, "tags", add_word, &filter->tags);
	import_rule_allowlists(import, toml_find(table, "allowlist"), filter);
	import_rule_allowlists(import, toml_find(table, "allowlists"), filter);
	import_companions(import, toml_find(table, "required"), filter);
	if (import->error == 0 && import_expression(import, table, "filter", &expression)) {
		import->error = rule_condition_set(filter, &expression);
	}
	remark_on_rest(import, table);
}
