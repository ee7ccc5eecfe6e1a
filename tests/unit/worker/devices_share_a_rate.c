/* SPDX-License-Identifier: MIT */
/*
 * Goal: under a rate of the runtime the devices of a worker take turns, however
 * much waits for one of them; a transfer of the high lane passes those of other
 * devices, too, and a row of 8 is the most that does. G2.
 * Method: three open files of one file, each with a device number of its own.
 * Each write appends its number, so the file has the order in which they start;
 * a task submits them all. The rate lets one start after the other.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <fcntl.h>
#include <pinion/limit.h>

enum {
	DEVICES = 3,
	EACH = 12,
	URGENT = 20,
	ROW = 8,
	/* What starts before all are submitted: 10 ms of the rate, and one. */
	EARLY = 4,
	BLOCK = 4096,
	RATE = 1 << 20,
	ALL_MAX = DEVICES * EACH + URGENT,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_file files[DEVICES];
static struct requests_one ones[ALL_MAX];
static uint8_t blocks[ALL_MAX][BLOCK];
static uint8_t started[ALL_MAX];
static uint32_t count;

static void submit(uint32_t device, uint32_t times, uint32_t flags)
{
	for (uint32_t i = 0; i < times; i++) {
		struct requests_one *one = &ones[count];

		blocks[count][0] = (uint8_t)(flags != 0 ? DEVICES : device);
		requests_begin_transfer(
			one, PINION_OP_WRITE, &files[device], blocks[count], 0, BLOCK);
		one->request.task.flags = flags;
		count++;
		expect_number("submit", 0, pinion_request_submit(runtime, &one->request));
	}
}

static void run(void (*prepare)(struct tasks_hold *hold))
{
	struct tasks_hold hold = {.prepare = prepare};
	static uint8_t block[BLOCK];

	expect_ready("empty", ftruncate(files[0].fd, 0) == 0);
	count = 0;
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	for (uint32_t i = 0; i < count; i++) {
		expect_number("written", BLOCK, requests_await(&ones[i]));
	}
	for (uint32_t i = 0; i < count; i++) {
		expect_number("read", BLOCK,
			(long long)pread(files[0].fd, block, BLOCK, (off_t)i * BLOCK));
		started[i] = block[0];
	}
}

/* How many of `kind` are among the first. */
static uint32_t among(uint32_t first, uint8_t kind)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < first; i++) {
		found += started[i] == kind;
	}
	return found;
}

static void submit_all(struct tasks_hold *hold)
{
	(void)hold;
	for (uint32_t i = 0; i < DEVICES; i++) {
		submit(i, EACH, 0);
	}
}

static void check_turns(void)
{
	run(submit_all);
	for (uint32_t first = EARLY; first <= count; first += DEVICES) {
		uint32_t turns = (first - EARLY) / DEVICES;

		for (uint8_t device = 0; device < DEVICES; device++) {
			expect_true("each has had its turns",
				among(first, device) >= turns || among(first, device) == EACH);
		}
	}
}

static void submit_urgent_last(struct tasks_hold *hold)
{
	submit_all(hold);
	submit(DEVICES - 1, 1, PINION_TASK_HIGH);
}

static void submit_urgent_first(struct tasks_hold *hold)
{
	(void)hold;
	submit(0, URGENT, PINION_TASK_HIGH);
	submit(1, EACH, 0);
}

static void check_urgent(void)
{
	run(submit_urgent_last);
	/* On each device one may have started, and one have paid. */
	expect_number("it passes all that wait", 1, among(2 * DEVICES + 1, DEVICES));
	run(submit_urgent_first);
	expect_true("a row, and one of the others", among(EARLY + ROW + 1, 1) >= 1);
	expect_true("no more than one in a row", among(EARLY + 2 * (ROW + 1), 1) <= 3 + EARLY);
	expect_number("all", EACH, among(count, 1));
}

static void check_level(uint32_t io_level)
{
	struct pinion_config config;
	struct pinion_limits limits;

	runtimes_config(&config, 1, io_level);
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	pinion_limits_init(&limits);
	limits.bytes_per_second = RATE;
	limits.depth_count = 1;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	check_turns();
	check_urgent();
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("devices_share_a_rate");
	for (uint32_t i = 0; i < DEVICES; i++) {
		files[i] = runtimes_plain_file(
			open("order", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
		expect_ready("order", files[i].fd >= 0);
		files[i].device = 1000 + i;
	}
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	scratch_leave();
	return expect_status();
}
