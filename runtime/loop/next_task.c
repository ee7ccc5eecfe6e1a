/* SPDX-License-Identifier: MIT */
/*
 * Takes and runs the next task of the normal lane from each of its sources:
 * slot, deque, ready list, inbox, injector, other workers.
 *
 * The loop tries the sources in the order of loop.h. Each function runs at
 * most one task itself; what it takes beyond that is in the worker's deque,
 * where thieves can see it.
 */
#include "runtime/loop/next_task.h"
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

/* ---- running ---- */

/*
 * A task is entered, and counted.
 */

/* Between the two events of a task; an unwind has its own: fault.c. */
static void run_traced(
	struct pin_worker *worker, struct pinion_task *task, enum pin_trace_source source)
{
	int rc;

	pin_event_note_begin(worker, source, task, pin_request_run_of(task));
	rc = pin_run_found(worker, task, source);
	pin_event_note(worker, PIN_TRACE_TASK_END, 0, rc, 0, 0);
}

PIN_APART void pin_run_otherwise(
	struct pin_worker *worker, struct pinion_task *task, enum pin_trace_source source)
{
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	if (worker->is_traced) {
		run_traced(worker, task, source);
	} else {
		(void)pin_run_found(worker, task, source);
	}
}

static PIN_APART void cancel_traced(struct pin_worker *worker, struct pinion_task *task)
{
	pin_event_note_task(
		worker, PIN_TRACE_TASK_CANCEL, 0, task, (uintptr_t)(pin_fault_fn)task->cancel);
	task->cancel(task);
	pin_event_note(worker, PIN_TRACE_TASK_END, 0, 0, 0, 0);
}

void pin_run_cancel(struct pin_worker *worker, struct pinion_task *task)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(!pin_task_is_message(task));
	pin_task_release(task);
	if (task->cancel != NULL) {
		pin_running_enter(worker, (pin_fault_fn)task->cancel);
		worker->running_kind = PIN_RUNNING_CANCEL;
		PIN_TRACE3(task_cancel, worker->index, task, task->cancel);
		if (PIN_UNLIKELY(worker->is_traced)) {
			cancel_traced(worker, task);
		} else {
			task->cancel(task);
		}
		PIN_DCHECK(worker->running_kind == PIN_RUNNING_CANCEL);
		worker->running_kind = PIN_RUNNING_TASK;
	}
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

void pin_run_or_cancel(
	struct pin_worker *worker, struct pin_link *link, enum pin_trace_source source)
{
	struct pinion_task *task = pin_task_of(link);

	if (PIN_UNLIKELY(task->run == NULL)) {
		pin_check_misused(&worker->shared->log,
			"a queued task has no run any more: its memory was freed or cleared while "
			"it was queued; keep it until the task has run");
	}
	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared)) ||
		(task->flags & PINION_TASK_MANDATORY) != 0 ||
		pin_task_kind(task) == PIN_TASK_COMPLETED) {
		pin_run_task(worker, task, source);
	} else {
		pin_meter_add(&worker->meter.queued_cancelled, 1);
		pin_run_cancel(worker, task);
	}
}

/* ---- choosing ---- */

enum {
	/* Some copy cached data, so that others would wait for long. */
	POSTED_AT_ONCE = 32,
	/*
	 * Tasks of the injector at once that a worker takes while it walks its
	 * own queue depth first: the next ones to be run, each perhaps a tree.
	 * More would fill the queue again, whose older half goes back then.
	 */
	DEEP_SHARE = 4,
	/*
	 * Checks after which a worker that polls a device searches though
	 * nothing is to be seen: work may wait for a stalled worker.
	 */
	UNSEARCHED_POLLS_MAX = 63,
};

/* Of what others started, served or cancelled. */
static void take_message(struct pin_worker *worker, struct pinion_task *task)
{
	if (task->private_kind == PIN_TASK_COMPLETED) {
		pin_meter_add(&worker->meter.inbox_polls, 1);
		pin_run_task(worker, task, PIN_SOURCE_INBOX);
	} else if (pin_wait_is_message(task)) {
		/* Whatever its result, also while the runtime stops. */
		pin_wait_take(worker, task);
		pin_meter_add(&worker->meter.inbox_polls, 1);
		pin_run_task(worker, task, PIN_SOURCE_INBOX);
	} else if (pin_files_is_message(task)) {
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		pin_files_take(worker, task);
	} else {
		PIN_CHECK(pin_request_is_message(task));
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		pin_request_take(worker, task);
	}
}

