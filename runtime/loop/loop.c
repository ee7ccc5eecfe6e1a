/* SPDX-License-Identifier: MIT */
/*
 * The step that every worker repeats: a batch of tasks, then the ring, then a
 * search for others' work, then sleep.
 *
 * Threads, the simulator and the model tests call pin_worker_step() and nothing
 * else. loop.h has the order of the sources, park.c the end of a runtime.
 *
 * Invariant: a task may unwind the stack at any point (worker/fault.c), so
 * state that must survive a task is in the worker and never in a local
 * variable.
 */
#include "runtime/loop/loop.h"
#include "runtime/base/check.h"
#include "runtime/loop/next_task.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/device_stall.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

enum {
	/*
	 * How long submissions may gather while tasks run. A disk whose queue
	 * runs dry during a long task costs far more than one more enter does.
	 */
	SUBMIT_DELAY_NS = 20 * 1000,
	/*
	 * Reading the clock costs more than an empty task. So it is read when
	 * as many have run as take this long by the last reading; but the next
	 * ones may be longer, so there is a limit, and no more than twice as
	 * many as the last time.
	 */
	CLOCK_PERIOD_NS = 1000,
	CLOCK_STRIDE_MAX = 64,
	/*
	 * Batches of one short task, or rounds of a batch, in a row that are
	 * not timed at all. The average misses them; whatever else depends on
	 * the time has it from the start of the next batch.
	 */
	UNTIMED_BATCHES_MAX = 47,
	/*
	 * Rounds by the ring in a row, or batches and rounds, without a search
	 * of the queues of others.
	 */
	UNSEARCHED_ROUNDS_MAX = 31,
	/* The end of a turn that began without reading the clock. */
	TURN_UNTIMED = 0,
};

/* Between two steps: nothing of the last one is left half done. */
static inline void check_between_steps(const struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(&worker->shared->workers[worker->index] == worker);
	PIN_DCHECK(worker->running_kind == PIN_RUNNING_TASK);
	PIN_DCHECK(worker->unwind_result == PIN_UNWIND_RETURNED);
	PIN_DCHECK(worker->stride >= 1 && worker->stride <= CLOCK_STRIDE_MAX);
	/* A timed batch may end before its first reading of the clock. */
	PIN_DCHECK(worker->untimed_batches <= UNTIMED_BATCHES_MAX + 1);
	PIN_DCHECK(worker->device_queue.account_count <= PIN_ACCOUNTS);
	PIN_DCHECK(worker->device_queue.queued == 0 || worker->device_queue.account_count > 0);
	PIN_DCHECK(worker->secondary_count == worker->polled.in_flight + worker->sqe128.in_flight);
}

/* Runs one task or callback; false when there was none anywhere. */
static bool poll_once(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(pin_shared_has_lanes(worker->shared))) {
		return pin_poll_lanes(worker);
	}
	return pin_poll_near(worker) || pin_poll_others(worker);
}

/*
 * After a poll: runs `limit` tasks at most of the own queue in a row, or of the
 * ready ones where one alone would not be worth it. 0: something else is next,
 * a check is due, or thieves have taken all.
 */
static PIN_INLINE uint32_t run_series(struct pin_worker *worker, uint32_t limit)
{
	const struct pin_shared *shared = worker->shared;

	if (pin_deque_is_drained(&worker->deque)) {
		return pin_list_has_several(&worker->ready) && worker->slow_reasons == 0 &&
				pin_poll_is_ready_next(worker, shared)
			? pin_poll_ready_series(worker, limit)
			: 0;
	}
	return pin_poll_is_deque_next(worker, shared) && worker->deque.order == PIN_DEQUE_FIFO &&
			worker->slow_reasons == 0
		? pin_poll_deque_series(worker, limit)
		: 0;
}

