/* SPDX-License-Identifier: MIT */
/*
 * Goal: a string is found at its first place, wherever that is, and no byte
 * outside of the text is read; newlines counted on the way are those of the
 * part that is named.
 * Method: texts of few letters, so that strings nearly match everywhere,
 * against a search byte by byte; each text ends, or begins, at a page that
 * cannot be read. Strings of a period drive the search to its other way. All of
 * it by the copy for this processor and by the copy for any.
 */
#include "tools/scan/literal_find.c"
#include "tools/scan/newlines.c"

#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <sys/mman.h>

enum {
	PAGE = 4096,
	TEXT_MAX = 2 * PAGE,
	ROUNDS = 4000,
	WORD_MAX = 300,
	NEWLINES = 100000,
};

static uint8_t *place; /* of a text, between two pages that cannot be read */

static const uint8_t *find_slowly(
	const uint8_t *word, size_t length, const uint8_t *from, const uint8_t *end)
{
	for (; (size_t)(end - from) >= length; from++) {
		if (memcmp(from, word, length) == 0) {
			return from;
		}
	}
	return NULL;
}

static void check_counted(
	const struct literal_lines *lines, const uint8_t *from, const uint8_t *end)
{
	long long count = 0;

	expect_true("what is counted is within the text",
		lines->from >= from && lines->from <= lines->until && lines->until <= end);
	for (const uint8_t *byte = lines->from; byte < lines->until; byte++) {
		count += *byte == '\n';
	}
	expect_number("newlines", count, (long long)lines->newlines);
}

static void check_lines(
	const struct literal *literal, const uint8_t *from, const uint8_t *end, const uint8_t *hit)
{
	struct literal_lines lines = {0};

	expect_true("the place, with newlines counted, is the same",
		literal_find_and_count(literal, from, end, &lines) == hit);
	if (lines.from == lines.until) {
		return;
	}
	expect_true("only where nothing is found", hit == NULL);
	check_counted(&lines, from, end);
}

/* As literal_find_and_count() without AVX2; also what it compared in vain. */
static void check_any(
	const struct literal *literal, const uint8_t *from, const uint8_t *end, const uint8_t *hit)
{
	for (int counts = 0; counts < 2; counts++) {
		struct search search = {.literal = literal, .from = from, .end = end};

		expect_true("the place on any processor is the same",
			find_anywhere(&search, counts == 1) == hit);
		expect_true("bytes compared in vain are a share of those searched",
			search.vain < VAIN_SHARE * (VAIN_MIN + (size_t)(end - from)) +
					BLOCK * literal->length);
		if (hit == NULL && search.lines.from != NULL) {
			check_counted(&search.lines, from, end);
		}
	}
}

static void check(const uint8_t *word, size_t length, const uint8_t *from, const uint8_t *end)
{
	struct literal literal;
	const uint8_t *expected = find_slowly(word, length, from, end);
	const uint8_t *got;

	literal_init(&literal, word, length);
	got = literal_find(&literal, from, end);
	expect_number(
		"place", expected != NULL ? expected - from : -1, got != NULL ? got - from : -1);
	check_lines(&literal, from, end, got);
	if (length > 1 && (size_t)(end - from) >= length) {
		check_any(&literal, from, end, got);
	}
	expect_true("the third byte is one of the string, and of its own where it has three",
		literal.third < length &&
			(length < 3 ||
				(literal.third != literal.first &&
					literal.third != literal.second)));
	expect_true("the two bytes are two, in order",
		length == 1 ? literal.first == 0 && literal.second == 0
			    : literal.first < literal.second && literal.second < length);
}

static void fill(struct random_source *source, uint8_t *bytes, size_t length)
{
	static const char *const alphabets[] = {"ab", "aab", "etaoin shrdlu", "xyz", "a\nb\n"};
	const char *letters = alphabets[random_below(source, 5)];

	for (size_t i = 0; i < length; i++) {
		bytes[i] = (uint8_t)letters[random_below(source, strlen(letters))];
	}
}

static void check_random(struct random_source *source)
{
	uint8_t word[WORD_MAX];
	size_t text_length = random_below(source, TEXT_MAX) + 1;
	size_t length = random_below(source, random_below(source, 2) == 0 ? 8 : WORD_MAX) + 1;
	uint8_t *text = random_below(source, 2) == 0 ? place : place + TEXT_MAX - text_length;

	fill(source, text, text_length);
	fill(source, word, length);
	if (length <= text_length && random_below(source, 2) == 0) {
		memcpy(text + random_below(source, text_length - length + 1), word, length);
	}
	check(word, length, text, text + text_length);
}

