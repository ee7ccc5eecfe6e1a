/* SPDX-License-Identifier: MIT */
/*
 * Files of rules in TOML: which rules there are, those of files that they
 * extend, and what they have for all rules.
 *
 * A file that extends another has the other's rules first, without those that
 * it disables; a rule with the id of one of these changes the fields it has.
 * The built-in set is extended in the same way.
 */
#include "tools/scan/rules_import.h"

#include "tools/scan/rule_ids.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
	EXTEND_DEPTH_MAX = 8,
	/* Rules of an allowlist times its expressions: all are copied. */
	TARGET_ENTRIES_MAX = 1000000,
};

struct rule_filter *import_filter(struct import *import, struct rule *rule)
{
	if (rule->filter == NULL) {
		/* Built-in rules and those of lists alone come without one. */
		rule->filter = rule_filter_create(RULE_DIALECT_PCRE);
		if (rule->filter == NULL) {
			import->error = -ENOMEM;
			return NULL;
		}
		/* Their groups are there for `|` alone. */
		rule->filter->secret_is_match = true;
	}
	return rule->filter;
}

/* Adds a rule that its file has first. NULL: it is left out. */
static struct rule *add_rule(
	struct import *import, const struct toml_value *table, const struct toml_value *regex)
{
	struct rules *rules = import->reader->rules;
	struct rule *rule;
	int error;

	if (regex == NULL) {
		import_remark(import, RULES_REMARK_UNSUPPORTED, table->line, "%s",
			toml_find(table, "path") != NULL
				? "has no regex; rules for names of files alone are left out"
				: "has neither regex nor path, and finds nothing");
		return NULL;
	}
	error = rules_add(rules, import->rule_id, regex->text, regex->length, false);
	if (error == -E2BIG) {
		char reason[RULES_REASON_BYTES];

		rules_limit_reason(rules, regex->length, reason);
		import_remark(import, RULES_REMARK_ERROR, table->line, "%s", reason);
		import->error = -EINVAL;
		return NULL;
	}
	if (error != 0) {
		import->error = error;
		return NULL;
	}
	rule = &rules->items[rules->count - 1];
	rule->file = import->source->file;
	rule->line = regex->line;
	rule->filter = rule_filter_create(RULE_DIALECT_GO);
	if (rule->filter == NULL) {
		import->error = -ENOMEM;
		return NULL;
	}
	return rule;
}

/* A rule of a file below: what this one has for it comes in its place. */
static struct rule *change_rule(
	struct import *import, uint32_t index, const struct toml_value *regex)
{
	struct rules *rules = import->reader->rules;
	struct rule *rule = &rules->items[index];

	if (regex != NULL) {
		int error = rules_set_pattern(rules, index, regex->text, regex->length);

		if (error != 0) {
			import->error = error;
			return NULL;
		}
		rule->file = import->source->file;
		rule->line = regex->line;
		if (import_filter(import, rule) != NULL) {
			rule->filter->dialect = RULE_DIALECT_GO;
			rule->filter->secret_is_match = false;
		}
	}
	return rule;
}

static void import_rule(struct import *import, const struct toml_value *table, struct rule_ids *ids,
	uint32_t first_own)
{
	const struct toml_value *id = import_text(import, table, "id");
	const struct toml_value *regex;
	struct rules *rules = import->reader->rules;
	struct rule *rule;
	uint32_t index;

	if (id == NULL || !rules_is_id(id->text, id->length)) {
		import_remark(import, RULES_REMARK_ERROR, id != NULL ? id->line : table->line, "%s",
			id != NULL ? rules_id_reason : "a rule has no id");
		return;
	}
	import->rule_id = id->text;
	index = rule_ids_find(ids, id->text);
	regex = import_text(import, table, "regex");
	if (index != UINT32_MAX && index >= first_own) {
		import_remark(import, RULES_REMARK_ERROR, id->line, "is there twice");
		return;
	}
	rule = index != UINT32_MAX ? change_rule(import, index, regex)
				   : add_rule(import, table, regex);
	if (rule != NULL && index == UINT32_MAX) {
		rule_ids_add(ids, rule->id, rules->count - 1);
	}
	if (rule != NULL && import->error == 0) {
		import_rule_fields(import, table, rule);
	}
}

