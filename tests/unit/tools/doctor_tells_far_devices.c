/* SPDX-License-Identifier: MIT */
/*
 * Goal: of a device on a node where no worker is, `pinion doctor` says so, with
 * the CPUs that would be near; where one is, how many; and nothing is asked for
 * where no CPU is there. G14.
 * Method: lists of CPUs in a sysfs of the test's own, against tables.
 */
#include "tests/support/scratch.h"
#include "tools/doctor/subjects.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NODE = 1 };

static void make_folders(void)
{
	static const char *const folders[] = {"sys", "sys/devices", "sys/devices/system",
		"sys/devices/system/node", "sys/devices/system/node/node1"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		expect_ready(folders[i], mkdir(folders[i], 0755) == 0);
	}
}

static void write_list(const char *list)
{
	static const char path[] = "sys/devices/system/node/node1/cpulist";

	(void)unlink(path);
	scratch_file(path, list);
}

struct row {
	const char *list;
	int cpus[3];
	uint32_t worker_count;
	int near_count; /* -1: it is not said */
};

static const struct row rows[] = {
	{"4-7\n", {0, 1, 2}, 3, 0},
	{"4-7\n", {3, 8, 44}, 3, 0},
	{"4-7\n", {4, 7, 8}, 3, 2},
	{"0-1,4,10-12\n", {4, 10, 2}, 3, 2},
	{"0-1,4,10-12\n", {2, 3, 9}, 3, 0},
	{"5\n", {5, -1, -1}, 3, 1},
	{"0\n", {-1, -1, -1}, 3, 0},
	{"\n", {0, 1, 2}, 3, -1},
	{"0-3\n", {0}, 0, -1},
};

static void check(const struct row *row)
{
	static struct doctor_workers workers;
	struct findings findings = {.is_json = true};
	char wanted[256];
	int length;

	workers.count = row->worker_count;
	memcpy(workers.cpus, row->cpus, sizeof(row->cpus));
	write_list(row->list);
	findings_path(&findings, "file");
	doctor_distance(&findings, ".", NODE, &workers);
	output_text_append(&findings.text, "", 1);
	length = snprintf(wanted, sizeof(wanted), "\"numa_node\":%d", NODE);
	if (row->near_count >= 0) {
		snprintf(wanted + length, sizeof(wanted) - (size_t)length, ",\"workers_near\":%d",
			row->near_count);
	}
	expect_true(row->list, strstr(findings.text.bytes, wanted) != NULL);
	expect_true("said or not",
		(strstr(findings.text.bytes, "workers_near") != NULL) == (row->near_count >= 0));
	expect_number(row->list, row->near_count == 0 ? VERDICT_DEGRADED : VERDICT_READY,
		findings.verdict);
	output_text_append(&findings.problems, "", 1);
	if (row->near_count == 0) {
		snprintf(wanted, sizeof(wanted), "\"mend\":\"taskset -c %.*s PROGRAM",
			(int)strcspn(row->list, "\n"), row->list);
		expect_true(wanted, strstr(findings.problems.bytes, wanted) != NULL);
	} else {
		expect_text("no problem", "", findings.problems.bytes);
	}
	output_text_free(&findings.problems);
	output_text_free(&findings.text);
}

int main(void)
{
	static struct doctor_workers workers = {.count = 1};
	struct findings findings = {.is_json = true};

	scratch_enter("nodes");
	make_folders();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		check(&rows[i]);
	}
	/* A node that sysfs does not have. */
	doctor_distance(&findings, ".", NODE + 1, &workers);
	expect_number("unknown", VERDICT_READY, findings.verdict);
	output_text_free(&findings.text);
	scratch_leave();
	return expect_status();
}
