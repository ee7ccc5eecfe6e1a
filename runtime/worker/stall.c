/* SPDX-License-Identifier: MIT */
/*
 * Looks for stalled workers, lanes and rings, by the clock, and names what it
 * finds; device_stall.c has devices.
 *
 * On the watchdog's thread, apart from what its sections say. It only reads
 * what workers publish anyway; what it keeps of each is in struct pin_stall. It
 * writes what it has found to the metrics page.
 *
 * Invariant: each stall is counted, and named, once, however long it lasts.
 */
#include "runtime/worker/stall.h"
#include "runtime/base/check.h"
#include "runtime/host/thread_state.h"
#include "runtime/io/ring.h"
#include "runtime/worker/device_stall.h"
#include "runtime/worker/events.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/stall_time.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

enum {
	/* With a CPU for less than this part of the time, it lacks one, */
	CPU_SHARE = 4,
	/* and if it waited for one for more than this part. */
	DELAY_SHARE = 2,
};

static const char *const lanes[PIN_LANES] = {"high", "normal", "low"};

/* ---- workers ---- */

static uint64_t signs_of(const struct pin_worker *worker)
{
	const struct pin_meter *meter = &worker->meter;

	return pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled) +
		pin_meter_read(&meter->parks_futex) + pin_meter_read(&meter->parks_ring) +
		pin_load_relaxed_u32(&worker->life);
}

/*
 * A notified sleeper is not stalled: it, or its waker, has no CPU yet. Nor is a
 * worker that starts or leaves, which may take long.
 */
static bool is_awake(const struct pin_worker *worker)
{
	return !pin_parker_is_down(&worker->parker) &&
		pin_load_relaxed_u32(&worker->is_stepping) != 0 &&
		pin_load_acquire_u32(&worker->service) == PIN_SERVICE_IN;
}

static void look_at_thread(const struct pin_worker *worker, struct pin_thread_state *out_state)
{
	uint32_t number = pin_load_relaxed_u32(&worker->thread_number);

	*out_state = (struct pin_thread_state){.cpu_ns = UINT64_MAX};
	if (number != 0 && worker->shared->host->thread_look != NULL) {
		worker->shared->host->thread_look(number, out_state);
	}
}

/* A reading of the worker's time on CPUs, for the next check. */
static void note_cpu(struct pin_stall *stall, const struct pin_thread_state *state, uint64_t now_ns)
{
	stall->cpu_ns = state->cpu_ns;
	stall->delay_ns = state->delay_ns;
	stall->cpu_read_ns = now_ns;
}

/*
 * It could run, but hardly had a CPU since the last reading. A thread that
 * sleeps at the moment may have waited for a CPU before.
 */
static bool lacks_cpu(
	const struct pin_stall *stall, const struct pin_thread_state *state, uint64_t now_ns)
{
	uint64_t past_ns = now_ns - stall->cpu_read_ns;

	if (state->cpu_ns == UINT64_MAX || stall->cpu_read_ns == 0 || stall->cpu_ns == UINT64_MAX) {
		return false;
	}
	PIN_DCHECK(now_ns >= stall->cpu_read_ns && state->cpu_ns >= stall->cpu_ns);
	PIN_DCHECK(state->delay_ns >= stall->delay_ns);
	return (state->delay_ns - stall->delay_ns) * DELAY_SHARE > past_ns ||
		(state->doing == PIN_THREAD_RUNS &&
			(state->cpu_ns - stall->cpu_ns) * CPU_SHARE < past_ns);
}

static void describe_cause(const struct pin_thread_state *state, char *out, size_t bytes)
{
	switch (state->doing) {
	case PIN_THREAD_SLEEPS:
		snprintf(out, bytes, ": it %s%s", state->where[0] == '\0' ? "sleeps" : "waits in ",
			state->where);
		return;
	case PIN_THREAD_RUNS:
		snprintf(out, bytes, ": it computes");
		return;
	case PIN_THREAD_UNKNOWN:
		break;
	}
	out[0] = '\0';
}