static uint64_t count_of(const struct toml_value *table, const char *key)
{
	const struct toml_value *value = toml_find(table, key);

	return value == NULL ? 0 : value->child_count;
}

/* Those of [[allowlists]] that are for some rules alone. */
static void import_targets(
	struct import *import, const struct toml_value *table, struct rule_ids *ids)
{
	const struct toml_value *targets = import_find(import, table, "targetRules", TOML_ARRAY);
	uint64_t entries = 1 + count_of(table, "paths") + count_of(table, "regexes") +
		count_of(table, "stopwords");

	if (targets != NULL && targets->child_count * entries > TARGET_ENTRIES_MAX) {
		import_remark(import, RULES_REMARK_ERROR, targets->line,
			"an allowlist for so many rules is too long");
		return;
	}
	for (uint32_t i = 0; targets != NULL && i < targets->child_count; i++) {
		const struct toml_value *target = &targets->children[i];
		uint32_t index =
			target->kind == TOML_STRING ? rule_ids_find(ids, target->text) : UINT32_MAX;
		struct rule_filter *filter;

		if (index == UINT32_MAX) {
			import_remark(import, RULES_REMARK_ERROR, target->line,
				"targetRules names a rule that there is not");
			continue;
		}
		filter = import_filter(import, &import->reader->rules->items[index]);
		if (filter == NULL) {
			return;
		}
		import_allowlist(import, table, filter->own, true);
	}
}

static void import_global_allowlists(
	struct import *import, const struct toml_value *value, struct rule_ids *ids)
{
	const struct toml_value *table = NULL;

	import->rule_id = NULL;
	while ((table = import_next_table(value, table)) != NULL && import->error == 0) {
		if (toml_find(table, "targetRules") != NULL) {
			import_targets(import, table, ids);
		} else {
			import_allowlist(import, table, import->globals->allowlists, true);
		}
	}
}

/* ---- files ---- */

static bool is_loop(const struct rules_source *source)
{
	for (const struct rules_source *parent = source->parent; parent != NULL;
		parent = parent->parent) {
		if (parent->device == source->device && parent->inode == source->inode) {
			return true;
		}
	}
	return false;
}

/* The path, seen from the folder of the file that names it. */
static char *extended_path(struct import *import, const char *path)
{
	const char *file = import->source->file;
	const char *slash = strrchr(file, '/');
	size_t folder = path[0] == '/' || slash == NULL ? 0 : (size_t)(slash + 1 - file);
	size_t length = strlen(path);
	struct rule_memory *memory = &import->reader->rules->memory;
	char *joined = rule_memory_take(memory, folder + length + 1);

	if (joined != NULL) {
		memcpy(joined, file, folder);
		memcpy(joined + folder, path, length);
	} else {
		import->error = -ENOMEM;
	}
	return joined;
}

static int read_file(struct import *import, const struct rules_source *source);

static void extend_file(struct import *import, const struct toml_value *path)
{
	struct rules_source source = {
		.file = extended_path(import, path->text),
		.parent = import->source,
		.depth = import->source->depth + 1,
	};
	char reason[RULES_SOURCE_REASON_BYTES] = "";
	int error;

	if (source.file == NULL) {
		return;
	}
	if (source.depth > EXTEND_DEPTH_MAX) {
		import_remark(import, RULES_REMARK_ERROR, path->line,
			"files extend one another more than %d deep", EXTEND_DEPTH_MAX);
		return;
	}
	error = rules_source_read(import->reader, &source, reason);
	if (error == 0 && is_loop(&source)) {
		import_remark(import, RULES_REMARK_ERROR, path->line, "%.200s extends itself",
			path->text);
	} else if (error == 0) {
		error = rules_source_is_toml(&source) ? read_file(import, &source)
						      : rules_read_lines(import->reader, &source);
		import->is_bad = import->is_bad || error == -EINVAL;
	} else {
		import_remark(import, RULES_REMARK_ERROR, path->line, "%.200s: %s", source.file,
			reason[0] != '\0' ? reason : strerror(-error));
		error = -EINVAL;
	}
	if (error != 0 && error != -EINVAL) {
		import->error = error;
	}
	free(source.bytes);
}

