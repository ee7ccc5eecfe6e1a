/* SPDX-License-Identifier: MIT */
/*
 * Goal: text of files comes in the order of their sequences, whatever order
 * they write and end in, from memory and from the file beyond it; notes go the
 * same way; without room nothing is written out of order.
 * Method: files write and end in a random order; the text that comes out is
 * that which a plain sort has.
 */
#include "tools/scan/sorted_output.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 400, PIECES_MAX = 4, ROUNDS = 20 };

struct result {
	char text[2][FILES * PIECES_MAX * 24];
	size_t length[2];
};

static struct random_source source;

static bool append(void *arg, const struct sorted_text *text)
{
	struct result *result = arg;
	int kind = text->is_note ? 1 : 0;

	memcpy(result->text[kind] + result->length[kind], text->bytes, text->length);
	result->length[kind] += text->length;
	return true;
}

static void put(struct sorted_output *output, struct result *wanted, uint64_t sequence, int piece)
{
	char line[64];
	struct sorted_text text = {line, 0, piece == 2};

	text.length = (size_t)snprintf(
		line, sizeof(line), "%llu.%d\n", (unsigned long long)sequence, piece);
	if (output == NULL) {
		(void)append(wanted, &text);
	} else {
		expect_true("put", sorted_output_put(output, sequence, &text));
	}
}

static void check_round(size_t memory_max)
{
	static struct result wanted;
	static struct result got;
	struct sorted_output output;
	int pieces[FILES];
	int written[FILES] = {0};
	int left = FILES;

	memset(&wanted, 0, sizeof(wanted));
	memset(&got, 0, sizeof(got));
	expect_ready("init", sorted_output_init(&output, memory_max, append, &got) == 0);
	for (int i = 0; i < FILES; i++) {
		pieces[i] = (int)random_below(&source, PIECES_MAX);
		for (int piece = 0; piece < pieces[i]; piece++) {
			put(NULL, &wanted, (uint64_t)i, piece);
		}
	}
	while (left > 0) {
		int i = (int)random_below(&source, FILES);

		if (written[i] < pieces[i]) {
			put(&output, NULL, (uint64_t)i, written[i]++);
		} else if (written[i] == pieces[i]) {
			expect_true("end", sorted_output_end(&output, (uint64_t)i));
			written[i]++;
			left--;
		}
	}
	for (int kind = 0; kind < 2; kind++) {
		expect_number(
			"length", (long long)wanted.length[kind], (long long)got.length[kind]);
		expect_true("text",
			memcmp(wanted.text[kind], got.text[kind], wanted.length[kind]) == 0);
	}
	expect_number("nothing is kept", 0, (long long)output.memory_bytes);
	expect_number("nothing is spilled", 0, (long long)output.spill_end);
	sorted_output_fini(&output);
}

static void check_without_room(void)
{
	static struct result got;
	struct sorted_output output;
	struct sorted_text text = {"text\n", 5, false};

	expect_ready("setenv", setenv("TMPDIR", "/nowhere", 1) == 0);
	expect_ready("init", sorted_output_init(&output, 1, append, &got) == 0);
	expect_true("no room", !sorted_output_put(&output, 1, &text));
	expect_true("none for others", !sorted_output_put(&output, 0, &text));
	expect_true("the end says so", !sorted_output_end(&output, 0));
	expect_true("and again", !sorted_output_end(&output, 1));
	expect_number("nothing was written", 0, (long long)got.length[0]);
	sorted_output_fini(&output);
}

int main(void)
{
	random_begin(&source);
	for (int i = 0; i < ROUNDS; i++) {
		check_round(0);
		check_round(1);
		check_round(2000);
	}
	check_without_room();
	return expect_status();
}
