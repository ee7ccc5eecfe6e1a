/* SPDX-License-Identifier: MIT */
/*
 * Goal: nothing outside a tree is read, listed or obeyed as an ignore file
 * while the tree's owner exchanges directories for symbolic links, by rings,
 * by calls, and where openat2 is refused; 10 000 exchanges for each.
 * Method: first the exchange at the one moment between listing and opening: a
 * scan with room for one file, whose window makes it before the next is opened.
 * Then a thread that exchanges a directory and a parent with links, by
 * RENAME_EXCHANGE and by two renames, while scans run over and over. Files
 * outside have names and bytes of their own. STRESS_ITERATIONS: exchanges.
 */
#include "tests/support/beneath.h"
#include "tests/support/scans.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pthread.h>

enum {
	LIMIT_SECONDS = 200,
	EXCHANGES = 10000,
};

static struct pin_atomic_u32 escapes;
static struct pin_atomic_u32 windows;
static struct pin_atomic_u32 exchanged_errors;
static struct pin_atomic_u32 is_over;
static bool exchanges_once;

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	if (window->length_bytes > 0 && memchr(window->bytes, 'S', window->length_bytes) != NULL) {
		pin_fetch_add_acq_rel_u32(&escapes, 1);
	}
	if (window->length_bytes > 0 && exchanges_once && strstr(file->path, "/outer/") != NULL) {
		exchanges_once = false;
		beneath_exchange("tree/outer", "link");
	}
	pin_fetch_add_acq_rel_u32(&windows, 1);
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)outcome;
	if (strstr(file->path, "stolen") != NULL) {
		pin_fetch_add_acq_rel_u32(&escapes, 1);
	}
	if (error == -EXDEV) {
		pin_fetch_add_acq_rel_u32(&exchanged_errors, 1);
	}
}

static void scan_once(
	struct pinion_runtime *runtime, uint32_t files_in_flight, struct pinion_scan_stats *totals)
{
	static const struct pinion_scan_ops ops = {.window = on_window, .report = on_report};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	pinion_scan_config_init(&config);
	config.files_in_flight = files_in_flight;
	config.skip_ignored = files_in_flight != 1;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_tree(scan, "tree"));
	expect_number("finish", 0, pinion_scan_finish(scan, totals, sizeof(*totals)));
	pinion_scan_destroy(scan);
}

/* Both files of the folder are listed before the first window is over. */
static void check_moment(struct pinion_runtime *runtime)
{
	struct pinion_scan_stats totals;

	exchanges_once = true;
	scan_once(runtime, 1, &totals);
	beneath_exchange("tree/outer", "link");
	expect_number("escapes at the moment", 0, pin_load_acquire_u32(&escapes));
	/*
	 * The second file, and the folder below that was still to be
	 * entered.
	 */
	expect_number("-EXDEV", 2, pin_load_acquire_u32(&exchanged_errors));
	expect_number("failed", 2, (long long)totals.failed);
	expect_number("done", 1, (long long)totals.done);
}

static void *exchange_all_along(void *arg)
{
	const uint64_t *count = arg;

	for (uint64_t i = 0; i < *count; i += 2) {
		if (i % 4 == 0) {
			beneath_exchange("tree/outer", "link");
			beneath_exchange("tree/outer", "link");
		} else {
			expect_ready("rename",
				rename("tree/outer/inner", "away") == 0 &&
					symlink("../../secret/inner", "tree/outer/inner") == 0 &&
					unlink("tree/outer/inner") == 0 &&
					rename("away", "tree/outer/inner") == 0);
		}
	}
	pin_store_release_u32(&is_over, 1);
	return NULL;
}

static void check_race(struct pinion_runtime *runtime)
{
	uint64_t count = tasks_iterations(EXCHANGES);
	struct pinion_scan_stats totals;
	uint32_t scans = 0;
	pthread_t owner;

	expect_ready("thread", pthread_create(&owner, NULL, exchange_all_along, &count) == 0);
	do {
		scan_once(runtime, 16, &totals);
		expect_number("seen", (long long)totals.seen,
			(long long)(totals.done + totals.failed + totals.skipped + totals.ignored));
		scans++;
	} while (pin_load_acquire_u32(&is_over) == 0);
	pthread_join(owner, NULL);
	printf("%u scans during %llu exchanges, %u times -EXDEV\n", scans,
		(unsigned long long)count, pin_load_acquire_u32(&exchanged_errors));
	expect_number("escapes", 0, pin_load_acquire_u32(&escapes));
	/* Undisturbed, all of it is there: three files. */
	pin_store_release_u32(&windows, 0);
	scan_once(runtime, 16, &totals);
	expect_number("files", 3, (long long)totals.done);
	expect_number("failed", 0, (long long)totals.failed);
}

static int live(void *arg)
{
	struct pinion_runtime *runtime;

	runtimes_watchdog(LIMIT_SECONDS);
	runtime = beneath_start(arg);
	if (runtime == NULL) {
		return EXPECT_SKIPPED;
	}
	check_moment(runtime);
	check_race(runtime);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_stays_beneath_its_root");
	expect_ready("tree",
		mkdir("tree", 0755) == 0 && mkdir("tree/outer", 0755) == 0 &&
			mkdir("tree/outer/inner", 0755) == 0 && mkdir("secret", 0755) == 0 &&
			mkdir("secret/inner", 0755) == 0 && symlink("../secret", "link") == 0);
	scratch_file("tree/outer/a", "own");
	scratch_file("tree/outer/b", "own");
	scratch_file("tree/outer/inner/c", "own");
	/* The same names, and a file that is there only. */
	scratch_file("secret/a", "SECRET");
	scratch_file("secret/b", "SECRET");
	scratch_file("secret/inner/c", "SECRET");
	scratch_file("secret/inner/stolen", "SECRET");
	/* Obeyed, it would hide files in the tree. */
	scratch_file("secret/.ignore", "c\n");
	beneath_each_way(live);
	scratch_leave();
	return expect_status();
}