/* Shows the rest of the own queue to sleepers; no worker is woken otherwise. */
static void share_backlog(struct pin_worker *worker)
{
	uint32_t count = pin_deque_is_drained(&worker->deque) ? 0 : pin_deque_count(&worker->deque);

	if (count > 1) {
		worker->woken = NULL;
		pin_wake_one(worker->shared, worker);
		pin_spawn_note_told(worker);
		pin_spawn_count_told(worker);
	} else if (count == 1) {
		pin_spawn_tell_of_last(worker);
	}
}

/*
 * Tasks until the clock is read again, when `tasks` took `elapsed_ns`. Where
 * calls are bounded, each task may have made one, and its turn ends with that:
 * tasks after it would gather for a short call.
 */
static uint32_t next_stride(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	uint32_t limit = PIN_UNLIKELY(worker->ring.is_bounded)
		? 1
		: pin_min_u32(2 * worker->stride, CLOCK_STRIDE_MAX);
	uint64_t stride = elapsed_ns == 0 ? limit : (uint64_t)tasks * CLOCK_PERIOD_NS / elapsed_ns;

	PIN_DCHECK(tasks > 0 && limit > 0);
	if (stride > limit) {
		stride = limit;
	}
	worker->stride = stride == 0 ? 1 : (uint32_t)stride;
	PIN_DCHECK(worker->stride <= CLOCK_STRIDE_MAX);
	return worker->stride;
}

/*
 * Two when tasks are short: then a batch of one does without reading the clock.
 */
static uint32_t first_stride(const struct pin_worker *worker)
{
	bool is_short =
		pin_queue_interval_average_ns(&worker->queue_interval) < CLOCK_PERIOD_NS / 2;

	if (worker->is_on_time) {
		return worker->stride;
	}
	return is_short && worker->untimed_batches < UNTIMED_BATCHES_MAX && !worker->ring.is_bounded
		? 2
		: 1;
}

static PIN_INLINE void learn(struct pin_worker *worker, uint64_t start_ns, uint32_t polls)
{
	uint64_t busy_ns = worker->now_ns - start_ns - worker->away_ns;

	PIN_DCHECK(polls > 0);
	PIN_DCHECK(worker->now_ns >= start_ns && worker->now_ns - start_ns >= worker->away_ns);
	worker->untimed_batches = 0;
	pin_queue_interval_record(&worker->queue_interval, busy_ns, polls);
	pin_spawn_look_soon(worker);
	pin_spawn_note_time(worker);
	pin_meter_set(
		&worker->meter.look_interval, pin_queue_interval_interval(&worker->queue_interval));
	pin_meter_set(&worker->meter.turn_polls, polls);
	pin_meter_add(&worker->meter.busy_ns, busy_ns);
	if (pin_binding_is_due(worker)) {
		pin_binding_look(worker);
		worker->is_on_time = false;
	}
}

/* Something waits to be submitted. */
static bool has_gathered(const struct pin_worker *worker)
{
	return pin_remote_reap_has_gathered(worker) || pin_secondary_has_gathered(worker);
}

/*
 * Whether a batch goes by the time of the last one, which was as short as this
 * one seems to be: then nothing may wait here for an instant. At most a fixed
 * number of untimed batches are between two readings.
 */
static inline bool may_keep_time(const struct pin_worker *worker)
{
	return !worker->is_dry && !worker->shares_ring &&
		pin_timer_next_ns(worker) == PIN_NO_DEADLINE &&
		pin_timers_count(&worker->deadlines) == 0 && worker->tick_ns == PIN_NO_DEADLINE &&
		worker->shared->tuning.low_max_wait_ms == 0;
}

static inline void set_turn_end(struct pin_worker *worker, uint64_t start_ns)
{
	worker->turn_end_ns = start_ns + (uint64_t)worker->shared->tuning.budget_us * 1000;
	PIN_DCHECK(worker->turn_end_ns != TURN_UNTIMED && worker->turn_end_ns >= start_ns);
}

