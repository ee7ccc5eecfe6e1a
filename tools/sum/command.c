/* SPDX-License-Identifier: MIT */
/*
 * `pinion sum`: checksums of many files at once, printed in the order in which
 * they were named. This is the command line; hash.c and check.c do the work.
 */
#include "tools/sum/job.h"

#include "tools/commands.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/throttle.h"

#include <pinion/pinion.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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
	OPTION_IGNORE_MISSING,
	OPTION_STRICT,
	OPTION_WARN,
	OPTION_AUDIT,
	OPTION_SCRUB,
	OPTION_MAX_AGE,
	OPTION_MAX_DURATION,
	OPTION_JSON,
	OPTION_GITIGNORE,
	OPTION_FOLLOW,
	OPTION_NO_FOLLOW,
	OPTION_ONE_FILE_SYSTEM,
	OPTION_NO_HIDDEN,
	OPTION_EXCLUDE,
	OPTION_INCLUDE,
	OPTION_MIN_SIZE,
	OPTION_MAX_SIZE,
	OPTION_NEWER,
	OPTION_OLDER,
	OPTION_HARD_LINKS,
	OPTION_SHARD,
	OPTION_SHARD_ENV,
	OPTION_SORT,
	OPTION_WORKERS,
	OPTION_DIRECT,
	OPTION_IO,
	OPTION_WINDOW,
	OPTION_FILE_TIMEOUT,
	OPTION_BWLIMIT,
	OPTION_IOPS_LIMIT,
	OPTION_IOPRIO,
	OPTION_NICE,
	OPTION_PSI_TARGET,
	OPTION_LATENCY_TARGET,
	OPTION_LIMITS_FILE,
	OPTION_CHECKPOINT,
	OPTION_RESUME,
	OPTION_SALVAGE,
	OPTION_INTERVAL,
	OPTION_STATS,
	OPTION_TRACE,
	OPTION_COUNT,
};

