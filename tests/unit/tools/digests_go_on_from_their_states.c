/* SPDX-License-Identifier: MIT */
/*
 * Goal: a state that was saved in the middle of a file, and loaded by another
 * hash, gives the digest of the whole file, whatever came after the save; of
 * parts the state is of those before the first that is missing. Damaged states
 * are refused. EX-53.
 * Method: random bytes of random lengths, windows in order, or for BLAKE3 in
 * random order; a save after each number of windows.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/sum/digest.h"

enum {
	PAGE = 4096,
	PAGES_MAX = 40,
	BYTES_MAX = PAGES_MAX * PAGE,
	ROUNDS = 30,
};

static uint8_t bytes[BYTES_MAX];
static size_t length;
static size_t window; /* a multiple of PAGE */
static struct random_source source;
static const struct digest_algorithm *algorithm;

static int feed(struct digest_state *state, size_t from)
{
	size_t count = length - from < window ? length - from : window;

	return algorithm->part != NULL ? algorithm->part(state, bytes + from, count, from)
				       : algorithm->update(state, bytes + from, count);
}

static void whole(uint8_t *out_digest)
{
	struct digest_state state = {0};

	expect_number("init", 0, algorithm->init(&state));
	for (size_t from = 0; from < length; from += window) {
		expect_number("feed", 0, feed(&state, from));
	}
	expect_number("final", 0, algorithm->final(&state, out_digest));
}

static void check_damage(const struct output_text *saved, uint64_t end)
{
	for (size_t cut = 1; cut <= saved->length; cut += 7) {
		struct digest_state state = {0};

		expect_number("init", 0, algorithm->init(&state));
		expect_true(
			"cut", !algorithm->load(&state, saved->bytes, saved->length - cut, end));
		algorithm->discard(&state);
	}
}

/* From the state to the end. */
static void go_on(const struct output_text *saved, uint64_t end, const uint8_t *wanted)
{
	struct digest_state state = {0};
	uint8_t digest[DIGEST_BYTES_MAX];

	expect_number("init", 0, algorithm->init(&state));
	expect_true("load", algorithm->load(&state, saved->bytes, saved->length, end));
	/* Windows of the later run are others. */
	window = PAGE * (1 + random_below(&source, 8));
	for (size_t from = (size_t)end; from < length; from += window) {
		expect_number("feed", 0, feed(&state, from));
	}
	expect_number("final", 0, algorithm->final(&state, digest));
	expect_true("digest", memcmp(digest, wanted, algorithm->digest_bytes) == 0);
}

/* Windows that were given, in an order of their own; a save after some. */
static void check_save(size_t save_after, const uint8_t *wanted)
{
	static struct digest_state state;
	struct output_text saved = {.bytes = NULL};
	size_t count = (length + window - 1) / window;
	size_t first_missing = save_after;
	size_t skipped = algorithm->part != NULL ? random_below(&source, (uint32_t)save_after + 1)
						 : save_after;
	uint64_t end = save_after * window;

	memset(&state, 0, sizeof(state));
	expect_number("init", 0, algorithm->init(&state));
	for (size_t i = 0; i < save_after; i++) {
		if (i == skipped) {
			first_missing = i;
			continue;
		}
		expect_number("feed", 0, feed(&state, i * window));
	}
	if (algorithm->save(&state, &saved, &end)) {
		expect_number("end", (long long)(first_missing * window), (long long)end);
		expect_true("before the end", end <= length && count > 0);
		if (save_after == 1) {
			check_damage(&saved, end);
		}
		go_on(&saved, end, wanted);
	} else {
		expect_number("nothing at the start", 0, (long long)first_missing);
	}
	output_text_free(&saved);
	algorithm->discard(&state);
}

static void check(const struct digest_algorithm *tested)
{
	algorithm = tested;
	for (int round = 0; round < ROUNDS; round++) {
		size_t page_count = 2 + random_below(&source, PAGES_MAX - 3);
		size_t own_window = PAGE * (1 + random_below(&source, 6));
		uint8_t wanted[DIGEST_BYTES_MAX];

		length = page_count * PAGE + random_below(&source, PAGE);
		window = own_window;
		whole(wanted);
		for (size_t after = 1; after * own_window < length; after++) {
			window = own_window;
			check_save(after, wanted);
		}
	}
}

int main(void)
{
	int count = 0;

	random_begin(&source);
	for (size_t i = 0; i < BYTES_MAX; i++) {
		bytes[i] = (uint8_t)random_below(&source, 256);
	}
	for (int i = 0; i < DIGEST_COUNT; i++) {
		if (digest_algorithms[i].missing == NULL && digest_algorithms[i].save != NULL) {
			check(&digest_algorithms[i]);
			count++;
		}
	}
	if (count == 0) {
		printf("built without xxhash and BLAKE3\n");
		return EXPECT_SKIPPED;
	}
	return expect_status();
}