/* A turn that has lasted `elapsed_ns` by now; when it began. */
static PIN_APART uint64_t note_turn(struct pin_worker *worker, uint64_t elapsed_ns)
{
	uint64_t start_ns;

	worker->now_ns = worker->shared->host->now_ns();
	pin_meter_set(&worker->meter.clock_ns, worker->now_ns);
	if (worker->is_dry) {
		pin_metrics_show_clock(worker);
	}
	pin_metrics_note_wake(worker);
	/* Time left out before is no part of the measurement. */
	worker->away_ns = 0;
	PIN_DCHECK(elapsed_ns <= worker->now_ns); /* the turn did not begin before time 0 */
	start_ns = worker->now_ns - elapsed_ns;
	set_turn_end(worker, start_ns);
	return start_ns;
}

/* The time since the clock was read is not that of tasks. */
static PIN_APART void leave_out(struct pin_worker *worker)
{
	uint64_t before_ns = worker->now_ns;

	if (worker->turn_end_ns != TURN_UNTIMED) {
		worker->now_ns = worker->shared->host->now_ns();
		worker->away_ns += worker->now_ns - before_ns;
	}
}

/* Tasks follow: a series begins. */
static inline void begin_series(struct pin_worker *worker)
{
	worker->row_ns = worker->now_ns - worker->away_ns;
}

/* The clock was read. Returns for how long tasks ran since the series began. */
static inline uint64_t end_series(struct pin_worker *worker)
{
	uint64_t before_ns = worker->row_ns;

	begin_series(worker);
	PIN_DCHECK(worker->row_ns >= before_ns);
	return worker->row_ns - before_ns;
}

/* What others have left here, and what time has made ready. */
static PIN_INLINE bool look_around(struct pin_worker *worker)
{
	bool has_begun;

	pin_due_look(worker);
	pin_lane_mark(worker);
	if (pin_arena_growth_is_due(worker)) {
		pin_arena_growth_look(worker);
		leave_out(worker);
	}
	/* A worker that was just woken publishes when it has run something. */
	if (pin_metrics_is_due(worker) && !worker->is_dry) {
		pin_metrics_publish(worker);
		if (!worker->shares_ring) {
			pin_device_stall_note_used(worker);
		}
		leave_out(worker);
	}
	if (pin_hooks_is_tick_due(worker)) {
		pin_hooks_tick(worker);
		leave_out(worker);
	}
	if (PIN_UNLIKELY(!pin_inbox_is_empty(&worker->inbox))) {
		pin_inbox_take(&worker->inbox, &worker->posted);
	}
	has_begun = pin_poll_external(worker);
	if (PIN_UNLIKELY(has_begun)) {
		leave_out(worker);
	}
	return has_begun;
}

/* Completions on other rings than the first, without waiting. */
static uint32_t poll_secondary(struct pin_worker *worker)
{
	uint32_t count = 0;

	if (pin_polled_is_busy(worker)) {
		count += pin_polled_poll(worker);
	}
	if (pin_commands_has_work(worker)) {
		count += pin_commands_poll(worker);
	}
	return count;
}

static bool look_secondary(struct pin_worker *worker)
{
	bool has_completions;

	/* It may take a while. */
	if (worker->is_searching && pin_secondary_has_gathered(worker)) {
		pin_search_succeed(worker);
	}
	has_completions = poll_secondary(worker) > 0;
	if (worker->is_searching && has_completions) {
		pin_search_succeed(worker);
	}
	PIN_DCHECK(!worker->is_searching || !has_completions);
	return has_completions;
}

static inline void resume_waiting(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(pin_requests_may_resume(worker))) {
		pin_requests_resume(worker);
	}
}

static bool look_at_ring(struct pin_worker *worker)
{
	bool has_completions = false;

	/* First, as what it refuses goes to the other ring. */
	if (pin_secondary_is_busy(worker)) {
		worker->is_on_time = false;
		has_completions = look_secondary(worker);
	}
	if (pin_remote_reap_has_work(worker)) {
		worker->is_on_time = false;
		/* It may take a while, as without io_uring. */
		if (worker->is_searching && pin_remote_reap_has_gathered(worker)) {
			pin_search_succeed(worker);
		}
		has_completions |= pin_requests_poll(worker) > 0;
	}
	resume_waiting(worker);
	return has_completions;
}

