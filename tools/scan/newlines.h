/* SPDX-License-Identifier: MIT */
/*
 * Newlines in bytes: their number, and the last one.
 */
#ifndef PINION_TOOLS_SCAN_NEWLINES_H
#define PINION_TOOLS_SCAN_NEWLINES_H

#include <stddef.h>
#include <stdint.h>

/* A part of a file, [from, until), perhaps empty, and the newlines in it. */
struct newlines_part {
	uint64_t from;
	uint64_t until;
	uint64_t count;
};

size_t newlines_count(const uint8_t *bytes, size_t length);

/* Where the line that follows the last newline starts; 0: there is none. */
size_t newlines_last_start(const uint8_t *bytes, size_t length);

/* Where the first newline is; `length`: there is none. */
size_t newlines_first(const uint8_t *bytes, size_t length);

#endif
