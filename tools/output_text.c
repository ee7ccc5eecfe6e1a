/* SPDX-License-Identifier: MIT */
/*
 * A run of bytes that grows by doubling, and the forms in which strings of any
 * bytes are shown.
 */
#include "tools/output_text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_reserve(struct output_text *text, size_t length)
{
	size_t capacity = text->capacity == 0 ? 128 : text->capacity;
	char *bytes;

	if (text->failed || length > SIZE_MAX / 2 - text->length) {
		text->failed = true;
		return false;
	}
	if (length <= text->capacity - text->length) {
		return true;
	}
	while (capacity - text->length < length) {
		capacity *= 2;
	}
	bytes = realloc(text->bytes, capacity);
	if (bytes == NULL) {
		text->failed = true;
		return false;
	}
	text->bytes = bytes;
	text->capacity = capacity;
	return true;
}

void output_text_append(struct output_text *text, const void *bytes, size_t length)
{
	if (length > 0 && text_reserve(text, length)) {
		memcpy(text->bytes + text->length, bytes, length);
		text->length += length;
	}
}

void output_text_string(struct output_text *text, const char *string)
{
	output_text_append(text, string, strlen(string));
}

void output_text_decimal(struct output_text *text, unsigned long long number)
{
	char digits[24];
	size_t position = sizeof(digits);

	do {
		digits[--position] = (char)('0' + (char)(number % 10));
		number /= 10;
	} while (number > 0);
	output_text_append(text, digits + position, sizeof(digits) - position);
}

