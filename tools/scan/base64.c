/* SPDX-License-Identifier: MIT */
/*
 * A run of n characters has one at each n-th place, so most of a text is never
 * looked at.
 */
#include "tools/scan/base64.h"

#define TEN(first) \
	first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7, \
		first + 8, first + 9
#define LETTERS(first) \
	TEN(first), TEN(first + 10), first + 20, first + 21, first + 22, first + 23, first + 24, \
		first + 25

/* Values and 1, of the common alphabet and that of URLs; 0: no character. */
static const uint8_t values[256] = {
	['+'] = 63,
	['-'] = 63,
	['/'] = 64,
	['_'] = 64,
	['0'] = TEN(53),
	['A'] = LETTERS(1),
	['a'] = LETTERS(27),
};

/* Of a character. */
static uint32_t value_of(uint8_t byte)
{
	return values[byte] - 1u;
}

bool base64_is_char(uint8_t byte)
{
	return values[byte] != 0;
}

size_t base64_next(const uint8_t *bytes, size_t from, size_t length)
{
	size_t start;

	while (length - from >= BASE64_RUN_MIN) {
		size_t at = from + BASE64_RUN_MIN;

		/* From the last place that a run from here has, backward. */
		while (at > from && base64_is_char(bytes[at - 1])) {
			at--;
		}
		if (at == from) {
			return from;
		}
		from = at;
	}
	start = length;
	while (start > from && base64_is_char(bytes[start - 1])) {
		start--;
	}
	return start;
}

size_t base64_end(const uint8_t *bytes, size_t from, size_t length)
{
	while (from < length && base64_is_char(bytes[from])) {
		from++;
	}
	return from;
}

size_t base64_decode(const uint8_t *chars, size_t length, uint8_t *out)
{
	uint32_t bits = 0;
	size_t made = 0;

	for (size_t i = 0; i < length; i++) {
		bits = bits << 6 | value_of(chars[i]);
		if (i % 4 == 3) {
			out[made++] = (uint8_t)(bits >> 16);
			out[made++] = (uint8_t)(bits >> 8);
			out[made++] = (uint8_t)bits;
		}
	}
	if (length % 4 == 2) {
		out[made++] = (uint8_t)(bits >> 4);
	} else if (length % 4 == 3) {
		out[made++] = (uint8_t)(bits >> 10);
		out[made++] = (uint8_t)(bits >> 2);
	}
	return made;
}

static bool is_text(uint8_t byte)
{
	return (byte >= ' ' && byte < 0x7f) || byte == '\n' || byte == '\t' || byte == '\r';
}

enum base64_text base64_text_of(const uint8_t *chars, size_t length)
{
	uint8_t bytes[BASE64_LOOK_CHARS / 4 * 3];
	size_t made = base64_decode(
		chars, length < BASE64_LOOK_CHARS ? length : BASE64_LOOK_CHARS, bytes);
	size_t texts = 0;
	size_t zeros = 0;

	for (size_t i = 0; i < made; i++) {
		texts += is_text(bytes[i]);
		zeros += i % 2 == 1 && bytes[i] == 0;
	}
	if (texts == made) {
		return BASE64_TEXT;
	}
	return zeros == made / 2 && texts == made - zeros ? BASE64_UTF16 : BASE64_BYTES;
}
