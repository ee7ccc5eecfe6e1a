/* SPDX-License-Identifier: MIT */
/*
 * Goal: what starts by a limiter is never more than what its rates have let
 * accrue, however a change of the rates meets workers that reserve, wait, and
 * spend or leave it, and want less then; and nothing of it is lost: all have
 * started by the instant at which the rates allow it. [LIMIT-1]. G2.
 * Method: the real limiter; a clock of our own, moved by the thread that sets
 * the rates: twice in between, by less than may be made up for, then each
 * time that all workers wait, to the next that is due. Amounts are worked out
 * by hand.
 */
#include "runtime/io/rate_limit.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"

#include <string.h>

enum {
	WORKERS = 2,
	STARTS = 2,
	ASKED_BYTES = 100,
	SPENT_BYTES = 50,
	RATE = 20000,
	HIGHER_RATE = 40000,
	BURST_BYTES = 200, /* 10 ms */
	FIRST_BYTES = 100, /* of these, so that a worker may start before the sets */
	/* Each worker leaves as much as it spends last. */
	RESERVED_BYTES = WORKERS * (STARTS + 1) * SPENT_BYTES,
	ROUNDED_NS = 16, /* each cost by one at most */
};

#define US UINT64_C(1000)
#define FIRST_NS (1000 * US)
#define SECOND_NS (500 * US)
/* 20 bytes accrue in each of the two, a byte in 50 us from then on. */
#define ACCRUED_BYTES (RESERVED_BYTES - (BURST_BYTES - FIRST_BYTES) - 40)
#define ALL_NS (FIRST_NS + SECOND_NS + ACCRUED_BYTES * 50 * US)

struct model_worker {
	struct pin_allowance allowance;
	uint64_t due_ns;
	bool is_waiting;
	bool is_over;
};

static struct pin_limiter limiter;
static struct model_worker workers[WORKERS];
static uint64_t rate;
static uint64_t accrued; /* bytes * ns per second */
static uint64_t started; /* bytes */

static void set(uint64_t bytes_per_second)
{
	const uint64_t rates[PIN_LIMITED_KINDS] = {[PIN_LIMITED_BYTES] = bytes_per_second};

	pin_limiter_set(&limiter, &pin_host_linux, rates);
	rate = bytes_per_second;
}

static void pass(uint64_t time_ns)
{
	accrued += rate * time_ns;
	model_clock_reach(model_clock_ns() + time_ns);
	model_point();
}

/* Its time has come, or a change of the rates has it checked. */
static bool may_go_on(const void *arg)
{
	const struct model_worker *worker = arg;

	return worker->due_ns <= model_clock_ns() || worker->allowance.epoch != limiter.epoch.value;
}

static void await_due(struct model_worker *worker, uint64_t bytes)
{
	const uint64_t wanted[PIN_LIMITED_KINDS] = {[PIN_LIMITED_BYTES] = bytes};

	for (;;) {
		worker->due_ns =
			pin_limiter_due(&limiter, &pin_host_linux, &worker->allowance, wanted);
		if (worker->due_ns == 0) {
			return;
		}
		worker->is_waiting = true;
		model_await("its time", may_go_on, worker);
		worker->is_waiting = false;
	}
}

static void spend(struct model_worker *worker, uint64_t bytes)
{
	const uint64_t amounts[PIN_LIMITED_KINDS] = {[PIN_LIMITED_BYTES] = bytes};

	pin_limiter_spend(&worker->allowance, amounts);
	started += bytes;
	MODEL_CHECK(started * 1000000 * US <= BURST_BYTES * 1000000 * US + accrued);
}

static void work(void *arg)
{
	struct model_worker *worker = arg;

	for (uint32_t i = 0; i < STARTS; i++) {
		/* As if a device's own rate did not allow that. */
		await_due(worker, ASKED_BYTES);
		await_due(worker, SPENT_BYTES);
		spend(worker, SPENT_BYTES);
	}
	worker->is_over = true;
}

static bool do_all_wait(const void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < WORKERS; i++) {
		if (!workers[i].is_over && (!workers[i].is_waiting || may_go_on(&workers[i]))) {
			return false;
		}
	}
	return true;
}

/* UINT64_MAX: all have started. */
static uint64_t next_due(void)
{
	uint64_t due_ns = UINT64_MAX;

	for (uint32_t i = 0; i < WORKERS; i++) {
		if (!workers[i].is_over) {
			due_ns = pin_min_u64(due_ns, workers[i].due_ns);
		}
	}
	return due_ns;
}

static void begin(void)
{
	struct model_worker first = {.due_ns = 0};

	memset(&limiter, 0, sizeof(limiter));
	memset(workers, 0, sizeof(workers));
	accrued = 0;
	started = 0;
	model_clock_reach(1000000 * US);
	model_quiet_begin();
	set(RATE);
	await_due(&first, FIRST_BYTES);
	spend(&first, FIRST_BYTES);
	model_quiet_end();
}

static void run(void)
{
	uint64_t begin_ns;

	begin();
	begin_ns = model_clock_ns();
	for (uint32_t i = 0; i < WORKERS; i++) {
		model_thread_start("worker", work, &workers[i]);
	}
	pass(FIRST_NS);
	set(HIGHER_RATE);
	pass(SECOND_NS);
	set(RATE);
	for (;;) {
		model_await("all to wait", do_all_wait, NULL);
		if (next_due() == UINT64_MAX) {
			break;
		}
		pass(next_due() - model_clock_ns());
	}
	MODEL_CHECK(started == FIRST_BYTES + WORKERS * STARTS * SPENT_BYTES);
	MODEL_CHECK(model_clock_ns() - begin_ns <= ALL_NS + ROUNDED_NS);
}

static const struct model_mutant mutants[] = {
	{"a set gives away what has started", {MODEL_SKIP, "take_kind", "pin_rate_take"}},
	{"a set loses what has not", {MODEL_SKIP, "renew_kind", "pin_rate_give_back"}},
	{"reservations stay valid", {MODEL_SKIP, "pin_limiter_set", "pin_limiter_begin_epoch"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"sets", run, 2, 1, 0, mutants, NULL},
};

int main(void)
{
	return model_main("rate_limit", cases, PIN_ARRAY_COUNT(cases));
}
