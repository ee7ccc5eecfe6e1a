/* SPDX-License-Identifier: MIT */
/*
 * Goal: where reads are over when they are submitted, as those of a device in
 * memory are, a scan has a few windows of a worker under way, not as many as
 * the device may be given: more would only leave the processor's cache. All
 * bytes come. G6.
 * Method: white box: a file in the page cache that is said to be read past it,
 * so that its reads go to the ring and end as they are submitted; how far reads
 * have run ahead, in order, and how many tracks work, in parallel, at each
 * window but the first few.
 */
#include "runtime/scan/slot.h"
#include "tests/support/rings.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"

#include <string.h>
#include <sys/uio.h>

enum {
	WINDOW = 128 << 10,
	WINDOWS = 256,
	LEARNING = 128, /* windows until it is known, also by a slow build */
	AHEAD = 2,	/* in order */
	TRACKS = 4,	/* in parallel, of one worker */
};

static struct {
	uint32_t windows;
	uint32_t ahead_max;
	uint64_t byte_sum;
} seen;

static int call_direct(void *arg, struct pinion_scan_file *file)
{
	(void)arg;
	file->file.is_direct = true;
	return 0;
}

static int look(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	const struct pin_reader *reader = &PIN_CONTAINER_OF(file, struct pin_slot, file)->reader;
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

static void ignore_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	expect_number("outcome", PINION_SCAN_DONE, outcome);
	expect_number("error", 0, error);
}

static void check(struct pinion_runtime *runtime, uint32_t order, uint64_t byte_sum)
{
	static const struct pinion_scan_ops ops = {
		.open = call_direct,
		.window = look,
		.report = ignore_report,
	};
	uint32_t ahead_limit = order == PINION_SCAN_IN_ORDER ? AHEAD : TRACKS;
	struct pinion_scan_config config;
	struct pinion_scan *scan = NULL;

	memset(&seen, 0, sizeof(seen));
	pinion_scan_config_init(&config);
	config.order = order;
	config.direct = PINION_DIRECT_NEVER;
	config.window_bytes = WINDOW;
	expect_ready("scan", pinion_scan_create(runtime, &config, &ops, NULL, &scan) == 0);
	expect_number("add", 0, pinion_scan_add_file(scan, "file"));
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	pinion_scan_destroy(scan);
	expect_number("windows", WINDOWS, seen.windows);
	expect_number("sum of bytes", (long long)byte_sum, (long long)seen.byte_sum);
	if (seen.ahead_max == 0 || seen.ahead_max > ahead_limit) {
		printf("order %u: expected 1 to %u under way, got %u\n", order, ahead_limit,
			seen.ahead_max);
		expect_failure_count++;
	}
}

/* tmpfs promises nothing, so there reads go to helper threads. */
static bool is_over_at_once(int fd)
{
	uint8_t byte;
	struct iovec vector = {&byte, 1};

	return preadv2(fd, &vector, 1, 0, RWF_NOWAIT) == 1;
}

int main(void)
{
	static uint8_t bytes[WINDOW];
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;
	uint64_t byte_sum = 0;
	int fd;

	rings_require();
	scratch_enter("instant_reads_stay_few");
	fd = open("file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	for (uint32_t i = 0; i < WINDOWS; i++) {
		memset(bytes, (int)(i % 251), sizeof(bytes));
		byte_sum += (uint64_t)(i % 251) * (WINDOW / 4096);
		expect_ready("write", write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes));
	}
	if (!is_over_at_once(fd)) {
		close(fd);
		scratch_leave();
		printf("skipped: the file system at TMPDIR cannot read without waiting\n");
		return 77;
	}
	runtimes_config(&config, 1, PINION_IO_AUTO);
	config.buffer_bytes = WINDOW;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	check(runtime, PINION_SCAN_IN_ORDER, byte_sum);
	check(runtime, PINION_SCAN_PARALLEL, byte_sum);
	pinion_runtime_destroy(runtime);
	close(fd);
	scratch_leave();
	return expect_status();
}
