/* SPDX-License-Identifier: MIT */
/*
 * Goal: a filter leaves out exactly what it says, with the reason, once for
 * each entry: hidden names, patterns, other file systems, sizes, times, second
 * names of a file (EX-53); links are followed where that is asked, and a loop
 * ends. Shards have no file in common, and together all; which has a path never
 * changes. A walk by tasks does the same. Bad fields are refused.
 * Method: a small tree, each field by itself, and the visits there have to be.
 */
#include "runtime/scan/walk_filter.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <pinion/walk.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum { LIMIT_SECONDS = 120 };

#define NS_PER_S INT64_C(1000000000)
#define OLD_S 1000000

static struct pinion_runtime *runtime;
static struct pinion_walk_config config;
static struct pinion_walk_filter filter;

static int note(void *arg, const struct pinion_walk_entry *entry)
{
	/* The reason takes the place of the mode. */
	visits_add(arg, entry->kind, entry->path, entry->error, entry->reason);
	return 0;
}

static void begin(void)
{
	pinion_walk_config_init(&config);
	pinion_walk_filter_init(&filter);
	config.filter = &filter;
}

static void check_by(const char *what, const char *const *wanted)
{
	struct visits got = {.count = 0};
	size_t count = 0;

	expect_number(what, 0, pinion_walk_with("tree", &config, note, &got));
	if (got.count > 1) {
		qsort(got.items, got.count, sizeof(char *), visits_compare);
	}
	while (wanted[count] != NULL) {
		if (count < got.count) {
			expect_text(what, wanted[count], got.items[count]);
		}
		count++;
	}
	expect_number(what, (long long)count, (long long)got.count);
	visits_fini(&got);
}

/* Sorted. By the calling thread, then by tasks. */
static void check(const char *what, const char *const *wanted)
{
	config.runtime = NULL;
	check_by(what, wanted);
	config.runtime = runtime;
	check_by(what, wanted);
}

#define CHECK(what, ...) check(what, (const char *const[]){__VA_ARGS__, NULL})

static void make_file(const char *path, off_t bytes, time_t modified)
{
	const struct timespec times[2] = {{.tv_sec = modified}, {.tv_sec = modified}};

	scratch_file(path, "");
	expect_ready(path, truncate(path, bytes) == 0 && utimensat(AT_FDCWD, path, times, 0) == 0);
}

static void make_tree(void)
{
	expect_ready("tree",
		mkdir("tree", 0755) == 0 && mkdir("tree/.dir", 0755) == 0 &&
			mkdir("tree/sub", 0755) == 0);
	make_file("tree/.dir/in", 0, OLD_S);
	make_file("tree/a.c", 10, OLD_S);
	make_file("tree/b.h", 2000, 2 * OLD_S);
	make_file("tree/sub/.x", 5000, 3 * OLD_S);
	expect_ready("link", link("tree/a.c", "tree/sub/c.c") == 0);
}

static void check_names(void)
{
	begin();
	filter.skip_hidden = 1;
	CHECK("hidden", "FILE tree/a.c 0 0", "FILE tree/b.h 0 0", "FILE tree/sub/c.c 0 0",
		"IGNORED tree/.dir 0 1", "IGNORED tree/sub/.x 0 1");
	begin();
	filter.exclude = "*.c\n!/a.c\n.dir/";
	CHECK("excluded", "FILE tree/a.c 0 0", "FILE tree/b.h 0 0", "FILE tree/sub/.x 0 0",
		"IGNORED tree/.dir 0 2", "IGNORED tree/sub/c.c 0 2");
	begin();
	filter.include = "*.c\n";
	filter.exclude = "sub/c.c\n";
	CHECK("included", "FILE tree/a.c 0 0", "IGNORED tree/.dir/in 0 2", "IGNORED tree/b.h 0 2",
		"IGNORED tree/sub/.x 0 2", "IGNORED tree/sub/c.c 0 2");
}

