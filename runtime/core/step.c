/* SPDX-License-Identifier: MIT */
/*
 * Running what there is, in its order, and looking after the ring.
 */
#include "runtime/core/step.h"
#include "runtime/base/check.h"
#include "runtime/core/assist.h"
#include "runtime/core/fault.h"
#include "runtime/core/flight.h"
#include "runtime/core/hooks.h"
#include "runtime/core/lane.h"
#include "runtime/core/park.h"
#include "runtime/core/relief.h"
#include "runtime/core/retire.h"
#include "runtime/core/search.h"
#include "runtime/core/sentry.h"
#include "runtime/core/spawn.h"
#include "runtime/core/supply.h"
#include "runtime/core/task.h"
#include "runtime/core/timer.h"
#include "runtime/core/wait.h"
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
	/*
	 * Batches of one short task in a row that are not timed at all. Only
	 * the average misses them: whatever else depends on the time has it
	 * from the start of the next batch.
	 */
	UNTIMED_BATCHES_MAX = 7,
	/*
	 * Batches in a row after which a worker submits at once, rather than
	 * look through the queues of others before.
	 */
	UNSEARCHED_BATCHES_MAX = 7,
};

static void run_task(struct pin_worker *worker, struct pinion_task *task)
{
	int rc;

	if (PIN_UNLIKELY(worker->is_searching)) {
		pin_search_succeed(worker);
	}
	worker->running = (pin_fault_fn)task->run;
	rc = task->run(task);
	if (PIN_UNLIKELY(rc < 0)) {
		pin_fault_note(worker, rc);
	}
	pin_meter_add(&worker->meter.tasks_run, 1); /* [END-1] */
}

static void cancel_task(struct pin_worker *worker, struct pinion_task *task)
{
	if (task->cancel != NULL) {
		worker->running = (pin_fault_fn)task->cancel;
		worker->running_kind = PIN_RUNNING_CANCEL;
		task->cancel(task);
		worker->running_kind = PIN_RUNNING_TASK;
	}
	pin_meter_add(&worker->meter.tasks_cancelled, 1);
}

static void run_or_cancel(struct pin_worker *worker, struct pin_link *link)
{
	struct pinion_task *task = pin_task_of(link);

	if (PIN_LIKELY(!pin_shared_is_stopping(worker->shared)) ||
		(task->flags & PINION_TASK_MANDATORY) != 0 ||
		task->private_kind == PIN_TASK_LANDED) {
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

static PIN_INLINE bool poll_lifo(struct pin_worker *worker)
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
	if (pin_timer_take(worker, pin_timer_of(task))) {
		return;
	}
	if (worker->is_searching) {
		pin_search_succeed(worker);
	}
	cancel_task(worker, task);
}

/* All at once, since none may wait here behind a task. */
static void take_timers(struct pin_worker *worker)
{
	struct pin_inbox *inbox = &worker->shared->timer_inbox;
	struct pin_link *link;

	/* A look first: taking writes to a line that all share. */
	if (PIN_UNLIKELY(!pin_inbox_is_empty(inbox))) {
		pin_inbox_take(inbox, &worker->timer_messages);
	}
	while ((link = pin_list_pop(&worker->timer_messages)) != NULL) {
		take_timer(worker, pin_task_of(link));
	}
}

/* What is due becomes a task like any other, for others to steal as well. */
static void expire_timers(struct pin_worker *worker)
{
	struct pin_list due = {0};
	struct pin_link *link;

	pin_timer_expire(worker, pin_shared_is_stopping(worker->shared), &due);
	while ((link = pin_list_pop(&due)) != NULL) {
		pin_spawn_route(worker, link);
	}
}

/* The next wait that is over; requests that are end on the way. */
static struct pin_timer *pop_expired_wait(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_relief_enter(worker);
	while ((timer = pin_timers_pop(&worker->deadlines)) != NULL &&
		timer->owner_kind != PIN_TASK_WAIT) {
		pin_flight_expire(worker, timer);
	}
	pin_relief_leave(worker);
	return timer;
}

/* Of what waits here; nobody else may end it. */
static void expire_deadlines(struct pin_worker *worker)
{
	struct pin_timer *timer;

	pin_relief_enter(worker);
	pin_timers_advance(&worker->deadlines, worker->now_ns);
	pin_relief_leave(worker);
	while ((timer = pop_expired_wait(worker)) != NULL) {
		pin_wait_expire(worker, timer);
	}
}

/* Others may have to see to its ring, should the next task not end soon. */
static void tell_of_ring(struct pin_worker *worker)
{
	bool has_requests;

	pin_relief_enter(worker);
	has_requests = worker->ring.in_flight > 0;
	pin_relief_leave(worker);
	if (has_requests) {
		pin_sentry_note_kept(worker);
	}
}

static void look_at_timers(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(worker->shares_ring)) {
		tell_of_ring(worker);
		expire_deadlines(worker);
	} else if (PIN_UNLIKELY(pin_timers_count(&worker->deadlines) > 0)) {
		expire_deadlines(worker);
	}
	take_timers(worker);
	if (pin_timer_next_ns(worker) <= worker->now_ns ||
		(worker->has_timers && pin_shared_is_stopping(worker->shared))) {
		expire_timers(worker);
	}
	/* They would be late if the next task should not end soon. */
	if (pin_timer_next_ns(worker) != PIN_NO_DEADLINE) {
		pin_sentry_note_kept(worker);
	}
}

