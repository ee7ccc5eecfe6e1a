/* SPDX-License-Identifier: MIT */
/*
 * Goal: UTF-16 and base64 are decoded to the same bytes however they are cut,
 * and each place in the UTF-8 leads back to its units; the beginnings of files
 * are distinguished. Rows EX-51.
 * Method: random text with characters of one to four bytes and lone surrogates,
 * fed whole and in random pieces, against a table of units made beside it;
 * base64 against a decoder of single characters; tables of beginnings.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/scan/archive_kind.h"
#include "tools/scan/base64.h"
#include "tools/scan/utf16.h"

#include <stdio.h>
#include <string.h>

enum { UNITS = 3000, ROUNDS = 40 };

static void same(const char *what, long long got, long long expected)
{
	expect_number(what, expected, got);
}

struct text {
	uint8_t utf16[2 * UNITS + 2];
	size_t utf16_bytes;
	uint8_t utf8[3 * UNITS + 8];
	size_t utf8_bytes;
	uint64_t unit_of[3 * UNITS + 8]; /* of each byte of UTF-8 */
	bool is_big;
};

static void put_unit(struct text *text, uint32_t unit)
{
	text->utf16[text->utf16_bytes + (text->is_big ? 1 : 0)] = (uint8_t)unit;
	text->utf16[text->utf16_bytes + (text->is_big ? 0 : 1)] = (uint8_t)(unit >> 8);
	text->utf16_bytes += 2;
}

static void put_bytes(struct text *text, const char *bytes, size_t length, uint64_t unit)
{
	for (size_t i = 0; i < length; i++) {
		text->unit_of[text->utf8_bytes] = unit + (length == 4 && i >= 2);
		text->utf8[text->utf8_bytes++] = (uint8_t)bytes[i];
	}
}

/* Characters whose UTF-8 is written out here; the last is half a pair. */
static void make_text(struct text *text, struct random_source *random)
{
	static const struct {
		uint32_t units[2];
		const char *utf8;
	} characters[] = {
		{{'a', 0}, "a"},
		{{'\n', 0}, "\n"},
		{{0xe9, 0}, "\xc3\xa9"},
		{{0x4e2d, 0}, "\xe4\xb8\xad"},
		{{0xd83d, 0xde00}, "\xf0\x9f\x98\x80"},
		{{0xdc00, 0}, "\xef\xbf\xbd"},
	};

	text->utf16_bytes = 0;
	text->utf8_bytes = 0;
	while (text->utf16_bytes < 2 * (UNITS - 2)) {
		size_t which = random_below(random, sizeof(characters) / sizeof(characters[0]));
		uint64_t unit = text->utf16_bytes / 2;

		put_unit(text, characters[which].units[0]);
		if (characters[which].units[1] != 0) {
			put_unit(text, characters[which].units[1]);
		}
		put_bytes(text, characters[which].utf8, strlen(characters[which].utf8), unit);
	}
}

static void decode_cut(const struct text *text, struct random_source *random, struct utf16 *state)
{
	static uint8_t out[3 * UNITS + 64];
	size_t done = 0;
	size_t made = 0;

	while (done < text->utf16_bytes) {
		size_t left = text->utf16_bytes - done;
		size_t part = 1 + random_below(random, 40);
		long count;

		part = part < left ? part : left;
		count = utf16_decode(state, text->utf16 + done, part, out + made);
		expect_ready("decode", count >= 0);
		done += part;
		made += (size_t)count;
	}
	same("bytes of UTF-8", (long long)made, (long long)text->utf8_bytes);
	same("the same", memcmp(out, text->utf8, made), 0);
}

static void places_lead_back(const struct text *text, const struct utf16 *state)
{
	for (size_t at = 0; at < text->utf8_bytes; at++) {
		uint64_t start = at;
		uint64_t end = at + 1;

		utf16_place(state, &start, &end);
		same("start", (long long)start, (long long)(2 + 2 * text->unit_of[at]));
		same("end", (long long)end, (long long)(4 + 2 * text->unit_of[at]));
	}
}

static void utf16_is_decoded(struct random_source *random)
{
	static struct text text;

	for (int round = 0; round < ROUNDS; round++) {
		struct utf16 state = {.origin = 2};

		text.is_big = round % 2 == 1;
		state.kind = text.is_big ? UTF16_BIG : UTF16_LITTLE;
		make_text(&text, random);
		decode_cut(&text, random, &state);
		places_lead_back(&text, &state);
		utf16_fini(&state);
	}
}

static void expect_kind(const char *bytes, size_t length, enum utf16_kind kind, size_t mark)
{
	size_t got_mark;

	same("kind of text", utf16_kind_of((const uint8_t *)bytes, length, &got_mark), kind);
	same("bytes of the mark", (long long)got_mark, (long long)mark);
}