/*
 * Nothing of its own is left but entries to be submitted: there is time to
 * search further while those are on their way. As is_search_put_off() in
 * next_task.c.
 */
static inline bool has_only_submissions(const struct pin_worker *worker)
{
	return pin_list_is_empty(&worker->ready) && pin_list_is_empty(&worker->posted) &&
		pin_lifo_is_empty(&worker->lifo) && pin_deque_is_drained(&worker->deque) &&
		worker->unsearched_batches < UNSEARCHED_ROUNDS_MAX && !worker->is_searching &&
		!pin_shared_has_lanes(worker->shared) &&
		pin_timers_count(&worker->deadlines) == 0 && !pin_secondary_is_busy(worker) &&
		!worker->ring.is_fallback && pin_remote_reap_has_gathered(worker);
}

/*
 * To the ring and back within a batch: requests that are over at once, one or a
 * few at a time, need not go through all of a turn each. False: nothing came,
 * or as many batches as may have gone untimed.
 */
static inline bool go_round(struct pin_worker *worker)
{
	if (worker->untimed_batches >= UNTIMED_BATCHES_MAX) {
		return false;
	}
	PIN_DCHECK(!worker->is_searching); /* else a wake might rely on it meanwhile */
	worker->unsearched_batches++;
	worker->untimed_batches++;
	PIN_DCHECK(worker->unsearched_batches <= UNSEARCHED_ROUNDS_MAX);
	pin_store_relaxed_u32(&worker->lifo_row, 0);
	if (pin_requests_poll(worker) == 0) {
		return false;
	}
	resume_waiting(worker);
	return true;
}

/* Its turn begins, at the time that is returned; 0: not timed, so far. */
static PIN_INLINE uint64_t begin_turn(struct pin_worker *worker, bool keeps_time)
{
	PIN_DCHECK(!keeps_time || !worker->is_on_time);
	worker->away_ns = 0;
	if (worker->is_on_time) {
		worker->is_on_time = false;
		set_turn_end(worker, worker->now_ns);
		return worker->now_ns;
	}
	if (keeps_time) {
		worker->turn_end_ns = TURN_UNTIMED;
		return 0;
	}
	return note_turn(worker, 0);
}

/* Something is to be submitted, or an urgent request may be over by now. */
static inline bool awaits_ring(const struct pin_worker *worker)
{
	return worker->ring.is_bounded || has_gathered(worker);
}

static inline bool is_turn_over(const struct pin_worker *worker, uint64_t start_ns)
{
	PIN_DCHECK(worker->turn_end_ns != TURN_UNTIMED);
	PIN_DCHECK(worker->now_ns >= start_ns);
	return worker->now_ns >= worker->turn_end_ns ||
		(worker->now_ns >= start_ns + SUBMIT_DELAY_NS && awaits_ring(worker));
}

/*
 * It had nothing to run until `start_ns`. A sleep beside a task that only the
 * watchdog found is no long gap: the work was there.
 */
static inline void note_gap(struct pin_worker *worker, uint64_t start_ns)
{
	/* Relaxed: a figure. */
	if (pin_load_relaxed_u64(&worker->shared->watchdog_found_work) == worker->dry_found_work) {
		pin_spin_note_gap(&worker->spin, start_ns - worker->dry_since_ns);
	}
}

/* Tasks since the last reading of the clock. */
static void end_last_series(struct pin_worker *worker, uint32_t tasks)
{
	worker->now_ns = worker->shared->host->now_ns();
	pin_meter_set(&worker->meter.clock_ns, worker->now_ns);
	pin_metrics_note_series(worker, end_series(worker), tasks);
}

