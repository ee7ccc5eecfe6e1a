/* SPDX-License-Identifier: MIT */
/*
 * Values of a TOML file of rules by their kinds, and remarks on them.
 */
#include "tools/scan/rules_import.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REMARK_BYTES = 512 };

void import_remark(
	struct import *import, enum rules_remark remark, uint32_t line, const char *format, ...)
{
	char reason[REMARK_BYTES];
	size_t length = 0;
	va_list arguments;

	if (remark == RULES_REMARK_UNSUPPORTED) {
		import->unsupported_count++;
		import->reader->rules->unsupported_count++;
		if (import->reader->is_strict) {
			remark = RULES_REMARK_ERROR;
		} else if (!import->reader->names_all &&
			import->unsupported_count > RULES_UNSUPPORTED_MAX) {
			return;
		}
	}
	import->is_bad = import->is_bad || remark == RULES_REMARK_ERROR;
	if (import->rule_id != NULL) {
		length = (size_t)snprintf(reason, sizeof(reason), "rule %.128s: ", import->rule_id);
	}
	va_start(arguments, format);
	vsnprintf(reason + length, sizeof(reason) - length, format, arguments);
	va_end(arguments);
	import->reader->remark(remark, import->source->file, line, reason);
}

static const char *kind_name(enum toml_kind kind)
{
	static const char *const names[] = {
		[TOML_TABLE] = "a table",
		[TOML_ARRAY] = "a list",
		[TOML_STRING] = "a text",
		[TOML_INTEGER] = "a whole number",
		[TOML_FLOAT] = "a number",
		[TOML_BOOLEAN] = "true or false",
		[TOML_TIME] = "a time",
	};

	return names[kind];
}

const struct toml_value *import_find(
	struct import *import, const struct toml_value *table, const char *key, enum toml_kind kind)
{
	const struct toml_value *value = toml_find(table, key);

	if (value != NULL && value->kind != kind) {
		import_remark(import, RULES_REMARK_ERROR, value->line, "%s has to be %s, not %s",
			key, kind_name(kind), kind_name(value->kind));
		return NULL;
	}
	return value;
}

const struct toml_value *import_text(
	struct import *import, const struct toml_value *table, const char *key)
{
	const struct toml_value *value = import_find(import, table, key, TOML_STRING);

	if (value != NULL && strlen(value->text) != value->length) {
		import_remark(import, RULES_REMARK_ERROR, value->line,
			"%s holds a NUL (write it as \\x00)", key);
		return NULL;
	}
	return value;
}

bool import_truth(struct import *import, const struct toml_value *table, const char *key)
{
	const struct toml_value *value = import_find(import, table, key, TOML_BOOLEAN);

	return value != NULL && value->truth;
}

double import_number(
	struct import *import, const struct toml_value *table, const char *key, double max)
{
	const struct toml_value *value = toml_find(table, key);

	if (value == NULL) {
		return 0;
	}
	if (value->kind != TOML_INTEGER && value->kind != TOML_FLOAT) {
		import_remark(import, RULES_REMARK_ERROR, value->line,
			"%s has to be a number, not %s", key, kind_name(value->kind));
		return 0;
	}
	if (!(value->number >= 0 && value->number <= max)) {
		import_remark(import, RULES_REMARK_ERROR, value->line, "%s has to be 0 to %.0f",
			key, max);
		return 0;
	}
	return value->number;
}

void import_texts(struct import *import, const struct toml_value *table, const char *key,
	int (*add)(void *list, const char *text), void *list)
{
	const struct toml_value *array = import_find(import, table, key, TOML_ARRAY);

	for (uint32_t i = 0; array != NULL && i < array->child_count; i++) {
		const struct toml_value *value = &array->children[i];

		if (value->kind != TOML_STRING || strlen(value->text) != value->length) {
			import_remark(import, RULES_REMARK_ERROR, value->line,
				"%s has something that is no text", key);
		} else if (import->error == 0) {
			import->error = add(list, value->text);
		}
	}
}

const struct toml_value *import_next_table(
	const struct toml_value *value, const struct toml_value *previous)
{
	if (value == NULL) {
		return NULL;
	}
	if (value->kind == TOML_TABLE) {
		return previous == NULL ? value : NULL;
	}
	for (const struct toml_value *next = previous == NULL ? value->children : previous + 1;
		value->kind == TOML_ARRAY && next < value->children + value->child_count; next++) {
		if (next->kind == TOML_TABLE) {
			return next;
		}
	}
	return NULL;
}

void import_unknown_keys(
	struct import *import, const struct toml_value *table, const char *const *known)
{
	for (uint32_t i = 0; i < table->child_count; i++) {
		const char *key = table->children[i].key;
		bool is_known = false;

		for (int k = 0; known[k] != NULL; k++) {
			is_known = is_known || strcmp(known[k], key) == 0;
		}
		if (!is_known) {
			import_remark(import, RULES_REMARK_UNSUPPORTED, table->children[i].line,
				"%.64s is not known", key);
		}
	}
}
