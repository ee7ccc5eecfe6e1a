/* SPDX-License-Identifier: MIT */
/*
 * The program `pinion-mpi`: `pinion scan` and `pinion sum` by several processes
 * that mpirun starts, each of which does what falls to it.
 */
#include "tools/commands.h"
#include "tools/distribution.h"
#include "tools/mpi/feed.h"
#include "tools/mpi/job.h"
#include "tools/mpi/rank_logs.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command *const commands[] = {&scan_command, &sum_command};

static struct distribution own;
static bool is_whole; /* the log of this rank */
static bool has_fed;  /* until no rank had work */

static int print_usage(void)
{
	struct output_text text = {0};

	output_text_string(&text,
		"usage: mpirun -n N pinion-mpi scan|sum --checkpoint=LOG [OPTION]… PATH…\n"
		"pinion scan, and pinion sum, by N processes; pinion help says which options.\n"
		"They share the files out by themselves. Process K notes in LOG.K what it has\n"
		"done, and `pinion merge LOG.[0-9]*` prints what one run would have printed.\n"
		"With --resume, any number of processes goes on where others have ended.\n");
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

static int print_version(void)
{
	struct output_text text = {0};

	output_text_format(&text, "pinion-mpi %s\n", pinion_version());
	return output_print(&text) ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}

/* The command can work: what it prints is in the logs as well. */
static bool begin(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		report_path("/dev/null", report_reason(errno));
		return false;
	}
	output_redirect(fd, "/dev/null");
	if (own.rank == 0) {
		job_start();
	}
	return true;
}

static int feed_parts(const struct input *input, struct pinion_scan *scan)
{
	int error = feed_all_parts(input, scan);

	has_fed = error == 0;
	return error;
}

/*
 * As if each rank were a shard, whose others have what it has not. A rank that
 * has failed before its parts does not wait for sums: the job ends then.
 */
static bool end(struct checkpoint_totals *totals)
{
	uint64_t own_count = totals->done + totals->failed + totals->skipped;
	uint64_t sums[JOB_SUMS] = {
		own_count, totals->ignored, totals->seen == own_count + totals->ignored ? 0 : 1};

	if (!has_fed) {
		return false;
	}
	job_add_up(sums);
	totals->other_shard = sums[0] - own_count;
	totals->ignored = sums[1] + totals->other_shard;
	totals->seen = own_count + totals->ignored;
	if (sums[2] > 0) {
		report_line("the counts of %llu of %u ranks do not add up: their logs are not "
			    "whole; start the job again with --resume",
			(unsigned long long)sums[2], own.count);
	}
	return sums[2] == 0;
}

static void note_whole(void)
{
	is_whole = true;
}

static int run_command(int argc, char **argv)
{
	static char name[64];
	const struct command *command = NULL;
	const char *word = argc > 1 ? argv[1] : "";

	if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
		return print_version();
	}
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
		return print_usage();
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		command = strcmp(word, commands[i]->name) == 0 ? commands[i] : command;
	}
	if (command == NULL) {
		report_line("%s%s (see pinion-mpi --help)",
			argc > 1 ? "neither scan nor sum: " : "no command", word);
		return EXIT_STATUS_TROUBLE;
	}
	snprintf(name, sizeof(name), "%s, rank %u", command->name, own.rank);
	report_name_command(name);
	feed_use(job_parts());
	distribution = &own;
	return command->run(command, argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	int status = EXIT_STATUS_TROUBLE;
	bool are_whole;

	/* As in tools/main.c: plugins of hwloc bring dozens of libraries. */
	(void)setenv("HWLOC_PLUGINS_PATH", "", 0);
	signals_init();
	output_init();
	if (!report_init()) {
		return EXIT_STATUS_TROUBLE;
	}
	report_name_command("mpi");
	own = (struct distribution){
		.begin = begin,
		.add = feed_add,
		.feed = feed_parts,
		.share = feed_share,
		.end = end,
		.note_whole = note_whole,
	};
	if (!job_begin(&own.rank, &own.count)) {
		return EXIT_STATUS_TROUBLE;
	}
	/* Rank 0 reports a bad command line, once for all. */
	if (own.rank == 0 || job_await_start(&status)) {
		status = run_command(argc, argv);
	}
	status = job_agree(status, is_whole, &are_whole);
	if (own.rank == 0 && are_whole) {
		rank_logs_remove_earlier();
	}
	feed_use(NULL);
	job_leave();
	/* Findings are for pinion merge; mpirun takes 1 for a failure. */
	return status == EXIT_STATUS_FOUND ? EXIT_STATUS_CLEAN : status;
}
