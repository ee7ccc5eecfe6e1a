/* SPDX-License-Identifier: MIT */
/*
 * The steps of a worker that has run dry: it searches the other workers'
 * queues, then spins for a while, then lets the caller sleep.
 *
 * The loop calls it. Victims are visited nearest first (policy/steal_order.h);
 * how long to spin is learned from earlier spins (policy/spin.h).
 *
 * Invariant: at most the configured share of workers searches at once, and a
 * searcher that finds work gives up its count before it runs it.
 */
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/worker.h"

enum {
	/* Relaxed moments, some microseconds, before a worker seems stalled. */
	STUCK_RELAX = 64,
};

static struct pin_link *steal_from(struct pin_worker *worker, struct pin_worker *victim)
{
	struct pin_link *link;
	uint32_t count = pin_deque_steal(&victim->deque, &worker->deque, &link);

	PIN_DCHECK(victim != worker);
	PIN_DCHECK(worker->is_searching && pin_worker_serves(worker, PINION_LANE_NORMAL));
	if (count == 0) {
		return NULL;
	}
	pin_meter_add(&worker->meter.steals, 1);
	pin_meter_add(&worker->meter.tasks_stolen, count);
	PIN_DCHECK(link != NULL);
	pin_event_steal(worker, victim, count);
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

bool pin_search_is_stalled(const struct pin_worker *victim)
{
	uint64_t runs = pin_meter_read(&victim->meter.tasks_run);

	PIN_DCHECK(!pin_worker_is_current(victim));
	for (int i = 0; i < STUCK_RELAX; i++) {
		pin_cpu_relax();
		if (pin_meter_read(&victim->meter.tasks_run) != runs) {
			return false;
		}
	}
	return true;
}

static struct pin_link *steal_slot(struct pin_worker *worker, struct pin_worker *victim)
{
	struct pin_link *link;

	PIN_DCHECK(victim != worker);
	if (pin_lifo_is_empty(&victim->lifo) || !pin_search_is_stalled(victim)) {
		return NULL;
	}
	link = pin_lifo_steal(&victim->lifo, worker->shared->host);
	if (link != NULL) {
		pin_meter_add(&worker->meter.steals, 1);
		pin_meter_add(&worker->meter.tasks_stolen, 1);
		pin_event_steal(worker, victim, 1);
	}
	return link;
}

/* To be run at once, or in the own queue, or in that of its lane. */
static void keep_stolen(struct pin_worker *worker, struct pin_link *link, struct pin_link **first)
{
	if (pin_task_lane(pin_task_of(link)) != PINION_LANE_NORMAL) {
		pin_lane_push_one(worker->shared, worker, pin_task_of(link));
	} else if (*first == NULL) {
		*first = link;
	} else {
		bool has_room = pin_deque_push(&worker->deque, link);

		PIN_DCHECK(pin_worker_serves(worker, PINION_LANE_NORMAL));
		PIN_CHECK(has_room);
	}
}

/* In a turn that is not timed yet the last reading is of an earlier one. */
static uint64_t now_of(const struct pin_worker *worker)
{
	return worker->turn_end_ns != 0 ? worker->now_ns : worker->shared->host->now_ns();
}

/*
 * As many as there is room for besides the first; cancelled ones are left in
 * the own list.
 */
static struct pin_link *steal_timers(struct pin_worker *worker, struct pin_worker *victim)
{
	uint64_t now_ns;
	struct pin_list due = {0};
	struct pin_list cancelled = {0};
	struct pin_link *first = NULL;
	struct pin_link *link;
	uint32_t count;

	if (pin_timer_next_ns(victim) == PIN_NO_DEADLINE &&
		pin_inbox_is_empty(&victim->timer_cancels)) {
		return NULL;
	}
	now_ns = now_of(worker);
	if (!pin_timer_needs_help(victim, now_ns) || pin_parker_is_parked(&victim->parker) ||
		!pin_search_is_stalled(victim)) {
		return NULL;
	}
	count = pin_timer_steal(
		victim, now_ns, pin_deque_room(&worker->deque) + 1, &due, &cancelled);
	PIN_DCHECK((count == 0) == pin_list_is_empty(&due));
	if (!pin_list_is_empty(&cancelled)) {
		pin_timer_adopt(worker, &cancelled);
	}
	if (count == 0) {
		return NULL;
	}
	pin_meter_add(&worker->meter.steals, 1);
	pin_meter_add(&worker->meter.tasks_stolen, count);
	pin_meter_add(&worker->meter.timers_processed, count);
	pin_event_steal(worker, victim, count);
	while ((link = pin_list_pop(&due)) != NULL) {
		keep_stolen(worker, link, &first);
	}
	return first;
}

/*
 * The last resort: tasks that only their worker would take, while it is in a
 * long task.
 */
static struct pin_link *steal_kept(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_victims_round round;
	uint32_t index;

	pin_victims_begin(&round, &shared->victims, worker->index, &worker->random);
	while (pin_victims_next(&round, &index)) {
		struct pin_worker *victim = &shared->workers[index];
		struct pin_link *link = steal_slot(worker, victim);

		if (link == NULL) {
			link = steal_timers(worker, victim);
		}
		if (link != NULL) {
			return link;
		}
	}
	return NULL;
}

struct pin_link *pin_search_others(struct pin_worker *worker)
{
	uint32_t tries = worker->shared->tuning.steal_tries;
	uint32_t rounds = 0;
	struct pin_link *link = NULL;

