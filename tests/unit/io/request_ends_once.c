/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request that is cancelled, alone, with all of its file or with all,
 * or whose deadline comes, ends once and as what; from any thread, with and
 * without a ring; a batch starts whole or not at all, to which timeouts do not
 * count and requests that wait for their device do; each error code of
 * pinion/request.h is what its cause gives. G2, G4.
 * Hazard that others met: a cancelled request whose buffer is free too soon.
 * Method: reads of a pipe without a writer, timeouts that never come, and a
 * worker that is held while its inbox fills.
 */
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include "runtime/task/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/limit.h>
#include <sys/wait.h>

enum {
	COUNT = 16,
	FEW = 5,
	LIMIT_SECONDS = 60,
	RING_ENTRIES = 8,
	MANY = 200,
};

static struct pinion_runtime *runtime;
/* Neighbours: a cancel of one file must not reach the other. */
static struct pinion_file files[2];
static struct pinion_file *const other_file = &files[0];
static struct pinion_file *const pipe_file = &files[1];
static struct requests_one ones[MANY];
static uint8_t bytes[MANY];

static struct pinion_request *pipe_read(uint32_t index, struct pinion_file *file)
{
	struct pinion_request *request = requests_begin(&ones[index], PINION_OP_READ);

	request->file = file;
	request->bytes = &bytes[index];
	request->length_bytes = 1;
	return request;
}

static struct pinion_request *never(uint32_t index, struct pinion_file *file)
{
	struct pinion_request *request = requests_begin(&ones[index], PINION_OP_TIMEOUT);

	request->file = file;
	request->deadline_ns = UINT64_MAX;
	return request;
}

static void submit(struct pinion_request *request)
{
	expect_number("submit", 0, pinion_request_submit(runtime, request));
}

/* What never ends by itself: the fallback would wait in a read of a pipe. */
static struct pinion_request *pending(bool is_ring, uint32_t index, struct pinion_file *file)
{
	return is_ring && index % 2 == 0 ? pipe_read(index, file) : never(index, file);
}

static void check_one(bool is_ring)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		submit(pending(is_ring, i, pipe_file));
		expect_number(
			"submit again", -EBUSY, pinion_request_submit(runtime, &ones[i].request));
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, &ones[i].request));
		expect_number("result", -ECANCELED, requests_await(&ones[i]));
		expect_number("nothing was done", 0, (long long)ones[i].request.done_bytes);
		expect_number("cancel it once more", -EALREADY,
			pinion_request_cancel(runtime, &ones[i].request));
	}
}

static int64_t cancel_all_of(struct pinion_file *file)
{
	struct requests_one all;

	requests_begin(&all, PINION_OP_CANCEL)->file = file;
	return requests_do(runtime, &all);
}

static void check_many(bool is_ring)
{
	for (uint32_t i = 0; i < COUNT; i++) {
		submit(pending(is_ring, i, i < FEW ? other_file : pipe_file));
	}
	expect_number("cancel of a file", FEW, cancel_all_of(other_file));
	for (uint32_t i = 0; i < FEW; i++) {
		expect_number("result", -ECANCELED, requests_await(&ones[i]));
	}
	for (uint32_t i = FEW; i < COUNT; i++) {
		expect_number("the others go on", 0, pin_load_acquire_u32(&ones[i].entered));
	}
	expect_number("cancel of all", COUNT - FEW, cancel_all_of(NULL));
	for (uint32_t i = FEW; i < COUNT; i++) {
		expect_number("result", -ECANCELED, requests_await(&ones[i]));
	}
	expect_number("cancel of nothing", 0, cancel_all_of(NULL));
}

