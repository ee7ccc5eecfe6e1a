/* SPDX-License-Identifier: MIT */
/*
 * Goal: at every setting each file's bytes are handed over once, with the right
 * prefix, in order and one at a time where asked, and the totals add up. W24.
 * Method: files of sizes around every border, at settings spread evenly over
 * all combinations of both orders, four window sizes, five overlaps, three
 * worker counts, with and without O_DIRECT, with and without rings.
 */
#include "tests/support/scans.h"

enum {
	LIMIT_SECONDS = 100,
	BUFFER_BYTES = (1 << 20) + (72 << 10),
};

/* Runs one of this number of settings; sanitizers are slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SETTINGS_PART 7u
#else
#define SETTINGS_PART 3u
#endif

static const uint64_t sizes[] = {
	0, 1, 4095, 4096, 4097, 8192, 65535, 65536, 65537, 200000, 1048577};

static struct pinion_runtime *start(uint32_t worker_count, uint32_t io_level)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, worker_count, io_level);
	config.buffer_bytes = BUFFER_BYTES;
	config.buffer_count = 2;
	config.small_buffer_bytes = 16384;
	config.small_buffer_count = 4;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	return runtime;
}

static void scan_once(struct pinion_runtime *runtime, const struct pinion_scan_config *config)
{
	struct pinion_scan *scan = scans_create(runtime, config);
	struct pinion_scan_stats totals;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(sizes); i++) {
		scans_add(scan, i);
		bytes += sizes[i];
	}
	expect_number("finish", 0, pinion_scan_finish(scan, &totals, sizeof(totals)));
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(sizes); i++) {
		scans_expect_end(i, PINION_SCAN_DONE, 0);
		expect_number(scans_setting, (long long)sizes[i],
			(long long)pin_load_acquire_u64(&scans_files[i].new_bytes));
	}
	expect_number("seen", PIN_ARRAY_COUNT(sizes), (long long)totals.seen);
	expect_number("done", PIN_ARRAY_COUNT(sizes), (long long)totals.done);
	expect_number("read bytes", (long long)bytes, (long long)totals.read_bytes);
	expect_number("hole bytes", 0, (long long)totals.hole_bytes);
	if (config->direct == PINION_DIRECT_NEVER) {
		expect_number("direct files", 0, (long long)totals.direct_files);
	}
	pinion_scan_destroy(scan);
}

static void scan_all(struct pinion_runtime *runtime, uint32_t worker_count, uint32_t io_level)
{
	static const uint32_t windows[] = {4096, 65536, 1 << 20, 0};
	static const uint32_t overlaps[] = {0, 1, 4095, 4096, 70000};
	struct pinion_scan_config config;
	char setting[128];

	scans_config(&config);
	for (uint32_t i = 0; i < 2 * 4 * 5 * 3 && expect_failure_count == 0; i++) {
		if ((i + worker_count) % SETTINGS_PART != 0) {
			continue;
		}
		config.order = i % 2;
		config.window_bytes = windows[i / 2 % 4];
		config.overlap_bytes = overlaps[i / 8 % 5];
		config.direct = i / 40;
		config.windows_in_flight = 1 + i % 9;
		snprintf(setting, sizeof(setting),
			"order %u window %u overlap %u direct %u lanes %u workers %u level %u",
			config.order, config.window_bytes, config.overlap_bytes, config.direct,
			config.windows_in_flight, worker_count, io_level);
		scans_setting = setting;
		scan_once(runtime, &config);
	}
	scans_setting = "";
}

int main(void)
{
	static const uint32_t worker_counts[] = {1, 2, 8};

	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("scan_hands_over_every_byte");
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(sizes); i++) {
		scans_make(i, sizes[i]);
	}
	for (uint32_t level = PINION_IO_AUTO; level <= PINION_IO_FALLBACK; level++) {
		for (size_t i = 0; i < PIN_ARRAY_COUNT(worker_counts); i++) {
			struct pinion_runtime *runtime = start(worker_counts[i], level);

			scan_all(runtime, worker_counts[i], level);
			pinion_runtime_destroy(runtime);
		}
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}
