/* SPDX-License-Identifier: MIT */
/*
 * Decides whether new work wakes a sleeper, chooses it, and keeps the counts of
 * searchers and of workers that are free to help another lane.
 *
 * Every thread that adds work ends here. wake.h has the rule and its proof: no
 * wake while a worker searches, and a searcher that finds work wakes the next.
 *
 * Invariant: a sleeper is claimed after the count of searchers was raised for
 * it, so it is counted before it runs.
 */
#include "runtime/worker/wake.h"
#include "runtime/base/check.h"
#include "runtime/worker/events.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/state.h"

static void notify(struct pin_worker *target)
{
	pin_event_wake(target);
	pin_metrics_stamp_wake(target);
	if (pin_parker_notify(&target->parker, target->shared->host)) { /* [REAP-1] */
		pin_ring_doorbell(&target->ring);
		if (target->shared->is_thread_pool) {
			pin_fetch_add_acq_rel_u32(&target->rung, 1); /* [RETIRE-3] */
		}
	}
}

/*
 * L3 by L3, in each a worker that sleeps on its futex before one in its ring:
 * no saving of a system call is worth a cold cache.
 */
static uint32_t claim_by_l3(
	struct pin_shared *shared, struct pin_worker_class *worker_class, struct pin_range all)
{
	uint32_t rank = PIN_IDLE_NONE;

	PIN_DCHECK(all.end <= shared->worker_count);
	while (rank == PIN_IDLE_NONE && all.first < all.end) {
		uint32_t index = pin_victims_index(&shared->victims, all.first);
		struct pin_range l3 = pin_victims_ranges(&shared->victims, index)[PIN_NEAR_L3];
		struct pin_range part = {all.first, l3.end < all.end ? l3.end : all.end};

		for (int i = 0; i < PIN_PARKED_SETS && rank == PIN_IDLE_NONE; i++) {
			rank = pin_idle_claim_in(&worker_class->parked[i], &part, 1);
		}
		PIN_DCHECK(part.first < part.end && part.end <= shared->worker_count);
		all.first = part.end;
	}
	return rank;
}

/* The kind of sleep that all are in, or PIN_PARKED_SETS: there are both. */
static int only_set(const struct pin_worker_class *worker_class)
{
	if (pin_idle_is_empty(&worker_class->parked[PIN_PARKED_RING])) {
		return PIN_PARKED_FUTEX;
	}
	return pin_idle_is_empty(&worker_class->parked[PIN_PARKED_FUTEX]) ? PIN_PARKED_RING
									  : PIN_PARKED_SETS;
}

static uint32_t claim_in(
	struct pin_shared *shared, struct pin_worker_class *worker_class, struct pin_range range)
{
	int set = only_set(worker_class);

	PIN_DCHECK(range.first <= range.end && range.end <= shared->worker_count);
	return set < PIN_PARKED_SETS ? pin_idle_claim_in(&worker_class->parked[set], &range, 1)
				     : claim_by_l3(shared, worker_class, range);
}

static uint32_t claim_lowest(struct pin_shared *shared, struct pin_worker_class *worker_class)
{
	int set = only_set(worker_class);

	return set < PIN_PARKED_SETS
		? pin_idle_claim(&worker_class->parked[set])
		: claim_by_l3(shared, worker_class, (struct pin_range){0, shared->worker_count});
}

/* The own L3: here, too, who shares an L2 comes first of its kind. */
static uint32_t claim_in_own_l3(
	struct pin_worker_class *worker_class, const struct pin_range *ranges)
{
	uint32_t rank = PIN_IDLE_NONE;

	for (int i = 0; i < PIN_PARKED_SETS && rank == PIN_IDLE_NONE; i++) {
		rank = pin_idle_claim_in(&worker_class->parked[i], &ranges[PIN_NEAR_L2],
			PIN_NEAR_NODE - PIN_NEAR_L2);
	}
	return rank;
}