/* Paths without a tree, as the walks above have decided. */
static void check_matcher(void)
{
	static const struct {
		const char *path;
		uint32_t reason;
	} cases[] = {
		{"a.c", PINION_WALK_REASONS},
		{"sub/c.c", PINION_WALK_BY_PATTERN},
		{"sub/new.c", PINION_WALK_REASONS},
		{"b.h", PINION_WALK_BY_PATTERN},
		{".dir/in.c", PINION_WALK_BY_NAME},
		{"out/deep/er.c", PINION_WALK_BY_PATTERN},
		{"", PINION_WALK_REASONS},
	};
	struct pinion_walk_matcher *matcher = NULL;

	begin();
	filter.skip_hidden = 1;
	filter.include = "*.c\n";
	filter.exclude = "sub/c.c\nout/\n";
	expect_number("matcher", 0, pinion_walk_matcher_create(&filter, &matcher));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		expect_number(cases[i].path, cases[i].reason,
			pinion_walk_matcher_path(matcher, cases[i].path, strlen(cases[i].path)));
	}
	pinion_walk_matcher_destroy(matcher);
	pinion_walk_matcher_destroy(NULL);
	expect_number("no filter", 0, pinion_walk_matcher_create(NULL, &matcher));
	expect_number("all", PINION_WALK_REASONS, pinion_walk_matcher_path(matcher, ".x/y", 4));
	pinion_walk_matcher_destroy(matcher);
	begin();
	filter.bytes_min = 5;
	filter.bytes_max = 5;
	expect_number("one size", 0, pinion_walk_matcher_create(&filter, &matcher));
	pinion_walk_matcher_destroy(matcher);
	filter.skip_hidden = 2;
	expect_number("bad", -EINVAL, pinion_walk_matcher_create(&filter, &matcher));
}

static void check_status(void)
{
	begin();
	filter.bytes_min = 10;
	filter.bytes_max = 2000;
	CHECK("sizes", "FILE tree/a.c 0 0", "FILE tree/b.h 0 0", "FILE tree/sub/c.c 0 0",
		"IGNORED tree/.dir/in 0 4", "IGNORED tree/sub/.x 0 4");
	begin();
	filter.modified_from_ns = OLD_S * NS_PER_S + 1;
	filter.modified_to_ns = 2 * OLD_S * NS_PER_S;
	CHECK("times", "FILE tree/b.h 0 0", "IGNORED tree/.dir/in 0 5", "IGNORED tree/a.c 0 5",
		"IGNORED tree/sub/.x 0 5", "IGNORED tree/sub/c.c 0 5");
	begin();
	filter.bytes_min = 1001;
	CHECK("large", "FILE tree/b.h 0 0", "FILE tree/sub/.x 0 0", "IGNORED tree/.dir/in 0 4",
		"IGNORED tree/a.c 0 4", "IGNORED tree/sub/c.c 0 4");
	begin();
	filter.bytes_max = 10;
	CHECK("small", "FILE tree/.dir/in 0 0", "FILE tree/a.c 0 0", "FILE tree/sub/c.c 0 0",
		"IGNORED tree/b.h 0 4", "IGNORED tree/sub/.x 0 4");
	begin();
	filter.modified_from_ns = OLD_S * NS_PER_S + 1;
	CHECK("from", "FILE tree/b.h 0 0", "FILE tree/sub/.x 0 0", "IGNORED tree/.dir/in 0 5",
		"IGNORED tree/a.c 0 5", "IGNORED tree/sub/c.c 0 5");
	begin();
	filter.modified_to_ns = OLD_S * NS_PER_S + 1;
	CHECK("to", "FILE tree/.dir/in 0 0", "FILE tree/a.c 0 0", "FILE tree/sub/c.c 0 0",
		"IGNORED tree/b.h 0 5", "IGNORED tree/sub/.x 0 5");
}

static int count_reasons(void *arg, const struct pinion_walk_entry *entry)
{
	uint32_t *counts = arg;

	counts[entry->kind == PINION_WALK_IGNORED ? entry->reason : PINION_WALK_REASONS]++;
	return 0;
}

