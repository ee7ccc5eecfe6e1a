/* SPDX-License-Identifier: MIT */
/*
 * pinion merge: the logs of the shards of a scan or a sum, joined to what one
 * run over all files would have written.
 */
#include "tools/commands.h"
#include "tools/merge/join.h"
#include "tools/output.h"
#include "tools/report.h"

#include <string.h>

enum { OPTION_MISSING };

static const struct option_spec merge_options[] = {
	[OPTION_MISSING] = {0, "missing", NULL,
		"print which shards are to be run, as sbatch --array takes them",
		"Such as 2,5-7: those that have no log here, or have not come to their end. Exit "
		"status: 0 there are none, 1 there are."},
};

static int print_missing(const struct shards *shards)
{
	struct output_text text = {0};
	bool has_some;

	if (shards->count == 0) {
		report_line("no log says how many shards there are");
		return EXIT_STATUS_TROUBLE;
	}
	shards_missing(shards, &text);
	has_some = text.length > 0;
	output_text_string(&text, has_some ? "\n" : "");
	if (!output_print(&text)) {
		return EXIT_STATUS_TROUBLE;
	}
	return has_some ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
}

/* Whether all of the run is there. */
static bool is_complete(const struct shards *shards)
{
	struct output_text text = {0};
	bool has_all;

	shards_missing(shards, &text);
	has_all = text.length == 0 && !text.failed;
	output_text_append(&text, "", 1);
	if (!has_all) {
		report_line("of %u shards these are missing or not complete: %s", shards->count,
			text.failed ? "" : text.bytes);
	}
	output_text_free(&text);
	return has_all;
}

/* Whether the logs have all of the output. */
static bool can_join(const struct shards *shards)
{
	for (uint32_t i = 0; i < shards->count; i++) {
		if (shards->items[i].end.form != CHECKPOINT_FORM_LINES) {
			report_line(shards->items[i].end.form == CHECKPOINT_FORM_DOCUMENT
					? "%s has parts of a document, which cannot be joined: "
					  "--format=json and csv can"
					: "%s lacks what archives hold (-z): it cannot be joined",
				shards->items[i].path);
			return false;
		}
	}
	return true;
}

/* Shards whose lines on stderr have to be read. */
static bool has_trouble(const struct shards *shards)
{
	bool has_some = false;

	for (uint32_t i = 0; i < shards->count; i++) {
		if (shards->items[i].end.has_trouble != 0) {
			report_line(
				"%s: not all of its files could be read", shards->items[i].path);
			has_some = true;
		}
	}
	return has_some;
}

static int merge(const struct shards *shards)
{
	struct join join;
	bool is_written;

	if (shards->has_trouble || !is_complete(shards) || !can_join(shards) ||
		!shards_check_totals(shards)) {
		return EXIT_STATUS_TROUBLE;
	}
	is_written = join_write(shards, &join);
	is_written &= output_finish();
	if (!is_written || has_trouble(shards) || join.failed_count > 0) {
		return EXIT_STATUS_TROUBLE;
	}
	return join.finding_count > 0 ? EXIT_STATUS_FOUND : EXIT_STATUS_CLEAN;
}

static int merge_run(const struct command *command, int argc, char **argv)
{
	struct option_parser parser = {.command = command, .argc = argc, .argv = argv};
	struct shards shards = {.count = 0};
	bool is_about_missing = false;
	const char *value;
	int option;
	int status;

	while ((option = options_next(&parser, &value)) >= 0) {
		is_about_missing = true;
	}
	if (option == OPTIONS_HELP) {
		return EXIT_STATUS_CLEAN;
	}
	if (option == OPTIONS_ERROR) {
		return EXIT_STATUS_TROUBLE;
	}
	if (parser.operand_count == 0) {
		report_line(
			"no logs: name those of all shards, as --checkpoint=LOG has written them");
		return EXIT_STATUS_TROUBLE;
	}
	for (int i = 0; i < parser.operand_count; i++) {
		shards_add(&shards, argv[1 + i], !is_about_missing);
	}
	status = is_about_missing ? print_missing(&shards) : merge(&shards);
	shards_fini(&shards);
	return status;
}

const struct command merge_command = {
	.name = "merge",
	.arguments = "[--missing] LOG…",
	.brief = "join the logs of a scan's or sum's shards to one output",
	.detail =
		"LOGs are those of --checkpoint=LOG, one of each shard (--shard=K/N). The output "
		"is that of one run over all files with --sort=path, whatever the number of "
		"shards. Before it is written the logs prove that nothing is missing: all shards "
		"are there, each once and complete, of the same command, options, rules, roots and "
		"version, and their counts add up.\n\n"
		"Exit status: 0 done; 1 done, and there are findings; 2 something is missing, "
		"does not fit, or could not be read by a shard.",
	.options = merge_options,
	.option_count = sizeof(merge_options) / sizeof(merge_options[0]),
	.run = merge_run,
};
