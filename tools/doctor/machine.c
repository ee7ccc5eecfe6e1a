/* SPDX-License-Identifier: MIT */
/*
 * CPUs, the kernel, the highest level of io_uring it reaches and why not
 * further, and settings that may forbid it.
 */
#include "tools/doctor/subjects.h"

#include <errno.h>
#include <pinion/config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void examine_cpus(struct findings *findings, const struct pinion_machine *machine)
{
	bool has_idle_driver = true;
	char line[256];

	findings_subject(findings, "cpus");
	findings_number(findings, "logical", machine->cpu_count);
	findings_number(findings, "cores", machine->core_count);
	findings_number(findings, "numa_nodes", machine->node_count);
	if (doctor_line("/proc/self/status", "Cpus_allowed_list", line, sizeof(line))) {
		findings_text(findings, "allowed", line);
	}
	if (doctor_line("/sys/devices/system/cpu/online", NULL, line, sizeof(line))) {
		findings_text(findings, "online", line);
	}
	findings_limit(findings, "quota_millicpus",
		machine->quota_millicpus == 0 ? UINT64_MAX : machine->quota_millicpus);
	findings_number(findings, "default_workers", machine->default_worker_count);
	if (doctor_line(
		    "/sys/devices/system/cpu/cpuidle/current_driver", NULL, line, sizeof(line))) {
		findings_text(findings, "idle_driver", line);
		has_idle_driver = strcmp(line, "none") != 0;
	}
	findings_text(findings, "cpu_latency",
		!has_idle_driver ? "would not be heeded: no idle driver"
			: access("/dev/cpu_dma_latency", W_OK) == 0 ? "may be asked for"
								    : strerror(errno));
	if (machine->quota_millicpus != 0 && machine->quota_millicpus < 1000) {
		findings_problem(findings, VERDICT_DEGRADED,
			"a quota of less than one CPU: each worker pauses in part of every "
			"period",
			"raise cpu.max of the cgroup: systemctl set-property UNIT CPUQuota=100%, "
			"or docker update --cpus=1 CONTAINER");
	}
}

static const struct {
	uint32_t level;
	const char *name;
	const char *missing; /* what keeps a machine on this level */
} levels[] = {
	{PINION_IO_FALLBACK, "fallback", NULL},
	{PINION_IO_RING_BASIC, "ring-basic", "ring-coop needs coop-taskrun (Linux 5.19)"},
	{PINION_IO_RING_COOP, "ring-coop", "ring-defer needs defer-taskrun (Linux 6.1)"},
	{PINION_IO_RING_DEFER, "ring-defer", "ring-message needs send-msg-ring (Linux 6.13)"},
	{PINION_IO_RING_MESSAGE, "ring-message", "ring needs no-iowait (Linux 6.15)"},
	{PINION_IO_RING, "ring", NULL},
};

static void say_level(struct findings *findings, uint32_t level)
{
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (levels[i].level == level) {
			findings_text(findings, "level", levels[i].name);
			if (levels[i].missing != NULL) {
				findings_text(findings, "why_not_higher", levels[i].missing);
			}
		}
	}
}

static void say_features(struct findings *findings, const struct pinion_machine *machine)
{
	struct output_text lists[2] = {{0}, {0}};

	for (uint32_t bit = 1; pinion_machine_feature_name(bit) != NULL; bit <<= 1) {
		struct output_text *list = &lists[(machine->io_features & bit) != 0 ? 1 : 0];

		output_text_string(list, list->length == 0 ? "" : " ");
		output_text_string(list, pinion_machine_feature_name(bit));
	}
	for (int i = 1; i >= 0; i--) {
		output_text_append(&lists[i], "", 1);
		if (!lists[i].failed) {
			findings_words(findings, i == 1 ? "features" : "missing", lists[i].bytes);
		}
		findings->text.failed |= lists[i].failed;
		output_text_free(&lists[i]);
	}
}

/* The hint is "CAUSE; what to do: COMMAND". */
static void ring_problem(struct findings *findings, const char *hint)
{
	const char *cause_end = strstr(hint, "; ");
	const char *command = cause_end == NULL ? NULL : strstr(cause_end, ": ");
	char cause[sizeof(((struct pinion_machine *)0)->ring_hint)];

	snprintf(cause, sizeof(cause), "%.*s",
		(int)(cause_end == NULL ? strlen(hint) : (size_t)(cause_end - hint)), hint);
	findings_problem(findings, VERDICT_DEGRADED, cause, command == NULL ? hint : command + 2);
}

static void say_limits_of_kernel(struct findings *findings)
{
	static const char *const modes[] = {"none", "strict", "filter"};
	char line[64];
	long mode;

	if (doctor_line("/proc/self/status", "Seccomp", line, sizeof(line))) {
		mode = strtol(line, NULL, 10);
		findings_text(findings, "seccomp", mode >= 0 && mode <= 2 ? modes[mode] : line);
	}
	if (doctor_line("/proc/sys/kernel/io_uring_disabled", NULL, line, sizeof(line))) {
		findings_number(findings, "disabled", strtoull(line, NULL, 10));
	}
}

static void examine_ring(struct findings *findings, const struct pinion_machine *machine)
{
	static const char *const variables[] = {"PINION_IO_LEVEL", "PINION_IO_WITHOUT"};

	findings_subject(findings, "io_uring");
	say_level(findings, machine->io_level);
	say_limits_of_kernel(findings);
	if (machine->ring_error == 0) {
		say_features(findings, machine);
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i]);

		if (value != NULL && value[0] != '\0') {
			findings_text(findings, variables[i], value);
		}
	}
	if (machine->ring_error != 0) {
		ring_problem(findings, machine->ring_hint);
	} else if ((machine->io_features & PINION_IO_DEFER_TASKRUN) == 0) {
		findings_problem(findings, VERDICT_DEGRADED,
			"completions cost more on this kernel: it lacks defer-taskrun (Linux 6.1)",
			"apt-get install linux-image-amd64, or another kernel of 6.1 or later");
	}
}

void doctor_machine(struct findings *findings, const struct pinion_machine *machine)
{
	findings_subject(findings, "pinion");
	findings_text(findings, "version", pinion_version());
	findings_text(findings, "kernel", machine->kernel_release);
	examine_cpus(findings, machine);
	examine_ring(findings, machine);
}