bool pin_poll_posted(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->posted);

	if (link == NULL) {
		return false;
	}
	if (PIN_UNLIKELY(pin_task_is_message(pin_task_of(link)))) {
		take_message(worker, pin_task_of(link));
	} else {
		pin_meter_add(&worker->meter.inbox_polls, 1);
		pin_run_or_cancel(worker, link, PIN_SOURCE_INBOX);
	}
	return true;
}

/* How many of `limit` go before a check is due. */
static PIN_INLINE uint32_t polls_to_look(const struct pin_worker *worker, uint32_t limit)
{
	uint32_t interval = pin_queue_interval_interval(&worker->queue_interval);
	uint32_t since_look = worker->polls_since_look + 1;

	PIN_DCHECK(interval > 0);
	return since_look >= interval || pin_poll_is_look_due(worker)
		? 0
		: pin_min_u32(limit, interval - since_look);
}

/* One by one, as long as each is next. After a theft there may be none. */
static PIN_INLINE uint32_t poll_series(struct pin_worker *worker, uint32_t most,
	enum pin_trace_source source, struct pin_link *(*take_next)(struct pin_worker *worker),
	bool (*is_next)(const struct pin_worker *worker, const struct pin_shared *shared))
{
	const struct pin_shared *shared = worker->shared;
	uint32_t limit = polls_to_look(worker, most);
	uint32_t left = limit;

	PIN_DCHECK(worker->slow_reasons == 0);
	PIN_DCHECK(limit <= most);
	if (limit == 0) {
		return 0;
	}
	/* In advance: none of them need return. */
	worker->polls_since_look += limit;
	pin_store_relaxed_u32(&worker->lifo_row, 0);
	do {
		struct pin_link *link = take_next(worker);

		if (link == NULL) {
			break;
		}
		(void)pin_run_found(worker, pin_task_of(link), source);
		left--;
	} while (left > 0 && is_next(worker, shared));
	PIN_DCHECK(left <= limit && left <= worker->polls_since_look);
	worker->polls_since_look -= left;
	return limit - left;
}

static PIN_INLINE struct pin_link *take_queued(struct pin_worker *worker)
{
	return pin_deque_pop_fifo(&worker->deque);
}

static PIN_INLINE struct pin_link *take_ready(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->ready);

	if (link != NULL) {
		/* One by one: a task that unwinds ends the series. */
		pin_meter_add(&worker->meter.ready_polls, 1);
	}
	return link;
}

uint32_t pin_poll_deque_series(struct pin_worker *worker, uint32_t limit)
{
	PIN_DCHECK(worker->deque.order == PIN_DEQUE_FIFO);
	return poll_series(worker, limit, PIN_SOURCE_LOCAL, take_queued, pin_poll_is_deque_next);
}

uint32_t pin_poll_ready_series(struct pin_worker *worker, uint32_t limit)
{
	PIN_DCHECK(pin_list_has_several(&worker->ready));
	return poll_series(
		worker, limit, PIN_SOURCE_COMPLETION, take_ready, pin_poll_is_ready_next);
}

/* Once, for three places that most polls do not come to. */
static PIN_APART bool poll_deque(struct pin_worker *worker)
{
	return pin_poll_deque(worker);
}

/* So that none of the own queues can starve the others. */
bool pin_poll_in_turns(struct pin_worker *worker)
{
	uint32_t turn = worker->turn;

	PIN_DCHECK(turn <= 2);
	worker->turn = turn == 2 ? 0 : turn + 1;
	switch (turn) {
	case 0:
		return poll_deque(worker) || pin_poll_ready(worker) || pin_poll_posted(worker);
	case 1:
		return pin_poll_ready(worker) || pin_poll_posted(worker) || poll_deque(worker);
	default:
		return pin_poll_posted(worker) || poll_deque(worker) || pin_poll_ready(worker);
	}
}

/*
 * Where workers differ in the lanes they run, tasks in the queue that all share
 * stay there until they are run: in another's own queue not all could reach
 * them.
 */
