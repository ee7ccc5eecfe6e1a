/* SPDX-License-Identifier: MIT */
/*
 * Texts from templates, the same for the same seed, so that a fixture can
 * describe secrets and hold no text that a scanner would take for a leak.
 *
 * `{N:CLASS}` is N letters of a class, `{uuid}` a UUID, `{lf}` a newline,
 * `{lb}` a left brace, `{}` nothing; all else is itself.
 */
#ifndef PIN_TESTS_SUPPORT_TEMPLATES_H
#define PIN_TESTS_SUPPORT_TEMPLATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct template_class {
	const char *name;
	const char *letters;
};

#define TEMPLATE_UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define TEMPLATE_LOWER "abcdefghijklmnopqrstuvwxyz"
#define TEMPLATE_DIGIT "0123456789"
#define TEMPLATE_ALNUM TEMPLATE_UPPER TEMPLATE_LOWER TEMPLATE_DIGIT

static const struct template_class template_classes[] = {
	{"HEX", TEMPLATE_DIGIT "ABCDEF"},
	{"BECH32", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"},
	{"alnum", TEMPLATE_ALNUM},
	{"alpha", TEMPLATE_UPPER TEMPLATE_LOWER},
	{"base32", TEMPLATE_UPPER "234567"},
	{"base32low", TEMPLATE_LOWER "234567"},
	{"base58", "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"},
	{"base64", TEMPLATE_ALNUM "+/"},
	{"bech32", "qpzry9x8gf2tvdw0s3jn54khce6mua7l"},
	{"digit", TEMPLATE_DIGIT},
	{"hex", TEMPLATE_DIGIT "abcdef"},
	{"lowdigit", TEMPLATE_LOWER TEMPLATE_DIGIT},
	{"lower", TEMPLATE_LOWER},
	{"updigit", TEMPLATE_UPPER TEMPLATE_DIGIT},
	{"url", TEMPLATE_ALNUM "_-"},
};

struct template_text {
	char *bytes;
	size_t length;
	size_t capacity;
	uint64_t random;
};

static inline bool template_put(struct template_text *text, char byte)
{
	if (text->length + 1 >= text->capacity) {
		return false;
	}
	text->bytes[text->length++] = byte;
	text->bytes[text->length] = '\0';
	return true;
}

/* xorshift64* */
static inline uint32_t template_random(struct template_text *text, uint32_t bound)
{
	text->random ^= text->random >> 12;
	text->random ^= text->random << 25;
	text->random ^= text->random >> 27;
	return (uint32_t)((text->random * 0x2545f4914f6cdd1dULL >> 32) * bound >> 32);
}

static inline bool template_put_letters(
	struct template_text *text, const char *letters, unsigned long count)
{
	uint32_t letter_count = (uint32_t)strlen(letters);

	for (; count > 0; count--) {
		if (!template_put(text, letters[template_random(text, letter_count)])) {
			return false;
		}
	}
	return true;
}

static inline bool template_put_uuid(struct template_text *text)
{
	static const unsigned groups[] = {8, 4, 4, 4, 12};

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if ((i > 0 && !template_put(text, '-')) ||
			!template_put_letters(text, TEMPLATE_DIGIT "abcdef", groups[i])) {
			return false;
		}
	}
	return true;
}

/* Writes a field: `field` is the text between its braces. */
static inline bool template_put_field(struct template_text *text, const char *field, size_t length)
{
	char *end;
	unsigned long count = strtoul(field, &end, 10);
	size_t rest = length - (size_t)(end - field);

	if (length == 0) {
		return true;
	}
	if (length == 2 && memcmp(field, "lf", 2) == 0) {
		return template_put(text, '\n');
	}
	if (length == 2 && memcmp(field, "lb", 2) == 0) {
		return template_put(text, '{');
	}
	if (length == 4 && memcmp(field, "uuid", 4) == 0) {
		return template_put_uuid(text);
	}
	for (size_t i = 0; i < sizeof(template_classes) / sizeof(template_classes[0]); i++) {
		const char *name = template_classes[i].name;

		if (*end == ':' && rest == strlen(name) + 1 &&
			memcmp(end + 1, name, rest - 1) == 0) {
			return template_put_letters(text, template_classes[i].letters, count);
		}
	}
	return false;
}

/*
 * Writes the text of a template, NUL terminated; false: a field is unknown, or
 * the text too long.
 */
static inline bool template_expand(
	const char *template, uint64_t seed, char *bytes, size_t capacity, size_t *out_length)
{
	struct template_text text = {
		.bytes = bytes,
		.capacity = capacity,
		.random = seed * 0x9e3779b97f4a7c15ULL | 1,
	};
	bool is_ok = true;

	while (is_ok && *template != '\0') {
		const char *close = *template == '{' ? strchr(template, '}') : NULL;

		if (close != NULL) {
			is_ok = template_put_field(
				&text, template + 1, (size_t)(close - template - 1));
			template = close + 1;
		} else {
			is_ok = template_put(&text, *template ++);
		}
	}
	*out_length = text.length;
	return is_ok;
}

#endif
