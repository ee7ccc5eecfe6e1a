/* SPDX-License-Identifier: MIT */
/*
 * The subject `startup`: what a runtime costs that is created and destroyed
 * with nothing done in between. The floor starts and joins as many threads and
 * maps as many bytes as the workers' arenas hold, which none of them touches.
 * The cost of large memory is printed beside it.
 */
#include "tests/bench/subjects/startup_memory.h"
#include "tools/bench/tasks.h"
#include "tools/report.h"

#include <errno.h>
#include <pinion/pinion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
	STARTUP_FIGURES = 4, /* of one turn */
	/* What the library shares out by default, spelt out for the floor. */
	OWN_BUFFERS = 28,
	SHARED_BUFFERS = 32,
};

struct startup_thread {
	pthread_t thread;
	void *mapping;
};

struct startup {
	struct pinion_config config;
	size_t arena_bytes; /* of each worker */
	uint32_t worker_count;
	struct startup_thread *threads;
};

static int run_ours(struct startup *startup)
{
	struct pinion_runtime *runtime;
	int rc = pinion_runtime_create(&startup->config, &runtime);

	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_destroy(runtime);
	return 0;
}

static void *end_at_once(void *arg)
{
	return arg;
}

static int start_thread(struct startup_thread *thread, size_t bytes)
{
	void *mapping =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (mapping == MAP_FAILED) {
		return -errno;
	}
	rc = -pthread_create(&thread->thread, NULL, end_at_once, NULL);
	if (rc != 0) {
		munmap(mapping, bytes);
		return rc;
	}
	thread->mapping = mapping;
	return 0;
}

static int run_floor(struct startup *startup)
{
	uint32_t started = 0;
	int rc = 0;

	while (rc == 0 && started < startup->worker_count) {
		rc = start_thread(&startup->threads[started], startup->arena_bytes);
		started += rc == 0;
	}
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(startup->threads[i].thread, NULL);
		munmap(startup->threads[i].mapping, startup->arena_bytes);
	}
	if (rc != 0) {
		report_line("cannot start a thread: %s", report_reason(rc));
	}
	return rc;
}

static int startup_run(void *state, enum bench_side side, struct samples *out_figures)
{
	struct startup *startup = state;
	int rc = 0;

	for (int i = 0; rc == 0 && i < STARTUP_FIGURES; i++) {
		uint64_t start_ns = bench_now_ns();

		rc = side == BENCH_OURS ? run_ours(startup) : run_floor(startup);
		if (rc == 0) {
			rc = samples_add(out_figures, (double)(bench_now_ns() - start_ns) / 1000);
		}
	}
	return rc;
}

static uint32_t startup_further(void *state, struct bench_further further[BENCH_FURTHER_MAX])
{
	const struct startup *startup = state;

	return startup_memory_further(&startup->config, startup->worker_count, further);
}

static void startup_stop(void *state)
{
	struct startup *startup = state;

	free(startup->threads);
	free(startup);
}

/* A runtime like the measured ones shows the number of workers beforehand. */
static int settle(struct startup *startup, struct bench_setting *out_setting)
{
	struct pinion_config *config = &startup->config;
	struct pinion_runtime *runtime;
	int rc = pinion_runtime_create(config, &runtime);

	if (rc != 0) {
		report_line("cannot start: %s", report_reason(rc));
		return rc;
	}
	pinion_runtime_get_info(runtime, &out_setting->facts, sizeof(out_setting->facts));
	pinion_runtime_destroy(runtime);
	startup->worker_count = out_setting->facts.worker_count;
	if (config->buffer_count == 0) {
		config->buffer_count = OWN_BUFFERS + SHARED_BUFFERS / startup->worker_count;
	}
	startup->arena_bytes = (size_t)config->buffer_count * config->buffer_bytes +
		(size_t)config->small_buffer_count * config->small_buffer_bytes;
	return 0;
}

static int startup_start(struct bench *bench, struct bench_setting *out_setting, void **out_state)
{
	struct startup *startup = bench_allocate(sizeof(*startup));
	int rc;

	if (startup == NULL) {
		return -ENOMEM;
	}
	startup->config = bench->options->runtime;
	rc = settle(startup, out_setting);
	if (rc == 0) {
		startup->threads =
			bench_allocate(startup->worker_count * sizeof(*startup->threads));
		rc = startup->threads == NULL ? -ENOMEM : 0;
	}
	if (rc != 0) {
		startup_stop(startup);
		return rc;
	}
	snprintf(out_setting->text, sizeof(out_setting->text), "%u worker%s, arenas of %zu MiB",
		startup->worker_count, startup->worker_count == 1 ? "" : "s",
		startup->arena_bytes >> 20);
	*out_state = startup;
	return 0;
}

const struct bench_subject bench_startup = {
	.name = "startup",
	.unit = "us",
	.axes = BENCH_BY(BENCH_WORKERS),
	.brief = "a runtime created and destroyed, against bare threads and mappings",
	.sides = {[BENCH_OURS] = "pinion_runtime_create", [BENCH_FLOOR] = "pthread+mmap"},
	.start = startup_start,
	.run = startup_run,
	.stop = startup_stop,
	.further = startup_further,
};
