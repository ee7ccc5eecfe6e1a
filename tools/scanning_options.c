/* SPDX-License-Identifier: MIT */
/*
 * The options that the commands that scan have in common: a row each, by name.
 */
#include "tools/scanning.h"

#include "tools/options.h"
#include "tools/report.h"
#include "tools/tracing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	WINDOW_BYTES_STEP = 4096,
	WINDOW_BYTES_MAX = 64 << 20,
	STALL_MS = 10000,
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

void scanning_options_fini(struct scanning_options *options)
{
	choosing_fini(&options->choosing);
	checkpointing_options_fini(&options->checkpointing);
	free(options->lists);
	options->lists = NULL;
	options->list_count = 0;
}

/* ---- values of single options ---- */

static bool parse_list(struct scanning_options *options, const char *value)
{
	if (strcmp(value, "-") == 0 && scanning_lists_stdin(options)) {
		report_line("--files-from=-: standard input can be one list only");
		return false;
	}
	return options_append(&options->lists, &options->list_count, value);
}

static bool parse_workers(struct scanning_options *options, const char *value)
{
	uint64_t count;

	if (!options_count("workers", value, 1, SCANNING_WORKERS_MAX, &count)) {
		return false;
	}
	options->runtime.worker_count = (uint32_t)count;
	return true;
}

static bool parse_window(struct scanning_options *options, const char *value)
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

static bool parse_gitignore(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.skip_ignored = 1;
	return true;
}

static bool parse_follow(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.follow_links = 1;
	return true;
}

static bool parse_no_follow(struct scanning_options *options, const char *value)
{
	(void)value;
	options->scan.follow_links = 0;
	return true;
}

static bool parse_sort(struct scanning_options *options, const char *value)
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

static bool parse_direct(struct scanning_options *options, const char *value)
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

static bool parse_io(struct scanning_options *options, const char *value)
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

static bool parse_file_timeout(struct scanning_options *options, const char *value)
{
	uint64_t timeout_ns;

	if (!options_duration("file-timeout", value, 0, FILE_TIMEOUT_NS_MAX, &timeout_ns)) {
		return false;
	}
	set_file_timeout(options, timeout_ns);
	return true;
}

static bool parse_limit(struct scanning_options *options, const char *name, const char *value)
{
	if (strcmp(name, "limits-file") == 0) {
		options->limits_file = value;
		return true;
	}
	return limits_set(&options->limits, name, value);
}

static bool parse_choosing(struct scanning_options *options, const char *name, const char *value)
{
	bool is_good = choosing_parse(&options->choosing, name, value);

	options->scan.filter = choosing_filter(&options->choosing);
	options->checkpointing.sharding = options->choosing.sharding;
	return is_good;
}

static bool parse_checkpoint(struct scanning_options *options, const char *name, const char *value)
{
	return checkpointing_parse(&options->checkpointing, name, value);
}

static bool parse_trace(struct scanning_options *options, const char *value)
{
	options->trace_file = value;
	if (options->tuning.trace_events == 0) {
		options->tuning.trace_events = TRACING_EVENTS_STANDARD;
	}
	return tracing_check(value);
}

/* ---- all options ---- */

/* Each takes a value; one of several options takes its name, too. */
static const struct row {
	const char *name;
	bool (*parse)(struct scanning_options *options, const char *value);
	bool (*parse_named)(struct scanning_options *options, const char *name, const char *value);
} rows[] = {
	{.name = "files-from", .parse = parse_list},
	{.name = "gitignore", .parse = parse_gitignore},
	{.name = "follow", .parse = parse_follow},
	{.name = "no-follow", .parse = parse_no_follow},
	{.name = "one-file-system", .parse_named = parse_choosing},
	{.name = "no-hidden", .parse_named = parse_choosing},
	{.name = "exclude", .parse_named = parse_choosing},
	{.name = "include", .parse_named = parse_choosing},
	{.name = "min-size", .parse_named = parse_choosing},
	{.name = "max-filesize", .parse_named = parse_choosing},
	{.name = "newer-than", .parse_named = parse_choosing},
	{.name = "older-than", .parse_named = parse_choosing},
	{.name = "hard-links", .parse_named = parse_choosing},
	{.name = "shard", .parse_named = parse_choosing},
	{.name = "shard-from-env", .parse_named = parse_choosing},
	{.name = "sort", .parse = parse_sort},
	{.name = "workers", .parse = parse_workers},
	{.name = "window", .parse = parse_window},
	{.name = "file-timeout", .parse = parse_file_timeout},
	{.name = "direct", .parse = parse_direct},
	{.name = "io", .parse = parse_io},
	{.name = "bwlimit", .parse_named = parse_limit},
	{.name = "iops-limit", .parse_named = parse_limit},
	{.name = "ioprio", .parse_named = parse_limit},
	{.name = "nice", .parse_named = parse_limit},
	{.name = "psi-target", .parse_named = parse_limit},
	{.name = "latency-target", .parse_named = parse_limit},
	{.name = "limits-file", .parse_named = parse_limit},
	{.name = "checkpoint", .parse_named = parse_checkpoint},
	{.name = "resume", .parse_named = parse_checkpoint},
	{.name = "salvage", .parse_named = parse_checkpoint},
	{.name = "checkpoint-interval", .parse_named = parse_checkpoint},
	{.name = "trace", .parse = parse_trace},
};

bool scanning_parse(struct scanning_options *options, const char *name, const char *value)
{
	const struct row *row = rows;

	while (strcmp(row->name, name) != 0) {
		row++;
		assert(row < rows + sizeof(rows) / sizeof(rows[0]));
	}
	return row->parse != NULL ? row->parse(options, value)
				  : row->parse_named(options, name, value);
}

void scanning_allow_waits(struct scanning_options *options)
{
	if (options->tuning.stall_ms == STALL_MS) {
		options->tuning.stall_ms = 0;
	}
}
