/* SPDX-License-Identifier: MIT */
/*
 * The worker's step, its life, and how work gets to it.
 */
#include "runtime/core/worker.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/*
	 * Every so many polls the injector comes first, so that it never
	 * starves.
	 */
	INJECTOR_INTERVAL = 20,
	/*
	 * How long submissions may gather while tasks run. A disk whose queue
	 * runs dry behind a long task costs far more than one more enter does.
	 */
	SUBMIT_DELAY_NS = 20 * 1000,
	/* Marks the index of a small buffer. */
	SMALL_BUFFER = 1u << 31,
};

static _Thread_local struct pin_worker *current_worker;

struct pin_worker *pin_worker_current(void)
{
	return current_worker;
}

/* ---- waking ---- */

static void notify(struct pin_shared *shared, uint32_t index)
{
	struct pin_worker *target = &shared->workers[index];

	if (pin_parker_notify(&target->parker, shared->host)) {
		pin_ring_doorbell(&target->ring);
	}
}

void pin_shared_wake_one(struct pin_shared *shared, struct pin_worker *waker)
{
	uint32_t index;

	pin_fence_seq_cst(); /* [PARK-1] */
	index = pin_idle_claim(&shared->idle);
	if (index == PIN_IDLE_NONE) {
		return;
	}
	if (waker != NULL) {
		pin_meter_add(&waker->meter.wakes_sent, 1);
	}
	notify(shared, index);
}

void pin_shared_wake_all(struct pin_shared *shared)
{
	pin_fence_seq_cst(); /* [PARK-1] */
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		notify(shared, i);
	}
}

/* ---- spawning ---- */

static bool is_stopping(const struct pin_shared *shared)
{
	return pin_load_acquire_u32(&shared->is_stopping) != 0;
}

static void overflow(struct pin_worker *worker)
{
	struct pin_list half = {0};
	uint32_t count = pin_deque_pop_half(&worker->deque, &half);

	pin_injector_push(&worker->shared->injector, &half, count);
	pin_shared_wake_one(worker->shared, worker);
}

int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task)
{
	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	while (!pin_deque_push(&worker->deque, pin_task_link(task))) {
		overflow(worker);
	}
	return 0;
}

int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task)
{
	struct pin_list list = {0};

	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_list_push(&list, pin_task_link(task));
	pin_injector_push(&worker->shared->injector, &list, 1);
	pin_shared_wake_one(worker->shared, worker);
	return 0;
}

void pin_worker_spawn_bound(struct pin_worker *worker, struct pinion_task *task)
{
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_list_push(&worker->ready, pin_task_link(task));
}

/* ---- requests and buffers ---- */

int pin_worker_read(struct pin_worker *worker, struct pinion_request *request)
{
	int rc = is_stopping(worker->shared) ? -ESHUTDOWN
					     : pin_request_submit(&worker->ring, request);

	if (rc == 0) {
		pin_meter_add(&worker->meter.requests_submitted, 1);
	}
	return rc;
}

int pin_worker_open(struct pin_worker *worker, struct pin_open *open)
{
	int rc = is_stopping(worker->shared) ? -ESHUTDOWN : pin_open_submit(&worker->ring, open);

	if (rc == 0) {
		pin_meter_add(&worker->meter.requests_submitted, 1);
	}
	return rc;
}

uint8_t *pin_worker_buffer_acquire(struct pin_worker *worker, size_t bytes, uint32_t *out_index)
{
	uint8_t *buffer;

	if (bytes > worker->small_buffers.buffer_bytes) {
		PIN_CHECK(bytes <= worker->buffers.buffer_bytes);
		return pin_pool_acquire(&worker->buffers, out_index);
	}
	buffer = pin_pool_acquire(&worker->small_buffers, out_index);
	if (buffer != NULL) {
		*out_index |= SMALL_BUFFER;
	}
	return buffer;
}

bool pin_worker_buffer_await(
	struct pin_worker *worker, size_t bytes, struct pin_buffer_waiter *waiter)
{
	waiter->bytes = pin_worker_buffer_acquire(worker, bytes, &waiter->index);
	if (waiter->bytes != NULL) {
		return true;
	}
	pin_list_push(bytes > worker->small_buffers.buffer_bytes ? &worker->buffer_queue
								 : &worker->small_buffer_queue,
		&waiter->link);
	return false;
}

void pin_worker_buffer_release(struct pin_worker *worker, uint8_t *bytes, uint32_t index)
{
	bool is_small = (index & SMALL_BUFFER) != 0;
	struct pin_link *first =
		pin_list_pop(is_small ? &worker->small_buffer_queue : &worker->buffer_queue);

	if (first != NULL) {
		struct pin_buffer_waiter *waiter =
			PIN_CONTAINER_OF(first, struct pin_buffer_waiter, link);

		waiter->bytes = bytes;
		waiter->index = index;
		pin_worker_spawn_bound(worker, waiter->task);
	} else if (is_small) {
		pin_pool_release(&worker->small_buffers, bytes, index & ~(uint32_t)SMALL_BUFFER);
	} else {
		pin_pool_release(&worker->buffers, bytes, index);
	}
}

/* ---- the step ---- */

static void run_task(struct pin_worker *worker, struct pinion_task *task)
{
	if (task->run(task) < 0) {
		pin_meter_add(&worker->meter.tasks_failed, 1);
	}
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
}

