/* SPDX-License-Identifier: MIT */
/*
 * Goal: strings come out as JSON, and bytes that are not UTF-8 as base64.
 * Method: a table of strings with the exact text expected; well-formed and
 * ill-formed UTF-8 at every border of its definition (RFC 3629).
 */
#include "tests/support/expect.h"
#include "tools/output_text.h"

#include <stdio.h>
#include <string.h>

static void check_json(const char *bytes, size_t length, const char *expected)
{
	struct output_text text = {0};

	output_text_json(&text, bytes, length);
	output_text_append(&text, "", 1);
	expect_text("JSON", expected, text.failed ? "no memory" : text.bytes);
	output_text_free(&text);
}

static void check_utf8(const char *bytes, int expected)
{
	char what[32];

	snprintf(what, sizeof(what), "UTF-8 from %02x", (unsigned char)bytes[0]);
	expect_number(what, expected, (long long)output_text_utf8_length(bytes, strlen(bytes)));
}

#define CHECK_JSON(literal, expected) check_json((literal), sizeof(literal) - 1, (expected))

int main(void)
{
	CHECK_JSON("", "\"\"");
	CHECK_JSON("a b", "\"a b\"");
	CHECK_JSON("\"\\/", "\"\\\"\\\\/\"");
	CHECK_JSON("\n\r\t\x01\x1f\x7f", "\"\\n\\r\\t\\u0001\\u001f\\u007f\"");
	CHECK_JSON("a\0b", "\"a\\u0000b\"");
	CHECK_JSON("gr\xc3\xb6\xc3\x9f"
		   "e",
		"\"gr\xc3\xb6\xc3\x9f"
		"e\"");
	CHECK_JSON("\xff", "{\"bytes\":\"/w==\"}");
	CHECK_JSON("a\xff", "{\"bytes\":\"Yf8=\"}");
	CHECK_JSON("ab\xff", "{\"bytes\":\"YWL/\"}");
	CHECK_JSON("abc\xff", "{\"bytes\":\"YWJj/w==\"}");

	check_utf8("", 0);
	check_utf8("a", 1);
	check_utf8("\x7f", 1);
	check_utf8("\x80", 0);
	check_utf8("\xc1\xbf", 0);
	check_utf8("\xc2\x80", 2);
	check_utf8("\xc2", 0);
	check_utf8("\xc2\x41", 0);
	check_utf8("\xdf\xbf", 2);
	check_utf8("\xe0\x9f\xbf", 0);
	check_utf8("\xe0\xa0\x80", 3);
	check_utf8("\xed\x9f\xbf", 3);
	check_utf8("\xed\xa0\x80", 0);
	check_utf8("\xed\xbf\xbf", 0);
	check_utf8("\xee\x80\x80", 3);
	check_utf8("\xef\xbf\xbf", 3);
	check_utf8("\xf0\x8f\xbf\xbf", 0);
	check_utf8("\xf0\x90\x80\x80", 4);
	check_utf8("\xf4\x8f\xbf\xbf", 4);
	check_utf8("\xf4\x90\x80\x80", 0);
	check_utf8("\xf5\x80\x80\x80", 0);
	check_utf8("\xf0\x90\x80", 0);
	return expect_status();
}
