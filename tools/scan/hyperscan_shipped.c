/* SPDX-License-Identifier: MIT */
/*
 * Finding the rules compiled when the program was built.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_shipped.h"

#include <pthread.h>
#include <string.h>

/* Made by the build; defines hyperscan_shipped. */
#include "tools/scan/shipped_rules.inc"

static pthread_once_t here_once = PTHREAD_ONCE_INIT;
static struct hyperscan_target here;

static void find_here(void)
{
	hs_platform_info_t platform;

	here.version = hs_version();
	if (hs_populate_platform(&platform) == HS_SUCCESS) {
		here.cpu_features = platform.cpu_features;
	}
}

/*
 * Found once: each CPUID takes a virtual machine some 10 us, a platform several
 * of them, and there is a call for each rule.
 */
struct hyperscan_target hyperscan_target_here(void)
{
	(void)pthread_once(&here_once, find_here);
	return here;
}

struct hyperscan_target hyperscan_target_least(void)
{
	struct hyperscan_target least = hyperscan_target_here();

#if defined(__x86_64__)
	least.cpu_features = 0;
#endif
	return least;
}

static bool is_same_library(const struct hyperscan_target *target)
{
	return hyperscan_shipped.version != NULL &&
		strcmp(hyperscan_shipped.version, target->version) == 0;
}

static bool is_same_list(
	const struct hyperscan_list *list, const struct hyperscan_shipped_list *shipped)
{
	if (list->count != shipped->count || list->mode != shipped->mode) {
		return false;
	}
	for (unsigned i = 0; i < list->count; i++) {
		if (list->ids[i] != i || list->flags[i] != shipped->flags ||
			strcmp(list->expressions[i], shipped->expressions[i]) != 0) {
			return false;
		}
	}
	return true;
}

static const struct hyperscan_shipped_list *find_list(const struct hyperscan_list *list)
{
	for (unsigned i = 0; i < hyperscan_shipped.list_count; i++) {
		if (is_same_list(list, &hyperscan_shipped.lists[i])) {
			return &hyperscan_shipped.lists[i];
		}
	}
	return NULL;
}

hs_database_t *hyperscan_shipped_find(
	const struct hyperscan_list *list, const struct hyperscan_target *target)
{
	const struct hyperscan_shipped_list *found = find_list(list);

	if (!is_same_library(target) || found == NULL) {
		return NULL;
	}
	for (unsigned i = 0; i < found->database_count; i++) {
		const struct hyperscan_shipped_database *shipped = &found->databases[i];
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

bool hyperscan_shipped_has_rules(const struct hyperscan_target *target)
{
	const struct hyperscan_shipped_list *list = hyperscan_shipped.lists;

	for (unsigned i = 0; is_same_library(target) && i < list->database_count; i++) {
		if (list->databases[i].cpu_features == target->cpu_features) {
			return true;
		}
	}
	return false;
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
