/* SPDX-License-Identifier: MIT */
/*
 * Making and freeing filters.
 */
#include "tools/scan/rule_filter.h"

#include "tools/scan/confirm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more item of `bytes`. Returns the list, moved; NULL: none. */
static void *reserve(void *items, uint32_t count, uint32_t *capacity, size_t bytes)
{
	uint32_t grown = *capacity == 0 ? 4 : *capacity * 2;

	if (count < *capacity) {
		return items;
	}
	items = realloc(items, grown * bytes);
	if (items != NULL) {
		*capacity = grown;
	}
	return items;
}

int rule_words_add(struct rule_words *words, const char *word)
{
	char *copy = strdup(word);
	char **items = reserve(words->items, words->count, &words->capacity, sizeof(*items));

	if (items != NULL) {
		words->items = items;
	}
	if (copy == NULL || items == NULL) {
		free(copy);
		return -ENOMEM;
	}
	items[words->count++] = copy;
	return 0;
}

static void words_free(struct rule_words *words)
{
	for (uint32_t i = 0; i < words->count; i++) {
		free(words->items[i]);
	}
	free(words->items);
}

int rule_regexes_add(struct rule_regexes *regexes, const char *pattern)
{
	char *copy = strdup(pattern);
	struct rule_regex *items =
		reserve(regexes->items, regexes->count, &regexes->capacity, sizeof(*items));

	if (items != NULL) {
		regexes->items = items;
	}
	if (copy == NULL || items == NULL) {
		free(copy);
		return -ENOMEM;
	}
	items[regexes->count++] = (struct rule_regex){.pattern = copy};
	return 0;
}

int rule_text_set(char **text, const char *value)
{
	char *copy = strdup(value);

	if (copy == NULL) {
		return -ENOMEM;
	}
	free(*text);
	*text = copy;
	return 0;
}

int rule_filter_add_companion(struct rule_filter *filter, const struct rule_companion *companion)
{
	char *id = strdup(companion->rule_id);
	struct rule_companion *items = reserve(filter->companions, filter->companion_count,
		&filter->companion_capacity, sizeof(*items));

	if (items != NULL) {
		filter->companions = items;
	}
	if (id == NULL || items == NULL) {
		free(id);
		return -ENOMEM;
	}
	items[filter->companion_count] = *companion;
	items[filter->companion_count].rule_id = id;
	items[filter->companion_count].rule = UINT32_MAX;
	filter->companion_count++;
	return 0;
}

/* ---- allowlists ---- */

struct rule_allowlists *rule_allowlists_create(void)
{
	struct rule_allowlists *lists = calloc(1, sizeof(*lists));

	if (lists != NULL) {
		lists->owner_count = 1;
	}
	return lists;
}

struct rule_allowlist *rule_allowlists_add(struct rule_allowlists *lists)
{
	struct rule_allowlist *items =
		reserve(lists->items, lists->count, &lists->capacity, sizeof(*items));

	if (items == NULL) {
		return NULL;
	}
	lists->items = items;
	items[lists->count] = (struct rule_allowlist){0};
	return &items[lists->count++];
}

struct rule_allowlists *rule_allowlists_share(struct rule_allowlists *lists)
{
	lists->owner_count++;
	return lists;
}

static void regex_free(struct rule_regex *regex)
{
	confirm_regex_destroy(regex->compiled);
	free(regex->pattern);
}

static void regexes_free(struct rule_regexes *regexes)
{
	for (uint32_t i = 0; i < regexes->count; i++) {
		regex_free(&regexes->items[i]);
	}
	free(regexes->items);
}

void rule_allowlists_release(struct rule_allowlists *lists)
{
	if (lists == NULL || --lists->owner_count > 0) {
		return;
	}
	for (uint32_t i = 0; i < lists->count; i++) {
		struct rule_allowlist *list = &lists->items[i];

		free(list->description);
		regexes_free(&list->regexes);
		regexes_free(&list->paths);
		words_free(&list->stopwords);
		words_free(&list->commits);
	}
	free(lists->items);
	free(lists);
}

/* ---- the filter ---- */

struct rule_filter *rule_filter_create(enum rule_dialect dialect)
{
	struct rule_filter *filter = calloc(1, sizeof(*filter));

	if (filter == NULL) {
		return NULL;
	}
	filter->dialect = dialect;
	filter->own = rule_allowlists_create();
	if (filter->own == NULL) {
		free(filter);
		return NULL;
	}
	return filter;
}

void rule_filter_destroy(struct rule_filter *filter)
{
	if (filter == NULL) {
		return;
	}
	for (uint32_t i = 0; i < filter->companion_count; i++) {
		free(filter->companions[i].rule_id);
	}
	free(filter->companions);
	if (filter->condition.object != NULL && filter->condition.destroy != NULL) {
		filter->condition.destroy(filter->condition.object);
	}
	rule_allowlists_release(filter->own);
	rule_allowlists_release(filter->shared);
	regex_free(&filter->path);
	confirm_regex_destroy(filter->pattern);
	words_free(&filter->keywords);
	words_free(&filter->tags);
	free(filter->description);
	free(filter);
}
