/* SPDX-License-Identifier: MIT */
/*
 * Goal: a walk by tasks visits what a walk by one thread visits, each entry
 * once (EX-53), whatever the tree is: wide, deep, hostile, with ignore files,
 * with few descriptors; memory for names that wait is bounded; a visit that
 * ends the walk, and a cancel, end it; a runtime that is stopped meanwhile
 * loses nothing.
 * Method: trees made here, the visits of both walks sorted and compared; limits
 * far below the standard ones, so that directories are put aside and tasks are
 * parked.
 */
#include "runtime/scan/walk.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/visits.h"

#include <pinion/runtime.h>
#include <stdint.h>
#include <sys/resource.h>

enum {
	LIMIT_SECONDS = 120,
	OUTER = 12,
	INNER = 12,
	FILES = 8,
	CROWD = 5000, /* more than fit into a block, as names are long */
	DEEP_LEVELS = 120,
	DEEP_NAME_BYTES = 100,
};

static struct pinion_runtime *runtime;

static void make(const char *path)
{
	expect_ready(path, mkdir(path, 0755) == 0);
}

static void make_wide(void)
{
	char path[128];

	make("wide");
	for (int outer = 0; outer < OUTER; outer++) {
		snprintf(path, sizeof(path), "wide/%d", outer);
		make(path);
		for (int inner = 0; inner < INNER; inner++) {
			snprintf(path, sizeof(path), "wide/%d/%d", outer, inner);
			make(path);
			for (int file = 0; file < (inner % 3 == 0 ? 0 : FILES); file++) {
				snprintf(path, sizeof(path), "wide/%d/%d/%d", outer, inner, file);
				scratch_file(path, "");
			}
		}
		snprintf(path, sizeof(path), "wide/%d/.gitignore", outer);
		scratch_file(path, outer % 2 == 0 ? "1\n/3/\n" : "!1\n2/?\n");
		snprintf(path, sizeof(path), "wide/%d/link", outer);
		expect_ready("symlink", symlink(outer % 2 == 0 ? "link" : "..", path) == 0);
		snprintf(path, sizeof(path), "wide/%d/fifo", outer);
		expect_ready("fifo", mkfifo(path, 0644) == 0);
	}
	scratch_file("wide/.gitignore", "5/6\nfifo\n");
}

static void make_crowd(void)
{
	char path[128];

	make("crowd");
	for (int i = 0; i < CROWD; i++) {
		snprintf(path, sizeof(path), "crowd/file-with-a-longish-name-%d", i);
		if (i % 10 == 0) {
			make(path);
		} else {
			scratch_file(path, "");
		}
	}
}

static void note_all(const char *root, const struct pinion_walk_config *config,
	const struct pin_walk_means *means, struct visits *visits)
{
	struct visits got = {.count = 0};

	expect_number(root, 0,
		means == NULL ? pinion_walk_with(root, config, visits_note, &got)
			      : pin_walk(means, root, config, visits_note, &got));
	if (got.count > 1) {
		qsort(got.items, got.count, sizeof(char *), visits_compare);
	}
	*visits = got;
}

static void compare(const char *what, struct visits *expected, struct visits *got)
{
	expect_number(what, (long long)expected->count, (long long)got->count);
	for (size_t i = 0; i < expected->count && i < got->count; i++) {
		if (!expect_text(what, expected->items[i], got->items[i])) {
			break;
		}
	}
	visits_fini(expected);
	visits_fini(got);
}

/* NULL: by the public call. */
static void check_same(const char *root, bool skips_ignored, const struct pin_walk_means *means)
{
	struct pinion_walk_config config;
	struct visits expected;
	struct visits got;

	pinion_walk_config_init(&config);
	config.skip_ignored = skips_ignored ? 1 : 0;
	note_all(root, &config, NULL, &expected);
	config.runtime = runtime;
	note_all(root, &config, means, &got);
	compare(root, &expected, &got);
}

static void check_trees(void)
{
	static const char *const roots[] = {
		"wide", "wide/", "crowd", "deep", "wide/1/.gitignore", "wide/1/fifo", "none", ""};
	struct pin_walk_means means = {.host = &pin_host_linux, .runtime = runtime};

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		check_same(roots[i], false, NULL);
		check_same(roots[i], true, NULL);
	}
	/* Directories are put aside as soon as some names wait. */
	means.waiting_bytes_max = 8;
	check_same("wide", true, &means);
	check_same("crowd", false, &means);
	/* One directory open beside the caller's. */
	means.open_max = 2;
	check_same("wide", true, &means);
	means.open_max = 1;
	check_same("wide", true, &means);
}

static int lowest_free_fd(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* A walk needs two; each more may be used. */
static void check_descriptors(void)
{
	int free_fd = lowest_free_fd();
	struct rlimit before;
	struct rlimit tight;

	getrlimit(RLIMIT_NOFILE, &before);
	tight = before;
	for (rlim_t spare = 2; spare <= 4; spare++) {
		tight.rlim_cur = (rlim_t)free_fd + spare;
		setrlimit(RLIMIT_NOFILE, &tight);
		check_same("crowd", true, NULL);
		check_same("deep", false, NULL);
	}
	setrlimit(RLIMIT_NOFILE, &before);
	expect_number("next free descriptor", free_fd, lowest_free_fd());
}

struct stop {
	int count;
	int at;
	struct pin_atomic_u32 is_cancelled;
};

static int stop_at(void *arg, const struct pinion_walk_entry *entry)
{
	struct stop *stop = arg;

	(void)entry;
	return ++stop->count == stop->at ? 42 : 0;
}

static int cancel_at(void *arg, const struct pinion_walk_entry *entry)
{
	struct stop *stop = arg;

	(void)entry;
	if (++stop->count == stop->at) {
		pin_store_release_u32(&stop->is_cancelled, 1);
	}
	return 0;
}

static void check_ends(void)
{
	int free_fd = lowest_free_fd();

	for (int at = 1; at < 400; at += 37) {
		struct stop stop = {.at = at};
		struct pin_walk_means means = {
			.host = &pin_host_linux,
			.runtime = runtime,
			.is_cancelled = &stop.is_cancelled,
		};
		struct pinion_walk_config config;

		pinion_walk_config_init(&config);
		config.runtime = runtime;
		expect_number("stopped", 42, pinion_walk_with("wide", &config, stop_at, &stop));
		expect_number("visits until then", at, stop.count);
		stop.count = 0;
		expect_number("cancelled", -ECANCELED,
			pin_walk(&means, "wide", &config, cancel_at, &stop));
	}
	expect_number("next free descriptor", free_fd, lowest_free_fd());
}

static int walk_here(struct pinion_task *task)
{
	struct pinion_walk_config config;
	struct stop stop = {.at = 0};

	(void)task;
	pinion_walk_config_init(&config);
	config.runtime = runtime;
	expect_number("on a worker", -EDEADLK, pinion_walk_with("wide", &config, stop_at, &stop));
	expect_number("visits on a worker", 0, stop.count);
	return 0;
}

/* The caller goes on alone. */
static void check_stopped_runtime(void)
{
	struct pinion_task task = {.run = walk_here};

	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	check_same("wide", true, NULL);
	check_same("crowd", false, NULL);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("walk_tasks");
	make(".git");
	make_wide();
	make_crowd();
	free(scratch_deep("deep", DEEP_LEVELS, DEEP_NAME_BYTES));
	runtime = runtimes_start(3, PINION_IO_AUTO);
	check_trees();
	check_descriptors();
	check_ends();
	check_stopped_runtime();
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
