/* SPDX-License-Identifier: MIT */
/*
 * Goal: a waker that finds no sleeper is right: a worker that had published
 * before sees the work or is taken by another waker ([PARK-1], [IDLE-1]); a bit
 * is taken once, and its taker sees the earlier writes of its worker. W30,
 * AS-25, AS-26, C6.
 * Method: the real set with 260 workers, once with 64. A sleeper publishes as
 * parker.h describes and checks for work, while its group becomes empty by a
 * claim of another or by its withdrawal, and a waker adds work and claims.
 * Sleeping is left out: a sleeper who saw no work must have been claimed, or
 * the waker have found another, who looks for it.
 */
#include "tests/model/relacy/atomics.h"

#include "runtime/queue/idle_set.c"

#include "tests/model/relacy/engine.h"
#include "tests/support/idle.h"

enum {
	WORKERS = 260,
	/* The sleeper; others next to it, in its group, in another one. */
	SLEEPER = 1,
	NEXT = 0,
	IN_GROUP = 65,
	ELSEWHERE = 200,
};

struct scene_base {
	struct pin_idle idle;
	struct pin_atomic_u32 work;
	model_plain<uint32_t> written[2]; /* by the sleeper, by the other */
	uint32_t other;
	uint32_t publish_counts[2] = {};
	uint32_t claim_counts[2] = {};
	bool saw_no_work = false;
	bool has_waker_found = false;

	scene_base(uint32_t other_index, uint32_t worker_count) : other(other_index)
	{
		pin_idle_init(&idle, worker_count);
	}

	void publish(uint32_t index)
	{
		uint32_t which = index == SLEEPER ? 0 : 1;

		written[which] = index;
		publish_counts[which]++;
		(void)pin_idle_publish(&idle, index);
	}

	bool claim()
	{
		uint32_t index = pin_idle_claim(&idle);
		uint32_t which = index == SLEEPER ? 0 : 1;

		if (index == PIN_IDLE_NONE) {
			return false;
		}
		MODEL_CHECK(index == SLEEPER || index == other);
		MODEL_CHECK(written[which] == index);
		claim_counts[which]++;
		MODEL_CHECK(claim_counts[which] <= publish_counts[which]);
		return true;
	}

	void finish()
	{
		MODEL_CHECK(!saw_no_work || has_waker_found || claim_counts[0] == 1);
		while (claim()) {
		}
		MODEL_CHECK(idle_count(&idle) == 0 && pin_idle_is_empty(&idle));
	}
};

/* Its group becomes empty as the sleeper comes. */
template <uint32_t other_index, bool is_withdrawn> struct sleeper_scene : scene_base {
	sleeper_scene() : scene_base(other_index, WORKERS)
	{
		publish(other);
	}

	void sleep_unless_work()
	{
		publish(SLEEPER);
		pin_fence_seq_cst();
		saw_no_work = pin_load_acquire_u32(&work) == 0;
	}

	void add_work_and_claim()
	{
		pin_store_release_u32(&work, 1);
		pin_fence_seq_cst();
		has_waker_found = claim();
	}

	void claim_or_withdraw()
	{
		if (is_withdrawn) {
			pin_idle_withdraw(&idle, other);
		} else {
			pin_fence_seq_cst();
			claim();
		}
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			sleep_unless_work();
		} else if (index == 1) {
			add_work_and_claim();
		} else {
			claim_or_withdraw();
		}
	}
};

/* Two who publish, two who claim. */
template <uint32_t other_index, uint32_t worker_count> struct crowd_scene : scene_base {
	crowd_scene() : scene_base(other_index, worker_count)
	{
	}

	void thread(unsigned index)
	{
		if (index == 0) {
			publish(SLEEPER);
		} else if (index == 1) {
			publish(other);
		} else {
			pin_fence_seq_cst();
			claim();
		}
	}

	void finish()
	{
		scene_base::finish();
		MODEL_CHECK(claim_counts[0] == 1 && claim_counts[1] == 1);
	}
};

static const struct model_mutant clear_mutants[] = {
	{"cleared without a check of the group", {MODEL_SKIP, "group_is_empty", NULL}},
	{"cleared whatever was published since", {MODEL_NO_COMPARE, "clear_if_empty", NULL}},
	{"clearing is no single step", {MODEL_TORN, "clear_if_empty", NULL}},
	{"no fence before the re-check", {MODEL_DROP_FENCE, "sleep_unless_work", NULL}},
	{"no fence before the claim", {MODEL_DROP_FENCE, "add_work_and_claim", NULL}},
	{NULL, {}},
};

static const struct model_mutant crowd_mutants[] = {
	{"the check decides, not the claim", {MODEL_TORN, "take", NULL}},
	{"publishing is no single step", {MODEL_TORN, "publish_in_group", NULL}},
	{"publishing releases nothing", {MODEL_RELAXED, "publish_in_group", NULL}},
	{"claiming acquires nothing", {MODEL_RELAXED, "take", NULL}},
	{NULL, {}},
};

/* Not that claiming acquires nothing: they come by `top`, and acquire there. */
static const struct model_mutant elsewhere_mutants[] = {
	{"the check decides, not the claim", {MODEL_TORN, "take", NULL}},
	{"publishing is no single step", {MODEL_TORN, "publish_in_group", NULL}},
	{"publishing releases nothing", {MODEL_RELAXED, "publish_in_group", NULL}},
	{NULL, {}},
};

static const struct model_mutant one_word_mutants[] = {
	{"the check decides, not the claim", {MODEL_TORN, "take", NULL}},
	{"publishing is no single step", {MODEL_TORN, "pin_idle_publish", NULL}},
	{"publishing releases nothing", {MODEL_RELAXED, "pin_idle_publish", NULL}},
	{NULL, {}},
};

static const struct relacy_case cases[] = {
	{"claimed", relacy_simulate<sleeper_scene<NEXT, false>, 3>, 200000, 3, clear_mutants},
	{"claimed_in_group", relacy_simulate<sleeper_scene<IN_GROUP, false>, 3>, 200000, 2,
		clear_mutants},
	{"withdrawn", relacy_simulate<sleeper_scene<NEXT, true>, 3>, 200000, 3, clear_mutants},
	{"crowd", relacy_simulate<crowd_scene<NEXT, WORKERS>, 4>, 200000, 2, crowd_mutants},
	{"crowd_elsewhere", relacy_simulate<crowd_scene<ELSEWHERE, WORKERS>, 4>, 200000, 2,
		elsewhere_mutants},
	{"crowd_of_one_word", relacy_simulate<crowd_scene<NEXT, 64>, 4>, 200000, 3, one_word_mutants},
};

int main()
{
	return relacy_main("relacy/idle", cases, PIN_ARRAY_COUNT(cases));
}
