/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer is had by one thread at a time, wherever it is taken from, and
 * "nothing is free" is said only when it was so at one instant: [MAG-1] [MAG-2]
 * [MAG-3] [STASH-1] [STASH-3] [FREE-1] [POOL-1]. BP-9, BP-19, BP-23, BP-25, W4,
 * W5, W8.
 * Method: owners of magazines and threads without one take and give back, by
 * the way of magazines, shared stashes and the list;
 * tests/model/memory/pool_books.h lists the checks.
 */
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/model/memory/pool_books.h"

/* ---- the false "nothing" of one check after the other ---- */

/* Gives to one magazine, takes from the other: one is always free. */
static void shift(uint32_t to, uint32_t from)
{
	pool_books_release(to, &pool_books.held);
	if (!pool_books_acquire(from, &pool_books.held)) {
		/* The thread that asks has it. */
		pool_books.held.bytes = NULL;
	}
}

static void shift_once(void *arg)
{
	(void)arg;
	shift(0, 1);
}

static void shift_to_and_fro(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 3 && pool_books.held.bytes != NULL; i++) {
		shift(i & 1, 1 - (i & 1));
		model_yield();
	}
}

static void run_looks(void (*shifter)(void *))
{
	uint32_t threads[2];

	pool_books_begin(2, 2, 1, 2);
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	threads[0] = model_thread_start("asks", pool_books_ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shifter, NULL);
	pool_books_end(threads, 2, 0);
}

static void run_shift(void)
{
	run_looks(shift_once);
}

static void run_to_and_fro(void)
{
	run_looks(shift_to_and_fro);
}

/* ---- on the way between list and magazine ---- */

static void ask_as_owner(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	pool_books_acquire(0, &buffer);
}

static void run_refill(void)
{
	uint32_t threads[2];

	pool_books_begin(2, 1, 4, 0);
	threads[0] = model_thread_start("owner", ask_as_owner, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_outside, NULL);
	pool_books_end(threads, 2, 0);
}

static void give_as_owner(void *arg)
{
	(void)arg;
	pool_books_release(0, &pool_books.held);
}

static void run_spill(void)
{
	uint32_t threads[2];

	pool_books_begin(2, 1, 1, 1);
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &pool_books.held));
	model_quiet_end();
	threads[0] = model_thread_start("owner", give_as_owner, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_outside, NULL);
	pool_books_end(threads, 2, 0);
}

/* ---- owner and thieves ---- */

static void pass_as_owner(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (pool_books_acquire(0, &buffer)) {
		pool_books_release(0, &buffer);
	}
	pool_books_acquire(0, &buffer);
}

static void pass_as_other(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (pool_books_acquire(1, &buffer)) {
		pool_books_release(1, &buffer);
	}
}

static void run_thief(void)
{
	uint32_t threads[2];

	pool_books_begin(2, 1, 2, 1);
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("thief", pool_books_pass_outside, NULL);
	pool_books_end(threads, 2, 0);
}

static void run_two_owners(void)
{
	uint32_t threads[2];

	pool_books_begin(2, 2, 2, 1);
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("other", pass_as_other, NULL);
	pool_books_end(threads, 2, 0);
}

/* ---- a robbed owner ---- */

static struct pinion_buffer others[2];

/* All of a pool with one magazine are out, and that one was robbed. */
static void begin_robbed(void)
{
	pool_books_begin(2, 1, 2, 1);
	model_quiet_begin();
	for (uint32_t i = 0; i < 2; i++) {
		MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &others[i]));
	}
	model_quiet_end();
}

static void give_others_back(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	pool_books_release(0, &others[0]);
	pool_books_release(0, &others[1]);
	pool_books_acquire(0, &buffer);
}

static void run_robbed(void)
{
	uint32_t threads[2];

	begin_robbed();
	threads[0] = model_thread_start("owner", give_others_back, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_twice, NULL);
	pool_books_end(threads, 2, 0);
}

