/* SPDX-License-Identifier: MIT */
/*
 * Finding the rules compiled when the program was built.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_shipped.h"

#include <string.h>

/* Made by the build; defines hyperscan_shipped. */
#include "tools/scan/shipped_rules.inc"

struct hyperscan_target hyperscan_target_here(void)
{
	struct hyperscan_target target = {.version = hs_version()};
	hs_platform_info_t platform;

	if (hs_populate_platform(&platform) == HS_SUCCESS) {
		target.cpu_features = platform.cpu_features;
	}
	return target;
}

static bool is_same_library(const struct hyperscan_target *target)
{
	return hyperscan_shipped.version != NULL &&
		strcmp(hyperscan_shipped.version, target->version) == 0;
}

static bool is_same_list(const struct hyperscan_list *list)
{
	if (list->count != hyperscan_shipped.rule_count || list->mode != hyperscan_shipped.mode) {
		return false;
	}
	for (unsigned i = 0; i < list->count; i++) {
		if (list->ids[i] != i || list->flags[i] != hyperscan_shipped.flags ||
			strcmp(list->expressions[i], hyperscan_shipped.rules[i].expression) != 0) {
			return false;
		}
	}
	return true;
}

hs_database_t *hyperscan_shipped_find(
	const struct hyperscan_list *list, const struct hyperscan_target *target)
{
	if (!is_same_library(target) || !is_same_list(list)) {
		return NULL;
	}
	for (unsigned i = 0; i < hyperscan_shipped.database_count; i++) {
		const struct hyperscan_shipped_database *shipped = &hyperscan_shipped.databases[i];
		hs_database_t *database = NULL;

		/* The library checks version, processor and a checksum. */
		if (shipped->cpu_features == target->cpu_features &&
			hs_deserialize_database((const char *)shipped->bytes, shipped->size,
				&database) == HS_SUCCESS) {
			return database;
		}
	}
	return NULL;
}

bool hyperscan_shipped_measure(const char *expression, const struct hyperscan_target *target,
	struct hyperscan_widths *out_widths)
{
	if (!is_same_library(target)) {
		return false;
	}
	for (unsigned i = 0; i < hyperscan_shipped.rule_count; i++) {
		if (strcmp(expression, hyperscan_shipped.rules[i].expression) == 0) {
			*out_widths = hyperscan_shipped.rules[i].widths;
			return true;
		}
	}
	return false;
}

#endif
