/* SPDX-License-Identifier: MIT */
/*
 * A function for each group of options that exclude others.
 */
#include "tools/scan/options_check.h"

#include "tools/distribution.h"
#include "tools/output_file.h"
#include "tools/report.h"

#include <string.h>

/* The trace would take the place of the findings, or of an input. */
static bool check_files(const struct scan_options *options)
{
	const char *output = options->report.output_file;
	const char *trace = options->scanning.trace_file;

	if (output != NULL && trace != NULL && output_file_is(output, trace)) {
		report_line("--output and --trace would write the same file: %s", output);
		return false;
	}
	if (output != NULL && scanning_is_metrics(&options->scanning, output)) {
		report_line("--output would replace %s, which is for the metrics page: choose "
			    "another",
			output);
		return false;
	}
	for (uint32_t i = 0; i < options->patterns.file_count; i++) {
		if (!scanning_spares(&options->scanning, options->patterns.files[i])) {
			return false;
		}
	}
	for (uint32_t i = 0; i < options->report.baseline_count; i++) {
		if (!scanning_spares(&options->scanning, options->report.baseline_files[i])) {
			return false;
		}
	}
	return scanning_spares_inputs(&options->scanning, options->paths, options->path_count);
}

/* Options that say which files of a tree are read. */
static bool is_about_files(const struct scanning_options *scanning)
{
	const struct pinion_walk_filter *filter = scanning->scan.filter;

	return scanning->scan.skip_ignored != 0 || scanning->scan.follow_links != 0 ||
		(filter != NULL &&
			(filter->one_file_system != 0 || filter->hard_links_once != 0 ||
				filter->shard_count > 1 || filter->modified_from_ns != 0 ||
				filter->modified_to_ns != 0));
}

static bool check_git(struct scan_options *options)
{
	struct git_options *git = &options->git;

	if (git->is_staged && git->repository == NULL) {
		git->repository = ".";
	}
	if (git->repository == NULL) {
		if (git->since != NULL) {
			report_line("--since is about the commits of --git");
		}
		return git->since == NULL;
	}
	if (git->repository[0] == '\0') {
		report_line("--git: name a repository");
		return false;
	}
	if (options->path_count > 0 || options->scanning.list_count > 0) {
		report_line("--git searches a repository, and no PATH: leave one of them out");
		return false;
	}
	if (git->is_staged && git->since != NULL) {
		report_line("--staged is about no commit: leave --since out");
		return false;
	}
	if (options->scanning.checkpointing.file != NULL || options->archives.is_on) {
		report_line("--git knows neither --checkpoint nor -z");
		return false;
	}
	if (is_about_files(&options->scanning) || options->explained != NULL) {
		report_line("--git takes --include, --exclude, --no-hidden, --min-size and "
			    "--max-filesize of the options about files");
		return false;
	}
	return true;
}

/* Lines of context come with files that are searched in one go. */
static bool check_context(const struct scan_options *options)
{
	if (!options->report.style.has_context) {
		return true;
	}
	if (options->git.repository != NULL || options->git.is_staged ||
		decode_is_on(&options->decode) || options->scanning.checkpointing.file != NULL) {
		report_line(
			"-A, -B and -C know neither --git, --staged, --decode nor --checkpoint");
		return false;
	}
	return true;
}

bool scan_options_check(struct scan_options *options)
{
	const struct report_format *format = options->report.format;

	if (!report_options_check(&options->report) ||
		!distribution_allows_format(format->name, format->is_document) ||
		!check_files(options) || !archive_options_check(&options->archives) ||
		!checkpointing_check(&options->scanning.checkpointing) ||
		!choosing_check(&options->scanning.choosing) || !check_context(options)) {
		return false;
	}
	if (options->patterns.are_literals && options->patterns.expression_count == 0) {
		report_line("-F is about the patterns of -e, and there is none");
		return false;
	}
	/* Lines that are kept are for any output. */
	if (options->scanning.checkpointing.file != NULL) {
		options->report.style.has_colors = false;
	}
	if (options->prints_patterns) {
		return true;
	}
	if (!check_git(options)) {
		return false;
	}
	if (options->git.repository != NULL) {
		return true;
	}
	if (options->path_count == 0 && options->scanning.list_count == 0) {
		report_line("no paths: name files or directories, or --files-from=LIST");
		return false;
	}
	for (int i = 0; i < options->path_count; i++) {
		if (strcmp(options->paths[i], "-") == 0) {
			report_line("standard input cannot be scanned (a file - is ./-)");
			return false;
		}
	}
	return true;
}
