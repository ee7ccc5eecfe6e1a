/* SPDX-License-Identifier: MIT */
/*
 * `pinion bench`: what this machine can do, and how near to it the library
 * comes. This is the command line.
 */
#include "tools/bench/subject.h"

#include "tools/bench/fileset.h"
#include "tools/bench/lines.h"
#include "tools/bench/measure.h"
#include "tools/bench/plot.h"
#include "tools/commands.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"
#include "tools/spelling.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <stdlib.h>
#include <string.h>

enum bench_option {
	OPTION_SECONDS,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_PLOT,
	OPTION_WORKERS,
	OPTION_DEPTH,
	OPTION_BLOCK,
	OPTION_TREE,
	OPTION_FILE,
	OPTION_DIR,
	OPTION_SIZE,
	OPTION_TURN,
	OPTION_COUNT,
};

static const struct option_spec bench_specs[OPTION_COUNT] = {
	[OPTION_SECONDS] = {0, "seconds", "S", "time for each subject, at least 6 pairs; default 5",
		NULL},
	[OPTION_JSON] = {0, "json", NULL, "one JSON object a line, see pinion-bench(1)", NULL},
	[OPTION_CSV] = {0, "csv", NULL, "comma-separated, a line of names first", NULL},
	[OPTION_PLOT] = {0, "plot", "FILE", "draw the figures as SVG, by gnuplot", NULL},
	[OPTION_WORKERS] = {0, "workers", "N[,N]…",
		"worker threads of read, sum, scan, default one per core; read_…, write, "
		"spawn, forkjoin, default 1",
		"Each number in turn. The other subjects need as many as they have."},
	[OPTION_DEPTH] = {0, "depth", "N[,N]…",
		"read_…, write: blocks in flight on each worker, default 32",
		"nop: requests at a time, default 64. timer: others that wait, default 1000."},
	[OPTION_BLOCK] = {0, "block", "SIZE[,SIZE]…",
		"read_…, write: bytes of each, default 4K at random, 64K in order", NULL},
	[OPTION_TREE] = {0, "tree", "DIR", "walk: this tree; without it one is made", NULL},
	[OPTION_FILE] = {0, "file", "PATH",
		"read…, sum, scan: read this file or device; may be repeated",
		"Without it files are made, read and removed."},
	[OPTION_DIR] = {0, "dir", "DIR", "where to make files; default: the current directory",
		NULL},
	[OPTION_SIZE] = {0, "size", "SIZE", "how much to make in all; default 2G", NULL},
	[OPTION_TURN] = {0, "turn", "SIZE", "read_…, write: what each worker moves before the",
		"other side has its turn; default 256M at most."},
};

/* ---- the command ---- */

