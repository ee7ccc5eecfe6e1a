/* SPDX-License-Identifier: MIT */
/*
 * Pools as their users have them, by the public calls, and work on a certain
 * worker that the test waits for. Messages go to runtimes_log.
 */
#ifndef PIN_TESTS_SUPPORT_USERS_H
#define PIN_TESTS_SUPPORT_USERS_H

#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include "runtime/api/internal.h"

#include <errno.h>

/* Small buffers with as much in front of them. */
static inline void users_config(struct pinion_pool_config *config, uint32_t worker_count,
	uint32_t local_count, uint32_t buffer_count)
{
	pinion_pool_config_init(config);
	config->worker_count = worker_count;
	config->local_count = local_count;
	config->buffer_count = buffer_count;
	config->buffer_bytes = 4096;
	config->log = runtimes_note;
}

static inline struct pinion_pool_info users_info(const struct pinion_pool *pool)
{
	struct pinion_pool_info info;

	pinion_pool_get_info(pool, &info, sizeof(info));
	return info;
}

static inline struct pinion_pool_stats users_stats(const struct pinion_pool *pool)
{
	struct pinion_pool_stats stats;

	pinion_pool_get_stats(pool, &stats, sizeof(stats));
	return stats;
}

/* Free buffers of the pool, wherever they are. */
static inline uint32_t users_free(const struct pinion_pool *pool)
{
	return (uint32_t)users_stats(pool).free_count;
}

/* Of these, in no cache. */
static inline uint32_t users_shared(const struct pinion_pool *pool)
{
	return (uint32_t)users_stats(pool).shared_count;
}

static inline struct pinion_pool *users_create(
	struct pinion_runtime *runtime, const struct pinion_pool_config *config)
{
	struct pinion_pool *pool = NULL;
	int rc = pinion_pool_create(runtime, config, &pool);

	if (rc != 0) {
		printf("pinion_pool_create: expected 0, got %d: %s\n", rc, runtimes_log);
		exit(1);
	}
	return pool;
}

static inline struct pinion_pool *users_pool(struct pinion_runtime *runtime, uint32_t worker_count,
	uint32_t local_count, uint32_t buffer_count)
{
	struct pinion_pool_config config;

	users_config(&config, worker_count, local_count, buffer_count);
	return users_create(runtime, &config);
}

/* All are free, and as if only one owner had ever had them. */
static inline void users_forget_shared(struct pinion_pool *pool)
{
	for (uint32_t i = 0; i < pool->pool.buffer_count; i++) {
		struct pin_atomic_u64 *state = &pool->pool.entries[i].state;

		pin_store_relaxed_u64(state, (uint32_t)pin_load_relaxed_u64(state));
	}
}

/* With room for pools in each worker's arena. */
static inline struct pinion_runtime *users_runtime(uint32_t worker_count, uint64_t pool_bytes)
{
	struct pinion_runtime *runtime = NULL;
	struct pinion_config config;

	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	config.pool_bytes = pool_bytes;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_ready(runtimes_log, runtime != NULL);
	return runtime;
}

/* All buffers are back, no acquire was refused; then it goes. */
static inline void users_end(struct pinion_pool *pool)
{
	struct pinion_pool_stats counters;

	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	expect_number("misuses", 0, (long long)counters.misuses);
	expect_number("all are back", users_info(pool).buffer_count, users_free(pool));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

static inline struct pinion_buffer users_take(struct pinion_pool *pool)
{
	struct pinion_buffer buffer = {NULL, 0, 0};

	expect_number("try_acquire", 0, pinion_pool_try_acquire(pool, &buffer));
	return buffer;
}

static inline void users_give(struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	expect_number("release", 0, pinion_pool_release(pool, buffer));
	expect_true("the handle is cleared", buffer->bytes == NULL);
}

static inline struct pinion_pool_stats users_counters(const struct pinion_pool *pool)
{
	struct pinion_pool_stats counters;

	pinion_pool_get_stats(pool, &counters, sizeof(counters));
	return counters;
}

/* A message with these words came; forgets all so far. */
static inline void users_expect_said(const char *words)
{
	pthread_mutex_lock(&runtimes_log_lock);
	if (strstr(runtimes_log, words) == NULL) {
		expect_text("message", words, runtimes_log);
	}
	runtimes_log[0] = '\0';
	pthread_mutex_unlock(&runtimes_log_lock);
}

struct users_job {
	struct pinion_task task;
	void (*body)(void *arg);
	void *arg;
	struct pin_atomic_u32 has_ended;
};

static inline int users_job_run(struct pinion_task *task)
{
	struct users_job *job = PIN_CONTAINER_OF(task, struct users_job, task);

	job->body(job->arg);
	tasks_signal(&job->has_ended);
	return 0;
}

/* Runs `body` on that worker; returns when it is over. */
static inline void users_on(
	struct pinion_runtime *runtime, uint32_t worker_index, void (*body)(void *arg), void *arg)
{
	struct users_job job = {.task = {.run = users_job_run}, .body = body, .arg = arg};

	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, worker_index, &job.task));
	tasks_await(&job.has_ended, 1);
}

/* For users_on(): some buffers at once. */
struct users_taking {
	struct pinion_pool *pool;
	struct pinion_buffer buffers[8];
	uint32_t count;
};

static inline void users_take_some(void *arg)
{
	struct users_taking *taking = arg;

	for (uint32_t i = 0; i < taking->count; i++) {
		taking->buffers[i] = users_take(taking->pool);
	}
}

static inline void users_give_some(void *arg)
{
	struct users_taking *taking = arg;

	for (uint32_t i = 0; i < taking->count; i++) {
		users_give(taking->pool, &taking->buffers[i]);
	}
}

#endif
