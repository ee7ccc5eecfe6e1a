/* SPDX-License-Identifier: MIT */
/*
 * The watchdog thread: finds workers that are stalled inside a task while
 * others sleep, and looks for stalls (stall.c).
 *
 * It runs while any worker is awake and checks each worker twice per limit; it
 * only reads what workers publish anyway. watchdog.h has the proof that no kept
 * task, and no worker that gets up, is missed.
 *
 * Invariant: it never runs a task or touches a queue: it wakes a worker that
 * does.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/base/check.h"
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

static enum pin_watchdog_state first_state(const struct pin_shared *shared)
{
	if (pin_stall_are_tasks_watched(shared)) {
		/* A worker that starts may run a task before it ever sleeps. */
		return PIN_WATCHDOG_DOZING;
	}
	return shared->has_watchdog || pin_stall_is_watched(shared) ? PIN_WATCHDOG_ASLEEP
								    : PIN_WATCHDOG_AWAKE;
}

void pin_watchdog_init(struct pin_shared *shared)
{
	PIN_DCHECK(!shared->has_watchdog_thread);
	shared->has_watchdog = shared->tuning.watchdog_us > 0 && shared->worker_count > 1;
	shared->has_watchdog_listener = shared->has_watchdog || pin_stall_are_tasks_watched(shared);
	pin_store_release_u32(&shared->watchdog, first_state(shared));
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
		pin_stall_end(shared);
	}
}

static void tell(struct pin_shared *shared)
{
	uint32_t state = pin_load_relaxed_u32(&shared->watchdog);

	if (!shared->has_watchdog) {
		/* Its thread looks for stalls alone, by the clock. */
		return;
	}
	while (state == PIN_WATCHDOG_ASLEEP || state == PIN_WATCHDOG_DOZING) {
		if (pin_cas_seq_cst_u32(
			    &shared->watchdog, &state, PIN_WATCHDOG_AWAKE)) { /* [WATCHDOG-1] */
			shared->host->futex_wake(&shared->watchdog, 1);
			return;
		}
	}
}

void pin_watchdog_tell(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_lifo_open(&worker->lifo, PIN_SLOW_REASON_TELL);
	tell(worker->shared);
}

PIN_COLD void pin_watchdog_tell_awake(struct pin_shared *shared)
{
	uint32_t state = PIN_WATCHDOG_ASLEEP;

	if (pin_cas_seq_cst_u32(
		    &shared->watchdog, &state, PIN_WATCHDOG_DOZING)) { /* [WATCHDOG-2] */
		shared->host->futex_wake(&shared->watchdog, 1);
	}
}

void pin_watchdog_tell_of_other(struct pin_shared *shared)
{
	uint32_t state = pin_load_relaxed_u32(&shared->watchdog); /* [EXTERNAL-1] */

	if (state == PIN_WATCHDOG_ASLEEP || state == PIN_WATCHDOG_DOZING) {
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
 * A spawned task waits beside a sleeper that no spawn has woken: the worker's
 * next spawn wakes one.
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

/* Wakes a worker if any is stalled. Returns whether any is awake. */
static bool look(struct pin_shared *shared)
{
	uint64_t now_ns = shared->host->now_ns();
	bool is_any_awake = false;
	bool is_any_stalled = false;

	PIN_DCHECK(shared->has_watchdog);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];
		uint64_t ended = ASLEEP;

		if (!pin_parker_is_parked(&worker->parker) && !is_out(worker)) {
			ended = ended_tasks(worker);
			is_any_awake = true;
			if (ended == worker->watchdog_ended_tasks && keeps_work(worker, now_ns)) {
				is_any_stalled = true;
				note_found(shared, worker);
			}
		}
		worker->watchdog_ended_tasks = ended;
	}
	if (is_any_stalled) {
		pin_wake_one(shared, NULL);
	}
	return is_any_awake;
}

static bool is_any_awake(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		if (!pin_parker_is_parked(&worker->parker) &&
			!is_out(worker)) { /* [WATCHDOG-1] [WATCHDOG-2] [EXTERNAL-1] */
			return true;
		}
	}
	return false;
}

/*
 * From AWAKE or DOZING to a deeper state. Does nothing when the word is another
 * by now, or has to stay so.
 */
static void fall_asleep(
	struct pin_shared *shared, enum pin_watchdog_state from, enum pin_watchdog_state deeper)
{
	uint32_t state = from;

	if (!pin_cas_seq_cst_u32(&shared->watchdog, &state, deeper)) {
		return;
	}
	pin_fence_seq_cst(); /* [WATCHDOG-1] [WATCHDOG-2] [EXTERNAL-1] */
	if (is_any_awake(shared)) {
		state = deeper;
		/*
		 * Fails if a worker has woken it meanwhile, which is the same.
		 */
		pin_cas_seq_cst_u32(&shared->watchdog, &state, from);
	}
}

/* Kept work is looked for no more; stalls are, if they are watched. */
static void end_looks(struct pin_shared *shared)
{
	PIN_DCHECK(shared->has_watchdog);
	fall_asleep(shared, PIN_WATCHDOG_AWAKE,
		pin_stall_are_tasks_watched(shared) ? PIN_WATCHDOG_DOZING : PIN_WATCHDOG_ASLEEP);
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

/* Until the next check for stalls, unless the last found no sign of life. */
static void doze(struct pin_shared *shared, uint64_t look_ns)
{
	PIN_DCHECK(pin_stall_are_tasks_watched(shared));
	if (pin_stall_is_quiet(shared)) {
		fall_asleep(shared, PIN_WATCHDOG_DOZING, PIN_WATCHDOG_ASLEEP);
	} else {
		shared->host->futex_wait(&shared->watchdog, PIN_WATCHDOG_DOZING, look_ns);
	}
}

void *pin_watchdog_main(void *arg)
{
	struct pin_shared *shared = arg;

	PIN_DCHECK(pin_worker_current() == NULL);
	for (;;) {
		uint32_t state = pin_load_acquire_u32(&shared->watchdog);
		uint64_t look_ns;

		PIN_DCHECK(state <= PIN_WATCHDOG_DOZING);
		if (state == PIN_WATCHDOG_ENDED) {
			return NULL;
		}
		look_ns = pin_stall_look(shared, state != PIN_WATCHDOG_ASLEEP);
		if (state == PIN_WATCHDOG_ASLEEP) {
			shared->host->futex_wait(&shared->watchdog, state, look_ns);
		} else if (state == PIN_WATCHDOG_DOZING) {
			doze(shared, look_ns);
		} else if (rest(shared) && !look(shared)) {
			end_looks(shared);
		}
	}
}
