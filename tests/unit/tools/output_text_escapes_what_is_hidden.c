/* SPDX-License-Identifier: MIT */
/*
 * Goal: no byte that a terminal or a viewer obeys comes out, in text or JSON:
 * every Unicode character is shown as it is or escaped, exactly as the list of
 * hidden characters says, and every byte that is no UTF-8 is escaped. Lines for
 * a terminal keep the newlines and NULs that end them, and nothing else.
 * Method: all code points against a list of their own; a table of ill-formed
 * and borderline strings with the exact bytes expected.
 */
#include "tests/support/expect.h"
#include "tools/output_text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CODE_MAX = 0x10ffff };

/* First and last; as issue trackers and Unicode list them. */
static const uint32_t hidden[][2] = {
	{0x0000, 0x001f}, /* C0 */
	{0x007f, 0x007f}, /* DEL */
	{0x0080, 0x009f}, /* C1 */
	{0x061c, 0x061c}, /* ALM */
	{0x200e, 0x200f}, /* LRM, RLM */
	{0x202a, 0x202e}, /* LRE, RLE, PDF, LRO, RLO */
	{0x2066, 0x2069}, /* LRI, RLI, FSI, PDI */
};

struct shown {
	const char *bytes;
	size_t length;
	const char *text;  /* by output_text_escaped() */
	const char *lines; /* by output_text_escaped_lines(), up to a NUL; NULL: as text */
	const char *json;
};

#define S(literal) (literal), sizeof(literal) - 1
#define BYTES(base64) "{\"bytes\":\"" base64 "\"}"

static const struct shown table[] = {
	{S(""), "", NULL, "\"\""},
	{S("plain/path-1.c"), "plain/path-1.c", NULL, "\"plain/path-1.c\""},
	{S("\x1b]0;title\x07"), "\\x1B]0;title\\x07", NULL, "\"\\u001b]0;title\\u0007\""},
	{S("\x1b[2J\x1b[31mred"), "\\x1B[2J\\x1B[31mred", NULL, "\"\\u001b[2J\\u001b[31mred\""},
	{S("a\nb\rc\td\be\x7f"), "a\\nb\\rc\\td\\x08e\\x7F", "a\nb\\rc\\td\\x08e\\x7F",
		"\"a\\nb\\rc\\td\\u0008e\\u007f\""},
	{S("\xc2\x9b"
	   "31m"),
		"\\xC2\\x9B31m", NULL, "\"\\u009b31m\""},
	{S("\xc2\x80\xc2\x9f\xc2\xa0"), "\\xC2\\x80\\xC2\\x9F\xc2\xa0", NULL,
		"\"\\u0080\\u009f\xc2\xa0\""},
	{S("txt.\xe2\x80\xae"
	   "exe"),
		"txt.\\xE2\\x80\\xAE"
		"exe",
		NULL, "\"txt.\\u202eexe\""},
	{S("\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90"),
		"\xe2\x80\x8d\\xE2\\x80\\x8E\\xE2\\x80\\x8F\xe2\x80\x90", NULL,
		"\"\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90\""},
	{S("\xe2\x81\xa5\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaa"),
		"\xe2\x81\xa5\\xE2\\x81\\xA6\\xE2\\x81\\xA9\xe2\x81\xaa", NULL,
		"\"\xe2\x81\xa5\\u2066\\u2069\xe2\x81\xaa\""},
	{S("\xd8\x9b\xd8\x9c\xd8\x9d"), "\xd8\x9b\\xD8\\x9C\xd8\x9d", NULL,
		"\"\xd8\x9b\\u061c\xd8\x9d\""},
	/* C1 as single bytes, as old terminals take them. */
	{S("\x9b"
	   "31m"),
		"\\x9B31m", NULL, BYTES("mzMxbQ==")},
	/* Overlong forms of /, NUL, ESC and U+009B. */
	{S("\xc0\xaf"), "\\xC0\\xAF", NULL, BYTES("wK8=")},
	{S("\xc0\x80"), "\\xC0\\x80", NULL, BYTES("wIA=")},
	{S("\xc1\x9b"), "\\xC1\\x9B", NULL, BYTES("wZs=")},
	{S("\xe0\x80\x9b"), "\\xE0\\x80\\x9B", NULL, BYTES("4ICb")},
	{S("\xe0\x82\x9b"), "\\xE0\\x82\\x9B", NULL, BYTES("4IKb")},
	{S("\xf0\x80\x80\x9b"), "\\xF0\\x80\\x80\\x9B", NULL, BYTES("8ICAmw==")},
	{S("\xf0\x82\x80\xae"), "\\xF0\\x82\\x80\\xAE", NULL, BYTES("8IKArg==")},
	/* Surrogates, alone and as a pair. */
	{S("\xed\xa0\x80"), "\\xED\\xA0\\x80", NULL, BYTES("7aCA")},
	{S("\xed\xbf\xbf"), "\\xED\\xBF\\xBF", NULL, BYTES("7b+/")},
	{S("\xed\xa0\xbd\xed\xb8\x80"), "\\xED\\xA0\\xBD\\xED\\xB8\\x80", NULL, BYTES("7aC97biA")},
	/* Beyond the last character, and leads that begin none. */
	{S("\xf4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80", NULL, BYTES("9JCAgA==")},
	{S("\xf5\x80\x80\x80"), "\\xF5\\x80\\x80\\x80", NULL, BYTES("9YCAgA==")},
	{S("\xfe\xff"), "\\xFE\\xFF", NULL, BYTES("/v8=")},
	/* Cut short, at the end and before other text. */
	{S("\xc2"), "\\xC2", NULL, BYTES("wg==")},
	{S("\xe2\x80"), "\\xE2\\x80", NULL, BYTES("4oA=")},
	{S("\xf0\x9f\x98"), "\\xF0\\x9F\\x98", NULL, BYTES("8J+Y")},
	{S("\xe2\x80x"), "\\xE2\\x80x", NULL, BYTES("4oB4")},
	{S("\xe2\xe2\x80\xae"), "\\xE2\\xE2\\x80\\xAE", NULL, BYTES("4uKArg==")},
	{S("\x80"), "\\x80", NULL, BYTES("gA==")},
	{S("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80", NULL, "\"\xf0\x9f\x98\x80\""},
	{S("\\x1B"), "\\x1B", NULL, "\"\\\\x1B\""},
};

static bool is_hidden(uint32_t code)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		if (code >= hidden[i][0] && code <= hidden[i][1]) {
			return true;
		}
	}
	return false;
}

