/* SPDX-License-Identifier: MIT */
/*
 * What filters say: checking their expressions, and applying them to a finding.
 */
#include "tools/scan/rule_filter.h"

#include "tools/scan/byte_pairs.h"
#include "tools/scan/confirm.h"
#include "tools/scan/rules.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The expression, translated now if it was not. */
static int need_regex(enum rule_dialect dialect, struct rule_regex *regex,
	struct confirm_regex **out_regex, char out_reason[RULE_FILTER_REASON_BYTES])
{
	struct confirm_regex *made = __atomic_load_n(&regex->compiled, __ATOMIC_ACQUIRE);
	struct confirm_regex *other = NULL;
	char reason[REGEX_REASON_BYTES];
	uint32_t level = 0;
	int error = 0;

	if (made == NULL) {
		error = confirm_regex_create(dialect, CONFIRM_SCOPE_TEXTS, regex->pattern,
			strlen(regex->pattern), &level, &made, reason);
		if (error != 0) {
			snprintf(out_reason, RULE_FILTER_REASON_BYTES, "%.80s: %s", regex->pattern,
				reason);
			return error;
		}
		if (!__atomic_compare_exchange_n(&regex->compiled, &other, made, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			confirm_regex_destroy(made);
			made = other;
		}
	}
	*out_regex = made;
	return 0;
}

static int check_regex(enum rule_dialect dialect, struct rule_regex *regex,
	char out_reason[RULE_FILTER_REASON_BYTES])
{
	struct confirm_regex *made;
	char reason[REGEX_REASON_BYTES];
	int error = need_regex(dialect, regex, &made, out_reason);

	if (error == 0) {
		error = confirm_regex_check(made, reason);
		if (error != 0) {
			snprintf(out_reason, RULE_FILTER_REASON_BYTES, "%.80s: %s", regex->pattern,
				reason);
		}
	}
	return error;
}

int rule_regexes_check(enum rule_dialect dialect, struct rule_regexes *regexes,
	char out_reason[RULE_FILTER_REASON_BYTES])
{
	int error = 0;

	for (uint32_t i = 0; i < regexes->count && error == 0; i++) {
		error = check_regex(dialect, &regexes->items[i], out_reason);
	}
	return error;
}

static int check_lists(enum rule_dialect dialect, struct rule_allowlists *lists,
	char out_reason[RULE_FILTER_REASON_BYTES])
{
	int error = 0;

	if (lists == NULL || lists->is_checked) {
		return 0;
	}
	for (uint32_t i = 0; i < lists->count && error == 0; i++) {
		error = rule_regexes_check(dialect, &lists->items[i].regexes, out_reason);
		if (error == 0) {
			error = rule_regexes_check(dialect, &lists->items[i].paths, out_reason);
		}
	}
	lists->is_checked = error == 0;
	return error;
}

int rule_filter_check(struct rule_filter *filter, char out_reason[RULE_FILTER_REASON_BYTES])
{
	int error = check_lists(filter->dialect, filter->own, out_reason);

	if (error == 0) {
		error = check_lists(filter->dialect, filter->shared, out_reason);
	}
	if (error == 0 && filter->path.pattern != NULL) {
		error = check_regex(filter->dialect, &filter->path, out_reason);
	}
	return error;
}

/* With the first bounds of repeats that PCRE2 does not find too large. */
static int translate(struct rule *rule, char out_reason[RULE_FILTER_REASON_BYTES])
{
	struct rule_filter *filter = rule->filter;
	int error;

	do {
		confirm_regex_destroy(filter->pattern);
		filter->pattern = NULL;
		error = confirm_regex_create(filter->dialect, CONFIRM_SCOPE_PARTS, rule->pattern,
			rule->pattern_bytes, &filter->repeat_level, &filter->pattern, out_reason);
		if (error != 0) {
			return error;
		}
		error = confirm_regex_check(filter->pattern, out_reason);
	} while (error == -EINVAL && strstr(out_reason, "too large") != NULL &&
		++filter->repeat_level < REGEX_LEVEL_COUNT);
	return error;
}

int rule_make_confirmed(struct rule *rule)
{
	rule->filter = rule_filter_create(RULE_DIALECT_PCRE);
	if (rule->filter == NULL) {
		return -ENOMEM;
	}
	rule->filter->secret_is_match = true;
	return 0;
}

int rule_filter_translate(struct rule *rule, uint32_t repeat_level)
{
	struct rule_filter *filter = rule->filter;
	char reason[REGEX_REASON_BYTES];
	int error;

	confirm_regex_destroy(filter->pattern);
	filter->pattern = NULL;
	filter->repeat_level = repeat_level;
	error = confirm_regex_create(filter->dialect, CONFIRM_SCOPE_PARTS, rule->pattern,
		rule->pattern_bytes, &filter->repeat_level, &filter->pattern, reason);
	if (error == 0) {
		rule->min_width = confirm_regex_texts(filter->pattern)->min_width;
		rule->max_width = confirm_regex_texts(filter->pattern)->max_width;
	}
	return error;
}

int rule_filter_measure(struct rule *rule, char out_reason[RULE_FILTER_REASON_BYTES])
{
	int error = translate(rule, out_reason);
	const struct regex_texts *texts;

	if (error != 0) {
		return error == -ENOSYS ? -EINVAL : error;
	}
	texts = confirm_regex_texts(rule->filter->pattern);
	rule->min_width = texts->min_width;
	rule->max_width = texts->max_width;
	if (rule->filter->secret_group > texts->group_count) {
		snprintf(out_reason, RULE_FILTER_REASON_BYTES, "has no group %u to be the secret",
			rule->filter->secret_group);
		return -EINVAL;
	}
	return rule_filter_check(rule->filter, out_reason);
}

/* ---- findings ---- */

double rule_entropy(const uint8_t *bytes, size_t length)
{
	uint32_t counts[256] = {0};
	double bits = 0;

	for (size_t i = 0; i < length; i++) {
		counts[bytes[i]]++;
	}
	for (int i = 0; i < 256; i++) {
		if (counts[i] > 0) {
			double share = (double)counts[i] / (double)length;

			bits -= share * log2(share);
		}
	}
	return bits;
}

/* Where a part has no start, its first byte is context. */
static int search_part(enum rule_dialect dialect, struct rule_regexes *regexes,
	struct confirm_room *room, const struct confirm_part *part, struct confirm_match *out_match)
{
	for (uint32_t i = 0; i < regexes->count; i++) {
		struct confirm_regex *regex;
		char reason[RULE_FILTER_REASON_BYTES];
		int status = need_regex(dialect, &regexes->items[i], &regex, reason);

		if (status == 0) {
			status = confirm_regex_match(regex, room, part, part->has_start ? 0 : 1,
				part->length, 0, out_match);
		}
		if (status != 0) {
			return status;
		}
	}
	return 0;
}

int rule_regexes_search(enum rule_dialect dialect, struct rule_regexes *regexes,
	struct confirm_room *room, const uint8_t *text, size_t length, size_t *out_start,
	size_t *out_end)
{
	struct confirm_part part = {
		.bytes = text, .length = length, .has_start = true, .has_end = true};
	struct confirm_match match;
	int status = search_part(dialect, regexes, room, &part, &match);

	if (status == 1) {
		*out_start = match.start;
		*out_end = match.end;
	}
	return status;
}

/* 1: one of the expressions matches somewhere in the text. */
static int match_any(enum rule_dialect dialect, struct rule_regexes *regexes,
	struct confirm_room *room, const uint8_t *text, size_t length)
{
	size_t start;
	size_t end;

