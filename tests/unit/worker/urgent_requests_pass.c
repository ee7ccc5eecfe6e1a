/* SPDX-License-Identifier: MIT */
/*
 * Goal: a transfer of the high lane passes those that wait for their device, 8
 * in a row at most, whether it had to wait itself or starts at once; those that
 * it passes keep their order, and a cancel leaves the others as they were: when
 * the first of them goes, the next starts at once if it may. G2.
 * Method: one request is all the depth, and each appends its number to a
 * file, so the file has the order in which they start (their tasks may run in
 * another: urgent ones pass there, too); a task that submits them all lets none
 * end before. Then two that wait in different ways: a read of a pipe leaves
 * room for a small request alone.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include "runtime/task/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/limit.h>

enum {
	OTHERS = 20,
	URGENT = 20,
	ALL = OTHERS + URGENT,
	ROW = 8,
	PAGE = 4096,
	/* More than a turn has. */
	TASKS_MAX = 1000,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_file pipe_file;
static uint8_t memory[2 * PAGE];
static struct pinion_file order_file; /* appends */
static uint8_t numbers[ALL];

static void limit(uint32_t depth_count, uint64_t depth_bytes)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = depth_count;
	limits.depth_bytes = depth_bytes;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

/* ---- all of them wait ---- */

static struct requests_one ones[ALL]; /* the urgent ones are the last */
static uint32_t cancelled_index;

static void submit_all(struct tasks_hold *hold)
{
	(void)hold;
	for (uint32_t i = 0; i < ALL; i++) {
		numbers[i] = (uint8_t)i;
		requests_begin_transfer(
			&ones[i], PINION_OP_WRITE, &order_file, &numbers[i], 0, sizeof(numbers[i]));
		ones[i].request.task.flags = i >= OTHERS ? (uint32_t)PINION_TASK_HIGH : 0;
		expect_number("submit", 0, pinion_request_submit(runtime, &ones[i].request));
	}
	if (cancelled_index < ALL) {
		expect_number("cancel", 0,
			pinion_request_cancel(runtime, &ones[cancelled_index].request));
	}
}

static void check_rows(uint32_t cancelled)
{
	uint8_t expected[ALL];
	uint8_t started[ALL + 1];
	uint32_t count = 0;
	uint32_t other = 0;
	uint32_t urgent = OTHERS;
	struct tasks_hold hold = {.prepare = submit_all};

	limit(1, 0);
	expect_ready("order", ftruncate(order_file.fd, 0) == 0);
	cancelled_index = cancelled;
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	for (uint32_t i = 0; i < ALL; i++) {
		expect_number("result", i == cancelled ? -ECANCELED : 1,
			(long long)requests_await(&ones[i]));
	}
	/* The first at once, before others wait. */
	expected[count++] = (uint8_t)other++;
	while (other < OTHERS || urgent < ALL) {
		for (uint32_t i = 0; i < ROW && urgent < ALL; urgent++) {
			if (urgent != cancelled) {
				expected[count++] = (uint8_t)urgent;
				i++;
			}
		}
		other += other == cancelled ? 1 : 0;
		if (other < OTHERS) {
			expected[count++] = (uint8_t)other++;
		}
	}
	expect_number(
		"started", count, (long long)pread(order_file.fd, started, sizeof(started), 0));
	for (uint32_t i = 0; i < count; i++) {
		expect_number("order", expected[i], started[i]);
	}
}

/* ---- some start at once ---- */

static struct pinion_request *begin_write(
	struct requests_one *one, uint64_t length_bytes, bool is_urgent)
{
	struct pinion_request *request =
		requests_begin_transfer(one, PINION_OP_WRITE, &file, memory, 0, length_bytes);

	request->task.flags = is_urgent ? (uint32_t)PINION_TASK_HIGH : 0;
	return request;
}

static uint32_t queued;

static void look_at_queue(struct tasks_hold *hold)
{
	(void)hold;
	queued = pin_worker_current()->device_queue.queued;
}

