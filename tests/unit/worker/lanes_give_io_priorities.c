/* SPDX-License-Identifier: MIT */
/*
 * Goal: a read or write has the I/O priority of its lane: that of its own
 * flags, or of the task that submits it; a priority of its own comes first, and
 * the real-time class without the privilege is refused. With rings it is in the
 * entry; without, the thread has it during the call, and what it had before
 * afterwards. So has each part of a transfer in parts. Seed 1, lanes.
 * Method: a task of each lane submits and looks at the entry it has made; this
 * program's pread() notes the thread's priority. A long write to /dev/null
 * leaves an entry for each part in the ring's memory, or a call each.
 */
#include "tests/support/requests.h"

#include "runtime/io/request.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

enum {
	WHO_PROCESS = 1,
	NONE = 0,
	REAL_TIME = 1 << 13,
	BEST_0 = 2 << 13,
	BEST_5 = 2 << 13 | 5,
	BEST_7 = 2 << 13 | 7,
	IDLE = 3 << 13,
	LIMIT_SECONDS = 60,
	PARTS = 40, /* more than 2 GiB */
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static uint8_t byte;
static int during_call; /* the worker's, ordered by the request's end */

/* In place of libc's, which the fallback would call. */
ssize_t pread(int fd, void *bytes, size_t length, off_t offset);
ssize_t pread(int fd, void *bytes, size_t length, off_t offset)
{
	during_call = (int)syscall(SYS_ioprio_get, WHO_PROCESS, 0);
	return syscall(SYS_pread64, fd, bytes, length, offset);
}

static uint32_t calls_by_priority[4 << 13];

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	calls_by_priority[syscall(SYS_ioprio_get, WHO_PROCESS, 0) % (4 << 13)]++;
	return syscall(SYS_pwrite64, fd, bytes, length, offset);
}

struct submitter {
	struct pinion_task task;
	struct requests_one one;
	int rc;
	int in_entry;
};

/* The entry made last; it has not been submitted yet. */
static int last_entry_priority(void)
{
	const struct pin_ring *ring = &pin_worker_current()->ring;

	if (ring->is_fallback) {
		return ring->queued[(ring->queued_head + ring->queued_count - 1) % ring->credit]
			.ioprio;
	}
	return ring->uring.sq.array == NULL
		? ring->uring.sq.sqes[(ring->uring.sq.sqe_tail - 1) & ring->uring.sq.ring_mask]
			  .ioprio
		: ring->uring.sq.sqes[ring->sqe_index].ioprio;
}

static int submit(struct pinion_task *task)
{
	struct submitter *submitter = PIN_CONTAINER_OF(task, struct submitter, task);

	submitter->rc = pinion_request_submit(runtime, &submitter->one.request);
	submitter->in_entry = last_entry_priority();
	return 0;
}

/* The thread's own, as reported for a thread that was never given any. */
static bool is_own(int priority)
{
	return priority >> 13 == 0 || priority == (2 << 13 | 4);
}

static void expect_during_call(int expected)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring != 0) {
		return;
	}
	if (expected == NONE) {
		expect_true("the thread's own", is_own(during_call));
	} else {
		expect_number("during the call", expected, during_call);
	}
}

static void check_task(uint32_t task_flags, uint32_t request_flags, uint16_t asked, int expected)
{
	struct submitter submitter = {.task = {.run = submit, .flags = task_flags}};
	struct pinion_request *request = requests_begin(&submitter.one, PINION_OP_READ);

	request->task.flags = request_flags;
	request->io_priority = asked;
	request->file = &file;
	request->bytes = &byte;
	request->length_bytes = 1;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &submitter.task));
	expect_number("read", 1, requests_await(&submitter.one));
	expect_number("submit", 0, submitter.rc);
	expect_number("in the entry", expected, submitter.in_entry);
	expect_during_call(expected);
}

static int32_t read_outside(uint32_t request_flags, uint16_t asked)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, PINION_OP_READ);

	request->task.flags = request_flags;
	request->io_priority = asked;
	request->file = &file;
	request->bytes = &byte;
	request->length_bytes = 1;
	return (int32_t)requests_do(runtime, &one);
}

static int note_own(struct pinion_task *task)
{
	struct submitter *submitter = PIN_CONTAINER_OF(task, struct submitter, task);

	submitter->in_entry = (int)syscall(SYS_ioprio_get, WHO_PROCESS, 0);
	tasks_signal(&submitter->one.entered);
	return 0;
}

