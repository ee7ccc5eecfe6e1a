/* SPDX-License-Identifier: MIT */
/*
 * Goal: what YARA searches is all of a file, whatever its windows are, nothing
 * of one that is too long, and never more files at once than memory is for. Of
 * strings that match the same bytes the first is kept, in whatever order the
 * matches came.
 *
 * Method: a random file with a hole in random windows that overlap; windows up
 * to a limit and a byte beyond it; gaps; limits of files and workers; three
 * strings at one place, in each order.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/scan/findings_whole.h"
#include "tools/scan/job.h"
#include "tools/scan/whole.h"

#include <string.h>

enum {
	FILE_BYTES = 5000,
	HOLE_START = 2000,
	HOLE_END = 3000,
	WINDOW_BYTES = 700,
	OVERLAP_BYTES = 100,
	ROUNDS = 300,
};

static struct random_source source;
static uint8_t file[FILE_BYTES];

/* The next window: a hole, or bytes with an overlap before them. */
static struct pinion_window next_window(size_t from, uint64_t index)
{
	size_t length = 1 + random_below(&source, WINDOW_BYTES);
	size_t prefix = from < OVERLAP_BYTES ? from : OVERLAP_BYTES;
	size_t until = from + length < FILE_BYTES ? from + length : FILE_BYTES;

	if (from == HOLE_START) {
		return (struct pinion_window){.length_bytes = HOLE_END - HOLE_START,
			.base_offset_bytes = from,
			.index = index,
			.is_hole = true};
	}
	until = from < HOLE_START && until > HOLE_START ? HOLE_START : until;
	return (struct pinion_window){.bytes = file + from - prefix,
		.length_bytes = until - from + prefix,
		.prefix_bytes = prefix,
		.base_offset_bytes = from - prefix,
		.index = index,
		.is_last = until == FILE_BYTES};
}

static void gather(uint64_t expected, uint64_t max, bool is_whole)
{
	struct whole whole = {.bytes = NULL};
	struct pinion_window window = {.is_last = false};
	struct pinion_window all;
	size_t done = 0;

	for (uint64_t index = 0; !window.is_last; index++) {
		window = next_window(done, index);
		done += window.length_bytes - window.prefix_bytes;
		expect_number("added", 0, whole_add(&whole, &window, expected, max));
		expect_true("no more memory than allowed", whole.capacity <= max);
	}
	expect_true("it is there if it may be", whole_window(&whole, &window, &all) == is_whole);
	if (is_whole) {
		expect_number("length", FILE_BYTES, (long long)all.length_bytes);
		expect_true("all bytes", memcmp(all.bytes, file, FILE_BYTES) == 0);
		expect_true("one window", all.is_last && all.index == 0 && all.prefix_bytes == 0);
	} else {
		expect_true("nothing is kept", whole.bytes == NULL && whole.is_dropped);
	}
	whole_free(&whole);
}

static void check_lone(void)
{
	const struct pinion_gap gap = {.offset_bytes = 8, .length_bytes = 4};
	struct pinion_window window = {
		.bytes = file, .length_bytes = WINDOW_BYTES, .is_last = true};
	struct pinion_window all;
	struct whole whole = {.bytes = NULL};

	expect_number("lone", 0, whole_add(&whole, &window, 0, WINDOW_BYTES));
	expect_true("not copied",
		whole.bytes == NULL && whole_window(&whole, &window, &all) && all.bytes == file);
	expect_number("too long", 0, whole_add(&whole, &window, 0, WINDOW_BYTES - 1));
	expect_true("dropped", !whole_window(&whole, &window, &all));
	whole_free(&whole);
	expect_true("no gap", !whole.has_gaps);
	window.gaps = &gap;
	window.gap_count = 1;
	expect_number("gap", 0, whole_add(&whole, &window, 0, WINDOW_BYTES));
	expect_true("has gaps", whole.has_gaps);
	window.length_bytes = 0;
	window.bytes = NULL;
	expect_true("an empty one has an address",
		whole_window(&whole, &window, &all) && all.bytes != NULL && all.length_bytes == 0);
	whole_free(&whole);
}

static long long in_flight(uint64_t bytes_max, uint32_t worker_count)
{
	const struct scan_options options = {.yara_bytes_max = bytes_max};
	const struct scan_job job = {.options = &options};

	return yara_search_files_in_flight(&job, worker_count);
}

static void check_strings(void)
{
	static const uint32_t orders[][3] = {
		{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
	struct rule rule = {.id = NULL, .is_yara = true};
	const struct rules rules = {.items = &rule, .yara_count = 1};
	const struct findings findings = {.rules = &rules};

	for (size_t order = 0; order < sizeof(orders) / sizeof(orders[0]); order++) {
		struct findings_file searched = {.is_ready = false};
		struct candidates found = {.items = NULL};

		findings_file_init(&searched);
		for (size_t i = 0; i < 3; i++) {
			const struct candidate candidate = {
				.start = 7, .end = 9, .string = orders[order][i]};

			expect_number("added", 0, candidates_add(&found, &candidate));
		}
		expect_number("chosen", 0, findings_whole_choose(&findings, &searched, &found));
		expect_number("one finding", 1, (long long)found.count);
		expect_number("the first string", 1, found.items[0].string);
		candidates_free(&found);
		findings_file_fini(&searched);
	}
}

int main(void)
{
	random_begin(&source);
	for (size_t i = 0; i < FILE_BYTES; i++) {
		file[i] = i >= HOLE_START && i < HOLE_END ? 0 : (uint8_t)random_below(&source, 256);
	}
	for (int round = 0; round < ROUNDS; round++) {
		gather(round % 2 == 0 ? 0 : FILE_BYTES, FILE_BYTES, true);
		gather(0, FILE_BYTES + WINDOW_BYTES, true);
		gather(0, FILE_BYTES - 1, false);
	}
	check_lone();
	check_strings();
	/* 1 GiB of files, two for each worker at least, and 64 at most. */
	expect_number("64 MiB", 16, in_flight(64 << 20, 2));
	expect_number("64 MiB of many", 80, in_flight(64 << 20, 40));
	expect_number("1 GiB", 4, in_flight(1 << 30, 2));
	expect_number("1 MiB", 128, in_flight(1 << 20, 2));
	expect_number("8 KiB", 128, in_flight(8 << 10, 2));
	/* And no more than a scan takes. */
	expect_number("8 KiB of very many", 65536, in_flight(8 << 10, 1025));
	return expect_status();
}
