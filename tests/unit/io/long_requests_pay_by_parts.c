/* SPDX-License-Identifier: MIT */
/*
 * Goal: a rate is paid by a long request part after part, parts short enough
 * for the rate, so that others go on beside a request whose price is days; it
 * gets nothing before its turn, and while it waits for that it can be cancelled
 * and come too late. A request that has had a part is in its device's figures,
 * however it ends. With rings, without, and with those that others may reap.
 * G2.
 * Method: /dev/null takes any number of bytes without reading them. A rate of a
 * byte in a second holds back requests that must wait; timed ones have a least
 * time alone, which holds however slow the machine.
 */
#include "runtime/io/request.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/limit.h>

#define PART ((uint64_t)PIN_REQUEST_PART_BYTES)
/* At a GiB in a second: 18 hours. */
#define ENDLESS_BYTES (UINT64_C(1) << 46)
#define RATE (UINT64_C(1) << 30)
/* A power of two up to a 50th of it for each of two workers, and once more. */
#define RATE_PART (UINT64_C(4) << 20)
/*
 * The place of the bytes that are never read, and room for as many as go out
 * until a paused machine gets to the cancel. AddressSanitizer checks the rights
 * of memory passed to the C library, and keeps them from 2 GiB on;
 * ThreadSanitizer knows of no memory at high addresses.
 */
#ifdef __SANITIZE_ADDRESS__
#define SOMEWHERE (UINT64_C(1) << 45)
#else
#define SOMEWHERE UINT64_C(4096)
#endif

enum {
	SHORT_BYTES = 4096,
	SHORTS = 32,
	PARTS = 12,
	LIMIT_SECONDS = 120,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;

static void limit_both(uint64_t bytes_per_second, uint64_t requests_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.bytes_per_second = bytes_per_second;
	limits.requests_per_second = requests_per_second;
	/*
	 * A limit that a user has set is exact: workers keep nothing of it in
	 * advance.
	 */
	limits.depth_count = SHORTS;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

static void limit(uint64_t bytes_per_second)
{
	limit_both(bytes_per_second, 0);
}

static struct pinion_device_stats figures(void)
{
	struct pinion_device_stats figures;

	expect_number("figures", 0, pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)));
	return figures;
}

/* No byte is looked at. */
static void begin(struct requests_one *one, uint64_t length_bytes)
{
	requests_begin_transfer(
		one, PINION_OP_WRITE, &file, (uint8_t *)(uintptr_t)SOMEWHERE, 0, length_bytes);
}

static void check_others_go_on(void)
{
	struct requests_one endless;
	struct requests_one other;
	struct pinion_device_stats device;

	limit(RATE);
	begin(&endless, ENDLESS_BYTES);
	expect_number("submit", 0, pinion_request_submit(runtime, &endless.request));
	for (uint32_t i = 0; i < SHORTS; i++) {
		begin(&other, SHORT_BYTES);
		expect_number("a short one beside it", SHORT_BYTES, requests_do(runtime, &other));
	}
	expect_number("cancel", 0, pinion_request_cancel(runtime, &endless.request));
	expect_number("cancelled", -ECANCELED, requests_await(&endless));
	expect_number("whole parts", 0, (long long)(endless.request.done_bytes % RATE_PART));
	/* At whatever point it was cancelled; none where the machine paused. */
	device = figures();
	if (endless.request.done_bytes > 0) {
		expect_number("requests", SHORTS + 1, (long long)device.requests);
		expect_number("bytes", (long long)(ENDLESS_BYTES + SHORTS * SHORT_BYTES),
			(long long)device.bytes);
	}
}

static void check_time(void)
{
	/*
	 * The amount that may go out besides: by each of two workers, and once
	 * more.
	 */
	uint64_t least_ns = (PARTS - 3) * PART * UINT64_C(1000000000) / RATE - 10 * 1000 * 1000;
	struct requests_one one;
	uint64_t began_ns = pinion_clock_now_ns();
	uint64_t took_ns;

	limit(RATE);
	begin(&one, PARTS * PART);
	expect_number("written", (long long)(PARTS * PART), requests_do(runtime, &one));
	expect_number("done", (long long)(PARTS * PART), (long long)one.request.done_bytes);
	took_ns = pinion_clock_now_ns() - began_ns;
	expect_true("as long as the rate says", took_ns >= least_ns);
}

/* The first part is paid for at once, the second would be in an hour. */
static void check_held_back(bool has_deadline)
{
	uint64_t throttled = figures().throttled;
	struct requests_one one;

	/* Nothing is reserved when the rate comes. */
	limit(0);
	limit(1);
	begin(&one, 2 * PART);
	if (has_deadline) {
		one.request.deadline_ns = pinion_clock_now_ns() + 50 * 1000 * 1000;
		expect_number("too late", -ETIME, requests_do(runtime, &one));
		expect_true("a part, or none where the machine paused",
			one.request.done_bytes == PIN_REQUEST_PART_BYTES_MIN ||
				one.request.done_bytes == 0);
		return;
	}
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	/* Blocked between its parts, it leaves the device to others. */
	while (figures().throttled == throttled || figures().taken_bytes != 0) {
		sched_yield();
	}
	limit(0);
	expect_number("in the end", (long long)(2 * PART), requests_await(&one));
}

/* A second request of that second would wait, and be counted. */
static void check_counts_once(void)
{
	struct requests_one one;
	uint64_t throttled;

	limit(0);
	limit_both(UINT64_C(1) << 50, 1);
	throttled = figures().throttled;
	begin(&one, PARTS * PART);
	expect_number("written", (long long)(PARTS * PART), requests_do(runtime, &one));
	expect_number(
		"none of its parts waits", (long long)throttled, (long long)figures().throttled);
	limit(0);
}

static void check_level(uint32_t io_level, bool shares_rings)
{
	struct pinion_config config;

	runtimes_config(&config, 2, io_level);
	runtimes_tuning.ring_sharing = shares_rings ? PINION_RING_SHARED : PINION_RING_OWN;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	check_others_go_on();
	check_time();
	check_held_back(false);
	check_held_back(true);
	check_counts_once();
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	expect_ready("/dev/null", file.fd >= 0);
	check_level(PINION_IO_FALLBACK, false);
	check_level(PINION_IO_AUTO, false);
	check_level(PINION_IO_AUTO, true);
	close(file.fd);
	return expect_status();
}
