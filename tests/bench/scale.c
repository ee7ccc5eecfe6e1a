/* SPDX-License-Identifier: MIT */
/*
 * What grows with the number of workers, of queued tasks, of requests in
 * flight and of files: time, memory, start and stop of real runtimes. Threads
 * may be many more than CPUs. `make bench-scale` prints it; tests/bench/scaling
 * has the structures by themselves, without threads.
 *
 * A figure is the median of ROUNDS. Memory is what the process has resident
 * (/proc/self/statm) at the end of the step, less what it had before.
 */
#include "runtime/base/base.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/machine.h>
#include <pinion/walk.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	ROUNDS = 5,
	BATCH = 4096,
	TASKS = 16 * BATCH,
	PIPE_WORKERS = 4,
	FILES_IN_FOLDER = 1000,
	STEPS_MAX = 4,
};

/* ---- samples ---- */

struct samples {
	double values[STEPS_MAX][ROUNDS];
	double memory_kib[ROUNDS];
};

static double start_ns;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double since_ns(void)
{
	double now = now_ns();
	double elapsed = now - start_ns;

	start_ns = now;
	return elapsed;
}

static double resident_kib(void)
{
	unsigned long pages[2] = {0};
	FILE *file = fopen("/proc/self/statm", "r");

	expect_ready("statm", file != NULL && fscanf(file, "%lu %lu", &pages[0], &pages[1]) == 2);
	fclose(file);
	return (double)pages[1] * (double)sysconf(_SC_PAGESIZE) / 1024;
}

static int compare(const void *left, const void *right)
{
	double first = *(const double *)left;
	double second = *(const double *)right;

	return (first > second) - (first < second);
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), compare);
	return values[ROUNDS / 2];
}

/* ---- workers ---- */

static uint32_t left_count; /* tasks that have not ended */
static sem_t all_ended;

static int count_end(struct pinion_task *task)
{
	(void)task;
	if (__atomic_sub_fetch(&left_count, 1, __ATOMIC_ACQ_REL) == 0) {
		expect_ready("post", sem_post(&all_ended) == 0);
	}
	return 0;
}

static void await(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0) {
		expect_ready("wait", errno == EINTR);
	}
}

static struct pinion_runtime *create(uint32_t workers, uint32_t ring_entries)
{
	struct pinion_runtime *runtime;
	struct pinion_config config;

	runtimes_config(&config, workers, PINION_IO_AUTO);
	runtimes_tuning.injector_tasks = 0;
	config.bind_workers = PINION_BIND_NONE;
	if (ring_entries != 0) {
		runtimes_tuning.ring_entries = ring_entries;
	}
	expect_ready("a runtime", pinion_runtime_create(&config, &runtime) == 0);
	return runtime;
}

static void spawn_all(struct pinion_runtime *runtime, struct pinion_task *tasks, size_t count)
{
	static struct pinion_task *batch[BATCH];

	for (size_t i = 0; i < count;) {
		uint32_t length = 0;

		for (; length < BATCH && i < count; length++, i++) {
			tasks[i] = (struct pinion_task){.run = count_end};
			batch[length] = &tasks[i];
		}
		expect_ready("spawn", pinion_task_spawn_batch(runtime, batch, length) == 0);
	}
}

static void measure_workers(uint32_t count)
{
	struct pinion_task *tasks = calloc(TASKS, sizeof(*tasks));
	struct samples samples;

	expect_ready("memory", tasks != NULL);
	for (int round = 0; round < ROUNDS; round++) {
		double before_kib = resident_kib();
		struct pinion_runtime *runtime;

		start_ns = now_ns();
		runtime = create(count, 0);
		samples.values[0][round] = since_ns();
		samples.memory_kib[round] = resident_kib() - before_kib;
		__atomic_store_n(&left_count, TASKS, __ATOMIC_RELAXED);
		start_ns = now_ns();
		spawn_all(runtime, tasks, TASKS);
		await(&all_ended);
		samples.values[1][round] = since_ns() / TASKS;
		pinion_runtime_stop(runtime);
		samples.values[2][round] = since_ns();
		pinion_runtime_destroy(runtime);
		samples.values[3][round] = since_ns();
	}
	printf("| %u workers | %.2f | %.0f | %.0f | %.2f | %.2f |\n", count,
		median(samples.values[0]) / 1e6, median(samples.memory_kib) / count,
		median(samples.values[1]), median(samples.values[2]) / 1e6,
		median(samples.values[3]) / 1e6);
	fflush(stdout);
	free(tasks);
}

