/* SPDX-License-Identifier: MIT */
/*
 * Goal: lines come out in the order of their sequence numbers, each once,
 * whatever order and thread they come from, also when the ring must grow.
 * Method: threads hand in disjoint parts, each part shuffled within a reach
 * beyond the first ring's size; standard output goes to a file that is read
 * back.
 */
#include "tools/output.h"
#include "tools/sum/order.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 40000, THREADS = 4, REACH = 5000 };

static struct order order;
static uint64_t sequences[LINES];

static void shuffle(unsigned seed)
{
	for (uint64_t i = 0; i < LINES; i++) {
		sequences[i] = i;
	}
	for (int i = 0; i < LINES; i++) {
		int other = i + rand_r(&seed) % REACH;
		uint64_t kept = sequences[i];

		if (other < LINES) {
			sequences[i] = sequences[other];
			sequences[other] = kept;
		}
	}
}

static void *put_lines(void *arg)
{
	const int *thread = arg;

	for (int i = *thread; i < LINES; i += THREADS) {
		char line[32];
		int length =
			snprintf(line, sizeof(line), "%llu\n", (unsigned long long)sequences[i]);

		/* Every seventh has nothing to say. */
		order_put(&order, sequences[i], line, sequences[i] % 7 == 0 ? 0 : (size_t)length);
	}
	return NULL;
}

static int check_file(FILE *file, unsigned seed)
{
	unsigned long long got;

	for (unsigned long long expected = 0; expected < LINES; expected++) {
		if (expected % 7 == 0) {
			continue;
		}
		if (fscanf(file, "%llu", &got) != 1 || got != expected) {
			fprintf(stderr, "expected line %llu, got %llu: PINION_SEED=%u\n", expected,
				got, seed);
			return 1;
		}
	}
	return fscanf(file, "%llu", &got) == EOF ? 0 : 1;
}

int main(void)
{
	const char *text = getenv("PINION_SEED");
	unsigned seed = text != NULL ? (unsigned)strtoul(text, NULL, 0) : (unsigned)time(NULL);
	pthread_t threads[THREADS];
	int numbers[THREADS];
	FILE *file = tmpfile();
	void *item = malloc(1);

	fprintf(stderr, "seed %u\n", seed);
	if (file == NULL || dup2(fileno(file), STDOUT_FILENO) < 0 || order_init(&order) != 0) {
		return 1;
	}
	shuffle(seed);
	/* An item attached beyond the ring stays with its sequence. */
	if (order_attach(&order, 3000, item) != 0 || order_item(&order, 3000) != item ||
		order_item(&order, 3001) != NULL || order_item(&order, 1 << 20) != NULL) {
		fprintf(stderr, "an attached item was lost\n");
		return 1;
	}
	for (int i = 0; i < THREADS; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, put_lines, &numbers[i]) != 0) {
			return 1;
		}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
	}
	if (!output_finish() || order.has_lost || order.front != LINES) {
		fprintf(stderr, "lines are missing: PINION_SEED=%u\n", seed);
		return 1;
	}
	order_fini(&order);
	rewind(file);
	return check_file(file, seed);
}
