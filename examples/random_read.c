/* SPDX-License-Identifier: MIT-0 */
/*
 * Shows: the rate and the latency of random 4 KiB reads of a file, with DEPTH
 * of them in flight on each worker.
 *
 * Try:   examples/random_read /usr/bin/gcc 32 1 (FILE DEPTH WORKERS)
 *
 * Each request submits itself again when it is done, all on one worker.
 */
#include <pinion/pinion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, DEPTH_MAX = 256, WORKERS_MAX = 64, RUN_MS = 500, BUCKETS = 40 };

struct worker;

struct read {
	struct pinion_request request; /* first, so that its task leads back here */
	struct worker *worker;
	uint64_t start_ns;
	uint8_t bytes[BLOCK] __attribute__((aligned(BLOCK)));
};

struct worker {
	struct pinion_task start; /* first, as above */
	struct read *reads;
	uint64_t random;
	uint64_t read_count;
	uint64_t buckets[BUCKETS]; /* of 2^i … 2^(i + 1) ns */
	int error;
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct worker workers[WORKERS_MAX];
static uint64_t end_ns;
static int depth = 32;

static void submit(struct read *read)
{
	struct worker *worker = read->worker;

	/* Knuth's MMIX generator; its high bits are the good ones. */
	worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
	read->request.offset_bytes = (worker->random >> 33) % (file.size_bytes / BLOCK) * BLOCK;
	read->start_ns = pinion_clock_now_ns();
	if (read->start_ns < end_ns && worker->error == 0) {
		worker->error = pinion_request_submit(runtime, &read->request);
	}
}

static int on_read(struct pinion_task *task)
{
	struct read *read = (void *)task;
	struct worker *worker = read->worker;
	uint64_t ns = pinion_clock_now_ns() - read->start_ns;
	int bucket = 63 - __builtin_clzll(ns | 1);

	worker->error = read->request.result < 0 ? (int)read->request.result : worker->error;
	worker->buckets[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
	worker->read_count++;
	submit(read);
	return 0;
}

static int on_start(struct pinion_task *task)
{
	struct worker *worker = (struct worker *)task;

	for (int i = 0; i < depth; i++) {
		struct read *read = &worker->reads[i];

		read->request = (struct pinion_request){.task.run = on_read,
			.file = &file,
			.bytes = read->bytes,
			.length_bytes = BLOCK};
		read->worker = worker;
		submit(read);
	}
	return 0;
}

static int fail(const char *what, int error)
{
	fprintf(stderr, "random_read: %s: %s\n", what, strerror(-error));
	return 1;
}

/* The bucket in which the read at that share of all is. */
static double share_us(uint32_t worker_count, uint64_t total, double share)
{
	uint64_t seen = 0;

	for (int bucket = 0; bucket < BUCKETS; bucket++) {
		for (uint32_t i = 0; i < worker_count; i++) {
			seen += workers[i].buckets[bucket];
		}
		if ((double)seen >= (double)total * share) {
			return (double)(2ull << bucket) / 1e3;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t worker_count = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;
	struct pinion_config config;
	uint64_t total = 0;
	int rc;

	depth = argc > 2 ? (int)strtol(argv[2], NULL, 10) : depth;
	if (argc < 2 || argv[1][0] == '-' || depth < 1 || depth > DEPTH_MAX || worker_count < 1 ||
		worker_count > WORKERS_MAX) {
		fprintf(stderr, "usage: random_read FILE [DEPTH (1 … %d) [WORKERS (1 … %d)]]\n",
			DEPTH_MAX, WORKERS_MAX);
		return 2;
	}
	rc = pinion_file_open(&file, argv[1], PINION_DIRECT_AUTO);
	if (rc < 0 || file.size_bytes < BLOCK) {
		return rc < 0 ? fail(argv[1], rc) : fail("needs a file of 4 KiB or more", -22);
	}
	pinion_config_init(&config);
	config.worker_count = worker_count;
	rc = pinion_runtime_create(&config, &runtime);
	if (rc < 0) {
		return fail("cannot start", rc);
	}
	end_ns = pinion_clock_now_ns() + (uint64_t)RUN_MS * 1000000;
	for (uint32_t i = 0; i < worker_count && rc == 0; i++) {
		workers[i].start.run = on_start;
		workers[i].random = i + 1;
		workers[i].reads = aligned_alloc(BLOCK, (size_t)depth * sizeof(struct read));
		rc = workers[i].reads == NULL ? -12
					      : pinion_task_spawn_on(runtime, i, &workers[i].start);
	}
	pinion_runtime_drain(runtime);
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
	for (uint32_t i = 0; i < worker_count; i++) {
		total += workers[i].read_count;
		rc = rc == 0 ? workers[i].error : rc;
		free(workers[i].reads);
	}
	if (rc < 0) {
		return fail(argv[1], rc);
	}
	printf("%llu reads of 4 KiB, %.0f a second, %s; of 100 reads 50 took up to %.1f us, "
	       "99 up to %.1f us\n",
		(unsigned long long)total, (double)total * 1e3 / RUN_MS,
		file.is_direct ? "past the page cache" : "from the page cache",
		share_us(worker_count, total, 0.5), share_us(worker_count, total, 0.99));
	return 0;
}