/* Of what others started, served or cancelled. */
static void take_message(struct pin_worker *worker, struct pinion_task *task)
{
	if (pin_timer_is_message(task)) {
		take_timer(worker, task);
	} else if (task->private_kind == PIN_TASK_LANDED) {
		task->private_kind = PIN_TASK_PLAIN;
		run_task(worker, task);
	} else if (pin_wait_is_message(task)) {
		/* Whatever its result, also while the runtime stops. */
		pin_wait_take(worker, task);
		run_task(worker, task);
	} else {
		PIN_CHECK(pin_flight_is_message(task));
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		pin_flight_take(worker, task);
	}
}

static bool poll_posted(struct pin_worker *worker)
{
	struct pin_link *link = pin_list_pop(&worker->posted);

	if (link == NULL) {
		return false;
	}
	if (PIN_UNLIKELY(pin_task_of(link)->private_kind != 0)) {
		take_message(worker, pin_task_of(link));
	} else {
		run_or_cancel(worker, link);
	}
	return true;
}

/*
 * Where workers differ in what they run, what lies in the queue that all share
 * stays there until it is run: in another's own queue not all could reach it.
 */
static uint32_t injector_room(const struct pin_worker *worker)
{
	return PIN_LIKELY(worker->shared->tier_count == 1) ? pin_deque_room(&worker->deque) + 1 : 1;
}

