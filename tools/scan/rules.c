/* SPDX-License-Identifier: MIT */
/*
 * The list of rules a scan runs with.
 */
#include "tools/scan/rules.h"

#include "tools/scan/rule_filter.h"
#include "tools/scan/rule_ids.h"
#include "tools/scan/rules_cache.h"
#include "tools/scan/yara_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_bytes(const char *bytes, size_t length)
{
	char *copy = malloc(length + 1);

	if (copy != NULL) {
		memcpy(copy, bytes, length);
		copy[length] = '\0';
	}
	return copy;
}

static int reserve(struct rules *rules)
{
	uint32_t capacity = rules->capacity == 0 ? 64 : rules->capacity * 2;
	struct rule *items;

	if (rules_total(rules) < rules->capacity) {
		return 0;
	}
	items = realloc(rules->items, capacity * sizeof(*items));
	if (items == NULL) {
		return -ENOMEM;
	}
	rules->items = items;
	rules->capacity = capacity;
	return 0;
}

static bool is_beyond(const struct rules *rules, size_t pattern_bytes)
{
	return (rules->count_max != 0 && rules_total(rules) >= rules->count_max) ||
		(rules->bytes_max != 0 && pattern_bytes > rules->bytes_max - rules->bytes);
}

void rules_limit_reason(
	const struct rules *rules, size_t pattern_bytes, char out_reason[RULES_REASON_BYTES])
{
	if (rules->count_max != 0 && rules_total(rules) >= rules->count_max) {
		snprintf(out_reason, RULES_REASON_BYTES,
			"more than %u rules, which take long to compile (--max-rules=N raises the "
			"limit)",
			rules->count_max);
	} else {
		snprintf(out_reason, RULES_REASON_BYTES,
			"its %zu bytes make the patterns longer than %llu bytes in all "
			"(--max-rule-bytes=SIZE raises the limit)",
			pattern_bytes, (unsigned long long)rules->bytes_max);
	}
}

int rules_add(struct rules *rules, const char *id, const char *pattern, size_t pattern_bytes,
	bool is_literal)
{
	struct rule rule;

	if (is_beyond(rules, pattern_bytes)) {
		return -E2BIG;
	}
	rule = (struct rule){
		.id = copy_bytes(id, strlen(id)),
		.pattern = copy_bytes(pattern, pattern_bytes),
		.pattern_bytes = pattern_bytes,
		.is_literal = is_literal,
	};

	if (rule.id == NULL || rule.pattern == NULL || reserve(rules) != 0) {
		free(rule.id);
		free(rule.pattern);
		return -ENOMEM;
	}
	rules->items[rules_total(rules)] = rule;
	rules->count++;
	rules->bytes += pattern_bytes;
	return 0;
}

int rules_add_builtin(struct rules *rules, bool with_examples)
{
	uint32_t count;
	const struct rule_builtin *builtin = rules_builtin(&count);

	for (uint32_t i = 0; i < count; i++) {
		int error = rules_add(rules, builtin[i].id, builtin[i].pattern,
			strlen(builtin[i].pattern), false);

		if (error != 0) {
			return error;
		}
		rules->items[rules->count - 1].leaves_examples_out = !with_examples;
	}
	return 0;
}

int rules_add_yara(struct rules *rules, const char *id, const char *description, const char *file)
{
	char *copy = description == NULL ? NULL : strdup(description);
	struct rule *rule;
	int error =
		description != NULL && copy == NULL ? -ENOMEM : rules_add(rules, id, "", 0, false);

	if (error != 0) {
		free(copy);
		return error;
	}
	rule = &rules->items[rules_total(rules) - 1];
	rule->is_yara = true;
	rule->description = copy;
	rule->file = file;
	rule->max_width = RULE_WIDTH_WHOLE_FILE;
	rules->count--;
	rules->yara_count++;
	return 0;
}

void rules_set_filter(struct rules *rules, struct rule_filter *filter)
{
	rules->items[rules->count - 1].filter = filter;
}

static bool has_companions(const struct rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules->items[i].filter != NULL && rules->items[i].filter->companion_count > 0) {
			return true;
		}
	}
	return false;
}

/* False: the rule needs another that is not there, *out_missing. */
static bool resolve(
	struct rules *rules, struct rule_ids *ids, uint32_t rule, const char **out_missing)
{
	struct rule_filter *filter = rules->items[rule].filter;

	for (uint32_t i = 0; filter != NULL && i < filter->companion_count; i++) {
		struct rule_companion *companion = &filter->companions[i];

		companion->rule = rule_ids_find(ids, companion->rule_id);
		if (companion->rule == UINT32_MAX) {
			*out_missing = companion->rule_id;
			return false;
		}
		rules->items[companion->rule].is_companion = true;
		rules->has_companions = true;
	}
	return true;
}

int rules_resolve(struct rules *rules, uint32_t *out_rule, const char **out_missing)
{
	struct rule_ids ids;
	int error = 0;

	if (!has_companions(rules)) {
		return 0;
	}
	if (!rule_ids_init(&ids, rules, 0, 0)) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < rules->count && error == 0; i++) {
		if (!resolve(rules, &ids, i, out_missing)) {
			*out_rule = i;
			error = -EINVAL;
		}
	}
	rule_ids_fini(&ids);
	return error;
}

int rules_set_pattern(
	struct rules *rules, uint32_t index, const char *pattern, size_t pattern_bytes)
{
	struct rule *rule = &rules->items[index];
	uint64_t others_bytes = rules->bytes - rule->pattern_bytes;
	char *copy;

	if (rules->bytes_max != 0 && pattern_bytes > rules->bytes_max - others_bytes) {
		return -E2BIG;
	}
	copy = copy_bytes(pattern, pattern_bytes);
	if (copy == NULL) {
		return -ENOMEM;
	}
	free(rule->pattern);
	rule->pattern = copy;
	rule->pattern_bytes = pattern_bytes;
	rule->is_literal = false;
	rules->bytes = others_bytes + pattern_bytes;
	return 0;
}

static void rule_free(struct rule *rule)
{
	free(rule->id);
	free(rule->pattern);
	free(rule->description);
	rule_filter_destroy(rule->filter);
}

void rules_remove(struct rules *rules, uint32_t first, const bool *is_removed)
{
	uint32_t kept = first;

	for (uint32_t i = first; i < rules->count; i++) {
		if (is_removed[i - first]) {
			rules->bytes -= rules->items[i].pattern_bytes;
			rule_free(&rules->items[i]);
		} else {
			rules->items[kept++] = rules->items[i];
		}
	}
	rules->count = kept;
}

void rules_free(struct rules *rules)
{
	for (uint32_t i = 0; i < rules_total(rules); i++) {
		rule_free(&rules->items[i]);
	}
	yara_rules_destroy(rules->yara);
	rule_memory_free(&rules->memory);
	rules_cached_destroy(rules->cached);
	free(rules->items);
	*rules = (struct rules){0};
}