/* It fetches from the list, and forgets, while the next thief comes. */
static void run_forget(void)
{
	uint32_t threads[2];

	begin_robbed();
	model_quiet_begin();
	pool_books_release(PIN_POOL_OUTSIDE, &others[0]);
	model_quiet_end();
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("thief", pool_books_pass_outside, NULL);
	pool_books_end(threads, 2, 0);
}

/* ---- published buffers ---- */

/* Half of it goes into the owner's magazine while another asks for all. */
static void run_draw(void)
{
	struct pinion_buffer out[3];
	uint32_t threads[2];

	pool_books_begin(3, 1, 5, 0);
	model_quiet_begin();
	for (uint32_t i = 0; i < 3; i++) {
		MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &out[i]));
	}
	for (uint32_t i = 0; i < 3; i++) {
		pool_books_release(0, &out[i]);
	}
	MODEL_CHECK(pin_stash_count(&pool_books.pool.magazines[0].stash) == 3);
	model_quiet_end();
	threads[0] = model_thread_start("owner", ask_as_owner, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_twice, NULL);
	pool_books_end(threads, 2, 0);
}

/* Two robbed ones: one is always free, on the one stash or on the other. */
static void run_stash(void)
{
	uint32_t threads[2];

	pool_books_begin(2, 2, 1, 0);
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &pool_books.held));
	MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &others[0]));
	pool_books_release(1, &others[0]);
	model_quiet_end();
	threads[0] = model_thread_start("asks", pool_books_ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shift_once, NULL);
	pool_books_end(threads, 2, 0);
}

/*
 * Its owner publishes one, or another thread lists it; then another asks for
 * it.
 */
static void run_given(void (*give)(void *))
{
	uint32_t threads[2];

	pool_books_begin(1, 1, 1, 0);
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &pool_books.held));
	model_quiet_end();
	threads[0] = model_thread_start("gives", give, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_outside, NULL);
	pool_books_end(threads, 2, 0);
}

static void run_laid_out(void)
{
	run_given(give_as_owner);
}

/* Where threads cannot be made to pass fences, the owner passes its own. */
static void run_unfenced(void)
{
	uint32_t threads[2];

	pool_books.has_no_fence = true;
	pool_books_begin(1, 1, 1, 1);
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	threads[0] = model_thread_start("owner", give_as_owner, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_outside, NULL);
	pool_books_end(threads, 2, 0);
}

static void give_outside(void *arg)
{
	(void)arg;
	pool_books_release(PIN_POOL_OUTSIDE, &pool_books.held);
}

static void run_listed(void)
{
	run_given(give_outside);
}

/* ---- the list ---- */

static void take_two_give_one(void *arg)
{
	struct pinion_buffer first;
	struct pinion_buffer second;

	(void)arg;
	if (pool_books_acquire(PIN_POOL_OUTSIDE, &first)) {
		pool_books_acquire(PIN_POOL_OUTSIDE, &second);
		pool_books_release(PIN_POOL_OUTSIDE, &first);
	}
}

static void run_list(void)
{
	uint32_t threads[2];

	pool_books_begin(3, 1, 1, 0);
	threads[0] = model_thread_start("two", take_two_give_one, NULL);
	threads[1] = model_thread_start("one", pool_books_pass_outside, NULL);
	pool_books_end(threads, 2, 0);
}

/* Takes what it has just given back for the first still. */
static void give_and_take_again(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (pool_books_acquire(PIN_POOL_OUTSIDE, &buffer)) {
		pool_books_release(PIN_POOL_OUTSIDE, &buffer);
		pool_books_acquire(PIN_POOL_OUTSIDE, &buffer);
	}
}

static void run_granted(void)
{
	uint32_t threads[2];

	pool_books_begin(3, 1, 1, 0);
	threads[0] = model_thread_start("again", give_and_take_again, NULL);
	threads[1] = model_thread_start("two", take_two_give_one, NULL);
	pool_books_end(threads, 2, 0);
}

