/* SPDX-License-Identifier: MIT */
/*
 * Limits by name.
 */
#include "tools/scan/archive_options.h"

#include "tools/options.h"
#include "tools/report.h"
#include "tools/scan/archive_library.h"

#include <string.h>

enum { TIME_SECONDS_MAX = 1000000 };

#define BYTES_MAX (UINT64_C(1) << 50)
#define RATIO_MAX UINT64_C(1000000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)

static bool set(struct archive_limits *limits, const char *name, const char *value)
{
	static const char option[] = "archive-limit";
	uint64_t depth;

	if (strcmp(name, "depth") == 0) {
		if (!options_count(option, value, 1, ARCHIVE_DEPTH_MAX, &depth)) {
			return false;
		}
		limits->depth = (uint32_t)depth;
		return true;
	}
	if (strcmp(name, "entry") == 0) {
		return options_size(option, value, 1, BYTES_MAX, &limits->entry_bytes);
	}
	if (strcmp(name, "size") == 0) {
		return options_size(option, value, 1, BYTES_MAX, &limits->bytes);
	}
	if (strcmp(name, "ratio") == 0) {
		return options_count(option, value, 1, RATIO_MAX, &limits->ratio);
	}
	return options_duration(
		option, value, NS_PER_MS, TIME_SECONDS_MAX * NS_PER_S, &limits->time_ns);
}

bool archive_options_limit(struct archive_options *options, const char *value)
{
	static const char *const names[] = {"depth", "entry", "size", "ratio", "time"};
	const char *equals = strchr(value, '=');
	size_t length = equals != NULL ? (size_t)(equals - value) : strlen(value);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (equals != NULL && strlen(names[i]) == length &&
			memcmp(names[i], value, length) == 0) {
			return set(&options->limits, names[i], equals + 1);
		}
	}
	report_line("--archive-limit: %s is not depth=N, entry=SIZE, size=SIZE, ratio=N or "
		    "time=SECONDS",
		value);
	return false;
}

bool archive_options_check(const struct archive_options *options)
{
	const char *reason;

	if (!options->is_on || archive_library_load(&reason)) {
		return true;
	}
	report_line("--archives needs libarchive: %s", reason);
	return false;
}
