/* SPDX-License-Identifier: MIT */
/*
 * The watchdog thread: finds workers that are stalled inside a task while
 * others sleep, and reports stalls if it is asked to.
 *
 * It runs while any worker is awake and checks each worker twice per limit; it
 * only reads what workers publish anyway. watchdog.h has the proof that no kept
 * task is missed.
 *
 * Invariant: it never runs tasks or touches a queue itself: it wakes a worker
 * that does.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/base/check.h"
#include "runtime/io/ring.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

#include <errno.h>

enum {
	/* Work kept between one check and the next is waited for. */
	LOOKS_PER_PERIOD = 2,
};

/* Instead of a number of tasks: slept at the last check. */
#define ASLEEP UINT64_MAX

void pin_watchdog_init(struct pin_shared *shared)
{
	PIN_DCHECK(!shared->has_watchdog_thread);
	shared->has_watchdog = shared->tuning.watchdog_us > 0 && shared->worker_count > 1;
	pin_store_release_u32(&shared->watchdog,
		shared->has_watchdog || pin_stall_is_watched(shared) ? PIN_WATCHDOG_ASLEEP
								     : PIN_WATCHDOG_AWAKE);
}

int pin_watchdog_start(struct pin_shared *shared)
{
	int rc;

	PIN_CHECK(!shared->has_watchdog_thread); /* a second one would never be joined */
	if (!shared->has_watchdog && !pin_stall_is_watched(shared)) {
		return 0;
	}
	rc = shared->host->thread_start(&shared->watchdog_thread, 0, pin_watchdog_main, shared);
	shared->has_watchdog_thread = rc == 0;
	return rc;
}

void pin_watchdog_stop(struct pin_shared *shared)
{
	if (shared->has_watchdog_thread) {
		pin_exchange_seq_cst_u32(&shared->watchdog, PIN_WATCHDOG_ENDED);
		shared->host->futex_wake(&shared->watchdog, 1);
		shared->host->thread_join(shared->watchdog_thread);
		shared->has_watchdog_thread = false;
	}
}

static void tell(struct pin_shared *shared)
{
	uint32_t state = PIN_WATCHDOG_ASLEEP;

	if (!shared->has_watchdog) {
		/* Its thread looks for stalled tasks alone, by the clock. */
		return;
	}
	if (pin_cas_seq_cst_u32(&shared->watchdog, &state, PIN_WATCHDOG_AWAKE)) { /* [WATCHDOG-1] */
		shared->host->futex_wake(&shared->watchdog, 1);
	}
}

void pin_watchdog_tell(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_TELL);
	tell(worker->shared);
}

void pin_watchdog_tell_of_other(struct pin_shared *shared)
{
	if (pin_load_relaxed_u32(&shared->watchdog) == PIN_WATCHDOG_ASLEEP) { /* [EXTERNAL-1] */
		tell(shared);
	}
}

static uint64_t ended_tasks(const struct pin_worker *worker)
{
	return pin_meter_read(&worker->meter.tasks_run) +
		pin_meter_read(&worker->meter.tasks_cancelled);
}

/* A guess: visible work may be on its way to run. */
static bool keeps_work(const struct pin_worker *worker, uint64_t now_ns)
{
	return pin_deque_count(&worker->deque) > 0 || !pin_lifo_is_empty(&worker->lifo) ||
		pin_timer_needs_help(worker, now_ns) || !pin_external_is_empty(worker) ||
		pin_remote_reap_is_wanted(worker);
}

/*
 * A spawned task waits beside a sleeper that no spawn has woken: the next spawn
 * of that worker does.
 */
static void note_found(struct pin_shared *shared, struct pin_worker *worker)
{
	if ((pin_deque_count(&worker->deque) == 0 && pin_lifo_is_empty(&worker->lifo)) ||
		!pin_wake_sees_any_sleeper(shared)) {
		return;
	}
	/* Relaxed: a figure, and its only writer. */
	pin_store_relaxed_u64(&shared->watchdog_found_work,
		pin_load_relaxed_u64(&shared->watchdog_found_work) + 1);
	if (shared->announces) {
		pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_ANNOUNCE | PIN_SLOW_REASON_FOUND);
	}
}

