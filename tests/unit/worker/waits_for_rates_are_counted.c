/* SPDX-License-Identifier: MIT */
/*
 * Goal: parts of a request suit the lower one of the runtime's rate and its
 * device's, also where there is but one, and are whole blocks of the file. The
 * time that a device's requests wait for a rate is counted, from the moment of
 * the first to that when it may start or has gone, and each such time counts
 * once; afterwards no timer of theirs is left. What a rate holds back keeps no
 * credit of the device.
 * Method: /dev/null takes any number of bytes without reading them. Requests at
 * a byte in a second wait until the test ends that; it notes instants around
 * each wait, between which the counted time has to be.
 */
#include "runtime/io/request.h"
#include "runtime/task/entry.h"
#include "runtime/worker/state.h"
#include "tests/support/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/limit.h>
#include <pinion/timer.h>

enum {
	WORKERS = 2,
	SHORT_BYTES = 4096,
	/* More than some turns have. */
	TASKS_MAX = 1000,
	LIMIT_SECONDS = 120,
	WAIT_NS = 3000000,
};

/* The rate whose parts have so many bytes: all workers and one more, a 50th. */
#define RATE_OF(part_bytes) (UINT64_C(50) * (WORKERS + 1) * (part_bytes))

static struct pinion_runtime *runtime;
static struct pinion_file file;
static uint8_t memory[32768] __attribute__((aligned(32768)));

static struct pinion_limits of_bytes(uint64_t bytes_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.bytes_per_second = bytes_per_second;
	/* It is exact: workers keep nothing of it in advance. */
	limits.depth_count = 8;
	return limits;
}

static void set(uint64_t common, uint64_t own)
{
	struct pinion_limits limits = of_bytes(common);

	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	limits = of_bytes(own);
	expect_number("its own", 0, pinion_device_set_limits(runtime, file.device, &limits));
}

static struct pinion_device_stats stats(void)
{
	struct pinion_device_stats stats;

	expect_number("stats", 0, pinion_device_get_stats(runtime, 0, &stats, sizeof(stats)));
	return stats;
}

static void begin(struct requests_one *one, uint64_t length_bytes)
{
	requests_begin_transfer(one, PINION_OP_WRITE, &file, memory, 0, length_bytes);
}

/* ---- parts ---- */

static void check_part(const char *what, uint64_t common, uint64_t own, uint64_t part_bytes)
{
	uint64_t bytes = part_bytes < sizeof(memory) ? part_bytes : sizeof(memory);
	struct requests_one one;

	set(0, 0);
	set(common, own);
	begin(&one, bytes);
	expect_number(what, (long long)bytes, requests_do(runtime, &one));
	expect_number(what, (long long)part_bytes,
		PIN_REQUEST_PART_BYTES >> pin_request_of(&one.request)->cost.part_cut);
}

static void check_parts(void)
{
	const uint64_t low = RATE_OF(64 << 10);
	const uint64_t high = RATE_OF(256 << 10);

	check_part("no rate", 0, 0, PIN_REQUEST_PART_BYTES);
	check_part("the runtime's", low, 0, 64 << 10);
	check_part("the device's", 0, low, 64 << 10);
	check_part("the device's is lower", high, low, 64 << 10);
	check_part("the runtime's is lower", low, high, 64 << 10);
	check_part("both are the same", high, high, 256 << 10);
	check_part("a little less", 0, high - RATE_OF(1), 128 << 10);
	check_part("the least", 0, 1, PIN_REQUEST_PART_BYTES_MIN);
	file.offset_align_bytes = 16384;
	check_part("whole blocks of offsets", 0, 1, 16384);
	file.memory_align_bytes = 32768;
	check_part("and of memory", 1, 0, 32768);
	file.offset_align_bytes = 1;
	file.memory_align_bytes = 1;
}

/* ---- waits ---- */

enum end { LIFTED, RAISED, CANCELLED };