/* A near worker in its ring comes before a far one on its futex. */
static uint32_t claim_near(struct pin_shared *shared, struct pin_worker_class *worker_class,
	const struct pin_worker *waker)
{
	const struct pin_victims *victims = &shared->victims;
	const struct pin_range *ranges = pin_victims_ranges(victims, waker->index);
	const struct pin_far_node *far = pin_victims_far(victims, waker->index);
	uint32_t rank = claim_in_own_l3(worker_class, ranges);

	PIN_DCHECK(waker->index < shared->worker_count);
	if (rank == PIN_IDLE_NONE) {
		rank = claim_in(shared, worker_class, ranges[PIN_NEAR_NODE]);
	}
	for (uint32_t i = 0; i < victims->far_count && rank == PIN_IDLE_NONE; i++) {
		rank = claim_in(shared, worker_class, far[i].ranks);
	}
	/* All, also those that have got to sleep meanwhile. */
	return rank != PIN_IDLE_NONE ? rank : claim_in(shared, worker_class, ranges[PIN_NEAR_ALL]);
}

static uint32_t claim_next(struct pin_shared *shared, struct pin_worker_class *worker_class)
{
	uint32_t start = pin_load_relaxed_u32(&shared->wake_start);
	int set = only_set(worker_class);
	uint32_t rank;

	PIN_DCHECK(start <= shared->worker_count);
	if (set < PIN_PARKED_SETS) {
		rank = pin_idle_claim_from(&worker_class->parked[set], start);
	} else {
		rank = claim_by_l3(
			shared, worker_class, (struct pin_range){start, shared->worker_count});
		rank = rank != PIN_IDLE_NONE ? rank : claim_lowest(shared, worker_class);
	}
	if (rank != PIN_IDLE_NONE) {
		pin_store_relaxed_u32(&shared->wake_start, rank + 1);
	}
	return rank;
}

/* Takes a parked worker out of its set; outside threads are near to none. */
static struct pin_worker *claim(struct pin_shared *shared, struct pin_worker_class *worker_class,
	const struct pin_worker *waker)
{
	struct pin_worker *claimed;
	uint32_t rank;

	if (shared->tuning.wake_policy == PINION_WAKE_ROTATE) {
		rank = claim_next(shared, worker_class);
	} else if (shared->tuning.wake_policy == PINION_WAKE_NEAR && waker != NULL) {
		rank = claim_near(shared, worker_class, waker);
	} else {
		rank = claim_lowest(shared, worker_class);
	}
	PIN_DCHECK(rank == PIN_IDLE_NONE || rank < shared->worker_count);
	if (rank == PIN_IDLE_NONE) {
		return NULL;
	}
	claimed = &shared->workers[pin_victims_index(&shared->victims, rank)];
	PIN_DCHECK(claimed->worker_class == worker_class);
	return claimed;
}

/*
 * After a fence. False: all of the class are busy; it needs no wake. Adds to
 * *out_stranded the lanes for which others have perhaps relied on this count.
 */
static bool wake_in_class(struct pin_shared *shared, struct pin_worker_class *worker_class,
	struct pin_worker *waker, uint32_t *out_stranded)
{
	uint32_t before;

	do {
		struct pin_worker *target;
		uint32_t nobody = 0;

		if (!pin_wake_sees_sleeper(worker_class)) { /* [PARK-1] */
			return false;
		}
		if (!pin_cas_seq_cst_u32(&worker_class->searching, &nobody, 1)) { /* [SEARCH-2] */
			if (waker != NULL) {
				pin_meter_add(&waker->meter.wakes_saved, 1);
			}
			return true;
		}
		target = claim(shared, worker_class, waker);
		if (target != NULL) {
			if (waker != NULL) {
				pin_meter_add(&waker->meter.wakes_sent, 1);
				waker->woken = target;
			}
			notify(target);
			return true;
		}
		before = pin_fetch_sub_seq_cst_u32(&worker_class->searching, 1); /* [SEARCH-2] */
		PIN_CHECK(before > 0);
		*out_stranded |= worker_class->order.mask;
	} while (before == 1);
	return true;
}