static void check_deadlines(bool is_ring)
{
	uint64_t deadline_ns;
	struct pinion_request *request;

	for (uint32_t i = 0; i < COUNT; i++) {
		request = pending(is_ring, i, pipe_file);
		deadline_ns = pinion_clock_now_ns() + i % 4 * 300000;
		request->deadline_ns = deadline_ns;
		submit(request);
		expect_number("result", -ETIME, requests_await(&ones[i]));
		expect_true("not early", pinion_clock_now_ns() >= deadline_ns);
	}
	request = requests_begin(&ones[0], PINION_OP_NOP);
	request->deadline_ns = pinion_clock_now_ns() + UINT64_C(3600) * 1000000000;
	expect_number("done before it", 0, requests_do(runtime, &ones[0]));
	request = never(0, pipe_file);
	request->op = PINION_OP_NOP;
	request->deadline_ns = 1;
	expect_number("over before it began", -ETIME, requests_do(runtime, &ones[0]));
}

/* ---- on a worker that is held ---- */

static void check_posted(void)
{
	struct tasks_hold holds[2];

	for (uint32_t i = 0; i < 2; i++) {
		holds[i].prepare = NULL;
		tasks_hold_begin(&holds[i], runtime, i);
	}
	for (uint32_t i = 0; i < FEW; i++) {
		requests_begin(&ones[i], PINION_OP_NOP);
		submit(&ones[i].request);
		expect_number(
			"posted twice", -EBUSY, pinion_request_submit(runtime, &ones[i].request));
	}
	expect_number("cancel on its way", 0, pinion_request_cancel(runtime, &ones[1].request));
	expect_number("once more", -EALREADY, pinion_request_cancel(runtime, &ones[1].request));
	for (uint32_t i = 0; i < 2; i++) {
		tasks_hold_end(&holds[i]);
	}
	for (uint32_t i = 0; i < FEW; i++) {
		expect_number("result", i == 1 ? -ECANCELED : 0, requests_await(&ones[i]));
	}
}

/* More than the ring holds: from outside they wait, in order; here EAGAIN. */
static struct pinion_request *batch[MANY];
static int full_rc;
static int full_batch_rc;
static int twice_rc;
static int cancel_rc;
static uint32_t filled_count;

static void fill(struct tasks_hold *hold)
{
	int rc = 0;

	(void)hold;
	for (uint32_t i = 0; i < MANY; i++) {
		requests_begin(&ones[i], PINION_OP_NOP);
		batch[i] = &ones[i].request;
	}
	full_batch_rc = pinion_request_submit_batch(runtime, batch, MANY);
	batch[FEW - 1] = batch[1];
	twice_rc = pinion_request_submit_batch(runtime, batch, FEW);
	batch[FEW - 1] = &ones[FEW - 1].request;
	filled_count = 0;
	for (uint32_t i = 0; i < MANY && rc == 0; i++) {
		rc = pinion_request_submit(runtime, batch[i]);
		filled_count += rc == 0 ? 1 : 0;
	}
	full_rc = rc;
	/* A cancel takes no room. */
	requests_begin(&ones[filled_count], PINION_OP_CANCEL);
	cancel_rc = pinion_request_submit(runtime, batch[filled_count]);
}

static void check_full(void)
{
	struct tasks_hold hold = {.prepare = fill};

	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	expect_number("a batch that is too large", -EAGAIN, full_batch_rc);
	expect_number("one of them twice", -EBUSY, twice_rc);
	expect_number("the ring is full", -EAGAIN, full_rc);
	expect_true("of more than one", filled_count > 1 && filled_count < MANY);
	expect_number("a cancel all the same", 0, cancel_rc);
	for (uint32_t i = 0; i < filled_count; i++) {
		int64_t result = requests_await(&ones[i]);

		expect_true("done or cancelled", result == 0 || result == -ECANCELED);
	}
	expect_true("some were found", requests_await(&ones[filled_count]) >= 0);
	for (uint32_t i = filled_count + 1; i < MANY; i++) {
		expect_number("not touched", 0, pin_load_acquire_u32(&ones[i].entered));
	}
}

/* ---- what takes room ---- */

static uint32_t free_count(void)
{
	const struct pin_ring *ring = &pin_worker_current()->ring;

	return ring->credit - ring->in_flight - ring->cancelling;
}

