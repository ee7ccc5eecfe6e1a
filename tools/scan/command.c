/* SPDX-License-Identifier: MIT */
/*
 * `pinion scan`: searches files and trees for secrets, or for patterns of
 * one's own. This is the command line.
 */
#include "tools/scan/run.h"

#include "tools/commands.h"
#include "tools/output_file.h"
#include "tools/report.h"
#include "tools/scan/compile_limit.h"
#include "tools/scan/explain.h"
#include "tools/scan/options_check.h"
#include "tools/throttle.h"

#include <stddef.h>
#include <stdlib.h>

enum scan_option {
	OPTION_REGEX,
	OPTION_RULES,
	OPTION_YARA_DEFINE,
	OPTION_YARA_MAX_SIZE,
	OPTION_STRICT,
	OPTION_BUILTIN,
	OPTION_EXAMPLES,
	OPTION_FIXED,
	OPTION_FORMAT,
	OPTION_OFFSETS,
	OPTION_REDACT,
	OPTION_BASELINE,
	OPTION_NO_ALLOW,
	OPTION_PATHS,
	OPTION_COUNTS,
	OPTION_AFTER,
	OPTION_BEFORE,
	OPTION_CONTEXT,
	OPTION_COLOR,
	OPTION_OUTPUT,
	OPTION_FILES_FROM,
	OPTION_NULL,
	OPTION_GIT,
	OPTION_SINCE,
	OPTION_STAGED,
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
	OPTION_BINARY,
	OPTION_DECODE,
	OPTION_ARCHIVES,
	OPTION_ARCHIVE_LIMIT,
	OPTION_SORT,
	OPTION_WORKERS,
	OPTION_WINDOW,
	OPTION_FILE_TIMEOUT,
	OPTION_DIRECT,
	OPTION_IO,
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
	OPTION_EXPLAIN,
	OPTION_TRACE,
	OPTION_PRINT_PATTERNS,
	OPTION_MAX_FINDINGS,
	OPTION_MAX_RULES,
	OPTION_MAX_RULE_BYTES,
	OPTION_MAX_COMPILE_TIME,
	OPTION_NO_CACHE,
	OPTION_COUNT,
};