static int list_subjects(void)
{
	struct output_text text = {0};

	for (uint32_t i = 0; i < bench_subject_count; i++) {
		bench_lines_subject(&text, bench_subjects[i]);
	}
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static const struct bench_subject *find_subject(const char *name)
{
	struct spelling spelling = {.word = name};

	for (uint32_t i = 0; i < bench_subject_count; i++) {
		if (strcmp(name, bench_subjects[i]->name) == 0) {
			return bench_subjects[i];
		}
		spelling_offer(&spelling, bench_subjects[i]->name);
	}
	if (spelling.nearest != NULL) {
		report_line("unknown subject '%s' (did you mean '%s'?)", name, spelling.nearest);
	} else {
		report_line("unknown subject '%s' (see pinion bench list)", name);
	}
	return NULL;
}

/* What all subjects of one call share. */
struct run {
	struct bench bench;
	struct bench_options at_point; /* what the user said, at one point */
	struct bench_plot *plot;
};

typedef void (*line_fn)(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results);

static int print_results(const struct run *run, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	static const line_fn lines[] = {
		[BENCH_TEXT] = bench_lines_text,
		[BENCH_JSON] = bench_lines_json,
		[BENCH_CSV] = bench_lines_csv,
	};
	struct output_text text = {0};
	int rc;

	lines[run->at_point.format](&text, subject, setting, results);
	rc = output_print(&text) ? 0 : -EIO;
	if (rc == 0) {
		rc = bench_plot_add(run->plot, subject, setting, results);
	}
	return rc;
}

/* Returns 0, also when it was skipped, or a negative errno that is reported. */
static int run_point(struct run *run, const struct bench_subject *subject)
{
	struct bench_setting setting = {.point = run->at_point.point};
	struct bench_results results = {0};
	void *state;
	int rc;

	run->bench.subject = subject;
	rc = subject->start(&run->bench, &setting, &state);
	if (rc != 0) {
		return rc == BENCH_SKIPPED ? 0 : rc;
	}
	rc = bench_measure(subject, state, run->at_point.duration_ns, &results);
	if (rc == 0 && subject->further != NULL) {
		results.further_count = subject->further(state, results.further);
	}
	subject->stop(state);
	if (rc == 0) {
		rc = print_results(run, subject, &setting, &results);
	}
	bench_results_free(&results);
	return rc == BENCH_SKIPPED ? 0 : rc;
}

static int run_subject(
	struct run *run, const struct bench_options *options, const struct bench_subject *subject)
{
	uint32_t count = bench_sweep_points(&options->sweep, subject->axes);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < count; i++) {
		run->at_point = *options;
		run->at_point.point =
			bench_sweep_point(&options->sweep, subject->axes, &options->point, i);
		run->at_point.runtime.worker_count = run->at_point.point.values[BENCH_WORKERS];
		rc = run_point(run, subject);
	}
	return rc;
}

static int print_head(const struct bench_options *options)
{
	struct output_text text = {0};

	if (options->format != BENCH_CSV) {
		return 0;
	}
	bench_lines_csv_head(&text);
	return output_print(&text) ? 0 : -EIO;
}