	return rule_regexes_search(dialect, regexes, room, text, length, &start, &end);
}

static uint8_t lower(uint8_t byte)
{
	return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + ('a' - 'A')) : byte;
}

static bool contains(const uint8_t *text, size_t length, const char *word, size_t size)
{
	for (size_t from = 0; from + size <= length; from++) {
		size_t i = 0;

		while (i < size && lower(text[from + i]) == lower((uint8_t)word[i])) {
			i++;
		}
		if (i == size) {
			return true;
		}
	}
	return false;
}

static bool may_contain(const struct byte_pairs *pairs, const char *word, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)word;

	return size < 2 ||
		(byte_pairs_have(pairs, lower(bytes[0]), lower(bytes[1])) &&
			byte_pairs_have(pairs, lower(bytes[size - 2]), lower(bytes[size - 1])));
}

static bool contains_any(const struct rule_words *words, const struct rule_subject *subject)
{
	const uint8_t *secret = subject->secret;
	struct byte_pairs pairs = {{0}};
	bool has_pairs = words->count >= BYTE_PAIRS_WORDS_MIN;

	for (size_t i = 1; has_pairs && i < subject->secret_bytes; i++) {
		byte_pairs_add(&pairs, lower(secret[i - 1]), lower(secret[i]));
	}
	for (uint32_t i = 0; i < words->count; i++) {
		size_t size = strlen(words->items[i]);

		if ((!has_pairs || may_contain(&pairs, words->items[i], size)) &&
			contains(secret, subject->secret_bytes, words->items[i], size)) {
			return true;
		}
	}
	return false;
}