static const struct option_spec scan_specs[OPTION_COUNT] = {
	[OPTION_REGEX] = {'e', "regex", "REGEX", "search for this; may be given several times",
		"Findings name it e1, e2 and so on."},
	[OPTION_RULES] = {0, "rules", "FILE", "search for the rules in FILE: lines, TOML, or YARA",
		"Lines are ID<TAB>REGEX; empty ones, and those that start with #, are skipped. "
		"TOML is as gitleaks and betterleaks have it. May be given several times."},
	[OPTION_YARA_DEFINE] = {YARA_SPEC_DEFINE},
	[OPTION_YARA_MAX_SIZE] = {YARA_SPEC_MAX_FILESIZE},
	[OPTION_STRICT] = {0, "strict-rules", NULL,
		"what a rules file has and pinion lacks: an error",
		"Otherwise a line on standard error names it, and the scan goes on without."},
	[OPTION_BUILTIN] = {0, "builtin", NULL, "with -e or --rules: the built-in rules as well",
		NULL},
	[OPTION_EXAMPLES] = {0, "include-examples", NULL,
		"report well-known examples and test keys",
		"Those of the built-in rules, such as AWS's documentation key."},
	[OPTION_FIXED] = {'F', "fixed-strings", NULL, "the patterns of -e are plain strings", NULL},
	[OPTION_FORMAT] = {REPORT_SPEC_FORMAT},
	[OPTION_OFFSETS] = {REPORT_SPEC_OFFSETS},
	[OPTION_REDACT] = {REPORT_SPEC_REDACT},
	[OPTION_BASELINE] = {REPORT_SPEC_BASELINE},
	[OPTION_NO_ALLOW] = {REPORT_SPEC_NO_ALLOW},
	[OPTION_PATHS] = {REPORT_SPEC_PATHS},
	[OPTION_COUNTS] = {REPORT_SPEC_COUNTS},
	[OPTION_AFTER] = {REPORT_SPEC_AFTER},
	[OPTION_BEFORE] = {REPORT_SPEC_BEFORE},
	[OPTION_CONTEXT] = {REPORT_SPEC_CONTEXT},
	[OPTION_COLOR] = {REPORT_SPEC_COLOR},
	[OPTION_OUTPUT] = {REPORT_SPEC_OUTPUT},
	[OPTION_FILES_FROM] = {0, "files-from", "LIST", "scan what a list names, - for stdin",
		"One path a line. They come after PATHs. May be given several times."},
	[OPTION_NULL] = {'0', "null", NULL, "entries of LIST end in NUL", NULL},
	[OPTION_GIT] = {0, "git", "REPO", "search all that the repository REPO has ever had",
		"The blobs of all its commits, each once, in place of PATHs."},
	[OPTION_SINCE] = {0, "since", "REV", "with --git: what commits have brought that REV lacks",
		NULL},
	[OPTION_STAGED] = {0, "staged", NULL,
		"search what the next commit would bring; without --git: to the repository here",
		NULL},
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
	[OPTION_BINARY] = {0, "binary", "HOW", "search (default) or skip files with zero bytes",
		"Among the first 4096; archives of -z and text as --decode has it are none."},
	[OPTION_DECODE] = {DECODE_SPEC},
	[OPTION_ARCHIVES] = {ARCHIVE_SPEC_ON},
	[OPTION_ARCHIVE_LIMIT] = {ARCHIVE_SPEC_LIMIT},
	[OPTION_SORT] = {SCANNING_SPEC_SORT},
	[OPTION_WORKERS] = {SCANNING_SPEC_WORKERS},
	[OPTION_WINDOW] = {SCANNING_SPEC_WINDOW},
	[OPTION_FILE_TIMEOUT] = {SCANNING_SPEC_FILE_TIMEOUT},
	[OPTION_DIRECT] = {SCANNING_SPEC_DIRECT},
	[OPTION_IO] = {SCANNING_SPEC_IO},
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
	[OPTION_STATS] = {0, "stats", "[=FORMAT]", "counts and speed on stderr at the end",
		"text, or json: one object."},
	[OPTION_EXPLAIN] = {0, "explain", "FILE",
		"say whether this scan would search FILE, and if not, why", NULL},
	[OPTION_TRACE] = {SCANNING_SPEC_TRACE},
	[OPTION_PRINT_PATTERNS] = {0, "print-patterns", NULL,
		"print the patterns as grep -E -f takes them, and end", NULL},
	[OPTION_MAX_FINDINGS] = {0, "max-findings-per-file", "N",
		"show N findings of a rule in a file; default: 10000", "0: all, however many."},
	[OPTION_MAX_RULES] = {0, "max-rules", "N", "at most N rules; default: 20000", NULL},
	[OPTION_MAX_RULE_BYTES] = {0, "max-rule-bytes", "SIZE",
		"at most SIZE bytes of patterns; default: 16M", NULL},
	[OPTION_MAX_COMPILE_TIME] = {0, "max-compile-time", "SECONDS",
		"end if the rules take longer to compile; default: 60", NULL},
	[OPTION_NO_CACHE] = {0, "no-cache", NULL, "compile the rules, whatever was kept of them",
		"Nothing is kept, either: see CACHE in the manual page."},
};

enum {
	COMPILE_SECONDS_MAX = 1000000,
};

static const uint64_t ns_per_ms = 1000000;
static const uint64_t ns_per_s = 1000000000;

/* ---- values of single options ---- */

static bool parse_regex(struct scan_options *options, const char *value)
{
	struct scan_patterns *patterns = &options->patterns;

	return options_append(&patterns->expressions, &patterns->expression_count, value);
}

static bool parse_rules(struct scan_options *options, const char *value)
{
	return options_append(&options->patterns.files, &options->patterns.file_count, value);
}

static bool parse_yara_define(struct scan_options *options, const char *value)
{
	return yara_defines_parse(&options->patterns.yara_defines, value);
}

/* libyara has matches of 31 bits. */
static bool parse_yara_max_size(struct scan_options *options, const char *value)
{
	return options_size(
		"yara-max-filesize", value, 1, (uint64_t)1 << 30, &options->yara_bytes_max);
}

static bool parse_stats(struct scan_options *options, const char *value)
{
	static const char *const words[] = {"text", "json", NULL};
	int index = value == NULL ? 0 : options_choice("stats", value, words);

	options->scanning.has_stats = true;
	options->has_json_stats = index == 1;
	return index >= 0;
}

static bool parse_explain(struct scan_options *options, const char *value)
{
	options->explained = value;
	return true;
}

static bool parse_findings_max(struct scan_options *options, const char *value)
{
	return options_count(
		"max-findings-per-file", value, 0, UINT32_MAX, &options->patterns.findings_max);
}

static bool parse_rule_count(struct scan_options *options, const char *value)
{
	uint64_t count;

	if (!options_count("max-rules", value, 1, UINT32_MAX, &count)) {
		return false;
	}
	options->patterns.count_max = (uint32_t)count;
	return true;
}