/* A worker that has left neither sleeps nor keeps anything. */
static bool is_out(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->service) == PIN_SERVICE_OUT;
}

/* Wakes a worker if any is stuck. Returns whether any is awake. */
static bool look(struct pin_shared *shared)
{
	uint64_t now_ns = shared->host->now_ns();
	bool is_any_awake = false;
	bool is_any_stuck = false;

	PIN_DCHECK(shared->has_watchdog);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];
		uint64_t ended = ASLEEP;

		if (!pin_parker_is_parked(&worker->parker) && !is_out(worker)) {
			ended = ended_tasks(worker);
			is_any_awake = true;
			if (ended == worker->watchdog_ended_tasks && keeps_work(worker, now_ns)) {
				is_any_stuck = true;
				note_found(shared, worker);
			}
		}
		worker->watchdog_ended_tasks = ended;
	}
	if (is_any_stuck) {
		pin_wake_one(shared, NULL);
	}
	return is_any_awake;
}

static bool is_any_awake(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		if (!pin_parker_is_parked(&worker->parker) &&
			!is_out(worker)) { /* [WATCHDOG-1] [EXTERNAL-1] */
			return true;
		}
	}
	return false;
}

/* Does nothing when the word is not AWAKE, or has to stay so. */
static void fall_asleep(struct pin_shared *shared)
{
	uint32_t state = PIN_WATCHDOG_AWAKE;

	PIN_DCHECK(shared->has_watchdog);
	if (!pin_cas_seq_cst_u32(&shared->watchdog, &state, PIN_WATCHDOG_ASLEEP)) {
		return;
	}
	pin_fence_seq_cst(); /* [WATCHDOG-1] [EXTERNAL-1] */
	if (is_any_awake(shared)) {
		state = PIN_WATCHDOG_ASLEEP;
		/*
		 * Fails if a worker has woken it meanwhile, which is the same.
		 */
		pin_cas_seq_cst_u32(&shared->watchdog, &state, PIN_WATCHDOG_AWAKE);
	}
}

/* Until the next check. False: the word has changed, or for no reason. */
static bool rest(struct pin_shared *shared)
{
	uint64_t end_ns = shared->host->now_ns() +
		(uint64_t)shared->tuning.watchdog_us * 1000 / LOOKS_PER_PERIOD;

	PIN_DCHECK(shared->tuning.watchdog_us > 0); /* else it would not rest at all */
	return shared->host->futex_wait(&shared->watchdog, PIN_WATCHDOG_AWAKE, end_ns) ==
		-ETIMEDOUT;
}

void *pin_watchdog_main(void *arg)
{
	struct pin_shared *shared = arg;

	PIN_DCHECK(pin_worker_current() == NULL);
	for (;;) {
		uint32_t state = pin_load_acquire_u32(&shared->watchdog);
		uint64_t look_ns = pin_stall_look(shared);

		PIN_DCHECK(state <= PIN_WATCHDOG_ENDED);
		if (state == PIN_WATCHDOG_ENDED) {
			return NULL;
		}
		if (state == PIN_WATCHDOG_ASLEEP) {
			shared->host->futex_wait(&shared->watchdog, state, look_ns);
		} else if (rest(shared) && !look(shared)) {
			fall_asleep(shared);
		}
	}
}

/* ---- stalled workers ---- */

/* Which workers have shown no sign of life since when, and whose rings. */

enum {
	LOOKS_PER_LIMIT = 2,
	/* Of all workers; many stalls must not become as many lines. */
	LINES_MAX = 10,
	LINES_PERIOD_NS = 1000 * 1000 * 1000,
};

static uint64_t limit_ns(const struct pin_shared *shared)
{
	PIN_DCHECK(shared->tuning.stall_ms > 0);
	PIN_DCHECK(shared->tuning.stall_ms <= UINT64_MAX / (1000 * 1000));
	return shared->tuning.stall_ms * 1000 * 1000;
}

