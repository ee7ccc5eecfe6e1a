/* SPDX-License-Identifier: MIT */
/*
 * Finds one string of bytes, at the speed at which memory is read.
 *
 * It looks for two bytes of the string at once, the rarest two in text and
 * programs, at their distance; only where both are there, and the third rarest,
 * is the rest compared. memmem(3) of glibc goes byte by byte, and memchr(3) for
 * one byte stops at each of them, which in text is every thirty bytes or so.
 *
 * The time is in proportion to the bytes searched, whatever the string is:
 * where comparisons in vain add up, memmem(3) goes on, which is linear.
 */
#ifndef PINION_TOOLS_SCAN_LITERAL_FIND_H
#define PINION_TOOLS_SCAN_LITERAL_FIND_H

#include <stddef.h>
#include <stdint.h>

struct literal {
	const uint8_t *bytes;
	size_t length;
	size_t first; /* where the two rarest bytes are; first <= second */
	size_t second;
	size_t third; /* the next one; of a shorter string, one of those */
};

/* The newlines in [from, until). */
struct literal_lines {
	const uint8_t *from;
	const uint8_t *until;
	size_t newlines;
};

/* `bytes` stay the caller's and in place. `length` > 0. */
void literal_init(struct literal *literal, const void *bytes, size_t length);

/* The first occurrence within [from, end); NULL: none. */
const uint8_t *literal_find(const struct literal *literal, const uint8_t *from, const uint8_t *end);

/*
 * As literal_find(), and where there is none counts newlines on the way: in
 * most of the bytes, perhaps in none of them.
 */
const uint8_t *literal_find_and_count(const struct literal *literal, const uint8_t *from,
	const uint8_t *end, struct literal_lines *out_lines);

#endif
