/* SPDX-License-Identifier: MIT */
/*
 * Goal: of a release and the beginning of a request at once one is refused in
 * its call, for each pair of threads; no request is counted for another use,
 * and none is forgotten. [POOL-2] [POOL-3] [POOL-4]. BP-21, W4, W5.
 * Method: one thread gives back a buffer that a request of the other uses, by
 * each pair of ways; tests/model/memory/pool_books.h lists the checks.
 */
#include "runtime/base/base.h"
#include "tests/model/memory/pool_givers.h"

#include <errno.h>

/* ---- requests ---- */

static bool was_borrowed;

static enum pin_pool_borrowed borrow(uint32_t magazine)
{
	struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];
	enum pin_pool_borrowed borrowed = pool_model_borrow(entry, magazine);

	while (borrowed == PIN_POOL_MUST_SHARE) {
		pin_pool_share(&pool_books.pool, pool_books.held.index);
		borrowed = pool_model_borrow(entry, magazine);
	}
	return borrowed;
}

/* As workers do: the short way first, if they have one. */
static enum pin_pool_borrowed borrow_as_worker(uint32_t magazine)
{
	struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];

	return magazine != PIN_POOL_OUTSIDE &&
			pool_model_borrow_own(&pool_books.pool, magazine, entry)
		? PIN_POOL_IS_BORROWED_OWN
		: borrow(magazine);
}

static void end_borrow(enum pin_pool_borrowed borrowed)
{
	struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];

	if (borrowed == PIN_POOL_IS_BORROWED_OWN) {
		pin_pool_end_own_borrow(entry);
	} else {
		pin_pool_end_borrow(entry);
	}
}

static void use_for_request(uint32_t magazine)
{
	const struct pin_entry *entry = &pool_books.pool.entries[pool_books.held.index];
	enum pin_pool_borrowed borrowed = borrow_as_worker(magazine);
	uint64_t state = entry->state.value;

	was_borrowed = borrowed != PIN_POOL_IS_FREE;
	if (was_borrowed) {
		model_point();
		/* No thread ends the use while it lasts. */
		MODEL_CHECK((uint32_t)entry->state.value == (uint32_t)state);
		end_borrow(borrowed);
	}
}

static void borrow_outside(void *arg)
{
	(void)arg;
	use_for_request(PIN_POOL_OUTSIDE);
}

static bool has_requests(void)
{
	return (pool_books.pool.entries[0].state.value & PIN_ENTRY_REQUESTS_MASK) != 0 ||
		pin_entry_has_own(pool_books.pool.entries[0].holder.value);
}

/* One was refused if it is not given back; nothing is left of requests. */
static void end_told(void)
{
	MODEL_CHECK(pool_books.pool.misuses.value == 1 - given_count);
	MODEL_CHECK(pin_pool_count(&pool_books.pool) == given_count);
	MODEL_CHECK(!has_requests());
	if (given_count == 1) {
		pool_books_settle(&pool_books.held);
	}
	pool_books_end(NULL, 0, 1 - given_count);
}

/* ---- one gives back what a request has for a moment ---- */

/* Its caller learns exactly the outcome: given back, or refused and kept. */
static void run_borrowed_held(void)
{
	take_held(0);
	run_both(give_as_holder, borrow_outside);
	MODEL_CHECK(given_count == 1 || was_borrowed);
	end_told();
}

static void run_borrowed(void)
{
	begin_plain();
	run_borrowed_held();
}

static void run_borrowed_guarded(void)
{
	begin_guarded();
	run_borrowed_held();
}

/* ---- another gives back what a request of its holder has for a moment ---- */

static struct pin_atomic_u64 content;
static uint64_t seen_content;

static void use_as_holder(void *arg)
{
	use_for_request(0);
	(void)arg;
}

static void use_twice_as_holder(void *arg)
{
	enum pin_pool_borrowed first = borrow_as_worker(0);

	use_as_holder(arg);
	if (first != PIN_POOL_IS_FREE) {
		end_borrow(first);
	}
	was_borrowed = first != PIN_POOL_IS_FREE;
}

/* The kernel writes into it until the request's end. */
static void fill_as_holder(void *arg)
{
	enum pin_pool_borrowed borrowed = borrow_as_worker(0);

	(void)arg;
	was_borrowed = borrowed != PIN_POOL_IS_FREE;
	if (was_borrowed) {
		pin_store_relaxed_u64(&content, 1);
		end_borrow(borrowed);
	}
}

static void give_and_look(void *arg)
{
	give_again(arg);
	seen_content = pin_load_relaxed_u64(&content);
}