static int match_target(enum rule_dialect dialect, struct rule_allowlist *list,
	struct confirm_room *room, const struct rule_subject *subject)
{
	struct confirm_part line = {
		.bytes = subject->line,
		.length = subject->line_bytes,
		.has_start = !subject->line_is_cut,
		.has_end = !subject->line_end_is_cut,
	};
	struct confirm_match match;

	switch (list->target) {
	case RULE_TARGET_MATCH:
		return match_any(
			dialect, &list->regexes, room, subject->match, subject->match_bytes);
	case RULE_TARGET_LINE:
		return search_part(dialect, &list->regexes, room, &line, &match);
	case RULE_TARGET_SECRET:
		break;
	}
	return match_any(dialect, &list->regexes, room, subject->secret, subject->secret_bytes);
}

static bool has_commit(const struct rule_words *words, const struct rule_subject *subject)
{
	for (uint32_t i = 0; subject->commit != NULL && i < words->count; i++) {
		if (strcasecmp(words->items[i], subject->commit) == 0) {
			return true;
		}
	}
	return false;
}

enum { ALLOWED = 1, ALLOWED_BY_COMMIT = 2 };

/* 0 or one of these. */
static int is_allowed(enum rule_dialect dialect, struct rule_allowlist *list,
	struct confirm_room *room, const struct rule_subject *subject)
{
	bool is_of_commit = has_commit(&list->commits, subject);
	uint32_t kinds = 0;
	uint32_t held = 0;
	int status;

	if (list->regexes.count > 0) {
		status = match_target(dialect, list, room, subject);
		if (status < 0) {
			return status;
		}
		kinds++;
		held += status == 1;
	}
	if (list->paths.count > 0) {
		status = match_any(dialect, &list->paths, room, (const uint8_t *)subject->path,
			subject->path_bytes);
		if (status < 0) {
			return status;
		}
		kinds++;
		held += status == 1;
	}
	if (list->stopwords.count > 0) {
		kinds++;
		held += contains_any(&list->stopwords, subject);
	}
	if (list->commits.count > 0 && (list->needs_all || held == 0)) {
		return is_of_commit && (held == kinds || !list->needs_all) ? ALLOWED_BY_COMMIT : 0;
	}
	return list->needs_all ? kinds > 0 && held == kinds : held > 0;
}

/* Of all lists: the commit counts where nothing else allows it. */
static int is_allowed_by_any(enum rule_dialect dialect, struct rule_allowlists *lists,
	struct confirm_room *room, const struct rule_subject *subject)
{
	int allowed = 0;

	for (uint32_t i = 0; lists != NULL && i < lists->count; i++) {
		int status = is_allowed(dialect, &lists->items[i], room, subject);

		if (status < 0 || status == ALLOWED) {
			return status;
		}
		allowed = status == 0 ? allowed : status;
	}
	return allowed;
}

int rule_filter_decide(
	struct rule_filter *filter, struct confirm_room *room, struct rule_subject *subject)
{
	int shared = 0;
	int status;

	subject->entropy = rule_entropy(subject->secret, subject->secret_bytes);
	if (filter->entropy_min > 0 && subject->entropy <= filter->entropy_min) {
		return 0;
	}
	status = is_allowed_by_any(filter->dialect, filter->own, room, subject);
	if (status == 0 || status == ALLOWED_BY_COMMIT) {
		shared = is_allowed_by_any(filter->dialect, filter->shared, room, subject);
	}
	if (status < 0 || shared < 0) {
		return status < 0 ? status : shared;
	}
	if (status == ALLOWED || shared == ALLOWED) {
		return 0;
	}
	subject->is_of_allowed_commit = status != 0 || shared != 0;
	return filter->condition.object == NULL ||
		filter->condition.keeps(filter->condition.object, subject);
}

int rule_filter_takes_path(
	struct rule_filter *filter, struct confirm_room *room, const char *path, size_t path_bytes)
{
	struct rule_regexes one = {.items = &filter->path, .count = 1};

	if (filter->path.pattern == NULL) {
		return 1;
	}
	return match_any(filter->dialect, &one, room, (const uint8_t *)path, path_bytes);
}