static bool parse_rule_bytes(struct scan_options *options, const char *value)
{
	return options_size(
		"max-rule-bytes", value, 1, (uint64_t)1 << 40, &options->patterns.bytes_max);
}

static bool parse_compile_time(struct scan_options *options, const char *value)
{
	return options_duration("max-compile-time", value, ns_per_ms,
		COMPILE_SECONDS_MAX * ns_per_s, &options->patterns.compile_ns_max);
}

static bool parse_binary(struct scan_options *options, const char *value)
{
	static const char *const words[] = {"search", "skip", NULL};
	int index = options_choice("binary", value, words);

	options->skips_binary = index == 1;
	return index >= 0;
}

static bool parse_decode(struct scan_options *options, const char *value)
{
	return decode_options_parse(&options->decode, value);
}

static bool parse_git(struct scan_options *options, const char *value)
{
	options->git.repository = value;
	return true;
}

static bool parse_since(struct scan_options *options, const char *value)
{
	options->git.since = value;
	return true;
}

static bool parse_archive_limit(struct scan_options *options, const char *value)
{
	return archive_options_limit(&options->archives, value);
}

/* ---- all options ---- */

/*
 * What an option with this row does: calls one of these, or sets a flag. Those
 * without a row are for scanning_parse().
 */
struct taker {
	bool (*own)(struct scan_options *options, const char *value);
	bool (*report)(struct report_options *options, const char *name, const char *value);
	size_t flag_at; /* in struct scan_options, never its first member; 0: none */
};

#define FLAG(member) \
	{ \
		.flag_at = offsetof(struct scan_options, member) \
	}

static const struct taker takers[OPTION_COUNT] = {
	[OPTION_REGEX] = {.own = parse_regex},
	[OPTION_RULES] = {.own = parse_rules},
	[OPTION_YARA_DEFINE] = {.own = parse_yara_define},
	[OPTION_YARA_MAX_SIZE] = {.own = parse_yara_max_size},
	[OPTION_STRICT] = FLAG(patterns.is_strict),
	[OPTION_BUILTIN] = FLAG(patterns.with_builtin),
	[OPTION_EXAMPLES] = FLAG(patterns.with_examples),
	[OPTION_FIXED] = FLAG(patterns.are_literals),
	[OPTION_FORMAT] = {.report = report_options_parse},
	[OPTION_OFFSETS] = {.report = report_options_parse},
	[OPTION_REDACT] = {.report = report_options_parse},
	[OPTION_BASELINE] = {.report = report_options_parse},
	[OPTION_NO_ALLOW] = {.report = report_options_parse},
	[OPTION_PATHS] = {.report = report_options_parse},
	[OPTION_COUNTS] = {.report = report_options_parse},
	[OPTION_AFTER] = {.report = report_options_parse},
	[OPTION_BEFORE] = {.report = report_options_parse},
	[OPTION_CONTEXT] = {.report = report_options_parse},
	[OPTION_COLOR] = {.report = report_options_parse},
	[OPTION_OUTPUT] = {.report = report_options_parse},
	[OPTION_NULL] = FLAG(scanning.list_is_nul),
	[OPTION_GIT] = {.own = parse_git},
	[OPTION_SINCE] = {.own = parse_since},
	[OPTION_STAGED] = FLAG(git.is_staged),
	[OPTION_BINARY] = {.own = parse_binary},
	[OPTION_DECODE] = {.own = parse_decode},
	[OPTION_ARCHIVES] = FLAG(archives.is_on),
	[OPTION_ARCHIVE_LIMIT] = {.own = parse_archive_limit},
	[OPTION_STATS] = {.own = parse_stats},
	[OPTION_EXPLAIN] = {.own = parse_explain},
	[OPTION_PRINT_PATTERNS] = FLAG(prints_patterns),
	[OPTION_MAX_FINDINGS] = {.own = parse_findings_max},
	[OPTION_MAX_RULES] = {.own = parse_rule_count},
	[OPTION_MAX_RULE_BYTES] = {.own = parse_rule_bytes},
	[OPTION_MAX_COMPILE_TIME] = {.own = parse_compile_time},
	[OPTION_NO_CACHE] = FLAG(patterns.is_uncached),
};

static bool parse_option(struct scan_options *options, enum scan_option option, const char *value)
{
	const struct taker *taker = &takers[option];
	const char *name = scan_specs[option].name;

	if (taker->own != NULL) {
		return taker->own(options, value);
	}
	if (taker->report != NULL) {
		return taker->report(&options->report, name, value);
	}
	if (taker->flag_at == 0) {
		return scanning_parse(&options->scanning, name, value);
	}
	*(bool *)((char *)options + taker->flag_at) = true;
	return true;
}

