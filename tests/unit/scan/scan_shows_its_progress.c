/* SPDX-License-Identifier: MIT */
/*
 * Goal: `progress` is called with counts that only grow and add up, by one
 * thread at a time, not before its time, and at the end with those of
 * pinion_scan_finish(); a file whose `open` asks for a stream gets its windows
 * in order, one after the other, while another's are handed over in parallel
 * (BP-27); paths_ahead_max bounds sequences in flight.
 * Method: two files of many windows and some small ones, on four workers.
 */
#include "runtime/base/atomic.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <pinion/scan.h>
#include <stdio.h>
#include <string.h>

enum {
	WORKERS = 4,
	WINDOW = 64 << 10,
	WINDOWS = 100,
	SMALL = 300,
	AHEAD = 16,
	LIMIT_SECONDS = 120,
};

/* Of a file. */
struct stream {
	struct pin_atomic_u32 active;
	uint64_t next;
};

struct seen {
	struct pin_atomic_u32 active;
	uint64_t calls;
	struct pinion_scan_stats last;
};

static struct seen seen;
static struct pin_atomic_u64 reported; /* paths */

static bool is_stream(const struct pinion_scan_file *file)
{
	return strcmp(file->path, "tree/stream") == 0;
}

static int on_open(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	expect_true(
		"the bound of sequences", file->sequence < pin_load_acquire_u64(&reported) + AHEAD);
	return is_stream(file) ? PINION_SCAN_STREAM : 0;
}

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	struct stream *stream = file->user;

	(void)arg;
	if (is_stream(file)) {
		expect_number("alone", 0, pin_fetch_add_acq_rel_u32(&stream->active, 1));
		expect_number("in order", (long long)stream->next, (long long)window->index);
		stream->next++;
		pin_fetch_sub_acq_rel_u32(&stream->active, 1);
	}
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	const struct stream *stream = file->user;

	(void)arg;
	expect_number("outcome", PINION_SCAN_DONE, (long long)outcome);
	expect_number("error", 0, error);
	if (is_stream(file)) {
		expect_number("windows", WINDOWS, (long long)stream->next);
	}
	pin_fetch_add_acq_rel_u64(&reported, 1);
}

static void on_progress(void *arg, const struct pinion_scan_stats *stats)
{
	expect_true("arg", arg == &seen);
	expect_number("one at a time", 0, pin_fetch_add_acq_rel_u32(&seen.active, 1));
	expect_number("adds up",
		(long long)(stats->done + stats->failed + stats->skipped + stats->cancelled +
			stats->ignored),
		(long long)stats->seen);
	expect_true("grows",
		stats->seen >= seen.last.seen && stats->read_bytes >= seen.last.read_bytes);
	seen.calls++;
	seen.last = *stats;
	pin_fetch_sub_acq_rel_u32(&seen.active, 1);
}

static uint64_t scan_with(struct pinion_runtime *runtime, uint64_t progress_ns)
{
	static const struct pinion_scan_ops ops = {
		.open = on_open,
		.window = on_window,
		.report = on_report,
	};
	struct pinion_scan_stats stats;
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	seen = (struct seen){.calls = 0};
	pin_store_release_u64(&reported, 0);
	pinion_scan_config_init(&config);
	config.window_bytes = WINDOW;
	config.file_user_bytes = sizeof(struct stream);
	config.paths_ahead_max = AHEAD;
	config.progress = on_progress;
	config.progress_ns = progress_ns;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, &seen, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_tree(scan, "tree"));
	expect_number("finish", 0, pinion_scan_finish(scan, &stats, sizeof(stats)));
	expect_number("destroy", 0, pinion_scan_destroy(scan));
	expect_number("seen", SMALL + 2, (long long)stats.seen);
	expect_true("the last call", memcmp(&stats, &seen.last, sizeof(stats)) == 0);
	return seen.calls;
}

static void make_tree(void)
{
	char path[64];

	expect_ready("tree", mkdir("tree", 0755) == 0);
	scratch_file("tree/stream", "");
	scratch_file("tree/parallel", "");
	expect_ready("truncate",
		truncate("tree/stream", (off_t)WINDOW * WINDOWS) == 0 &&
			truncate("tree/parallel", (off_t)WINDOW * WINDOWS) == 0);
	for (int i = 0; i < SMALL; i++) {
		snprintf(path, sizeof(path), "tree/%d", i);
		scratch_file(path, "text");
	}
}

int main(void)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	alarm(LIMIT_SECONDS);
	scratch_enter("progress");
	make_tree();
	pinion_config_init(&config);
	config.worker_count = WORKERS;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	/* Each window and report, and the end. */
	expect_true("often", scan_with(runtime, 0) > 1);
	/* At first, and at the end. */
	expect_number("rarely", 2, (long long)scan_with(runtime, UINT64_C(1) << 62));
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