static int submit_nops(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		requests_begin(&ones[i], PINION_OP_NOP);
		batch[i] = &ones[i].request;
	}
	return pinion_request_submit_batch(runtime, &batch[first], count);
}

static void fill_beside_timeouts(struct tasks_hold *hold)
{
	(void)hold;
	filled_count = FEW + free_count();
	for (uint32_t i = 0; i < FEW; i++) {
		batch[i] = never(i, other_file);
	}
	for (uint32_t i = FEW; i < filled_count; i++) {
		requests_begin(&ones[i], PINION_OP_NOP);
		batch[i] = &ones[i].request;
	}
	full_batch_rc = pinion_request_submit_batch(runtime, batch, filled_count);
	full_rc = submit_nops(filled_count, 1);
}

static void check_timeouts_take_no_room(void)
{
	struct tasks_hold hold = {.prepare = fill_beside_timeouts};

	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	expect_number("as many as the ring holds, and timeouts", 0, full_batch_rc);
	expect_number("not one more", -EAGAIN, full_rc);
	for (uint32_t i = FEW; i < filled_count; i++) {
		expect_number("result", 0, requests_await(&ones[i]));
	}
	for (uint32_t i = 0; i < FEW; i++) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, &ones[i].request));
		expect_number("result", -ECANCELED, requests_await(&ones[i]));
	}
}

static struct pinion_file written_file;

/* One is all that the device takes; the others will need an entry each. */
static void fill_beside_waiting(struct tasks_hold *hold)
{
	uint32_t room = free_count() - FEW;

	(void)hold;
	for (uint32_t i = 0; i < FEW; i++) {
		submit(requests_begin_transfer(
			&ones[i], PINION_OP_WRITE, &written_file, bytes, 0, sizeof(bytes)));
	}
	expect_number("wait for the device", FEW - 1, pin_worker_current()->device_queue.queued);
	full_batch_rc = submit_nops(FEW, room + 1);
	full_rc = submit_nops(FEW, room);
	filled_count = FEW + room;
}

static void check_waiting_take_room(void)
{
	struct tasks_hold hold = {.prepare = fill_beside_waiting};
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = 1;
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	expect_number("one more than there is room for", -EAGAIN, full_batch_rc);
	expect_number("all that there is room for", 0, full_rc);
	for (uint32_t i = 0; i < filled_count; i++) {
		expect_number("result", i < FEW ? sizeof(bytes) : 0, requests_await(&ones[i]));
	}
	pinion_limits_init(&limits);
	expect_number("limits", 0, pinion_runtime_set_limits(runtime, &limits));
}

/* ---- a buffer, by one way and by the other ---- */

static struct pinion_buffer own_buffer;

static void read_into_own(struct tasks_hold *hold)
{
	(void)hold;
	expect_number("buffer", 0, pinion_buffer_acquire(runtime, MANY, &own_buffer));
	submit(requests_begin_transfer(
		&ones[0], PINION_OP_READ, &written_file, own_buffer.bytes, 0, MANY));
}

static void release_own(struct tasks_hold *hold)
{
	(void)hold;
	pinion_buffer_release(runtime, &own_buffer);
}

/* From its worker, then from outside: each end undoes what its start did. */
static void check_submitted_again(void)
{
	struct tasks_hold hold = {.prepare = read_into_own};

	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
	expect_number("from its worker", MANY, requests_await(&ones[0]));
	pin_store_release_u32(&ones[0].entered, 0);
	submit(&ones[0].request);
	expect_number("from outside", MANY, requests_await(&ones[0]));
	hold.prepare = release_own;
	tasks_hold_begin(&hold, runtime, 0);
	tasks_hold_end(&hold);
}

