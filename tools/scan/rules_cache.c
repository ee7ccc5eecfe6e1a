/* SPDX-License-Identifier: MIT */
/*
 * The form of an entry: a head, a record for each rule, the databases. It has
 * been checked when it comes here (cache_folder.h); lengths are checked again.
 */
#include "tools/scan/rules_cache.h"

#include "tools/scan/confirm.h"
#include "tools/scan/rule_filter.h"

#include <pinion/version.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Changes with the form of an entry and the meaning of its numbers. */
	FORM = 2,
	/* Less is compiled within some 20 ms. */
	PATTERN_BYTES_MIN = 2048,
};

struct head {
	uint32_t rule_count;
	uint32_t padding;
	uint64_t lengths[RULES_DATABASE_COUNT];
};

struct record {
	uint32_t min_width;
	uint32_t max_width;
	uint32_t repeat_level;
	uint32_t is_confirmed;
};

/* ---- the name ---- */

static void add_text(struct cache_naming *naming, const char *text)
{
	cache_naming_add(naming, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
}

static void add_regexes(struct cache_naming *naming, const struct rule_regexes *regexes)
{
	cache_naming_add(naming, &regexes->count, sizeof(regexes->count));
	for (uint32_t i = 0; i < regexes->count; i++) {
		add_text(naming, regexes->items[i].pattern);
	}
}

/* They have been checked where the set is in the cache. */
static void add_lists(struct cache_naming *naming, const struct rule_allowlists *lists)
{
	for (uint32_t i = 0; lists != NULL && i < lists->count; i++) {
		add_regexes(naming, &lists->items[i].regexes);
		add_regexes(naming, &lists->items[i].paths);
	}
}

static void add_filter(struct cache_naming *naming, const struct rule_filter *filter)
{
	uint32_t numbers[] = {(uint32_t)filter->dialect, filter->secret_group};

	cache_naming_add(naming, numbers, sizeof(numbers));
	/* What both libraries compile, if the widest bounds do. */
	if (filter->pattern != NULL) {
		add_text(naming, confirm_regex_texts(filter->pattern)->search);
		add_text(naming, confirm_regex_texts(filter->pattern)->confirm);
	}
	add_text(naming, filter->path.pattern);
	add_lists(naming, filter->own);
}

static bool make_name(const struct rules *rules, const char *versions, struct cache_name *out_name)
{
	const struct rule_allowlists *shared = NULL;
	struct cache_naming naming;
	uint32_t form = FORM;

	cache_naming_begin(&naming);
	cache_naming_add(&naming, &form, sizeof(form));
	add_text(&naming, PINION_VERSION_STRING);
	add_text(&naming, versions);
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];

		cache_naming_add(&naming, &rule->is_literal, sizeof(rule->is_literal));
		cache_naming_add(&naming, rule->pattern, rule->pattern_bytes);
		if (rule->filter != NULL) {
			add_filter(&naming, rule->filter);
			if (rule->filter->shared != shared) {
				shared = rule->filter->shared;
				add_lists(&naming, shared);
			}
		}
	}
	return cache_naming_end(&naming, out_name);
}

/* ---- the entry ---- */

/* The lengths add up to the entry's. */
static bool is_whole(const struct rules_cached *cached, const struct rules *rules)
{
	struct head head;
	uint64_t length = sizeof(head) + (uint64_t)rules->count * sizeof(struct record);

	if (cached->entry_bytes < sizeof(head)) {
		return false;
	}
	memcpy(&head, cached->entry, sizeof(head));
	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		if (head.lengths[i] > CACHE_ENTRY_BYTES_MAX) {
			return false;
		}
		length += head.lengths[i];
	}
	return head.rule_count == rules->count && length == cached->entry_bytes;
}

