/* SPDX-License-Identifier: MIT */
/*
 * Goal: a scan that is refused for its configuration or its operations is
 * explained to the log hook at level error: which field, its value, the range;
 * a scan at both ends of each range is not refused.
 * Method: one mistake after the other, and the message compared.
 */
#include "tests/support/runtimes.h"

#include <errno.h>
#include <pinion/scan.h>

enum { LIMIT_SECONDS = 60, BUFFER = 1 << 20, PAGE = 4096 };

static struct pinion_runtime *runtime;

static int on_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void on_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	(void)outcome;
	(void)error;
}

static int create(const struct pinion_scan_config *config, const struct pinion_scan_ops *ops)
{
	struct pinion_scan *scan = NULL;
	int rc;

	runtimes_log[0] = '\0';
	rc = pinion_scan_create(runtime, config, ops, NULL, &scan);
	if (rc == 0) {
		pinion_scan_destroy(scan);
	}
	return rc;
}

static const struct pinion_scan_ops ops = {.window = on_window, .report = on_report};

struct range {
	const char *name;
	size_t offset;
	uint32_t min;
	uint32_t max;
	const char *words; /* of the first value beyond */
};

#define RANGE(field, min, max, words) \
	{ \
#field, offsetof(struct pinion_scan_config, field), min, max, words \
	}

static const struct range ranges[] = {
	RANGE(order, 0, 1, "scan refused: order is 2, not 0 to 1\n"),
	RANGE(direct, 0, 2, "scan refused: direct is 3, not 0 to 2\n"),
	RANGE(files_in_flight, 1, 65536,
		"scan refused: files_in_flight is 65537, not 0 to 65536\n"),
	RANGE(windows_in_flight, 1, 1024,
		"scan refused: windows_in_flight is 1025, not 1 to 1024\n"),
	RANGE(file_user_bytes, 0, 1 << 20,
		"scan refused: file_user_bytes is 1048577, not 0 to 1048576\n"),
	RANGE(report_holes, 0, 1, "scan refused: report_holes is 2, not 0 to 1\n"),
	RANGE(skip_ignored, 0, 1, "scan refused: skip_ignored is 2, not 0 to 1\n"),
	RANGE(report_gaps, 0, 1, "scan refused: report_gaps is 2, not 0 to 1\n"),
	RANGE(follow_links, 0, 1, "scan refused: follow_links is 2, not 0 to 1\n"),
	RANGE(walk_order, 0, 3, "scan refused: walk_order is 4, not 0 to 3\n"),
};

static int create_with(const struct range *range, uint32_t value)
{
	struct pinion_scan_config config;

	pinion_scan_config_init(&config);
	config.files_in_flight = 1;
	memcpy((uint8_t *)&config + range->offset, &value, sizeof(value));
	return create(&config, &ops);
}

static void check_ranges(void)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		expect_number(ranges[i].name, 0, create_with(&ranges[i], ranges[i].min));
		expect_number(ranges[i].name, 0, create_with(&ranges[i], ranges[i].max));
		expect_text(ranges[i].name, "", runtimes_log);
		expect_number(ranges[i].name, -EINVAL, create_with(&ranges[i], ranges[i].max + 1));
		expect_text(ranges[i].name, ranges[i].words, runtimes_log);
	}
}

static void expect_window(uint32_t window_bytes, uint32_t overlap_bytes, const char *words)
{
	struct pinion_scan_config config;

	pinion_scan_config_init(&config);
	config.files_in_flight = 1;
	config.window_bytes = window_bytes;
	config.overlap_bytes = overlap_bytes;
	expect_number(words, words[0] == '\0' ? 0 : -EINVAL, create(&config, &ops));
	expect_text("window and overlap", words, runtimes_log);
}

static void check_windows(void)
{
	expect_window(BUFFER, 0, "");
	expect_window(BUFFER - PAGE, PAGE, "");
	expect_window(0, BUFFER - PAGE, "");
	expect_window(100, 0, "scan refused: window_bytes is 100, not a multiple of 4096\n");
	expect_window(0, BUFFER + 1, "scan refused: overlap_bytes is 1048577, not 0 to 1048576\n");
	expect_window(BUFFER, 1,
		"scan refused: window_bytes is 1048576 and overlap_bytes 1: together, each rounded "
		"up to 4096, more than the runtime's buffer_bytes, 1048576\n");
	expect_window(0, BUFFER,
		"scan refused: window_bytes is 0 and overlap_bytes 1048576: together, each rounded "
		"up to 4096, more than the runtime's buffer_bytes, 1048576\n");
}

static void check_others(void)
{
	struct {
		struct pinion_scan_config config;
		uint64_t newer;
	} larger = {.newer = 1};
	struct pinion_scan_ops lacking = {.report = on_report};
	struct pinion_scan_config config;
	char words[128];

	expect_number("no window", -EINVAL, create(NULL, &lacking));
	expect_text("no window", "scan refused: ops->window is NULL\n", runtimes_log);
	lacking = (struct pinion_scan_ops){.window = on_window};
	expect_number("no report", -EINVAL, create(NULL, &lacking));
	expect_text("no report", "scan refused: ops->report is NULL\n", runtimes_log);
	pinion_scan_config_init(&config);
	config.size = 8;
	expect_number("size", -EINVAL, create(&config, &ops));
	expect_text("size", "scan refused: size is 8: call pinion_scan_config_init() first\n",
		runtimes_log);
	pinion_scan_config_init(&config);
	config.file_timeout_ns = (UINT64_C(1) << 62) + 1;
	expect_number("timeout", -EINVAL, create(&config, &ops));
	expect_text("timeout",
		"scan refused: file_timeout_ns is 4611686018427387905, not 0 to "
		"4611686018427387904\n",
		runtimes_log);
	pinion_scan_config_init_sized(&larger.config, sizeof(larger));
	larger.newer = 1;
	expect_number("newer", -E2BIG, create(&larger.config, &ops));
	snprintf(words, sizeof(words),
		"scan refused: size is %zu, and a field that this library does not know is set\n",
		sizeof(larger));
	expect_text("newer", words, runtimes_log);
}

int main(void)
{
	struct pinion_config config;

	runtimes_watchdog(LIMIT_SECONDS);
	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.buffer_bytes = BUFFER;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	check_ranges();
	check_windows();
	check_others();
	pinion_runtime_destroy(runtime);
	return expect_status();
}
