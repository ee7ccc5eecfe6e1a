/* SPDX-License-Identifier: MIT */
/*
 * Parts with one writer each, and their sum.
 */
#include "tools/progress.h"

#include "tools/amount.h"
#include "tools/report.h"
#include "tools/scanning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* The first is that of the adding thread, and of threads beside. */
	PARTS_MAX = SCANNING_WORKERS_MAX + 1,
	LINE_BYTES = 256,
	SHOW_MS = 500,
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

/* False: there is none yet. */
static bool describe(char *out_line, size_t bytes, struct progress *out_sum, double *out_seconds)
{
	char findings[40] = "";
	char amount[AMOUNT_TEXT_BYTES];
	char rate[AMOUNT_TEXT_BYTES];
	double seconds;

	if (!progress_read(out_sum)) {
		return false;
	}
	seconds = scanning_seconds_now() - start_seconds;
	if (counts_findings) {
		snprintf(findings, sizeof(findings), " %llu findings,",
			(unsigned long long)out_sum->findings);
	}
	snprintf(out_line, bytes, "progress: %llu files, %s, %s/s,%s %.1f s",
		(unsigned long long)out_sum->ended_files,
		amount_write(amount, (double)out_sum->bytes),
		amount_write(rate, seconds > 0 ? (double)out_sum->bytes / seconds : 0.0), findings,
		seconds);
	*out_seconds = seconds;
	return true;
}

void progress_report(void)
{
	char line[LINE_BYTES];
	struct progress sum;
	double seconds;

	if (describe(line, sizeof(line), &sum, &seconds)) {
		report_line("%s", line);
	}
}

/* ---- on a terminal ---- */

static uint64_t total_bytes;
static bool is_shown;

void progress_watch(uint64_t bytes)
{
	const char *terminal = getenv("TERM");

	if (isatty(STDERR_FILENO) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0) {
		total_bytes = bytes;
		__atomic_store_n(&is_shown, true, __ATOMIC_RELEASE);
	}
}

void progress_show(void)
{
	char line[LINE_BYTES];
	struct progress sum;
	double seconds;
	size_t length;

	if (progress_show_ms() == 0 || !describe(line, sizeof(line), &sum, &seconds) ||
		seconds < 1) {
		return;
	}
	length = strlen(line);
	if (sum.bytes > 0 && sum.bytes < total_bytes) {
		snprintf(line + length, sizeof(line) - length, ", %.0f s left",
			(double)(total_bytes - sum.bytes) / (double)sum.bytes * seconds);
	}
	report_status(line);
	if (progress_show_ms() == 0) { /* hidden meanwhile */
		report_lift_status();
	}
}

void progress_hide(void)
{
	__atomic_store_n(&is_shown, false, __ATOMIC_RELEASE);
	report_lift_status();
}

uint64_t progress_show_ms(void)
{
	return __atomic_load_n(&is_shown, __ATOMIC_ACQUIRE) ? SHOW_MS : 0;
}