/* Either it is given back, or the request is begun; the other is refused. */
static void run_own_held(void (*one)(void *), void (*other)(void *))
{
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	pin_store_relaxed_u64(&content, 0);
	model_quiet_end();
	run_both(one, other);
	MODEL_CHECK(given_count == 1 || was_borrowed);
	end_told();
}

static void run_own(void)
{
	begin_plain();
	run_own_held(use_as_holder, give_again);
}

/* As one of two does, after the other: the short way is open to it then. */
static void share_and_give_shortly(void *arg)
{
	pin_pool_share(&pool_books.pool, pool_books.held.index);
	give_again_shortly(arg);
}

static void run_own_shared(void)
{
	begin_plain();
	run_own_held(use_as_holder, share_and_give_shortly);
}

static void run_own_unfenced(void)
{
	begin_unfenced();
	run_own_held(use_as_holder, give_again);
}

static void run_own_guarded(void)
{
	begin_guarded();
	run_own_held(use_as_holder, give_again);
}

static void run_own_twice(void)
{
	begin_plain();
	run_own_held(use_twice_as_holder, give_again);
}

static void run_own_filled(void)
{
	begin_plain();
	run_own_held(fill_as_holder, give_and_look);
	MODEL_CHECK(given_count == 0 || !was_borrowed || seen_content == 1);
}

/* One of its own and one of another's: it goes back after both. */
static void use_and_give(void *arg)
{
	enum pin_pool_borrowed borrowed = borrow_as_worker(0);

	MODEL_CHECK(borrowed != PIN_POOL_IS_FREE);
	MODEL_CHECK(!give_held());
	end_borrow(borrowed);
	give_as_holder(arg);
}

static void run_own_and_outside(void)
{
	uint64_t misuses;

	begin_plain();
	take_held(0);
	run_both(use_and_give, borrow_outside);
	MODEL_CHECK(given_count == 1 || was_borrowed);
	MODEL_CHECK(!has_requests());
	misuses = 2 - given_count;
	if (given_count == 1) {
		pool_books_settle(&pool_books.held);
	}
	pool_books_end(NULL, 0, misuses);
}

/* ---- a request of a buffer that is another's by then ---- */

static void take_and_give(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	MODEL_CHECK(pool_books_acquire(0, &buffer));
	MODEL_CHECK(borrow(0) == PIN_POOL_IS_BORROWED);
	MODEL_CHECK(pin_pool_release(&pool_books.pool, 0, &buffer) == -EBUSY);
	pin_pool_end_borrow(&pool_books.pool.entries[0]);
}

/* It counts for the next use, or it does not begin; no count is lost. */
static void run_borrowed_free(void)
{
	begin_plain();
	pool_books.held.index = 0;
	run_both(take_and_give, borrow_outside);
	MODEL_CHECK(!has_requests());
	pool_books_end(NULL, 0, 1);
}

static void take_then_give_shortly(void *arg)
{
	MODEL_CHECK(pool_books_acquire(0, &pool_books.held));
	give_as_holder(arg);
}

static void borrow_as_first(void *arg)
{
	(void)arg;
	use_for_request(1);
}

/* What another had before, so its own magazine is the last one known of. */
static void run_borrowed_next(void)
{
	struct pinion_buffer buffer;

	pool_books_begin(1, 2, 1, 2);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(1, &buffer));
	pool_books_release(PIN_POOL_OUTSIDE, &buffer);
	pool_books.pool.entries[0].state.value &= UINT32_MAX;
	model_quiet_end();
	run_both(take_then_give_shortly, borrow_as_first);
	end_told();
}

/*
 * Its acquirer hands it over, and has a pointer to it still: a request of that
 * thread begins before that, or after it.
 */
static void claim_and_give(void *arg)
{
	pin_pool_claim(&pool_books.pool, 0, &pool_books.held);
	give_as_holder(arg);
}

static void run_borrowed_claimed(void)
{
	pool_books_begin(1, 2, 1, 2);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(pool_books_acquire(1, &pool_books.held));
	pin_pool_disclaim(&pool_books.pool, &pool_books.held);
	/* It was robbed of it; its short way is open again. */
	pool_books.pool.magazines[0].thief.value = 0;
	pool_books.pool.magazines[1].thief.value = 0;
	model_quiet_end();
	run_both(claim_and_give, borrow_as_first);
	end_told();
}

