/* SPDX-License-Identifier: MIT */
/*
 * Goal: with PINION_POOL_EXACT, and so with PINION_POOL_GUARD, a release in the
 * midst of which another thread gives back the same handle, or begins a request
 * of the buffer, is told apart from it: one of the two is refused in its call,
 * and told of. Without, some steps let both pass; the next to take the buffer,
 * or the request's end, is told then, and the buffer is had by one. BP-13,
 * BP-23, W8.
 * Method: a thread gives back instruction by instruction, by the processor's
 * trap flag. At the n-th the other thread acts, and it waits; n goes from the
 * first to behind the last. That without the flag both pass somewhere is what
 * shows that the method would see it.
 */
#include "runtime/core/buffers.h"
#include "tests/support/sanitized.h"
#include "tests/support/users.h"

#include <sched.h>
#include <signal.h>
#include <ucontext.h>

#if defined(__x86_64__)

enum {
	LIMIT_SECONDS = 100,
};

static const long long trap_flag = 0x100;

enum order {
	NOTHING,
	ATTACH,
	DETACH,
	TAKE,
	GIVE,
	LEND,
	UNLEND,
	QUIT,
};

struct game {
	const char *what;
	bool is_holder; /* who steps has a cache and took it; else the other */
	enum order other;
	bool may_both_pass; /* in a pool that is not exact */
};

static const struct game games[] = {
	{"two releases, the holder's in steps", true, GIVE, true},
	{"a request in a release by its holder", true, LEND, true},
	{"two releases, the other's in steps", false, GIVE, false},
};

static struct pinion_pool *pool;
static struct pinion_buffer taken;
/* The other thread's. */
static struct pin_atomic_u32 order;
static int result;
static uint32_t generation;
/* The stepping thread's. */
static enum order order_on_step;
static volatile uint32_t step_count;
static volatile uint32_t last_step;

/* ---- the other thread ---- */

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
	case LEND:
		return pin_pool_lend(&pool->pool.entries[copy.index], &generation) ? 0 : -EFAULT;
	case UNLEND:
		return pin_pool_unlend(&pool->pool.entries[copy.index], generation) ? 0 : -EFAULT;
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

static int ask(enum order what)
{
	pin_store_release_u32(&order, what);
	while (pin_load_acquire_u32(&order) != NOTHING) {
		sched_yield();
	}
	return result;
}

/* ---- in steps ---- */

static void on_step(int signal_number, siginfo_t *information, void *context)
{
	ucontext_t *interrupted = context;

	(void)signal_number;
	(void)information;
	step_count++;
	if (step_count == last_step) {
		ask(order_on_step);
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
static __attribute__((noinline)) int release_in_steps(struct pinion_buffer *buffer)
{
	int rc;

	set_flags(get_flags() | trap_flag);
	rc = pinion_pool_release(pool, buffer);
	set_flags(get_flags() & ~trap_flag);
	return rc;
}

/* The buffer is free twice, or its request has no count. */
static void check_told_late(const struct game *game)
{
	struct pinion_buffer buffer;
	struct pinion_buffer none = {NULL, 0, 0};

	if (game->other == LEND) {
		expect_number("its end finds out", -EFAULT, ask(UNLEND));
		return;
	}
	buffer = users_take(pool);
	expect_number("had by one", -EAGAIN, pinion_pool_try_acquire(pool, &none));
	users_expect_said("was given back twice at the same time");
	users_give(pool, &buffer);
}

/* False: it ended before that step; `*io_both` counts rounds both passed in. */
static bool play_round(const struct game *game, uint32_t step, uint32_t *io_both)
{
	uint64_t known = users_counters(pool).misuses;
	struct pinion_buffer copy;
	int rc;

	if (game->is_holder) {
		taken = users_take(pool);
	} else {
		expect_number("take", 0, ask(TAKE));
	}
	copy = taken;
	step_count = 0;
	last_step = step;
	rc = release_in_steps(&copy);
	if (step_count < step) {
		ask(game->other);
	}
	if (rc == 0 && result == 0) {
		++*io_both;
		check_told_late(game);
	} else if (game->other == LEND) {
		expect_true("one is refused", (rc == -EBUSY) == (result == 0));
		expect_number("counted", (long long)known + (rc != 0),
			(long long)users_counters(pool).misuses);
		if (rc != 0) {
			expect_number("the request's end", 0, ask(UNLEND));
			users_give(pool, &copy);
		}
	} else {
		expect_true("one is refused", (rc == 0) != (result == 0));
		expect_number("as given back", -EALREADY, rc + result);
		expect_number(
			"counted", (long long)known + 1, (long long)users_counters(pool).misuses);
	}
	expect_number("free once", 1, pinion_pool_available(pool));
	return step_count >= step;
}

static void play(const struct game *game, uint32_t flags)
{
	bool is_exact = (flags & (PINION_POOL_EXACT | PINION_POOL_GUARD)) != 0;
	struct pinion_pool_config config;
	uint32_t both_count = 0;
	uint32_t step = 1;

	users_config(&config, 1, 2, 1);
	config.flags = flags;
	pool = users_create(NULL, &config);
	order_on_step = game->other;
	expect_number("attach", 0, game->is_holder ? pinion_pool_attach(pool) : ask(ATTACH));
	while (play_round(game, step, &both_count)) {
		step++;
	}
	printf("%s, flags %u: %u steps, both passed at %u\n", game->what, flags, step - 1,
		both_count);
	expect_true("more than a few steps", step > 10);
	expect_true("both passed somewhere, in such a pool only",
		(both_count > 0) == (game->may_both_pass && !is_exact));
	expect_number("detach", 0, game->is_holder ? pinion_pool_detach(pool) : ask(DETACH));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

int main(void)
{
	static const uint32_t flags[] = {0, PINION_POOL_EXACT, PINION_POOL_GUARD};
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