/* What it took, measured or as usual, and what it leaves for others. */
static PIN_INLINE void end_batch(struct pin_worker *worker, uint32_t polls, uint32_t timed,
	bool keeps_time, uint64_t start_ns)
{
	PIN_DCHECK(polls > 0 && timed <= polls);
	worker->is_on_time = !keeps_time && timed != 0;
	if (!worker->is_on_time) {
		worker->untimed_batches++;
		pin_meter_add(&worker->meter.busy_ns,
			polls * pin_queue_interval_average_ns(&worker->queue_interval));
	} else {
		if (timed != polls) {
			end_last_series(worker, polls - timed);
		}
		learn(worker, start_ns, polls);
	}
	if (worker->is_dry) {
		note_gap(worker, start_ns);
		worker->is_dry = false;
	}
	share_backlog(worker);
}

/*
 * Runs tasks until none is left, or the budget of tasks or time is used up. It
 * reads the clock once in `stride` tasks, since a reading costs as much as
 * several short tasks; a batch of one short task need not be timed at all, as
 * long as no deadline waits.
 */
static bool run_batch(struct pin_worker *worker)
{
	const struct pinion_tuning *tuning = &worker->shared->tuning;
	const struct pin_host *host = worker->shared->host;
	uint32_t polls = 0;
	uint32_t timed = 0; /* polls at the last reading of the clock */
	uint32_t stride = first_stride(worker);
	bool keeps_time = !worker->is_on_time && stride > 1 && may_keep_time(worker);
	uint64_t start_ns = begin_turn(worker, keeps_time);
	bool has_begun = look_around(worker);

	begin_series(worker);
	while (polls < tuning->budget_polls) {
		uint64_t elapsed_ns;

		PIN_DCHECK(timed <= polls && polls - timed < stride);
		if (!poll_once(worker)) {
			break;
		}
		polls++;
		if (polls - timed < stride) {
			polls += run_series(
				worker, pin_min_u32(timed + stride, tuning->budget_polls) - polls);
		}
		if (keeps_time && has_only_submissions(worker)) {
			if (!go_round(worker)) {
				break;
			}
			timed = polls;
			continue;
		}
		if (polls - timed < stride) {
			continue;
		}
		if (PIN_UNLIKELY(keeps_time)) {
			/* It goes on: its tasks so far count as usual ones. */
			keeps_time = false;
			start_ns = note_turn(worker,
				polls * pin_queue_interval_average_ns(&worker->queue_interval));
			elapsed_ns =
				stride * pin_queue_interval_average_ns(&worker->queue_interval);
			begin_series(worker);
		} else {
			worker->now_ns = host->now_ns();
			pin_meter_set(&worker->meter.clock_ns, worker->now_ns);
			elapsed_ns = end_series(worker);
		}
		pin_spawn_note_time(worker);
		pin_metrics_note_series(worker, elapsed_ns, stride);
		stride = next_stride(worker, elapsed_ns, stride);
		timed = polls;
		if (is_turn_over(worker, start_ns)) {
			pin_meter_add(&worker->meter.budget_ends,
				polls < tuning->budget_polls &&
					worker->now_ns >= worker->turn_end_ns);
			break;
		}
	}
	PIN_DCHECK(polls <= tuning->budget_polls);
	if (polls == 0) {
		if (keeps_time) {
			(void)note_turn(worker, 0);
		}
		return has_begun;
	}
	if (PIN_UNLIKELY(polls == tuning->budget_polls)) {
		pin_meter_add(&worker->meter.budget_ends, 1);
	}
	end_batch(worker, polls, timed, keeps_time, start_ns);
	return true;
}

bool pin_worker_should_yield(struct pin_worker *worker)
{
	bool has_completions = false;
	uint64_t now_ns;

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(!worker->is_searching); /* a task of its is running */
	if (pin_secondary_is_busy(worker)) {
		has_completions = poll_secondary(worker) > 0;
	}
	if (pin_remote_reap_has_work(worker)) {
		has_completions |= pin_requests_poll(worker) > 0;
	}
	now_ns = worker->shared->host->now_ns();
	if (worker->turn_end_ns == TURN_UNTIMED) {
		worker->turn_end_ns = now_ns + (uint64_t)worker->shared->tuning.budget_us * 1000;
	}
	return has_completions || now_ns >= worker->turn_end_ns;
}

void pin_worker_end_loop(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	worker->is_dry = false;
	worker->is_on_time = false;
	share_backlog(worker);
	look_at_ring(worker);
}