static uint32_t injector_room(struct pin_worker *worker)
{
	struct pin_deque *deque = &worker->deque;

	if (PIN_UNLIKELY(worker->shared->class_count != 1)) {
		return 1;
	}
	return PIN_UNLIKELY(deque->takes_newest && deque->order == PIN_DEQUE_FIFO)
		? pin_min_u32(pin_deque_room(deque) + 1, DEEP_SHARE)
		: pin_deque_room(deque) + 1;
}

/*
 * Takes a share of the injector, so that one lock serves several tasks and the
 * other workers get theirs. It wakes one more worker if any work is left: each
 * worker so woken does the same.
 */
bool pin_poll_injected(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_link *first;
	uint32_t count;
	bool has_more;

	count = pin_injector_pop_into(&shared->injector, shared->worker_count,
		injector_room(worker), &worker->deque, &first, &has_more);
	if (count == 0) {
		return false;
	}
	PIN_DCHECK(first != NULL);
	PIN_DCHECK(pin_deque_count(&worker->deque) <= worker->deque.capacity);
	pin_room_tell(shared, PINION_LANE_NORMAL);
	pin_meter_add(&worker->meter.injector_takes, 1);
	pin_meter_add(&worker->meter.injector_tasks, count);
	pin_metrics_note_batch(worker, has_more);
	/* The chain: a worker that finds more than it runs wakes one more. */
	if (has_more || pin_deque_count(&worker->deque) > 0) {
		pin_wake_one(shared, worker);
	}
	if (PIN_UNLIKELY(shared->tuning.normal_warn_depth != 0)) {
		uint64_t left = pin_load_relaxed_u64(&shared->injector.length);

		pin_lane_warn(shared, PINION_LANE_NORMAL, left + count);
		pin_lane_warn(shared, PINION_LANE_NORMAL, left);
	}
	pin_run_or_cancel(worker, first, PIN_SOURCE_INJECTOR);
	return true;
}

/* Requests that the task submits are of its lane, unless they name another. */
bool pin_poll_urgent(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->urgent);

	if (link == NULL) {
		return false;
	}
	PIN_DCHECK(pin_shared_has_urgent(worker->shared));
	pin_meter_add(&worker->meter.ready_polls, 1);
	pin_store_relaxed_u32(&worker->running_lane, pin_task_lane(pin_task_of(link)));
	pin_run_task(worker, pin_task_of(link), PIN_SOURCE_COMPLETION);
	return true;
}

/* Tasks for this worker alone. */
bool pin_poll_bound(struct pin_worker *worker)
{
	return pin_poll_ready(worker) || pin_poll_posted(worker) || pin_poll_inbox(worker);
}

/* The very last resort: completions in the ring of a stalled worker. */
static struct pin_link *reap_others(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	struct pin_link *link = NULL;
	uint32_t index;

	PIN_DCHECK(worker->shares_ring && worker->is_searching);
	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (link == NULL && pin_victims_next(&round, &index)) {
		PIN_DCHECK(index != worker->index);
		if (pin_requests_reap_remote(&shared->workers[index], worker)) {
			link = pin_deque_pop(&worker->deque);
		}
	}
	return link;
}

/* Begins requests queued on a stalled worker. */
static void adopt_external(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	uint32_t index;

	PIN_DCHECK(worker->is_searching);
	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (pin_victims_next(&round, &index)) {
		struct pin_worker *victim = &shared->workers[index];

		PIN_DCHECK(victim != worker);
		if (!pin_external_may_adopt(victim)) {
			continue;
		}
		pin_search_succeed(worker);
		pin_meter_add(&worker->meter.steals, 1);
		pin_meter_add(&worker->meter.tasks_stolen,
			pin_requests_take_external(worker, victim, POSTED_AT_ONCE));
		/* The chain: more than one worker may begin the rest. */
		if (!pin_external_is_empty(victim)) {
			pin_wake_one(shared, worker);
		}
		return;
	}
}

bool pin_poll_external(struct pin_worker *worker)
{
	if (PIN_LIKELY(pin_external_is_empty(worker))) {
		return false;
	}
	/* It may take a while, as without io_uring. */
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	return pin_requests_take_external(worker, worker, POSTED_AT_ONCE) > 0;
}

