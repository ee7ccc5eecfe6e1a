/* SPDX-License-Identifier: MIT */
/*
 * Goal: where reads are over when they are submitted, as those of a device in
 * memory are, a scan has one window of a worker under way, not as many as the
 * device may be given: more would only leave the processor's cache. All bytes
 * come. G6.
 * Method: white box: how far reads have run ahead, in order, and how many
 * tracks work, in parallel, at each window but the first few.
 */
#include "tests/support/instant.h"

enum {
	WINDOWS = 256,
	LEARNING = 128, /* windows until it is known, also by a slow build */
};

static struct {
	uint32_t windows;
	uint32_t ahead_max;
	uint64_t byte_sum;
} seen;

static int look(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	const struct pin_reader *reader = instant_reader(file);
	uint32_t ahead = reader->is_in_order
		? (uint32_t)(reader->claimed_count - reader->delivered_count)
		: pin_load_relaxed_u32(&reader->tracks_left);

	(void)arg;
	seen.windows++;
	if (seen.windows > LEARNING && ahead > seen.ahead_max) {
		seen.ahead_max = ahead;
	}
	for (uint64_t i = 0; i < window->length_bytes; i += 4096) {
		seen.byte_sum += window->bytes[i];
	}
	return 0;
}

static void check(struct pinion_runtime *runtime, uint32_t order)
{
	static const struct pinion_scan_ops ops = {
		.open = instant_call_direct,
		.window = look,
		.report = instant_report,
	};
	uint64_t byte_sum = 0;

	for (uint32_t i = 0; i < WINDOWS; i++) {
		byte_sum += (uint64_t)(i % 251) * (INSTANT_WINDOW_BYTES / 4096);
	}
	memset(&seen, 0, sizeof(seen));
	instant_scan(runtime, &ops, order);
	expect_number("windows", WINDOWS, seen.windows);
	expect_number("sum of bytes", (long long)byte_sum, (long long)seen.byte_sum);
	expect_number(order == PINION_SCAN_IN_ORDER ? "ahead in order" : "tracks in parallel", 1,
		seen.ahead_max);
}

int main(void)
{
	struct pinion_runtime *runtime;

	instant_require();
	scratch_enter("instant_reads_stay_few");
	if (!instant_file(WINDOWS)) {
		scratch_leave();
		printf("skipped: the file system at TMPDIR cannot read without waiting\n");
		return EXPECT_SKIPPED;
	}
	runtime = instant_runtime(1);
	check(runtime, PINION_SCAN_IN_ORDER);
	check(runtime, PINION_SCAN_PARALLEL);
	pinion_runtime_destroy(runtime);
	scratch_leave();
	return expect_status();
}