static const struct option_spec sum_specs[OPTION_COUNT] = {
	[OPTION_ALGORITHM] = {'a', "algorithm", "NAME",
		"xxh3-64, xxh3-128, blake3, sha256, sha1, md5",
		"Default: xxh3-64, with -c what each line of the list says. blake3: all workers "
		"hash one large file."},
	[OPTION_RECURSIVE] = {'r', "recursive", NULL, "hash all files below directories",
		"Symbolic links below them are not followed."},
	[OPTION_NULL] = {'0', "null", NULL, "end lines, and entries of LIST, with NUL",
		"Nothing is escaped then."},
	[OPTION_FILES_FROM] = {0, "files-from", "LIST", "hash the files a list names, - for stdin",
		"One path a line; empty lines are ignored. They come after PATHs. May be given "
		"several times."},
	[OPTION_CHECK] = {'c', "check", NULL, "verify the lists named by PATH", NULL},
	[OPTION_TAG] = {0, "tag", NULL, "write lines as TAG (PATH) = DIGEST", NULL},
	[OPTION_QUIET] = {0, "quiet", NULL, "with -c: no line for what verifies",
		"With --scrub: lines for what is rotten alone."},
	[OPTION_STATUS] = {0, "status", NULL, "with -c: no output, only the exit status",
		"Without -c: what the STATE of --scrub says, which PATH names."},
	[OPTION_IGNORE_MISSING] = {0, "ignore-missing", NULL,
		"with -c: skip files that are not there", "At least one must be."},
	[OPTION_STRICT] = {0, "strict", NULL, "with -c: malformed lines are an error", NULL},
	[OPTION_WARN] = {'w', "warn", NULL, "with -c: name all malformed lines by number",
		"Default: the first one of each list."},
	[OPTION_AUDIT] = {0, "audit", "DIR", "with -c: report files below DIR that no list names",
		"As PATH: NEW, exit status 1. May be given several times. The lists themselves "
		"are left out, and with --gitignore what that hides."},
	[OPTION_SCRUB] = {0, "scrub", "STATE", "verify the files below PATHs by STATE",
		"Those first that were checked longest ago. A file whose content differs, while "
		"its size and times do not, is ROTTEN; others are NEW, CHANGED or GONE."},
	[OPTION_MAX_AGE] = {0, "max-age", "TIME",
		"with --scrub: leave alone what was checked since",
		"30d: within 30 days. Default: nothing."},
	[OPTION_MAX_DURATION] = {0, "max-duration", "TIME",
		"with --scrub: begin no file after TIME, such as 2h",
		"The next run goes on with the others. The walk does not count, and at least one "
		"file is checked."},
	[OPTION_JSON] = {0, "json", NULL, "with --status of a STATE: one JSON object", NULL},
	[OPTION_GITIGNORE] = {SCANNING_SPEC_GITIGNORE},
	[OPTION_FOLLOW] = {SCANNING_SPEC_FOLLOW},
	[OPTION_NO_FOLLOW] = {SCANNING_SPEC_NO_FOLLOW},
	[OPTION_ONE_FILE_SYSTEM] = {CHOOSING_SPEC_ONE_FILE_SYSTEM},
	[OPTION_NO_HIDDEN] = {CHOOSING_SPEC_NO_HIDDEN},
	[OPTION_EXCLUDE] = {CHOOSING_SPEC_EXCLUDE},
	[OPTION_INCLUDE] = {CHOOSING_SPEC_INCLUDE},
	[OPTION_MIN_SIZE] = {CHOOSING_SPEC_MIN_SIZE},
	[OPTION_MAX_SIZE] = {CHOOSING_SPEC_MAX_SIZE},
	[OPTION_NEWER] = {CHOOSING_SPEC_NEWER},
	[OPTION_OLDER] = {CHOOSING_SPEC_OLDER},
	[OPTION_HARD_LINKS] = {CHOOSING_SPEC_HARD_LINKS},
	[OPTION_SHARD] = {CHOOSING_SPEC_SHARD},
	[OPTION_SHARD_ENV] = {CHOOSING_SPEC_SHARD_ENV},
	[OPTION_SORT] = {0, "sort", "ORDER", "path: lines by path; extent; none (default)",
		"Below each PATH, byte by byte; else as the file system lists them."},
	[OPTION_WORKERS] = {SCANNING_SPEC_WORKERS},
	[OPTION_DIRECT] = {SCANNING_SPEC_DIRECT},
	[OPTION_IO] = {SCANNING_SPEC_IO},
	[OPTION_WINDOW] = {SCANNING_SPEC_WINDOW},
	[OPTION_FILE_TIMEOUT] = {SCANNING_SPEC_FILE_TIMEOUT},
	[OPTION_BWLIMIT] = {LIMITS_SPEC_BWLIMIT},
	[OPTION_IOPS_LIMIT] = {LIMITS_SPEC_IOPS},
	[OPTION_IOPRIO] = {LIMITS_SPEC_IOPRIO},
	[OPTION_NICE] = {LIMITS_SPEC_NICE},
	[OPTION_PSI_TARGET] = {LIMITS_SPEC_PSI},
	[OPTION_LATENCY_TARGET] = {LIMITS_SPEC_LATENCY},
	[OPTION_LIMITS_FILE] = {LIMITS_SPEC_FILE},
	[OPTION_CHECKPOINT] = {CHECKPOINTING_SPEC_FILE},
	[OPTION_RESUME] = {CHECKPOINTING_SPEC_RESUME},
	[OPTION_SALVAGE] = {CHECKPOINTING_SPEC_SALVAGE},
	[OPTION_INTERVAL] = {CHECKPOINTING_SPEC_INTERVAL},
	[OPTION_STATS] = {SCANNING_SPEC_STATS},
	[OPTION_TRACE] = {SCANNING_SPEC_TRACE},
};

/* ---- values of single options ---- */

