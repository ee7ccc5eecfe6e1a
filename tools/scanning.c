/* SPDX-License-Identifier: MIT */
/*
 * The options and the outcome of a scan, for every command that runs one.
 */
#include "tools/scanning.h"

#include "tools/amount.h"
#include "tools/options.h"
#include "tools/output_file.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/tracing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
	WINDOW_BYTES_STEP = 4096,
	WINDOW_BYTES_MAX = 64 << 20,
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
	STALL_MS = 10000,
	/* A page whose file is taken gets the name with .1 to .15 after it. */
	METRICS_NUMBER_MAX = 15,
};

/* A disk that sleeps, or a link that is lost, is back by then. */
#define FILE_TIMEOUT_NS_STANDARD UINT64_C(60000000000)
#define FILE_TIMEOUT_NS_MAX UINT64_C(86400000000000)

static void set_file_timeout(struct scanning_options *options, uint64_t timeout_ns)
{
	options->scan.file_timeout_ns = timeout_ns;
	report_note_file_timeout(timeout_ns);
}

bool scanning_options_init(struct scanning_options *out_options)
{
	*out_options = (struct scanning_options){.limits = LIMITS_NONE};
	pinion_config_init(&out_options->runtime);
	pinion_tuning_init(&out_options->tuning);
	/* A heavy rule or a slow disk takes less, which is no news. */
	out_options->tuning.stall_ms = STALL_MS;
	pinion_scan_config_init(&out_options->scan);
	set_file_timeout(out_options, FILE_TIMEOUT_NS_STANDARD);
	report_log_of(&out_options->runtime);
	return pinion_config_from_env(&out_options->runtime, &out_options->tuning) == 0;
}

bool scanning_parse_workers(struct scanning_options *options, const char *value)
{
	uint64_t count;

	if (!options_count("workers", value, 1, SCANNING_WORKERS_MAX, &count)) {
		return false;
	}
	options->runtime.worker_count = (uint32_t)count;
	return true;
}

bool scanning_parse_window(struct scanning_options *options, const char *value)
{
	uint64_t bytes;

	if (!options_size("window", value, WINDOW_BYTES_STEP, WINDOW_BYTES_MAX, &bytes)) {
		return false;
	}
	if (bytes % WINDOW_BYTES_STEP != 0) {
		report_line("--window: %s is not a multiple of %d", value, WINDOW_BYTES_STEP);
		return false;
	}
	options->window_bytes = (uint32_t)bytes;
	return true;
}

bool scanning_parse_gitignore(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.skip_ignored = 1;
	return true;
}

bool scanning_parse_follow(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.follow_links = 1;
	return true;
}

bool scanning_parse_no_follow(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.follow_links = 0;
	return true;
}

bool scanning_parse_sort(struct scanning_options *options, const char *value)
{
	static const char *const words[] = {"none", "path", "extent", NULL};
	int index = options_choice("sort", value, words);
	struct pinion_scan_config *scan = &options->scan;

	if (index < 0) {
		return false;
	}
	if (scan->walk_order != PINION_SCAN_WALK_BY_PATH &&
		scan->walk_order != PINION_SCAN_WALK_BY_EXTENT) {
		options->unsorted = scan->walk_order;
	}
	scan->walk_order = index == 1 ? PINION_SCAN_WALK_BY_PATH
		: index == 2	      ? PINION_SCAN_WALK_BY_EXTENT
				      : options->unsorted;
	return true;
}

bool scanning_parse_direct(struct scanning_options *options, const char *value)
{
	static const char *const words[] = {
		[PINION_DIRECT_AUTO] = "auto",
		[PINION_DIRECT_ALWAYS] = "always",
		[PINION_DIRECT_NEVER] = "never",
		NULL,
	};
	int index = options_choice("direct", value, words);

	if (index >= 0) {
		options->scan.direct = (uint32_t)index;
	}
	return index >= 0;
}

bool scanning_parse_io(struct scanning_options *options, const char *value)
{
	static const char *const words[] = {"auto", "ring", "fallback", NULL};
	static const enum pinion_io_level levels[] = {
		PINION_IO_AUTO, PINION_IO_RING, PINION_IO_FALLBACK};
	int index = options_choice("io", value, words);

	if (index >= 0) {
		options->runtime.io_level = (uint32_t)levels[index];
	}
	return index >= 0;
}

bool scanning_parse_file_timeout(struct scanning_options *options, const char *value)
{
	uint64_t timeout_ns;

	if (!options_duration("file-timeout", value, 0, FILE_TIMEOUT_NS_MAX, &timeout_ns)) {
		return false;
	}
	set_file_timeout(options, timeout_ns);
	return true;
}

bool scanning_parse_limit(struct scanning_options *options, const char *name, const char *value)
{
	if (strcmp(name, "limits-file") == 0) {
		options->limits_file = value;
		return true;
	}
	return limits_set(&options->limits, name, value);
}

bool scanning_parse_choosing(struct scanning_options *options, const char *name, const char *value)
{
	bool is_good = choosing_parse(&options->choosing, name, value);

	options->scan.filter = choosing_filter(&options->choosing);
	options->checkpointing.sharding = options->choosing.sharding;
	return is_good;
}

bool scanning_parse_checkpoint(
	struct scanning_options *options, const char *name, const char *value)
{
	return checkpointing_parse(&options->checkpointing, name, value);
}

bool scanning_parse_trace(struct scanning_options *options, const char *value)
{
	options->trace_file = value;
	if (options->tuning.trace_events == 0) {
		options->tuning.trace_events = TRACING_EVENTS_STANDARD;
	}
	return tracing_check(value);
}

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

void scanning_allow_waits(struct scanning_options *options)
{
	if (options->tuning.stall_ms == STALL_MS) {
		options->tuning.stall_ms = 0;
	}
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

bool scanning_parse_list(struct scanning_options *options, const char *value)
{
	const char **grown;

	if (strcmp(value, "-") == 0 && scanning_lists_stdin(options)) {
		report_line("--files-from=-: standard input can be one list only");
		return false;
	}
	grown = realloc(options->lists, (options->list_count + 1) * sizeof(*grown));
	if (grown == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	options->lists = grown;
	options->lists[options->list_count++] = value;
	return true;
}

void scanning_options_fini(struct scanning_options *options)
{
	choosing_fini(&options->choosing);
	checkpointing_options_fini(&options->checkpointing);
	free(options->lists);
	options->lists = NULL;
	options->list_count = 0;
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
