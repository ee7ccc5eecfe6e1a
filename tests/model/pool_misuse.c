/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer that is given back twice, or while a request has it, is had by
 * one still, and told of: to the second of two callers, or to whoever comes
 * upon it. BP-21, W4, W5.
 * Method: two threads give back the same, by each pair of ways;
 * tests/model/pool_books.h says what is checked.
 */
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/model/pool_books.h"

#include <errno.h>

static uint32_t given_count;

/* One buffer, in pages of its own; one magazine. */
static void begin_with(uint32_t flags)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct pin_pool_region region = {.memory = page, .buffer_count = 1};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = sizeof(page),
		.magazine_count = 1,
		.magazine_capacity = 1,
		.seeded_count = 1,
		.node_count = 1,
		.flags = flags,
		.regions = &region,
		.region_count = 1,
	};

	pool_books_begin_with(&setup);
}

static void run_both(void (*one)(void *), void (*other)(void *))
{
	uint32_t threads[2];

	threads[0] = model_thread_start("one", one, NULL);
	threads[1] = model_thread_start("other", other, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
}

/* ---- two give back the same ---- */

static void give_again(void *arg)
{
	(void)arg;
	given_count += pin_pool_release(&pool_books.pool, PIN_POOL_OUTSIDE, &pool_books.held) == 0;
}

static void give_again_shortly(void *arg)
{
	(void)arg;
	given_count += pool_books_release_shortly(PIN_POOL_OUTSIDE, &pool_books.held) ||
		pin_pool_release(&pool_books.pool, PIN_POOL_OUTSIDE, &pool_books.held) == 0;
}

static void run_twice_by(void (*give)(void *))
{
	pool_books_begin(1, 1, 1, 0);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(PIN_POOL_OUTSIDE, &pool_books.held));
	model_quiet_end();
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

static void give_as_holder(void *arg)
{
	(void)arg;
	given_count += pool_books_release_shortly(0, &pool_books.held) ||
		pin_pool_release(&pool_books.pool, 0, &pool_books.held) == 0;
}

/*
 * Its holder, by the way without a locked instruction, and another. Both may be
 * told that it went well; whoever comes upon it the second time finds out.
 */
static void run_twice_held(void)
{
	pool_books_begin(1, 1, 1, 1);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	run_both(give_as_holder, give_again);
	MODEL_CHECK(given_count >= 1);
	pool_books_settle(&pool_books.held);
	pool_books_end(NULL, 0, 1);
}

/* In a pool that is exact one is refused, before anybody takes the buffer. */
static void run_twice_by_flags(uint32_t flags)
{
	begin_with(flags);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	run_both(give_as_holder, give_again);
	MODEL_CHECK(given_count == 1);
	MODEL_CHECK(pool_books.pool.misuses.value == 1);
	pool_books_settle(&pool_books.held);
	pool_books_end(NULL, 0, 1);
}

static void run_twice_guarded(void)
{
	run_twice_by_flags(PIN_POOL_GUARD);
}

static void run_twice_exact(void)
{
	run_twice_by_flags(PIN_POOL_EXACT);
}

/* ---- one gives back what a request has for a moment ---- */

static bool was_left; /* given back before the request's end */

static void lend_shortly(void *arg)
{
	struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];
	uint32_t generation;

	(void)arg;
	if (!pin_pool_lend(entry, &generation)) {
		return;
	}
	if (model_is_spoilt(MODEL_SKIP, __func__, "generation")) {
		model_point();
		generation = (uint32_t)entry->state.value;
	}
	was_left = !pin_pool_unlend(entry, generation);
}

static void run_lent_to(void)
{
	given_count = 0;
	was_left = false;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	run_both(give_as_holder, lend_shortly);
	MODEL_CHECK(pool_books.pool.misuses.value == 1 - given_count);
	MODEL_CHECK(pin_pool_count(&pool_books.pool) == given_count);
	MODEL_CHECK(pool_books.pool.entries[pool_books.held.index].state.value >> 32 == 0);
	if (given_count == 1) {
		pool_books_settle(&pool_books.held);
	}
	pool_books_end(NULL, 0, 1 - given_count);
}

/* It is told of exactly what happened: given back, or refused and kept. */
static void run_lent_by_flags(uint32_t flags)
{
	begin_with(flags);
	run_lent_to();
	MODEL_CHECK(!was_left);
}

static void run_lent(void)
{
	run_lent_by_flags(PIN_POOL_GUARD);
}

static void run_lent_exact(void)
{
	run_lent_by_flags(PIN_POOL_EXACT);
}

/*
 * In other pools the holder may give it back by what it saw before. It is not
 * the kernel's for ever then, nor in use.
 */
static void run_lent_shortly(void)
{
	pool_books_begin(1, 1, 1, 1);
	run_lent_to();
}