static void run_or_cancel(struct pin_worker *worker, struct pinion_task *task)
{
	if (PIN_LIKELY(!is_stopping(worker->shared))) {
		run_task(worker, task);
		return;
	}
	if (task->cancel != NULL) {
		task->cancel(task);
	}
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

static bool poll_ready(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->ready);

	if (link == NULL) {
		return false;
	}
	/*
	 * What has begun is brought to its end, even while the runtime stops.
	 */
	run_task(worker, pin_task_of(link));
	return true;
}

static bool poll_deque(struct pin_worker *worker)
{
	struct pin_link *link = pin_deque_pop(&worker->deque);

	if (link == NULL) {
		return false;
	}
	run_or_cancel(worker, pin_task_of(link));
	return true;
}

static bool poll_injector(struct pin_worker *worker)
{
	uint64_t left;
	struct pin_link *link = pin_injector_pop(&worker->shared->injector, &left);

	if (link == NULL) {
		return false;
	}
	/* The chain: whoever finds more than it takes wakes one more. */
	if (left > 0) {
		pin_shared_wake_one(worker->shared, worker);
	}
	run_or_cancel(worker, pin_task_of(link));
	return true;
}

/* Runs one task or callback; false when every queue was empty. */
static bool poll_once(struct pin_worker *worker)
{
	worker->poll_count++;
	if (worker->poll_count % INJECTOR_INTERVAL == 0 && poll_injector(worker)) {
		return true;
	}
	/* In turns, so that neither of the own queues can starve the other. */
	if (worker->poll_count % 2 == 0) {
		return poll_deque(worker) || poll_ready(worker) || poll_injector(worker);
	}
	return poll_ready(worker) || poll_deque(worker) || poll_injector(worker);
}

static bool run_batch(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	const struct pin_host *host = worker->shared->host;
	uint64_t start_ns = host->now_ns();
	uint64_t end_ns = start_ns + (uint64_t)config->budget_us * 1000;
	uint32_t polls = 0;

	while (polls < config->budget_polls && poll_once(worker)) {
		uint64_t now_ns = host->now_ns();

		polls++;
		if (now_ns >= end_ns ||
			(now_ns >= start_ns + SUBMIT_DELAY_NS &&
				pin_ring_unsubmitted(&worker->ring) > 0)) {
			break;
		}
	}
	return polls > 0;
}

static void deliver(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_task *task = pin_request_complete(&worker->ring, user_data, result);

	if (task != NULL) {
		pin_meter_add(&worker->meter.requests_completed, 1);
		pin_list_push(&worker->ready, pin_task_link(task));
	}
}

/* Everything that could make this worker run; the re-check of [PARK-1]. */
static bool has_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return !pin_list_is_empty(&worker->ready) || pin_deque_count(&worker->deque) > 0 ||
		pin_injector_length(&shared->injector) > 0 || pin_ring_has_work(&worker->ring) ||
		pin_load_acquire_u32(&shared->has_ended) != 0 ||
		(is_stopping(shared) && !worker->cancel_sent);
}

static bool is_quiescent(const struct pin_shared *shared)
{
	uint64_t run = 0;
	uint64_t admitted = 0;

	if (pin_gate_is_open(&shared->gate)) {
		return false;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		run += pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled);
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		admitted += pin_meter_read(&meter->tasks_spawned) +
			pin_meter_read(&meter->requests_submitted);
	}
	return run == admitted + pin_gate_admitted(&shared->gate);
}

static void sleep_in(struct pin_worker *worker, enum pin_park_state mode)
{
	if (mode == PIN_PARK_RING) {
		pin_meter_add(&worker->meter.parks_ring, 1);
		pin_ring_wait(&worker->ring);
	} else {
		pin_meter_add(&worker->meter.parks_futex, 1);
		pin_parker_sleep(&worker->parker, worker->shared->host);
	}
}

static void park(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	enum pin_park_state mode = worker->ring.in_flight > 0 ? PIN_PARK_RING : PIN_PARK_FUTEX;

	if (mode == PIN_PARK_RING) {
		pin_ring_prepare_wait(&worker->ring);
	}
	if (!pin_parker_prepare(&worker->parker, mode)) {
		return;
	}
	pin_idle_publish(&shared->idle, worker->index); /* [PARK-1] */
	pin_fence_seq_cst();				/* [PARK-1] [END-1] */
	if (is_quiescent(shared)) {
		pin_store_release_u32(&shared->has_ended, 1);
		pin_shared_wake_all(shared);
	} else if (!has_work(worker)) {
		sleep_in(worker, mode);
	}
	pin_idle_withdraw(&shared->idle, worker->index);
	pin_parker_finish(&worker->parker);
}

enum pin_step pin_worker_step(struct pin_worker *worker)
{
	bool has_run;

	if (pin_load_acquire_u32(&worker->shared->has_ended) != 0) {
		return PIN_STEP_EXIT;
	}
	if (PIN_UNLIKELY(is_stopping(worker->shared)) && !worker->cancel_sent) {
		pin_ring_cancel_all(&worker->ring);
		worker->cancel_sent = true;
	}
	has_run = run_batch(worker);
	if (pin_ring_has_work(&worker->ring)) {
		has_run |= pin_ring_poll(&worker->ring, deliver, worker) > 0;
	}
	if (!has_run) {
		park(worker);
	}
	return PIN_STEP_RAN;
}

/* ---- life ---- */

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
	rc = start_ring(worker);
	return rc < 0 ? rc : start_memory(worker);
}

void *pin_worker_main(void *arg)
{
	struct pin_worker *worker = arg;
	struct pin_shared *shared = worker->shared;

	current_worker = worker;
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
}