/* With a request, before it has run any task. */
static void say_without_task(const struct pin_worker *worker, const char *cause)
{
	pin_log(&worker->shared->log, PINION_LOG_WARN,
		"worker %u: for more than %llu ms without progress%s", worker->index,
		(unsigned long long)worker->shared->tuning.stall_ms, cause);
}

static void say_task(const struct pin_worker *worker, const char *cause)
{
	static const char format[] =
		"worker %u: task %s of the %s lane runs for more than %llu ms without progress%s";
	const struct pin_log *log = &worker->shared->log;
	uint32_t lane = pin_load_relaxed_u32(&worker->running_lane);
	char name[PIN_SYMBOL_BYTES];

	PIN_CHECK(lane < PIN_LANES); /* an index of names */
	if (pin_log_try(log, PINION_LOG_WARN, format)) {
		pin_running_describe(pin_running_of(worker), name);
		pin_log_put(log, PINION_LOG_WARN, format, worker->index, name, lanes[lane],
			(unsigned long long)worker->shared->tuning.stall_ms, cause);
	}
}

static void say(const struct pin_worker *worker, const struct pin_thread_state *state)
{
	char cause[sizeof(state->where) + 16];

	PIN_DCHECK(worker->stall.is_told);
	pin_event_stall(worker->shared, PIN_STALLED_TASK, worker->index,
		pin_stall_limit_ns(worker->shared), (uintptr_t)pin_running_of(worker));
	describe_cause(state, cause, sizeof(cause));
	if (pin_running_of(worker) == NULL) {
		say_without_task(worker, cause);
	} else {
		say_task(worker, cause);
	}
}

/* A time between two checks, where no reading of the clock says more. */
static uint64_t middle_ns(uint64_t before_ns, uint64_t after_ns)
{
	PIN_DCHECK(before_ns <= after_ns);
	return before_ns + (after_ns - before_ns) / 2;
}

/*
 * When it began its present task: when it last read the clock, which it does
 * between tasks. A report of progress does not read the clock.
 */
static uint64_t began_ns(const struct pin_worker *worker, uint64_t now_ns)
{
	const struct pin_stall *stall = &worker->stall;
	uint64_t clock_ns = pin_meter_read(&worker->meter.clock_ns);
	uint64_t seen_ns = stall->since_ns - stall->left_out_ns;

	PIN_DCHECK(stall->is_seen && seen_ns <= now_ns);
	if (clock_ns <= stall->before_ns) {
		clock_ns = stall->before_ns == 0 ? seen_ns : middle_ns(stall->before_ns, seen_ns);
	}
	return pin_min_u64(clock_ns + stall->left_out_ns, now_ns);
}

/* It has gone on since the last check, when it was counted. */
static uint64_t ended_ns(const struct pin_worker *worker, uint64_t now_ns)
{
	uint64_t end_ns = pin_meter_read(&worker->meter.long_end_ns);
	uint64_t counted_ns = worker->stall.counted_ns;

	return end_ns > counted_ns && end_ns <= now_ns ? end_ns : middle_ns(counted_ns, now_ns);
}

static void count_until(struct pin_shared *shared, struct pin_stall *stall, uint64_t until_ns)
{
	PIN_DCHECK(stall->is_told && until_ns >= stall->counted_ns);
	pin_meter_add(&shared->stalls.task_ns, until_ns - stall->counted_ns);
	stall->counted_ns = until_ns;
	shared->stalls.has_news = true;
}

static void end_stall(struct pin_worker *worker, uint64_t now_ns)
{
	struct pin_stalls *stalls = &worker->shared->stalls;
	struct pin_stall *stall = &worker->stall;

	PIN_DCHECK(pin_load_relaxed_u32(&stalls->tasks_now) > 0);
	count_until(worker->shared, stall, ended_ns(worker, now_ns));
	pin_store_relaxed_u32(&stalls->tasks_now, pin_load_relaxed_u32(&stalls->tasks_now) - 1);
	pin_log(&worker->shared->log, PINION_LOG_INFO,
		"worker %u goes on: it was without progress for %llu ms", worker->index,
		(unsigned long long)(stall->counted_ns - stall->began_ns) / PIN_STALL_MS_NS);
}

