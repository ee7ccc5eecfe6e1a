/* SPDX-License-Identifier: MIT */
/*
 * All bytes of a file in one piece, gathered from its windows in order, for
 * YARA, whose conditions are about whole files. A file of one window is not
 * copied. A file beyond a length is dropped: then nothing of it is kept.
 */
#ifndef PINION_TOOLS_SCAN_WHOLE_H
#define PINION_TOOLS_SCAN_WHOLE_H

#include <pinion/scan.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file's. Zero-initialise. */
struct whole {
	uint8_t *bytes;
	size_t length;
	size_t capacity;
	bool is_dropped; /* it is longer than it may be */
	bool has_gaps;	 /* parts could not be read, and are zeros here */
};

/*
 * Adds the new bytes of the next window; zeros of a hole. `expected` is the
 * file's length as far as it is known, `max` the most it may be. -ENOMEM.
 */
int whole_add(
	struct whole *whole, const struct pinion_window *window, uint64_t expected, uint64_t max);

/*
 * After the last window, which whole_add() has had: the file as one window,
 * which is valid as long as both. False: it was dropped.
 */
bool whole_window(const struct whole *whole, const struct pinion_window *last,
	struct pinion_window *out_window);

/* It is too long. */
void whole_drop(struct whole *whole);

void whole_free(struct whole *whole);

#endif