static size_t encode(uint32_t code, char *out)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

/* The text shown for a hidden character. */
static void spell(char *out, const char *bytes, size_t length)
{
	if (length == 1 && (*bytes == '\n' || *bytes == '\r' || *bytes == '\t')) {
		strcpy(out, *bytes == '\n' ? "\\n" : *bytes == '\r' ? "\\r" : "\\t");
		return;
	}
	for (size_t i = 0; i < length; i++) {
		sprintf(out + 4 * i, "\\x%02X", (unsigned char)bytes[i]);
	}
}

static void spell_json(char *out, uint32_t code)
{
	if (code == '\n' || code == '\r' || code == '\t') {
		sprintf(out, "\"\\%c\"", code == '\n' ? 'n' : code == '\r' ? 'r' : 't');
	} else {
		sprintf(out, "\"\\u%04x\"", code);
	}
}

static void check_bytes(
	const char *what, const struct output_text *text, const char *expected, size_t length)
{
	if (text->failed || text->length != length ||
		(length > 0 && memcmp(text->bytes, expected, length) != 0)) {
		printf("%s: expected \"%.*s\", got \"%.*s\"\n", what, (int)length, expected,
			(int)text->length, text->bytes == NULL ? "" : text->bytes);
		expect_failure_count++;
	}
}

static void check_code(uint32_t code, struct output_text *text)
{
	char bytes[8];
	char expected[32];
	char what[32];
	size_t length = encode(code, bytes);
	bool ends_line = code == '\n' || code == 0;

	snprintf(what, sizeof(what), "U+%04X", code);
	memcpy(expected, bytes, length);
	expected[length] = '\0';
	if (is_hidden(code)) {
		spell(expected, bytes, length);
	}
	text->length = 0;
	output_text_escaped(text, bytes, length, false);
	check_bytes(what, text, expected, is_hidden(code) ? strlen(expected) : length);

	text->length = 0;
	output_text_escaped_lines(text, bytes, length);
	check_bytes(what, text, ends_line ? bytes : expected,
		is_hidden(code) && !ends_line ? strlen(expected) : length);

	snprintf(expected, sizeof(expected), "\"%.*s\"", (int)length, bytes);
	if (code == '"' || code == '\\') {
		sprintf(expected, "\"\\%c\"", code);
	} else if (is_hidden(code)) {
		spell_json(expected, code);
	}
	text->length = 0;
	output_text_json(text, bytes, length);
	check_bytes(what, text, expected, strlen(expected));
}

static void check_row(const struct shown *row, struct output_text *text)
{
	const char *lines = row->lines != NULL ? row->lines : row->text;

	text->length = 0;
	output_text_escaped(text, row->bytes, row->length, false);
	check_bytes("text", text, row->text, strlen(row->text));
	text->length = 0;
	output_text_escaped_lines(text, row->bytes, row->length);
	check_bytes("lines", text, lines, strlen(lines));
	text->length = 0;
	output_text_json(text, row->bytes, row->length);
	check_bytes("JSON", text, row->json, strlen(row->json));
}

int main(void)
{
	struct output_text text = {0};

	for (uint32_t code = 0; code <= CODE_MAX; code++) {
		if (code < 0xd800 || code >= 0xe000) {
			check_code(code, &text);
		}
	}
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		check_row(&table[i], &text);
	}
	text.length = 0;
	output_text_escaped(&text, "a\\\n", 3, true);
	check_bytes("backslash", &text, "a\\\\\\n", 5);
	text.length = 0;
	output_text_escaped_lines(&text, "a\0b\n\x1b\0", 6);
	check_bytes("line ends", &text, "a\0b\n\\x1B\0", 9);
	output_text_free(&text);
	return expect_status();
}