/* It has shown no sign for as long as the limit. */
static void judge_worker(
	struct pin_shared *shared, struct pin_worker *worker, uint64_t signs, uint64_t now_ns)
{
	struct pin_stall *stall = &worker->stall;
	struct pin_thread_state state;

	PIN_DCHECK(!stall->is_told); /* each is named once */
	look_at_thread(worker, &state);
	if (lacks_cpu(stall, &state, now_ns)) {
		note_cpu(stall, &state, now_ns);
		return;
	}
	/* If it is still in there; else the name would be another's. */
	if (signs_of(worker) != signs || !is_awake(worker)) {
		return;
	}
	stall->is_told = true;
	stall->began_ns = began_ns(worker, now_ns);
	stall->counted_ns = stall->began_ns;
	/* Relaxed: a figure, and this is its only writer. */
	pin_store_relaxed_u32(
		&shared->stalls.tasks_now, pin_load_relaxed_u32(&shared->stalls.tasks_now) + 1);
	pin_stall_note_found(shared, PIN_STALL_OF_TASK);
	say(worker, &state);
}

/* 0: there was none. A watchdog that was held up has seen one period of it. */
static uint64_t last_check_ns(const struct pin_shared *shared, uint64_t now_ns)
{
	uint64_t looked_ns = shared->stalls.looked_ns;
	uint64_t period_ns = pin_stall_limit_ns(shared) / PIN_STALL_LOOKS;

	PIN_DCHECK(looked_ns <= now_ns);
	return looked_ns == 0 || now_ns - looked_ns <= period_ns ? looked_ns : now_ns - period_ns;
}

static void look_at_worker(struct pin_shared *shared, struct pin_worker *worker,
	const struct pin_stall_look_times *times)
{
	struct pin_stall *stall = &worker->stall;
	uint64_t signs = signs_of(worker);
	bool is_so = is_awake(worker);
	uint64_t stalled_ns;

	if (signs != worker->stall_look_signs || is_so) {
		shared->stalls.is_quiet = false;
	}
	worker->stall_look_signs = signs;
	if (pin_stall_is_over(stall, is_so, signs)) {
		end_stall(worker, times->now_ns);
	}
	stalled_ns = pin_stall_lasted_ns(stall, is_so, signs, times);
	if (is_so && stall->since_ns == times->now_ns) {
		stall->before_ns = last_check_ns(shared, times->now_ns);
	}
	if (stalled_ns >= pin_stall_limit_ns(shared)) {
		if (!stall->is_told) {
			judge_worker(shared, worker, signs, times->now_ns);
		}
	} else if (stalled_ns > 0 && stall->cpu_read_ns == 0) {
		struct pin_thread_state state;

		look_at_thread(worker, &state);
		note_cpu(stall, &state, times->now_ns);
	}
	if (stall->is_seen && stall->is_told) {
		count_until(shared, stall, times->now_ns);
	}
}

/* ---- lanes ---- */

/* Tasks of it that were taken from any queue, so far. */
static uint64_t begun_in(const struct pin_shared *shared, uint32_t lane)
{
	uint64_t begun = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;
		uint64_t high = pin_meter_read(&meter->high_run);
		uint64_t low = pin_meter_read(&meter->low_run);

		if (lane == PINION_LANE_NORMAL) {
			/* It only has to change. */
			begun += pin_meter_read(&meter->tasks_run) +
				pin_meter_read(&meter->queued_cancelled) - high - low;
		} else {
			begun += lane == PINION_LANE_HIGH ? high : low;
		}
	}
	return begun;
}

