/* SPDX-License-Identifier: MIT */
/*
 * UTF-16 as UTF-8, piece by piece, and the way back from places in the UTF-8 to
 * those in the file.
 *
 * A code unit that is no character, such as half of a surrogate pair, becomes
 * U+FFFD, so that each unit has bytes of its own. The way back needs the number
 * of units before a byte: a bit for each byte of UTF-8 says whether a unit
 * begins there. A pair is four bytes, and its units begin at the first and the
 * third.
 */
#ifndef PINION_TOOLS_SCAN_UTF16_H
#define PINION_TOOLS_SCAN_UTF16_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum utf16_kind {
	UTF16_NONE,
	UTF16_LITTLE,
	UTF16_BIG,
};

/* The first bytes of a file decide; more than these do not count. */
enum { UTF16_LOOK_BYTES = 4096 };

/*
 * A byte order mark, or, of 16 bytes and more, a zero in most pairs, always at
 * the same place of the pair. *out_mark_bytes: those of the mark.
 */
enum utf16_kind utf16_kind_of(const uint8_t *bytes, size_t length, size_t *out_mark_bytes);

struct utf16_block {
	uint64_t units_before;
	uint64_t bits[8];
};

enum { UTF16_BLOCK_BYTES = 512 }; /* of UTF-8 */

/* Zero-initialise, then set `kind` and `origin`. */
struct utf16 {
	enum utf16_kind kind;
	uint64_t origin; /* where the first unit is in the file */
	uint32_t high;	 /* the first half of a pair, which waits for the other */
	uint8_t odd;	 /* the first byte of a unit, which waits, too */
	bool has_odd;
	uint64_t units;
	uint64_t bytes;		    /* of UTF-8 so far */
	struct utf16_block *blocks; /* of bytes from first_block * 512 on */
	size_t block_count;
	size_t block_capacity;
	uint64_t first_block;
};

/*
 * Appends to `out`, which has room for utf16_room(length) bytes; returns the
 * number of these. -ENOMEM.
 */
long utf16_decode(struct utf16 *state, const uint8_t *bytes, size_t length, uint8_t *out);

static inline size_t utf16_room(size_t length)
{
	return length / 2 * 3 + 8;
}

/* The file's offsets of the units that [start, end) of the UTF-8 is from. */
void utf16_place(const struct utf16 *state, uint64_t *start, uint64_t *end);

/* No place before this one will be asked for. */
void utf16_forget(struct utf16 *state, uint64_t offset);

void utf16_fini(struct utf16 *state);

#endif
