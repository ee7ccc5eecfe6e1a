/* SPDX-License-Identifier: MIT */
/*
 * A range of indices, from `first` up to but not including `end`.
 */
#ifndef PIN_BASE_RANGE_H
#define PIN_BASE_RANGE_H

#include <stdint.h>

struct pin_range {
	uint32_t first;
	uint32_t end;
};

static inline uint32_t pin_range_count(struct pin_range range)
{
	return range.end - range.first;
}

#endif
