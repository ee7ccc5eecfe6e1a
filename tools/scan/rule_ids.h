/* SPDX-License-Identifier: MIT */
/*
 * Rules by their ids: a file may have many thousands.
 */
#ifndef PINION_TOOLS_SCAN_RULE_IDS_H
#define PINION_TOOLS_SCAN_RULE_IDS_H

#include "tools/scan/rules.h"

#include <search.h>
#include <stdbool.h>
#include <stdint.h>

struct rule_ids {
	struct hsearch_data table;
	uint32_t first;
	bool is_made;
};

/*
 * Of the rules from `first` on, with room for `more`. The rules' ids stay where
 * they are until the end. False: no memory.
 */
bool rule_ids_init(struct rule_ids *ids, const struct rules *rules, uint32_t first, uint32_t more);
void rule_ids_fini(struct rule_ids *ids);

/* The first rule with that id; UINT32_MAX: there is none. */
uint32_t rule_ids_find(struct rule_ids *ids, const char *id);

/* One rule more. */
void rule_ids_add(struct rule_ids *ids, char *id, uint32_t rule);

#endif