static bool parse_algorithm(struct sum_options *options, const char *name)
{
	static const char *names[DIGEST_COUNT + 1];
	int index;

	for (int i = 0; i < DIGEST_COUNT; i++) {
		names[i] = digest_algorithms[i].name;
	}
	index = options_choice("algorithm", name, names);
	if (index < 0) {
		return false;
	}
	options->algorithm = &digest_algorithms[index];
	return true;
}

static bool parse_audit(struct sum_options *options, const char *value)
{
	return options_append(&options->audited, &options->audited_count, value);
}

static bool parse_scrub(struct sum_options *options, const char *value)
{
	options->scrub.state = value;
	return true;
}

static bool parse_max_age(struct sum_options *options, const char *value)
{
	options->scrub.has_age = true;
	return options_period("max-age", value, &options->scrub.max_age_ns);
}

static bool parse_max_duration(struct sum_options *options, const char *value)
{
	options->scrub.has_duration = true;
	return options_period("max-duration", value, &options->scrub.max_duration_ns);
}

/* ---- all options ---- */

/*
 * What an option with this row does: calls one of these, or sets a flag. Those
 * without a row are for scanning_parse().
 */
struct taker {
	bool (*own)(struct sum_options *options, const char *value);
	size_t flag_at; /* in struct sum_options, never its first member; 0: none */
};

#define FLAG(member) \
	{ \
		.flag_at = offsetof(struct sum_options, member) \
	}

static const struct taker takers[OPTION_COUNT] = {
	[OPTION_ALGORITHM] = {.own = parse_algorithm},
	[OPTION_RECURSIVE] = FLAG(recurse),
	[OPTION_NULL] = FLAG(scanning.list_is_nul),
	[OPTION_CHECK] = FLAG(is_check),
	[OPTION_TAG] = FLAG(is_tagged),
	[OPTION_QUIET] = FLAG(is_quiet),
	[OPTION_STATUS] = FLAG(is_status),
	[OPTION_IGNORE_MISSING] = FLAG(ignores_missing),
	[OPTION_STRICT] = FLAG(is_strict),
	[OPTION_WARN] = FLAG(names_bad_lines),
	[OPTION_AUDIT] = {.own = parse_audit},
	[OPTION_SCRUB] = {.own = parse_scrub},
	[OPTION_MAX_AGE] = {.own = parse_max_age},
	[OPTION_MAX_DURATION] = {.own = parse_max_duration},
	[OPTION_JSON] = FLAG(scrub.is_json),
	[OPTION_STATS] = FLAG(scanning.has_stats),
};

static bool parse_option(struct sum_options *options, enum sum_option option, const char *value)
{
	const struct taker *taker = &takers[option];

	if (taker->own != NULL) {
		return taker->own(options, value);
	}
	if (taker->flag_at == 0) {
		return scanning_parse(&options->scanning, sum_specs[option].name, value);
	}
	*(bool *)((char *)options + taker->flag_at) = true;
	return true;
}

/* Combinations that cannot mean anything are refused, as sha256sum does. */
static bool check_options(const struct sum_options *options, char *const *paths, int path_count)
{
	if (path_count == 0 && options->scanning.list_count == 0) {
		report_line(options->is_check
				? "no lists to verify: name them, - for standard input"
				: "no paths: name files, -r and directories, or --files-from=LIST");
		return false;
	}
	if (options->is_check &&
		(options->scanning.list_is_nul || options->is_tagged || options->recurse ||
			options->scanning.list_count > 0)) {
		report_line("-c goes with none of -0, -r, --tag, --files-from");
		return false;
	}
	if (options->scanning.scan.skip_ignored != 0 && !options->recurse &&
		options->audited_count == 0) {
		report_line("--gitignore is about the directories of -r and --audit");
		return false;
	}
	if ((options->scanning.choosing.is_about_trees ||
		    options->scanning.scan.follow_links != 0) &&
		!options->recurse) {
		report_line(
			"-L, -x, --exclude and others like them are about the directories of -r");
		return false;
	}
	if (!options->is_check &&
		((options->is_quiet && options->scrub.state == NULL) || options->is_status ||
			options->ignores_missing || options->is_strict ||
			options->names_bad_lines || options->audited_count > 0)) {
		report_line("--quiet, --status, --ignore-missing, --strict, --warn and --audit go "
			    "only with -c");
		return false;
	}
	if (scanning_lists_stdin(&options->scanning)) {
		for (int i = 0; i < path_count; i++) {
			if (strcmp(paths[i], "-") == 0) {
				report_line("standard input cannot be both a file and the list");
				return false;
			}
		}
	}
	return true;
}