/* Without what others may run as well. */
static bool run_bound(struct pin_worker *worker)
{
	const struct pinion_tuning *tuning = &worker->shared->tuning;
	const struct pin_host *host = worker->shared->host;
	uint64_t start_ns = host->now_ns();
	uint32_t polls = 0;

	worker->now_ns = start_ns;
	pin_meter_set(&worker->meter.clock_ns, start_ns);
	worker->away_ns = 0;
	worker->turn_end_ns = start_ns + (uint64_t)tuning->budget_us * 1000;
	pin_due_expire_deadlines(worker);
	pin_inbox_take(&worker->inbox, &worker->posted);
	while (polls < tuning->budget_polls &&
		(pin_poll_urgent(worker) || pin_poll_bound(worker))) {
		pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_NORMAL);
		polls++;
	}
	if (polls > 0) {
		worker->now_ns = host->now_ns();
		pin_metrics_note_series(worker, worker->now_ns - start_ns, polls);
		learn(worker, start_ns, polls);
	}
	return polls > 0;
}

/* For a worker that is asked to leave. */
static enum pin_step step_out(struct pin_worker *worker)
{
	bool has_run;

	worker->is_on_time = false;
	pin_retire_hand_over(worker);
	PIN_DCHECK(!worker->is_searching && !worker->is_free);
	has_run = pin_poll_external(worker);
	has_run |= run_bound(worker);
	has_run |= look_at_ring(worker);
	if (!has_run) {
		if (pin_retire_try_leave(worker)) {
			return PIN_STEP_EXIT;
		}
		pin_retire_sleep(worker);
	}
	return PIN_STEP_RAN;
}

/* The runtime is stopped or drained: so are requests, all or some of them. */
static PIN_APART void end_requests(struct pin_worker *worker)
{
	if (!pin_requests_owe_ends(worker)) {
		return;
	}
	if (pin_shared_is_stopping(worker->shared)) {
		pin_requests_stop(worker);
		pin_wait_cancel_all(worker);
	} else {
		pin_requests_drain(worker);
	}
}

/*
 * Returns after each batch and each sleep, so that the caller can interleave
 * workers as it likes; PIN_STEP_EXIT is the last.
 */
enum pin_step pin_worker_step(struct pin_worker *worker)
{
	struct pin_link *link;
	bool has_run;

	check_between_steps(worker);
	if (pin_load_acquire_u32(&worker->shared->has_ended) != 0) {
		return PIN_STEP_EXIT;
	}
	if (PIN_UNLIKELY(pin_shared_is_ending(worker->shared))) {
		end_requests(worker);
	}
	if (PIN_UNLIKELY(pin_retire_is_asked(worker))) {
		return step_out(worker);
	}
	has_run = run_batch(worker);
	has_run |= look_at_ring(worker);
	if (!has_run && !worker->is_dry) {
		worker->is_dry = true;
		worker->dry_since_ns = worker->now_ns;
		/* Relaxed: a figure. */
		worker->dry_found_work = pin_load_relaxed_u64(&worker->shared->watchdog_found_work);
		if (PIN_UNLIKELY(worker->has_remote_batches)) {
			pin_worker_send_home(worker);
		}
	}
	if (has_run) {
		return PIN_STEP_RAN;
	}
	if (PIN_UNLIKELY(pin_polled_is_busy(worker))) {
		pin_park_undo(worker);
		return PIN_STEP_RAN;
	}
	if (!pin_search_spin(worker, pin_park_has_work, &link)) {
		pin_park(worker);
	} else if (link != NULL) {
		PIN_DCHECK(worker->is_searching); /* as every thief is */
		/* As good as no gap, and reading the clock would be one. */
		pin_spin_note_gap(&worker->spin, 0);
		worker->is_dry = false;
		pin_meter_add(&worker->meter.steal_polls, 1);
		pin_run_or_cancel(worker, link, PIN_SOURCE_STEAL);
	}
	return PIN_STEP_RAN;
}
