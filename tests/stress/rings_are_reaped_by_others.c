/* SPDX-License-Identifier: MIT */
/*
 * Goal: with shared rings, each request ends once with the right bytes, while
 * tasks block for requests that their own worker has just submitted, others
 * cancel, deadlines pass, and in the end the runtime is stopped. AS-31, G2.
 * Method: real threads. Chains of reads, each submitted by the task of the last
 * one, wherever that ran; now and then a task waits for the request of its own
 * that it submits, which another worker has to reap: at most all workers but
 * one do so at once. Rings and fallback in turn.
 */
#include "tests/support/random.h"
#include "tests/support/requests.h"
#include "tests/support/scratch.h"

#include <errno.h>

enum {
	WORKERS = 4,
	CHAINS = 16,
	ROUNDS = 150, /* of each chain */
	BLOCK = 4096,
	FILE_BLOCKS = 64,
	DEADLINE_NS_MAX = 100 * 1000,
	LIMIT_SECONDS = 60,
};

struct chain {
	struct requests_one step;  /* the next of the chain */
	struct requests_one inner; /* what a task waits for */
	struct random_source random;
	uint32_t rounds_left;
	bool has_stopped;
	uint8_t bytes[BLOCK] __attribute__((aligned(BLOCK)));
	uint8_t inner_bytes[BLOCK] __attribute__((aligned(BLOCK)));
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct chain chains[CHAINS];
static struct pin_atomic_u32 blocked_count;
static struct pin_atomic_u32 wrong_count;
static struct pin_atomic_u32 wait_count;
static struct pin_atomic_u32 ended_count; /* chains */

static void note_wrong(bool is_wrong)
{
	if (is_wrong) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
}

static void check_result(const struct pinion_request *request)
{
	if (request->result == BLOCK) {
		note_wrong(request->bytes[0] != request->offset_bytes / BLOCK ||
			request->bytes[BLOCK - 1] != request->offset_bytes / BLOCK);
		return;
	}
	note_wrong(request->result != -ECANCELED && request->result != -ETIME);
}

static int submit(struct chain *chain, struct requests_one *one, uint8_t *bytes)
{
	struct pinion_request *request = &one->request;

	request->op = PINION_OP_READ;
	request->file = &file;
	request->bytes = bytes;
	request->length_bytes = BLOCK;
	request->offset_bytes = random_below(&chain->random, FILE_BLOCKS) * BLOCK;
	request->deadline_ns = random_below(&chain->random, 8) == 0
		? pinion_clock_now_ns() + random_below(&chain->random, DEADLINE_NS_MAX)
		: 0;
	return pinion_request_submit(runtime, request);
}

/* Whether so few tasks block that one worker at least is free. */
static bool may_block(void)
{
	uint32_t before = pin_fetch_add_acq_rel_u32(&blocked_count, 1);

	if (before + 1 < WORKERS) {
		return true;
	}
	pin_fetch_sub_acq_rel_u32(&blocked_count, 1);
	return false;
}

static void wait_for_inner(struct chain *chain)
{
	requests_begin(&chain->inner, PINION_OP_READ);
	if (submit(chain, &chain->inner, chain->inner_bytes) == 0) {
		if (random_below(&chain->random, 4) == 0) {
			pinion_request_cancel(runtime, &chain->inner.request);
		}
		tasks_await(&chain->inner.entered, 1);
		check_result(&chain->inner.request);
		tasks_signal(&wait_count);
	}
	pin_fetch_sub_acq_rel_u32(&blocked_count, 1);
}

static int run_step(struct pinion_task *task)
{
	struct chain *chain = PIN_CONTAINER_OF(task, struct chain, step.request.task);
	int rc = -ESHUTDOWN;

	check_result(&chain->step.request);
	if (random_below(&chain->random, 4) == 0 && may_block()) {
		wait_for_inner(chain);
	}
	if (chain->rounds_left > 0) {
		chain->rounds_left--;
		rc = submit(chain, &chain->step, chain->bytes);
		note_wrong(rc != 0 && rc != -ESHUTDOWN);
	}
	if (rc != 0) {
		tasks_signal(&ended_count);
	}
	return 0;
}

static void run_once(uint64_t seed, uint32_t io_level, bool is_stop)
{
	struct pinion_config config;
	struct pinion_runtime_stats counters;

	runtimes_config(&config, WORKERS, io_level);
	runtimes_tuning.ring_sharing = PINION_RING_SHARED;
	runtimes_tuning.watchdog_us = 200;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&ended_count, 0);
	pin_store_release_u32(&wait_count, 0);
	for (uint32_t i = 0; i < CHAINS; i++) {
		struct chain *chain = &chains[i];

		requests_begin(&chain->step, PINION_OP_READ);
		chain->step.request.task.run = run_step;
		chain->rounds_left = ROUNDS;
		chain->random.state = seed + i;
		expect_number("submit", 0, submit(chain, &chain->step, chain->bytes));
	}
	if (is_stop) {
		tasks_await(&wait_count, WORKERS);
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	}
	tasks_await(&ended_count, CHAINS);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("ended", (long long)counters.requests_submitted,
		(long long)counters.requests_completed);
	expect_number("run and cancelled",
		(long long)(counters.tasks_spawned + counters.requests_submitted),
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("chains", CHAINS, pin_load_acquire_u32(&ended_count));
	expect_number("wrong", 0, pin_load_acquire_u32(&wrong_count));
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	struct random_source random;
	uint64_t seed = random_begin(&random);
	uint32_t count = tasks_iterations(1);
	static uint8_t content[FILE_BLOCKS * BLOCK];
	int fd;

	runtimes_watchdog(count > 1 ? 3600 : LIMIT_SECONDS);
	scratch_enter("rings_are_reaped_by_others");
	for (uint32_t i = 0; i < sizeof(content); i++) {
		content[i] = (uint8_t)(i / BLOCK);
	}
	fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	expect_ready("file", fd >= 0 && write(fd, content, sizeof(content)) == sizeof(content));
	close(fd);
	expect_number("open", 0, pinion_file_open(&file, "file", PINION_DIRECT_NEVER));
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		run_once(seed + i, PINION_IO_AUTO, false);
		run_once(seed + i, PINION_IO_AUTO, true);
		run_once(seed + i, PINION_IO_FALLBACK, i % 2 == 0);
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