/* Marks the rules that are disabled, counted from the first in `ids`. */
static void mark_disabled(struct import *import, const struct toml_value *disabled,
	struct rule_ids *ids, bool *is_disabled)
{
	for (uint32_t i = 0; i < disabled->child_count; i++) {
		const struct toml_value *id = &disabled->children[i];
		uint32_t index =
			id->kind == TOML_STRING ? rule_ids_find(ids, id->text) : UINT32_MAX;

		if (id->kind != TOML_STRING) {
			import_remark(import, RULES_REMARK_ERROR, id->line,
				"disabledRules has something that is no text");
		} else if (index == UINT32_MAX) {
			import_remark(import, RULES_REMARK_UNSUPPORTED, id->line,
				"disabledRules: there is no rule %.128s to disable", id->text);
		} else {
			is_disabled[index - ids->first] = true;
		}
	}
}

static void disable_rules(struct import *import, const struct toml_value *extend, uint32_t first)
{
	const struct toml_value *array = import_find(import, extend, "disabledRules", TOML_ARRAY);
	struct rules *rules = import->reader->rules;
	bool *is_disabled;
	struct rule_ids ids;

	if (array == NULL) {
		return;
	}
	is_disabled = calloc(rules->count - first + 1, sizeof(*is_disabled));
	if (is_disabled == NULL || !rule_ids_init(&ids, rules, first, 0)) {
		free(is_disabled);
		import->error = -ENOMEM;
		return;
	}
	mark_disabled(import, array, &ids, is_disabled);
	rule_ids_fini(&ids);
	rules_remove(rules, first, is_disabled);
	free(is_disabled);
}

static void extend(struct import *import, const struct toml_value *root)
{
	static const char *const known[] = {"disabledRules", "path", "url", "useDefault", NULL};
	const struct toml_value *table = import_find(import, root, "extend", TOML_TABLE);
	struct rules *rules = import->reader->rules;
	uint32_t first = rules->count;
	const struct toml_value *path;

	if (table == NULL) {
		return;
	}
	import_unknown_keys(import, table, known);
	if (toml_find(table, "url") != NULL) {
		import_remark(import, RULES_REMARK_UNSUPPORTED, toml_find(table, "url")->line,
			"extend.url: nothing is fetched");
	}
	path = import_text(import, table, "path");
	if (import_truth(import, table, "useDefault")) {
		if (path != NULL) {
			import_remark(import, RULES_REMARK_ERROR, path->line,
				"extend has path and useDefault; only one of them may be");
			return;
		}
		import->error = rules_add_builtin(rules, import->reader->with_examples);
	} else if (path != NULL) {
		extend_file(import, path);
	}
	if (import->error == 0) {
		disable_rules(import, table, first);
	}
}

/* Those of a file come before those of files that it extends. */
static void import_global_filters(struct import *import, const struct toml_value *root)
{
	struct import_globals *globals = import->globals;

	if (!globals->has_prefilter) {
		globals->has_prefilter = import_expression(
			import, root, "prefilter", &globals->condition->prefilter);
	}
	if (!globals->has_filter) {
		globals->has_filter =
			import_expression(import, root, "filter", &globals->condition->filter);
	}
}

