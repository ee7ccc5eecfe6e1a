/* SPDX-License-Identifier: MIT */
/*
 * `pinion bench`: what this machine can do, and how near to it the library
 * comes. This is the command line, and the turns in which a subject's sides
 * are measured.
 *
 * Ours and the floor are measured in pairs in one process, A-B then B-A, so
 * that neither always has the warmer machine. One turn of each goes before and
 * does not count.
 */
#include "tools/bench/subject.h"

#include "tools/bench/fileset.h"
#include "tools/bench/lines.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scanning.h"
#include "tools/signals.h"
#include "tools/spelling.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct bench_subject *const subjects[] = {
	&bench_read,
	&bench_sum,
	&bench_scan,
	&bench_spawn,
	&bench_yield,
	&bench_inject,
	&bench_batch,
	&bench_steal,
	&bench_forkjoin,
	&bench_wake,
	&bench_wake_worker,
	&bench_wake_ring,
	&bench_idle,
	&bench_idle_ring,
};
enum { SUBJECT_COUNT = sizeof(subjects) / sizeof(subjects[0]) };

enum bench_option {
	OPTION_SECONDS,
	OPTION_JSON,
	OPTION_WORKERS,
	OPTION_FILE,
	OPTION_DIR,
	OPTION_SIZE,
	OPTION_COUNT,
};

static const struct option_spec bench_specs[OPTION_COUNT] = {
	[OPTION_SECONDS] = {0, "seconds", "S", "time for each subject, at least 6 pairs; default 5",
		NULL},
	[OPTION_JSON] = {0, "json", NULL, "one JSON object a line, see pinion-bench(1)", NULL},
	[OPTION_WORKERS] = {0, "workers", "N",
		"worker threads of read, sum, scan, forkjoin; default: one per core, forkjoin: 1",
		"The other subjects need as many as they have."},
	[OPTION_FILE] = {0, "file", "PATH", "read, sum, scan: read this file; may be repeated",
		"Without it files are made, read and removed."},
	[OPTION_DIR] = {0, "dir", "DIR", "where to make files; default: the current directory",
		NULL},
	[OPTION_SIZE] = {0, "size", "SIZE", "how much to make in all; default 2G", NULL},
};

uint64_t bench_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- measuring ---- */

/* One turn of one side; its median is what the pair is made of. */
static int measure_side(const struct bench_subject *subject, void *state, enum bench_side side,
	struct bench_results *results, double *out_median)
{
	struct figures *block = &results->block;
	int rc;

	figures_clear(block);
	rc = subject->run(state, side, block);
	for (uint32_t i = 0; rc == 0 && i < block->count; i++) {
		rc = figures_add(&results->figures[side], block->values[i]);
	}
	if (rc == -ENOMEM) {
		report_line("%s", report_reason(rc));
	}
	if (rc == 0 && signals_interrupted()) {
		rc = -ECANCELED;
	}
	if (rc == 0) {
		figures_sort(block);
		*out_median = figures_quantile(block, 0.5);
	}
	return rc;
}

static int measure_pair(const struct bench_subject *subject, void *state, bool is_backward,
	struct bench_results *results)
{
	double medians[BENCH_SIDE_COUNT];
	int rc = 0;

	for (int turn = 0; rc == 0 && turn < BENCH_SIDE_COUNT; turn++) {
		int side = is_backward ? BENCH_SIDE_COUNT - 1 - turn : turn;

		if (bench_has_side(subject, side)) {
			rc = measure_side(
				subject, state, (enum bench_side)side, results, &medians[side]);
		}
	}
	for (int side = BENCH_FLOOR; rc == 0 && side < BENCH_SIDE_COUNT; side++) {
		if (bench_has_side(subject, side)) {
			rc = figures_add(
				&results->ratios[side], medians[BENCH_OURS] / medians[side]);
		}
	}
	return rc;
}

static void clear_results(struct bench_results *results)
{
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		figures_clear(&results->figures[side]);
		figures_clear(&results->ratios[side]);
	}
}

static void free_results(struct bench_results *results)
{
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		figures_free(&results->figures[side]);
		figures_free(&results->ratios[side]);
	}
	figures_free(&results->block);
}

static int measure(const struct bench_subject *subject, void *state, uint64_t seconds,
	struct bench_results *results)
{
	uint64_t end_ns = bench_now_ns() + seconds * 1000000000u;
	int rc = measure_pair(subject, state, false, results);

	clear_results(results);
	for (uint32_t pair = 0; rc == 0 && pair < FIGURES_PAIRS_MAX &&
		(pair < FIGURES_PAIRS_MIN || bench_now_ns() < end_ns);
		pair++) {
		rc = measure_pair(subject, state, pair % 2 == 1, results);
	}
	for (int side = 0; side < BENCH_SIDE_COUNT; side++) {
		figures_sort(&results->figures[side]);
		figures_sort(&results->ratios[side]);
	}
	return rc;
}

/* ---- the command ---- */

