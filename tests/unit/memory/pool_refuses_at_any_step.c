/* SPDX-License-Identifier: MIT */
/*
 * Goal: a release in the midst of which another thread gives back the same
 * handle, or begins a request of the buffer, is distinguished from it: one of
 * the two is refused in its call, with a message. So is one in the midst of a
 * request's beginning. BP-13, BP-23, W5, W8.
 * Method: a thread acts instruction by instruction, by the processor's trap
 * flag. At the n-th the other thread acts, and it waits, unless the other waits
 * for it; n goes from the first instruction to the one after the last. The
 * waits of the other thread at some steps show that the method meets the moment
 * between the load and the store.
 */
#include "runtime/api/internal.h"
#include "tests/support/sanitized.h"
#include "tests/support/users.h"

#include <sched.h>
#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__)

enum {
	/* The other has had its turns, and is not done: it waits. */
	PATIENCE_NS = 20 * 1000 * 1000,
	LIMIT_SECONDS = 100,
};

static const long long trap_flag = 0x100;

enum order {
	NOTHING,
	ATTACH,
	DETACH,
	TAKE,
	GIVE,
	BORROW,
	BORROW_OWN,
	END_BORROW,
	END_OWN_BORROW,
	QUIT,
};

struct game {
	const char *what;
	bool is_holder; /* the stepping thread has a cache and took it; else the other */
	enum order own; /* the call done in steps */
	enum order other;
	bool has_to_wait;  /* the other, somewhere, where there is a short way */
	bool waits_always; /* there is one for this with all flags */
};

static const struct game games[] = {
	{"two releases, the holder's in steps", true, GIVE, GIVE, true, false},
	{"a request in a release by its holder", true, GIVE, BORROW, true, false},
	{"two releases, the other's in steps", false, GIVE, GIVE, false, false},
	{"a release in a request of the holder's", true, BORROW_OWN, GIVE, true, true},
	{"a request of the holder's in a release", false, GIVE, BORROW_OWN, false, false},
};

static struct pinion_pool *pool;
static struct pinion_buffer taken;
/* The other thread's. */
static struct pin_atomic_u32 order;
static int result;
/* The stepping thread's. */
static enum order order_on_step;
static volatile uint32_t step_count;
static volatile uint32_t last_step;
static volatile bool has_waited;

/* ---- the other thread ---- */

/* As a worker does that has not acquired it. */
static int borrow(uint32_t index)
{
	struct pin_entry *entry = &pool->pool.entries[index];
	enum pin_pool_borrowed borrowed = pin_pool_borrow(entry, PIN_POOL_OUTSIDE);

	while (borrowed == PIN_POOL_MUST_SHARE) {
		pin_pool_share(&pool->pool, index);
		borrowed = pin_pool_borrow(entry, PIN_POOL_OUTSIDE);
	}
	return borrowed == PIN_POOL_IS_BORROWED ? 0 : -EFAULT;
}

/* As a worker does that has acquired it, the holder of the only cache. */
static bool has_borrowed_own;

static int borrow_own(uint32_t index)
{
	struct pin_entry *entry = &pool->pool.entries[index];

	has_borrowed_own = pin_pool_borrow_own(&pool->pool.magazines[0], 0, entry);
	if (has_borrowed_own) {
		return 0;
	}
	return pin_pool_borrow(entry, 0) == PIN_POOL_IS_BORROWED ? 0 : -EFAULT;
}

static void end_own_borrow(uint32_t index)
{
	struct pin_entry *entry = &pool->pool.entries[index];

	if (has_borrowed_own) {
		pin_pool_end_own_borrow(entry);
	} else {
		pin_pool_end_borrow(entry);
	}
}

static int carry_out(uint32_t what)
{
	struct pinion_buffer copy = taken;

	switch (what) {
	case ATTACH:
		return pinion_pool_attach(pool);
	case DETACH:
		return pinion_pool_detach(pool);
	case TAKE:
		return pinion_pool_try_acquire(pool, &taken);
	case GIVE:
		return pinion_pool_release(pool, &copy);
	case BORROW:
		return borrow(copy.index);
	case BORROW_OWN:
		return borrow_own(copy.index);
	case END_OWN_BORROW:
		end_own_borrow(copy.index);
		return 0;
	case END_BORROW:
		pin_pool_end_borrow(&pool->pool.entries[copy.index]);
		return 0;
	default:
		return 0;
	}
}

static void *obey(void *arg)
{
	uint32_t what = NOTHING;

	while (what != QUIT) {
		what = pin_load_acquire_u32(&order);
		if (what == NOTHING) {
			sched_yield();
			continue;
		}
		result = carry_out(what);
		pin_store_release_u32(&order, NOTHING);
	}
	return arg;
}

static int await_answer(void)
{
	while (pin_load_acquire_u32(&order) != NOTHING) {
		sched_yield();
	}
	return result;
}

static int ask(enum order what)
{
	pin_store_release_u32(&order, what);
	return await_answer();
}