/* Which of the names is the first is not known. */
static void check_links(void)
{
	for (int by_tasks = 0; by_tasks <= 1; by_tasks++) {
		uint32_t counts[PINION_WALK_REASONS + 1] = {0};

		begin();
		filter.hard_links_once = 1;
		config.runtime = by_tasks == 1 ? runtime : NULL;
		expect_number("links", 0, pinion_walk_with("tree", &config, count_reasons, counts));
		expect_number("second names", 1, counts[PINION_WALK_BY_LINK]);
		expect_number("files", 4, counts[PINION_WALK_REASONS]);
	}
}

/* Of more files than there was room for at first, on two devices. */
static void check_many_links(void)
{
	enum { FILES = 3000, DEVICES = 2 };
	struct pin_walk_filter *many = NULL;

	begin();
	filter.hard_links_once = 1;
	expect_ready("filter", pin_walk_filter_create(&pin_host_linux, &filter, &many) == 0);
	for (uint32_t i = 0; i < 2 * DEVICES * FILES; i++) {
		struct stat status = {.st_mode = S_IFREG,
			.st_dev = 1 + i % DEVICES,
			.st_ino = 1 + i / DEVICES % FILES,
			.st_nlink = 2};
		uint32_t reason = pin_walk_filter_status(many, &status);

		if (!expect_number("first, then met",
			    i < DEVICES * FILES ? PIN_WALK_KEPT : PINION_WALK_BY_LINK, reason)) {
			break;
		}
	}
	pin_walk_filter_destroy(many);
}

enum { SHARDS = 3, SPREAD_SHARDS = 8, SPREAD_PATHS = 8000 };

/* The entry's place in the tree, by its name's last letter. */
static int count_shard(void *arg, const struct pinion_walk_entry *entry)
{
	uint32_t *visits = arg;

	if (entry->kind == PINION_WALK_IGNORED) {
		expect_number("reason", PINION_WALK_BY_SHARD, entry->reason);
	} else {
		visits[(uint8_t)entry->path[entry->path_bytes - 1]]++;
	}
	return 0;
}

static void check_shards(void)
{
	uint32_t visits[UINT8_MAX + 1] = {0};
	uint32_t spread[SPREAD_SHARDS] = {0};

	for (uint32_t i = 0; i < SHARDS; i++) {
		begin();
		filter.shard_count = SHARDS;
		filter.shard_index = i;
		config.runtime = i == 1 ? runtime : NULL;
		expect_number("shard", 0, pinion_walk_with("tree", &config, count_shard, visits));
	}
	expect_number(".dir/in", 1, visits['n']);
	expect_number("a.c, sub/c.c", 2, visits['c']);
	expect_number("b.h", 1, visits['h']);
	expect_number("sub/.x", 1, visits['x']);
	for (uint32_t i = 0; i < SPREAD_PATHS; i++) {
		char path[32];
		int bytes = snprintf(path, sizeof(path), "f%u", i);

		spread[pinion_walk_shard(path, (size_t)bytes, SPREAD_SHARDS)]++;
	}
	for (uint32_t i = 0; i < SPREAD_SHARDS; i++) {
		expect_true("even", spread[i] > 900 && spread[i] < 1100);
	}
	/* Shards that one version has begun, another goes on with. */
	expect_number("known", 6, pinion_walk_shard("sub/c.c", 7, 8));
	expect_number("known", 565, pinion_walk_shard("deep/er/file.txt", 16, 1000));
	expect_number("one", 0, pinion_walk_shard("a", 1, 1));
	expect_number("none", 0, pinion_walk_shard("a", 1, 0));
}

