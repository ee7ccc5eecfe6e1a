/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file or a directory that is deleted after the directory above it was
 * listed ends as SKIPPED with -ENOENT, once, and the totals add up: in the
 * order of directories, with links followed, and as a part that another scan
 * has left. A path that the user has named fails with -ENOENT. EX-53.
 * Method: `share` of a scan deletes the entry that it is asked about, and
 * leaves nothing to others; parts with names that were never there.
 */
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <pinion/scan.h>
#include <stdio.h>
#include <sys/stat.h>

enum { LIMIT_SECONDS = 60 };

static struct pinion_runtime *runtime;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct visits reports;

static int skip_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static const char *name_of(enum pinion_scan_outcome outcome)
{
	return outcome == PINION_SCAN_DONE	 ? "done"
		: outcome == PINION_SCAN_FAILED	 ? "failed"
		: outcome == PINION_SCAN_SKIPPED ? "skipped"
						 : "other";
}

static void report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	char *line = NULL;

	(void)arg;
	pthread_mutex_lock(&lock);
	visits_add(&reports, PINION_WALK_FILE, "", 0, 0);
	expect_ready("line", asprintf(&line, "%s %s %d", file->path, name_of(outcome), error) >= 0);
	free(reports.items[reports.count - 1]);
	reports.items[reports.count - 1] = line;
	pthread_mutex_unlock(&lock);
}

/* Deletes what is called so. */
static bool share(void *arg, const char *beneath, size_t bytes, bool is_directory)
{
	char path[64];

	(void)arg;
	(void)is_directory;
	snprintf(path, sizeof(path), "tree/%.*s", (int)bytes, beneath);
	if (strstr(path, "gone") != NULL) {
		expect_ready(path, remove(path) == 0);
	}
	return false;
}

static const struct pinion_scan_ops ops = {.window = skip_window, .report = report};

static struct pinion_scan *begin(const struct pinion_scan_config *config)
{
	struct pinion_scan *scan;

	expect_ready("scan", pinion_scan_create(runtime, config, &ops, NULL, &scan) == 0);
	return scan;
}

static void end(const char *what, struct pinion_scan *scan, const char *const *lines,
	size_t line_count, uint64_t skipped)
{
	struct pinion_scan_stats totals;

	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	pinion_scan_destroy(scan);
	expect_number(what, (long long)line_count, (long long)reports.count);
	qsort(reports.items, reports.count, sizeof(char *), visits_compare);
	for (size_t i = 0; i < line_count && i < reports.count; i++) {
		expect_text(what, lines[i], reports.items[i]);
	}
	expect_number("seen", (long long)line_count, (long long)totals.seen);
	expect_number("skipped", (long long)skipped, (long long)totals.skipped);
	expect_number("sum", (long long)totals.seen,
		(long long)(totals.done + totals.failed + totals.skipped));
	visits_fini(&reports);
}

static void check_tree(const char *what, uint32_t walk_order, uint32_t follow_links)
{
	static const char *const lines[] = {
		"tree/deep/gone skipped -2",
		"tree/deep/gone-folder skipped -2",
		"tree/deep/kept done 0",
		"tree/gone skipped -2",
		"tree/kept done 0",
	};
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	expect_ready("folders",
		mkdir("tree", 0755) == 0 && mkdir("tree/deep", 0755) == 0 &&
			mkdir("tree/deep/gone-folder", 0755) == 0);
	scratch_file("tree/kept", "x");
	scratch_file("tree/gone", "x");
	scratch_file("tree/deep/kept", "x");
	scratch_file("tree/deep/gone", "x");
	pinion_scan_config_init(&config);
	config.walk_order = walk_order;
	config.follow_links = follow_links;
	config.share = share;
	scan = begin(&config);
	expect_number("add_tree", 0, pinion_scan_add_tree(scan, "tree"));
	end(what, scan, lines, sizeof(lines) / sizeof(lines[0]), 3);
	expect_ready("tree",
		remove("tree/deep/kept") == 0 && remove("tree/kept") == 0 &&
			remove("tree/deep") == 0 && remove("tree") == 0);
}

/* Names of another scan's list, of which some are gone; so is one folder. */
static void check_parts(void)
{
	static const char *const lines[] = {
		"tree/gone skipped -2",
		"tree/kept done 0",
		"tree/lost/folder skipped -2",
	};
	struct pinion_scan_part names = {"tree", "", "gone\0kept", 10};
	struct pinion_scan_part below = {"tree", "lost/folder/in", "name", 5};
	struct pinion_scan *scan = begin(NULL);

	expect_ready("folders", mkdir("tree", 0755) == 0 && mkdir("tree/lost", 0755) == 0);
	scratch_file("tree/kept", "x");
	expect_number("names", 0, pinion_scan_add_part(scan, &names));
	expect_number("below", 0, pinion_scan_add_part(scan, &below));
	end("parts", scan, lines, sizeof(lines) / sizeof(lines[0]), 2);
	expect_ready("tree",
		remove("tree/kept") == 0 && remove("tree/lost") == 0 && remove("tree") == 0);
}

static void check_named(void)
{
	static const char *const lines[] = {"none failed -2", "none/file failed -2"};
	struct pinion_scan_part part = {"none", "", "name", 5};
	struct pinion_scan *scan = begin(NULL);

	expect_number("add_tree", 0, pinion_scan_add_tree(scan, "none"));
	expect_number("add_file", 0, pinion_scan_add_file(scan, "none/file"));
	end("named", scan, lines, sizeof(lines) / sizeof(lines[0]), 0);
	scan = begin(NULL);
	expect_number("add_part", 0, pinion_scan_add_part(scan, &part));
	end("a part of nothing", scan, lines, 1, 0);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("vanished_entries_are_skipped");
	runtime = runtimes_start(2, PINION_IO_AUTO);
	check_tree("any", PINION_SCAN_WALK_ANY, 0);
	check_tree("listed", PINION_SCAN_WALK_LISTED, 0);
	check_tree("by extent", PINION_SCAN_WALK_BY_EXTENT, 0);
	check_tree("followed", PINION_SCAN_WALK_ANY, 1);
	check_parts();
	check_named();
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