/* It may wait for the thread that asks. */
static void ask_in_midst(enum order what)
{
	uint64_t end_ns = pin_host_linux.now_ns() + PATIENCE_NS;

	pin_store_release_u32(&order, what);
	while (pin_load_acquire_u32(&order) != NOTHING) {
		if (pin_host_linux.now_ns() >= end_ns) {
			has_waited = true;
			return;
		}
		sched_yield();
	}
}

/* ---- in steps ---- */

static void on_step(int signal_number, siginfo_t *information, void *context)
{
	ucontext_t *interrupted = context;

	(void)signal_number;
	(void)information;
	step_count++;
	if (step_count == last_step) {
		ask_in_midst(order_on_step);
		/* The rest of it at once. */
		interrupted->uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
	}
}

static long long get_flags(void)
{
	return (long long)__builtin_ia32_readeflags_u64();
}

static void set_flags(long long flags)
{
	__builtin_ia32_writeeflags_u64((unsigned long long)flags);
}

/* Steps are counted until it has returned. */
static __attribute__((noinline)) int act_in_steps(enum order what, struct pinion_buffer *buffer)
{
	int rc;

	set_flags(get_flags() | trap_flag);
	rc = what == BORROW_OWN ? borrow_own(buffer->index) : pinion_pool_release(pool, buffer);
	set_flags(get_flags() & ~trap_flag);
	return rc;
}

/* A release, whichever side's, and a request, which one of them has. */
static void expect_one(const struct game *game, uint64_t known, int rc)
{
	bool is_own_release = game->own == GIVE;
	int released = is_own_release ? rc : result;
	int borrowed = is_own_release ? result : rc;

	expect_true("one is refused", (released == -EBUSY) == (borrowed == 0));
	expect_number("counted", (long long)known + (released != 0),
		(long long)users_counters(pool).misuses);
	if (released == 0) {
		return;
	}
	if (is_own_release) {
		ask(game->other == BORROW ? END_BORROW : END_OWN_BORROW);
	} else {
		end_own_borrow(taken.index);
	}
	if (game->is_holder) {
		users_give(pool, &taken);
	} else {
		expect_number("given back", 0, ask(GIVE));
	}
}

/* False: it ended before that step. */
static bool play_round(const struct game *game, uint32_t step)
{
	uint64_t known = users_counters(pool).misuses;
	struct pinion_buffer copy;
	int rc;

	users_forget_shared(pool);
	if (game->is_holder) {
		taken = users_take(pool);
	} else {
		expect_number("take", 0, ask(TAKE));
	}
	copy = taken;
	step_count = 0;
	last_step = step;
	rc = act_in_steps(game->own, &copy);
	if (step_count < step) {
		ask(game->other);
	}
	await_answer();
	if (game->own != GIVE || game->other != GIVE) {
		expect_one(game, known, rc);
	} else {
		expect_true("one is refused", (rc == 0) != (result == 0));
		expect_number("as given back", -EALREADY, rc + result);
		expect_number(
			"counted", (long long)known + 1, (long long)users_counters(pool).misuses);
	}
	expect_number("free once", 1, users_free(pool));
	return step_count >= step;
}

static void play(const struct game *game, uint32_t flags)
{
	struct pinion_pool_config config;
	uint32_t waited_count = 0;
	uint32_t step = 1;
	bool goes_on = true;

	users_config(&config, 1, 2, 1);
	config.flags = flags;
	pool = users_create(NULL, &config);
	order_on_step = game->other;
	expect_number("attach", 0, game->is_holder ? pinion_pool_attach(pool) : ask(ATTACH));
	while (goes_on) {
		has_waited = false;
		goes_on = play_round(game, step);
		waited_count += has_waited;
		step += goes_on;
	}
	printf("%s, flags %u: %u steps, waited at %u\n", game->what, flags, step - 1, waited_count);
	expect_true("more than a few steps", step > 10);
	/* On a busy machine it may seem to wait where it does not. */
	expect_true("the other had to wait, where there is a short way",
		waited_count > 0 || !game->has_to_wait || (flags != 0 && !game->waits_always));
	expect_number("detach", 0, game->is_holder ? pinion_pool_detach(pool) : ask(DETACH));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

int main(void)
{
	static const uint32_t flags[] = {0, PINION_POOL_GUARD};
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
	pthread_t thread;

	if (SANITIZED_BUILD) {
		printf("skipped: a sanitizer has locks between the steps\n");
		return EXPECT_SKIPPED;
	}
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("handler", sigaction(SIGTRAP, &action, NULL) == 0);
	expect_ready("thread", pthread_create(&thread, NULL, obey, NULL) == 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(games); i++) {
		for (size_t j = 0; j < PIN_ARRAY_COUNT(flags); j++) {
			play(&games[i], flags[j]);
		}
	}
	ask(QUIT);
	pthread_join(thread, NULL);
	return expect_status();
}

#else

int main(void)
{
	printf("only x86-64 gives the trap flag to programs\n");
	return EXPECT_SKIPPED;
}

#endif
