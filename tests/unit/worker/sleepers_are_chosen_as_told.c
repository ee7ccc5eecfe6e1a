/* SPDX-License-Identifier: MIT */
/*
 * Goal: a wake reaches the worker that `wake_policy` says: `near` the same L2,
 * L3 and node as the waker, then nodes by their distance; `lowest` and wakers
 * from outside the first one; `rotate` the next one round, so that all take
 * part. Of those in one L3, and there only, a worker that sleeps on its futex
 * comes before one in its ring. C6, W13, W30, W31, EX-50, AS-25. Hazard that
 * others met: a busy worker is woken in place of a sleeping one.
 * Method: workers without threads on an imagined machine, of which some are put
 * into the sets of sleepers; each wake is read from the workers' words. Cases
 * by hand; then random ones, against rules that check each worker.
 */
#include "runtime/worker/wake.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <stdlib.h>

enum {
	NODES = 3,
	L3S = 2 * NODES, /* two on each node */
	L2S = 2 * L3S,
	WORKERS = 3 * L2S,
	OUTSIDE = WORKERS,
	NOBODY = WORKERS,
	MANY = 130, /* more than a word of the set has bits */
	ROUNDS = 20000,
};

enum sleep {
	AWAKE,
	ON_FUTEX,
	IN_RING,
};

static struct pin_shared shared;
static enum sleep sleeps[MANY];

static void futex_wake(struct pin_atomic_u32 *word, uint32_t count)
{
	(void)word;
	(void)count;
}

static const struct pin_host host = {.futex_wake = futex_wake};

/* ---- the machine: ranks are indices; node 1 is nearer to 2 than to 0 ---- */

static uint32_t l2_of(uint32_t index)
{
	return index / (WORKERS / L2S);
}

static uint32_t l3_of(uint32_t index)
{
	return index / (WORKERS / L3S);
}

static uint32_t node_of(uint32_t index)
{
	return index / (WORKERS / NODES);
}

static uint32_t distances_of[NODES * NODES] = {10, 30, 20, 30, 10, 20, 20, 20, 10};

static void start(uint32_t worker_count, uint32_t place_count)
{
	static uint32_t nodes[NODES] = {0, 1, 2};
	struct pin_node_distances distances = {NODES, nodes, distances_of};
	struct pin_cpu_place places[WORKERS];

	for (uint32_t i = 0; i < place_count; i++) {
		places[i] = (struct pin_cpu_place){
			.cpu_index = i,
			.core_index = i,
			.l2_index = l2_of(i),
			.l3_index = l3_of(i),
			.node_index = node_of(i),
		};
	}
	memset(&shared, 0, sizeof(shared));
	shared.host = &host;
	shared.worker_count = worker_count;
	shared.class_count = 1;
	expect_ready("victims",
		pin_victims_init(&shared.victims, &pin_host_linux, places, place_count,
			worker_count, &distances) == 0);
	shared.workers = aligned_alloc(PIN_CACHE_LINE, worker_count * sizeof(*shared.workers));
	expect_ready("memory", shared.workers != NULL);
	memset(shared.workers, 0, worker_count * sizeof(*shared.workers));
	for (uint32_t i = 0; i < worker_count; i++) {
		shared.workers[i].shared = &shared;
		shared.workers[i].worker_class = &shared.classes[0];
		shared.workers[i].index = i;
		pin_parker_init(&shared.workers[i].parker);
	}
	for (uint32_t i = 0; i < PIN_PARKED_SETS; i++) {
		pin_idle_init(&shared.classes[0].parked[i], worker_count);
	}
	memset(sleeps, 0, sizeof(sleeps));
}

static void end(void)
{
	pin_victims_fini(&shared.victims);
	free(shared.workers);
}

/*
 * Into the set, but not into the state of a sleeper: a doorbell would need a
 * ring.
 */
static void put(uint32_t index, enum sleep sleep)
{
	struct pin_worker_class *worker_class = &shared.classes[0];
	uint32_t rank = pin_victims_rank(&shared.victims, index);

	for (int i = 0; i < PIN_PARKED_SETS; i++) {
		(void)pin_idle_withdraw(&worker_class->parked[i], rank);
	}
	if (sleep != AWAKE) {
		(void)pin_idle_publish(&worker_class->parked[sleep == ON_FUTEX ? PIN_PARKED_FUTEX
									       : PIN_PARKED_RING],
			rank);
	}
	sleeps[index] = sleep;
}

/*
 * Which worker is woken; the waker counts it as a searcher, which it is no more
 * then.
 */
static uint32_t wake(uint32_t waker)
{
	uint32_t told = NOBODY;

	pin_worker_self = waker == OUTSIDE ? NULL : &shared.workers[waker];
	pin_wake_one(&shared, pin_worker_self);
	for (uint32_t i = 0; i < shared.worker_count; i++) {
		if (pin_exchange_acq_rel_u32(&shared.workers[i].parker.state, PIN_RUNNING) ==
			PIN_NOTIFIED) {
			expect_number("woken, of several", NOBODY, told);
			told = i;
			sleeps[i] = AWAKE;
		}
	}
	expect_number("counted as a searcher", told != NOBODY,
		pin_exchange_acq_rel_u32(&shared.classes[0].searching, 0));
	return told;
}

static void expect_wake(const char *what, uint32_t expected, uint32_t waker)
{
	expect_number(what, expected, wake(waker));
}

/* ---- by hand ---- */

