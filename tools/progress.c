/* SPDX-License-Identifier: MIT */
/*
 * Parts with one writer each, and their sum.
 */
#include "tools/progress.h"

#include "tools/report.h"
#include "tools/scanning.h"

#include <stdio.h>

enum {
	/* The first is that of the adding thread, and of threads beside. */
	PARTS_MAX = SCANNING_WORKERS_MAX + 1,
};

struct part {
	struct progress counts;
} __attribute__((aligned(64)));

static struct part parts[PARTS_MAX];
static double start_seconds;
static bool counts_findings;
static bool has_begun;

static uint64_t load(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static void add_alone(uint64_t *count, uint64_t more)
{
	__atomic_store_n(count, load(count) + more, __ATOMIC_RELAXED);
}

static void add_shared(uint64_t *count, uint64_t more)
{
	__atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}

void progress_begin(bool has_findings)
{
	if (has_begun) {
		return;
	}
	start_seconds = scanning_seconds_now();
	counts_findings = has_findings;
	__atomic_store_n(&has_begun, true, __ATOMIC_RELEASE);
}

void progress_add(struct pinion_runtime *runtime, const struct progress *more)
{
	int index = pinion_worker_index(runtime);
	struct progress *counts = &parts[index >= 0 ? index + 1 : 0].counts;
	void (*add)(uint64_t * count, uint64_t more) = index >= 0 ? add_alone : add_shared;

	add(&counts->begun_files, more->begun_files);
	add(&counts->ended_files, more->ended_files);
	add(&counts->bytes, more->bytes);
	add(&counts->findings, more->findings);
}

bool progress_read(struct progress *out_progress)
{
	*out_progress = (struct progress){0};
	if (!__atomic_load_n(&has_begun, __ATOMIC_ACQUIRE)) {
		return false;
	}
	for (int i = 0; i < PARTS_MAX; i++) {
		const struct progress *counts = &parts[i].counts;

		/* What ended has begun: the order keeps that true in a sum. */
		out_progress->ended_files += load(&counts->ended_files);
		out_progress->bytes += load(&counts->bytes);
		out_progress->findings += load(&counts->findings);
	}
	for (int i = 0; i < PARTS_MAX; i++) {
		out_progress->begun_files += load(&parts[i].counts.begun_files);
	}
	return true;
}

void progress_report(void)
{
	struct progress sum;
	char findings[40] = "";
	double seconds;
	double gigabytes;

	if (!progress_read(&sum)) {
		return;
	}
	seconds = scanning_seconds_now() - start_seconds;
	gigabytes = (double)sum.bytes / 1e9;
	if (counts_findings) {
		snprintf(findings, sizeof(findings), " %llu findings,",
			(unsigned long long)sum.findings);
	}
	report_line("progress: %llu files, %.3f GB, %.3f GB/s,%s %.1f s",
		(unsigned long long)sum.ended_files, gigabytes,
		seconds > 0 ? gigabytes / seconds : 0.0, findings, seconds);
}