static void check_batch(void)
{
	for (uint32_t i = 0; i < MANY; i++) {
		requests_begin(&ones[i], PINION_OP_NOP);
		batch[i] = &ones[i].request;
	}
	expect_number("none", 0, pinion_request_submit_batch(runtime, batch, 0));
	ones[MANY - 1].request.op = PINION_OP_FSYNC;
	expect_number(
		"one of them is wrong", -EINVAL, pinion_request_submit_batch(runtime, batch, MANY));
	batch[3] = NULL;
	expect_number(
		"one of them is none", -EINVAL, pinion_request_submit_batch(runtime, batch, MANY));
	batch[3] = batch[7];
	expect_number(
		"one of them twice", -EBUSY, pinion_request_submit_batch(runtime, batch, MANY));
	batch[3] = &ones[3].request;
	for (uint32_t i = 0; i < MANY; i++) {
		expect_number("not touched", 0, pin_load_acquire_u32(&ones[i].entered));
	}
	ones[MANY - 1].request.op = PINION_OP_NOP;
	expect_number("all, more than the ring holds", 0,
		pinion_request_submit_batch(runtime, batch, MANY));
	for (uint32_t i = 0; i < MANY; i++) {
		expect_number("result", 0, requests_await(&ones[i]));
	}
}

/* ---- the end ---- */

static void check_child(void)
{
	pid_t child = fork();
	int status = -1;

	expect_ready("fork", child >= 0);
	if (child == 0) {
		requests_begin(&ones[0], PINION_OP_NOP);
		_exit(pinion_request_submit(runtime, &ones[0].request) == -ECHILD &&
					pinion_request_cancel(runtime, &ones[0].request) == -ECHILD
				? 0
				: 1);
	}
	expect_ready("wait", waitpid(child, &status, 0) == child);
	expect_number("-ECHILD in a child", 0, status);
}

static void check_stop(bool is_ring)
{
	struct pinion_runtime_stats counters;

	for (uint32_t i = 0; i < COUNT; i++) {
		submit(pending(is_ring, i, pipe_file));
	}
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	for (uint32_t i = 0; i < COUNT; i++) {
		expect_number("entered", 1, pin_load_acquire_u32(&ones[i].entered));
		expect_number("result", -ECANCELED, ones[i].request.result);
	}
	requests_begin(&ones[0], PINION_OP_NOP);
	expect_number("submit", -ESHUTDOWN, pinion_request_submit(runtime, &ones[0].request));
	expect_number("untouched", 0, ones[0].request.task.private_kind);
	counters = runtimes_counters(runtime);
	expect_number("all that was submitted has ended", (long long)counters.requests_submitted,
		(long long)counters.requests_completed);
	expect_number("each once", (long long)counters.tasks_run,
		(long long)(counters.requests_completed + counters.tasks_spawned));
	expect_true("cancelled ones are counted", counters.requests_cancelled >= 3 * COUNT);
	expect_true("and late ones", counters.requests_timed_out >= COUNT);
	pinion_runtime_destroy(runtime);
}

static void check(uint32_t io_level)
{
	struct pinion_runtime_info facts;
	struct pinion_config config;
	bool is_ring;

	runtimes_config(&config, 2, io_level);
	runtimes_tuning.ring_entries = RING_ENTRIES;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	is_ring = facts.uses_ring != 0;
	check_one(is_ring);
	check_many(is_ring);
	check_deadlines(is_ring);
	check_posted();
	check_full();
	check_timeouts_take_no_room();
	if (is_ring) {
		check_waiting_take_room();
	}
	check_submitted_again();
	check_batch();
	check_child();
	check_stop(is_ring);
}

int main(void)
{
	int ends[2];
	int written;

	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("pipe", pipe2(ends, O_CLOEXEC) == 0);
	*pipe_file = runtimes_plain_file(ends[0]);
	*other_file = runtimes_plain_file(ends[0]);
	scratch_enter("request_ends_once");
	written = open("written", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	expect_ready("file", written >= 0 && write(written, bytes, sizeof(bytes)) == sizeof(bytes));
	expect_number("file", 0, pinion_file_from_fd(&written_file, written, NULL));
	check(PINION_IO_AUTO);
	check(PINION_IO_FALLBACK);
	close(ends[0]);
	close(ends[1]);
	pinion_file_close(&written_file);
	scratch_leave();
	return expect_status();
}