static void beginnings_are_told_apart(void)
{
	expect_kind("\xff\xfe"
		    "a\0",
		4, UTF16_LITTLE, 2);
	expect_kind("\xfe\xff\0a", 4, UTF16_BIG, 2);
	expect_kind("\xff\xfe\0\0", 4, UTF16_NONE, 0);
	expect_kind("a\0b\0c\0d\0e\0f\0g\0h\0", 16, UTF16_LITTLE, 0);
	expect_kind("\0a\0b\0c\0d\0e\0f\0g\0h", 16, UTF16_BIG, 0);
	expect_kind("a\0b\0c\0d\0e\0f\0g\0", 14, UTF16_NONE, 0);
	expect_kind("a\0b\0c\0d\0eeffgghh", 16, UTF16_LITTLE, 0);
	expect_kind("a\0b\0c\0ddeeffgghh", 16, UTF16_NONE, 0);
	expect_kind("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, UTF16_NONE, 0);
}

/* Each run of 20 and more, by reading each character. */
static size_t next_run(const uint8_t *bytes, size_t from, size_t length)
{
	for (size_t start = from; start < length; start++) {
		size_t end = start;

		while (end < length && base64_is_char(bytes[end])) {
			end++;
		}
		if (end > start && (end - start >= BASE64_RUN_MIN || end == length)) {
			return start;
		}
		start = end;
	}
	return length;
}

static void runs_are_found(struct random_source *random)
{
	uint8_t bytes[400];

	for (int round = 0; round < 2000; round++) {
		size_t length = random_below(random, sizeof(bytes));
		size_t got = 0;
		size_t from = 0;

		for (size_t i = 0; i < length; i++) {
			bytes[i] = random_below(random, 16) == 0 ? ' ' : 'A';
		}
		do {
			got = base64_next(bytes, from, length);
			same("run", (long long)got, (long long)next_run(bytes, from, length));
			from = base64_end(bytes, got, length);
		} while (from < length);
	}
}

static void expect_decoded(const char *chars, const char *bytes)
{
	uint8_t out[64];
	size_t made = base64_decode((const uint8_t *)chars, strlen(chars), out);

	same(chars, (long long)made, (long long)strlen(bytes));
	same(chars, memcmp(out, bytes, made), 0);
}

static void base64_is_decoded(void)
{
	expect_decoded("", "");
	expect_decoded("Zg", "f");
	expect_decoded("Zm8", "fo");
	expect_decoded("Zm9v", "foo");
	expect_decoded("Zm9vYmFy", "foobar");
	expect_decoded("fn5+Pz8/", "~~~???");
	expect_decoded("fn5-Pz8_", "~~~???");
	for (int byte = 0; byte < 256; byte++) {
		const char alphabet[] =
			"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_";

		same("character", base64_is_char((uint8_t)byte),
			byte != 0 && strchr(alphabet, byte) != NULL);
	}
	same("text", base64_text_of((const uint8_t *)"Zm9vIGJhciBiYXogcXV4", 20), BASE64_TEXT);
	same("UTF-16", base64_text_of((const uint8_t *)"ZgBvAG8AIABiAGEAcgAg", 20), BASE64_UTF16);
	same("bytes", base64_text_of((const uint8_t *)"usr/share/doc/packages", 22), BASE64_BYTES);
}

static void expect_archive(const char *bytes, size_t length, enum archive_kind kind)
{
	same("kind of archive", archive_kind_of((const uint8_t *)bytes, length), kind);
}

static void archives_are_told_apart(void)
{
	static char tar[512] = "name";
	static char cpio[111] = "070701";
	const char *name;

	expect_archive("\x1f\x8b\x08\0", 4, ARCHIVE_KIND_COMPRESSED);
	expect_archive("\x1f\x8b", 2, ARCHIVE_KIND_NONE);
	expect_archive("BZh91AY&SY", 10, ARCHIVE_KIND_COMPRESSED);
	expect_archive("BZh91AY&S", 9, ARCHIVE_KIND_NONE);
	expect_archive("BZhello world", 13, ARCHIVE_KIND_NONE);
	expect_archive("PK\3\4", 4, ARCHIVE_KIND_SEEKING);
	expect_archive("!<arch>\n", 8, ARCHIVE_KIND_STREAM);
	expect_archive(tar, sizeof(tar), ARCHIVE_KIND_NONE);
	/* n + a + m + e, and eight spaces. */
	snprintf(tar + 148, 8, "%06o", 'n' + 'a' + 'm' + 'e' + 8 * ' ');
	expect_archive(tar, sizeof(tar), ARCHIVE_KIND_STREAM);
	tar[0] = 'm';
	expect_archive(tar, sizeof(tar), ARCHIVE_KIND_NONE);
	memcpy(tar + 257, "ustar", 5);
	expect_archive(tar, sizeof(tar), ARCHIVE_KIND_STREAM);
	memset(cpio + 6, '0', 104);
	expect_archive(cpio, 110, ARCHIVE_KIND_STREAM);
	cpio[109] = 'x';
	expect_archive(cpio, 110, ARCHIVE_KIND_NONE);
	same("name", (long long)archive_kind_inner_name("d/a.log.GZ", 10, &name), 5);
	same("where", memcmp(name, "a.log", 5), 0);
	same("name within", (long long)archive_kind_inner_name("d!b.xz", 6, &name), 1);
	same("no name", (long long)archive_kind_inner_name("d/.gz", 5, &name), 0);
	same("no suffix", (long long)archive_kind_inner_name("d/a.txt", 7, &name), 0);
}

int main(void)
{
	struct random_source random;

	random_begin(&random);
	utf16_is_decoded(&random);
	beginnings_are_told_apart();
	runs_are_found(&random);
	base64_is_decoded();
	archives_are_told_apart();
	return expect_status();
}
