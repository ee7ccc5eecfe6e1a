/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer that is given back twice is had by one still, and the second
 * of two callers is refused. [POOL-2] [POOL-3]. BP-21, W4, W5.
 * Method: two or three threads give back the same, by each pair of ways;
 * tests/model/memory/pool_books.h lists the checks.
 */
#include "runtime/base/base.h"
#include "tests/model/memory/pool_givers.h"

static void run_twice_by(void (*give)(void *))
{
	pool_books_begin(1, 1, 1, 0);
	take_held(PIN_POOL_OUTSIDE);
	run_both(give, give);
	MODEL_CHECK(given_count == 1);
	pool_books_settle(&pool_books.held);
	pool_books_end(NULL, 0, 1);
}

static void run_twice(void)
{
	run_twice_by(give_again);
}

static void run_twice_shortly(void)
{
	run_twice_by(give_again_shortly);
}

/* Gives it back in the instant that its holder does so by the short way. */
static void run_held(void (*one)(void *), void (*other)(void *))
{
	take_held(0);
	run_both(one, other);
	MODEL_CHECK(given_count == 1);
	MODEL_CHECK(pool_books.pool.misuses.value == 1);
	pool_books_settle(&pool_books.held);
	pool_books_end(NULL, 0, 1);
}

static void run_twice_held(void)
{
	begin_plain();
	run_held(give_as_holder, give_again);
}

static void run_twice_held_shortly(void)
{
	begin_plain();
	run_held(give_as_holder, give_again_shortly);
}

static void run_twice_unfenced(void)
{
	begin_unfenced();
	run_held(give_as_holder, give_again);
}

static void run_twice_guarded(void)
{
	begin_guarded();
	run_held(give_as_holder, give_again);
}

/* Two others: the second finds what the first has begun. */
static void run_thrice_held(void)
{
	uint32_t threads[3];

	begin_plain();
	take_held(0);
	threads[0] = model_thread_start("holder", give_as_holder, NULL);
	threads[1] = model_thread_start("one", give_again, NULL);
	threads[2] = model_thread_start("other", give_again, NULL);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(threads); i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(given_count == 1);
	MODEL_CHECK(pool_books.pool.misuses.value == 2);
	pool_books_settle(&pool_books.held);
	pool_books_end(NULL, 0, 2);
}

/* ---- a shared one is its owner's alone again ---- */

/* Another may have given it back; then that thread has settled it. */
static void give_and_go_on(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (!give_held()) {
		return;
	}
	pool_books_settle(&pool_books.held);
	MODEL_CHECK(pool_books_acquire(0, &buffer));
	MODEL_CHECK(pool_books.pool.entries[0].state.value >> 32 == 0);
	pool_books_release(0, &buffer);
}

static void give_and_settle(void *arg)
{
	(void)arg;
	if (pin_pool_release(&pool_books.pool, PIN_POOL_OUTSIDE, &pool_books.held) == 0) {
		given_count++;
		pool_books_settle(&pool_books.held);
	}
}

/* Another has it from when it was shared, and may believe so still. */
static void run_plain_again(void)
{
	begin_plain();
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	pin_pool_share(&pool_books.pool, pool_books.held.index);
	MODEL_CHECK(pool_books.pool.entries[0].state.value >> 32 != 0);
	pool_books.pool.magazines[0].shared_ends = UINT32_MAX - 1;
	model_quiet_end();
	run_both(give_and_go_on, give_and_settle);
	MODEL_CHECK(given_count == 1);
	MODEL_CHECK(pool_books.pool.misuses.value == 1);
	pool_books_end(NULL, 0, 1);
}

static const struct model_mutant twice_shortly_mutants[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release_listed", NULL}},
	{.name = NULL},
};

static const struct model_mutant twice_mutants[] = {
	{"the end of a use is no single step", {MODEL_TORN, "end_use", NULL}},
	{.name = NULL},
};

static const struct model_mutant twice_held_mutants[] = {
	{"no thread ends its holder's plain stores",
		{MODEL_SKIP, "end_use", "pin_pool_must_share"}},
	{"no thread waits for the holder",
		{MODEL_SKIP, "await_holder", "pin_magazine_await_owner"}},
	{"the holder need not have seen it", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"what the holder stored is overwritten", {MODEL_TORN, "mark", NULL}},
	{"the end of a use is no single step", {MODEL_TORN, "end_use", NULL}},
	{.name = NULL},
};

static const struct model_mutant twice_held_shortly_mutants[] = {
	{"no thread ends its holder's plain stores",
		{MODEL_SKIP, "pin_pool_release_listed", "pin_pool_must_share"}},
	{.name = NULL},
};

static const struct model_mutant twice_unfenced_mutants[] = {
	{"its holder goes the short way all the same",
		{MODEL_SKIP, "pool_model_release_shortly", "pin_magazine_is_fenced"}},
	{.name = NULL},
};

static const struct model_mutant twice_guarded_mutants[] = {
	{"the end of a use is no single step", {MODEL_TORN, "end_use", NULL}},
	{.name = NULL},
};

static const struct model_mutant thrice_held_mutants[] = {
	{"a thread that sees another's beginning does not wait",
		{MODEL_SKIP, "end_use", "PIN_ENTRY_SHARED"}},
	{.name = NULL},
};

static const struct model_mutant plain_again_mutants[] = {
	{"the end of a use is no single step", {MODEL_TORN, "end_use", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"twice", run_twice, 3, 1, 0, twice_mutants, NULL},
	{"twice_shortly", run_twice_shortly, 3, 1, 0, twice_shortly_mutants, NULL},
	{"twice_held", run_twice_held, 3, 1, 0, twice_held_mutants, NULL},
	{"twice_held_shortly", run_twice_held_shortly, 3, 1, 0, twice_held_shortly_mutants, NULL},
	{"twice_unfenced", run_twice_unfenced, 3, 1, 0, twice_unfenced_mutants, NULL},
	{"twice_guarded", run_twice_guarded, 3, 1, 0, twice_guarded_mutants, NULL},
	{"thrice_held", run_thrice_held, 1, 1, 0, thrice_held_mutants, NULL},
	{"plain_again", run_plain_again, 3, 1, 0, plain_again_mutants, NULL},
};

int main(void)
{
	model_start_fresh(); /* pages of free buffers are closed */
	return model_main("pool_misuse", cases, PIN_ARRAY_COUNT(cases));
}
