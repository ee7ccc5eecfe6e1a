/* SPDX-License-Identifier: MIT */
/*
 * Goal: a walk by path visits what the other walks visit, each entry once,
 * sorted by the bytes of its path (EX-53), with little memory: also where a
 * directory has more names than there is room for, and where the names above it
 * were dropped meanwhile; a directory that vanishes is one error, unless it is
 * not needed any more.
 * Method: trees made here; the visits compared with those of the plain walk,
 * sorted by strcmp; room for a few names only.
 */
#include "runtime/scan/walk.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <sys/resource.h>

enum {
	CROWD = 700,
	LEVELS = 60,
	ROOM_BYTES = 400, /* for some 10 names */
};

/* Of a line "KIND PATH ERROR MODE". */
static size_t path_bytes(const char *path)
{
	size_t spaces = 0;
	size_t bytes = strlen(path);

	while (spaces < 2) {
		spaces += path[--bytes] == ' ' ? 1 : 0;
	}
	return bytes;
}

static int compare_paths(const void *left, const void *right)
{
	const char *a = strchr(*(char *const *)left, ' ') + 1;
	const char *b = strchr(*(char *const *)right, ' ') + 1;
	size_t a_bytes = path_bytes(a);
	size_t b_bytes = path_bytes(b);
	int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);

	return order != 0 ? order : a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

/* A directory that is left out is where its contents would be. */
static int note(void *arg, const struct pinion_walk_entry *entry)
{
	char *path = NULL;

	expect_ready("asprintf",
		asprintf(&path, "%s%s", entry->path, S_ISDIR(entry->mode) ? "/" : "") >= 0);
	visits_add(arg, entry->kind, path, entry->error, entry->mode);
	free(path);
	return 0;
}

static void compare(
	const char *what, const char *root, struct pinion_walk_config *config, size_t room_bytes)
{
	struct pin_walk_means means = {.host = &pin_host_linux, .waiting_bytes_max = room_bytes};
	struct visits wanted = {.count = 0};
	struct visits got = {.count = 0};

	expect_ready(what, pin_walk_filter_create(means.host, config->filter, &means.filter) == 0);
	config->order = PINION_WALK_LISTED;
	expect_number(what, 0, pin_walk(&means, root, config, note, &wanted));
	qsort(wanted.items, wanted.count, sizeof(char *), compare_paths);
	config->order = PINION_WALK_BY_PATH;
	expect_number(what, 0, pin_walk(&means, root, config, note, &got));
	expect_number(what, (long long)wanted.count, (long long)got.count);
	for (size_t i = 0; i < wanted.count && i < got.count; i++) {
		if (!expect_text(what, wanted.items[i], got.items[i])) {
			break;
		}
	}
	pin_walk_filter_destroy(means.filter);
	visits_fini(&wanted);
	visits_fini(&got);
}

static void check(const char *what, const char *root)
{
	struct pinion_walk_filter filter;
	struct pinion_walk_config config;

	pinion_walk_config_init(&config);
	compare(what, root, &config, 0);
	compare(what, root, &config, ROOM_BYTES);
	config.skip_ignored = 1;
	compare(what, root, &config, ROOM_BYTES);
	pinion_walk_filter_init(&filter);
	filter.bytes_min = 2;
	filter.exclude = "*7\n";
	config.filter = &filter;
	compare(what, root, &config, ROOM_BYTES);
	config.skip_ignored = 0;
	config.follow_links = 1;
	compare(what, root, &config, ROOM_BYTES);
}

static void make(const char *path)
{
	expect_ready(path, mkdir(path, 0755) == 0);
}

/* Around the slash in the order of bytes, below and beside it. */
static void make_small(void)
{
	static const char *const names[] = {"a-b", "a.b", "a0", "ab", "a\x7f", "A", "b\xff", "b ",
		"a/c", "a/-", "a/d/e", "a/d.x", "a/d-x", "b!/x", "ab\x01"};

	make("small");
	make("small/a");
	make("small/a/d");
	make("small/b!");
	make("small/empty");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "small/%s", names[i]);
		scratch_file(path, i % 2 == 0 ? "" : "text");
	}
	scratch_file("small/.gitignore", "a/d\nab\n");
	expect_ready("links",
		symlink("a", "small/a,link") == 0 && symlink("ab", "small/a1") == 0 &&
			symlink("self", "small/self") == 0);
	expect_ready("fifo", mkfifo("small/fifo", 0644) == 0);
}

/* Each level has names before and after its subdirectory. */
static void make_deep(void)
{
	char path[LEVELS * 4 + 64] = "deep";
	size_t length = strlen(path);

	make(path);
	for (int level = 0; level < LEVELS; level++) {
		for (int i = 0; i < 6; i++) {
			snprintf(path + length, 32, "/name-%d", i * 3);
			scratch_file(path, "text");
		}
		snprintf(path + length, 32, "/name-8");
		make(path);
		length = level % 3 == 0 ? length : strlen(path);
		snprintf(path + length, 32, "/sub");
		make(path);
		length = strlen(path);
		if (length > sizeof(path) - 64) {
			break;
		}
	}
}

