/* SPDX-License-Identifier: MIT */
/*
 * The smallest quota of the groups this process is in.
 */
#include "runtime/host/cgroup.h"

/* "150000 100000" or "max 100000". */
static uint64_t read_v2(const struct pin_cgroup *group)
{
	unsigned long long quota_us = 0;
	unsigned long long period_us = 0;
	FILE *file = pin_cgroup_open(group, "cpu.max");

	if (file != NULL) {
		if (fscanf(file, "%llu %llu", &quota_us, &period_us) != 2) {
			period_us = 0;
		}
		fclose(file);
	}
	return period_us == 0 ? 0 : quota_us * 1000 / period_us + (quota_us == 0);
}

static long long read_v1_number(const struct pin_cgroup *group, const char *name)
{
	long long number = -1;
	FILE *file = pin_cgroup_open(group, name);

	if (file != NULL) {
		if (fscanf(file, "%lld", &number) != 1) {
			number = -1;
		}
		fclose(file);
	}
	return number;
}

/* A quota of -1 means none. */
static uint64_t read_v1(const struct pin_cgroup *group)
{
	long long quota_us = read_v1_number(group, "cpu.cfs_quota_us");
	long long period_us = read_v1_number(group, "cpu.cfs_period_us");

	if (quota_us <= 0 || period_us <= 0) {
		return 0;
	}
	return (uint64_t)quota_us * 1000 / (uint64_t)period_us;
}

static void keep_smallest(void *arg, const struct pin_cgroup *group)
{
	uint64_t *smallest = arg;
	uint64_t quota = group->is_v2 ? read_v2(group) : read_v1(group);

	if (quota != 0 && (*smallest == 0 || quota < *smallest)) {
		*smallest = quota;
	}
}

uint32_t pin_quota_millicpus(const char *root)
{
	uint64_t smallest = 0;

	pin_cgroup_visit(root, "cpu", keep_smallest, &smallest);
	return smallest > UINT32_MAX ? 0 : (uint32_t)smallest;
}
