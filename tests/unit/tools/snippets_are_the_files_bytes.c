/* SPDX-License-Identifier: MIT */
/*
 * Goal: snippets are the union of the parts that were added, whatever their
 * order and overlap, with the bytes of the file, and none of them touch.
 *
 * Method: random parts of a random file, some of the front let go of now and
 * then, held against a map of bytes. Proves EX-52.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/scan/snippets.h"

#include <stdio.h>
#include <string.h>

enum {
	FILE_BYTES = 2000,
	ROUNDS = 400,
	PARTS = 40,
};

static struct random_source source;
static uint8_t file[FILE_BYTES];
static bool is_kept[FILE_BYTES];

static size_t below(size_t limit)
{
	return (size_t)random_below(&source, (uint32_t)limit);
}

static void check(const struct snippets *list, size_t dropped_to)
{
	size_t item = 0;

	for (size_t i = dropped_to; i < FILE_BYTES; i++) {
		const struct snippet *found = snippets_find(list, i);

		expect_true("a byte is there if it was added", (found != NULL) == is_kept[i]);
		if (found != NULL) {
			expect_true("it is the file's", found->bytes[i - found->start] == file[i]);
			expect_true("the end is known", !found->has_end || is_kept[FILE_BYTES - 1]);
		}
	}
	for (item = 1; item < list->count; item++) {
		const struct snippet *before = &list->items[item - 1];

		expect_true(
			"they are apart", before->start + before->length < list->items[item].start);
	}
}

static void add_part(struct snippets *list, size_t dropped_to)
{
	size_t start = dropped_to + below(FILE_BYTES - dropped_to);
	size_t length = 1 + below(below(5) == 0 ? 600 : 60);
	struct snippet part;

	length = start + length < FILE_BYTES ? length : FILE_BYTES - start;
	part = (struct snippet){
		.start = start,
		.bytes = file + start,
		.length = length,
		.has_end = start + length == FILE_BYTES,
	};
	expect_ready("memory", snippets_add(list, &part) == 0);
	memset(is_kept + start, true, length);
}

int main(void)
{
	struct snippets list = {0};

	(void)random_begin(&source);
	for (size_t i = 0; i < FILE_BYTES; i++) {
		file[i] = (uint8_t)below(256);
	}
	for (int round = 0; round < ROUNDS; round++) {
		size_t dropped_to = 0;

		memset(is_kept, false, sizeof(is_kept));
		snippets_clear(&list);
		for (int i = 0; i < PARTS; i++) {
			add_part(&list, dropped_to);
			if (below(10) == 0) {
				dropped_to += below((FILE_BYTES - dropped_to) / 4);
				snippets_drop(&list, dropped_to);
			}
		}
		check(&list, dropped_to);
	}
	snippets_free(&list);
	return expect_status();
}
