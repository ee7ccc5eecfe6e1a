/* SPDX-License-Identifier: MIT */
/*
 * What follows from the options of a scan, and its outcome, for every command
 * that runs one.
 */
#include "tools/scanning.h"

#include "tools/amount.h"
#include "tools/options.h"
#include "tools/output_file.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/tracing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	/* Of each worker: with as many or more wanted, the default it is. */
	BUFFERS_FIT_MAX = 28,
	/* What one worker has besides those that files fill. */
	BUFFERS_SPARE = 3,
	/* A window is at least that part of a buffer, the rest overlap. */
	BUFFER_SHARE = 2,
	/* Number of named files whose share in the page cache is asked for. */
	CACHED_PATHS_MAX = 8,
	/*
	 * For a file that is all in the cache: a worker copies one window at a
	 * time, and hands it over before the next.
	 */
	BUFFERS_CACHED = 1,
	/* A page whose file is taken gets the name with .1 to .15 after it. */
	METRICS_NUMBER_MAX = 15,
};

bool scanning_spares(const struct scanning_options *options, const char *path)
{
	if (options->trace_file == NULL || path == NULL ||
		!output_file_is(path, options->trace_file)) {
		return true;
	}
	report_line("--trace would replace %s, which this command needs: choose another", path);
	return false;
}

bool scanning_is_metrics(const struct scanning_options *options, const char *path)
{
	const char *page = options->tuning.metrics_file;
	size_t bytes = page == NULL ? 0 : strlen(page) + sizeof(".15");
	char *name = page == NULL ? NULL : malloc(bytes);
	bool is_metrics = page != NULL && output_file_is(page, path);

	for (int i = 1; name != NULL && i <= METRICS_NUMBER_MAX && !is_metrics; i++) {
		snprintf(name, bytes, "%s.%d", page, i);
		is_metrics = output_file_is(name, path);
	}
	free(name);
	return is_metrics;
}

static bool spares_metrics(const struct scanning_options *options)
{
	const char *path = options->trace_file;

	if (path == NULL || !scanning_is_metrics(options, path)) {
		return true;
	}
	report_line(
		"--trace would replace %s, which is for the metrics page: choose another", path);
	return false;
}

bool scanning_spares_inputs(
	const struct scanning_options *options, char *const *paths, int path_count)
{
	bool is_spared = scanning_spares(options, options->limits_file) &&
		scanning_spares(options, options->checkpointing.file) && spares_metrics(options);

	for (int i = 0; i < path_count && is_spared; i++) {
		is_spared = scanning_spares(options, paths[i]);
	}
	for (uint32_t i = 0; i < options->list_count && is_spared; i++) {
		is_spared = scanning_spares(options, options->lists[i]);
	}
	return is_spared;
}

bool scanning_save_trace(
	const struct scanning_options *options, const struct pinion_runtime *runtime)
{
	return options->trace_file == NULL || tracing_save(options->trace_file, runtime);
}

bool scanning_lists_stdin(const struct scanning_options *options)
{
	for (uint32_t i = 0; i < options->list_count; i++) {
		if (strcmp(options->lists[i], "-") == 0) {
			return true;
		}
	}
	return false;
}

/* All of it, and it is read from there. */
static bool is_cached(const struct scanning_options *options, const char *path)
{
	struct pinion_file file;
	bool is_all;

	if (options->scan.direct == PINION_DIRECT_ALWAYS ||
		pinion_file_open(&file, path, PINION_DIRECT_NEVER) != 0) {
		return false;
	}
	is_all = file.cached_percent == 100;
	pinion_file_close(&file);
	return is_all;
}

void scanning_fit_buffers(const struct scanning_options *options, char *const *paths,
	int path_count, struct pinion_config *runtime)
{
	uint64_t wanted = BUFFERS_SPARE;
	bool may_ask = path_count <= CACHED_PATHS_MAX;

	if (runtime->buffer_count != 0 || options->list_count > 0) {
		return;
	}
	for (int i = 0; i < path_count && wanted <= BUFFERS_FIT_MAX; i++) {
		struct stat status;
		uint64_t most;

		/* A missing file fills none; the scan reports it later. */
		if (stat(paths[i], &status) != 0) {
			continue;
		}
		if (!S_ISREG(status.st_mode)) {
			return;
		}
		most = (uint64_t)status.st_size / (runtime->buffer_bytes / BUFFER_SHARE) + 1;
		if (wanted + most > BUFFERS_FIT_MAX && may_ask && is_cached(options, paths[i])) {
			most = BUFFERS_CACHED;
		}
		wanted += most;
	}
	if (wanted <= BUFFERS_FIT_MAX) {
		runtime->buffer_count = (uint32_t)wanted;
	}
}

bool scanning_is_trouble(enum pinion_scan_outcome outcome, int error)
{
	return outcome == PINION_SCAN_FAILED || (outcome == PINION_SCAN_SKIPPED && error != 0);
}

uint64_t scanning_ns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

double scanning_seconds_now(void)
{
	return (double)scanning_ns_now() / 1e9;
}

void scanning_report_speed(
	const char *first, const struct pinion_scan_stats *totals, double seconds)
{
	double bytes = (double)totals->read_bytes;
	char all[AMOUNT_TEXT_BYTES];
	char holes[AMOUNT_TEXT_BYTES];
	char rate[AMOUNT_TEXT_BYTES];

	report_note("%s%s (holes: %s) in %.3f s, %s/s; %llu file%s past the page cache", first,
		amount_write(all, bytes), amount_write(holes, (double)totals->hole_bytes), seconds,
		amount_write(rate, seconds > 0 ? bytes / seconds : 0.0),
		(unsigned long long)totals->direct_files, totals->direct_files == 1 ? "" : "s");
}

int scanning_exit_status(bool has_trouble, bool has_found)
{
	if (signals_interrupted()) {
		return EXIT_STATUS_STOPPED;
	}
	if (has_trouble) {
		return EXIT_STATUS_TROUBLE;
	}
	return has_found ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
}