static const struct model_mutant shift_mutants[] = {
	{"one check only", {MODEL_SKIP, "is_as_noted", "look"}},
	{"no fence between the looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant to_and_fro_mutants[] = {
	{"a check does not see puts and takes between", {MODEL_NO_COMPARE, "look", NULL}},
	{.name = NULL},
};

static const struct model_mutant refill_mutants[] = {
	{"nothing is promised", {MODEL_SKIP, "draw_listed", "pin_magazine_promise"}},
	{.name = NULL},
};

static const struct model_mutant spill_mutants[] = {
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{.name = NULL},
};

static const struct model_mutant thief_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_magazine_leave", NULL}},
	{"the thief leaves without a release", {MODEL_RELAXED, "pin_magazine_get_out", NULL}},
	{.name = NULL},
};

static const struct model_mutant robbed_mutants[] = {
	{"it keeps what it should pass on", {MODEL_SKIP, "pin_pool_put", "pin_magazine_is_robbed"}},
	{"taken in two steps", {MODEL_TORN, "pin_stash_take", NULL}},
	{.name = NULL},
};

static const struct model_mutant draw_mutants[] = {
	{"nothing is promised", {MODEL_SKIP, "draw_laid_out", "pin_magazine_promise"}},
	{.name = NULL},
};

static const struct model_mutant forget_mutants[] = {
	{"the mark is taken off in two steps", {MODEL_TORN, "pin_magazine_forget_theft", NULL}},
	{.name = NULL},
};

static const struct model_mutant laid_out_mutants[] = {
	{"published by a plain store", {MODEL_SKIP, "pin_stash_put", "barrier"}},
	{"the asking thread passes no fence", {MODEL_DROP_FENCE, "is_exhausted", NULL}},
	{.name = NULL},
};

static const struct model_mutant listed_mutants[] = {
	{"listed without a barrier", {MODEL_RELAXED, "pin_freelist_push", NULL}},
	{"the asking thread passes no fence", {MODEL_DROP_FENCE, "is_exhausted", NULL}},
	{.name = NULL},
};

static const struct model_mutant unfenced_mutants[] = {
	{"the owner leaves without a fence", {MODEL_DROP_FENCE, "pin_magazine_leave_slowly", NULL}},
	{"it comes in without one", {MODEL_DROP_FENCE, "pin_magazine_enter_slowly", NULL}},
	{.name = NULL},
};

static const struct model_mutant list_mutants[] = {
	{"no tag", {MODEL_NO_COMPARE, "pin_freelist_pop", NULL}},
	{"a pop is no single step", {MODEL_TORN, "pin_freelist_pop", NULL}},
	{"a push is no single step", {MODEL_TORN, "pin_freelist_push", NULL}},
	{.name = NULL},
};

static const struct model_mutant granted_mutants[] = {
	{"no tag", {MODEL_NO_COMPARE, "pin_freelist_pop_own", NULL}},
	{"a pop is no single step", {MODEL_TORN, "pin_freelist_pop_own", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"shift", run_shift, 3, 1, 0, shift_mutants, NULL},
	{"to_and_fro", run_to_and_fro, 3, 0, 0, to_and_fro_mutants, NULL},
	{"refill", run_refill, 3, 1, 0, refill_mutants, NULL},
	{"spill", run_spill, 3, 1, 0, spill_mutants, NULL},
	{"thief", run_thief, 2, 3, 0, thief_mutants, NULL},
	{"two_owners", run_two_owners, 2, 1, 0, NULL, NULL},
	{"robbed", run_robbed, 2, 3, 0, robbed_mutants, NULL},
	{"forget", run_forget, 2, 3, 0, forget_mutants, NULL},
	{"draw", run_draw, 2, 1, 0, draw_mutants, NULL},
	{"stash", run_stash, 3, 1, 0, NULL, NULL},
	{"laid_out", run_laid_out, 3, 6, 0, laid_out_mutants, NULL},
	{"listed", run_listed, 3, 6, 0, listed_mutants, NULL},
	{"unfenced", run_unfenced, 3, 6, 0, unfenced_mutants, NULL},
	{"list", run_list, 3, 1, 0, list_mutants, NULL},
	{"granted", run_granted, 3, 1, 0, granted_mutants, NULL},
};

int main(void)
{
	return model_main("pool", cases, PIN_ARRAY_COUNT(cases));
}
