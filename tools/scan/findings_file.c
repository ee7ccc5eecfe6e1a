/* SPDX-License-Identifier: MIT */
/*
 * The states of rules are in one array, by rule: few rules have candidates in a
 * file.
 */
#include "tools/scan/findings_file.h"

#include "tools/growing.h"
#include "tools/scan/confirm.h"

#include <stdlib.h>
#include <string.h>

void findings_init(struct findings *findings, const struct rules *rules)
{
	*findings = (struct findings){.rules = rules};
	for (uint32_t i = 0; i < rules->count; i++) {
		if (rules->items[i].max_width > findings->widest) {
			findings->widest = rules->items[i].max_width;
		}
	}
}

void findings_file_init(struct findings_file *file)
{
	pthread_mutex_init(&file->lock, NULL);
	file->is_ready = true;
}

void findings_file_fini(struct findings_file *file)
{
	if (!file->is_ready) {
		return;
	}
	while (file->waiting != NULL) {
		early_windows_free(early_windows_take(&file->waiting, 0, true));
	}
	for (size_t i = 0; i < file->rule_count; i++) {
		candidates_free(&file->rules[i].open);
	}
	free(file->rules);
	free(file->over.bits);
	finding_list_free(&file->held);
	snippets_free(&file->snippets);
	confirm_room_destroy(file->room);
	pthread_mutex_destroy(&file->lock);
	memset(file, 0, sizeof(*file));
}

struct findings_rule *findings_file_rule(struct findings_file *file, uint32_t rule)
{
	size_t low = 0;
	size_t high = file->rule_count;
	struct findings_rule *rules;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->rules[middle].rule < rule) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	if (low < file->rule_count && file->rules[low].rule == rule) {
		return &file->rules[low];
	}
	rules = growing_make_room(
		file->rules, file->rule_count, &file->rule_capacity, sizeof(*rules));
	if (rules == NULL) {
		return NULL;
	}
	file->rules = rules;
	memmove(&file->rules[low + 1], &file->rules[low],
		(file->rule_count - low) * sizeof(*file->rules));
	file->rules[low] = (struct findings_rule){.rule = rule};
	file->rule_count++;
	return &file->rules[low];
}
