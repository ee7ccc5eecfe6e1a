/* SPDX-License-Identifier: MIT */
/*
 * Goal: windows are the file cut at multiples of the window size, each with
 * the prefix it should have, read at aligned offsets, within the buffer, the
 * last one marked; whatever the sizes.
 * Method: random plans against the arithmetic a naive cutter would do.
 */
#include "runtime/base/base.h"
#include "runtime/scan/file_reader.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#define PLANS 20000
/* Copies from the page cache are slow where an offset is no multiple of it. */
#define COPY_ALIGN_BYTES 64

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool check_claim(
	const struct pin_window_plan *plan, const struct pin_window_claim *claim, uint64_t index)
{
	uint64_t start = index * plan->window_bytes;
	uint64_t end = smaller(start + plan->window_bytes, plan->size_bytes);
	uint64_t read_end = claim->read_offset + claim->read_bytes;
	uint64_t offset_align =
		plan->align_bytes > COPY_ALIGN_BYTES ? plan->align_bytes : COPY_ALIGN_BYTES;
	bool is_right = true;

	is_right &= expect_number("index", (long long)index, (long long)claim->index);
	is_right &= expect_number("start", (long long)start, (long long)claim->start);
	is_right &= expect_number("end", (long long)end, (long long)claim->end);
	is_right &= expect_number("prefix", (long long)smaller(plan->overlap_bytes, start),
		(long long)(claim->start - claim->base));
	is_right &= expect_true(
		"the read covers it", claim->read_offset <= claim->base && read_end >= claim->end);
	is_right &= expect_true("and no whole block more",
		claim->base - claim->read_offset < offset_align &&
			read_end - claim->end < plan->align_bytes);
	is_right &= expect_number(
		"offset alignment", 0, (long long)(claim->read_offset % offset_align));
	is_right &= expect_number("end alignment", 0, (long long)(read_end % plan->align_bytes));
	is_right &= expect_true("it fits",
		claim->read_bytes <= pin_window_buffer_bytes(plan) &&
			claim->read_bytes <= plan->window_bytes +
					pin_round_up(plan->overlap_bytes, PIN_PAGE_BYTES));
	is_right &= expect_number("is a hole", 0, claim->is_hole);
	is_right &= expect_number("is the last", end == plan->size_bytes, claim->is_last);
	return is_right;
}

static struct pin_window_plan random_plan(struct random_source *source)
{
	static const uint32_t aligns[] = {1, 4, 512, 4096};
	static const uint32_t overlaps[] = {0, 1, 511, 512, 4095, 4096, 4097, 70000, 1 << 20};
	struct pin_window_plan plan = {.fd = -1};
	uint64_t windows = random_below(source, 40);
	int64_t offset = (int64_t)random_below(source, 3) - 1;

	plan.window_bytes = (uint32_t)(random_below(source, 64) + 1) * PIN_PAGE_BYTES;
	plan.align_bytes = aligns[random_below(source, PIN_ARRAY_COUNT(aligns))];
	plan.overlap_bytes = overlaps[random_below(source, PIN_ARRAY_COUNT(overlaps))];
	if (random_below(source, 2) == 0) {
		plan.overlap_bytes = (uint32_t)random_below(source, 1 << 20);
	}
	/* Around a border, or anywhere. */
	plan.size_bytes = windows * plan.window_bytes + (uint64_t)(windows > 0 ? offset : 1);
	if (random_below(source, 2) == 0) {
		plan.size_bytes = 1 + random_below(source, 40ull * plan.window_bytes);
	}
	return plan;
}

static bool check_plan(struct pin_window_plan *plan)
{
	struct pin_window_claim claim;
	uint64_t count = (plan->size_bytes + plan->window_bytes - 1) / plan->window_bytes;

	for (uint64_t i = 0; i < count; i++) {
		if (!expect_true("there is a next", pin_window_next(plan, &claim)) ||
			!check_claim(plan, &claim, i)) {
			return false;
		}
	}
	return expect_true("none after the last", !pin_window_next(plan, &claim)) &&
		expect_true("nor later", !pin_window_next(plan, &claim));
}

/* Cut by what its reads return, since no size is known. */
static bool check_unsized(struct pin_window_plan *plan)
{
	uint64_t size = plan->size_bytes;
	struct pin_window_claim claim;
	uint64_t position = 0;
	bool is_last = false;

	plan->is_unsized = true;
	plan->size_bytes = 0;
	while (!is_last) {
		if (!expect_true("unsized: there is a next", pin_window_next(plan, &claim)) ||
			!expect_true("unsized: not yet the last", !claim.is_last) ||
			!expect_number(
				"unsized: start", (long long)position, (long long)claim.start)) {
			return false;
		}
		pin_window_advance(plan, &claim, smaller(size, claim.end));
		position = claim.end;
		is_last = claim.is_last;
	}
	return expect_number("unsized: end", (long long)size, (long long)position) &&
		expect_true("unsized: none after", !pin_window_next(plan, &claim));
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	for (int i = 0; i < PLANS && expect_failure_count == 0; i++) {
		struct pin_window_plan plan = random_plan(&source);
		struct pin_window_plan unsized = plan;

		if (!check_plan(&plan) || !check_unsized(&unsized)) {
			printf("plan %d of seed %llu: size %llu, window %u, overlap %u, align %u\n",
				i, (unsigned long long)seed, (unsigned long long)plan.size_bytes,
				plan.window_bytes, plan.overlap_bytes, plan.align_bytes);
		}
	}
	return expect_status();
}
