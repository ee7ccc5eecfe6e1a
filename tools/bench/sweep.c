/* SPDX-License-Identifier: MIT */
/*
 * Lists of values, and their combinations.
 */
#include "tools/bench/sweep.h"

#include "tools/options.h"
#include "tools/report.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t min;
	uint32_t max;
	bool is_size;
} axes_known[BENCH_AXIS_COUNT] = {
	[BENCH_WORKERS] = {"workers", 1, 4096, false},
	/* As deep as a ring can be. */
	[BENCH_DEPTH] = {"depth", 1, 32768, false},
	[BENCH_BLOCK] = {"block", 512, 1 << 20, true},
};

static bool parse_value(enum bench_axis axis, const char *text, uint32_t *out_value)
{
	uint64_t value;
	bool is_good = (axes_known[axis].is_size ? options_size : options_count)(
		axes_known[axis].name, text, axes_known[axis].min, axes_known[axis].max, &value);

	if (is_good) {
		*out_value = (uint32_t)value;
	}
	return is_good;
}

bool bench_sweep_parse(struct bench_sweep *sweep, enum bench_axis axis, const char *text)
{
	char word[32];
	uint32_t count = 0;

	for (;;) {
		size_t length = strcspn(text, ",");

		if (count == BENCH_SWEEP_MAX) {
			report_line("--%s: more than %d values", axes_known[axis].name,
				BENCH_SWEEP_MAX);
			return false;
		}
		if (length >= sizeof(word)) {
			report_line(
				"--%s: '%s' is not a list of values", axes_known[axis].name, text);
			return false;
		}
		snprintf(word, sizeof(word), "%.*s", (int)length, text);
		if (!parse_value(axis, word, &sweep->values[axis][count])) {
			return false;
		}
		count++;
		if (text[length] == '\0') {
			sweep->counts[axis] = count;
			return true;
		}
		text += length + 1;
	}
}

static uint32_t axis_points(const struct bench_sweep *sweep, uint32_t axes, int axis)
{
	bool is_swept = (axes & BENCH_BY(axis)) != 0 && sweep->counts[axis] > 0;

	return is_swept ? sweep->counts[axis] : 1;
}

uint32_t bench_sweep_points(const struct bench_sweep *sweep, uint32_t axes)
{
	uint32_t count = 1;

	for (int axis = 0; axis < BENCH_AXIS_COUNT; axis++) {
		count *= axis_points(sweep, axes, axis);
	}
	return count;
}

struct bench_point bench_sweep_point(const struct bench_sweep *sweep, uint32_t axes,
	const struct bench_point *defaults, uint32_t index)
{
	struct bench_point point = *defaults;

	/* The last axis changes from point to point. */
	for (int axis = BENCH_AXIS_COUNT - 1; axis >= 0; axis--) {
		uint32_t count = axis_points(sweep, axes, axis);

		if ((axes & BENCH_BY(axis)) != 0 && sweep->counts[axis] > 0) {
			point.values[axis] = sweep->values[axis][index % count];
		}
		index /= count;
	}
	return point;
}

const char *bench_axis_name(enum bench_axis axis)
{
	return axes_known[axis].name;
}