static void check_followed(void)
{
	expect_ready("links",
		symlink("..", "tree/sub/up") == 0 && symlink("../other", "tree/way") == 0 &&
			symlink("nowhere", "tree/lost") == 0 && symlink("self", "tree/self") == 0 &&
			mkdir("other", 0755) == 0);
	scratch_file("other/file", "");
	begin();
	filter.exclude = "/.dir\n/a.c\n/b.h\n.x\nc.c\n";
	config.follow_links = 1;
	CHECK("followed", "ERROR tree/sub/up -40 0", "FILE tree/way/file 0 0",
		"IGNORED tree/.dir 0 2", "IGNORED tree/a.c 0 2", "IGNORED tree/b.h 0 2",
		"IGNORED tree/sub/.x 0 2", "IGNORED tree/sub/c.c 0 2", "SYMLINK tree/lost 0 0",
		"SYMLINK tree/self -40 0");
	/* Sizes are those of the files that links lead to. */
	filter.bytes_max = 100000;
	CHECK("followed and examined", "ERROR tree/sub/up -40 0", "FILE tree/way/file 0 0",
		"IGNORED tree/.dir 0 2", "IGNORED tree/a.c 0 2", "IGNORED tree/b.h 0 2",
		"IGNORED tree/sub/.x 0 2", "IGNORED tree/sub/c.c 0 2", "SYMLINK tree/lost 0 0",
		"SYMLINK tree/self -40 0");
	filter.bytes_max = 0;
	config.follow_links = 0;
	filter.exclude = "*\n!self\n";
	CHECK("not followed", "IGNORED tree/.dir 0 2", "IGNORED tree/a.c 0 2",
		"IGNORED tree/b.h 0 2", "IGNORED tree/lost 0 2", "IGNORED tree/sub 0 2",
		"IGNORED tree/way 0 2", "SYMLINK tree/self -40 0");
}

static void expect_refused(const char *what, int error)
{
	struct visits got = {.count = 0};

	expect_number(what, error, pinion_walk_with("tree", &config, note, &got));
	expect_number(what, 0, (long long)got.count);
	begin();
}

static void check_refusals(void)
{
	static char line[5000];

	begin();
	filter.skip_hidden = 2;
	expect_refused("skip_hidden", -EINVAL);
	filter.one_file_system = 2;
	expect_refused("one_file_system", -EINVAL);
	filter.hard_links_once = 2;
	expect_refused("hard_links_once", -EINVAL);
	filter.size = 4;
	expect_refused("size", -EINVAL);
	filter.bytes_min = 2;
	filter.bytes_max = 1;
	expect_refused("bytes_max below bytes_min", -EINVAL);
	filter.shard_index = 1;
	expect_refused("shard_index without shards", -EINVAL);
	filter.shard_count = 3;
	filter.shard_index = 3;
	expect_refused("shard_index", -EINVAL);
	config.follow_links = 2;
	expect_refused("follow_links", -EINVAL);
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	filter.exclude = line;
	expect_refused("a long line", -EFBIG);
}

/* In a mount namespace of its own, where that is allowed. */
static void check_file_systems(void)
{
	expect_ready("mount point", mkdir("tree/mount", 0755) == 0);
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		mount("none", "tree/mount", "tmpfs", 0, NULL) != 0) {
		printf("mounts are not allowed here: that part is left out\n");
		return;
	}
	scratch_file("tree/mount/file", "");
	begin();
	filter.exclude = "*\n!mount\n!file\n";
	filter.one_file_system = 1;
	config.runtime = NULL;
	check_by("one file system",
		(const char *const[]){"IGNORED tree/.dir 0 2", "IGNORED tree/a.c 0 2",
			"IGNORED tree/b.h 0 2", "IGNORED tree/lost 0 2", "IGNORED tree/mount 0 3",
			"IGNORED tree/self 0 2", "IGNORED tree/sub 0 2", "IGNORED tree/way 0 2",
			NULL});
	umount2("tree/mount", MNT_DETACH);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("walk_leaves_out");
	runtime = runtimes_start(2, PINION_IO_AUTO);
	make_tree();
	check_names();
	check_matcher();
	check_status();
	check_links();
	check_many_links();
	check_shards();
	check_followed();
	check_refusals();
	check_file_systems();
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
