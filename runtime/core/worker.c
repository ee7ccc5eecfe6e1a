/* SPDX-License-Identifier: MIT */
/*
 * The worker's step, its life, and how work gets to it.
 */
#include "runtime/core/worker.h"
#include "runtime/base/check.h"
#include "runtime/core/search.h"
#include "runtime/core/timer.h"
#include "runtime/core/wake.h"

#include <errno.h>
#include <stdlib.h>

enum {
	/*
	 * How long submissions may gather while tasks run. A disk whose queue
	 * runs dry behind a long task costs far more than one more enter does.
	 */
	SUBMIT_DELAY_NS = 20 * 1000,
	/* Work worth the time it takes to wake somebody for it. */
	WAKE_WORTH_NS = 20 * 1000,
	/*
	 * Reading the clock costs as much as an empty task. So it is read after
	 * as many tasks as take this long by the last reading, up to a limit,
	 * since the next ones may be longer.
	 */
	CLOCK_PERIOD_NS = 1000,
	CLOCK_STRIDE_MAX = 32,
	/* For a waker that stands between its push and its wake. */
	WAKER_DELAY_NS = 10 * 1000 * 1000,
	/* Marks the index of a small buffer. */
	SMALL_BUFFER = 1u << 31,
};

_Thread_local struct pin_worker *pin_worker_self PIN_TLS_INITIAL;

void pin_worker_forget(void)
{
	pin_worker_self = NULL;
}

void pin_shared_stop(struct pin_shared *shared)
{
	pin_store_release_u32(&shared->is_stopping, 1);
	pin_gate_close(&shared->gate);
	pin_wake_all(shared);
}

/* ---- spawning ---- */

static bool is_stopping(const struct pin_shared *shared)
{
	return pin_load_acquire_u32(&shared->is_stopping) != 0;
}

/* The older half and, last of all, the task that found no room. */
static void overflow(struct pin_worker *worker, struct pin_link *link)
{
	struct pin_list half = {0};

	pin_deque_pop_half(&worker->deque, &half);
	pin_list_push(&half, link);
	pin_injector_push(&worker->shared->injector, &half);
	pin_wake_one(worker->shared, worker);
	worker->spawns_since_wake = 0;
}

/* Whether what waits in the worker's own queue is worth waking somebody. */
static bool is_hoarding(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	uint64_t backlog_ns;

	if (worker->spawns_since_wake >= worker->hoard_spawns) {
		return true;
	}
	/* A guess, without the fence; so many are never passed by. */
	if (!pin_wake_sees_sleeper(shared) || pin_load_relaxed_u32(&shared->searching) != 0) {
		return false;
	}
	backlog_ns = pin_deque_count(&worker->deque) * pin_tuner_average_ns(&worker->tuner);
	return backlog_ns >= WAKE_WORTH_NS;
}

static void enqueue(struct pin_worker *worker, struct pin_link *link)
{
	if (PIN_UNLIKELY(!pin_deque_push(&worker->deque, link))) {
		overflow(worker, link);
		return;
	}
	worker->spawns_since_wake++;
	if (PIN_UNLIKELY(is_hoarding(worker))) {
		pin_wake_one(worker->shared, worker);
		worker->spawns_since_wake = 0;
	}
}

static void share(struct pin_worker *worker, struct pinion_task *task)
{
	struct pin_list list = {0};

	pin_list_push(&list, pin_task_link(task));
	pin_injector_push(&worker->shared->injector, &list);
	pin_wake_one(worker->shared, worker);
}

void pin_worker_respawn(struct pin_worker *worker, struct pinion_task *task)
{
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if (worker->deque.order == PIN_DEQUE_LIFO) {
		/* The own queue has no place behind what waits in it. */
		share(worker, task);
	} else {
		enqueue(worker, pin_task_link(task));
	}
}