static bool is_search_put_off(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->unsearched_batches <= UNSEARCHED_POLLS_MAX);
	/* To the device first; there is time to search while it works. */
	if (worker->unsearched_batches < PIN_UNSEARCHED_BATCHES_MAX &&
		(pin_remote_reap_has_gathered(worker) || pin_secondary_has_gathered(worker))) {
		return true;
	}
	/* To count as a searcher writes what all read, each time round. */
	return PIN_UNLIKELY(pin_polled_is_busy(worker)) && !worker->is_searching &&
		worker->unsearched_batches < UNSEARCHED_POLLS_MAX && !pin_search_sees_work(worker);
}

/*
 * Searches the other workers' queues first. If that finds nothing it ends
 * cancelled timers that are late; a worker that still counts as a searcher then
 * reaps shared rings and takes external submissions of stalled workers.
 */
bool pin_poll_others(struct pin_worker *worker)
{
	struct pin_link *link;

	if (is_search_put_off(worker)) {
		worker->unsearched_batches++;
		return false;
	}
	worker->unsearched_batches = 0;
	link = pin_search_others(worker);
	PIN_DCHECK(link == NULL || worker->is_searching);
	if (link == NULL && PIN_UNLIKELY(pin_timer_next_ns(worker) <= worker->now_ns) &&
		pin_due_end_cancelled(worker)) {
		/* Another's that were cancelled. */
		return true;
	}
	if (link == NULL && worker->shares_ring && worker->is_searching) {
		link = reap_others(worker);
	}
	if (link == NULL && worker->is_searching) {
		adopt_external(worker);
	}
	if (link == NULL) {
		return false;
	}
	pin_meter_add(&worker->meter.steal_polls, 1);
	pin_run_or_cancel(worker, link, PIN_SOURCE_STEAL);
	return true;
}

/* ---- lanes ---- */

/*
 * Lanes in their order, and those that are overdue.
 */

static bool poll_lane(struct pin_worker *worker, uint32_t lane)
{
	struct pin_link *link;

	if (lane == PINION_LANE_NORMAL) {
		/* A lower lane waits for what others have queued, too. */
		return pin_poll_near(worker) ||
			(pin_search_sees_work(worker) && pin_poll_others(worker));
	}
	if (lane == PIN_LANE_BOUND) {
		return pin_poll_bound(worker);
	}
	link = pin_lane_pop(worker, lane);
	if (link == NULL) {
		return false;
	}
	PIN_DCHECK(pin_task_lane(pin_task_of(link)) == lane);
	pin_store_relaxed_u32(&worker->running_lane, lane);
	pin_run_or_cancel(worker, link, PIN_SOURCE_LANE);
	return true;
}

/* Of a lane that was passed by too often, or whose oldest waits too long. */
static bool poll_due(struct pin_worker *worker)
{
	uint32_t overdue = pin_lane_overdue(worker->shared);
	uint32_t lane = pin_lane_turns_due(&worker->lanes, overdue);

	if (lane == PIN_LANE_NONE) {
		return false;
	}
	PIN_DCHECK(lane == PIN_LANE_BOUND || pin_worker_serves(worker, lane));
	pin_lane_turns_skip(&worker->lanes, lane);
	if (!poll_lane(worker, lane)) {
		return false;
	}
	pin_meter_add((overdue & PIN_LANE_BIT(lane)) != 0 ? &worker->meter.aged_turns
							  : &worker->meter.floor_turns,
		1);
	pin_lane_turns_note(&worker->lanes, lane);
	return true;
}

/* One task of a lane that it does not serve. */
static bool poll_assist(struct pin_worker *worker)
{
	PIN_DCHECK(worker->is_free);
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		struct pin_link *link;

		if (pin_worker_serves(worker, lane) ||
			!pin_runnable_has_lane(worker->shared, lane)) {
			continue;
		}
		if (!pin_assist_try_leave(worker)) {
			return false;
		}
		link = pin_lane_pop(worker, lane);
		if (link != NULL) {
			PIN_DCHECK(pin_task_lane(pin_task_of(link)) == lane);
			pin_meter_add(&worker->meter.assists, 1);
			pin_store_relaxed_u32(&worker->running_lane, lane);
			pin_run_or_cancel(worker, link, PIN_SOURCE_LANE);
			return true;
		}
		pin_assist_enter(worker);
	}
	return false;
}

