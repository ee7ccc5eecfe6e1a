/* SPDX-License-Identifier: MIT */
/*
 * Goal: with more than 64 workers, a waker that finds no sleeper is right: a
 * worker that had published before is taken or sees the work ([PARK-1],
 * [IDLE-1]); no bit is taken twice, none gets lost. W30, AS-25, AS-26, C6.
 * Method: the real set with 260 workers, of which two or three publish. A
 * sleeper follows parker.h's steps and sleeps until it is claimed, so that a
 * lost wake-up is a deadlock; others make its group become empty at the worst
 * moment, by claiming or withdrawing. Wakers claim by each of the policies.
 * The mutants are the simpler protocols that lose wake-ups.
 */
#include "runtime/queue/idle_set.h"
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/support/idle.h"

#include <string.h>

enum {
	WORKERS = 260,
	/* The sleeper; others next to it, in its group, in another one. */
	SLEEPER = 1,
	NEXT = 0,
	IN_GROUP = 65,
	ELSEWHERE = 200,
};

static struct pin_idle idle;
static struct pin_atomic_u32 work;
static uint32_t publish_counts[WORKERS];
static uint32_t claim_counts[WORKERS];
static uint32_t claim_total;
static uint32_t other; /* the worker that shares something with the sleeper */
static uint32_t (*claim_by_policy)(void);

static uint32_t claim_lowest(void)
{
	return pin_idle_claim(&idle);
}

/* From after the sleeper, whose turn comes last. */
static uint32_t claim_rotating(void)
{
	return pin_idle_claim_from(&idle, SLEEPER + 1);
}

/* Ranges as of a waker in another group. */
static uint32_t claim_near(void)
{
	static const struct pin_range ranges[] = {{192, 224}, {64, WORKERS}, {0, WORKERS}};

	return pin_idle_claim_in(&idle, ranges, PIN_ARRAY_COUNT(ranges));
}

static uint32_t claim_after_look(void)
{
	return pin_idle_is_empty(&idle) ? PIN_IDLE_NONE : pin_idle_claim(&idle);
}

static void publish(uint32_t index)
{
	publish_counts[index]++;
	(void)pin_idle_publish(&idle, index);
}

static uint32_t claim(void)
{
	uint32_t index = claim_by_policy();

	if (index != PIN_IDLE_NONE) {
		MODEL_CHECK(index < WORKERS);
		claim_counts[index]++;
		claim_total++;
		MODEL_CHECK(claim_counts[index] <= publish_counts[index]);
	}
	return index;
}

static void begin(uint32_t other_index, uint32_t (*policy)(void))
{
	memset(publish_counts, 0, sizeof(publish_counts));
	memset(claim_counts, 0, sizeof(claim_counts));
	claim_total = 0;
	work = (struct pin_atomic_u32){0};
	other = other_index;
	claim_by_policy = policy;
	model_quiet_begin();
	pin_idle_init(&idle, WORKERS);
}

/* ---- the parts ---- */

static bool is_claimed(const void *arg)
{
	(void)arg;
	return claim_total >= 1;
}

/* The sleeper and the other, whose waker claims whom it finds. */
static bool are_claimed(const void *arg)
{
	(void)arg;
	return claim_total >= 2;
}

static void sleep_unless(bool (*condition)(const void *))
{
	publish(SLEEPER);
	pin_fence_seq_cst();
	if (pin_load_acquire_u32(&work) == 0) {
		model_await("a claim", condition, NULL);
	}
	pin_idle_withdraw(&idle, SLEEPER);
}

static void sleep_until_claimed(void *arg)
{
	(void)arg;
	sleep_unless(is_claimed);
}

static void sleep_until_both_claimed(void *arg)
{
	(void)arg;
	sleep_unless(are_claimed);
}

static void withdraw_then_sleep(void *arg)
{
	(void)arg;
	publish(SLEEPER);
	pin_idle_withdraw(&idle, SLEEPER);
	if (claim_counts[SLEEPER] == 0) {
		sleep_unless(is_claimed);
	}
}

/* A claim of the passer-by makes it look for work, so it counts as well. */
static void pass_by(void *arg)
{
	(void)arg;
	pin_idle_withdraw(&idle, other);
}

static void claim_for_others(void *arg)
{
	(void)arg;
	pin_fence_seq_cst();
	claim();
}

static void add_work_and_claim(void *arg)
{
	(void)arg;
	pin_store_release_u32(&work, 1);
	pin_fence_seq_cst();
	claim();
}

static void end(const uint32_t *threads, uint32_t thread_count)
{
	for (uint32_t i = 0; i < thread_count; i++) {
		model_thread_join(threads[i]);
	}
	model_quiet_begin();
	while (claim() != PIN_IDLE_NONE) {
	}
	MODEL_CHECK(idle_count(&idle) == 0);
	MODEL_CHECK(pin_idle_is_empty(&idle));
}

/* ---- a sleeper comes as its group becomes empty ---- */

/* The other is published from the start, and claimed or withdrawn. */
static void run_sleeper(uint32_t other_index, uint32_t (*policy)(void), model_body_fn sleeper,
	model_body_fn emptier)
{
	uint32_t threads[3];

	begin(other_index, policy);
	publish(other);
	model_quiet_end();
	threads[0] = model_thread_start("sleeper", sleeper, NULL);
	threads[1] = model_thread_start("emptier", emptier, NULL);
	threads[2] = model_thread_start("waker", add_work_and_claim, NULL);
	end(threads, 3);
}

static void run_claimed(void)
{
	run_sleeper(NEXT, claim_lowest, sleep_until_both_claimed, claim_for_others);
}

