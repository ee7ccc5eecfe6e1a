/* SPDX-License-Identifier: MIT */
/*
 * Goal: of two files that are read in order and were added at once, a worker
 * that took both leaves the second to a free worker; each is handed over whole,
 * by one worker. An only worker leaves nothing to others. WP-9.
 * Method: two files, again and again, until a start was handed on; a check of
 * the slot of each window.
 */
#include "runtime/scan/scan.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <string.h>

enum {
	FILES = 2,
	PAGES = 16,
	ROUNDS_ALONE = 50,
	NOBODY = -1,
};

static struct {
	struct pin_atomic_u32 pages;
	int worker; /* [own] of the worker that has the file */
} seen[FILES];

static struct pin_atomic_u32 handed_on_count;
static struct pinion_runtime *runtime;

static int open_file(void *arg, struct pinion_scan_file *file)
{
	const struct pin_slot *slot = PIN_CONTAINER_OF(file, struct pin_slot, file);
	uint32_t number = (uint32_t)(file->path[0] - '0');

	(void)arg;
	seen[number].worker = pinion_worker_index(runtime);
	if (slot->was_handed_on && slot->starter != NULL) {
		pin_fetch_add_acq_rel_u32(&handed_on_count, 1);
	}
	return 0;
}

static int look(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	uint32_t number = (uint32_t)(file->path[0] - '0');

	(void)arg;
	expect_number("worker", seen[number].worker, pinion_worker_index(runtime));
	for (uint64_t i = 0; i < window->length_bytes; i += 4096) {
		expect_number("byte", (long long)number + 1, window->bytes[i]);
		pin_fetch_add_acq_rel_u32(&seen[number].pages, 1);
	}
	return 0;
}

static void expect_done(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	expect_number("outcome", PINION_SCAN_DONE, outcome);
	expect_number("error", 0, error);
}

static void scan_both(void)
{
	static const struct pinion_scan_ops ops = {
		.open = open_file, .window = look, .report = expect_done};
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	pinion_scan_config_init(&config);
	config.order = PINION_SCAN_IN_ORDER;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	for (uint32_t i = 0; i < FILES; i++) {
		pin_store_release_u32(&seen[i].pages, 0);
		seen[i].worker = NOBODY;
	}
	for (uint32_t i = 0; i < FILES; i++) {
		expect_number("add", 0, pinion_scan_add_file(scan, i == 0 ? "0" : "1"));
	}
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
	for (uint32_t i = 0; i < FILES; i++) {
		expect_number("pages", PAGES, pin_load_acquire_u32(&seen[i].pages));
	}
}

static void make_files(void)
{
	static uint8_t bytes[PAGES * 4096];

	for (int i = 0; i < FILES; i++) {
		int fd = open(i == 0 ? "0" : "1", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		memset(bytes, i + 1, sizeof(bytes));
		expect_ready("file",
			fd >= 0 && write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
		close(fd);
	}
}

int main(void)
{
	scratch_enter("files_in_order_spread");
	make_files();
	runtime = runtimes_start(1, PINION_IO_AUTO);
	for (int i = 0; i < ROUNDS_ALONE; i++) {
		scan_both();
	}
	expect_number("handed on by one alone", 0, pin_load_acquire_u32(&handed_on_count));
	pinion_runtime_destroy(runtime);
	runtime = runtimes_start(2, PINION_IO_AUTO);
	while (expect_failure_count == 0 && pin_load_acquire_u32(&handed_on_count) == 0) {
		scan_both();
	}
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
