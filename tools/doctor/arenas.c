/* SPDX-License-Identifier: MIT */
/*
 * What memory and which CPUs a runtime really gets, by starting one as the
 * commands do.
 */
#include "tools/doctor/subjects.h"
#include "tools/report.h"

#include <sched.h>

/* Each on its own thread, bound, in a place of its own. */
static int note_cpu(void *arg, uint32_t worker_index, void **out_context)
{
	struct doctor_workers *workers = arg;

	(void)out_context;
	if (worker_index < DOCTOR_WORKERS_MAX) {
		workers->cpus[worker_index] = sched_getcpu();
	}
	return 0;
}

void doctor_arenas(struct findings *findings, struct doctor_workers *out_workers)
{
	struct pinion_runtime_info facts;
	struct pinion_runtime *runtime;
	struct pinion_config config;
	struct pinion_tuning tuning;
	int rc;

	findings_subject(findings, "buffers");
	out_workers->count = 0;
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.after_start = note_cpu;
	config.hook_arg = out_workers;
	rc = pinion_config_from_env(&config, &tuning);
	if (rc == 0) {
		/* All at once, so that it shows what the machine gives. */
		tuning.buffer_rest_ms = 0;
		config.tuning = &tuning;
		rc = pinion_runtime_create(&config, &runtime);
	}
	if (rc != 0) {
		findings_problem(findings, VERDICT_UNUSABLE, report_reason(rc),
			"PINION_BUFFER_COUNT=1 PINION_SMALL_BUFFER_COUNT=8, "
			"or lift the limit named above");
		return;
	}
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	pinion_runtime_destroy(runtime);
	out_workers->count =
		facts.worker_count < DOCTOR_WORKERS_MAX ? facts.worker_count : DOCTOR_WORKERS_MAX;
	findings_number(findings, "arena_kib", facts.arena_bytes >> 10);
	findings_number(findings, "large_for_each_worker", facts.buffer_count);
	findings_number(findings, "on_huge_pages_kib", facts.huge_bytes >> 10);
	findings_number(findings, "of_these_set_aside_kib", facts.hugetlb_bytes >> 10);
	findings_flag(findings, "pages_examined", facts.arenas_unexamined == 0);
	if (facts.local_permille != UINT32_MAX) {
		findings_number(findings, "on_own_node_permille", facts.local_permille);
	}
	findings_number(findings, "registered_kib", facts.registered_bytes >> 10);
	findings_flag(findings, "on_every_ring", facts.arenas_shared == facts.worker_count);
	if (facts.huge_bytes < facts.arena_bytes && facts.arenas_unexamined == 0) {
		findings_problem(findings, VERDICT_DEGRADED,
			"not all buffers are on huge pages, which slows direct reads of some disks",
			"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled, or sysctl "
			"vm.nr_hugepages=N");
	}
}