static void run_claimed_in_group(void)
{
	run_sleeper(IN_GROUP, claim_lowest, sleep_until_both_claimed, claim_for_others);
}

static void run_claimed_elsewhere(void)
{
	run_sleeper(ELSEWHERE, claim_near, sleep_until_both_claimed, claim_for_others);
}

static void run_claimed_near(void)
{
	run_sleeper(NEXT, claim_near, sleep_until_both_claimed, claim_for_others);
}

static void run_claimed_rotating(void)
{
	run_sleeper(IN_GROUP, claim_rotating, sleep_until_both_claimed, claim_for_others);
}

static void run_withdrawn(void)
{
	run_sleeper(NEXT, claim_after_look, sleep_until_claimed, pass_by);
}

static void run_withdrawn_in_group(void)
{
	run_sleeper(IN_GROUP, claim_after_look, sleep_until_claimed, pass_by);
}

static void run_again(void)
{
	run_sleeper(NEXT, claim_lowest, withdraw_then_sleep, pass_by);
}

/* ---- two wakers, two sleepers ---- */

static void run_two_wakers(uint32_t other_index)
{
	uint32_t threads[2];

	begin(other_index, claim_lowest);
	publish(SLEEPER);
	publish(other);
	model_quiet_end();
	threads[0] = model_thread_start("waker", claim_for_others, NULL);
	threads[1] = model_thread_start("waker", claim_for_others, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(claim_counts[SLEEPER] == 1 && claim_counts[other] == 1);
	end(NULL, 0);
}

static void run_wakers_next(void)
{
	run_two_wakers(NEXT);
}

static void run_wakers_in_group(void)
{
	run_two_wakers(IN_GROUP);
}

static void run_wakers_elsewhere(void)
{
	run_two_wakers(ELSEWHERE);
}

/* ---- two who publish ---- */

static void publish_it(void *arg)
{
	publish(*(uint32_t *)arg);
}

static void run_publishers(uint32_t other_index)
{
	static uint32_t sleeper = SLEEPER;
	uint32_t threads[2];

	begin(other_index, claim_lowest);
	model_quiet_end();
	threads[0] = model_thread_start("sleeper", publish_it, &sleeper);
	threads[1] = model_thread_start("sleeper", publish_it, &other);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(idle_count(&idle) == 2);
	end(NULL, 0);
	MODEL_CHECK(claim_counts[SLEEPER] == 1 && claim_counts[other] == 1);
}

static void run_publishers_next(void)
{
	run_publishers(NEXT);
}

static void run_publishers_elsewhere(void)
{
	run_publishers(ELSEWHERE);
}

static const struct model_mutant clear_mutants[] = {
	{"cleared without a check of the group", {MODEL_SKIP, "group_is_empty", "first load"}},
	{"cleared whatever was published", {MODEL_NO_COMPARE, "clear_if_empty", NULL}},
	{"cleared, looked at again, set again", {MODEL_LATE, "clear_if_empty", "group_is_empty"}},
	{"compared, then cleared", {MODEL_TORN, "clear_if_empty", NULL}},
	{"publications are not counted",
		{MODEL_SKIP, "publish_in_group", "pin_fetch_add_seq_cst_u64"}},
	{"the group's word is set after top",
		{MODEL_LATE, "publish_in_group", "pin_fetch_or_seq_cst_u64"}},
	{"top is not set", {MODEL_SKIP, "publish_in_group", "set top"}},
	{"publishing releases nothing", {MODEL_RELAXED, "publish_in_group", NULL}},
	{"clearing acquires nothing", {MODEL_RELAXED, "clear_if_empty", NULL}},
	{"no fence before the re-check", {MODEL_DROP_FENCE, "sleep_unless", NULL}},
	{"no fence before the claim", {MODEL_DROP_FENCE, "add_work_and_claim", NULL}},
	{.name = NULL},
};

static const struct model_mutant look_mutants[] = {
	{"cleared without a check of one word", {MODEL_SKIP, "group_is_empty", "first load"}},
	{.name = NULL},
};

static const struct model_mutant claim_mutants[] = {
	{"the check decides, not the claim", {MODEL_TORN, "take", NULL}},
	{.name = NULL},
};

static const struct model_mutant publish_mutants[] = {
	{"publishing is no single step", {MODEL_TORN, "publish_in_group", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"claimed", run_claimed, 3, 2, 0, clear_mutants, NULL},
	{"claimed_in_group", run_claimed_in_group, 2, 2, 0, look_mutants, NULL},
	{"claimed_elsewhere", run_claimed_elsewhere, 2, 2, 0, NULL, NULL},
	{"claimed_near", run_claimed_near, 2, 2, 0, NULL, NULL},
	{"claimed_rotating", run_claimed_rotating, 2, 2, 0, NULL, NULL},
	{"withdrawn", run_withdrawn, 3, 2, 0, clear_mutants, NULL},
	{"withdrawn_in_group", run_withdrawn_in_group, 2, 2, 0, look_mutants, NULL},
	{"again", run_again, 2, 2, 0, NULL, NULL},
	{"wakers_next", run_wakers_next, 3, 2, 0, claim_mutants, NULL},
	{"wakers_in_group", run_wakers_in_group, 3, 2, 0, NULL, NULL},
	{"wakers_elsewhere", run_wakers_elsewhere, 3, 2, 0, NULL, NULL},
	{"publishers_next", run_publishers_next, 3, 2, 0, publish_mutants, NULL},
	{"publishers_elsewhere", run_publishers_elsewhere, 3, 2, 0, NULL, NULL},
};

int main(void)
{
	return model_main("idle", cases, PIN_ARRAY_COUNT(cases));
}