/* Sets the widths of a rule, and translates it with the bounds it had. */
static bool measure(const struct rules_cached *cached, uint32_t index, struct rule *rule)
{
	struct record record;

	memcpy(&record, cached->entry + sizeof(struct head) + index * sizeof(record),
		sizeof(record));
	/* As its pattern alone does not say. */
	if (record.is_confirmed != 0 && rule->filter == NULL) {
		if (rule_make_confirmed(rule) != 0 || rule_filter_translate(rule, 0) != 0) {
			return false;
		}
	}
	if (rule->filter != NULL && record.repeat_level != rule->filter->repeat_level &&
		rule_filter_translate(rule, record.repeat_level) != 0) {
		return false;
	}
	rule->min_width = record.min_width;
	rule->max_width = record.max_width;
	return true;
}

/* A bad pattern is reported later, as it is measured. */
static bool translate_all(struct rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules->items[i].filter != NULL &&
			rule_filter_translate(&rules->items[i], 0) != 0) {
			return false;
		}
	}
	return true;
}

bool rules_cached_find(struct rules *rules, const char *versions)
{
	struct rules_cached *cached;
	bool is_measured;

	if (rules->bytes < PATTERN_BYTES_MIN || rules->cached != NULL || !translate_all(rules)) {
		return false;
	}
	cached = calloc(1, sizeof(*cached));
	if (cached == NULL) {
		return false;
	}
	rules->cached = cached;
	cached->has_name = make_name(rules, versions, &cached->name);
	if (cached->has_name) {
		cached->entry = cache_folder_read(&cached->name, &cached->entry_bytes);
	}
	is_measured = cached->entry != NULL && is_whole(cached, rules);
	for (uint32_t i = 0; i < rules->count && is_measured; i++) {
		is_measured = measure(cached, i, &rules->items[i]);
	}
	if (!is_measured) {
		free(cached->entry);
		cached->entry = NULL;
	}
	return is_measured;
}

bool rules_cached_has(const struct rules *rules)
{
	return rules->cached != NULL && rules->cached->entry != NULL;
}

bool rules_cached_database(const struct rules_cached *cached, enum rules_database_kind kind,
	struct rules_database *out_database)
{
	struct head head;

	if (cached == NULL || cached->entry == NULL) {
		return false;
	}
	memcpy(&head, cached->entry, sizeof(head));
	out_database->bytes =
		cached->entry + sizeof(head) + head.rule_count * sizeof(struct record);
	for (int i = 0; i < (int)kind; i++) {
		out_database->bytes += head.lengths[i];
	}
	out_database->length = (size_t)head.lengths[kind];
	return true;
}

static uint8_t *append(uint8_t *end, const void *bytes, size_t length)
{
	memcpy(end, bytes, length);
	return end + length;
}

void rules_cached_store(const struct rules_cached *cached, const struct rules *rules,
	const struct rules_database databases[RULES_DATABASE_COUNT])
{
	struct head head = {.rule_count = rules->count};
	size_t length = sizeof(head) + rules->count * sizeof(struct record);
	uint8_t *entry;
	uint8_t *end;

	if (cached == NULL || !cached->has_name) {
		return;
	}
	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		head.lengths[i] = databases[i].length;
		length += databases[i].length;
	}
	entry = malloc(length);
	if (entry == NULL) {
		return;
	}
	end = append(entry, &head, sizeof(head));
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];
		struct record record = {
			.min_width = rule->min_width,
			.max_width = rule->max_width,
			.repeat_level = rule->filter != NULL ? rule->filter->repeat_level : 0,
			.is_confirmed = rule->filter != NULL,
		};

		end = append(end, &record, sizeof(record));
	}
	for (int i = 0; i < RULES_DATABASE_COUNT; i++) {
		if (databases[i].length > 0) {
			end = append(end, databases[i].bytes, databases[i].length);
		}
	}
	cache_folder_write(&cached->name, entry, length);
	free(entry);
}

void rules_cached_destroy(struct rules_cached *cached)
{
	if (cached != NULL) {
		free(cached->entry);
		free(cached);
	}
}