/* What goes on after a crash has to be there then. */
static bool check_checkpoint(const struct sum_options *options, char *const *paths, int path_count)
{
	if (options->scrub.state == NULL &&
		!checkpointing_check(&options->scanning.checkpointing)) {
		return false;
	}
	if (!choosing_check(&options->scanning.choosing)) {
		return false;
	}
	if (options->scanning.checkpointing.file == NULL) {
		return true;
	}
	if (options->is_check) {
		report_line("-c does not go with --checkpoint");
		return false;
	}
	for (int i = 0; i < path_count; i++) {
		if (strcmp(paths[i], "-") == 0) {
			report_line("standard input cannot be read again: --checkpoint is about "
				    "files");
			return false;
		}
	}
	return true;
}

static bool check_algorithm(struct sum_options *options)
{
	if (options->algorithm == NULL && !options->is_check) {
		options->algorithm = &digest_algorithms[DIGEST_XXH3_64];
	}
	if (options->algorithm != NULL && options->algorithm->part != NULL) {
		options->scanning.scan.order = PINION_SCAN_PARALLEL;
	}
	return options->algorithm == NULL || digest_is_built(options->algorithm);
}

/* A window must fit a buffer. */
static void size_buffers(struct scanning_options *options)
{
	options->scan.window_bytes = options->window_bytes;
	if (options->window_bytes > options->runtime.buffer_bytes) {
		options->runtime.buffer_bytes = options->window_bytes;
		/* Few large ones, or an arena would take gigabytes. */
		options->runtime.buffer_count = BUFFER_COUNT_LARGE;
	}
}

/* With what a merge has to know. False: the log is not whole. */
static bool end_checkpoint(struct sum_job *job, bool is_written)
{
	struct checkpointing_end last = {
		.totals = {.seen = job->totals.seen + job->other_path_count,
			.done = job->totals.done,
			.failed = job->totals.failed,
			.skipped = job->totals.skipped,
			.ignored = job->totals.ignored + job->other_path_count,
			.other_shard = job->other_entry_count + job->other_path_count},
		.noted_count = job->totals.done + job->totals.failed,
		.has_trouble = job->has_trouble,
	};
	bool is_whole = is_written && !signals_interrupted() && job->totals.cancelled == 0;

	return checkpointing_end(job->checkpointing, is_whole ? &last : NULL);
}

