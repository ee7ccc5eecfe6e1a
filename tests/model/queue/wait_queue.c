/* SPDX-License-Identifier: MIT */
/*
 * Goal: no waiter waits while its amount is available, each wait ends once,
 * served or not, no unit handed over is lost or had twice, and a waiter that
 * leaves strands none:
 * [WAIT-1] [WAIT-2]. BP-28, W6.
 * Method: units are counted in one word; waiters want some of them, releasers
 * give them back, as the pool and the budgets do. A waiter that was forgotten
 * is a deadlock. A wait with a deadline may time out whenever it would sleep;
 * the main thread enters and withdraws a waiter that is no thread.
 */
#include "runtime/queue/wait_queue.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/support/units.h"

#include <errno.h>
#include <string.h>

enum { WAITERS_MAX = 2, DEADLINE_NS = 1 };

struct model_waiter {
	struct pin_waiter waiter;
	uint64_t deadline_ns;
	int result;
	uint32_t seen; /* of `payload`, when it was served */
};

static struct pin_waiters waiters;
static struct pin_atomic_u32 payload; /* written before units are given */
static struct model_waiter waiting[WAITERS_MAX];
static uint32_t over_count;
static bool is_leaving;

static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	return !(is_leaving && model_is_spoilt(MODEL_SKIP, "pin_waiter_withdraw", "take")) &&
		units_take(arg, demand, out_value);
}

static void begin(enum pin_waiters_fences fences)
{
	memset(waiting, 0, sizeof(waiting));
	memset(&units, 0, sizeof(units));
	memset(&payload, 0, sizeof(payload));
	over_count = 0;
	is_leaving = false;
	pin_waiters_init(&waiters, &pin_host_linux, take, NULL, fences);
}

static void give(void *arg)
{
	uint32_t amount = (uint32_t)(uintptr_t)arg;

	pin_store_relaxed_u32(&payload, 1);
	pin_fetch_add_acq_rel_u32(&units, amount);
	if (pin_waiters_any(&waiters)) {
		pin_waiters_serve(&waiters);
	}
}

static void wait_for(void *arg)
{
	struct model_waiter *own = arg;

	own->result = pin_waiters_wait(&waiters, &own->waiter, own->deadline_ns);
	if (own->result == 0) {
		MODEL_CHECK(own->waiter.value.words[0] == own->waiter.demand);
		own->seen = pin_load_relaxed_u32(&payload);
	}
}

static uint32_t start_waiter(uint32_t index, uint32_t demand, uint64_t deadline_ns)
{
	pin_waiter_init(&waiting[index].waiter, demand, NULL);
	waiting[index].deadline_ns = deadline_ns;
	return model_thread_start("waiter", wait_for, &waiting[index]);
}

static uint32_t start_releaser(model_body_fn body, uint32_t amount)
{
	return model_thread_start("releaser", body, (void *)(uintptr_t)amount);
}

static void expect_end(uint32_t units_left)
{
	MODEL_CHECK(units.value == units_left);
	MODEL_CHECK(waiters.oldest == NULL && waiters.newest == NULL && waiters.count.value == 0);
}

/* ---- a releaser against a waiter ---- */

static void run_pair(enum pin_waiters_fences fences)
{
	uint32_t waiter;
	uint32_t releaser;

	begin(fences);
	waiter = start_waiter(0, 1, PIN_NO_DEADLINE);
	releaser = start_releaser(give, 1);
	model_thread_join(waiter);
	model_thread_join(releaser);
	MODEL_CHECK(waiting[0].result == 0 && waiting[0].seen == 1);
	expect_end(0);
}

static void run_pair_even(void)
{
	run_pair(PIN_WAITERS_EVEN);
}

static void run_pair_light(void)
{
	run_pair(PIN_WAITERS_RELEASE_LIGHT);
}

static void run_two_releasers(void)
{
	uint32_t waiter;
	uint32_t releasers[2];

	begin(PIN_WAITERS_RELEASE_LIGHT);
	waiter = start_waiter(0, 2, PIN_NO_DEADLINE);
	releasers[0] = start_releaser(give, 1);
	releasers[1] = start_releaser(give, 2);
	model_thread_join(waiter);
	model_thread_join(releasers[0]);
	model_thread_join(releasers[1]);
	expect_end(1);
}