/* ---- queued tasks ---- */

static sem_t is_open;
static sem_t is_held;

static int hold_worker(struct pinion_task *task)
{
	(void)task;
	expect_ready("post", sem_post(&is_held) == 0);
	await(&is_open);
	return 0;
}

/* All of them wait for the task that holds the only worker. */
static void measure_tasks(size_t count)
{
	struct pinion_task *tasks = calloc(count, sizeof(*tasks));
	struct samples samples;

	expect_ready("memory", tasks != NULL);
	memset(tasks, 0, count * sizeof(*tasks));
	for (int round = 0; round < ROUNDS; round++) {
		struct pinion_task holder = {.run = hold_worker};
		struct pinion_runtime *runtime = create(1, 0);
		double before_kib;

		__atomic_store_n(&left_count, UINT32_MAX, __ATOMIC_RELAXED); /* the drain waits */
		expect_ready("spawn", pinion_task_spawn(runtime, &holder) == 0);
		await(&is_held);
		/* Once before, so that the tasks' own memory is touched. */
		for (size_t i = 0; i < count; i++) {
			tasks[i] = (struct pinion_task){.run = count_end};
		}
		before_kib = resident_kib();
		start_ns = now_ns();
		spawn_all(runtime, tasks, count);
		samples.values[0][round] = since_ns() / (double)count;
		samples.memory_kib[round] = resident_kib() - before_kib;
		expect_ready("post", sem_post(&is_open) == 0);
		pinion_runtime_drain(runtime);
		samples.values[1][round] = since_ns() / (double)count;
		pinion_runtime_destroy(runtime);
	}
	printf("| %zu queued tasks | %.0f | %.0f | %.0f |\n", count, median(samples.values[0]),
		median(samples.values[1]), median(samples.memory_kib));
	fflush(stdout);
	free(tasks);
}

/* ---- requests in flight ---- */

struct read {
	struct pinion_request request;
	uint8_t byte;
};

struct share {
	struct pinion_task task;
	struct pinion_runtime *runtime;
	struct read *first;
	uint32_t count;
};

static struct pinion_file pipe_file;
static uint32_t unsubmitted_count; /* shares that are not submitted yet */
static sem_t all_submitted;

static int submit_share(struct pinion_task *task)
{
	struct share *share = (struct share *)(void *)task;

	for (uint32_t i = 0; i < share->count; i++) {
		struct read *read = &share->first[i];

		*read = (struct read){.request = {.task.run = count_end,
					      .file = &pipe_file,
					      .bytes = &read->byte,
					      .length_bytes = 1}};
		expect_ready("submit", pinion_request_submit(share->runtime, &read->request) == 0);
	}
	if (__atomic_sub_fetch(&unsubmitted_count, 1, __ATOMIC_ACQ_REL) == 0) {
		expect_ready("post", sem_post(&all_submitted) == 0);
	}
	return 0;
}

/* Reads of a pipe that is empty until all of them are in flight. */
static void measure_requests(uint32_t count)
{
	struct read *reads = calloc(count, sizeof(*reads));
	uint8_t *bytes = calloc(1, count);
	struct samples samples;

	expect_ready("memory", reads != NULL && bytes != NULL);
	memset(reads, 0, count * sizeof(*reads));
	for (int round = 0; round < ROUNDS; round++) {
		struct pinion_runtime *runtime = create(PIPE_WORKERS, 16384);
		struct share shares[PIPE_WORKERS];
		double before_kib = resident_kib();
		int ends[2];

		expect_ready("a pipe", pipe(ends) == 0);
		pipe_file = runtimes_plain_file(ends[0]);
		__atomic_store_n(&left_count, count, __ATOMIC_RELAXED);
		__atomic_store_n(&unsubmitted_count, PIPE_WORKERS, __ATOMIC_RELAXED);
		start_ns = now_ns();
		for (uint32_t i = 0; i < PIPE_WORKERS; i++) {
			shares[i] = (struct share){.task.run = submit_share,
				.runtime = runtime,
				.first = &reads[count / PIPE_WORKERS * i],
				.count = count / PIPE_WORKERS};
			expect_ready(
				"spawn", pinion_task_spawn_on(runtime, i, &shares[i].task) == 0);
		}
		await(&all_submitted);
		samples.values[0][round] = since_ns() / count;
		samples.memory_kib[round] = resident_kib() - before_kib;
		for (uint32_t done = 0; done < count;) {
			ssize_t written = write(ends[1], bytes, count - done);

			expect_ready("write", written > 0);
			done += (uint32_t)written;
		}
		await(&all_ended);
		samples.values[1][round] = since_ns() / count;
		pinion_runtime_destroy(runtime);
		samples.values[2][round] = since_ns();
		close(ends[0]);
		close(ends[1]);
	}
	printf("| %u requests in flight | %.0f | %.0f | %.0f | %.2f |\n", count,
		median(samples.values[0]), median(samples.values[1]), median(samples.memory_kib),
		median(samples.values[2]) / 1e6);
	fflush(stdout);
	free(reads);
	free(bytes);
}