int pin_worker_spawn(struct pin_worker *worker, struct pinion_task *task)
{
	struct pin_link *link = pin_task_link(task);

	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if (worker->uses_lifo) {
		link = pin_lifo_replace(&worker->lifo, link);
	}
	if (link != NULL) {
		enqueue(worker, link);
	}
	return 0;
}

int pin_worker_spawn_batch(
	struct pin_worker *worker, struct pinion_task *const *tasks, uint32_t count)
{
	struct pin_list rest = {0};
	uint32_t queued = 0;

	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, count);
	for (; queued < count && pin_deque_room(&worker->deque) > 0; queued++) {
		enqueue(worker, pin_task_link(tasks[queued]));
	}
	if (queued < count) {
		for (uint32_t i = queued; i < count; i++) {
			pin_list_push(&rest, pin_task_link(tasks[i]));
		}
		pin_injector_push(&worker->shared->injector, &rest);
		pin_wake_one(worker->shared, worker);
	}
	return 0;
}

int pin_worker_spawn_shared(struct pin_worker *worker, struct pinion_task *task)
{
	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	share(worker, task);
	return 0;
}

int pin_worker_spawn_on(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_task *task)
{
	if (is_stopping(worker->shared)) {
		return -ESHUTDOWN;
	}
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	if (target == worker) {
		pin_list_push(&worker->posted, pin_task_link(task));
	} else {
		pin_inbox_push(&target->inbox, pin_task_link(task));
		pin_wake_worker(target, worker);
	}
	return 0;
}

void pin_worker_timer_start(struct pin_worker *worker, struct pinion_timer *timer)
{
	pin_meter_add(&worker->meter.tasks_spawned, 1);
	pin_timer_arm(worker, timer);
}

void pin_worker_timer_cancelled(
	struct pin_worker *worker, struct pin_worker *target, struct pinion_timer *timer)
{
	struct pin_link *link = pin_task_link(&timer->task);