/* Options that do not go with YARA, which files of rules may turn out to be. */
static bool check_rules(const struct scan_options *options, const struct rules *rules)
{
	if (rules->yara_count > 0 && options->report.style.has_context) {
		report_line("-A, -B and -C know no rules of YARA");
		return false;
	}
	if (rules->yara_count == 0 && options->patterns.yara_defines.count > 0) {
		report_line("--yara-define is about rules of YARA, and there are none");
		return false;
	}
	return true;
}

static bool begin_output(const struct scan_options *options)
{
	const char *file = options->report.output_file;

	return file == NULL || output_file_begin(file);
}

static int load_and_run(struct scan_options *options)
{
	const struct matcher_ops *matcher = scan_rules_matcher(&options->patterns);
	struct rules rules = {0};
	int status = EXIT_STATUS_TROUBLE;
	bool is_loaded = report_options_load(&options->report, options->patterns.silence_ns_max) &&
		scan_rules_load(&options->patterns, matcher, &rules) &&
		check_rules(options, &rules);

	if (is_loaded && options->prints_patterns) {
		compile_limit_end();
		status = scan_rules_print(&rules);
	} else if (is_loaded && begin_output(options)) {
		if (rules.yara_count > 0) {
			scanning_allow_waits(&options->scanning);
		}
		/* Any that does nothing, where YARA has all rules. */
		matcher = rules.count == 0 ? &matcher_literal : matcher;
		rules.keeps_text = options->report.format->needs_text;
		if (options->archives.is_on && throttle_has_rate()) {
			report_note("-z reads archives as fast as it can unpack them: rates and "
				    "targets hold for other files only");
		}
		status = scan_run(options, matcher, &rules);
	}
	compile_limit_end();
	rules_free(&rules);
	return status;
}

static int parse(const struct command *command, int argc, char **argv, struct scan_options *options)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	const char *value;
	int option;

	while ((option = options_next(&parser, &value)) >= 0) {
		if (!checkpointing_note(
			    &options->scanning.checkpointing, &scan_specs[option], value) ||
			!parse_option(options, (enum scan_option)option, value)) {
			return OPTIONS_ERROR;
		}
	}
	if (options->archives.is_on) {
		scanning_allow_waits(&options->scanning);
	}
	options->patterns.has_one_file = options->scanning.checkpointing.file != NULL;
	options->patterns.silence_ns_max = options->scanning.scan.file_timeout_ns;
	options->paths = argv + 1;
	options->path_count = parser.operand_count;
	return option == OPTIONS_END && !scan_options_check(options) ? OPTIONS_ERROR : option;
}

static int scan_command_run(const struct command *command, int argc, char **argv)
{
	struct scan_options options = {
		.patterns = SCAN_PATTERNS_STANDARD,
		.archives = ARCHIVE_OPTIONS_STANDARD,
		.yara_bytes_max = YARA_FILE_BYTES,
	};
	int status = EXIT_STATUS_TROUBLE;
	int parsed;

	if (!scanning_options_init(&options.scanning)) {
		return EXIT_STATUS_TROUBLE;
	}
	report_options_init(&options.report);
	parsed = parse(command, argc, argv, &options);
	if (parsed == OPTIONS_HELP) {
		status = EXIT_STATUS_CLEAN;
	} else if (parsed == OPTIONS_END && throttle_prepare(&options.scanning)) {
		status = options.explained != NULL ? explain_run(&options) : load_and_run(&options);
	}
	report_options_fini(&options.report);
	free(options.patterns.expressions);
	free(options.patterns.files);
	yara_defines_fini(&options.patterns.yara_defines);
	scanning_options_fini(&options.scanning);
	return status;
}

const struct command scan_command = {
	.name = "scan",
	.arguments = "[OPTION]… PATH…",
	.brief = "search files for secrets, or for patterns of your own",
	.detail =
		"Searches for the built-in rules (--print-patterns shows them), or for those of -e "
		"and --rules instead. Directories are walked, everything in them is searched as "
		"bytes. Patterns are PCRE as Hyperscan knows it; ^ and $ mean every line, . any "
		"byte but newline.\n\n"
		"A line is PATH:LINE:COLUMN: RULE: EXCERPT, with columns in bytes from 1, and the "
		"first bytes of the finding. The lines of a file are in order; those of several "
		"files mix.\n\n"
		"Exit status: 0 nothing found; 1 something found; 2 something could not be read, "
		"or bad usage; 3 stopped early by a signal.",
	.options = scan_specs,
	.option_count = OPTION_COUNT,
	.run = scan_command_run,
};