static int list_subjects(void)
{
	struct output_text text = {0};

	for (int i = 0; i < SUBJECT_COUNT; i++) {
		bench_lines_subject(&text, subjects[i]);
	}
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static const struct bench_subject *find_subject(const char *name)
{
	struct spelling spelling = {.word = name};

	for (int i = 0; i < SUBJECT_COUNT; i++) {
		if (strcmp(name, subjects[i]->name) == 0) {
			return subjects[i];
		}
		spelling_offer(&spelling, subjects[i]->name);
	}
	if (spelling.nearest != NULL) {
		report_line("unknown subject '%s' (did you mean '%s'?)", name, spelling.nearest);
	} else {
		report_line("unknown subject '%s' (see pinion bench list)", name);
	}
	return NULL;
}

/* Returns 0, also when it was skipped, or a negative errno that is reported. */
static int run_subject(struct bench *bench, const struct bench_subject *subject)
{
	struct bench_setting setting = {0};
	struct bench_results results = {0};
	struct output_text text = {0};
	void *state;
	int rc = subject->start(bench, &setting, &state);

	if (rc != 0) {
		return rc == BENCH_SKIPPED ? 0 : rc;
	}
	rc = measure(subject, state, bench->options->seconds, &results);
	if (rc == 0 && subject->further != NULL) {
		results.further_count = subject->further(state, results.further);
	}
	subject->stop(state);
	if (rc == 0) {
		(bench->options->is_json ? bench_lines_json : bench_lines_text)(
			&text, subject, &setting, &results);
		rc = output_print(&text) ? 0 : -EIO;
	}
	free_results(&results);
	return rc == BENCH_SKIPPED ? 0 : rc;
}

static int run_subjects(const struct bench_options *options, char *const *names, int count)
{
	struct bench bench = {.options = options};
	bool is_stopped;
	int rc = 0;

	signals_hold();
	for (int i = 0; rc == 0 && i < count; i++) {
		rc = run_subject(&bench, find_subject(names[i]));
	}
	fileset_destroy(bench.files);
	is_stopped = signals_interrupted();
	if (is_stopped) {
		report_line("stopped early by a signal");
	}
	signals_release();
	if (is_stopped) {
		return EXIT_STATUS_STOPPED;
	}
	return rc == 0 ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

/* Names are all known before anything is measured. */
static int run_names(const struct bench_options *options, char *const *names, int count)
{
	if (count == 0) {
		report_line("no subject (see pinion bench list)");
		return EXIT_STATUS_TROUBLE;
	}
	if (count == 1 && strcmp(names[0], "list") == 0) {
		return list_subjects();
	}
	for (int i = 0; i < count; i++) {
		if (find_subject(names[i]) == NULL) {
			return EXIT_STATUS_TROUBLE;
		}
	}
	return run_subjects(options, names, count);
}

static bool parse_option(struct bench_options *options, enum bench_option option, const char *value)
{
	switch (option) {
	case OPTION_SECONDS:
		return options_count("seconds", value, 1, 86400, &options->seconds);
	case OPTION_JSON:
		options->is_json = true;
		return true;
	case OPTION_WORKERS:
		return scanning_parse_workers(&options->runtime, value);
	case OPTION_FILE:
		options->files[options->file_count++] = value;
		return true;
	case OPTION_DIR:
		options->directory = value;
		return true;
	case OPTION_SIZE:
		/* A block for each of as many workers as there can be. */
		return options_size("size", value, 16 << 20, 1ull << 50, &options->size_bytes);
	case OPTION_COUNT:
		break;
	}
	return false;
}

/* Returns OPTIONS_END, or what else ended the options. */
static int parse_options(struct option_parser *parser, struct bench_options *options)
{
	bool makes_files = false;
	const char *value;
	int option;

	while ((option = options_next(parser, &value)) >= 0) {
		if (!parse_option(options, (enum bench_option)option, value)) {
			return OPTIONS_ERROR;
		}
		makes_files = makes_files || option == OPTION_DIR || option == OPTION_SIZE;
	}
	if (option == OPTIONS_END && makes_files && options->file_count > 0) {
		report_line("--file goes with neither --dir nor --size");
		return OPTIONS_ERROR;
	}
	return option;
}

static int bench_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct bench_options options = {
		.seconds = 5,
		.directory = ".",
		.size_bytes = 2ull << 30,
		.files = calloc((size_t)argc, sizeof(*options.files)),
	};
	int status = EXIT_STATUS_TROUBLE;
	int option;

	pinion_config_init(&options.runtime);
	options.runtime.log = report_log;
	if (options.files == NULL) {
		report_line("%s", report_reason(ENOMEM));
	} else if (pinion_config_from_env(&options.runtime) == 0) {
		option = parse_options(&parser, &options);
		if (option == OPTIONS_HELP) {
			status = EXIT_STATUS_CLEAN;
		} else if (option == OPTIONS_END) {
			status = run_names(&options, argv + 1, parser.operand_count);
		}
	}
	free(options.files);
	return status;
}

const struct command bench_command = {
	.name = "bench",
	.arguments = "list | NAME… [OPTION]…",
	.brief = "what this machine can do, and how near to it the library comes",
	.detail = "Each subject is measured in turns with its floor: the least that does the "
		  "same without this library. What counts is the ratio of the two with its "
		  "interval; where that reaches further than 15 % from the ratio, the noise is "
		  "too high to conclude anything.\n"
		  "\n"
		  "Files are made without a name, so that none is left behind. Exit status: 0 "
		  "measured, 2 could not, 3 stopped early.\n",
	.options = bench_specs,
	.option_count = OPTION_COUNT,
	.run = bench_run,
};
