/* SPDX-License-Identifier: MIT */
/*
 * Tasks of GNU OpenMP. A thread outside of a team cannot add to it, so there is
 * no `inject`.
 */
#include "tests/bench/peers/peer.h"

#include <omp.h>

static uint32_t run_count;

static void empty(void)
{
	run_count++;
}

/* A team of one still queues its tasks, up to 64; those beyond run at once. */
static double spawn(int worker_count)
{
	double figure = 0;

	(void)worker_count;
	run_count = 0;
#pragma omp parallel num_threads(1)
	{
		uint64_t start_ns = peer_now_ns();

		for (int i = 0; i < PEER_SPAWN_TASKS; i += PEER_SPAWN_BATCH) {
			for (int task = 0; task < PEER_SPAWN_BATCH; task++) {
#pragma omp task
				empty();
			}
#pragma omp taskwait
		}
		figure = (double)(peer_now_ns() - start_ns) / PEER_SPAWN_TASKS;
	}
	peer_check(run_count == PEER_SPAWN_TASKS, "tasks were lost");
	return figure;
}

static struct {
	uint32_t count __attribute__((aligned(128)));
} counts[PEER_STEAL_WORKERS];

static void count_one(void)
{
	counts[omp_get_thread_num()].count++;
}

/*
 * One thread adds tasks; the other takes them as it comes to it. At most 64 of
 * them wait per thread; further ones run at once.
 */
static double steal_spawn(int worker_count)
{
	double figure = 0;

	(void)worker_count;
	counts[0].count = 0;
	counts[1].count = 0;
#pragma omp parallel num_threads(PEER_STEAL_WORKERS)
#pragma omp single
	{
		uint64_t start_ns = peer_now_ns();

		for (int i = 0; i < PEER_STEAL_TASKS; i++) {
#pragma omp task
			count_one();
		}
#pragma omp taskwait
		figure = (double)(peer_now_ns() - start_ns) / PEER_STEAL_TASKS;
	}
	peer_check(counts[0].count + counts[1].count == PEER_STEAL_TASKS, "tasks were lost");
	return figure;
}

static uint32_t fibonacci(uint32_t number)
{
	uint32_t left;
	uint32_t right;

	if (number < 2) {
		return number;
	}
#pragma omp task shared(left)
	left = fibonacci(number - 1);
#pragma omp task shared(right)
	right = fibonacci(number - 2);
#pragma omp taskwait
	return left + right;
}

static double forkjoin(int worker_count)
{
	double figure = 0;

#pragma omp parallel num_threads(worker_count)
#pragma omp single
	{
		uint64_t start_ns = peer_now_ns();
		uint32_t result = fibonacci(PEER_FORKJOIN_NUMBER);

		figure = (double)(peer_now_ns() - start_ns) / PEER_FORKJOIN_TASKS;
		peer_check(result == PEER_FORKJOIN_RESULT, "the tree is wrong");
	}
	return figure;
}

int main(int argc, char **argv)
{
	static const struct peer_subject subjects[] = {
		{"spawn", spawn, "ns"},
		{"steal_spawn", steal_spawn, "ns"},
		{"forkjoin", forkjoin, "ns"},
		{NULL, NULL, NULL},
	};
	char name[64];

	snprintf(name, sizeof(name), "GNU OpenMP, gcc %s", __VERSION__);
	name[strcspn(name, "(")] = '\0';
	return peer_main(argc, argv, name, subjects);
}
