/* SPDX-License-Identifier: MIT */
/*
 * A worker's way to sleep and back.
 */
#include "runtime/core/park.h"
#include "runtime/core/search.h"
#include "runtime/core/wake.h"

enum {
	/* For a waker that stands between its push and its wake. */
	WAKER_DELAY_NS = 10 * 1000 * 1000,
};

bool pin_park_has_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return !pin_list_is_empty(&worker->ready) || !pin_list_is_empty(&worker->posted) ||
		!pin_lifo_is_empty(&worker->lifo) || pin_deque_count(&worker->deque) > 0 ||
		!pin_inbox_is_empty(&worker->inbox) || !pin_injector_is_empty(&shared->injector) ||
		pin_ring_has_work(&worker->ring) || pin_load_acquire_u32(&shared->has_ended) != 0 ||
		(pin_shared_is_stopping(shared) && !worker->cancel_sent);
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
	if (pin_park_has_work(worker)) {
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
		pin_park_has_work(worker) && pin_load_acquire_u32(&worker->shared->searching) == 0;
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

void pin_park(struct pin_worker *worker)
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
