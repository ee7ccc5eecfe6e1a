/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: a batch of more than a thousand items, whose end no thread waits for,
 * runs in chunks of 100 at the low lane; calls that a client waits for run at
 * the high lane and pass the batch. Chunks keep the queue short and let the
 * batch be stopped, or slowed down, between two of them.
 *
 * Try:   examples/batch 1050
 *
 * An item computes for 100 us. If no worker is free, a call waits for the rest
 * of one item at most, then runs itself.
 */
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_ITEMS = 100, ITEMS_MAX = 100000, ITEM_NS = 100 * 1000, CALLS = 3 };

struct item {
	struct pinion_group_task task; /* first, so that it leads back here */
	uint32_t done;
};

static struct item items[CHUNK_ITEMS];
static uint64_t calls_made;
static uint64_t calls_early; /* over before the chunk they were made in */
static uint64_t wait_ns_max;

static int run_item(struct pinion_group_task *task)
{
	uint64_t end_ns = pinion_clock_now_ns() + ITEM_NS;

	while (pinion_clock_now_ns() < end_ns) {
	}
	((struct item *)task)->done++;
	return 0;
}

/* Writes down when it began. */
static int answer(void *arg)
{
	*(uint64_t *)arg = pinion_clock_now_ns();
	return 0;
}

static int call_once(struct pinion_runtime *runtime)
{
	uint64_t start_ns = pinion_clock_now_ns();
	uint64_t begun_ns = start_ns;
	struct pinion_call call = {.run = answer, .arg = &begun_ns, .task.flags = PINION_TASK_HIGH};
	int rc = pinion_call_start(runtime, &call);

	if (rc == 0) {
		rc = pinion_future_wait(&call.done, UINT64_MAX);
	}
	calls_made++;
	if (begun_ns - start_ns > wait_ns_max) {
		wait_ns_max = begun_ns - start_ns;
	}
	return rc;
}

static int run_chunk(struct pinion_runtime *runtime, uint32_t count)
{
	struct pinion_group group;
	int joined;
	int rc = pinion_group_init(&group, runtime, PINION_GROUP_RUN_ALL);

	for (uint32_t i = 0; i < count && rc == 0; i++) {
		items[i].task =
			(struct pinion_group_task){.run = run_item, .task.flags = PINION_TASK_LOW};
		rc = pinion_group_spawn(&group, &items[i].task);
	}
	for (int i = 0; i < CALLS && rc == 0; i++) {
		rc = call_once(runtime);
		calls_early += pinion_group_wait(&group, 0) != 0;
	}
	joined = pinion_group_wait(&group, UINT64_MAX);
	return rc == 0 ? joined : rc;
}

static int run_batch(struct pinion_runtime *runtime, uint32_t item_count, uint32_t *out_chunks)
{
	int rc = 0;

	for (uint32_t i = 0; i < item_count && rc == 0; i += CHUNK_ITEMS) {
		uint32_t left = item_count - i;

		rc = run_chunk(runtime, left < CHUNK_ITEMS ? left : CHUNK_ITEMS);
		*out_chunks += 1;
	}
	return rc;
}

int main(int argc, char **argv)
{
	uint32_t item_count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1050;
	struct pinion_lane_stats metrics = {0};
	struct pinion_config config;
	struct pinion_runtime *runtime = NULL;
	uint64_t done = 0;
	uint32_t chunks = 0;
	int rc;

	if (item_count == 0 || item_count > ITEMS_MAX) {
		fprintf(stderr, "usage: batch [ITEMS, up to %d]\n", ITEMS_MAX);
		return 2;
	}
	pinion_config_init(&config);
	rc = pinion_runtime_create(&config, &runtime);
	if (rc == 0) {
		rc = run_batch(runtime, item_count, &chunks);
	}
	if (rc < 0) {
		fprintf(stderr, "batch: %s\n", strerror(-rc));
		pinion_runtime_destroy(runtime);
		return 1;
	}
	(void)pinion_runtime_get_lane_stats(runtime, &metrics, sizeof(metrics));
	pinion_runtime_destroy(runtime);
	for (int i = 0; i < CHUNK_ITEMS; i++) {
		done += items[i].done;
	}
	printf("%llu items done in %u chunks, %llu tasks at low\n", (unsigned long long)done,
		chunks, (unsigned long long)metrics.low_jobs_run);
	printf("%llu calls at high meanwhile, %llu of them over before their chunk, "
	       "each begun within %.3f ms\n",
		(unsigned long long)calls_made, (unsigned long long)calls_early,
		(double)wait_ns_max / 1e6);
	return 0;
}