static uint64_t waiting_in(const struct pin_shared *shared, uint32_t lane)
{
	uint64_t waiting;

	PIN_DCHECK(lane < PIN_LANES);
	if (lane != PINION_LANE_NORMAL) {
		return pin_lane_queue_depth(&shared->lanes[lane]);
	}
	waiting = pin_load_relaxed_u64(&shared->injector.length); /* a figure */
	if (waiting == 0 && !pin_injector_is_empty(&shared->injector)) {
		/* At least: its newcomers have not been counted. */
		waiting = 1;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		waiting += pin_deque_count(&shared->workers[i].deque);
	}
	return waiting;
}

/* Then each of these has a line of its own, which says why. */
static bool are_all_stalled(const struct pin_shared *shared, uint32_t lane)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		if (pin_load_acquire_u32(&worker->service) == PIN_SERVICE_IN &&
			pin_worker_serves(worker, lane) &&
			!(worker->stall.is_seen && worker->stall.is_told)) {
			return false;
		}
	}
	return true;
}

/* In the low lane a configured wait is no stall. */
static uint64_t lane_limit_ns(const struct pin_shared *shared, uint32_t lane)
{
	uint64_t limit = pin_stall_limit_ns(shared) * PIN_STALL_TIMES;
	uint64_t wait_ns = (uint64_t)shared->tuning.low_max_wait_ms * PIN_STALL_MS_NS;

	/* It may be a quarter later. */
	wait_ns += wait_ns / 4;
	return lane == PINION_LANE_LOW && wait_ns > limit ? wait_ns : limit;
}

static void say_of_lane(const struct pin_shared *shared, uint32_t lane, uint64_t waiting)
{
	bool is_strict = shared->tuning.lane_floor == 0 && pin_shared_has_lanes(shared);

	PIN_DCHECK(waiting > 0); /* an empty lane does not stall */
	pin_event_stall(shared, PIN_STALLED_LANE, lane, lane_limit_ns(shared, lane), 0);
	pin_log(&shared->log, PINION_LOG_WARN,
		"lane %s: %llu tasks wait and none has begun for more than %llu ms: %s",
		lanes[lane], (unsigned long long)waiting,
		(unsigned long long)(lane_limit_ns(shared, lane) / PIN_STALL_MS_NS),
		is_strict && lane != PINION_LANE_HIGH
			? "lane_floor is 0, so its workers run other lanes first; set lane_floor, "
			  "or lanes with a worker for this one"
			: "its workers are in other tasks; make these shorter, or set lanes with a "
			  "worker for this one");
}

/* Relaxed: a figure, and this is its only writer. */
static void set_starving(struct pin_shared *shared, uint32_t lane, bool is_starving)
{
	struct pin_stalls *stalls = &shared->stalls;
	uint32_t others = pin_load_relaxed_u32(&stalls->lanes_now) & ~PIN_LANE_BIT(lane);

	PIN_DCHECK(lane < PIN_LANES);
	pin_store_relaxed_u32(
		&stalls->lanes_now, is_starving ? others | PIN_LANE_BIT(lane) : others);
	stalls->has_news = true;
}

static void look_at_lane(
	struct pin_shared *shared, uint32_t lane, const struct pin_stall_look_times *times)
{
	struct pin_stall *stall = &shared->stalls.lanes[lane];
	uint64_t waiting = waiting_in(shared, lane);
	bool is_so = waiting > 0 && !are_all_stalled(shared, lane);
	uint64_t signs = waiting > 0 || stall->is_told ? begun_in(shared, lane) : 0;

	if (waiting > 0) {
		shared->stalls.is_quiet = false;
	}
	if (pin_stall_is_over(stall, is_so, signs)) {
		set_starving(shared, lane, false);
		pin_log(&shared->log, PINION_LOG_INFO,
			"lane %s goes on: none of its tasks began for %llu ms", lanes[lane],
			pin_stall_lasted_ms(stall, times));
	}
	if (pin_stall_lasted_ns(stall, is_so, signs, times) >= lane_limit_ns(shared, lane) &&
		!stall->is_told) {
		stall->is_told = true;
		set_starving(shared, lane, true);
		pin_stall_note_found(shared, PIN_STALL_OF_LANE);
		say_of_lane(shared, lane, waiting);
	}
}

