/* SPDX-License-Identifier: MIT */
/*
 * Stealing and spinning.
 */
#include "runtime/core/search.h"
#include "runtime/core/wake.h"

enum {
	/* A gap that was slept through measures at least this much. */
	SPIN_GAP_NS_MAX = 50 * 1000,
	/* Relaxed moments, some microseconds, before a worker seems stuck. */
	STUCK_RELAX = 64,
	/* A gap moves the average by one part in so many. */
	GAP_WEIGHT = 8,
};

static struct pin_link *steal_from(struct pin_worker *worker, struct pin_worker *victim)
{
	struct pin_link *link;
	uint32_t count = pin_deque_steal(&victim->deque, &worker->deque, &link);

	if (count == 0) {
		return NULL;
	}
	pin_meter_add(&worker->meter.steals, 1);
	pin_meter_add(&worker->meter.tasks_stolen, count);
	return link;
}

static struct pin_link *steal_round(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	struct pin_link *link = NULL;
	uint32_t index;

	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (link == NULL && pin_victims_next(&round, &index)) {
		link = steal_from(worker, &shared->workers[index]);
	}
	return link;
}

/* Whether the same task has been running, with another behind it, for long. */
static bool is_stuck(const struct pin_worker *victim)
{
	uint64_t runs = pin_meter_read(&victim->meter.tasks_run);

	if (!victim->uses_lifo || pin_lifo_is_empty(&victim->lifo)) {
		return false;
	}
	for (int i = 0; i < STUCK_RELAX; i++) {
		pin_cpu_relax();
	}
	return pin_meter_read(&victim->meter.tasks_run) == runs &&
		!pin_lifo_is_empty(&victim->lifo);
}

/* The last resort: a task that waits in a LIFO slot behind a long one. */
static struct pin_link *steal_newest(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	uint32_t index;

	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (pin_victims_next(&round, &index)) {
		struct pin_worker *victim = &shared->workers[index];
		struct pin_link *link =
			is_stuck(victim) ? pin_lifo_steal(&victim->lifo, shared->host) : NULL;

		if (link != NULL) {
			pin_meter_add(&worker->meter.steals, 1);
			pin_meter_add(&worker->meter.tasks_stolen, 1);
			return link;
		}
	}
	return NULL;
}

struct pin_link *pin_search_others(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	struct pin_link *link = NULL;

	if (worker->shared->worker_count == 1 || !pin_search_begin(worker)) {
		return NULL;
	}
	pin_meter_add(&worker->meter.searches, 1);
	for (uint32_t i = 0; i < config->steal_tries && link == NULL; i++) {
		link = steal_round(worker);
	}
	return link != NULL ? link : steal_newest(worker);
}

bool pin_search_sees_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (pin_deque_count(&shared->workers[i].deque) > 0) {
			return true;
		}
	}
	return false;
}

static bool may_spin(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return shared->has_cpu_each && worker->idle_gap_ns < SPIN_GAP_NS_MAX &&
		(worker->is_searching || shared->worker_count == 1);
}

bool pin_search_spin(struct pin_worker *worker, bool (*has_work)(const struct pin_worker *worker),
	struct pin_link **out_link)
{
	uint32_t rounds = may_spin(worker) ? worker->shared->config.spin_iters : 0;

	*out_link = NULL;
	for (uint32_t i = 0; i < rounds; i++) {
		pin_cpu_relax();
		if (pin_search_sees_work(worker)) {
			*out_link = steal_round(worker);
		}
		if (*out_link != NULL || has_work(worker)) {
			pin_meter_add(&worker->meter.spin_hits, 1);
			return true;
		}
	}
	return false;
}

void pin_search_note_gap(struct pin_worker *worker, uint64_t gap_ns)
{
	worker->idle_gap_ns -= worker->idle_gap_ns / GAP_WEIGHT;
	worker->idle_gap_ns += gap_ns / GAP_WEIGHT;
}
