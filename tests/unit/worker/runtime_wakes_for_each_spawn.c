/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task spawned onto a sleeping runtime wakes it, always: no wake is
 * lost on a futex or in a ring, with either doorbell. Hazard that others met: a
 * message to a ring that no thread notices.
 * Method: up to 20 000 rounds in which one thread spawns a task and sleeps
 * until it has run, for 1 and 4 workers, with and without a read that never
 * ends. The eventfd doorbell is had by refusing the message doorbell when it is
 * probed. A lost wake hangs and trips the watchdog.
 */
#include "tests/support/rounds.h"
#include "tests/support/runtimes.h"
#include "tests/support/syscalls.h"

#include "runtime/host/host.h"
#include "runtime/host/kernel.h"

#include <errno.h>

enum {
	ROUNDS = 20000,
	ROUNDS_SANITIZED = 4000,
	ROUNDS_LEAST = 200,
	ROUNDS_SECONDS = 6,
	LIMIT_SECONDS = 60,
	WORKERS_MAX = 4,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request requests[WORKERS_MAX];
static struct pinion_task starters[WORKERS_MAX];
static uint8_t bytes[WORKERS_MAX];
static struct pin_atomic_u32 done; /* rounds; the spawner sleeps on it */
static struct pin_atomic_u32 reads_started;

static bool refuse_message_doorbell(long number, const long *arguments, long *out_result)
{
	if (number != __NR_io_uring_register || arguments[1] != IORING_REGISTER_SEND_MSG_RING) {
		return false;
	}
	errno = EINVAL;
	*out_result = -1;
	return true;
}

static int answer(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_seq_cst_u32(&done, 1);
	pin_host_linux.futex_wake(&done, 1);
	return 0;
}

static int ignore_read(struct pinion_task *task)
{
	(void)task;
	return 0;
}

/*
 * One read for each worker: it holds its worker until all have one, so that
 * none gets two.
 */
static int start_read(struct pinion_task *task)
{
	size_t number = (size_t)(task - starters);
	uint32_t worker_count = pinion_runtime_worker_count(runtime);

	requests[number] = (struct pinion_request){
		.task.run = ignore_read,
		.file = &file,
		.bytes = &bytes[number],
		.length_bytes = 1,
	};
	if (pinion_request_submit(runtime, &requests[number]) != 0) {
		abort();
	}
	pin_fetch_add_acq_rel_u32(&reads_started, 1);
	while (pin_load_acquire_u32(&reads_started) < worker_count) {
		pin_host_linux.yield();
	}
	return 0;
}

static void start_reads(int fd, uint32_t worker_count)
{
	file = runtimes_plain_file(fd);
	pin_store_release_u32(&reads_started, 0);
	for (uint32_t i = 0; i < worker_count; i++) {
		starters[i] = (struct pinion_task){.run = start_read};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &starters[i]));
	}
	while (pin_load_acquire_u32(&reads_started) < worker_count) {
		pin_host_linux.yield();
	}
}

static void check(uint32_t worker_count, bool has_read, bool has_message, uint32_t round_count)
{
	struct pinion_task task = {.run = answer};
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	struct rounds rounds;
	int ends[2];

	syscalls_hook = has_message ? NULL : refuse_message_doorbell;
	runtime = runtimes_start(worker_count, PINION_IO_AUTO);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (facts.uses_ring == 0 && has_read) {
		pinion_runtime_destroy(runtime);
		return;
	}
	if (!has_message && facts.uses_ring != 0) {
		expect_text("doorbell", "eventfd", facts.doorbell);
	}
	expect_ready("pipe", pipe(ends) == 0);
	if (has_read) {
		start_reads(ends[0], worker_count);
	}
	pin_store_release_u32(&done, 0);
	rounds = rounds_begin(round_count, ROUNDS_LEAST, ROUNDS_SECONDS);
	for (uint32_t i = 0; rounds_go_on(&rounds, i); i++) {
		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		while (pin_load_acquire_u32(&done) == i) {
			pin_host_linux.futex_wait(&done, i, PIN_NO_DEADLINE);
		}
	}
	counters = runtimes_counters(runtime);
	/* Else the rounds would have shown nothing. */
	expect_true("workers slept", (has_read ? counters.parks_ring : counters.parks_futex) > 0);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
}

/* A user that asks for that level gets nothing without the message. */
static bool is_message_asked_for(void)
{
	const char *level = getenv("PINION_IO_LEVEL");

	return level != NULL && strcmp(level, "ring-message") == 0;
}

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	uint32_t rounds = ROUNDS_SANITIZED;
#else
	uint32_t rounds = ROUNDS;
#endif

	runtimes_watchdog(LIMIT_SECONDS);
	syscalls_begin();
	for (uint32_t worker_count = 1; worker_count <= WORKERS_MAX; worker_count += 3) {
		check(worker_count, false, true, rounds);
		check(worker_count, true, true, rounds);
		if (!is_message_asked_for()) {
			check(worker_count, true, false, rounds);
		}
	}
	return expect_status();
}