	if (target == worker) {
		pin_list_push(&worker->posted, link);
	} else {
		pin_inbox_push(&target->inbox, link);
		pin_wake_worker(target, worker);
	}
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

static void note_failure(struct pin_worker *worker, int error)
{
	struct pin_shared *shared = worker->shared;
	uint32_t none = 0;

	pin_meter_add(&worker->meter.tasks_failed, 1);
	if (pin_load_relaxed_u32(&shared->first_failure) == 0) {
		pin_cas_seq_cst_u32(&shared->first_failure, &none, (uint32_t)-error);
	}
	if (shared->config.fault_policy == PINION_FAIL_FAST) {
		pin_shared_stop(shared);
	}
}

static void run_task(struct pin_worker *worker, struct pinion_task *task)
{
	int rc;

	if (PIN_UNLIKELY(worker->is_searching)) {
		pin_search_succeed(worker);
	}
	rc = task->run(task);
	if (PIN_UNLIKELY(rc < 0)) {
		note_failure(worker, rc);
	}
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
}

static void cancel_task(struct pin_worker *worker, struct pinion_task *task)
{
	if (task->cancel != NULL) {
		task->cancel(task);
	}
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

static void run_or_cancel(struct pin_worker *worker, struct pin_link *link)
{
	struct pinion_task *task = pin_task_of(link);

	if (PIN_LIKELY(!is_stopping(worker->shared)) ||
		(task->flags & PINION_TASK_MANDATORY) != 0) {
		run_task(worker, task);
	} else {
		cancel_task(worker, task);
	}
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

static bool poll_lifo(struct pin_worker *worker)
{
	struct pin_link *link = pin_lifo_take(&worker->lifo);

	if (link == NULL) {
		if (PIN_UNLIKELY(!pin_lifo_is_empty(&worker->lifo))) {
			/* A thief is in it, and will be out in a moment. */
			worker->shared->host->yield();
		}
		worker->lifo_polls = 0;
		return false;
	}
	if (worker->lifo_polls >= worker->shared->config.lifo_polls) {
		/* Two that spawn each other must not keep all others out. */
		worker->lifo_polls = 0;
		enqueue(worker, link);
		return false;
	}
	worker->lifo_polls++;
	pin_meter_add(&worker->meter.lifo_polls, 1);
	run_or_cancel(worker, link);
	return true;
}

static bool poll_deque(struct pin_worker *worker)
{
	struct pin_link *link = pin_deque_pop(&worker->deque);

	if (link == NULL) {
		return false;
	}
	run_or_cancel(worker, link);
	return true;
}

static void take_timer(struct pin_worker *worker, struct pinion_task *task)
{
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	if (pin_timer_take(worker, pin_timer_of(task)) == PIN_TIMER_CANCELLED) {
		cancel_task(worker, task);
	}
}

/* What is due becomes a task like any other, for others to steal as well. */
static void expire_timers(struct pin_worker *worker)
{
	struct pinion_task *task;

	if (is_stopping(worker->shared)) {
		pin_timers_expire_all(&worker->timers);
	} else {
		pin_timers_advance(&worker->timers, worker->now_ns);
	}
	while ((task = pin_timer_expire(worker)) != NULL) {
		enqueue(worker, pin_task_link(task));
	}
}

static bool poll_posted(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->posted);

	if (link == NULL) {
		return false;
	}
	if (PIN_UNLIKELY(pin_timer_is_message(pin_task_of(link)))) {
		take_timer(worker, pin_task_of(link));
	} else {
		run_or_cancel(worker, link);
	}
	return true;
}

static bool poll_injector(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_list batch = {0};
	struct pin_link *first;
	struct pin_link *link;
	bool has_more;

	worker->polls_since_look = 0;
	worker->look_ns = worker->now_ns;
	if (pin_injector_pop(&shared->injector, shared->worker_count,
		    pin_deque_room(&worker->deque) + 1, &batch, &has_more) == 0) {
		return false;
	}
	pin_meter_add(&worker->meter.injector_takes, 1);
	first = pin_list_pop(&batch);
	for (link = pin_list_pop(&batch); link != NULL; link = pin_list_pop(&batch)) {
		bool has_room = pin_deque_push(&worker->deque, link);

		PIN_CHECK(has_room);
	}
	/* The chain: whoever finds more than it runs wakes one more. */
	if (has_more || pin_deque_count(&worker->deque) > 0) {
		pin_wake_one(shared, worker);
	}
	run_or_cancel(worker, first);
	return true;
}

static bool poll_others(struct pin_worker *worker)
{
	struct pin_link *link = pin_search_others(worker);

	if (link == NULL) {
		return false;
	}
	run_or_cancel(worker, link);
	return true;
}

static bool is_look_due(const struct pin_worker *worker)
{
	return pin_tuner_is_due(
		&worker->tuner, worker->polls_since_look, worker->now_ns - worker->look_ns);
}

/* In turns, so that none of the own queues can starve the others. */
static bool poll_own(struct pin_worker *worker)
{
	uint32_t turn = worker->turn;

	worker->turn = turn == 2 ? 0 : turn + 1;
	switch (turn) {
	case 0:
		return poll_deque(worker) || poll_ready(worker) || poll_posted(worker);
	case 1:
		return poll_ready(worker) || poll_posted(worker) || poll_deque(worker);
	default:
		return poll_posted(worker) || poll_deque(worker) || poll_ready(worker);
	}
}

static bool poll_inbox(struct pin_worker *worker)
{
	pin_inbox_take(&worker->inbox, &worker->posted);
	return poll_posted(worker);
}

/* Runs one task or callback; false when there was none anywhere. */
static bool poll_once(struct pin_worker *worker)
{
	worker->polls_since_look++;
	if (PIN_UNLIKELY(is_look_due(worker)) && poll_injector(worker)) {
		return true;
	}
	return poll_lifo(worker) || poll_own(worker) || poll_inbox(worker) ||
		poll_injector(worker) || poll_others(worker);
}

/* Shows what is left in the own queue to sleepers; nobody is told otherwise. */
static void share_backlog(struct pin_worker *worker)
{
	if (pin_deque_count(&worker->deque) > 0) {
		pin_wake_one(worker->shared, worker);
		worker->spawns_since_wake = 0;
	}
}

/* Tasks until the clock is read again, when so many took so long. */
static uint32_t clock_stride(uint64_t elapsed_ns, uint32_t tasks)
{
	uint64_t stride =
		elapsed_ns == 0 ? CLOCK_STRIDE_MAX : (uint64_t)tasks * CLOCK_PERIOD_NS / elapsed_ns;

	if (stride > CLOCK_STRIDE_MAX) {
		return CLOCK_STRIDE_MAX;
	}
	return stride == 0 ? 1 : (uint32_t)stride;
}

static bool run_batch(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	const struct pin_host *host = worker->shared->host;
	uint64_t start_ns = host->now_ns();
	uint64_t end_ns = start_ns + (uint64_t)config->budget_us * 1000;
	uint32_t polls = 0;
	uint32_t timed = 0; /* polls at the last reading of the clock */
	uint32_t stride = 1;

	worker->now_ns = start_ns;
	worker->turn_end_ns = end_ns;
	if (pin_timers_count(&worker->timers) > 0) {
		expire_timers(worker);
	}
	pin_inbox_take(&worker->inbox, &worker->posted);
	while (polls < config->budget_polls && poll_once(worker)) {
		uint64_t before_ns = worker->now_ns;

		polls++;
		if (polls - timed < stride) {
			continue;
		}
		worker->now_ns = host->now_ns();
		stride = clock_stride(worker->now_ns - before_ns, stride);
		timed = polls;
		if (worker->now_ns >= end_ns ||
			(worker->now_ns >= start_ns + SUBMIT_DELAY_NS &&
				pin_ring_unsubmitted(&worker->ring) > 0)) {
			break;
		}
	}
	if (polls == 0) {
		return false;
	}
	if (timed != polls) {
		worker->now_ns = host->now_ns();
	}
	pin_tuner_record(&worker->tuner, worker->now_ns - start_ns, polls);
	if (worker->is_dry) {
		pin_search_note_gap(worker, start_ns - worker->dry_since_ns);
		worker->is_dry = false;
	}
	share_backlog(worker);
	return true;
}

static void deliver(void *arg, uint64_t user_data, int32_t result)
{
	struct pin_worker *worker = arg;
	struct pinion_task *task = pin_request_complete(&worker->ring, user_data, result);

	if (task != NULL) {
		pin_meter_add(&worker->meter.requests_completed, 1);
		pin_list_push(&worker->ready, pin_task_link(task));
	} else if (worker->cancel_sent) {
		/* Submitted anew, it is one that the cancel has not met. */
		pin_ring_cancel_all(&worker->ring);
	}
}

/* Everything that could make this worker run; the re-check of [PARK-1]. */
static bool has_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return !pin_list_is_empty(&worker->ready) || !pin_list_is_empty(&worker->posted) ||
		!pin_lifo_is_empty(&worker->lifo) || pin_deque_count(&worker->deque) > 0 ||
		!pin_inbox_is_empty(&worker->inbox) || !pin_injector_is_empty(&shared->injector) ||
		pin_ring_has_work(&worker->ring) || pin_load_acquire_u32(&shared->has_ended) != 0 ||
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

/* What others' queues hold is their searchers' business while there are any. */
static bool may_sleep(const struct pin_worker *worker)
{
	if (has_work(worker)) {
		return false;
	}
	return pin_load_acquire_u32(&worker->shared->searching) != 0 || /* [SEARCH-1] */
		!pin_search_sees_work(worker);
}

static uint64_t sleep_deadline(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	uint64_t deadline_ns = pin_timers_next_ns(&worker->timers);
	uint64_t timeout_ns = (uint64_t)shared->config.park_timeout_us * 1000;

	if (timeout_ns != 0) {
		timeout_ns += shared->host->now_ns();
		deadline_ns = timeout_ns < deadline_ns ? timeout_ns : deadline_ns;
	}
	return deadline_ns;
}

static void sleep_until(struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns)
{
	if (mode == PIN_PARK_RING) {
		pin_ring_wait(&worker->ring, deadline_ns);
	} else {
		pin_parker_sleep(&worker->parker, worker->shared->host, deadline_ns);
	}
}

/* Work waits, and neither was this worker woken nor does anybody search. */
static bool is_forgotten(const struct pin_worker *worker)
{
	return pin_parker_is_parked(&worker->parker) && !pin_ring_has_work(&worker->ring) &&
		has_work(worker) && pin_load_acquire_u32(&worker->shared->searching) == 0;
}

static void sleep_in(struct pin_worker *worker, enum pin_park_state mode)
{
	const struct pin_shared *shared = worker->shared;

	pin_meter_add(
		mode == PIN_PARK_RING ? &worker->meter.parks_ring : &worker->meter.parks_futex, 1);
	sleep_until(worker, mode, sleep_deadline(worker));
	if (shared->config.park_timeout_us == 0 || !is_forgotten(worker)) {
		return;
	}
	/* Others still see this worker in the set; most likely one comes. */
	sleep_until(worker, mode, shared->host->now_ns() + WAKER_DELAY_NS);
	if (is_forgotten(worker)) {
		pin_meter_add(&worker->meter.park_timeout_found_work, 1);
	}
}

static void park(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	enum pin_park_state mode = worker->ring.in_flight > 0 ? PIN_PARK_RING : PIN_PARK_FUTEX;
	uint32_t rank = pin_victims_rank(&shared->victims, worker->index);
	struct pin_idle *parked;

	if (mode == PIN_PARK_RING) {
		pin_ring_prepare_wait(&worker->ring);
	}
	if (!pin_parker_prepare(&worker->parker, mode)) {
		return;
	}
	parked = &shared->parked[mode == PIN_PARK_RING ? PIN_PARKED_RING : PIN_PARKED_FUTEX];
	pin_idle_publish(parked, rank); /* [PARK-1] [SEARCH-1] */
	if (worker->is_searching) {
		pin_search_give_up(worker);
	}
	pin_fence_seq_cst(); /* [PARK-1] [END-1] [SEARCH-1] */
	if (is_quiescent(shared)) {
		pin_store_release_u32(&shared->has_ended, 1);
		pin_wake_all(shared);
	} else if (may_sleep(worker)) {
		sleep_in(worker, mode);
	}
	if (!pin_idle_withdraw(parked, rank)) {
		/* Who claimed it has counted it among the searchers already. */
		worker->is_searching = true;
	}
	pin_parker_finish(&worker->parker);
}

bool pin_worker_should_yield(struct pin_worker *worker)
{
	bool has_completions = false;

	if (pin_ring_has_work(&worker->ring)) {
		has_completions = pin_ring_poll(&worker->ring, deliver, worker) > 0;
	}
	return has_completions || worker->shared->host->now_ns() >= worker->turn_end_ns;
}

enum pin_step pin_worker_step(struct pin_worker *worker)
{
	struct pin_link *link;
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
		/* It may take a while, as without io_uring. */
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		has_run |= pin_ring_poll(&worker->ring, deliver, worker) > 0;
	}
	if (!has_run && !worker->is_dry) {
		worker->is_dry = true;
		worker->dry_since_ns = worker->now_ns;
	}
	if (has_run) {
		return PIN_STEP_RAN;
	}
	if (!pin_search_spin(worker, has_work, &link)) {
		park(worker);
	} else if (link != NULL) {
		/* As good as no gap, and a look at the clock would be one. */
		pin_search_note_gap(worker, 0);
		worker->is_dry = false;
		run_or_cancel(worker, link);
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