static const struct model_mutant borrowed_mutants[] = {
	{"no thread ends its holder's plain stores",
		{MODEL_SKIP, "pin_pool_borrow", "pin_pool_must_share"}},
	{"no thread waits for the holder",
		{MODEL_SKIP, "await_holder", "pin_magazine_await_owner"}},
	{"the beginning of a request is no single step", {MODEL_TORN, "pin_pool_borrow", NULL}},
	{.name = NULL},
};

static const struct model_mutant borrowed_guarded_mutants[] = {
	{"it asks anew why it failed", {MODEL_LATE, "pin_pool_release", "pin_pool_check_explain"}},
	{.name = NULL},
};

static const struct model_mutant borrowed_free_mutants[] = {
	{"the beginning of a request is no single step", {MODEL_TORN, "pin_pool_borrow", NULL}},
	{"the end of a request is no single step", {MODEL_TORN, "pin_pool_end_borrow", NULL}},
	{.name = NULL},
};

static const struct model_mutant borrowed_next_mutants[] = {
	{"its holder is not known with its use", {MODEL_RELAXED, "pin_pool_hand_out", NULL}},
	{.name = NULL},
};

static const struct model_mutant borrowed_claimed_mutants[] = {
	{"it is not shared when it changes hands",
		{MODEL_SKIP, "pin_pool_disclaim", "PIN_ENTRY_SHARED"}},
	{.name = NULL},
};

static const struct model_mutant own_mutants[] = {
	{"the holder does not say that it is inside",
		{MODEL_SKIP, "pin_pool_borrow_own", "pin_magazine_enter"}},
	{"no thread ends its holder's plain stores",
		{MODEL_SKIP, "end_use", "pin_pool_must_share"}},
	{"no thread waits for the holder",
		{MODEL_SKIP, "await_holder", "pin_magazine_await_owner"}},
	{"the holder need not have seen it", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"no check of the holder's requests", {MODEL_SKIP, "end_use", "pin_entry_has_own"}},
	{.name = NULL},
};

static const struct model_mutant own_shared_mutants[] = {
	{"no check of the holder's requests",
		{MODEL_SKIP, "pin_pool_release_listed", "pin_entry_has_own"}},
	{.name = NULL},
};

static const struct model_mutant own_unfenced_mutants[] = {
	{"the request goes the short way all the same",
		{MODEL_SKIP, "pool_model_borrow_own", "pin_magazine_is_fenced"}},
	{.name = NULL},
};

static const struct model_mutant own_guarded_mutants[] = {
	{"no thread waits for the holder",
		{MODEL_SKIP, "await_holder", "pin_magazine_await_owner"}},
	{.name = NULL},
};

static const struct model_mutant own_twice_mutants[] = {
	{"no check of the holder's requests", {MODEL_SKIP, "end_use", "pin_entry_has_own"}},
	{.name = NULL},
};

static const struct model_mutant own_filled_mutants[] = {
	{"the request's end may be seen before what it has read",
		{MODEL_RELAXED, "pin_pool_end_own_borrow", NULL}},
	{.name = NULL},
};

static const struct model_mutant own_and_outside_mutants[] = {
	{"the holder does not look for its own",
		{MODEL_SKIP, "pin_pool_release_own", "PIN_ENTRY_OWN"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"borrowed", run_borrowed, 3, 1, 0, borrowed_mutants, NULL},
	{"borrowed_guarded", run_borrowed_guarded, 3, 1, 0, borrowed_guarded_mutants, NULL},
	{"borrowed_free", run_borrowed_free, 3, 1, 0, borrowed_free_mutants, NULL},
	{"borrowed_next", run_borrowed_next, 3, 1, 0, borrowed_next_mutants, NULL},
	{"borrowed_claimed", run_borrowed_claimed, 3, 1, 0, borrowed_claimed_mutants, NULL},
	{"own", run_own, 3, 1, 0, own_mutants, NULL},
	{"own_shared", run_own_shared, 3, 1, 0, own_shared_mutants, NULL},
	{"own_unfenced", run_own_unfenced, 3, 1, 0, own_unfenced_mutants, NULL},
	{"own_guarded", run_own_guarded, 3, 1, 0, own_guarded_mutants, NULL},
	{"own_twice", run_own_twice, 3, 1, 0, own_twice_mutants, NULL},
	{"own_filled", run_own_filled, 3, 1, 0, own_filled_mutants, NULL},
	{"own_and_outside", run_own_and_outside, 3, 1, 0, own_and_outside_mutants, NULL},
};

int main(void)
{
	model_start_fresh(); /* pages of free buffers are closed */
	return model_main("pool_borrowing", cases, PIN_ARRAY_COUNT(cases));
}
