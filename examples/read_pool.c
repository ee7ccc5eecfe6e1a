/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: two read pools side by side, for short reads of keys and for long
 * scans. Under load a pool answers "full", with the number of admitted jobs and
 * the time they will take; admitted jobs are served, and an overload of scans
 * does not delay keys.
 *
 * Try:   examples/read_pool 200
 *
 * A client that gets "full" would ask another server. Here it waits for room.
 */
#include <errno.h>
#include <pinion/pinion.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 16, SCANS_MAX = 4, REQUESTS_MAX = 100000, DISK_NS = 1000 * 1000 };

struct request {
	struct pinion_job job; /* first, so that it leads back here */
	struct pinion_runtime *runtime;
	struct pinion_timer disk;
	uint64_t answer;
};

struct pool {
	const char *name;
	uint32_t max_tasks;
	pinion_job_fn run;
	struct pinion_runtime *runtime;
	struct pinion_admission admission;
	struct request *requests;
	uint64_t refused;
	struct pinion_full full; /* the last answer */
};

/* Takes the time of a search for the key. */
static int read_key(struct pinion_job *job)
{
	((struct request *)job)->answer = 1;
	return 0;
}

/* What a scan has begun is over: now its job is. */
static int end_scan(struct pinion_task *task)
{
	struct request *request = (void *)((char *)task - offsetof(struct request, disk));

	request->answer = 1;
	pinion_job_end(&request->job, 0);
	return 0;
}

/* Stands for a read of much: the worker does others' meanwhile. */
static int scan(struct pinion_job *job)
{
	struct request *request = (struct request *)job;
	uint64_t end_ns = pinion_clock_now_ns() + DISK_NS;
	int rc = pinion_timer_start(request->runtime, &request->disk, end_ns);

	return rc < 0 ? rc : PINION_JOB_GOES_ON;
}

static int start(struct pool *pool, uint32_t request_count)
{
	struct pinion_config config;
	struct pinion_admission_limits limits = {.max_tasks_total = pool->max_tasks};
	int rc;

	pinion_config_init(&config);
	config.worker_count = 1;
	pool->requests = calloc(request_count, sizeof(pool->requests[0]));
	if (pool->requests == NULL) {
		return -ENOMEM;
	}
	rc = pinion_runtime_create(&config, &pool->runtime);
	for (uint32_t i = 0; i < request_count; i++) {
		pool->requests[i].job.run = pool->run;
		pool->requests[i].disk.task.run = end_scan;
		pool->requests[i].runtime = pool->runtime;
	}
	return rc < 0 ? rc : pinion_admission_init(&pool->admission, pool->runtime, &limits);
}

static int submit(struct pool *pool, struct request *request)
{
	struct pinion_job *job = &request->job;
	int rc = pinion_admission_spawn(&pool->admission, &job, 1, &pool->full);

	if (rc != -EAGAIN) {
		return rc;
	}
	pool->refused++;
	return pinion_admission_spawn_wait(&pool->admission, &job, 1, UINT64_MAX);
}

/*
 * Waits for the admitted jobs, and prints a line. Negative: an answer is
 * missing.
 */
static int finish(struct pool *pool, uint32_t request_count)
{
	uint64_t answered = 0;
	int rc = pinion_admission_drain(&pool->admission, UINT64_MAX);

	for (uint32_t i = 0; i < request_count; i++) {
		answered += pool->requests[i].answer != 0;
	}
	printf("%-5s %6u admitted, %6llu answered, %6llu times full", pool->name, request_count,
		(unsigned long long)answered, (unsigned long long)pool->refused);
	if (pool->refused > 0) {
		printf(", the last time %u of %u in, about %llu us to wait", pool->full.current,
			pool->full.max, (unsigned long long)pool->full.estimated_wait_us);
	}
	printf("\n");
	return rc < 0 ? rc : answered == request_count ? 0 : -EIO;
}

int main(int argc, char **argv)
{
	struct pool keys = {.name = "keys", .max_tasks = KEYS_MAX, .run = read_key};
	struct pool scans = {.name = "scans", .max_tasks = SCANS_MAX, .run = scan};
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 200;
	int rc;

	if (count == 0 || count > REQUESTS_MAX) {
		fprintf(stderr, "usage: read_pool [REQUESTS, up to %d]\n", REQUESTS_MAX);
		return 2;
	}
	rc = start(&keys, count);
	rc = rc < 0 ? rc : start(&scans, count);
	for (uint32_t i = 0; i < count && rc >= 0; i++) {
		rc = submit(&scans, &scans.requests[i]);
		rc = rc < 0 ? rc : submit(&keys, &keys.requests[i]);
	}
	rc = rc < 0 ? rc : finish(&keys, count);
	rc = rc < 0 ? rc : finish(&scans, count);
	if (rc < 0) {
		fprintf(stderr, "read_pool: %s\n", strerror(-rc));
	}
	pinion_runtime_destroy(keys.runtime);
	pinion_runtime_destroy(scans.runtime);
	free(keys.requests);
	free(scans.requests);
	return rc < 0;
}