static int run_subjects(const struct bench_options *options, char *const *names, int count)
{
	struct run run = {.at_point = *options};
	bool is_stopped;
	int rc = 0;

	run.bench.options = &run.at_point;
	if (options->plot_path != NULL) {
		rc = bench_plot_create(options->plot_path, &run.plot);
	}
	signals_hold();
	if (rc == 0) {
		rc = print_head(options);
	}
	for (int i = 0; rc == 0 && i < count; i++) {
		rc = run_subject(&run, options, find_subject(names[i]));
	}
	fileset_destroy(run.bench.files);
	is_stopped = signals_interrupted();
	if (is_stopped) {
		report_line("stopped early by a signal");
	} else if (rc == 0) {
		rc = bench_plot_finish(run.plot);
	}
	signals_release();
	bench_plot_destroy(run.plot);
	if (is_stopped) {
		return EXIT_STATUS_STOPPED;
	}
	return rc == 0 ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static bool check_named(const char *option, bool is_given, bool is_of_use)
{
	if (is_given && !is_of_use) {
		report_line(
			"--%s: no subject named depends on it (see pinion bench --help)", option);
		return false;
	}
	return true;
}

/* What no subject named is measured by is a mistake. */
static bool check_axes(const struct bench_options *options, uint32_t axes)
{
	for (int axis = 0; axis < BENCH_AXIS_COUNT; axis++) {
		if (!check_named(bench_axis_name((enum bench_axis)axis),
			    options->sweep.counts[axis] > 0, (axes & BENCH_BY(axis)) != 0)) {
			return false;
		}
	}
	/* Turns are of blocks. */
	return check_named("turn", options->turn_bytes != 0, (axes & BENCH_BY(BENCH_BLOCK)) != 0);
}

/* Names are all known before anything is measured. */
static int run_names(const struct bench_options *options, char *const *names, int count)
{
	uint32_t axes = 0;

	if (count == 0) {
		report_line("no subject (see pinion bench list)");
		return EXIT_STATUS_TROUBLE;
	}
	if (strcmp(names[0], "list") == 0) {
		if (count > 1) {
			report_line("list takes no other name: pinion bench list");
			return EXIT_STATUS_TROUBLE;
		}
		return list_subjects();
	}
	for (int i = 0; i < count; i++) {
		const struct bench_subject *subject = find_subject(names[i]);

		if (subject == NULL) {
			return EXIT_STATUS_TROUBLE;
		}
		axes |= subject->axes;
	}
	return check_axes(options, axes) ? run_subjects(options, names, count)
					 : EXIT_STATUS_TROUBLE;
}

static bool parse_option(struct bench_options *options, enum bench_option option, const char *value)
{
	switch (option) {
	case OPTION_SECONDS:
		return options_duration(
			"seconds", value, 1000000, 86400ull * 1000000000, &options->duration_ns);
	case OPTION_JSON:
		options->format = BENCH_JSON;
		return true;
	case OPTION_CSV:
		options->format = BENCH_CSV;
		return true;
	case OPTION_PLOT:
		options->plot_path = value;
		return true;
	case OPTION_WORKERS:
		return bench_sweep_parse(&options->sweep, BENCH_WORKERS, value);
	case OPTION_DEPTH:
		return bench_sweep_parse(&options->sweep, BENCH_DEPTH, value);
	case OPTION_BLOCK:
		return bench_sweep_parse(&options->sweep, BENCH_BLOCK, value);
	case OPTION_TREE:
		options->tree = value;
		return true;
	case OPTION_FILE:
		options->files[options->file_count++] = value;
		return true;
	case OPTION_DIR:
		options->directory = value;
		return true;
	case OPTION_SIZE:
		/* A block for each of as many workers as there can be. */
		return options_size("size", value, 16 << 20, 1ull << 50, &options->size_bytes);
	case OPTION_TURN:
		return options_size("turn", value, 1 << 20, 1ull << 40, &options->turn_bytes);
	case OPTION_COUNT:
		break;
	}
	return false;
}

/* Returns OPTIONS_END, or what else ended the options. */
static int parse_options(struct option_parser *parser, struct bench_options *options)
{
	bool makes_files = false;
	bool has_json = false;
	bool has_csv = false;
	const char *value;
	int option;

	while ((option = options_next(parser, &value)) >= 0) {
		if (!parse_option(options, (enum bench_option)option, value)) {
			return OPTIONS_ERROR;
		}
		makes_files = makes_files || option == OPTION_DIR || option == OPTION_SIZE;
		has_json = has_json || option == OPTION_JSON;
		has_csv = has_csv || option == OPTION_CSV;
	}
	if (option == OPTIONS_END && makes_files && options->file_count > 0) {
		report_line("--file goes with neither --dir nor --size");
		return OPTIONS_ERROR;
	}
	if (option == OPTIONS_END && has_json && has_csv) {
		report_line("--json and --csv exclude each other");
		return OPTIONS_ERROR;
	}
	return option;
}

static int bench_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct bench_options options = {
		.duration_ns = 5000000000u,
		.directory = ".",
		.size_bytes = 2ull << 30,
		.files = calloc((size_t)argc, sizeof(*options.files)),
	};
	int status = EXIT_STATUS_TROUBLE;
	int option;

	pinion_config_init(&options.runtime);
	pinion_tuning_init(&options.tuning);
	/* Subjects keep their workers in one task for all of a measurement. */
	options.tuning.stall_ms = 0;
	report_log_of(&options.runtime);
	if (options.files == NULL) {
		report_line("%s", report_reason(ENOMEM));
	} else if (pinion_config_from_env(&options.runtime, &options.tuning) == 0) {
		options.point.values[BENCH_WORKERS] = options.runtime.worker_count;
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
		  "same without this library. The result is the ratio of the two with its "
		  "interval; where that reaches further than 15 % from the ratio, the noise is "
		  "too high to conclude anything.\n"
		  "\n"
		  "Files are made without a name, so that none is left over. Exit status: 0 "
		  "measured, 2 could not, 3 stopped early.\n",
	.options = bench_specs,
	.option_count = OPTION_COUNT,
	.run = bench_run,
};