static void wake_for_lane(
	struct pin_shared *shared, struct pin_worker *waker, uint32_t lane, uint32_t *out_stranded)
{
	PIN_DCHECK(lane < PIN_LANES);
	for (uint32_t i = 0; i < shared->class_count; i++) {
		struct pin_worker_class *worker_class = &shared->classes[shared->class_order[i]];

		if ((worker_class->order.mask & PIN_LANE_BIT(lane)) != 0 &&
			wake_in_class(shared, worker_class, waker, out_stranded)) {
			return;
		}
	}
	for (uint32_t i = 0; i < shared->class_count && pin_assist_is_on(shared); i++) {
		struct pin_worker_class *worker_class = &shared->classes[shared->class_order[i]];

		if ((worker_class->order.mask & PIN_LANE_BIT(lane)) == 0 &&
			pin_assist_has_room(shared, worker_class) &&
			wake_in_class(shared, worker_class, waker, out_stranded)) {
			return;
		}
	}
}

/* Of these lanes those in which there is something. */
static uint32_t filled(const struct pin_shared *shared, uint32_t lanes)
{
	uint32_t mask = 0;

	PIN_DCHECK((lanes & ~(uint32_t)PIN_LANES_ALL) == 0);
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		bool has_work = pin_runnable_has_lane(shared, lane) ||
			(lane == PINION_LANE_NORMAL && pin_runnable_has_queued(shared));

		mask |= has_work ? PIN_LANE_BIT(lane) : 0;
	}
	return mask & lanes;
}

/* [SEARCH-3] After a fence, for each of these lanes. */
static void wake_for_lanes(struct pin_shared *shared, struct pin_worker *waker, uint32_t lanes)
{
	PIN_DCHECK((lanes & ~(uint32_t)PIN_LANES_ALL) == 0);
	while (lanes != 0) {
		uint32_t stranded = 0;

		for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
			if ((lanes & PIN_LANE_BIT(lane)) != 0) {
				wake_for_lane(shared, waker, lane, &stranded);
			}
		}
		if (stranded == 0) {
			return;
		}
		pin_fence_seq_cst(); /* [SEARCH-3] */
		lanes = filled(shared, pin_assist_is_on(shared) ? PIN_LANES_ALL : stranded);
	}
}

static inline void wake_in_only_class(struct pin_shared *shared, struct pin_worker *waker)
{
	uint32_t stranded = 0;

	PIN_DCHECK(shared->class_count == 1);
	if (pin_wake_sees_sleeper(&shared->classes[0])) { /* [PARK-1] */
		(void)wake_in_class(shared, &shared->classes[0], waker, &stranded);
	}
}

void pin_wake_one(struct pin_shared *shared, struct pin_worker *waker)
{
	PIN_DCHECK(pin_worker_is_caller(shared, waker));
	pin_fence_seq_cst(); /* [PARK-1] [SEARCH-1] [ASSIST-1] */
	if (PIN_LIKELY(shared->class_count == 1)) {
		wake_in_only_class(shared, waker);
	} else {
		wake_for_lanes(shared, waker, PIN_LANE_BIT(PINION_LANE_NORMAL));
	}
}

void pin_wake_lane(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane)
{
	PIN_DCHECK(pin_worker_is_caller(shared, waker));
	pin_fence_seq_cst(); /* [PARK-1] [SEARCH-1] [ASSIST-1] */
	wake_for_lanes(shared, waker, PIN_LANE_BIT(lane));
}

static bool forward_queue(struct pin_injector *from, struct pin_injector *to)
{
	struct pin_list list = {0};
	bool has_more;

	while (pin_injector_pop(from, 1, UINT32_MAX, &list, &has_more) > 0) {
	}
	if (pin_list_is_empty(&list)) {
		return false;
	}
	pin_injector_push(to, &list);
	return true;
}

/*
 * Moves requests that no worker has begun to the fallback worker. Returns
 * whether there were any. In the lock, so that a thread which finds none here
 * finds them with the fallback worker: a later cancel of many must not overtake
 * them.
 */
