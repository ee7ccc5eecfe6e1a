/* SPDX-License-Identifier: MIT */
/*
 * The sentry's rounds.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"

#include <errno.h>

enum {
	/* What is kept between one look and the next is waited for. */
	LOOKS_PER_PERIOD = 2,
};

/* Instead of a number of tasks: slept at the last look. */
#define ASLEEP UINT64_MAX

void pin_sentry_init(struct pin_shared *shared)
{
	shared->has_sentry = shared->config.sentry_us > 0 && shared->worker_count > 1;
	pin_store_release_u32(&shared->sentry,
		shared->has_sentry || pin_stall_is_watched(shared) ? PIN_SENTRY_ASLEEP
								   : PIN_SENTRY_AWAKE);
}

int pin_sentry_start(struct pin_shared *shared)
{
	int rc;

	if (!shared->has_sentry && !pin_stall_is_watched(shared)) {
		return 0;
	}
	rc = shared->host->thread_start(&shared->sentry_thread, 0, pin_sentry_main, shared);
	shared->has_sentry_thread = rc == 0;
	return rc;
}

void pin_sentry_stop(struct pin_shared *shared)
{
	if (shared->has_sentry_thread) {
		pin_exchange_seq_cst_u32(&shared->sentry, PIN_SENTRY_ENDED);
		shared->host->futex_wake(&shared->sentry, 1);
		shared->host->thread_join(shared->sentry_thread);
		shared->has_sentry_thread = false;
	}
}

static void tell(struct pin_shared *shared)
{
	uint32_t state = PIN_SENTRY_ASLEEP;

	if (!shared->has_sentry) {
		/* Its thread looks for stalled tasks alone, by the clock. */
		return;
	}
	if (pin_cas_seq_cst_u32(&shared->sentry, &state, PIN_SENTRY_AWAKE)) { /* [SENTRY-1] */
		shared->host->futex_wake(&shared->sentry, 1);
	}
}

void pin_sentry_tell(struct pin_worker *worker)
{
	pin_lifo_open(&worker->lifo, PIN_DETOUR_TELL);
	tell(worker->shared);
}

void pin_sentry_tell_of_other(struct pin_shared *shared)
{
	if (pin_load_relaxed_u32(&shared->sentry) == PIN_SENTRY_ASLEEP) { /* [OFFERS-1] */
		tell(shared);
	}
}

static uint64_t ended_tasks(const struct pin_worker *worker)
{
	return pin_meter_read(&worker->meter.tasks_run) +
		pin_meter_read(&worker->meter.tasks_cancelled);
}

/* A guess: what is seen may be on its way to run. */
static bool keeps_work(const struct pin_worker *worker, uint64_t now_ns)
{
	return pin_deque_count(&worker->deque) > 0 || !pin_lifo_is_empty(&worker->lifo) ||
		pin_timer_needs_help(worker, now_ns) || !pin_injector_is_empty(&worker->offers) ||
		pin_relief_is_wanted(worker);
}

/* One that has left neither sleeps nor keeps anything. */
static bool is_out(const struct pin_worker *worker)
{
	return pin_load_acquire_u32(&worker->service) == PIN_SERVICE_OUT;
}

/* Wakes somebody if anyone is stuck. Returns whether anyone is awake. */
static bool look(struct pin_shared *shared)
{
	uint64_t now_ns = shared->host->now_ns();
	bool is_any_awake = false;
	bool is_any_stuck = false;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];
		uint64_t ended = ASLEEP;

		if (!pin_parker_is_parked(&worker->parker) && !is_out(worker)) {
			ended = ended_tasks(worker);
			is_any_awake = true;
			is_any_stuck |=
				ended == worker->sentry_ended_tasks && keeps_work(worker, now_ns);
		}
		worker->sentry_ended_tasks = ended;
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
			!is_out(worker)) { /* [SENTRY-1] [OFFERS-1] */
			return true;
		}
	}
	return false;
}

/* Does nothing when the word is not AWAKE, or has to stay so. */
static void fall_asleep(struct pin_shared *shared)
{
	uint32_t state = PIN_SENTRY_AWAKE;

	if (!pin_cas_seq_cst_u32(&shared->sentry, &state, PIN_SENTRY_ASLEEP)) {
		return;
	}
	pin_fence_seq_cst(); /* [SENTRY-1] [OFFERS-1] */
	if (is_any_awake(shared)) {
		state = PIN_SENTRY_ASLEEP;
		/* Fails if somebody has told meanwhile, which is the same. */
		pin_cas_seq_cst_u32(&shared->sentry, &state, PIN_SENTRY_AWAKE);
	}
}

/* Until the next look. False: the word has changed, or for no reason. */
static bool rest(struct pin_shared *shared)
{
	uint64_t end_ns = shared->host->now_ns() +
		(uint64_t)shared->config.sentry_us * 1000 / LOOKS_PER_PERIOD;

	return shared->host->futex_wait(&shared->sentry, PIN_SENTRY_AWAKE, end_ns) == -ETIMEDOUT;
}

void *pin_sentry_main(void *arg)
{
	struct pin_shared *shared = arg;

	for (;;) {
		uint32_t state = pin_load_acquire_u32(&shared->sentry);
		uint64_t look_ns = pin_stall_look(shared);

		if (state == PIN_SENTRY_ENDED) {
			return NULL;
		}
		if (state == PIN_SENTRY_ASLEEP) {
			shared->host->futex_wait(&shared->sentry, state, look_ns);
		} else if (rest(shared) && !look(shared)) {
			fall_asleep(shared);
		}
	}
}
