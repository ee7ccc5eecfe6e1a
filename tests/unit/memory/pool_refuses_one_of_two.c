/* SPDX-License-Identifier: MIT */
/*
 * Goal: of two threads that give back one handle in the same instant exactly
 * one is refused, in that call, with the name of the last holder; the other's
 * takes effect. BP-13, BP-23, W5, W8.
 * Method: rounds in which two threads leave a barrier together, each with a
 * copy of the handle, all ways round: whose cache it was taken from, or that
 * neither has one; the buffer is known to be shared, or not. After each round
 * the test checks the results, the message and the state, before any thread
 * takes the buffer again.
 */
#include "runtime/api/internal.h"
#include "tests/support/rounds.h"
#include "tests/support/users.h"

enum {
	ROUNDS = 8000, /* of each kind */
	ROUNDS_LEAST = 100,
	ROUNDS_SECONDS = 3,
	THREADS = 2,
	LIMIT_SECONDS = 100,
};

struct game {
	const char *what;
	bool is_attached[THREADS];
	const char *holder; /* as the message names it; the first takes it */
};

static const struct game games[] = {
	{"one has a cache", {true, false}, "worker 0"},
	{"both have one", {true, true}, "worker 0"},
	{"it was taken without", {false, true}, "a thread that is not attached"},
	{"none has one", {false, false}, "a thread that is not attached"},
};

static const struct game *game;
static struct pinion_pool *pool;
static pthread_barrier_t barrier;
static struct pin_atomic_u32 arrived; /* in the round, after the barrier */
static struct pinion_buffer taken;
static int results[THREADS];
static struct rounds rounds;
static bool is_over; /* by the first, between two barriers */

/* They are woken one after the other; from here they go together. */
static void meet(uint32_t round)
{
	pthread_barrier_wait(&barrier);
	pin_fetch_add_seq_cst_u32(&arrived, 1);
	while (pin_load_acquire_u32(&arrived) < (round + 1) * THREADS) {
		sched_yield();
	}
}

static void check_round(uint32_t round)
{
	int first = results[0];
	int second = results[1];
	struct pinion_pool_stats counters;
	char words[96];

	if ((first != 0 || second != -EALREADY) && (first != -EALREADY || second != 0)) {
		printf("%s: expected 0 and %d, got %d and %d\n", game->what, -EALREADY, first,
			second);
		expect_true("one is refused", false);
	}
	snprintf(words, sizeof(words), "buffer %u was given back before; taken last by %s",
		taken.index, game->holder);
	users_expect_said(words);
	expect_number("free once", users_info(pool).buffer_count, users_free(pool));
	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_number("each in its round", round + 1, (long long)counters.misuses);
}

/* The first one's cache is the first one. */
static void attach_in_turn(uint32_t number)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		if (i == number && game->is_attached[i]) {
			expect_number("attach", 0, pinion_pool_attach(pool));
		}
		pthread_barrier_wait(&barrier);
	}
}

static void *play(void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;

	attach_in_turn(number);
	for (uint32_t round = 0;; round++) {
		struct pinion_buffer copy;

		if (number == 0) {
			is_over = !rounds_go_on(&rounds, round);
			if (!is_over && round % 2 == 0) {
				users_forget_shared(pool);
			}
			taken = is_over ? taken : users_take(pool);
		}
		pthread_barrier_wait(&barrier);
		if (is_over) {
			break;
		}
		copy = taken;
		meet(round);
		results[number] = pinion_pool_release(pool, &copy);
		pthread_barrier_wait(&barrier);
		if (number == 0) {
			check_round(round);
		}
	}
	if (game->is_attached[number]) {
		expect_number("detach", 0, pinion_pool_detach(pool));
	}
	return NULL;
}

static void check(const struct game *chosen, uint32_t flags)
{
	struct pinion_pool_config config;
	pthread_t threads[THREADS];

	game = chosen;
	pin_store_relaxed_u32(&arrived, 0);
	users_config(&config, 1, 2, 2);
	config.flags = flags;
	pool = users_create(NULL, &config);
	runtimes_log[0] = '\0';
	rounds = rounds_begin(ROUNDS, ROUNDS_LEAST, ROUNDS_SECONDS);
	for (uint32_t i = 0; i < THREADS; i++) {
		expect_ready("thread",
			pthread_create(&threads[i], NULL, play, (void *)(uintptr_t)i) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("barrier", pthread_barrier_init(&barrier, NULL, THREADS) == 0);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(games); i++) {
		check(&games[i], 0);
		check(&games[i], PINION_POOL_GUARD);
	}
	pthread_barrier_destroy(&barrier);
	return expect_status();
}
