/* SPDX-License-Identifier: MIT */
/*
 * Runs of base64 in text: both alphabets, of RFC 4648 and of URLs, without the
 * `=` at an end.
 */
#ifndef PINION_TOOLS_SCAN_BASE64_H
#define PINION_TOOLS_SCAN_BASE64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BASE64_RUN_MIN = 20,	  /* shorter ones are words */
	BASE64_RUN_MAX = 1 << 20, /* of a longer one the first part is decoded */
	/* The bytes of the first characters decide whether a run is text. */
	BASE64_LOOK_CHARS = 24,
};

/* Whether a byte is of either alphabet. */
bool base64_is_char(uint8_t byte);

/*
 * The next place in [from, length) where a run begins that is long enough, or
 * reaches the end however long it is; `length`: there is none.
 */
size_t base64_next(const uint8_t *bytes, size_t from, size_t length);

/* The end of the run that `from` is in; `length`: it may go on. */
size_t base64_end(const uint8_t *bytes, size_t from, size_t length);

/* `out` has room for 3 bytes for 4 characters. Returns their number. */
size_t base64_decode(const uint8_t *chars, size_t length, uint8_t *out);

enum base64_text {
	BASE64_BYTES, /* no text */
	BASE64_TEXT,
	BASE64_UTF16, /* little-endian, as PowerShell takes it */
};

/* The kind of text that a run holds, by its first characters. */
enum base64_text base64_text_of(const uint8_t *chars, size_t length);

#endif