static PIN_RARE bool take_injected(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_list batch = {0};
	struct pin_link *first;
	struct pin_link *link;
	uint32_t count;
	bool has_more;

	count = pin_injector_pop(
		&shared->injector, shared->worker_count, injector_room(worker), &batch, &has_more);
	if (count == 0) {
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
	if (PIN_UNLIKELY(shared->config.normal_warn_depth != 0)) {
		uint64_t left = pin_load_relaxed_u64(&shared->injector.length);

		pin_lane_warn(shared, PINION_LANE_NORMAL, left + count);
		pin_lane_warn(shared, PINION_LANE_NORMAL, left);
	}
	run_or_cancel(worker, first);
	return true;
}

/* The very last resort: what has ended in the ring of a stuck worker. */
static struct pin_link *relieve_others(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	struct pin_link *link = NULL;
	uint32_t index;

	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (link == NULL && pin_victims_next(&round, &index)) {
		if (pin_flight_relieve(&shared->workers[index], worker)) {
			link = pin_deque_pop(&worker->deque);
		}
	}
	return link;
}

static bool poll_injector(struct pin_worker *worker)
{
	worker->polls_since_look = 0;
	worker->look_ns = worker->now_ns;
	return PIN_UNLIKELY(!pin_injector_is_empty(&worker->shared->injector)) &&
		take_injected(worker);
}

static bool poll_others(struct pin_worker *worker)
{
	struct pin_link *link;

	/* To the device first; there is time to search while it works. */
	if (worker->unsearched_batches < UNSEARCHED_BATCHES_MAX &&
		pin_relief_has_gathered(worker)) {
		worker->unsearched_batches++;
		return false;
	}
	worker->unsearched_batches = 0;
	link = pin_search_others(worker);
	if (link == NULL && worker->shares_ring && worker->is_searching) {
		link = relieve_others(worker);
	}
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
static PIN_INLINE bool poll_own(struct pin_worker *worker)
{
	uint32_t turn = worker->turn;

	if (PIN_LIKELY(pin_list_is_empty(&worker->ready) && pin_list_is_empty(&worker->posted))) {
		return poll_deque(worker);
	}
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
	return !pin_list_is_empty(&worker->posted) && poll_posted(worker);
}

/* All of the normal lane that can be had without searching. */
static PIN_INLINE bool poll_near(struct pin_worker *worker)
{
	worker->polls_since_look++;
	if (PIN_UNLIKELY(is_look_due(worker)) && poll_injector(worker)) {
		return true;
	}
	return poll_lifo(worker) || poll_own(worker) || poll_inbox(worker) || poll_injector(worker);
}

/* What is for this worker alone. */
static bool poll_bound(struct pin_worker *worker)
{
	return poll_ready(worker) || poll_posted(worker) || poll_inbox(worker);
}

static bool poll_lane(struct pin_worker *worker, uint32_t lane)
{
	struct pin_link *link;

	if (lane == PINION_LANE_NORMAL) {
		/* A lower lane waits for what others have queued, too. */
		return poll_near(worker) || (pin_search_sees_work(worker) && poll_others(worker));
	}
	if (lane == PIN_LANE_BOUND) {
		return poll_bound(worker);
	}
	link = pin_lane_pop(worker, lane);
	if (link == NULL) {
		return false;
	}
	run_or_cancel(worker, link);
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
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		struct pin_link *link;

		if (pin_worker_serves(worker, lane) || !pin_supply_has_lane(worker->shared, lane)) {
			continue;
		}
		if (!pin_assist_try_leave(worker)) {
			return false;
		}
		link = pin_lane_pop(worker, lane);
		if (link != NULL) {
			pin_meter_add(&worker->meter.assists, 1);
			run_or_cancel(worker, link);
			return true;
		}
		pin_assist_enter(worker);
	}
	return false;
}

static bool poll_lanes_served(struct pin_worker *worker)
{
	const struct pin_lane_order *order = &worker->lanes.order;

	if (poll_due(worker)) {
		return true;
	}
	for (uint32_t i = 0; i < order->count; i++) {
		if (poll_lane(worker, order->lanes[i])) {
			pin_lane_turns_note(&worker->lanes, order->lanes[i]);
			return true;
		}
	}
	return poll_bound(worker) || poll_others(worker);
}

static PIN_APART bool poll_lanes(struct pin_worker *worker)
{
	bool assists = pin_assist_is_on(worker->shared);

	if (assists) {
		pin_assist_leave(worker);
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

/* Runs one task or callback; false when there was none anywhere. */
static bool poll_once(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(pin_load_relaxed_u32(&worker->shared->has_lanes) != 0)) {
		return poll_lanes(worker);
	}
	return poll_near(worker) || poll_others(worker);
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

/* Two when tasks are short: then a batch of one does without a look at it. */
static uint32_t first_stride(const struct pin_worker *worker)
{
	bool is_short = pin_tuner_average_ns(&worker->tuner) < CLOCK_PERIOD_NS / 2;

	return is_short && worker->untimed_batches < UNTIMED_BATCHES_MAX ? 2 : 1;
}

static void learn(struct pin_worker *worker, uint64_t start_ns, uint32_t polls)
{
	worker->untimed_batches = 0;
	pin_tuner_record(&worker->tuner, worker->now_ns - start_ns, polls);
	pin_meter_add(&worker->meter.busy_ns, worker->now_ns - start_ns);
}

static bool run_batch(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	const struct pin_host *host = worker->shared->host;
	uint64_t start_ns = host->now_ns();
	uint64_t end_ns = start_ns + (uint64_t)config->budget_us * 1000;
	uint32_t polls = 0;
	uint32_t timed = 0; /* polls at the last reading of the clock */
	uint32_t stride = first_stride(worker);

	worker->now_ns = start_ns;
	worker->turn_end_ns = end_ns;
	look_at_timers(worker);
	pin_lane_mark(worker);
	if (pin_hooks_is_tick_due(worker)) {
		pin_hooks_tick(worker);
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
				pin_relief_has_gathered(worker))) {
			break;
		}
	}
	if (polls == 0) {
		return false;
	}
	if (timed == 0) {
		worker->untimed_batches++;
		pin_meter_add(&worker->meter.busy_ns, pin_tuner_average_ns(&worker->tuner));
	} else {
		worker->now_ns = timed == polls ? worker->now_ns : host->now_ns();
		learn(worker, start_ns, polls);
	}
	if (worker->is_dry) {
		pin_search_note_gap(worker, start_ns - worker->dry_since_ns);
		worker->is_dry = false;
	}
	share_backlog(worker);
	return true;
}

bool pin_worker_should_yield(struct pin_worker *worker)
{
	bool has_completions = false;

	if (pin_relief_has_work(worker)) {
		has_completions = pin_flight_poll(worker) > 0;
	}
	return has_completions || worker->shared->host->now_ns() >= worker->turn_end_ns;
}

static bool look_at_ring(struct pin_worker *worker)
{
	bool has_completions = false;

	if (pin_relief_has_work(worker)) {
		/* It may take a while, as without io_uring. */
		if (worker->is_searching) {
			pin_search_succeed(worker);
		}
		has_completions = pin_flight_poll(worker) > 0;
	}
	pin_flight_resume(worker);
	return has_completions;
}

void pin_worker_end_loop(struct pin_worker *worker)
{
	worker->is_dry = false;
	share_backlog(worker);
	look_at_ring(worker);
}

/* Without what others may run as well. */
static bool run_bound(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	const struct pin_host *host = worker->shared->host;
	uint64_t start_ns = host->now_ns();
	uint32_t polls = 0;

	worker->now_ns = start_ns;
	worker->turn_end_ns = start_ns + (uint64_t)config->budget_us * 1000;
	expire_deadlines(worker);
	pin_inbox_take(&worker->inbox, &worker->posted);
	while (polls < config->budget_polls && poll_bound(worker)) {
		polls++;
	}
	if (polls > 0) {
		worker->now_ns = host->now_ns();
		learn(worker, start_ns, polls);
	}
	return polls > 0;
}

/* Of one that is asked to leave. */
static enum pin_step step_out(struct pin_worker *worker)
{
	bool has_run;

	pin_retire_hand_over(worker);
	has_run = run_bound(worker);
	has_run |= look_at_ring(worker);
	if (!has_run) {
		if (pin_retire_try_leave(worker)) {
			return PIN_STEP_EXIT;
		}
		pin_retire_sleep(worker);
	}
	return PIN_STEP_RAN;
}

enum pin_step pin_worker_step(struct pin_worker *worker)
{
	struct pin_link *link;
	bool has_run;

	if (pin_load_acquire_u32(&worker->shared->has_ended) != 0) {
		return PIN_STEP_EXIT;
	}
	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared)) && !worker->cancel_sent) {
		pin_flight_stop(worker);
		pin_wait_cancel_all(worker);
	}
	if (PIN_UNLIKELY(pin_retire_is_asked(worker))) {
		return step_out(worker);
	}
	has_run = run_batch(worker);
	has_run |= look_at_ring(worker);
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
