/* SPDX-License-Identifier: MIT */
/*
 * A buffer of the file's length, or one that doubles.
 */
#include "tools/scan/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_lone(const struct pinion_window *window)
{
	return window->index == 0 && window->is_last && !window->is_hole;
}

static int reserve(struct whole *whole, uint64_t needed, uint64_t expected, uint64_t max)
{
	uint64_t wanted = 2 * (uint64_t)whole->capacity;
	uint8_t *bytes;

	if (needed <= whole->capacity) {
		return 0;
	}
	wanted = wanted > expected ? wanted : expected;
	wanted = wanted < max ? wanted : max;
	wanted = wanted > needed ? wanted : needed;
	bytes = realloc(whole->bytes, (size_t)wanted);
	if (bytes == NULL) {
		return -ENOMEM;
	}
	whole->bytes = bytes;
	whole->capacity = (size_t)wanted;
	return 0;
}

int whole_add(
	struct whole *whole, const struct pinion_window *window, uint64_t expected, uint64_t max)
{
	size_t fresh = window->length_bytes - window->prefix_bytes;
	int error;

	whole->has_gaps = whole->has_gaps || window->gap_count > 0;
	if (whole->is_dropped || fresh > max - whole->length) {
		whole_drop(whole);
		return 0;
	}
	if (is_lone(window) || fresh == 0) {
		return 0;
	}
	error = reserve(whole, whole->length + fresh, expected, max);
	if (error != 0) {
		return error;
	}
	if (window->is_hole) {
		memset(whole->bytes + whole->length, 0, fresh);
	} else {
		memcpy(whole->bytes + whole->length, window->bytes + window->prefix_bytes, fresh);
	}
	whole->length += fresh;
	return 0;
}

bool whole_window(const struct whole *whole, const struct pinion_window *last,
	struct pinion_window *out_window)
{
	static const uint8_t nothing[1];

	if (is_lone(last)) {
		*out_window = *last;
	} else {
		*out_window = (struct pinion_window){
			.bytes = whole->bytes, .length_bytes = whole->length, .is_last = true};
	}
	if (out_window->length_bytes == 0) {
		out_window->bytes = nothing;
	}
	return !whole->is_dropped;
}

void whole_drop(struct whole *whole)
{
	free(whole->bytes);
	whole->bytes = NULL;
	whole->length = 0;
	whole->capacity = 0;
	whole->is_dropped = true;
}

void whole_free(struct whole *whole)
{
	free(whole->bytes);
	*whole = (struct whole){.bytes = NULL};
}