static int run_job(const struct sum_options *options, char *const *paths, int path_count)
{
	struct sum_job job = {
		.options = options,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	double start = scanning_seconds_now();
	bool is_traced;
	bool is_written;

	if (!checkpointing_begin(&options->scanning.checkpointing, "sum", paths, path_count,
		    &job.checkpointing)) {
		return EXIT_STATUS_TROUBLE;
	}
	progress_watch(0); /* the thread of signals shows it */
	signals_hold();
	if (options->is_check) {
		sum_check(&job, paths, path_count);
	} else if (options->scrub.state != NULL) {
		sum_scrub(&job, paths, path_count);
	} else {
		sum_plain(&job, paths, path_count);
	}
	sum_end(&job);
	throttle_end();
	is_traced = job.runtime == NULL || scanning_save_trace(&options->scanning, job.runtime);
	pinion_runtime_destroy(job.runtime);
	is_written = output_finish() && is_traced;
	checkpointing_report(job.checkpointing, signals_interrupted());
	is_written &= end_checkpoint(&job, is_written);
	if (options->scanning.has_stats) {
		report_totals(&job.totals);
		scanning_report_speed("", &job.totals, scanning_seconds_now() - start);
		throttle_report();
	} else if (is_written && options->scrub.state == NULL &&
		(job.totals.cancelled > 0 ||
			(job.totals.seen > 0 && job.has_trouble && !options->is_check))) {
		report_totals(&job.totals);
	}
	signals_release();
	return scanning_exit_status(job.has_trouble || !is_written, job.has_mismatch);
}

/* The page cache may be right where the disk is not. */
static void set_scrub(struct sum_options *options)
{
	struct pinion_scan_config *scan = &options->scanning.scan;

	options->recurse = true;
	if (scan->direct == PINION_DIRECT_AUTO) {
		scan->direct = PINION_DIRECT_ALWAYS;
	}
}

static int parse_and_run(
	struct sum_options *options, const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct pinion_scan_config *scan = &options->scanning.scan;
	const char *value;
	int option;

	scan->order = PINION_SCAN_IN_ORDER;
	scan->walk_order = PINION_SCAN_WALK_LISTED; /* so are the lines */
	scan->paths_ahead_max = ORDER_PATHS_MAX;
	scan->file_user_bytes = sizeof(struct sum_file);
	scan->report_holes = 1;
	scan->report_gaps = 1;
	while ((option = options_next(&parser, &value)) >= 0) {
		if (!checkpointing_note(
			    &options->scanning.checkpointing, &sum_specs[option], value) ||
			!parse_option(options, (enum sum_option)option, value)) {
			return EXIT_STATUS_TROUBLE;
		}
	}
	if (option == OPTIONS_HELP) {
		return EXIT_STATUS_CLEAN;
	}
	if (option == OPTIONS_ERROR || !scrub_check(options, parser.operand_count)) {
		return EXIT_STATUS_TROUBLE;
	}
	if (options->is_status && !options->is_check) {
		return scrub_status(argv[1], options->scrub.is_json);
	}
	if (options->scrub.state != NULL) {
		set_scrub(options);
	}
	if (!check_options(options, argv + 1, parser.operand_count) ||
		!check_checkpoint(options, argv + 1, parser.operand_count) ||
		!check_algorithm(options) ||
		!scanning_spares_inputs(&options->scanning, argv + 1, parser.operand_count)) {
		return EXIT_STATUS_TROUBLE;
	}
	if (!throttle_prepare(&options->scanning)) {
		return EXIT_STATUS_TROUBLE;
	}
	size_buffers(&options->scanning);
	/* A list to verify names others. */
	if (!options->is_check) {
		scanning_fit_buffers(&options->scanning, argv + 1, parser.operand_count,
			&options->scanning.runtime);
	}
	return run_job(options, argv + 1, parser.operand_count);
}

static int sum_run(const struct command *command, int argc, char **argv)
{
	struct sum_options options = {0};
	int status = EXIT_STATUS_TROUBLE;

	if (scanning_options_init(&options.scanning)) {
		status = parse_and_run(&options, command, argc, argv);
	}
	scanning_options_fini(&options.scanning);
	free(options.audited);
	return status;
}

const struct command sum_command = {
	.name = "sum",
	.arguments = "[OPTION]… PATH…",
	.brief = "checksums of files, as sha256sum, b3sum and xxhsum print them",
	.detail =
		"Lines come in the order of the paths. They are those of sha256sum for sha256, sha1"
		" and md5, of b3sum for blake3, of xxhsum -H2 for xxh3-128 and of xxhsum -H3 for "
		"xxh3-64; a path with a newline, carriage return or backslash is escaped as "
		"sha256sum and xxhsum 0.8.2 do. PATH - is standard input; a block device or an "
		"NVMe namespace, /dev/ngXnY, is hashed whole.\n\n"
		"Exit status: 0 all done, all verified; 1 something does not match its list, or is "
		"rotten; 2 something could not be read, a list has no well-formed line, or bad "
		"usage; 3 stopped early by a signal.",
	.options = sum_specs,
	.option_count = OPTION_COUNT,
	.run = sum_run,
};
