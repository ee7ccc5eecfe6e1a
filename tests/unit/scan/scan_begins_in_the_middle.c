/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file whose `open` sets a start is handed over from there on, each
 * byte once and with its prefix, in order and in parallel; a start that is no
 * page of the file fails it, and the next file begins at 0 again. EX-53.
 * Method: a file of numbered words, all starts near its borders.
 */
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include "runtime/base/atomic.h"

#include <errno.h>
#include <pinion/scan.h>

enum {
	PAGE = 4096,
	WINDOW = 4 * PAGE,
	OVERLAP = 100,
	FILE_BYTES = 10 * PAGE + 40,
	LIMIT_SECONDS = 60,
};

static uint64_t start_bytes;
static struct pin_atomic_u64 new_bytes;
static struct pin_atomic_u64 offset_sum; /* of the new bytes' words */
static struct pin_atomic_u32 wrong_count;
static int outcome_error;

static int open_file(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	expect_number("fresh", 0, (long long)file->start_offset_bytes);
	file->start_offset_bytes = start_bytes;
	return 0;
}

static int take_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	uint64_t start = window->base_offset_bytes + window->prefix_bytes;
	uint64_t wanted = start < OVERLAP ? start : OVERLAP;

	(void)arg;
	(void)file;
	if (window->prefix_bytes != wanted || (window->index == 0) != (start == start_bytes) ||
		window->is_last !=
			(window->base_offset_bytes + window->length_bytes == FILE_BYTES)) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
	for (size_t i = 0; i + 4 <= window->length_bytes; i += 4) {
		uint32_t word;

		memcpy(&word, window->bytes + i, sizeof(word));
		if (word != (window->base_offset_bytes + i) / 4) {
			pin_fetch_add_acq_rel_u32(&wrong_count, 1);
		}
		if (i >= window->prefix_bytes) {
			pin_fetch_add_acq_rel_u64(&offset_sum, word);
		}
	}
	pin_fetch_add_acq_rel_u64(&new_bytes, window->length_bytes - window->prefix_bytes);
	return 0;
}

static void note_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	expect_true("outcome", (outcome == PINION_SCAN_DONE) == (error == 0));
	outcome_error = error;
}

static void scan_from(struct pinion_runtime *runtime, uint32_t order, uint64_t start)
{
	static const struct pinion_scan_ops ops = {
		.open = open_file, .window = take_window, .report = note_report};
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	start_bytes = start;
	outcome_error = 1;
	pin_store_release_u64(&new_bytes, 0);
	pin_store_release_u64(&offset_sum, 0);
	pinion_scan_config_init(&config);
	config.order = order;
	config.window_bytes = WINDOW;
	config.overlap_bytes = OVERLAP;
	expect_ready("create", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(scan, "file"));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	expect_number("destroy", 0, pinion_scan_destroy(scan));
}

static void check_good(struct pinion_runtime *runtime, uint32_t order, uint64_t start)
{
	uint64_t first = start / 4;
	uint64_t count = FILE_BYTES / 4 - first;

	scan_from(runtime, order, start);
	expect_number("done", 0, outcome_error);
	expect_number("bytes", (long long)(FILE_BYTES - start),
		(long long)pin_load_acquire_u64(&new_bytes));
	expect_number("each once", (long long)(count * first + count * (count - 1) / 2),
		(long long)pin_load_acquire_u64(&offset_sum));
}

static void check_bad(struct pinion_runtime *runtime, uint64_t start)
{
	scan_from(runtime, PINION_SCAN_PARALLEL, start);
	expect_number("refused", -EINVAL, outcome_error);
	expect_number("nothing", 0, (long long)pin_load_acquire_u64(&new_bytes));
}

static void make_file(void)
{
	static uint32_t words[FILE_BYTES / 4];
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	for (uint32_t i = 0; i < FILE_BYTES / 4; i++) {
		words[i] = i;
	}
	expect_ready("file", fd >= 0 && write(fd, words, FILE_BYTES) == FILE_BYTES);
	close(fd);
}

int main(void)
{
	static const uint64_t starts[] = {0, PAGE, WINDOW, WINDOW + PAGE, 10 * PAGE};
	struct pinion_runtime *runtime;

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_begins_in_the_middle");
	make_file();
	runtime = runtimes_start(2, PINION_IO_AUTO);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		check_good(runtime, PINION_SCAN_PARALLEL, starts[i]);
		check_good(runtime, PINION_SCAN_IN_ORDER, starts[i]);
	}
	check_bad(runtime, 1);
	check_bad(runtime, PAGE + 1);
	check_bad(runtime, 11 * PAGE);
	expect_number("windows", 0, pin_load_acquire_u32(&wrong_count));
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