static void run_two_waiters(void)
{
	uint32_t threads[3];

	begin(PIN_WAITERS_EVEN);
	threads[0] = start_waiter(0, 1, PIN_NO_DEADLINE);
	threads[1] = start_waiter(1, 2, PIN_NO_DEADLINE);
	threads[2] = start_releaser(give, 3);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	expect_end(0);
}

/* ---- against a deadline ---- */

static void run_timeout(model_body_fn body)
{
	uint32_t waiter;
	uint32_t releaser;

	begin(PIN_WAITERS_EVEN);
	waiter = start_waiter(0, 1, DEADLINE_NS);
	releaser = start_releaser(body, 1);
	model_thread_join(waiter);
	model_thread_join(releaser);
	MODEL_CHECK(waiting[0].result == 0 || waiting[0].result == -ETIME);
	expect_end(waiting[0].result == 0 ? 0 : 1);
}

static void run_serve_and_timeout(void)
{
	run_timeout(give);
}

/* ---- against a cancel, for a waiter that is no thread ---- */

static void over(struct pin_waiter *waiter)
{
	over_count++;
	MODEL_CHECK(over_count == 1 && waiter->value.words[0] == waiter->demand);
}

static bool leave(struct model_waiter *own)
{
	bool has_left;

	is_leaving = true;
	has_left = pin_waiter_withdraw(&own->waiter);
	is_leaving = false;
	return has_left;
}

static void cancel(void *arg)
{
	struct model_waiter *own = arg;

	own->result = leave(own) ? -ECANCELED : -EALREADY;
}

static void run_serve_and_cancel(void)
{
	uint32_t threads[2];

	begin(PIN_WAITERS_EVEN);
	pin_waiter_init(&waiting[0].waiter, 1, over);
	pin_waiters_enter(&waiters, &waiting[0].waiter);
	threads[0] = start_releaser(give, 1);
	threads[1] = model_thread_start("canceller", cancel, &waiting[0]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(over_count == (waiting[0].result == -ECANCELED ? 0 : 1));
	expect_end(over_count == 1 ? 0 : 1);
}

/* The oldest wants more than there will be, and holds up the other. */
static void run_oldest_leaves(void)
{
	uint32_t waiter;
	uint32_t releaser;

	begin(PIN_WAITERS_EVEN);
	pin_waiter_init(&waiting[0].waiter, 2, over);
	pin_waiters_enter(&waiters, &waiting[0].waiter);
	waiter = start_waiter(1, 1, PIN_NO_DEADLINE);
	releaser = start_releaser(give, 1);
	MODEL_CHECK(leave(&waiting[0]));
	model_thread_join(waiter);
	model_thread_join(releaser);
	MODEL_CHECK(over_count == 0);
	expect_end(0);
}

static const struct model_mutant even_mutants[] = {
	{"no fence before the check for waiters", {MODEL_DROP_FENCE, "pin_waiters_any", NULL}},
	{"no fence after the place in the queue", {MODEL_DROP_FENCE, "fence_waiter", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_mutant light_mutants[] = {
	/* Where a releaser has its fence, that would do instead. */
	{"served without a release", {MODEL_RELAXED, "pin_waiters_tell", NULL}},
	{"no fence for all", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant lock_mutants[] = {
	{"two have the lock", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{.name = NULL},
};

static const struct model_mutant leave_mutants[] = {
	{"a leaving waiter serves none", {MODEL_SKIP, "pin_waiter_withdraw", "take"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"pair_even", run_pair_even, 3, 2, 1, even_mutants, NULL},
	{"pair_light", run_pair_light, 3, 2, 1, light_mutants, NULL},
	{"two_releasers", run_two_releasers, 2, 1, 0, lock_mutants, NULL},
	{"two_waiters", run_two_waiters, 2, 1, 0, lock_mutants, NULL},
	{"serve_and_timeout", run_serve_and_timeout, 3, 1, 1, lock_mutants, NULL},
	{"serve_and_cancel", run_serve_and_cancel, 2, 1, 0, lock_mutants, NULL},
	{"oldest_leaves", run_oldest_leaves, 2, 1, 1, leave_mutants, NULL},
};

int main(void)
{
	return model_main("waiters", cases, PIN_ARRAY_COUNT(cases));
}
