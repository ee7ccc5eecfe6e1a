/* SPDX-License-Identifier: MIT */
/*
 * What the process may have: locked memory, descriptors, memory of its cgroup,
 * huge pages.
 */
#include "tools/doctor/subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Fewer descriptors than this are fewer than a scan keeps open. */
	NOFILE_MIN = 1024,
};

static uint64_t arenas_bytes(const struct pinion_machine *machine)
{
	return (uint64_t)machine->default_worker_count * machine->default_arena_mib << 20;
}

static void examine_memlock(struct findings *findings, const struct pinion_machine *machine)
{
	uint64_t limit = machine->memlock_limit_bytes;
	uint64_t wanted = arenas_bytes(machine);
	char mend[160];

	findings_limit(findings, "memlock_kib", limit == UINT64_MAX ? limit : limit >> 10);
	findings_number(findings, "registered_by_default_kib", wanted >> 10);
	if (limit >= wanted || machine->ring_error != 0) {
		return;
	}
	snprintf(mend, sizeof(mend),
		"ulimit -l %llu (limits.conf: memlock), or LimitMEMLOCK=%lluM in the systemd unit",
		(unsigned long long)(2 * wanted >> 10), (unsigned long long)(2 * wanted >> 20));
	findings_problem(findings, VERDICT_DEGRADED,
		"some buffers will not be registered with io_uring; reads cost more CPU", mend);
}

/* Of the unified hierarchy; "" where the process is in none. */
static void find_cgroup(char *out, size_t size)
{
	char line[512];

	/* "0::/PATH" */
	if (doctor_line("/proc/self/cgroup", "0", line, sizeof(line)) && line[0] == ':') {
		snprintf(out, size, "%s", line + 1);
	} else {
		out[0] = '\0';
	}
}

static void examine_cgroup(struct findings *findings, const struct pinion_machine *machine)
{
	uint64_t limit = UINT64_MAX;
	char cgroup[512];
	char path[640];
	char line[64];

	find_cgroup(cgroup, sizeof(cgroup));
	findings_subject(findings, "cgroup");
	findings_text(findings, "path", cgroup[0] == '\0' ? "none" : cgroup);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", cgroup);
	if (doctor_line(path, NULL, line, sizeof(line)) && strcmp(line, "max") != 0) {
		limit = strtoull(line, NULL, 10);
	}
	findings_limit(findings, "memory_kib", limit == UINT64_MAX ? limit : limit >> 10);
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/pids.max", cgroup);
	if (doctor_line(path, NULL, line, sizeof(line))) {
		findings_text(findings, "pids_max", line);
	}
	if (limit < 2 * arenas_bytes(machine)) {
		findings_problem(findings, VERDICT_DEGRADED,
			"the buffers take more than half of the memory this cgroup may have",
			"PINION_BUFFER_COUNT=8, or raise memory.max: docker update --memory=1g "
			"CONTAINER");
	}
}

void doctor_limits(struct findings *findings, const struct pinion_machine *machine)
{
	findings_subject(findings, "limits");
	examine_memlock(findings, machine);
	findings_limit(findings, "descriptors", machine->nofile_limit);
	if (machine->nofile_limit < NOFILE_MIN) {
		findings_problem(findings, VERDICT_DEGRADED,
			"fewer descriptors than a scan keeps open at once",
			"ulimit -n 65536, or LimitNOFILE=65536 in the systemd unit");
	}
	examine_cgroup(findings, machine);
	findings_subject(findings, "huge_pages");
	findings_flag(findings, "transparent", machine->has_transparent_huge != 0);
	findings_number(findings, "free_of_2_mib", machine->huge_pages_free);
	if (machine->has_transparent_huge == 0 && machine->huge_pages_free == 0) {
		findings_problem(findings, VERDICT_DEGRADED,
			"buffers are on 4 KiB pages, which slows direct reads of some disks",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
	}
}