/*
 * Whether a less general worker is about to take what there is in the high
 * lane: it was woken for it, searches, or will be woken. A hint: a worker that
 * has nothing else to run takes it all the same.
 */
static bool is_left_to_others(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	for (uint32_t i = 0; i < shared->class_count; i++) {
		const struct pin_worker_class *worker_class =
			&shared->classes[shared->class_order[i]];

		if (worker_class->order.count >= worker->lanes.order.count) {
			return false;
		}
		/*
		 * A sleeper is counted as a searcher before it is claimed, and
		 * a searcher until it has published its bit: so one of these
		 * loads sees a worker that changes between them.
		 */
		if ((worker_class->order.mask & PIN_LANE_BIT(PINION_LANE_HIGH)) != 0 &&
			(pin_load_acquire_u32(&worker_class->searching) > 0 ||
				pin_wake_sees_sleeper(worker_class) ||
				pin_load_acquire_u32(&worker_class->searching) > 0)) {
			return true;
		}
	}
	return false;
}

/*
 * Before each task where requests of the high lane come: those that wait are
 * begun. In between they would wait for all the tasks of the turn.
 */
static PIN_APART void look_for_urgent(struct pin_worker *worker)
{
	uint64_t start_ns;

	if (PIN_UNLIKELY(!worker->ring.is_bounded)) {
		pin_remote_reap_enter(worker);
		pin_requests_expect_urgent(worker);
		pin_remote_reap_leave(worker);
	}
	if (PIN_LIKELY(pin_injector_is_empty(&worker->external_urgent))) {
		return;
	}
	/* It may take a while, as without io_uring. */
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	start_ns = worker->shared->host->now_ns();
	pin_requests_take_urgent(worker, worker, POSTED_AT_ONCE);
	worker->now_ns = worker->shared->host->now_ns();
	/* Which is not the time of tasks. */
	worker->away_ns += worker->now_ns - start_ns;
}

/*
 * A single one goes before all else. The second in a row goes after lanes that
 * are due, so that a stream of them stops none.
 */
static bool poll_urgent_turn(struct pin_worker *worker)
{
	/* Before it runs: a task need not return. */
	worker->ran_urgent = !pin_list_is_empty(&worker->urgent);
	if (!worker->ran_urgent) {
		return false;
	}
	pin_lane_turns_note_urgent(&worker->lanes);
	return pin_poll_urgent(worker);
}

static bool poll_lanes_served(struct pin_worker *worker)
{
	const struct pin_lane_order *order = &worker->lanes.order;
	bool was_urgent = worker->ran_urgent;
	bool is_left = false;

	PIN_DCHECK(order->count >= 1 && order->count <= PIN_LANES);
	PIN_DCHECK(!worker->is_free); /* else another might leave its task to this one */
	worker->ran_urgent = false;
	if (!was_urgent && poll_urgent_turn(worker)) {
		return true;
	}
	if (poll_due(worker)) {
		return true;
	}
	if (was_urgent && poll_urgent_turn(worker)) {
		return true;
	}
	for (uint32_t i = 0; i < order->count; i++) {
		/* Before the lane is checked: a task may come meanwhile. */
		if (order->lanes[i] == PINION_LANE_HIGH && is_left_to_others(worker)) {
			is_left = true;
			continue;
		}
		if (poll_lane(worker, order->lanes[i])) {
			pin_lane_turns_note(&worker->lanes, order->lanes[i]);
			return true;
		}
	}
	return pin_poll_bound(worker) || (is_left && poll_lane(worker, PINION_LANE_HIGH)) ||
		pin_poll_others(worker);
}

bool pin_poll_lanes(struct pin_worker *worker)
{
	bool assists = pin_assist_is_on(worker->shared);

	/* Relaxed: a name. Until one of another lane is taken. */
	pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_NORMAL);
	if (assists) {
		pin_assist_leave(worker);
	}
	if (PIN_UNLIKELY(pin_shared_has_urgent(worker->shared))) {
		look_for_urgent(worker);
	}
	if (poll_lanes_served(worker)) {
		return true;
	}
	if (assists) {
		pin_assist_enter(worker);
		return poll_assist(worker);
	}
	return false;
}