static void check_near(void)
{
	start(WORKERS, WORKERS);
	shared.tuning.wake_policy = PINION_WAKE_NEAR;
	/* Worker 13 is in L2 4, with 12 and 14; in L3 2, to 17; in node 1. */
	put(0, ON_FUTEX);
	put(24, ON_FUTEX);
	put(23, IN_RING);
	put(20, ON_FUTEX);
	put(12, IN_RING);
	put(14, ON_FUTEX);
	put(16, ON_FUTEX);
	put(17, IN_RING);
	expect_wake("same L2, on its futex", 14, 13);
	expect_wake("same L3, on its futex", 16, 13);
	expect_wake("same L2, in its ring", 12, 13);
	expect_wake("same L3, in its ring", 17, 13);
	expect_wake("same node, on its futex", 20, 13);
	expect_wake("same node, in its ring", 23, 13);
	expect_wake("nearer node", 24, 13);
	expect_wake("farther node", 0, 13);
	expect_wake("nobody", NOBODY, 13);
	put(35, IN_RING);
	put(1, ON_FUTEX);
	expect_wake("a near ring before a far futex", 35, 13);
	end();
}

static void check_lowest(uint32_t policy, uint32_t waker)
{
	start(WORKERS, WORKERS);
	shared.tuning.wake_policy = policy;
	put(4, IN_RING);
	put(5, ON_FUTEX);
	put(6, ON_FUTEX);
	put(35, IN_RING);
	expect_wake("lowest L3, on its futex", 5, waker);
	expect_wake("lowest L3, in its ring", 4, waker);
	expect_wake("next L3", 6, waker);
	expect_wake("last", 35, waker);
	expect_wake("nobody", NOBODY, waker);
	end();
}

static void check_rotate(void)
{
	start(WORKERS, WORKERS);
	shared.tuning.wake_policy = PINION_WAKE_ROTATE;
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < WORKERS; i++) {
			put(i, ON_FUTEX);
		}
		for (uint32_t i = 0; i < WORKERS; i++) {
			expect_wake("each in turn", i, 3);
		}
	}
	/* A worker that sleeps again at once has to wait for the others. */
	put(0, ON_FUTEX);
	put(10, IN_RING);
	expect_wake("first", 0, 3);
	put(0, ON_FUTEX);
	expect_wake("the other one", 10, 3);
	put(10, IN_RING);
	expect_wake("and round", 0, 3);
	put(9, ON_FUTEX);
	expect_wake("of one L3 the futex", 9, 3);
	expect_wake("then the ring", 10, 3);
	end();
}

/* Beyond 64 workers, and without places: one L3, as far as is known. */
static void check_many(void)
{
	start(MANY, 0);
	for (uint32_t policy = PINION_WAKE_NEAR; policy <= PINION_WAKE_ROTATE; policy++) {
		shared.tuning.wake_policy = policy;
		put(3, IN_RING);
		put(129, ON_FUTEX);
		put(70, ON_FUTEX);
		expect_wake("a futex beyond 64", 70, 65);
		expect_wake("the last one", 129, 65);
		expect_wake("the ring at last", 3, 65);
		expect_wake("nobody", NOBODY, 65);
		pin_store_relaxed_u32(&shared.wake_start, 0);
	}
	end();
}

/* ---- at random ---- */

static uint32_t min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Less is woken first. */
static uint32_t cost_of(uint32_t policy, uint32_t waker, uint32_t index, uint32_t next)
{
	uint32_t kind = sleeps[index] == IN_RING ? 1 : 0;
	uint32_t far;

	if (policy == PINION_WAKE_ROTATE && index < next) {
		/* After all others; that L3 is there twice, in parts. */
		return 100000 + l3_of(index) * 1000 + kind * 100 + index;
	}
	if (policy != PINION_WAKE_NEAR || waker == OUTSIDE) {
		return l3_of(index) * 1000 + kind * 100 + index;
	}
	if (l3_of(index) == l3_of(waker)) {
		return kind * 1000 + (l2_of(index) == l2_of(waker) ? 0 : 100) + index;
	}
	if (node_of(index) == node_of(waker)) {
		return 10000 + l3_of(index) * 1000 + kind * 100 + index;
	}
	far = distances_of[node_of(waker) * NODES + node_of(index)];
	return far * 100000 + l3_of(index) * 1000 + kind * 100 + index;
}

static uint32_t expected_of(uint32_t policy, uint32_t waker, uint32_t next)
{
	uint32_t best = NOBODY;
	uint32_t cost = UINT32_MAX;

	for (uint32_t i = 0; i < WORKERS; i++) {
		if (sleeps[i] != AWAKE && cost_of(policy, waker, i, next) < cost) {
			best = i;
			cost = cost_of(policy, waker, i, next);
		}
	}
	return best;
}

static void check_random(struct random_source *source)
{
	start(WORKERS, WORKERS);
	for (uint32_t i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		uint32_t policy = (uint32_t)random_below(source, 3);
		uint32_t waker = (uint32_t)random_below(source, WORKERS + 1);
		uint32_t next = pin_load_relaxed_u32(&shared.wake_start);

		for (uint64_t j = random_below(source, 4); j > 0; j--) {
			put((uint32_t)random_below(source, WORKERS),
				(enum sleep)random_below(source, 3));
		}
		shared.tuning.wake_policy = policy;
		next = min(next, WORKERS) % WORKERS;
		expect_wake("at random", expected_of(policy, waker, next), waker);
	}
	end();
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	check_near();
	check_lowest(PINION_WAKE_LOWEST, 20);
	check_lowest(PINION_WAKE_LOWEST, OUTSIDE);
	check_lowest(PINION_WAKE_NEAR, OUTSIDE);
	check_rotate();
	check_many();
	check_random(&source);
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}