static bool forward_external(struct pin_worker *gone)
{
	struct pin_shared *shared = gone->shared;
	bool has_any;

	PIN_DCHECK(gone != shared->fallback);
	pin_lock_acquire(&shared->forward_lock, shared->host);
	has_any = forward_queue(&gone->external_urgent, &shared->fallback->external_urgent);
	has_any |= forward_queue(&gone->external, &shared->fallback->external);
	pin_lock_release(&shared->forward_lock, shared->host);
	return has_any;
}

/* To any worker; they are on no wheel, unless another has come meanwhile. */
static void forward_cancels(struct pin_worker *gone, struct pin_worker *waker)
{
	struct pin_list list = {0};
	struct pin_link *link;
	bool is_out;

	pin_inbox_take(&gone->timer_cancels, &list);
	if (pin_list_is_empty(&list)) {
		return;
	}
	/*
	 * After the take: a worker that came since may have some of them on its
	 * wheel.
	 */
	is_out = pin_load_acquire_u32(&gone->service) == PIN_SERVICE_OUT;
	while ((link = pin_list_pop(&list)) != NULL) {
		PIN_DCHECK(pin_task_kind(pin_task_of(link)) == PIN_TASK_TIMER);
		pin_inbox_push(is_out ? &gone->shared->timer_inbox : &gone->timer_cancels, link);
	}
	if (is_out) {
		/* The fallback worker may be in a long task. */
		pin_wake_one(gone->shared, waker);
	} else {
		pin_wake_worker(gone, waker);
	}
}

/*
 * Takes over the messages of a worker that has left. Its external submissions
 * go first, so that a cancel that follows them finds them begun.
 */
void pin_wake_forward(struct pin_worker *gone, struct pin_worker *waker)
{
	struct pin_worker *target = gone->shared->fallback;
	struct pin_list list = {0};
	struct pin_link *link;

	PIN_CHECK(gone != target); /* it stays, or no worker would take the rest */
	/* Before a possible cancel of them. */
	if (forward_external(gone)) {
		pin_wake_worker(target, waker);
	}
	forward_cancels(gone, waker);
	pin_inbox_take(&gone->inbox, &list);
	if (pin_list_is_empty(&list)) {
		return;
	}
	if (pin_load_acquire_u32(&gone->service) != PIN_SERVICE_OUT) {
		/*
		 * Another worker has come, and some of it may be bound to that
		 * worker.
		 */
		target = gone;
	}
	while ((link = pin_list_pop(&list)) != NULL) {
		pin_inbox_push(&target->inbox, link);
	}
	pin_wake_worker(target, waker);
}

void pin_wake_worker(struct pin_worker *target, struct pin_worker *waker)
{
	PIN_DCHECK(pin_worker_is_caller(target->shared, waker));
	pin_fence_seq_cst(); /* [PARK-1] [RETIRE-1] */
	if (!pin_parker_is_parked(&target->parker)) {
		if (PIN_UNLIKELY(pin_load_acquire_u32(&target->service) ==
			    PIN_SERVICE_OUT)) { /* [RETIRE-1] */
			pin_wake_forward(target, waker);
		}
		return;
	}
	if (waker != NULL) {
		pin_meter_add(&waker->meter.wakes_sent, 1);
	}
	notify(target);
}

struct pin_worker *pin_wake_find_sleeper(
	const struct pin_shared *shared, const struct pin_worker_class *worker_class)
{
	uint32_t rank = pin_idle_first(&worker_class->parked[PIN_PARKED_FUTEX]);

	if (rank == PIN_IDLE_NONE) {
		rank = pin_idle_first(&worker_class->parked[PIN_PARKED_RING]);
	}
	return rank == PIN_IDLE_NONE ? NULL
				     : &shared->workers[pin_victims_index(&shared->victims, rank)];
}

struct pin_worker *pin_wake_find_free(const struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	const struct pin_idle *parked = &worker->worker_class->parked[PIN_PARKED_FUTEX];

	if (pin_idle_is_empty(parked)) {
		return NULL;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (pin_idle_holds(parked, pin_victims_rank(&shared->victims, i))) {
			return &shared->workers[i];
		}
	}
	return NULL;
}