static void read_rules(struct import *import, const struct toml_value *root, uint32_t first)
{
	const struct toml_value *array = toml_find(root, "rules");
	const struct toml_value *table = NULL;
	uint32_t first_own = import->reader->rules->count;
	struct rule_ids ids;

	if (array != NULL && array->kind != TOML_ARRAY) {
		import_remark(import, RULES_REMARK_ERROR, array->line, "rules has to be [[rules]]");
		return;
	}
	if (!rule_ids_init(
		    &ids, import->reader->rules, first, array != NULL ? array->child_count : 0)) {
		import->error = -ENOMEM;
		return;
	}
	while ((table = import_next_table(array, table)) != NULL && import->error == 0) {
		import->rule_id = NULL;
		import_rule(import, table, &ids, first_own);
	}
	import->rule_id = NULL;
	import_global_allowlists(import, toml_find(root, "allowlist"), &ids);
	import_global_allowlists(import, toml_find(root, "allowlists"), &ids);
	rule_ids_fini(&ids);
}

static int read_document(struct import *import, const struct toml_value *root)
{
	static const char *const known[] = {"allowlist", "allowlists", "betterleaksMinVersion",
		"description", "extend", "filter", "minVersion", "prefilter", "rules", "title",
		NULL};
	uint32_t first = import->reader->rules->count;

	import_unknown_keys(import, root, known);
	import_global_filters(import, root);
	extend(import, root);
	if (import->error == 0) {
		read_rules(import, root, first);
	}
	if (!import->reader->names_all && !import->reader->is_strict &&
		import->unsupported_count > RULES_UNSUPPORTED_MAX) {
		import_remark(import, RULES_REMARK_NOTE, 0,
			"%u more parts of it are not supported: `pinion rules check` names them",
			import->unsupported_count - RULES_UNSUPPORTED_MAX);
	}
	if (import->error != 0) {
		return import->error;
	}
	return import->is_bad ? -EINVAL : 0;
}

/* A file of the command line, or a file that it extends. */
static int read_file(struct import *outer, const struct rules_source *source)
{
	struct import import = {
		.reader = outer->reader,
		.source = source,
		.globals = outer->globals,
	};
	struct toml_document document;
	struct toml_trouble trouble = {0};
	int error = toml_parse(source->bytes, source->length, &document, &trouble);

	if (error == -ENOSYS) {
		import_remark(&import, RULES_REMARK_ERROR, 0,
			"this program was built without TOML: apt-get install g++ "
			"libtomlplusplus-dev, then configure and build again");
		return -EINVAL;
	}
	if (error == -EINVAL || error == -E2BIG) {
		import_remark(&import, RULES_REMARK_ERROR, trouble.line, "%s", trouble.reason);
		return -EINVAL;
	}
	if (error != 0) {
		return error;
	}
	error = read_document(&import, &document.root);
	toml_free(&document);
	return error;
}

static int apply_globals(
	const struct import_globals *globals, struct import *import, uint32_t first)
{
	struct rules *rules = import->reader->rules;
	bool has_condition = globals->has_prefilter || globals->has_filter;

	for (uint32_t i = first; i < rules->count && import->error == 0; i++) {
		struct rule_filter *filter;

		if (globals->allowlists->count == 0 && !has_condition) {
			break;
		}
		filter = import_filter(import, &rules->items[i]);
		if (filter != NULL && globals->allowlists->count > 0) {
			filter->shared = rule_allowlists_share(globals->allowlists);
		}
		if (filter != NULL && has_condition) {
			import->error = rule_condition_share(filter, globals->condition);
		}
	}
	return import->error;
}

int rules_read_toml(struct rules_reader *reader, const struct rules_source *source)
{
	struct import_globals globals = {
		.allowlists = rule_allowlists_create(),
		.condition = rule_condition_shared_create(),
	};
	struct import import = {.reader = reader, .source = source, .globals = &globals};
	uint32_t first = reader->rules->count;
	int error = -ENOMEM;

	if (globals.allowlists != NULL && globals.condition != NULL) {
		error = read_file(&import, source);
	}
	if (error == 0 || error == -EINVAL) {
		int apply_error = apply_globals(&globals, &import, first);

		error = apply_error != 0 ? apply_error : error;
	}
	rule_allowlists_release(globals.allowlists);
	rule_condition_shared_release(globals.condition);
	return error;
}