/* ---- files ---- */

static int visit(void *arg, const struct pinion_walk_entry *entry)
{
	(void)entry;
	(*(uint64_t *)arg)++;
	return 0;
}

/* Adds folders of empty files until there are `count` below `root`. */
static void make_files(const char *root, uint32_t from, uint32_t count)
{
	char path[512];

	for (uint32_t i = from; i < count; i++) {
		int fd;

		if (i % FILES_IN_FOLDER == 0) {
			snprintf(path, sizeof(path), "%s/%u", root, i / FILES_IN_FOLDER);
			expect_ready(path, mkdir(path, 0700) == 0);
		}
		snprintf(path, sizeof(path), "%s/%u/%u", root, i / FILES_IN_FOLDER, i);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		expect_ready(path, fd >= 0);
		close(fd);
	}
}

static void measure_files(const char *root, uint32_t count)
{
	struct samples samples;

	for (int round = 0; round < ROUNDS; round++) {
		double before_kib = resident_kib();
		uint64_t seen = 0;

		start_ns = now_ns();
		expect_number("walk", 0, pinion_walk(root, visit, &seen));
		samples.values[0][round] = since_ns() / count;
		samples.memory_kib[round] = resident_kib() - before_kib;
		expect_number("files seen", count, (long long)seen);
	}
	printf("| %u files walked | %.0f | %.0f |\n", count, median(samples.values[0]),
		median(samples.memory_kib));
	fflush(stdout);
}

static int remove_all(const char *root)
{
	char command[600];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* Powers of ten up to the number in an environment variable, or to `most`. */
static uint32_t limit_of(const char *name, uint32_t most)
{
	const char *text = getenv(name);

	return text == NULL ? most : (uint32_t)strtoul(text, NULL, 10);
}

int main(void)
{
	static const uint32_t worker_counts[] = {1, 8, 64, 256, 1024, 4096};
	char root[] = "bench-scale-XXXXXX";
	struct pinion_machine machine = {0};
	uint32_t workers_most = limit_of("SCALE_WORKERS", 4096);
	uint32_t tasks_most = limit_of("SCALE_TASKS", 10000000);
	uint32_t requests_most = limit_of("SCALE_REQUESTS", 100000);
	uint32_t files_most = limit_of("SCALE_FILES", 1000000);

	expect_ready("semaphores",
		sem_init(&all_ended, 0, 0) == 0 && sem_init(&is_open, 0, 0) == 0 &&
			sem_init(&is_held, 0, 0) == 0 && sem_init(&all_submitted, 0, 0) == 0);
	(void)pinion_machine_probe(&machine, sizeof(machine));
	printf("%u CPUs, Linux %s; medians of %d\n\n", machine.cpu_count, machine.kernel_release,
		ROUNDS);
	printf("| workers | create ms | KiB each | task ns | stop ms | destroy ms |\n"
	       "|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < PIN_ARRAY_COUNT(worker_counts); i++) {
		if (worker_counts[i] <= workers_most) {
			measure_workers(worker_counts[i]);
		}
	}
	printf("\n| tasks | spawn ns | run ns | KiB more |\n|---|---|---|---|\n");
	for (uint32_t count = 1000; count <= tasks_most; count *= 10) {
		measure_tasks(count);
	}
	printf("\n| requests | submit ns | end ns | KiB more | destroy ms |\n"
	       "|---|---|---|---|---|\n");
	for (uint32_t count = 1000; count <= requests_most; count *= 10) {
		measure_requests(count);
	}
	printf("\n| files | ns each | KiB more |\n|---|---|---|\n");
	expect_ready(root, mkdtemp(root) != NULL);
	for (uint32_t count = 1000, from = 0; count <= files_most; from = count, count *= 10) {
		make_files(root, from, count);
		measure_files(root, count);
	}
	expect_number("removal", 0, remove_all(root));
	return expect_status();
}
