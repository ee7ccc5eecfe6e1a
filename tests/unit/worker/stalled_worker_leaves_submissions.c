/* SPDX-License-Identifier: MIT */
/*
 * Goal: requests that are submitted from outside end although the worker they
 * were dealt to is stalled in a task: singly, in a batch, and when the watchdog
 * has been asleep; a cancel of many that follows them still ends each of them.
 * A submit wakes the watchdog whether it is asleep or looks for stalls alone.
 * AS-31, EX-31, G2.
 * Method: a task blocks one worker until all requests have ended; half of them
 * are queued on it, as a submit does that finds no free worker. Without another
 * worker they hang and trip the watchdog. The cancel is sent while the task
 * blocks, and can only end after it.
 */
#include "tests/support/requests.h"

#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/watchdog.h"

enum {
	WORKERS = 2,
	REQUESTS = 40,
	ROUNDS = 5,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct requests_one ones[REQUESTS];
static struct requests_one all;
static struct tasks_hold hold;

static void start(uint32_t io_level)
{
	struct pinion_config config;

	runtimes_config(&config, WORKERS, io_level);
	runtimes_tuning.watchdog_us = 1000;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
}

/* As pinion_request_submit_batch(), but the test chooses the worker. */
static void post(struct pinion_request **requests, uint32_t count, uint32_t worker_index)
{
	struct pin_shared *shared = &runtime->shared;

	expect_number("claim", 0, pin_request_claim(requests, count));
	expect_true("admit", pin_gate_admit(&shared->gate, count));
	pin_room_note_elsewhere(shared, count);
	pin_request_post(&shared->workers[worker_index], requests, count);
}

static void submit(bool is_batch)
{
	struct pinion_request *requests[REQUESTS];

	for (uint32_t i = 0; i < REQUESTS; i++) {
		requests[i] = requests_begin(&ones[i], PINION_OP_NOP);
		if (!is_batch) {
			post(&requests[i], 1, i % WORKERS);
		}
	}
	/* One for each worker. */
	for (uint32_t i = 0; i < REQUESTS && is_batch; i += REQUESTS / WORKERS) {
		post(&requests[i], REQUESTS / WORKERS, i / (REQUESTS / WORKERS));
	}
}

/* Until the watchdog sleeps as well, so that it has to be woken. */
static void await_silence(void)
{
	while (pin_load_acquire_u32(&runtime->shared.watchdog) == 0) {
		pin_host_linux.yield();
	}
}

static void check_ends(uint32_t io_level)
{
	start(io_level);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		await_silence();
		tasks_hold_begin(&hold, runtime, i % WORKERS);
		submit(i % 2 != 0);
		for (uint32_t j = 0; j < REQUESTS; j++) {
			expect_number("result", 0, requests_await(&ones[j]));
		}
		tasks_hold_end(&hold);
	}
	runtimes_finish(runtime, ROUNDS * REQUESTS);
}

static void check_cancel(uint32_t io_level)
{
	uint32_t ended_by_it = 0;

	start(io_level);
	tasks_hold_begin(&hold, runtime, 1);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct pinion_request *request = requests_begin(&ones[i], PINION_OP_TIMEOUT);

		request->deadline_ns = UINT64_MAX;
		post(&request, 1, i % WORKERS);
	}
	expect_number("cancel", 0,
		pinion_request_submit(runtime, requests_begin(&all, PINION_OP_CANCEL)));
	tasks_hold_end(&hold);
	expect_number("cancelled", REQUESTS, requests_await(&all));
	for (uint32_t i = 0; i < REQUESTS; i++) {
		ended_by_it += requests_await(&ones[i]) == -ECANCELED;
	}
	expect_number("ended by it", REQUESTS, ended_by_it);
	runtimes_finish(runtime, REQUESTS + 1);
}

/* ---- the watchdog ---- */

static uint32_t watchdog_wakes;

static void note_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	(void)word;
	watchdog_wakes += count;
}

/* Told of a request for another worker, while it is in `state`. */
static void expect_told(uint32_t state, uint32_t wakes)
{
	static struct pin_shared shared;
	struct pin_host host = pin_host_linux;

	host.futex_wake = note_wake;
	shared.host = &host;
	shared.has_watchdog = true;
	watchdog_wakes = 0;
	pin_store_relaxed_u32(&shared.watchdog, state);
	pin_watchdog_tell_of_other(&shared);
	expect_number("wakes", wakes, watchdog_wakes);
	expect_number("state", wakes > 0 ? PIN_WATCHDOG_AWAKE : state,
		pin_load_relaxed_u32(&shared.watchdog));
}

static void check_watchdog(void)
{
	expect_told(PIN_WATCHDOG_ASLEEP, 1);
	expect_told(PIN_WATCHDOG_DOZING, 1);
	expect_told(PIN_WATCHDOG_AWAKE, 0);
	expect_told(PIN_WATCHDOG_ENDED, 0);
}

int main(void)
{
	static const uint32_t levels[] = {PINION_IO_AUTO, PINION_IO_FALLBACK};

	setvbuf(stdout, NULL, _IOLBF, 0);
	runtimes_watchdog(LIMIT_SECONDS);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(levels); i++) {
		printf("level %u\n", levels[i]);
		check_ends(levels[i]);
		check_cancel(levels[i]);
	}
	check_watchdog();
	return expect_status();
}
