/* SPDX-License-Identifier: MIT */
/*
 * Every path that the scan reports is compared with the path in question, and
 * so are the directories that it leaves out.
 */
#include "tools/scan/explain.h"

#include "tools/input.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scan/archive_kind.h"
#include "tools/scan/job.h"
#include "tools/signals.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the path, the last that is true of it. */
enum explain_state {
	EXPLAIN_UNSEEN,	   /* no walk came by */
	EXPLAIN_DIRECTORY, /* something in it was seen */
	EXPLAIN_SCANNED,
	EXPLAIN_LEFT_OUT,
};

struct explain {
	const struct scan_options *options;
	const char *path;
	char *wanted;	      /* absolute, without "." and "//" */
	pthread_mutex_t lock; /* guards what follows */
	enum explain_state state;
	char reason[512];
};

/* Absolute, by the names alone: links and ".." stay. NULL: no memory. */
static char *make_absolute(const char *path)
{
	char *folder = path[0] == '/' ? strdup("") : getcwd(NULL, 0);
	size_t length = folder == NULL || strcmp(folder, "/") == 0 ? 0 : strlen(folder);
	char *whole = malloc(length + strlen(path) + 2);

	if (whole == NULL) {
		free(folder);
		return NULL;
	}
	if (length > 0) {
		memcpy(whole, folder, length);
	}
	free(folder);
	while (*path != '\0') {
		size_t part = strcspn(path, "/");

		if (part > 0 && !(part == 1 && path[0] == '.')) {
			whole[length++] = '/';
			memcpy(whole + length, path, part);
			length += part;
		}
		path += part;
		path += strspn(path, "/");
	}
	whole[length] = '\0';
	return whole;
}

/* Whether `path` is `folder`, or is below it. */
static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static void settle(struct explain *explain, enum explain_state state, const char *reason)
{
	pthread_mutex_lock(&explain->lock);
	if (state > explain->state) {
		explain->state = state;
		snprintf(explain->reason, sizeof(explain->reason), "%s", reason);
	}
	pthread_mutex_unlock(&explain->lock);
}

/* Why the path at `seen`, which is the wanted one or above it, is left out. */
static void leave_out(struct explain *explain, const char *seen, const char *reason)
{
	char words[512];

	if (strcmp(seen, explain->wanted) == 0) {
		settle(explain, EXPLAIN_LEFT_OUT, reason);
		return;
	}
	snprintf(words, sizeof(words), "%s: %s", seen, reason);
	settle(explain, EXPLAIN_LEFT_OUT, words);
}

/* What left it out on the walk. */
static const char *reason_of(enum pinion_walk_reason reason)
{
	static const char *const reasons[] = {
		[PINION_WALK_BY_IGNORE_FILE] = "an ignore file hides it (--gitignore)",
		[PINION_WALK_BY_NAME] = "its name begins with a dot (--no-hidden)",
		[PINION_WALK_BY_PATTERN] = "a pattern leaves it out (--include, --exclude)",
		[PINION_WALK_BY_FILE_SYSTEM] = "it is on another file system (--one-file-system)",
		[PINION_WALK_BY_SIZE] = "its size is out of bounds (--min-size, --max-filesize)",
		[PINION_WALK_BY_TIME] = "its time is out of bounds (--newer-than, --older-than)",
		[PINION_WALK_BY_LINK] = "a file was met by another name (--hard-links=once)",
		[PINION_WALK_BY_SHARD] = "another shard has it (--shard)",
	};

	_Static_assert(sizeof(reasons) / sizeof(reasons[0]) == PINION_WALK_REASONS, "each");
	return reasons[reason];
}

static void note(struct explain *explain, const struct pinion_scan_file *file, const char *seen,
	enum pinion_scan_outcome outcome, int error)
{
	switch (outcome) {
	case PINION_SCAN_DONE:
		settle(explain, EXPLAIN_SCANNED, "");
		return;
	case PINION_SCAN_IGNORED:
		leave_out(explain, seen, reason_of(file->reason));
		return;
	case PINION_SCAN_CANCELLED:
		return;
	case PINION_SCAN_SKIPPED:
	case PINION_SCAN_FAILED:
		break;
	}
	leave_out(explain, seen,
		outcome == PINION_SCAN_SKIPPED && error == 0 ? "a symbolic link, not followed"
							     : report_outcome_words(file, error));
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct explain *explain = arg;
	char *seen = make_absolute(file->path);

