/* SPDX-License-Identifier: MIT */
/*
 * Goal: with shared rings, requests of a worker that is stalled in a task end,
 * and their tasks run, elsewhere: those that it has gathered and not even
 * submitted, and those in flight since an earlier turn, whether they complete
 * before or after another worker reaps. What uses the worker's own buffers
 * ends, and its task waits for that worker. The ring has none of the flags that
 * would bind it to one thread. AS-31, EX-31.
 * Method: tasks that wait for the end of requests that only another worker
 * could bring about; without that they hang and trip the watchdog.
 */
#include "tests/support/requests.h"

#include "runtime/task/entry.h"

#include <fcntl.h>

enum {
	WORKERS = 3,
	BATCH = 40,
	ROUNDS = 3,
	LIMIT_SECONDS = 60,
};

struct moving {
	struct requests_one one;
	struct pin_atomic_u32 worker_index; /* where its task ran */
};

static struct pinion_runtime *runtime;
static struct moving moving[BATCH];
static struct pinion_task starter;
static struct pinion_buffer own_buffer;
static struct pinion_file zeroes;
static struct pin_atomic_u32 ended_count;
static struct pin_atomic_u32 has_begun;
static struct pin_atomic_u32 has_ended;
static uint32_t starter_index;

static int note_end(struct pinion_task *task)
{
	struct moving *own = PIN_CONTAINER_OF(task, struct moving, one.request.task);

	expect_number("its task is the caller's again", 1,
		task->run == note_end && task->private_kind == 0);
	pin_store_release_u32(&own->worker_index, (uint32_t)pinion_worker_index(runtime));
	if (own->one.request.bytes == own_buffer.bytes && own_buffer.bytes != NULL) {
		pinion_buffer_release(runtime, &own_buffer);
	}
	tasks_signal(&own->one.entered);
	tasks_signal(&ended_count);
	return 0;
}

static struct pinion_request *begin(uint32_t number, uint16_t op)
{
	struct pinion_request *request = requests_begin(&moving[number].one, op);

	request->task.run = note_end;
	return request;
}

static void start(uint32_t io_level)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, io_level);
	runtimes_tuning.ring_sharing = PINION_RING_SHARED;
	runtimes_tuning.watchdog_us = 1000;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&ended_count, 0);
	pin_store_release_u32(&has_begun, 0);
	pin_store_release_u32(&has_ended, 0);
}

static void run_starter(int (*run)(struct pinion_task *task), uint32_t index)
{
	starter = (struct pinion_task){.run = run};
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, index, &starter));
}

/* ---- gathered ---- */

static int submit_and_block(struct pinion_task *task)
{
	struct pinion_request *requests[BATCH];
	uint32_t count = pin_load_acquire_u32(&ended_count) + BATCH;

	(void)task;
	starter_index = (uint32_t)pinion_worker_index(runtime);
	for (uint32_t i = 0; i < BATCH; i++) {
		requests[i] = begin(i, PINION_OP_NOP);
	}
	expect_number("submit", 0, pinion_request_submit_batch(runtime, requests, BATCH));
	tasks_await(&ended_count, count);
	for (uint32_t i = 0; i < BATCH; i++) {
		expect_number("elsewhere", 1,
			pin_load_acquire_u32(&moving[i].worker_index) != starter_index);
	}
	tasks_signal(&has_ended);
	return 0;
}

static void check_gathered(uint32_t io_level)
{
	start(io_level);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		run_starter(submit_and_block, i % WORKERS);
		tasks_await(&has_ended, i + 1);
	}
	expect_true("counted as stolen",
		runtimes_counters(runtime).tasks_stolen >= (uint64_t)ROUNDS * BATCH);
	runtimes_finish(runtime, ROUNDS * BATCH);
}

/* ---- in flight ---- */

static int pipe_ends[2];
static struct pinion_file pipe_file;
static uint8_t pipe_byte;

