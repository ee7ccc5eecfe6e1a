/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum`: checksums of many files at once, printed in the order in which
 * they were named. This is the command line; sum_hash.c and sum_check.c do the
 * work.
 */
#include "sum.h"

#include "commands.h"
#include "input.h"
#include "report.h"

#include <pinion/pinion.h>
#include <string.h>
#include <time.h>

/* Enough to read ahead while one window is hashed. */
enum { BUFFER_COUNT_LARGE = 4 };

enum sum_option {
	OPTION_ALGORITHM,
	OPTION_RECURSIVE,
	OPTION_NULL,
	OPTION_FILES_FROM,
	OPTION_CHECK,
	OPTION_TAG,
	OPTION_QUIET,
	OPTION_STATUS,
	OPTION_WORKERS,
	OPTION_DIRECT,
	OPTION_IO,
	OPTION_WINDOW,
	OPTION_STATS,
	OPTION_COUNT,
};

static const struct option_spec sum_specs[OPTION_COUNT] = {
	[OPTION_ALGORITHM] = {'a', "algorithm", "NAME", "xxh3-64 (default), xxh3-128 or sha256",
		"With -c the default is what each line of the list says."},
	[OPTION_RECURSIVE] = {'r', "recursive", NULL, "hash all files below directories",
		"Symbolic links below them are not followed."},
	[OPTION_NULL] = {'0', "null", NULL, "end lines, and entries of LIST, with NUL",
		"Nothing is escaped then."},
	[OPTION_FILES_FROM] = {0, "files-from", "LIST", "hash the files a list names, - for stdin",
		"One path a line; empty lines are ignored. They come after PATHs."},
	[OPTION_CHECK] = {'c', "check", NULL, "verify the lists named by PATH", NULL},
	[OPTION_TAG] = {0, "tag", NULL, "write lines as TAG (PATH) = DIGEST", NULL},
	[OPTION_QUIET] = {0, "quiet", NULL, "with -c: no line for what verifies", NULL},
	[OPTION_STATUS] = {0, "status", NULL, "with -c: no output, the exit status tells", NULL},
	[OPTION_WORKERS] = {0, "workers", "N", "worker threads; default: one per core", NULL},
	[OPTION_DIRECT] = {0, "direct", "WHEN", "bypass the page cache: auto, always, never",
		"auto reads what is cached from the cache and the rest past it."},
	[OPTION_IO] = {0, "io", "HOW", "auto, ring (io_uring or fail) or fallback (pread)", NULL},
	[OPTION_WINDOW] = {0, "window", "SIZE", "bytes per read, a multiple of 4K up to 64M", NULL},
	[OPTION_STATS] = {0, "stats", NULL, "counts and speed on stderr at the end", NULL},
};

static bool parse_algorithm(struct sum_options *options, const char *name)
{
	static const char *names[DIGEST_COUNT + 1];
	int index;

	for (int i = 0; i < DIGEST_COUNT; i++) {
		names[i] = digest_algorithms[i].name;
	}
	index = options_choice(NULL, "algorithm", name, names);
	if (index < 0) {
		return false;
	}
	options->algorithm = &digest_algorithms[index];
	return true;
}

static bool parse_window(
	const struct option_parser *parser, struct sum_options *options, const char *text)
{
	uint64_t bytes;

	if (!options_size(parser, "window", text, 4096, 64 << 20, &bytes)) {
		return false;
	}
	if (bytes % 4096 != 0) {
		report_line("--window: %s is not a multiple of 4096", text);
		return false;
	}
	options->scan.window_bytes = (uint32_t)bytes;
	if (bytes > options->runtime.buffer_bytes) {
		options->runtime.buffer_bytes = (uint32_t)bytes;
		/* Few large ones, or an arena would take gigabytes. */
		options->runtime.buffer_count = BUFFER_COUNT_LARGE;
	}
	return true;
}

static bool parse_io(
	const struct option_parser *parser, struct sum_options *options, const char *text)
{
	static const char *const words[] = {"auto", "ring", "fallback", NULL};
	static const enum pinion_io_level levels[] = {
		PINION_IO_AUTO, PINION_IO_RING, PINION_IO_FALLBACK};
	int index = options_choice(parser, "io", text, words);

	if (index >= 0) {
		options->runtime.io_level = (uint32_t)levels[index];
	}
	return index >= 0;
}

static bool parse_direct(
	const struct option_parser *parser, struct sum_options *options, const char *text)
{
	static const char *const words[] = {
		[PINION_DIRECT_AUTO] = "auto",
		[PINION_DIRECT_ALWAYS] = "always",
		[PINION_DIRECT_NEVER] = "never",
		NULL,
	};
	int index = options_choice(parser, "direct", text, words);

	if (index >= 0) {
		options->scan.direct = (uint32_t)index;
	}
	return index >= 0;
}

static bool parse_workers(
	const struct option_parser *parser, struct sum_options *options, const char *text)
{
	uint64_t count;

	if (!options_count(parser, "workers", text, 1, 4096, &count)) {
		return false;
	}
	options->runtime.worker_count = (uint32_t)count;
	return true;
}

static bool parse_option(const struct option_parser *parser, struct sum_options *options,
	enum sum_option option, const char *value)
{
	switch (option) {
	case OPTION_ALGORITHM:
		return parse_algorithm(options, value);
	case OPTION_RECURSIVE:
		options->recurse = true;
		return true;
	case OPTION_NULL:
		options->is_nul = true;
		return true;
	case OPTION_FILES_FROM:
		options->list_path = value;
		return true;
	case OPTION_CHECK:
		options->is_check = true;
		return true;
	case OPTION_TAG:
		options->is_tagged = true;
		return true;
	case OPTION_QUIET:
		options->is_quiet = true;
		return true;
	case OPTION_STATUS:
		options->is_status = true;
		return true;
	case OPTION_WORKERS:
		return parse_workers(parser, options, value);
	case OPTION_DIRECT:
		return parse_direct(parser, options, value);
	case OPTION_IO:
		return parse_io(parser, options, value);
	case OPTION_WINDOW:
		return parse_window(parser, options, value);
	case OPTION_STATS:
		options->has_stats = true;
		return true;
	case OPTION_COUNT:
		break;
	}
	return false;
}

/* Combinations that cannot mean anything are refused, as sha256sum does. */
static bool check_options(const struct sum_options *options, char *const *paths, int path_count)
{
	if (path_count == 0 && options->list_path == NULL) {
		report_line(options->is_check
				? "no lists to verify: name them, - for standard input"
				: "no paths: name files, -r and directories, or --files-from=LIST");
		return false;
	}
	if (options->is_check &&
		(options->is_nul || options->is_tagged || options->recurse ||
			options->list_path != NULL)) {
		report_line("-c goes with none of -0, -r, --tag, --files-from");
		return false;
	}
	if (!options->is_check && (options->is_quiet || options->is_status)) {
		report_line("--quiet and --status go only with -c");
		return false;
	}
	if (options->list_path != NULL && strcmp(options->list_path, "-") == 0) {
		for (int i = 0; i < path_count; i++) {
			if (strcmp(paths[i], "-") == 0) {
				report_line("standard input cannot be both a file and the list");
				return false;
			}
		}
	}
	return true;
}

static bool check_algorithm(struct sum_options *options)
{
	if (options->algorithm == NULL && !options->is_check) {
		options->algorithm = &digest_algorithms[DIGEST_XXH3_64];
	}
	if (options->algorithm != NULL && options->algorithm->missing != NULL) {
		report_line("%s is not built into this program: %s", options->algorithm->name,
			options->algorithm->missing);
		return false;
	}
	return true;
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void report_stats(const struct sum_job *job, double seconds)
{
	double gigabytes = (double)job->totals.read_bytes / 1e9;

	report_totals(&job->totals);
	report_line("%.3f GB (holes: %.3f GB) in %.3f s, %.3f GB/s; %llu files past the page cache",
		gigabytes, (double)job->totals.hole_bytes / 1e9, seconds,
		seconds > 0 ? gigabytes / seconds : 0.0,
		(unsigned long long)job->totals.direct_files);
}

static int exit_status(const struct sum_job *job, bool is_written)
{
	if (input_was_interrupted()) {
		return EXIT_STATUS_STOPPED;
	}
	if (job->has_trouble || !is_written) {
		return EXIT_STATUS_TROUBLE;
	}
	return job->has_mismatch ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
}

static int run_job(const struct sum_options *options, char *const *paths, int path_count)
{
	struct sum_job job = {
		.options = options,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	double start = seconds_now();
	bool is_written;

	if (options->is_check) {
		sum_check(&job, paths, path_count);
	} else {
		sum_plain(&job, paths, path_count);
	}
	sum_end(&job);
	pinion_runtime_destroy(job.runtime);
	is_written = output_finish();
	if (input_was_interrupted()) {
		report_line("stopped early by a signal");
	}
	if (options->has_stats) {
		report_stats(&job, seconds_now() - start);
	} else if (is_written &&
		(job.totals.cancelled > 0 ||
			(job.totals.seen > 0 && job.has_trouble && !options->is_check))) {
		report_totals(&job.totals);
	}
	input_watch_signals(NULL);
	return exit_status(&job, is_written);
}

static int sum_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct sum_options options = {0};
	const char *value;
	int option;

	pinion_config_init(&options.runtime);
	pinion_scan_config_init(&options.scan);
	options.runtime.log = report_log;
	options.scan.order = PINION_SCAN_IN_ORDER;
	options.scan.file_user_bytes = sizeof(struct sum_file);
	options.scan.report_holes = 1;
	if (pinion_config_from_env(&options.runtime) != 0) {
		return EXIT_STATUS_TROUBLE;
	}
	while ((option = options_next(&parser, &value)) >= 0) {
		if (!parse_option(&parser, &options, (enum sum_option)option, value)) {
			return EXIT_STATUS_TROUBLE;
		}
	}
	if (option == OPTIONS_HELP) {
		return EXIT_STATUS_CLEAN;
	}
	if (option == OPTIONS_ERROR || !check_options(&options, argv + 1, parser.operand_count) ||
		!check_algorithm(&options)) {
		return EXIT_STATUS_TROUBLE;
	}
	return run_job(&options, argv + 1, parser.operand_count);
}

const struct command sum_command = {
	.name = "sum",
	.arguments = "[OPTION]… PATH…",
	.brief = "checksums of files, as sha256sum and xxhsum print them",
	.detail =
		"Lines come in the order of the paths. They are those of sha256sum for sha256, of "
		"xxhsum -H2 for xxh3-128 and of xxhsum -H3 for xxh3-64; a path with a newline, "
		"carriage return or backslash is escaped as sha256sum and xxhsum 0.8.2 do. PATH - "
		"is standard input.\n\n"
		"Exit status: 0 all done, all verified; 1 something does not match its list; 2 "
		"something could not be read, a list has no well-formed line, or bad usage; 3 "
		"stopped early by a signal.",
	.options = sum_specs,
	.option_count = OPTION_COUNT,
	.run = sum_run,
};