static uint64_t signs_of(const struct pin_worker *worker)
{
	const struct pin_meter *meter = &worker->meter;

	return pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled) +
		pin_meter_read(&meter->parks_futex) + pin_meter_read(&meter->parks_ring) +
		pin_load_relaxed_u32(&worker->life);
}

static bool may_be_in_task(const struct pin_worker *worker)
{
	return !pin_parker_is_parked(&worker->parker) &&
		pin_load_acquire_u32(&worker->service) == PIN_SERVICE_IN;
}

/* Whether one more line is fine, and how many were left out. */
static bool may_log(struct pin_shared *shared, uint64_t now_ns)
{
	struct pin_stalls *stalls = &shared->stalls;

	PIN_DCHECK(now_ns >= stalls->period_ns);
	PIN_DCHECK(stalls->lines <= LINES_MAX);
	if (now_ns - stalls->period_ns >= LINES_PERIOD_NS) {
		if (stalls->skipped > 0) {
			pin_log(&shared->log, PINION_LOG_WARN,
				"%u more stalled tasks were not logged", stalls->skipped);
		}
		stalls->period_ns = now_ns;
		stalls->lines = 0;
		stalls->skipped = 0;
	}
	if (stalls->lines == LINES_MAX) {
		stalls->skipped++;
		return false;
	}
	stalls->lines++;
	return true;
}

static const char *const lanes[PIN_LANES] = {"high", "normal", "low"};

static void say(const struct pin_worker *worker)
{
	pin_fault_fn function = pin_running_of(worker);
	uint32_t lane = pin_load_relaxed_u32(&worker->running_lane);
	uint64_t signs = worker->stall.signs;
	char name[PIN_RUNNING_NAME_BYTES];

	PIN_CHECK(lane < PIN_LANES); /* an index of names */
	PIN_DCHECK(worker->stall.is_told);
	/* If it is still in there; else the name is another's. */
	if (signs_of(worker) == signs) {
		pin_running_describe(function, name);
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u: task %s of the %s lane runs for more than %llu ms without "
			"progress",
			worker->index, name, lanes[lane],
			(unsigned long long)worker->shared->tuning.stall_ms);
	}
}

/*
 * For how long it has been seen to be so without a sign; 0: it is not, or was
 * not at the last check.
 */
static uint64_t lasted_ns(struct pin_stall *stall, bool is_so, uint64_t signs, uint64_t now_ns)
{
	if (!is_so) {
		stall->is_seen = false;
		return 0;
	}
	if (!stall->is_seen || signs != stall->signs) {
		*stall = (struct pin_stall){.signs = signs, .since_ns = now_ns, .is_seen = true};
	}
	PIN_DCHECK(now_ns >= stall->since_ns);
	return now_ns - stall->since_ns;
}

static void look_at_task(struct pin_shared *shared, struct pin_worker *worker, uint64_t now_ns)
{
	struct pin_stall *stall = &worker->stall;
	uint64_t stalled_ns = lasted_ns(stall, may_be_in_task(worker), signs_of(worker), now_ns);

	if (stalled_ns >= limit_ns(shared) && !stall->is_told) {
		stall->is_told = true;
		if (may_log(shared, now_ns)) {
			say(worker);
		}
	}
}

/* ---- stalled rings ---- */

static uint64_t ring_limit_ns(const struct pin_shared *shared)
{
	PIN_DCHECK(shared->tuning.cq_stall_us > 0);
	PIN_DCHECK(shared->tuning.cq_stall_us <= UINT64_MAX / 1000);
	return shared->tuning.cq_stall_us * 1000;
}

static bool has_wide(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->wide_is_open) != 0; /* [STALL-1] */
}

/* By themselves, or as soon as the kernel is asked. */
static bool are_completions_owed(const struct pin_worker *worker)
{
	return pin_ring_owes_completions(&worker->ring) ||
		(has_wide(worker) && pin_ring_owes_completions(&worker->wide));
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

	if (has_wide(worker)) {
		signs += pin_ring_reaped(&worker->wide);
	}
	return signs;
}