/* A privileged user gets what it asks for. */
static void check_outside(void)
{
	struct submitter submitter = {.task.run = note_own};
	int32_t result;

	expect_number("read", 1, read_outside(0, 0));
	expect_during_call(NONE);
	expect_number("low read", 1, read_outside(PINION_TASK_LOW, 0));
	expect_during_call(BEST_7);
	result = read_outside(PINION_TASK_LOW, REAL_TIME);
	expect_true("real time is refused, or was to be had", result == -EPERM || result == 1);
	if (result == 1) {
		expect_during_call(REAL_TIME);
	}
	expect_number("no such class", -EINVAL, read_outside(PINION_TASK_LOW, 7 << 13));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &submitter.task));
	tasks_await(&submitter.one.entered, 1);
	expect_true("nothing is left of it", is_own(submitter.in_entry));
}

/* Entries that were made for it, with that priority or with another. */
static uint32_t count_entries(const struct pinion_request *request, int priority, bool is_other)
{
	const struct io_uring_sq *sq = &runtime->shared.workers[0].ring.uring.sq;
	uint32_t count = 0;

	for (uint32_t i = 0; i < sq->ring_entries; i++) {
		const struct io_uring_sqe *sqe = &sq->sqes[i];

		count += sqe->user_data == (uintptr_t)request && sqe->len != 0 &&
			(sqe->ioprio == priority) != is_other;
	}
	return count;
}

/* Each that was made lately is there still. */
static bool has_each_entry(void)
{
	const struct io_uring_sq *sq = &runtime->shared.workers[0].ring.uring.sq;

	return sq->array == NULL && sq->ring_entries >= 4 * PARTS;
}

/* From outside, of a lane; nothing else is submitted meanwhile. */
static void check_parts(struct requests_one *one, uint32_t flags, uint16_t asked, int expected)
{
	struct pinion_file sink = runtimes_plain_file(open("/dev/null", O_WRONLY | O_CLOEXEC));
	uint64_t length = (uint64_t)PARTS * PIN_REQUEST_PART_BYTES;
	struct pinion_request *request = requests_begin(one, PINION_OP_WRITE);

	memset(calls_by_priority, 0, sizeof(calls_by_priority));
	request->task.flags = flags;
	request->io_priority = asked;
	request->file = &sink;
	/* It is never read. */
	request->bytes = (uint8_t *)(uintptr_t)4096;
	request->length_bytes = length;
	expect_number("written", (long long)length, requests_do(runtime, one));
	if (runtime->shared.workers[0].ring.is_fallback) {
		expect_number("calls with its priority", PARTS, calls_by_priority[expected]);
	} else {
		uint32_t count = count_entries(request, expected, false);

		/*
		 * More where the kernel has one tried again; where entries are
		 * taken in any order, or are few, they are overwritten.
		 */
		expect_true("entries with its priority", count >= (has_each_entry() ? PARTS : 1));
		expect_number("with another", 0, count_entries(request, expected, true));
	}
	close(sink.fd);
}

static void check_level(uint32_t io_level)
{
	/* Where no other request has been, whose entries are there still. */
	static struct requests_one long_ones[2];
	struct pinion_config config;

	runtimes_config(&config, 1, io_level);
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	/* Before anything is in a lane, and after. */
	check_task(0, 0, 0, NONE);
	check_outside();
	check_task(PINION_TASK_LOW, 0, 0, BEST_7);
	check_task(0, 0, 0, NONE);
	check_task(PINION_TASK_HIGH, 0, 0, NONE);
	check_task(0, PINION_TASK_LOW, 0, BEST_7);
	check_task(PINION_TASK_LOW, PINION_TASK_HIGH, 0, NONE);
	check_task(PINION_TASK_LOW, 0, BEST_5, BEST_5);
	check_outside();
	check_parts(&long_ones[0], PINION_TASK_LOW, 0, BEST_7);
	check_parts(&long_ones[1], PINION_TASK_LOW, BEST_5, BEST_5);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	runtimes_tuning.io_priority_high = PINION_IO_PRIORITY_BE0;
	runtimes_tuning.io_priority_low = PINION_IO_PRIORITY_IDLE;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	check_task(PINION_TASK_HIGH, 0, 0, BEST_0);
	check_task(PINION_TASK_LOW, 0, 0, IDLE);
	check_task(0, 0, 0, NONE);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	runtimes_tuning.io_priority_low = PINION_IO_PRIORITY_NONE;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	check_task(PINION_TASK_LOW, 0, 0, NONE);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	file = runtimes_plain_file(open("/dev/zero", O_RDONLY | O_CLOEXEC));
	check_level(PINION_IO_FALLBACK);
	check_level(PINION_IO_AUTO);
	close(file.fd);
	return expect_status();
}