/* ---- a request of what is another's by then ---- */

static void use_in_request(void)
{
	struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];
	struct pinion_buffer buffer;
	uint32_t generation;

	MODEL_CHECK(pool_books_acquire(0, &buffer));
	MODEL_CHECK(pin_pool_lend(entry, &generation));
	MODEL_CHECK(pin_pool_release(&pool_books.pool, 0, &buffer) == -EBUSY);
	MODEL_CHECK(pin_pool_unlend(entry, generation));
}

static void take_and_use(void *arg)
{
	(void)arg;
	use_in_request();
}

/* The one that begins while it is free does not end the next user's. */
static void run_lent_free(void)
{
	pool_books_begin(1, 1, 1, 1);
	pool_books.held.index = 0;
	run_both(take_and_use, lend_shortly);
	MODEL_CHECK(pool_books.pool.entries[0].state.value == 1);
	pool_books_end(NULL, 0, 1);
}

static void give_then_use(void *arg)
{
	give_as_holder(arg);
	if (given_count == 1) {
		pool_books_settle(&pool_books.held);
		use_in_request();
	}
}

/* Nor does one that began as it was given back. */
static void run_lent_next(void)
{
	pool_books_begin(1, 1, 1, 1);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	model_quiet_end();
	run_both(give_then_use, lend_shortly);
	MODEL_CHECK(pool_books.pool.entries[0].state.value >> 32 == 0);
	pool_books_end(NULL, 0, 1);
}

static const struct model_twin twice_shortly_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release_listed", NULL}},
	{.name = NULL},
};

static const struct model_twin twice_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release", NULL}},
	{.name = NULL},
};

static const struct model_twin twice_held_twins[] = {
	{"nobody looks whether it is in use", {MODEL_SKIP, "pin_pool_acquire", "pin_pool_is_used"}},
	{.name = NULL},
};

static const struct model_twin twice_guarded_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release", NULL}},
	{"its holder goes the shortest way",
		{MODEL_SKIP, "pool_model_has_short_way", "pin_pool_has_short_way"}},
	{.name = NULL},
};

static const struct model_twin twice_exact_twins[] = {
	{"its holder's is no single step", {MODEL_TORN, "pin_pool_release_own_exactly", NULL}},
	{"its holder's is by plain stores",
		{MODEL_SKIP, "pool_model_release_shortly", "pin_pool_is_exact"}},
	{.name = NULL},
};

static const struct model_twin lent_exact_twins[] = {
	{"its holder's is no single step", {MODEL_TORN, "pin_pool_release_own_exactly", NULL}},
	{"its holder's is by plain stores",
		{MODEL_SKIP, "pool_model_release_shortly", "pin_pool_is_exact"}},
	{"the beginning of a request is no single step", {MODEL_TORN, "pin_pool_lend", NULL}},
	{.name = NULL},
};

static const struct model_twin lent_twins[] = {
	{"it asks anew why it failed", {MODEL_LATE, "pin_pool_release", "pin_misuse_explain"}},
	{.name = NULL},
};

static const struct model_twin lent_shortly_twins[] = {
	{"the end of a request is no single step", {MODEL_TORN, "pin_pool_unlend", NULL}},
	{.name = NULL},
};

static const struct model_twin lent_free_twins[] = {
	{"the beginning of a request is no single step", {MODEL_TORN, "pin_pool_lend", NULL}},
	{.name = NULL},
};

static const struct model_twin lent_next_twins[] = {
	{"it ends in whichever use there is", {MODEL_SKIP, "lend_shortly", "generation"}},
	{"the end of a request is no single step", {MODEL_TORN, "pin_pool_unlend", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"twice", run_twice, 3, 1, 0, twice_twins, NULL},
	{"twice_shortly", run_twice_shortly, 3, 1, 0, twice_shortly_twins, NULL},
	{"twice_held", run_twice_held, 3, 1, 0, twice_held_twins, NULL},
	{"twice_guarded", run_twice_guarded, 3, 1, 0, twice_guarded_twins, NULL},
	{"twice_exact", run_twice_exact, 3, 1, 0, twice_exact_twins, NULL},
	{"lent", run_lent, 3, 1, 0, lent_twins, NULL},
	{"lent_exact", run_lent_exact, 3, 1, 0, lent_exact_twins, NULL},
	{"lent_shortly", run_lent_shortly, 3, 1, 0, lent_shortly_twins, NULL},
	{"lent_free", run_lent_free, 3, 1, 0, lent_free_twins, NULL},
	{"lent_next", run_lent_next, 3, 1, 0, lent_next_twins, NULL},
};

int main(void)
{
	return model_main("pool_misuse", cases, PIN_ARRAY_COUNT(cases));
}