void pin_wake_all(struct pin_shared *shared)
{
	pin_fence_seq_cst(); /* [PARK-1] */
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		notify(&shared->workers[i]);
	}
}

void pin_wake_destroy_waiters(struct pin_shared *shared)
{
	shared->host->futex_wake(&shared->has_ended, UINT32_MAX); /* [END-2] */
}

bool pin_search_begin(struct pin_worker *worker)
{
	struct pin_worker_class *worker_class = worker->worker_class;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (worker->is_searching) {
		return true;
	}
	/* Relaxed: a rule of thumb. */
	if (100 * pin_load_relaxed_u32(&worker_class->searching) >=
		worker->shared->tuning.searchers_percent *
			pin_load_relaxed_u32(&worker_class->serving_count)) {
		return false;
	}
	pin_fetch_add_seq_cst_u32(&worker_class->searching, 1);
	worker->is_searching = true;
	return true;
}

/*
 * Work for which others relied on a searcher of this class, if there is any.
 * Most searches end without, as when the worker's own read completes.
 */
static void wake_successors(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_DCHECK(!worker->is_searching); /* it is relied on no more: another has to be */
	pin_fence_seq_cst();		   /* [SEARCH-1] [ASSIST-1] */
	if (shared->class_count > 1) {
		wake_for_lanes(shared, worker, filled(shared, PIN_LANES_ALL));
	} else if (pin_wake_sees_sleeper(worker->worker_class) /* [PARK-1] */ &&
		filled(shared, PIN_LANES_ALL) != 0) {
		wake_in_only_class(shared, worker);
	}
}

void pin_search_succeed(struct pin_worker *worker)
{
	uint32_t before = pin_fetch_sub_seq_cst_u32(&worker->worker_class->searching, 1);

	PIN_CHECK(before > 0);
	PIN_DCHECK(worker->is_searching);
	worker->is_searching = false;
	if (before == 1) {
		wake_successors(worker);
	}
}

void pin_search_resume(struct pin_worker *worker)
{
	pin_fetch_add_seq_cst_u32(&worker->worker_class->searching, 1); /* [SEARCH-1] */
	PIN_DCHECK(!worker->is_searching);
	worker->is_searching = true;
}

void pin_search_give_up(struct pin_worker *worker)
{
	uint32_t before =
		pin_fetch_sub_seq_cst_u32(&worker->worker_class->searching, 1); /* [SEARCH-1] */

	PIN_CHECK(before > 0);
	PIN_DCHECK(worker->is_searching);
	worker->is_searching = false;
}

/* ---- helping other lanes ---- */

void pin_assist_enter(struct pin_worker *worker)
{
	if (!worker->is_free) {
		pin_fetch_add_seq_cst_u32(&worker->worker_class->free_count, 1); /* [ASSIST-1] */
		worker->is_free = true;
	}
}

void pin_assist_leave(struct pin_worker *worker)
{
	if (worker->is_free) {
		uint32_t before = pin_fetch_sub_seq_cst_u32(&worker->worker_class->free_count, 1);

		PIN_CHECK(before > 0);
		worker->is_free = false;
	}
}

bool pin_assist_try_leave(struct pin_worker *worker)
{
	struct pin_atomic_u32 *count = &worker->worker_class->free_count;
	uint32_t reserve = worker->shared->tuning.assist_reserve;
	uint32_t before = pin_load_acquire_u32(count);

	PIN_CHECK(worker->is_free);
	while (before > reserve) {
		if (pin_cas_seq_cst_u32(count, &before, before - 1)) {
			worker->is_free = false;
			return true;
		}
	}
	return false;
}

bool pin_assist_sees_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	if (!pin_assist_is_on(shared) || !worker->is_free ||
		!pin_assist_has_room(shared, worker->worker_class)) {
		return false;
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (!pin_worker_serves(worker, lane) && pin_runnable_has_lane(shared, lane)) {
			return true;
		}
	}
	return false;
}
