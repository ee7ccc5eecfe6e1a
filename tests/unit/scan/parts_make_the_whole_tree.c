/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a scan leaves to others (`share`) and what they add as parts
 * (pinion_scan_add_part) are together what one scan reports of the tree: each
 * path once, with the same outcome, error and reason, by the same ignore files
 * and filter, also where parts leave parts. Parts that are none are refused.
 * Method: a tree with ignore files, one of them bad, links, a FIFO and a
 * directory of many files; which entries are left is all, none, or drawn.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <limits.h>
#include <pinion/scan.h>
#include <sys/stat.h>

enum { LIMIT_SECONDS = 120, FILES = 3000, ROUNDS = 8, LEFT_MAX = 20000 };

struct left {
	char *directory;
	char *name; /* NULL: all that is in it */
};

enum choice {
	LEAVE_NONE,
	LEAVE_DIRECTORIES,
	LEAVE_FILES,
	LEAVE_ALL,
	LEAVE_SOME,
	CHOICES,
};

static struct pinion_runtime *runtime;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct visits reports;
static struct left left[LEFT_MAX];
static size_t left_count;
static size_t asked_count;
static enum choice choice;
static struct random_source source;

static int skip_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	pthread_mutex_lock(&lock);
	/* The kind's name does not matter, but that it is another. */
	visits_add(&reports, (enum pinion_walk_kind)outcome, file->path, error, file->reason);
	pthread_mutex_unlock(&lock);
}

static bool leaves(bool is_directory)
{
	switch (choice) {
	case LEAVE_DIRECTORIES:
		return is_directory;
	case LEAVE_FILES:
		return !is_directory;
	case LEAVE_ALL:
		return true;
	case LEAVE_SOME:
		return random_below(&source, 3) != 0;
	case LEAVE_NONE:
	case CHOICES:
		break;
	}
	return false;
}

static bool share(void *arg, const char *beneath, size_t bytes, bool is_directory)
{
	bool is_left;

	(void)arg;
	pthread_mutex_lock(&lock);
	asked_count++;
	is_left = leaves(is_directory);
	if (is_left) {
		char *path = strndup(beneath, bytes);
		char *slash = is_directory ? NULL : strrchr(path, '/');
		struct left item = {.directory = path};

		if (!is_directory && slash == NULL) {
			item = (struct left){.directory = strdup(""), .name = path};
		} else if (!is_directory) {
			*slash = '\0';
			item.name = strdup(slash + 1);
		}
		expect_ready("left", left_count < LEFT_MAX);
		left[left_count++] = item;
	}
	pthread_mutex_unlock(&lock);
	return is_left;
}

/* The newest that is left, and others of its directory. */
static void add_left(struct pinion_scan *scan, const char *root)
{
	struct left first = left[--left_count];
	struct pinion_scan_part part = {.root = root, .directory = first.directory};
	char names[2048];

	if (first.name != NULL) {
		size_t bytes = strlen(first.name) + 1;

		memcpy(names, first.name, bytes);
		while (left_count > 0 && left[left_count - 1].name != NULL && bytes < 1000 &&
			strcmp(left[left_count - 1].directory, first.directory) == 0) {
			struct left *next = &left[--left_count];

			memcpy(names + bytes, next->name, strlen(next->name) + 1);
			bytes += strlen(next->name) + 1;
			free(next->name);
			free(next->directory);
		}
		part.names = names;
		part.names_bytes = bytes;
	}
	expect_number("add_part", 0, pinion_scan_add_part(scan, &part));
	free(first.name);
	free(first.directory);
}

static const struct pinion_scan_ops ops = {.window = skip_window, .report = report};