/*
 * Whether the worker's rings owe it anything, and the signs that would show
 * otherwise.
 */
static bool is_owed(const struct pin_worker *worker, uint64_t *out_signs)
{
	*out_signs = 0;
	if (!may_be_in_task(worker)) {
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
	uint32_t lane = pin_load_relaxed_u32(&worker->running_lane);
	char name[PIN_RUNNING_NAME_BYTES];

	PIN_CHECK(lane < PIN_LANES); /* an index of names */
	pin_running_describe(pin_running_of(worker), name);
	pin_log(&worker->shared->log, PINION_LOG_WARN,
		"worker %u: completions wait in its rings for more than %llu us, during task %s of "
		"the %s lane",
		worker->index, (unsigned long long)worker->shared->tuning.cq_stall_us, name,
		lanes[lane]);
}

/*
 * Measures how long completions have waited in the ring of one worker. The lock
 * keeps the ring open while this thread reads it.
 */
static void look_at_ring(struct pin_shared *shared, struct pin_worker *worker, uint64_t now_ns)
{
	struct pin_stall *stall = &worker->ring_stall;
	uint64_t stalled_ns;
	uint64_t signs = 0;
	bool is_so;

	pin_lock_acquire(&shared->rings_lock, shared->host);	    /* [RETIRE-3] */
	is_so = pin_load_acquire_u32(&worker->ring_is_open) != 0 && /* [REAP-2] */
		is_owed(worker, &signs);
	pin_lock_release(&shared->rings_lock, shared->host);
	stalled_ns = lasted_ns(stall, is_so, signs, now_ns);
	if (stalled_ns < ring_limit_ns(shared)) {
		return;
	}
	if (!stall->is_told) {
		stall->is_told = true;
		stall->counted_ns = stall->since_ns;
		pin_meter_add(&shared->stalls.ring_count, 1);
		if (may_log(shared, now_ns)) {
			say_of_ring(worker);
		}
	}
	PIN_DCHECK(stall->counted_ns >= stall->since_ns && now_ns >= stall->counted_ns);
	pin_meter_add(&shared->stalls.ring_ns, now_ns - stall->counted_ns);
	stall->counted_ns = now_ns;
}

/* Of one kind; returns when to come again. */
static uint64_t visit_workers(struct pin_shared *shared, uint64_t now_ns, uint64_t *look_ns,
	uint64_t period_ns,
	void (*look_at)(struct pin_shared *shared, struct pin_worker *worker, uint64_t now_ns))
{
	if (now_ns >= *look_ns) {
		for (uint32_t i = 0; i < shared->worker_count; i++) {
			look_at(shared, &shared->workers[i], now_ns);
		}
		*look_ns = now_ns + period_ns;
	}
	PIN_DCHECK(*look_ns > now_ns); /* else the thread would not sleep */
	return *look_ns;
}

/*
 * One round of the checks that configuration asks for; returns when the next
 * one is due.
 */
uint64_t pin_stall_look(struct pin_shared *shared)
{
	struct pin_stalls *stalls = &shared->stalls;
	uint64_t next_ns = PIN_NO_DEADLINE;
	uint64_t now_ns;

	if (!pin_stall_is_watched(shared)) {
		return PIN_NO_DEADLINE;
	}
	now_ns = shared->host->now_ns();
	if (shared->tuning.stall_ms != 0) {
		next_ns = visit_workers(shared, now_ns, &stalls->look_ns,
			limit_ns(shared) / LOOKS_PER_LIMIT, look_at_task);
	}
	if (pin_stall_are_rings_watched(shared)) {
		uint64_t ring_ns = visit_workers(shared, now_ns, &stalls->ring_look_ns,
			ring_limit_ns(shared) / LOOKS_PER_LIMIT, look_at_ring);

		next_ns = ring_ns < next_ns ? ring_ns : next_ns;
	}
	return next_ns;
}
