/* SPDX-License-Identifier: MIT */
/*
 * A worker's life.
 */
#include "runtime/core/worker.h"
#include "runtime/base/check.h"
#include "runtime/core/step.h"

#include <errno.h>
#include <stdlib.h>

_Thread_local struct pin_worker *pin_worker_self PIN_TLS_INITIAL;

void pin_worker_forget(void)
{
	pin_worker_self = NULL;
}

static int start_ring(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_ring_options options = {
		.entries = shared->config.ring_entries,
		.helper_count = shared->config.ring_helper_count,
		.is_fallback = shared->is_fallback,
		.kernel = &shared->kernel,
	};
	char hint[192];
	int rc = pin_ring_init(&worker->ring, shared->host, &worker->meter, &options, &shared->log);

	if (rc == 0) {
		return 0;
	}
	pin_kernel_ring_hint(rc, hint, sizeof(hint));
	if (shared->config.io_level == PINION_IO_RING) {
		pin_log(&shared->log, PINION_LOG_ERROR, "worker %u has no io_uring: %s",
			worker->index, hint);
		return rc;
	}
	pin_log(&shared->log, PINION_LOG_WARN, "worker %u runs without io_uring: %s", worker->index,
		hint);
	options.is_fallback = true;
	return pin_ring_init(&worker->ring, shared->host, &worker->meter, &options, &shared->log);
}

static int start_memory(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	const struct pinion_config *config = &shared->config;
	size_t large_bytes = (size_t)config->buffer_bytes * config->buffer_count;
	size_t small_bytes = (size_t)config->small_buffer_bytes * config->small_buffer_count;
	int rc = pin_arena_init(&worker->arena, shared->host, large_bytes + small_bytes,
		worker->place.node_index, &shared->log);

	if (rc < 0) {
		return rc;
	}
	worker->is_registered = pin_ring_register(
		&worker->ring, worker->arena.memory, worker->arena.bytes, &shared->log);
	rc = pin_pool_init(
		&worker->buffers, worker->arena.memory, config->buffer_bytes, config->buffer_count);
	if (rc < 0) {
		return rc;
	}
	return pin_pool_init(&worker->small_buffers, worker->arena.memory + large_bytes,
		config->small_buffer_bytes, config->small_buffer_count);
}

static int start(struct pin_worker *worker)
{
	int rc;

	/*
	 * Bound before the first touch, so that memory lands on the right node.
	 */
	if (worker->has_place && worker->shared->config.bind_workers) {
		worker->is_bound = worker->shared->host->thread_bind(worker->place.cpu_index) == 0;
	}
	worker->shared->host->thread_sleep_exactly();
	rc = start_ring(worker);
	return rc < 0 ? rc : start_memory(worker);
}

int pin_worker_init(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	struct pin_tuner_options tuning = {
		.alpha_permille = config->ewma_alpha_permille,
		.target_ns = config->injector_target_us * 1000,
		.interval_min = config->interval_min,
		.interval_max = config->interval_max,
		.default_task_ns = config->task_ns,
	};
	bool is_fifo = config->queue_order == PINION_QUEUE_FIFO;

	pin_parker_init(&worker->parker);
	pin_tuner_init(&worker->tuner, &tuning);
	pin_timers_init(&worker->timers, worker->shared->host->now_ns());
	pin_random_init(&worker->random, config->seed, worker->index);
	worker->uses_lifo = is_fifo && config->lifo_polls > 0;
	worker->hoard_spawns = worker->shared->worker_count > 1 ? config->hoard_spawns : UINT32_MAX;
	worker->idle_gap_ns = UINT32_MAX;
	return pin_deque_init(
		&worker->deque, config->queue_tasks, is_fifo ? PIN_DEQUE_FIFO : PIN_DEQUE_LIFO);
}

void *pin_worker_main(void *arg)
{
	struct pin_worker *worker = arg;
	struct pin_shared *shared = worker->shared;

	pin_worker_self = worker;
	worker->start_error = start(worker);
	/* The creator sees all of the above once it sees the count. */
	pin_fetch_add_acq_rel_u32(&shared->started_count, 1);
	shared->host->futex_wake(&shared->started_count, 1);
	if (worker->start_error == 0) {
		while (pin_worker_step(worker) != PIN_STEP_EXIT) {
		}
		PIN_CHECK(pin_list_is_empty(&worker->ready));
		PIN_CHECK(pin_deque_count(&worker->deque) == 0);
	}
	pin_ring_retire(&worker->ring);
	return NULL;
}

void pin_worker_fini(struct pin_worker *worker)
{
	pin_ring_fini(&worker->ring);
	pin_pool_fini(&worker->buffers);
	pin_pool_fini(&worker->small_buffers);
	pin_arena_fini(&worker->arena);
	pin_deque_fini(&worker->deque);
}