	if (worker->shared->worker_count == 1 || !pin_worker_serves(worker, PINION_LANE_NORMAL) ||
		!pin_search_begin(worker)) {
		return NULL;
	}
	pin_meter_add(&worker->meter.searches, 1);
	while (rounds < tries && link == NULL) {
		link = steal_round(worker);
		rounds++;
	}
	pin_meter_add(&worker->meter.steal_rounds, rounds);
	return link != NULL ? link : steal_kept(worker);
}

bool pin_search_sees_work(const struct pin_worker *worker)
{
	return pin_worker_serves(worker, PINION_LANE_NORMAL) &&
		pin_runnable_has_queued(worker->shared);
}

/*
 * Whether the slot of a worker that ends no task meanwhile has a task that this
 * worker could take: [ANNOUNCE-2]; or the owner is just putting one there.
 */
bool pin_search_sees_slot(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	if (!shared->announces || !pin_worker_serves(worker, PINION_LANE_NORMAL)) {
		return false;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *victim = &shared->workers[i];

		if (victim == worker) {
			continue;
		}
		if (pin_lifo_is_entered(&victim->lifo)) { /* [ANNOUNCE-3] */
			shared->host->yield();
			return true;
		}
		if (!pin_lifo_is_empty(&victim->lifo) && /* [ANNOUNCE-2] */
			pin_search_is_stalled(victim)) {
			return true;
		}
	}
	return false;
}

/*
 * By a worker that waits awake: steals from the first worker that shows work.
 * It goes by rank, from its own on, so that near ones come early and each thief
 * begins elsewhere; a round by random numbers would have to begin after the
 * work was seen.
 */
static struct pin_link *steal_awaited(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	uint32_t rank = pin_victims_rank(&shared->victims, worker->index);

	for (uint32_t i = 1; i < shared->worker_count; i++) {
		struct pin_worker *victim;

		rank = rank + 1 == shared->worker_count ? 0 : rank + 1;
		victim = &shared->workers[pin_victims_index(&shared->victims, rank)];
		if (PIN_UNLIKELY(pin_deque_await(&victim->deque))) {
			return steal_from(worker, victim);
		}
	}
	return NULL;
}

/* What others hand over, to this worker or to any that may steal. */
static inline bool has_been_given(const struct pin_worker *worker)
{
	return !pin_inbox_is_empty(&worker->inbox) ||
		!pin_injector_is_empty(&worker->shared->injector);
}

static bool may_spin(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	return shared->has_cpu_each && (worker->is_searching || shared->worker_count == 1);
}

/*
 * Polls a few likely sources in each round and all of them in every fourth one:
 * a full check of many workers would make each theft late.
 */
bool pin_search_spin(struct pin_worker *worker, bool (*has_work)(const struct pin_worker *worker),
	struct pin_link **out_link)
{
	struct pin_spin *spin = &worker->spin;
	uint32_t looks = may_spin(worker) ? pin_spin_ask(spin, worker->now_ns) : 0;
	bool is_thief =
		worker->shared->worker_count > 1 && pin_worker_serves(worker, PINION_LANE_NORMAL);
	uint32_t stride = is_thief ? PIN_SEARCH_LOOKS_TO_FULL : 1;

	PIN_DCHECK(worker->is_dry);
	*out_link = NULL;
	for (uint32_t i = 0; i < looks; i++) {
		pin_cpu_relax();
		*out_link = is_thief ? steal_awaited(worker) : NULL;
		if (*out_link != NULL || (is_thief && has_been_given(worker)) ||
			(i % stride == 0 && has_work(worker))) {
			pin_spin_note_catch(spin, i, worker->now_ns);
			pin_meter_add(&worker->meter.spin_hits, 1);
			return true;
		}
	}
	if (looks > 0) {
		pin_spin_note_miss(spin, worker->now_ns);
	}
	return false;
}