/* At each place of a text that holds none of its bytes, up to the last. */
static void check_places(size_t length)
{
	enum { TEXT = 500 };
	uint8_t *text = place + TEXT_MAX - TEXT;
	uint8_t word[WORD_MAX];

	for (size_t i = 0; i < length; i++) {
		word[i] = (uint8_t)('A' + i % 26);
	}
	for (size_t at = 0; at + length <= TEXT; at++) {
		memset(text, '.', TEXT);
		memcpy(text + at, word, length);
		check(word, length, text, text + TEXT);
		check(word, length, text + at, text + at + length);
		check(word, length, text, text + at + length - 1);
	}
}

/* Nearly the whole string is there at every other byte. */
static void check_periods(void)
{
	uint8_t word[WORD_MAX];

	for (size_t i = 0; i < TEXT_MAX; i++) {
		place[i] = i % 2 == 0 ? 'a' : 'b';
	}
	for (size_t i = 0; i < WORD_MAX; i++) {
		word[i] = i % 2 == 0 ? 'a' : 'b';
	}
	word[WORD_MAX - 1] = 'a';
	check(word, WORD_MAX, place, place + TEXT_MAX);
	place[TEXT_MAX - 1] = 'a';
	check(word, WORD_MAX, place, place + TEXT_MAX);
	place[TEXT_MAX / 2 + 1] = 'a';
	check(word, WORD_MAX, place, place + TEXT_MAX);
}

/* As many as sums of bytes can hold, and more. */
static void check_newlines(void)
{
	static const uint8_t word[] = {'a', 'b'};
	struct literal literal;
	struct literal_lines lines;

	memset(place, '\n', TEXT_MAX);
	check(word, sizeof(word), place, place + TEXT_MAX);
	literal_init(&literal, word, sizeof(word));
	(void)literal_find_and_count(&literal, place, place + TEXT_MAX, &lines);
	expect_true("most newlines are counted", lines.newlines > TEXT_MAX - 300);
}

/* In each lane a number of its own, up to what it can hold. */
static void check_newlines_anywhere(void)
{
	enum { STEPS = 255 };
	static uint8_t text[STEPS * STEP];
	long long count = 0;

	for (size_t i = 0; i < sizeof(text); i++) {
		text[i] = i % LANES >= i / STEP % (LANES + 1) ? '\n' : 'n';
		count += text[i] == '\n';
	}
	expect_number("on any processor", count, (long long)count_steps(text, STEPS, sum_lanes));
	expect_number("on this one", count, (long long)newlines_count(text, sizeof(text)));
	memset(text, '\n', sizeof(text));
	expect_number("full lanes", sizeof(text), (long long)count_steps(text, STEPS, sum_lanes));
}

/* Each counter of a byte would overflow many times. */
static void check_newlines_alone(void)
{
	static const uint8_t word[] = {'a', 'b'};
	static uint8_t text[NEWLINES];
	struct literal literal;
	struct literal_lines lines;

	memset(text, '\n', sizeof(text));
	expect_number("newlines", NEWLINES, (long long)newlines_count(text, sizeof(text)));
	literal_init(&literal, word, sizeof(word));
	expect_true(
		"none", literal_find_and_count(&literal, text, text + NEWLINES, &lines) == NULL);
	expect_number("on the way", lines.until - lines.from, (long long)lines.newlines);
	expect_true("most", lines.newlines > NEWLINES - 300);
}

int main(void)
{
	static const size_t lengths[] = {1, 2, 3, 5, 16, 17, 31, 32, 33, 64, 129, 300};
	struct random_source source;
	uint64_t seed = random_begin(&source);
	uint8_t *pages = mmap(NULL, TEXT_MAX + 2 * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	expect_ready("pages", pages != MAP_FAILED);
	expect_ready("borders",
		mprotect(pages, PAGE, PROT_NONE) == 0 &&
			mprotect(pages + PAGE + TEXT_MAX, PAGE, PROT_NONE) == 0);
	place = pages + PAGE;
	for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		check_random(&source);
	}
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		check_places(lengths[i]);
	}
	check_periods();
	check_newlines();
	check_newlines_anywhere();
	check_newlines_alone();
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	munmap(pages, TEXT_MAX + 2 * PAGE);
	return expect_status();
}