static void make_crowd(void)
{
	char path[64];

	make("crowd");
	for (int i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), "crowd/%d", i * 7919 % 10007);
		if (i % 50 != 0) {
			scratch_file(path, "");
			continue;
		}
		make(path);
		strcat(path, "/x");
		scratch_file(path, "");
	}
}

static int remove_above(void *arg, const struct pinion_walk_entry *entry)
{
	if (strcmp(entry->path, "gone/m/a") == 0) {
		expect_ready("rename", rename("gone", "elsewhere") == 0);
		make("gone");
	}
	return note(arg, entry);
}

/* Its names were dropped, and it is another one when the walk is back. */
static void check_gone(void)
{
	struct pin_walk_means means = {.host = &pin_host_linux, .waiting_bytes_max = 1};
	struct pinion_walk_config config;
	struct visits got = {.count = 0};

	make("gone");
	make("gone/m");
	make("gone/m/n");
	scratch_file("gone/a", "");
	scratch_file("gone/m/a", "");
	scratch_file("gone/m/n/a", "");
	scratch_file("gone/m/z", "");
	scratch_file("gone/z", "");
	pinion_walk_config_init(&config);
	config.order = PINION_WALK_BY_PATH;
	expect_number("gone", 0, pin_walk(&means, "gone", &config, remove_above, &got));
	expect_true("it went on", got.count >= 4);
	expect_text("first", "FILE gone/a 0 0", got.items[0]);
	expect_text("last", "FILE gone/z 0 0", got.items[got.count - 1]);
	visits_fini(&got);
}

static int move_away(void *arg, const struct pinion_walk_entry *entry)
{
	if (strcmp(entry->path, "moved/m/a/x") == 0) {
		expect_ready("rename", rename("moved/m", "moved/elsewhere") == 0);
	}
	return note(arg, entry);
}

/* On the way back to a directory that has another name by now. */
static void check_moved(const struct pinion_walk_config *config, const char *second)
{
	struct pin_walk_means means = {.host = &pin_host_linux};
	struct visits got = {.count = 0};

	expect_number("moved", 0, pin_walk(&means, "moved", config, move_away, &got));
	expect_number("visits", 2, (long long)got.count);
	expect_text("first", "FILE moved/m/a/x 0 0", got.items[0]);
	expect_text("second", second, got.items[1]);
	expect_ready("rename", rename("moved/elsewhere", "moved/m") == 0);
	visits_fini(&got);
}

static void check_moves(void)
{
	struct pinion_walk_config config;

	make("moved");
	make("moved/m");
	make("moved/m/a");
	scratch_file("moved/m/a/x", "");
	scratch_file("moved/m/b", "");
	pinion_walk_config_init(&config);
	config.order = PINION_WALK_BY_PATH;
	/* Its names are known, so it is not opened again. */
	check_moved(&config, "FILE moved/m/b 0 0");
	/* Links are looked at in it. */
	config.follow_links = 1;
	config.skip_ignored = 1;
	check_moved(&config, "ERROR moved/m -2 0");
}

/* 60 levels with the root's descriptor and another. */
static void check_descriptors(void)
{
	struct rlimit before;
	struct rlimit tight;
	int fd = dup(0);

	close(fd);
	getrlimit(RLIMIT_NOFILE, &before);
	tight = (struct rlimit){.rlim_cur = (rlim_t)fd + 2, .rlim_max = before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &tight);
	check("with two descriptors", "deep");
	setrlimit(RLIMIT_NOFILE, &before);
	fd = dup(0);
	close(fd);
	expect_number("none is left open", (long long)tight.rlim_cur - 2, fd);
}

static int stop_at_third(void *arg, const struct pinion_walk_entry *entry)
{
	int *count = arg;

	(void)entry;
	return ++*count == 3 ? 42 : 0;
}

static void check_stop(void)
{
	struct pinion_walk_config config;
	int count = 0;

	pinion_walk_config_init(&config);
	config.order = PINION_WALK_BY_PATH;
	expect_number("stop", 42, pinion_walk_with("deep", &config, stop_at_third, &count));
	expect_number("visits", 3, count);
	config.order = PINION_WALK_BY_PATH + 1;
	expect_number(
		"no such order", -EINVAL, pinion_walk_with("deep", &config, stop_at_third, &count));
}

int main(void)
{
	scratch_enter("sorted");
	make_small();
	make_deep();
	make_crowd();
	check("small", "small");
	check("root with a slash", "small/");
	check("deep", "deep");
	check("crowd", "crowd");
	check("a file", "small/ab");
	check_gone();
	check_moves();
	check_descriptors();
	check_stop();
	scratch_leave();
	return expect_status();
}