static void scan_tree(const struct pinion_scan_config *config, const char *root)
{
	struct pinion_scan *scan;

	expect_ready("scan", pinion_scan_create(runtime, config, &ops, NULL, &scan) == 0);
	expect_number("add_tree", 0, pinion_scan_add_tree(scan, root));
	while (left_count > 0) {
		add_left(scan, root);
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
	if (reports.count > 1) {
		qsort(reports.items, reports.count, sizeof(char *), visits_compare);
	}
}

static void check(const char *what, struct pinion_scan_config *config, const char *root)
{
	struct visits whole;

	config->share = NULL;
	scan_tree(config, root);
	whole = reports;
	reports = (struct visits){.count = 0};
	expect_true(what, whole.count > FILES);
	config->share = share;
	for (int round = 0; round < CHOICES - 1 + ROUNDS; round++) {
		choice = round < LEAVE_SOME ? (enum choice)round : LEAVE_SOME;
		asked_count = 0;
		scan_tree(config, root);
		expect_true("share was asked", asked_count > 0);
		expect_number(what, (long long)whole.count, (long long)reports.count);
		for (size_t i = 0; i < whole.count && i < reports.count; i++) {
			if (!expect_text(what, whole.items[i], reports.items[i])) {
				break;
			}
		}
		visits_fini(&reports);
	}
	visits_fini(&whole);
}

/* An ignore file that is visited as an error. */
static void bad_file(const char *path)
{
	static const char zero[] = "*.o\n\0";
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	expect_ready(path, fd >= 0 && write(fd, zero, sizeof(zero)) == sizeof(zero));
	close(fd);
}

static void make_tree(void)
{
	char path[64];

	expect_ready("tree",
		mkdir("tree", 0755) == 0 && mkdir("tree/a", 0755) == 0 &&
			mkdir("tree/a/b", 0755) == 0 && mkdir("tree/a/b/c", 0755) == 0 &&
			mkdir("tree/many", 0755) == 0 && mkdir("tree/hidden", 0755) == 0 &&
			symlink("../x", "tree/a/link") == 0 &&
			symlink("self", "tree/a/self") == 0 && symlink("a/b", "tree/way") == 0 &&
			mkfifo("tree/a/b/fifo", 0600) == 0);
	scratch_file("tree/.gitignore", "hidden/\n*.o\n");
	scratch_file("tree/a/.gitignore", "*.tmp\n!kept.o\n");
	bad_file("tree/a/b/.ignore");
	/* Above the root, in a repository. */
	expect_ready("repository", mkdir(".git", 0755) == 0);
	bad_file(".ignore");
	scratch_file("tree/x", "x");
	scratch_file("tree/x.o", "x");
	scratch_file("tree/hidden/in", "x");
	scratch_file("tree/a/b/c/y.tmp", "x");
	scratch_file("tree/a/b/c/kept.o", "x");
	scratch_file("tree/a/b/c/z", "x");
	for (int i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "tree/many/%d%s", i, i % 7 == 0 ? ".o" : "");
		scratch_file(path, "");
	}
}

static void check_refusals(void)
{
	static char long_name[PATH_MAX + 1];
	static char huge_name[70000];
	static const struct {
		const char *directory;
		const char *names;
		size_t bytes;
	} parts[] = {
		{"/a", NULL, 0},
		{"a/", NULL, 0},
		{"a//b", NULL, 0},
		{"a/../..", NULL, 0},
		{".", NULL, 0},
		{"a", "x/y", 4},
		{"a", "..", 3},
		{"a", "x", 1}, /* without its NUL */
		{"a", "x\0", 3},
		{long_name, NULL, 0},
		{"a", long_name, PATH_MAX + 1},
		{"a", huge_name, sizeof(huge_name)},
	};
	struct pinion_scan *scan;

	memset(long_name, 'n', PATH_MAX);
	memset(huge_name, 'n', sizeof(huge_name) - 1);
	expect_ready("scan", pinion_scan_create(runtime, NULL, &ops, NULL, &scan) == 0);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct pinion_scan_part part = {
			"tree", parts[i].directory, parts[i].names, parts[i].bytes};

		expect_number(parts[i].directory, -EINVAL, pinion_scan_add_part(scan, &part));
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number("reports", 0, (long long)reports.count);
	/* Entries that are gone meanwhile are reported. */
	expect_number("gone", 0,
		pinion_scan_add_part(scan, &(struct pinion_scan_part){"tree", "a/gone", NULL, 0}));
	expect_number("a file", 0,
		pinion_scan_add_part(scan, &(struct pinion_scan_part){"tree/x", "", "y", 2}));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number("reports", 2, (long long)reports.count);
	/* SKIPPED is the number of SPECIAL, FAILED that of SYMLINK. */
	expect_text("gone", "SPECIAL tree/a/gone -2 0", reports.items[0]);
	expect_text("a file", "SYMLINK tree/x -20 0", reports.items[1]);
	visits_fini(&reports);
	/* The longest name that is taken is looked for. */
	long_name[PATH_MAX - 1] = '\0';
	expect_number("long", 0,
		pinion_scan_add_part(
			scan, &(struct pinion_scan_part){"tree", "", long_name, PATH_MAX}));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number("reports", 1, (long long)reports.count);
	visits_fini(&reports);
	pinion_scan_destroy(scan);
}

int main(void)
{
	struct pinion_walk_filter filter;
	struct pinion_scan_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	(void)random_begin(&source);
	scratch_enter("parts_make_the_whole_tree");
	runtime = runtimes_start(2, PINION_IO_AUTO);
	make_tree();
	pinion_scan_config_init(&config);
	check("all", &config, "tree");
	check("with a slash", &config, "tree/");
	config.walk_order = PINION_SCAN_WALK_LISTED;
	check("listed", &config, "tree");
	config.walk_order = PINION_SCAN_WALK_BY_EXTENT;
	check("by extent", &config, "tree");
	config.walk_order = PINION_SCAN_WALK_ANY;
	config.skip_ignored = 1;
	check("ignored", &config, "tree");
	config.follow_links = 1;
	check("followed", &config, "tree");
	config.skip_ignored = 0;
	config.follow_links = 0;
	pinion_walk_filter_init(&filter);
	filter.exclude = "*.tmp\n/many/1*\n";
	filter.bytes_max = 100;
	config.filter = &filter;
	check("filtered", &config, "tree");
	check_refusals();
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
