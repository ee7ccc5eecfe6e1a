/* SPDX-License-Identifier: MIT */
/*
 * Running what there is, in its order, and looking after the ring.
 */
#include "runtime/core/step.h"
#include "runtime/base/check.h"
#include "runtime/core/park.h"
#include "runtime/core/search.h"
#include "runtime/core/spawn.h"
#include "runtime/core/task.h"
#include "runtime/core/timer.h"
#include "runtime/core/wake.h"

enum {
	/*
	 * How long submissions may gather while tasks run. A disk whose queue
	 * runs dry behind a long task costs far more than one more enter does.
	 */
	SUBMIT_DELAY_NS = 20 * 1000,
	/*
	 * Reading the clock costs as much as an empty task. So it is read after
	 * as many tasks as take this long by the last reading, up to a limit,
	 * since the next ones may be longer.
	 */
	CLOCK_PERIOD_NS = 1000,
	CLOCK_STRIDE_MAX = 32,
};

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

	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared)) ||
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
		pin_spawn_enqueue(worker, link);
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
	if (!pin_timer_take(worker, pin_timer_of(task))) {
		cancel_task(worker, task);
	}
}

/* What is due becomes a task like any other, for others to steal as well. */
static void expire_timers(struct pin_worker *worker)
{
	struct pinion_task *task;

	if (pin_shared_is_stopping(worker->shared)) {
		pin_timers_expire_all(&worker->timers);
	} else {
		pin_timers_advance(&worker->timers, worker->now_ns);
	}
	while ((task = pin_timer_expire(worker)) != NULL) {
		pin_spawn_enqueue(worker, pin_task_link(task));
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
	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared)) && !worker->cancel_sent) {
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
	if (!pin_search_spin(worker, pin_park_has_work, &link)) {
		pin_park(worker);
	} else if (link != NULL) {
		/* As good as no gap, and a look at the clock would be one. */
		pin_search_note_gap(worker, 0);
		worker->is_dry = false;
		run_or_cancel(worker, link);
	}
	return PIN_STEP_RAN;
}
