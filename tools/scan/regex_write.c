/* SPDX-License-Identifier: MIT */
/*
 * Writing translated expressions, byte by byte in the part of the grammar that
 * Hyperscan and PCRE2 have in common.
 */
#include "tools/scan/regex_translation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void translation_append(
	struct regex_translation *t, struct regex_text *text, const char *bytes, size_t length)
{
	if (text->length + length + 1 > text->capacity) {
		size_t capacity = 2 * (text->capacity + length + 32);
		char *grown = realloc(text->bytes, capacity);

		if (grown == NULL) {
			t->has_memory = false;
			t->reason = "out of memory";
			return;
		}
		text->bytes = grown;
		text->capacity = capacity;
	}
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

void translation_write_confirm(struct regex_translation *t, const char *string)
{
	translation_append(t, &t->confirm, string, strlen(string));
}

void translation_write(struct regex_translation *t, const char *string)
{
	translation_append(t, &t->search, string, strlen(string));
	translation_write_confirm(t, string);
}

void translation_fail(struct regex_translation *t, const char *reason)
{
	if (t->reason == NULL) {
		t->reason = reason;
	}
}

bool regex_is_word_byte(unsigned byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '_';
}

void translation_write_byte(struct regex_translation *t, unsigned byte)
{
	char text[8];

	if (regex_is_word_byte(byte)) {
		text[0] = (char)byte;
		text[1] = '\0';
	} else {
		snprintf(text, sizeof(text), "\\x%02x", byte);
	}
	translation_write(t, text);
}

/* The ranges of a set; nothing else of a class. */
static void write_ranges(struct regex_translation *t, const struct regex_set *set)
{
	for (unsigned first = 0; first < 256; first++) {
		unsigned last = first;

		if (!regex_set_has(set, first)) {
			continue;
		}
		while (last < 255 && regex_set_has(set, last + 1)) {
			last++;
		}
		translation_write_byte(t, first);
		if (last > first) {
			translation_write(t, last > first + 1 ? "-" : "");
			translation_write_byte(t, last);
		}
		first = last;
	}
}

static unsigned set_size(const struct regex_set *set)
{
	unsigned size = 0;

	for (int i = 0; i < 4; i++) {
		size += (unsigned)__builtin_popcountll(set->bits[i]);
	}
	return size;
}

void translation_write_utf8(struct regex_translation *t, uint32_t character)
{
	uint8_t bytes[REGEX_UTF8_MAX];
	size_t length = regex_utf8(character, bytes);

	for (size_t i = 0; i < length; i++) {
		translation_write_byte(t, bytes[i]);
	}
}

static void write_class(struct regex_translation *t, const struct regex_set *set)
{
	struct regex_set other = *set;
	unsigned size = set_size(set);

	if (size == 256) {
		translation_append(t, &t->search, "(?s:.)", 6);
		translation_write_confirm(t, ".");
	} else if (size == 0) {
		translation_write(t, "(?:\\b\\B)"); /* never */
	} else if (size > 128) {
		regex_set_negate(&other);
		translation_write(t, "[^");
		write_ranges(t, &other);
		translation_write(t, "]");
	} else {
		translation_write(t, "[");
		write_ranges(t, set);
		translation_write(t, "]");
	}
}

/* Letters, digits, `_`, and bytes beyond ASCII. */
static bool has_word_byte(const struct regex_set *set)
{
	for (unsigned byte = 0; byte < 256; byte++) {
		if (regex_set_has(set, byte) && (byte >= 0x80 || regex_is_word_byte(byte))) {
			return true;
		}
	}
	return false;
}

/* A class, with its characters beyond ASCII as alternatives. */
struct regex_extent translation_write_set(struct regex_translation *t, const struct regex_set *set)
{
	struct regex_extent extent = {1, 1};

	t->repeats_separator = !has_word_byte(set);
	if (set->extra_count == 0) {
		write_class(t, set);
		return extent;
	}
	translation_write(t, "(?:");
	write_class(t, set);
	for (uint32_t i = 0; i < set->extra_count; i++) {
		uint8_t bytes[REGEX_UTF8_MAX];
		size_t length = regex_utf8(set->extras[i], bytes);

		translation_write(t, "|");
		translation_write_utf8(t, set->extras[i]);
		extent.max = length > extent.max ? length : extent.max;
	}
	translation_write(t, ")");
	return extent;
}

void translation_write_quantifier(struct regex_translation *t, struct regex_text *text,
	const struct regex_repeat *repeat, const char *suffix)
{
	char string[48];

	if (repeat->max == REGEX_UNBOUNDED && repeat->min <= 1) {
		snprintf(string, sizeof(string), "%s%s", repeat->min == 0 ? "*" : "+", suffix);
	} else if (repeat->max == REGEX_UNBOUNDED) {
		snprintf(string, sizeof(string), "{%u,}%s", (unsigned)repeat->min, suffix);
	} else if (repeat->max == repeat->min) {
		snprintf(string, sizeof(string), "{%u}%s", (unsigned)repeat->min, suffix);
	} else {
		snprintf(string, sizeof(string), "{%u,%u}%s", (unsigned)repeat->min,
			(unsigned)repeat->max, suffix);
	}
	translation_append(t, text, string, strlen(string));
}