/* ---- rings ---- */

static uint64_t ring_limit_ns(const struct pin_shared *shared)
{
	PIN_DCHECK(shared->tuning.cq_stall_us > 0);
	PIN_DCHECK(shared->tuning.cq_stall_us <= UINT64_MAX / 1000);
	return shared->tuning.cq_stall_us * 1000;
}

static bool has_sqe128(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->sqe128_is_open) != 0; /* [STALL-1] */
}

/* By themselves, or as soon as the kernel is asked. */
static bool are_completions_owed(const struct pin_worker *worker)
{
	return pin_ring_owes_completions(&worker->ring) ||
		(has_sqe128(worker) && pin_ring_owes_completions(&worker->sqe128));
}

static bool are_polls_owed(const struct pin_worker *worker)
{
	return worker->has_polled && pin_ring_owes_completions(&worker->polled);
}

/* A park is one as well: it asks for deferred completions. */
static uint64_t ring_signs_of(const struct pin_worker *worker)
{
	uint64_t signs = pin_ring_reaped(&worker->ring) +
		pin_meter_read(&worker->meter.parks_futex) +
		pin_meter_read(&worker->meter.parks_ring);

	if (has_sqe128(worker)) {
		signs += pin_ring_reaped(&worker->sqe128);
	}
	return signs;
}

/*
 * Whether the worker's rings owe it completions, and the signs that it reaps.
 */
static bool is_owed(const struct pin_worker *worker, uint64_t *out_signs)
{
	*out_signs = 0;
	if (!is_awake(worker)) {
		return false;
	}
	if (are_completions_owed(worker)) {
		*out_signs = ring_signs_of(worker);
		return true;
	}
	/* Asked in vain it has nothing to reap. */
	*out_signs = pin_meter_read(&worker->meter.ring_enters);
	return are_polls_owed(worker);
}

static void say_of_ring(const struct pin_worker *worker)
{
	static const char format[] =
		"worker %u: completions wait in its rings for more than %llu us, during task %s of "
		"the %s lane";
	const struct pin_log *log = &worker->shared->log;
	unsigned long long limit_us = worker->shared->tuning.cq_stall_us;
	uint32_t lane = pin_load_relaxed_u32(&worker->running_lane);
	char name[PIN_SYMBOL_BYTES];

	PIN_CHECK(lane < PIN_LANES); /* an index of names */
	pin_event_stall(worker->shared, PIN_STALLED_RING, worker->index, limit_us * 1000,
		(uintptr_t)pin_running_of(worker));
	if (pin_log_try(log, PINION_LOG_WARN, format)) {
		pin_running_describe(pin_running_of(worker), name);
		pin_log_put(
			log, PINION_LOG_WARN, format, worker->index, limit_us, name, lanes[lane]);
	}
}

/*
 * Measures how long completions have waited in the ring of one worker. The lock
 * keeps the ring open while this thread reads it.
 */
static void look_at_ring(struct pin_shared *shared, struct pin_worker *worker,
	const struct pin_stall_look_times *times)
{
	struct pin_stall *stall = &worker->ring_stall;
	uint64_t stalled_ns;
	uint64_t signs = 0;
	bool is_so;

	pin_lock_acquire(&shared->rings_lock, shared->host);	    /* [RETIRE-3] */
	is_so = pin_load_acquire_u32(&worker->ring_is_open) != 0 && /* [REAP-2] */
		is_owed(worker, &signs);
	pin_lock_release(&shared->rings_lock, shared->host);
	stalled_ns = pin_stall_lasted_ns(stall, is_so, signs, times);
	if (stalled_ns < ring_limit_ns(shared)) {
		return;
	}
	if (!stall->is_told) {
		stall->is_told = true;
		stall->counted_ns = stall->since_ns;
		pin_stall_note_found(shared, PIN_STALL_OF_RING);
		say_of_ring(worker);
	}
	PIN_DCHECK(stall->counted_ns >= stall->since_ns && times->now_ns >= stall->counted_ns);
	pin_meter_add(&shared->stalls.ring_ns, times->now_ns - stall->counted_ns);
	stall->counted_ns = times->now_ns;
}

