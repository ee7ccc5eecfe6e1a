/* SPDX-License-Identifier: MIT */
/*
 * The built-in rules as one list: the families of tools/scan/builtin/, one
 * after the other.
 */
#include "tools/scan/builtin/families.h"

#include <assert.h>
#include <stddef.h>

static const struct rule_family *const families[] = {
	&rules_ai,
	&rules_cloud,
	&rules_code,
	&rules_keys,
	&rules_pay,
	&rules_talk,
	&rules_watch,
	&rules_work,
};
enum { FAMILY_COUNT = sizeof(families) / sizeof(families[0]), RULES_MAX = 512 };

const struct rule_family *const *rules_families(uint32_t *out_count)
{
	*out_count = FAMILY_COUNT;
	return families;
}

const struct rule_builtin *rules_builtin(uint32_t *out_count)
{
	static struct rule_builtin list[RULES_MAX];
	static uint32_t count;

	if (count == 0) {
		for (size_t i = 0; i < FAMILY_COUNT; i++) {
			for (uint32_t rule = 0; rule < families[i]->count; rule++) {
				assert(count < RULES_MAX);
				list[count++] = families[i]->rules[rule];
			}
		}
	}
	*out_count = count;
	return list;
}
