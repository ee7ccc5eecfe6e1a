/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: how work spreads by itself. One task spawns ten thousand short ones,
 * all into the queue of its own worker; the others come and take from there.
 *
 * Try:   examples/steal_demo 4
 *
 * A thief takes the older half of what it finds, and wakes the next thief: so
 * few steals and fewer wakes move most of the work. The counts need no lock,
 * as each worker has its own.
 */
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 10000, WORKERS_MAX = 4096, ROUNDS = 2000, CACHE_LINE = 64 };

struct tally {
	_Alignas(CACHE_LINE) uint64_t tasks; /* a cache line each: no worker waits for another's */
	uint64_t sum;
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[TASKS];
static struct tally tallies[WORKERS_MAX];

/* Some microseconds of work. */
static int run_short(struct pinion_task *task)
{
	struct tally *tally = &tallies[pinion_worker_index(runtime)];
	uint64_t number = (uint64_t)(task - tasks) + 1;

	for (int i = 0; i < ROUNDS; i++) {
		number ^= number << 13;
		number ^= number >> 7;
		number ^= number << 17;
	}
	tally->sum += number;
	tally->tasks++;
	return 0;
}

static int run_first(struct pinion_task *task)
{
	int rc = 0;

	(void)task;
	for (int i = 0; i < TASKS && rc == 0; i++) {
		tasks[i].run = run_short;
		rc = pinion_task_spawn(runtime, &tasks[i]);
	}
	return rc;
}

static int tell(const struct pinion_runtime_stats *counters, uint32_t worker_count)
{
	uint64_t total = 0;

	for (uint32_t i = 0; i < worker_count; i++) {
		printf("worker %2u ran %5llu tasks\n", i, (unsigned long long)tallies[i].tasks);
		total += tallies[i].tasks;
	}
	printf("%llu tasks in all\n", (unsigned long long)total);
	printf("%llu tasks stolen in %llu steals; %llu wakes sent by workers\n",
		(unsigned long long)counters->tasks_stolen, (unsigned long long)counters->steals,
		(unsigned long long)counters->wakes_sent);
	if (total != TASKS || counters->tasks_run != TASKS + 1) {
		fprintf(stderr, "steal_demo: the counts do not add up\n");
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct pinion_task first = {.run = run_first};
	struct pinion_runtime_stats counters;
	struct pinion_config config;
	struct pinion_tuning tuning;
	uint32_t worker_count;
	int rc;

	if (argc > 1 && strcmp(argv[1], "--help") == 0) {
		puts("usage: steal_demo [WORKERS]");
		return 0;
	}
	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	config.worker_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	/* All fit, so none goes through the queue that all workers share. */
	tuning.queue_tasks = 16384;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		fprintf(stderr, "steal_demo: cannot start: %s\n", strerror(-rc));
		return 1;
	}
	worker_count = pinion_runtime_worker_count(runtime);
	rc = pinion_task_spawn(runtime, &first);
	if (rc == 0) {
		rc = pinion_runtime_join(runtime);
	}
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	pinion_runtime_destroy(runtime);
	if (rc < 0) {
		fprintf(stderr, "steal_demo: %s\n", strerror(-rc));
		return 1;
	}
	return tell(&counters, worker_count);
}
