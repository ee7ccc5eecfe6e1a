/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a piece of work cut into N tasks, which run side by side on a thread
 * pool, and a thread that goes on when all of them are over. Where one fails,
 * those that have not begun are cancelled, and the thread learns which error it
 * was.
 *
 * Try:   examples/fan_out 40
 *        examples/fan_out 40 7      the 7th fails
 *
 * The work is to count the primes below N * 10000.
 */
#include <errno.h>
#include <pinion/pinion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES_MAX = 1000, PIECE_NUMBERS = 10000 };

struct piece {
	struct pinion_group_task task; /* first, so that it leads back here */
	uint32_t first;
	uint32_t count;
	bool must_fail;
	bool has_run;
	bool was_cancelled;
};

static bool is_prime(uint32_t number)
{
	for (uint32_t i = 2; i * i <= number; i++) {
		if (number % i == 0) {
			return false;
		}
	}
	return number > 1;
}

static int run(struct pinion_group_task *task)
{
	struct piece *piece = (struct piece *)task;

	piece->has_run = true;
	if (piece->must_fail) {
		return -EDOM;
	}
	for (uint32_t i = piece->first; i < piece->first + PIECE_NUMBERS; i++) {
		piece->count += is_prime(i);
	}
	return 0;
}

static void cancel(struct pinion_group_task *task)
{
	((struct piece *)task)->was_cancelled = true;
}

/* Spawns all and joins them; what a task wrote is seen then. */
static int compute(struct pinion_runtime *thread_pool, struct piece *pieces, uint32_t count)
{
	struct pinion_group group;
	int joined;
	int rc = pinion_group_init(&group, thread_pool, 0);

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		pieces[i].task.run = run;
		pieces[i].task.cancel = cancel;
		pieces[i].first = i * PIECE_NUMBERS;
		rc = pinion_group_spawn(&group, &pieces[i].task);
	}
	/*
	 * Refused because a task has failed: pinion_group_result() has its
	 * error.
	 */
	rc = rc == -ECANCELED ? 0 : rc;
	joined = pinion_group_wait(&group, UINT64_MAX);
	rc = rc == 0 ? joined : rc;
	return rc == 0 ? pinion_group_result(&group) : rc;
}

int main(int argc, char **argv)
{
	static struct piece pieces[PIECES_MAX];
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 40;
	uint32_t failing = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	struct pinion_runtime *thread_pool = NULL;
	uint32_t primes = 0;
	uint32_t has_run = 0;
	int rc;

	if (count == 0 || count > PIECES_MAX || failing > count) {
		fprintf(stderr, "usage: fan_out [PIECES, up to %d [THE ONE THAT FAILS]]\n",
			PIECES_MAX);
		return 2;
	}
	if (failing > 0) {
		pieces[failing - 1].must_fail = true;
	}
	rc = pinion_thread_pool_create(NULL, NULL, &thread_pool);
	if (rc < 0) {
		fprintf(stderr, "fan_out: cannot start: %s\n", strerror(-rc));
		return 1;
	}
	rc = compute(thread_pool, pieces, count);
	pinion_runtime_destroy(thread_pool);
	for (uint32_t i = 0; i < count; i++) {
		primes += pieces[i].count;
		has_run += pieces[i].has_run;
	}
	if (rc < 0) {
		printf("%u pieces: %s; %u ran, %u did not\n", count, strerror(-rc), has_run,
			count - has_run);
		return failing == 0;
	}
	printf("%u pieces: %u primes below %u; %u ran, 0 did not\n", count, primes,
		count * PIECE_NUMBERS, has_run);
	return 0;
}