/* ---- checks ---- */

/* By how much a check is late; up to half of a period is usual. */
static uint64_t late_ns(uint64_t due_ns, uint64_t now_ns, uint64_t period_ns)
{
	PIN_DCHECK(now_ns >= due_ns);
	return due_ns != 0 && now_ns - due_ns > period_ns / 2 ? now_ns - due_ns : 0;
}

/* Stalled workers and sleepers publish nothing. */
static void publish(struct pin_shared *shared, uint64_t now_ns)
{
	if (shared->stalls.has_news && pin_metrics_publish_outside(shared, now_ns)) {
		shared->stalls.has_news = false;
	}
	if (shared->stalls.has_news) {
		shared->stalls.is_quiet = false;
	}
}

static void look_at_all(struct pin_shared *shared, const struct pin_stall_look_times *times)
{
	shared->stalls.is_quiet = true;
	pin_log_flush(&shared->log, false);
	if (pin_load_relaxed_u32(&shared->log_rates.has_skipped) != 0) {
		/* Their second is not over. */
		shared->stalls.is_quiet = false;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		look_at_worker(shared, &shared->workers[i], times);
	}
	pin_device_stall_look(shared, times);
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		look_at_lane(shared, lane, times);
	}
	shared->stalls.looked_ns = times->now_ns;
	publish(shared, times->now_ns);
}

static void look_at_rings(struct pin_shared *shared, const struct pin_stall_look_times *times)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		look_at_ring(shared, &shared->workers[i], times);
	}
}

/* If it is time; returns when to come again. */
static uint64_t look_if_due(struct pin_shared *shared, uint64_t *due_ns, uint64_t period_ns,
	void (*look)(struct pin_shared *shared, const struct pin_stall_look_times *times))
{
	struct pin_stall_look_times times = {.now_ns = shared->host->now_ns()};

	if (times.now_ns >= *due_ns) {
		times.late_ns = late_ns(*due_ns, times.now_ns, period_ns);
		look(shared, &times);
		*due_ns = times.now_ns + period_ns;
	}
	PIN_DCHECK(*due_ns > times.now_ns); /* else the thread would not sleep */
	return *due_ns;
}

uint64_t pin_stall_look(struct pin_shared *shared, bool is_watching)
{
	struct pin_stalls *stalls = &shared->stalls;
	uint64_t next_ns = PIN_NO_DEADLINE;

	stalls->is_quiet = false;
	if (pin_stall_are_tasks_watched(shared) && is_watching) {
		next_ns = look_if_due(shared, &stalls->look_ns,
			pin_stall_limit_ns(shared) / PIN_STALL_LOOKS, look_at_all);
	} else {
		/* The next check is the first of all. */
		stalls->look_ns = 0;
		stalls->looked_ns = 0;
	}
	if (pin_stall_are_rings_watched(shared)) {
		uint64_t ring_ns = look_if_due(shared, &stalls->ring_look_ns,
			ring_limit_ns(shared) / PIN_STALL_LOOKS, look_at_rings);

		next_ns = ring_ns < next_ns ? ring_ns : next_ns;
	}
	return next_ns;
}

void pin_stall_end(struct pin_shared *shared)
{
	uint64_t now_ns = shared->host->now_ns();

	PIN_DCHECK(!shared->has_watchdog_thread);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];

		if (pin_stall_is_over(&worker->stall, false, 0)) {
			end_stall(worker, now_ns);
			worker->stall.is_seen = false;
		}
	}
	PIN_DCHECK(pin_load_relaxed_u32(&shared->stalls.tasks_now) == 0);
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		set_starving(shared, lane, false);
	}
	pin_fetch_and_seq_cst_u32(&shared->stalls.devices_now, 0);
	publish(shared, now_ns);
}
