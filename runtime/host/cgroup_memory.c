/* SPDX-License-Identifier: MIT */
/*
 * Reading limit, use and page cache of each group; the two versions have other
 * names for them, and their own word for "no limit".
 */
#include "runtime/host/cgroup.h"
#include "runtime/base/base.h"

#include <stdio.h>
#include <string.h>

/* Version 1 says "none" by a number close to 2^63. */
#define NO_LIMIT_V1 (UINT64_C(1) << 62)

struct names {
	const char *limit;
	const char *use;
	/* In memory.stat, with all groups below. */
	const char *cache[2];
};

static const struct names names_v1 = {
	.limit = "memory.limit_in_bytes",
	.use = "memory.usage_in_bytes",
	.cache = {"total_inactive_file", "total_active_file"},
};
static const struct names names_v2 = {
	.limit = "memory.max",
	.use = "memory.current",
	.cache = {"inactive_file", "active_file"},
};

/* UINT64_MAX for what is no number, as "max". */
static uint64_t read_number(const struct pin_cgroup *group, const char *name)
{
	unsigned long long number;
	uint64_t result = UINT64_MAX;
	FILE *file = pin_cgroup_open(group, name);

	if (file != NULL) {
		if (fscanf(file, "%llu", &number) == 1) {
			result = number;
		}
		fclose(file);
	}
	return result;
}

static uint64_t read_cache(const struct pin_cgroup *group, const struct names *names)
{
	char name[64];
	unsigned long long number;
	uint64_t sum = 0;
	FILE *file = pin_cgroup_open(group, "memory.stat");

	while (file != NULL && fscanf(file, "%63s %llu", name, &number) == 2) {
		for (size_t i = 0; i < PIN_ARRAY_COUNT(names->cache); i++) {
			sum += strcmp(name, names->cache[i]) == 0 ? number : 0;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
	return sum;
}

static void keep_tightest(void *arg, const struct pin_cgroup *group)
{
	struct pin_memlimit *tightest = arg;
	const struct names *names = group->is_v2 ? &names_v2 : &names_v1;
	uint64_t limit = read_number(group, names->limit);
	uint64_t used;
	uint64_t cache;

	if (limit >= NO_LIMIT_V1) {
		return;
	}
	used = read_number(group, names->use);
	if (used == UINT64_MAX) {
		used = 0;
	}
	cache = read_cache(group, names);
	used -= cache < used ? cache : used;
	if (limit - (used < limit ? used : limit) < tightest->free_bytes) {
		tightest->limit_bytes = limit;
		tightest->free_bytes = limit - (used < limit ? used : limit);
		snprintf(tightest->path, sizeof(tightest->path), "%s/%s", group->directory,
			names->limit);
	}
}

void pin_memlimit_find(const char *root, struct pin_memlimit *out_limit)
{
	*out_limit = (struct pin_memlimit){
		.limit_bytes = UINT64_MAX,
		.free_bytes = UINT64_MAX,
	};
	pin_cgroup_visit(root, "memory", keep_tightest, out_limit);
}
