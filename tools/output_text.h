/* SPDX-License-Identifier: MIT */
/*
 * Text in the making: lines, JSON, paths with any byte in them.
 *
 * File names and file content may be an attacker's. A terminal or a viewer
 * obeys a hidden character instead of showing it: the controls of C0 and C1
 * (U+0000-001F, U+007F-009F) and those that change the direction of text
 * (U+061C, U+200E, U+200F, U+202A-202E, U+2066-2069). This file alone escapes
 * them; nothing else may write bytes of others to a terminal, stderr or JSON.
 */
#ifndef PINION_TOOLS_OUTPUT_TEXT_H
#define PINION_TOOLS_OUTPUT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* A growable run of bytes for building lines. Zero-initialise. */
struct output_text {
	char *bytes;
	size_t length;
	size_t capacity;
	bool failed; /* out of memory; the contents are incomplete */
};

void output_text_append(struct output_text *text, const void *bytes, size_t length);
void output_text_string(struct output_text *text, const char *string);
void output_text_decimal(struct output_text *text, unsigned long long number);
/* As printf(3). */
void output_text_format(struct output_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * For terminals and for one line each: hidden characters and invalid UTF-8
 * come out as \n, \t, \r and, byte by byte, \xHH, and a backslash as two when
 * asked for.
 */
void output_text_escaped(
	struct output_text *text, const char *bytes, size_t length, bool escapes_backslash);
/*
 * Whole lines for a terminal: escaped as above, without the backslash, but the
 * newlines and NULs that end lines are kept.
 */
void output_text_escaped_lines(struct output_text *text, const char *bytes, size_t length);
/*
 * A JSON string with its quotes, hidden characters as \uHHHH; or
 * {"bytes":"BASE64"} when it is not UTF-8.
 */
void output_text_json(struct output_text *text, const char *bytes, size_t length);
void output_text_free(struct output_text *text);

/* Length of the well-formed UTF-8 character at `bytes`, or 0. */
size_t output_text_utf8_length(const char *bytes, size_t length);

#endif