	if (seen == NULL) {
		return;
	}
	if (is_below(explain->wanted, seen)) {
		note(explain, file, seen, outcome, error);
	} else if (is_below(seen, explain->wanted)) {
		settle(explain, EXPLAIN_DIRECTORY, "");
	}
	free(seen);
}

/* Only the wanted file is read. */
static int on_open(void *arg, struct pinion_scan_file *file)
{
	const struct explain *explain = arg;
	char *seen = make_absolute(file->path);
	bool is_wanted = seen != NULL && strcmp(seen, explain->wanted) == 0;

	free(seen);
	return is_wanted ? 0 : -ECANCELED;
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct explain *explain = arg;

	(void)file;
	/* Of an archive the entries decide. */
	if (explain->options->skips_binary && scan_job_is_binary(explain->options, window) &&
		!(explain->options->archives.is_on && !window->is_hole &&
			archive_kind_of(window->bytes, window->length_bytes) !=
				ARCHIVE_KIND_NONE)) {
		settle(explain, EXPLAIN_LEFT_OUT, "a zero byte is in it (--binary=skip)");
	}
	return PINION_SCAN_ENOUGH;
}

static const struct pinion_scan_ops explain_ops = {
	.open = on_open,
	.window = on_window,
	.report = on_report,
};

static int print_answer(const struct explain *explain)
{
	static const char *const words[] = {
		[EXPLAIN_UNSEEN] = "not seen: no PATH leads to it",
		[EXPLAIN_DIRECTORY] = "a directory, which is walked",
		[EXPLAIN_SCANNED] = "scanned",
		[EXPLAIN_LEFT_OUT] = "left out: ",
	};
	static const int statuses[] = {
		[EXPLAIN_UNSEEN] = EXIT_STATUS_TROUBLE,
		[EXPLAIN_DIRECTORY] = EXIT_STATUS_CLEAN,
		[EXPLAIN_SCANNED] = EXIT_STATUS_CLEAN,
		[EXPLAIN_LEFT_OUT] = EXIT_STATUS_FOUND,
	};
	struct output_text text = {0};

	output_text_escaped(&text, explain->path, strlen(explain->path), true);
	output_text_string(&text, ": ");
	output_text_string(&text, words[explain->state]);
	output_text_escaped(&text, explain->reason, strlen(explain->reason), true);
	output_text_string(&text, "\n");
	return output_print(&text) ? statuses[explain->state] : EXIT_STATUS_TROUBLE;
}

static int walk(const struct input *input, struct pinion_runtime *runtime, struct explain *explain)
{
	struct pinion_scan *scan;
	int error = pinion_scan_create(
		runtime, &explain->options->scanning.scan, &explain_ops, explain, &scan);

	if (error != 0) {
		return error;
	}
	signals_watch(scan);
	error = input_feed(input, scan);
	(void)pinion_scan_finish(scan, NULL, 0);
	signals_hold();
	(void)pinion_scan_destroy(scan);
	return error;
}

int explain_run(const struct scan_options *scan_options)
{
	const struct scanning_options *options = &scan_options->scanning;
	uint64_t other_shard_count = 0;
	const struct input input = {
		.sharding = options->choosing.sharding,
		.other_shard_count = &other_shard_count,
		.paths = scan_options->paths,
		.path_count = scan_options->path_count,
		.lists = options->lists,
		.list_count = options->list_count,
		.list_is_nul = options->list_is_nul,
		.recurse = true,
	};
	struct explain explain = {
		.options = scan_options,
		.path = scan_options->explained,
		.wanted = make_absolute(scan_options->explained),
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	struct pinion_runtime *runtime = NULL;
	int error = explain.wanted == NULL ? -ENOMEM : 0;

	signals_hold();
	if (error == 0) {
		error = pinion_runtime_create(&options->runtime, &runtime);
	}
	if (error == 0) {
		error = walk(&input, runtime, &explain);
	}
	(void)pinion_runtime_destroy(runtime);
	signals_release();
	free(explain.wanted);
	if (signals_interrupted()) {
		return EXIT_STATUS_STOPPED;
	}
	if (error != 0) {
		report_line("cannot walk: %s", report_reason(error));
		return EXIT_STATUS_TROUBLE;
	}
	return print_answer(&explain);
}