static int submit_read(struct pinion_task *task)
{
	struct pinion_request *request = begin(0, PINION_OP_READ);

	(void)task;
	starter_index = (uint32_t)pinion_worker_index(runtime);
	request->file = &pipe_file;
	request->bytes = &pipe_byte;
	request->length_bytes = 1;
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	return 0;
}

static int block(struct pinion_task *task)
{
	(void)task;
	expect_number("on its worker", starter_index, pinion_worker_index(runtime));
	tasks_signal(&has_begun);
	tasks_await(&ended_count, 1);
	tasks_signal(&has_ended);
	return 0;
}

static void check_in_flight(void)
{
	const struct pin_parker *parker;

	start(PINION_IO_AUTO);
	expect_ready("pipe", pipe2(pipe_ends, O_CLOEXEC) == 0);
	pipe_file = runtimes_plain_file(pipe_ends[0]);
	parker = &runtime->shared.workers[1].parker;
	run_starter(submit_read, 1);
	while (pin_load_acquire_u32(&parker->state) != PIN_PARK_RING) {
		pin_host_linux.yield();
	}
	run_starter(block, 1);
	tasks_await(&has_begun, 1);
	expect_ready("write", write(pipe_ends[1], "x", 1) == 1);
	tasks_await(&has_ended, 1);
	expect_number("result", 1, moving[0].one.request.result);
	expect_number(
		"elsewhere", 1, pin_load_acquire_u32(&moving[0].worker_index) != starter_index);
	runtimes_finish(runtime, 1);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

/* ---- into a buffer of the worker ---- */

static int submit_own_and_block(struct pinion_task *task)
{
	struct pinion_request *request = begin(0, PINION_OP_READ);

	(void)task;
	starter_index = (uint32_t)pinion_worker_index(runtime);
	expect_number("buffer", 0, pinion_buffer_acquire(runtime, 4096, &own_buffer));
	request->file = &zeroes;
	request->bytes = own_buffer.bytes;
	request->length_bytes = 4096;
	expect_number("submit", 0, pinion_request_submit(runtime, request));
	while (runtimes_counters(runtime).requests_completed == 0) {
		pin_host_linux.yield();
	}
	expect_number("its task waits", 0, pin_load_acquire_u32(&moving[0].one.entered));
	tasks_signal(&has_ended);
	return 0;
}

static void check_own_buffer(uint32_t io_level)
{
	start(io_level);
	run_starter(submit_own_and_block, 2);
	tasks_await(&has_ended, 1);
	tasks_await(&moving[0].one.entered, 1);
	expect_number("result", 4096, moving[0].one.request.result);
	expect_number("at home", starter_index, pin_load_acquire_u32(&moving[0].worker_index));
	runtimes_finish(runtime, 1);
}

static void check_flags(void)
{
	struct pinion_runtime_info facts;
	uint32_t binding = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

	start(PINION_IO_AUTO);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	expect_number("set-up flags", 0, facts.ring_setup_flags & binding);
	runtimes_finish(runtime, 0);
	if (facts.uses_ring != 0) {
		check_in_flight();
	}
}

int main(void)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_FALLBACK};

	setvbuf(stdout, NULL, _IOLBF, 0);
	runtimes_watchdog(LIMIT_SECONDS);
	expect_number("open", 0, pinion_file_open(&zeroes, "/proc/self/exe", PINION_DIRECT_NEVER));
	/* Else the worker copies it from the cache by itself. */
	zeroes.cached_percent = 255;
	check_flags();
	for (size_t i = 0; i < PIN_ARRAY_COUNT(levels); i++) {
		printf("level %u\n", levels[i]);
		memset(moving, 0, sizeof(moving));
		check_gathered(levels[i]);
		memset(moving, 0, sizeof(moving));
		check_own_buffer(levels[i]);
	}
	pinion_file_close(&zeroes);
	return expect_status();
}
