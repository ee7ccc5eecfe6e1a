/* SPDX-License-Identifier: MIT */
/*
 * Goal: NULL in place of a config struct means every default: for a runtime, a
 * pool, a scan and a walk.
 * Method: compares the outcome of NULL with that of the struct that the
 * config's init function fills.
 */
#include "tests/support/expect.h"

#include <pinion/pinion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	FILES = 3,
};

static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	uint32_t *visits = arg;

	(void)entry;
	(*visits)++;
	return 0;
}

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void check_walk(void)
{
	struct pinion_walk_config config;
	uint32_t standard = 0;
	uint32_t visits = 0;

	expect_number("TMPDIR", 0, chdir(getenv("TMPDIR")));
	expect_number("folder", 0, mkdir("walked", 0700));
	for (int i = 0; i < FILES; i++) {
		char path[] = "walked/0";

		path[strlen(path) - 1] = (char)('0' + i);
		expect_number("file", 0, symlink("nowhere", path));
	}
	pinion_walk_config_init(&config);
	expect_number("walk", 0, pinion_walk_with("walked", &config, visit, &standard));
	expect_number("walk, NULL", 0, pinion_walk_with("walked", NULL, visit, &visits));
	expect_number("visits", standard, visits);
	expect_number("visits", FILES, visits);
}

static void check_pool(struct pinion_runtime *runtime)
{
	struct pinion_pool_config config;
	struct pinion_pool *standard = NULL;
	struct pinion_pool *pool = NULL;
	int rc;

	pinion_pool_config_init(&config);
	rc = pinion_pool_create(runtime, &config, &standard);
	expect_number("pool, NULL", rc, pinion_pool_create(runtime, NULL, &pool));
	if (rc == 0) {
		expect_number("destroy", 0, pinion_pool_destroy(pool));
		expect_number("destroy", 0, pinion_pool_destroy(standard));
	}
}

static void report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)outcome;
	(void)arg;
	(void)file;
	(void)error;
}

int main(void)
{
	const struct pinion_scan_ops ops = {.window = take_window, .report = report};
	struct pinion_runtime *standard = NULL;
	struct pinion_runtime *runtime = NULL;
	struct pinion_scan *scan = NULL;
	struct pinion_config config;

	check_walk();
	pinion_config_init(&config);
	expect_number("runtime", 0, pinion_runtime_create(&config, &standard));
	expect_number("runtime, NULL", 0, pinion_runtime_create(NULL, &runtime));
	if (standard == NULL || runtime == NULL) {
		return expect_status();
	}
	expect_number("workers", pinion_runtime_worker_count(standard),
		pinion_runtime_worker_count(runtime));
	check_pool(NULL);
	check_pool(runtime);
	expect_number("scan, NULL", 0, pinion_scan_create(runtime, NULL, &ops, NULL, &scan));
	if (scan != NULL) {
		pinion_scan_destroy(scan);
	}
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(standard);
	return expect_status();
}
