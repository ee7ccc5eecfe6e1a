/* SPDX-License-Identifier: MIT */
/*
 * Devices and the workers that read them: on one NUMA node, or far apart.
 */
#include "tools/doctor/subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a list as "0-3,8": whether it names that CPU. */
static bool list_has(const char *list, unsigned long cpu)
{
	while (*list >= '0' && *list <= '9') {
		char *end;
		unsigned long first = strtoul(list, &end, 10);
		unsigned long last = *end == '-' ? strtoul(end + 1, &end, 10) : first;

		if (cpu >= first && cpu <= last) {
			return true;
		}
		list = *end == ',' ? end + 1 : end;
	}
	return false;
}

static uint32_t count_near(const struct doctor_workers *workers, const char *list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < workers->count; i++) {
		count += workers->cpus[i] >= 0 && list_has(list, (unsigned long)workers->cpus[i]);
	}
	return count;
}

void doctor_distance(struct findings *findings, const char *root, uint32_t node_index,
	const struct doctor_workers *workers)
{
	char path[256];
	char list[256];
	char mend[1024];
	uint32_t near_count;

	findings_number(findings, "numa_node", node_index);
	snprintf(path, sizeof(path), "%s/sys/devices/system/node/node%u/cpulist", root, node_index);
	if (workers->count == 0 || !doctor_line(path, NULL, list, sizeof(list)) ||
		list[0] == '\0') {
		return; /* no CPU there: nothing could be nearer */
	}
	near_count = count_near(workers, list);
	findings_number(findings, "workers_near", near_count);
	if (near_count == 0) {
		snprintf(mend, sizeof(mend),
			"taskset -c %s PROGRAM, or where a cpuset has none of these CPUs: "
			"systemctl set-property UNIT AllowedCPUs=%s",
			list, list);
		findings_problem(findings, VERDICT_DEGRADED,
			"no worker of a runtime of default size is on the node of this device: all "
			"it reads crosses between nodes",
			mend);
	}
}
