/* SPDX-License-Identifier: MIT */
/*
 * UTF-8 of others: where a character ends, and texts without bytes that a
 * terminal would obey.
 *
 * Any thread.
 *
 * Source: RFC 3629.
 */
#ifndef PIN_BASE_UTF8_H
#define PIN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * The bytes of the character of more than one byte that the text begins with,
 * 0: it begins with none. Overlong forms, surrogates and codes past U+10FFFF
 * are none: with the second byte in its range the rest cannot go wrong. Does
 * not read beyond a byte of 0.
 */
static inline size_t pin_utf8_bytes(const char *text)
{
	const unsigned char *bytes = (const unsigned char *)text;
	size_t length = bytes[0] >= 0xf0 ? 4 : bytes[0] >= 0xe0 ? 3 : 2;
	unsigned char low = bytes[0] == 0xe0 ? 0xa0 : bytes[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char high = bytes[0] == 0xed ? 0x9f : bytes[0] == 0xf4 ? 0x8f : 0xbf;

	if (bytes[0] < 0xc2 || bytes[0] > 0xf4 || bytes[1] < low || bytes[1] > high) {
		return 0;
	}
	for (size_t i = 2; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			return 0;
		}
	}
	return length;
}

/* Copies what fits of a text, up to the end of a character. */
static inline void pin_utf8_copy(char *out_text, size_t size, const char *text)
{
	size_t length = 0;

	while (text[length] != '\0') {
		size_t step = pin_utf8_bytes(text + length);

		step = step == 0 ? 1 : step;
		if (length + step >= size) {
			break;
		}
		length += step;
	}
	memcpy(out_text, text, length);
	out_text[length] = '\0';
}

/* Bytes of control characters, and of none, become '?'. */
static inline void pin_utf8_clean(char *text)
{
	while (*text != '\0') {
		unsigned char byte = (unsigned char)*text;
		size_t step = byte < 0x7f ? 1 : pin_utf8_bytes(text);
		/* U+0080 to U+009F are control characters, too. */
		bool is_c1 = byte == 0xc2 && (unsigned char)text[1] < 0xa0;

		if (byte < ' ' || step == 0 || is_c1) {
			memset(text, '?', step == 0 ? 1 : step);
		}
		text += step == 0 ? 1 : step;
	}
}

#endif