/* Requests from outside may come to the worker later than a task does. */
static void await_queued(uint32_t expected)
{
	struct tasks_hold hold = {.prepare = look_at_queue};

	do {
		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
	} while (queued != expected);
}

/*
 * The read has two of three pages, of which the other needs two as well: a
 * small one fits.
 */
static void check_starts(void)
{
	struct requests_one read;
	struct requests_one other;
	struct requests_one small[ROW + 1];
	int ends[2];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	pipe_file = runtimes_plain_file(ends[0]);
	pipe_file.device = file.device;
	limit(ALL, 3 * PAGE);
	requests_begin_transfer(&read, PINION_OP_READ, &pipe_file, memory, 0, 2 * PAGE);
	/* From outside, in order. */
	expect_number("read", 0, pinion_request_submit(runtime, &read.request));
	expect_number(
		"other", 0, pinion_request_submit(runtime, begin_write(&other, 2 * PAGE, false)));
	await_queued(1);
	for (uint32_t i = 0; i < ROW; i++) {
		begin_write(&small[i], PAGE, true);
		expect_number("passes", PAGE, (long long)requests_do(runtime, &small[i]));
		expect_number("the other waits", 0, pin_load_acquire_u32(&other.entered));
	}
	expect_number(
		"last", 0, pinion_request_submit(runtime, begin_write(&small[ROW], PAGE, true)));
	await_queued(2);
	/* The read ends short, and would go on: so the pipe ends. */
	close(ends[1]);
	expect_number("end of the pipe", 0, (long long)requests_await(&read));
	expect_number("its turn", 2 * PAGE, (long long)requests_await(&other));
	expect_number("and then", PAGE, (long long)requests_await(&small[ROW]));
	close(ends[0]);
}

/*
 * The read has two of three pages. The next needs two as well, so it keeps back
 * a small one that would fit, until it is cancelled.
 */
static void check_first_leaves(void)
{
	struct requests_one read;
	struct requests_one first;
	struct requests_one small;
	int ends[2];

	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	pipe_file = runtimes_plain_file(ends[0]);
	pipe_file.device = file.device;
	limit(ALL, 3 * PAGE);
	requests_begin_transfer(&read, PINION_OP_READ, &pipe_file, memory, 0, 2 * PAGE);
	expect_number("read", 0, pinion_request_submit(runtime, &read.request));
	expect_number(
		"first", 0, pinion_request_submit(runtime, begin_write(&first, 2 * PAGE, false)));
	expect_number("small", 0, pinion_request_submit(runtime, begin_write(&small, PAGE, false)));
	await_queued(2);
	expect_number("cancel", 0, pinion_request_cancel(runtime, &first.request));
	expect_number("it goes", -ECANCELED, (long long)requests_await(&first));
	for (int i = 0; i < TASKS_MAX && pin_load_acquire_u32(&small.entered) == 0; i++) {
		struct tasks_hold hold = {0};

		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
	}
	expect_number("the next one starts", 1, pin_load_acquire_u32(&small.entered));
	close(ends[1]);
	expect_number("end of the pipe", 0, (long long)requests_await(&read));
	expect_number("written", PAGE, (long long)requests_await(&small));
	close(ends[0]);
}

static void check_level(uint32_t io_level)
{
	struct pinion_runtime_info info;

	runtime = runtimes_start(1, io_level);
	check_rows(ALL);
	check_rows(OTHERS / 2);
	check_rows(OTHERS + URGENT / 2);
	pinion_runtime_get_info(runtime, &info, sizeof(info));
	if (info.uses_ring != 0) {
		check_starts();
		check_first_leaves();
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/null", O_RDWR | O_CLOEXEC));
	expect_ready("/dev/null", file.fd >= 0);
	scratch_enter("urgent_requests_pass");
	order_file =
		runtimes_plain_file(open("order", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
	expect_ready("order", order_file.fd >= 0);
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	close(order_file.fd);
	close(file.fd);
	scratch_leave();
	return expect_status();
}