void output_text_format(struct output_text *text, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(NULL, 0, format, arguments);
	va_end(arguments);
	/* One more, for the NUL that is not kept. */
	if (length < 0 || !text_reserve(text, (size_t)length + 1)) {
		text->failed = true;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

/* Returns the length of the character, 0 where there is no well-formed one. */
static size_t decode(const unsigned char *bytes, size_t length, uint32_t *out_code)
{
	/* The smallest character of each size: shorter forms are not valid. */
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	uint32_t code;
	size_t size;

	if (length == 0) {
		return 0;
	}
	if (bytes[0] < 0x80) {
		*out_code = bytes[0];
		return 1;
	}
	if (bytes[0] >= 0xc2 && bytes[0] < 0xe0) {
		size = 2;
		code = bytes[0] & 0x1fU;
	} else if ((bytes[0] & 0xf0) == 0xe0) {
		size = 3;
		code = bytes[0] & 0x0fU;
	} else if (bytes[0] >= 0xf0 && bytes[0] < 0xf5) {
		size = 4;
		code = bytes[0] & 0x07U;
	} else {
		return 0;
	}
	if (length < size) {
		return 0;
	}
	for (size_t i = 1; i < size; i++) {
		if ((bytes[i] & 0xc0) != 0x80) {
			return 0;
		}
		code = code << 6 | (bytes[i] & 0x3fU);
	}
	if (code < least[size] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
		return 0;
	}
	*out_code = code;
	return size;
}

size_t output_text_utf8_length(const char *bytes, size_t length)
{
	uint32_t code;

	return decode((const unsigned char *)bytes, length, &code);
}

/* As output_text.h lists them. Source: ECMA-48; Unicode, Bidi_Control. */
static bool is_hidden(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
		code == 0x200f || (code >= 0x202a && code <= 0x202e) ||
		(code >= 0x2066 && code <= 0x2069);
}

static void append_escape(struct output_text *text, unsigned char byte)
{
	static const char hex[] = "0123456789ABCDEF";
	char escape[4] = {'\\', 'x', hex[byte >> 4], hex[byte & 15]};

	switch (byte) {
	case '\n':
		output_text_append(text, "\\n", 2);
		return;
	case '\t':
		output_text_append(text, "\\t", 2);
		return;
	case '\r':
		output_text_append(text, "\\r", 2);
		return;
	default:
		output_text_append(text, escape, sizeof(escape));
	}
}

enum {
	ESCAPES_BACKSLASH = 1,
	KEEPS_LINE_ENDS = 2,
};

static void append_character(
	struct output_text *text, const unsigned char *bytes, size_t size, uint32_t code, int how)
{
	bool is_line_end = size == 1 && (code == '\n' || code == '\0');

	if (is_hidden(code) && !(is_line_end && (how & KEEPS_LINE_ENDS) != 0)) {
		for (size_t i = 0; i < size; i++) {
			append_escape(text, bytes[i]);
		}
	} else if (code == '\\' && (how & ESCAPES_BACKSLASH) != 0) {
		output_text_append(text, "\\\\", 2);
	} else {
		output_text_append(text, bytes, size);
	}
}

static void append_escaped(struct output_text *text, const char *bytes, size_t length, int how)
{
	const unsigned char *input = (const unsigned char *)bytes;

	for (size_t position = 0; position < length;) {
		uint32_t code;
		size_t size = decode(input + position, length - position, &code);

		if (size == 0) {
			append_escape(text, input[position]);
			size = 1;
		} else {
			append_character(text, input + position, size, code, how);
		}
		position += size;
	}
}

void output_text_escaped(
	struct output_text *text, const char *bytes, size_t length, bool escapes_backslash)
{
	append_escaped(text, bytes, length, escapes_backslash ? ESCAPES_BACKSLASH : 0);
}

void output_text_escaped_lines(struct output_text *text, const char *bytes, size_t length)
{
	append_escaped(text, bytes, length, KEEPS_LINE_ENDS);
}

static bool is_utf8(const char *bytes, size_t length)
{
	while (length > 0) {
		size_t step = output_text_utf8_length(bytes, length);

		if (step == 0) {
			return false;
		}
		bytes += step;
		length -= step;
	}
	return true;
}

static void append_base64(struct output_text *text, const unsigned char *bytes, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < length; i += 3) {
		size_t count = length - i < 3 ? length - i : 3;
		uint32_t group = (uint32_t)bytes[i] << 16;
		char quad[4];

		group |= count > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
		group |= count > 2 ? (uint32_t)bytes[i + 2] : 0;
		for (size_t j = 0; j < 4; j++) {
			quad[j] = j <= count ? digits[group >> (18 - 6 * j) & 63] : '=';
		}
		output_text_append(text, quad, sizeof(quad));
	}
}

static void append_json_escape(struct output_text *text, uint32_t code)
{
	switch (code) {
	case '"':
		output_text_append(text, "\\\"", 2);
		return;
	case '\\':
		output_text_append(text, "\\\\", 2);
		return;
	case '\n':
		output_text_append(text, "\\n", 2);
		return;
	case '\r':
		output_text_append(text, "\\r", 2);
		return;
	case '\t':
		output_text_append(text, "\\t", 2);
		return;
	default:
		/* No hidden character is beyond U+FFFF. */
		output_text_format(text, "\\u%04x", code);
	}
}

void output_text_json(struct output_text *text, const char *bytes, size_t length)
{
	const unsigned char *input = (const unsigned char *)bytes;
	size_t start = 0;
	size_t position = 0;

	if (!is_utf8(bytes, length)) {
		output_text_string(text, "{\"bytes\":\"");
		append_base64(text, input, length);
		output_text_string(text, "\"}");
		return;
	}
	output_text_append(text, "\"", 1);
	while (position < length) {
		uint32_t code = 0;
		size_t size = decode(input + position, length - position, &code);

		if (is_hidden(code) || code == '"' || code == '\\') {
			output_text_append(text, bytes + start, position - start);
			append_json_escape(text, code);
			start = position + size;
		}
		position += size;
	}
	output_text_append(text, bytes + start, length - start);
	output_text_append(text, "\"", 1);
}

void output_text_free(struct output_text *text)
{
	free(text->bytes);
	*text = (struct output_text){0};
}