static void pause_for(uint64_t ns)
{
	uint64_t until_ns = pinion_clock_now_ns() + ns;

	while (pinion_clock_now_ns() < until_ns) {
		sched_yield();
	}
}

/*
 * The first part begins at once. The instants around the wait's begin and its
 * end bound its time from both sides.
 */
static void check_wait(const char *what, bool is_own, enum end end)
{
	struct requests_one one;
	struct pinion_device_stats before;
	struct pinion_device_stats after;
	uint64_t begun_ns;
	uint64_t waits_ns;
	uint64_t ends_ns;

	set(0, 0);
	set(is_own ? 0 : 1, is_own ? 1 : 0);
	before = stats();
	begin(&one, 2 * SHORT_BYTES);
	begun_ns = pinion_clock_now_ns();
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	while (stats().throttled == before.throttled) {
		sched_yield();
	}
	waits_ns = pinion_clock_now_ns();
	pause_for(WAIT_NS);
	ends_ns = pinion_clock_now_ns();
	if (end == CANCELLED) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, &one.request));
	} else {
		set(end == RAISED && !is_own ? UINT64_C(1) << 50 : 0,
			end == RAISED && is_own ? UINT64_C(1) << 50 : 0);
	}
	expect_number(what, end == CANCELLED ? -ECANCELED : 2 * SHORT_BYTES, requests_await(&one));
	after = stats();
	expect_number(what, (long long)before.throttled + 1, (long long)after.throttled);
	expect_true(what, after.throttled_ns - before.throttled_ns >= ends_ns - waits_ns);
	expect_true(
		what, after.throttled_ns - before.throttled_ns <= pinion_clock_now_ns() - begun_ns);
	/* What does not wait adds nothing. */
	set(0, 0);
	begin(&one, SHORT_BYTES);
	expect_number(what, SHORT_BYTES, requests_do(runtime, &one));
	expect_number(what, (long long)after.throttled_ns, (long long)stats().throttled_ns);
	for (uint32_t i = 0; i < WORKERS; i++) {
		const struct pin_device_queue *queue = &runtime->shared.workers[i].device_queue;

		expect_number("no timer is left", 0, pin_timer_is_armed(&queue->accounts[0].timer));
		expect_number("no wait is", 0, (long long)queue->accounts[0].blocked_ns);
	}
}

/* ---- credit ---- */

static struct requests_one pair[2];

static void submit_pair(struct tasks_hold *hold)
{
	(void)hold;
	for (int i = 0; i < 2; i++) {
		begin(&pair[i], SHORT_BYTES);
		expect_number("submit", 0, pinion_request_submit(runtime, &pair[i].request));
	}
}

/*
 * The second is queued when the first ends, whose credit the worker keeps for
 * it, until it finds that a rate holds it back.
 */
static void check_credit(void)
{
	struct tasks_hold hold = {.prepare = submit_pair};

	set(0, 0);
	set(1, 0);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("both", 1, (long long)stats().taken_count);
	tasks_hold_end(&hold);
	expect_number("the first", SHORT_BYTES, requests_await(&pair[0]));
	/* Until its worker has looked at its queue: a few turns. */
	hold.prepare = NULL;
	for (int i = 0; i < TASKS_MAX && stats().taken_count != 0; i++) {
		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
	}
	expect_number("the second waits", 0, pin_load_acquire_u32(&pair[1].entered));
	expect_number("without credit", 0, (long long)stats().taken_count);
	set(0, 0);
	expect_number("the second", SHORT_BYTES, requests_await(&pair[1]));
}

static void check_level(uint32_t io_level)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, io_level);
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	check_parts();
	for (int is_own = 0; is_own <= 1; is_own++) {
		check_wait("lifted", is_own != 0, LIFTED);
		check_wait("raised", is_own != 0, RAISED);
		check_wait("cancelled", is_own != 0, CANCELLED);
	}
	check_credit();
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	expect_ready("/dev/null", file.fd >= 0);
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	close(file.fd);
	return expect_status();
}
