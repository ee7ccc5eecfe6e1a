/* SPDX-License-Identifier: MIT */
/*
 * Rules by their ids, in a table of hsearch_r(3).
 */
#include "tools/scan/rule_ids.h"

#include <stdint.h>

bool rule_ids_init(struct rule_ids *ids, const struct rules *rules, uint32_t first, uint32_t more)
{
	*ids = (struct rule_ids){.first = first};
	if (hcreate_r(rules->count - first + more + 1, &ids->table) == 0) {
		return false;
	}
	ids->is_made = true;
	for (uint32_t i = first; i < rules->count; i++) {
		ENTRY entry = {.key = rules->items[i].id, .data = (void *)(uintptr_t)i};
		ENTRY *found;

		hsearch_r(entry, ENTER, &found, &ids->table);
	}
	return true;
}

void rule_ids_fini(struct rule_ids *ids)
{
	if (ids->is_made) {
		hdestroy_r(&ids->table);
	}
}

uint32_t rule_ids_find(struct rule_ids *ids, const char *id)
{
	ENTRY wanted = {.key = (char *)id};
	ENTRY *found;

	return hsearch_r(wanted, FIND, &found, &ids->table) == 0 ? UINT32_MAX
								 : (uint32_t)(uintptr_t)found->data;
}

void rule_ids_add(struct rule_ids *ids, char *id, uint32_t rule)
{
	ENTRY entry = {.key = id, .data = (void *)(uintptr_t)rule};
	ENTRY *found;

	hsearch_r(entry, ENTER, &found, &ids->table);
}
