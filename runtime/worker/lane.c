/* SPDX-License-Identifier: MIT */
/*
 * In and out of the lanes' queues.
 */
#include "runtime/worker/lane.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"

static uint32_t lane_count(const struct pin_shared *shared, uint32_t tier)
{
	return shared->tiers[tier].order.count;
}

/*
 * Workers that serve few lanes are woken first: others have more to choose
 * from.
 */
static void order_tiers(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->tier_count; i++) {
		uint32_t place = i;

		for (; place > 0 &&
			lane_count(shared, shared->tier_order[place - 1]) > lane_count(shared, i);
			place--) {
			shared->tier_order[place] = shared->tier_order[place - 1];
		}
		shared->tier_order[place] = (uint8_t)i;
	}
}

/* As ioprio_set(2) has it: class << 13 | level. */
static uint16_t io_priority(uint32_t configured)
{
	enum { CLASS_SHIFT = 13, BEST_EFFORT = 2, IDLE = 3 };

	if (configured == PINION_IO_PRIORITY_NONE) {
		return 0;
	}
	return configured == PINION_IO_PRIORITY_IDLE
		? IDLE << CLASS_SHIFT
		: (uint16_t)(BEST_EFFORT << CLASS_SHIFT | (configured - PINION_IO_PRIORITY_BE0));
}

void pin_lane_init(struct pin_shared *shared)
{
	const struct pin_lane_plan *plan = &shared->lane_plan;
	uint32_t first = 0;

	shared->tier_count = plan->tier_count;
	for (uint32_t i = 0; i < plan->tier_count; i++) {
		struct pin_tier *tier = &shared->tiers[i];

		tier->order = plan->orders[i];
		tier->first_worker = first;
		tier->worker_count = plan->worker_counts[i];
		first += tier->worker_count;
		/* Relaxed: nothing else runs yet. */
		pin_store_relaxed_u32(&tier->serving_count, tier->worker_count);
		for (int set = 0; set < PIN_PARKED_SETS; set++) {
			pin_idle_init(&tier->parked[set], shared->worker_count);
		}
	}
	order_tiers(shared);
	/* Of the last tier, which always has one. */
	shared->fallback = &shared->workers[shared->tiers[plan->tier_count - 1].first_worker];
	for (uint32_t i = 0; i < PIN_LANES; i++) {
		pin_lane_queue_init(&shared->lanes[i], shared->host);
	}
	shared->io_priorities[PINION_LANE_HIGH] = io_priority(shared->tuning.io_priority_high);
	shared->io_priorities[PINION_LANE_LOW] = io_priority(shared->tuning.io_priority_low);
	/* Else a worker that serves them all in this order needs no turns. */
	pin_store_relaxed_u32(&shared->alerts, shared->tier_count > 1 ? PIN_ALERT_LANES : 0);
}

static uint32_t warn_limit(const struct pinion_tuning *tuning, enum pinion_lane lane)
{
	switch (lane) {
	case PINION_LANE_HIGH:
		return tuning->high_warn_depth;
	case PINION_LANE_NORMAL:
		return tuning->normal_warn_depth;
	case PINION_LANE_LOW:
		break;
	}
	return tuning->low_warn_depth;
}

void pin_lane_warn(struct pin_shared *shared, enum pinion_lane lane, uint64_t depth)
{
	static const char *const names[PIN_LANES] = {"High", "Medium", "Low"};

	if (pin_lane_queue_must_warn(
		    &shared->lanes[lane].has_warned, depth, warn_limit(&shared->tuning, lane))) {
		pin_log(&shared->log, PINION_LOG_WARN, "%s priority queue depth: %llu jobs",
			names[lane], (unsigned long long)depth);
	}
}

/*
 * Before the first push into a lane that is not normal, with which it is seen,
 * and the fence: [PARK-1].
 */
static void note_lanes(struct pin_shared *shared)
{
	if (PIN_UNLIKELY(!pin_shared_has_lanes(shared))) {
		pin_fetch_or_seq_cst_u32(&shared->alerts, PIN_ALERT_LANES);
	}
}

/* After a push into a lane that is not normal. */
static void announce(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane)
{
	pin_wake_lane(shared, waker, lane);
	if (warn_limit(&shared->tuning, lane) != 0) {
		pin_lane_warn(shared, lane, pin_lane_queue_depth(&shared->lanes[lane]));
	}
}

static void push_normal(struct pin_shared *shared, struct pin_worker *waker, struct pin_list *list)
{
	pin_injector_push(&shared->injector, list);
	pin_wake_one(shared, waker);
}

void pin_lane_push(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane,
	struct pin_list *list, uint32_t count)
{
	if (lane == PINION_LANE_NORMAL) {
		if (waker != NULL) {
			pin_meter_add(&waker->meter.tasks_shared, count); /* [QLIMIT-1] */
		}
		push_normal(shared, waker, list);
		return;
	}
	if (waker != NULL) {
		pin_meter_add(&waker->meter.tasks_laned, count);
	}
	note_lanes(shared);
	pin_lane_queue_push(&shared->lanes[lane], list, count);
	announce(shared, waker, lane);
}

void pin_lane_push_claimed(struct pin_shared *shared, enum pinion_lane lane, struct pin_list *list)
{
	if (lane == PINION_LANE_NORMAL) {
		push_normal(shared, NULL, list);
		return;
	}
	note_lanes(shared);
	pin_lane_queue_push_claimed(&shared->lanes[lane], list);
	announce(shared, NULL, lane);
}

void pin_lane_push_one(
	struct pin_shared *shared, struct pin_worker *waker, struct pinion_task *task)
{
	struct pin_list list = {0};

	pin_list_push(&list, pin_task_link(task));
	pin_lane_push(shared, waker, pin_task_lane(task), &list, 1);
}

/* Of normal, for a worker that must not keep any. */
static struct pin_link *pop_injector(struct pin_shared *shared, bool *out_has_more)
{
	struct pin_list list = {0};

	*out_has_more = false;
	return pin_injector_pop(&shared->injector, 1, 1, &list, out_has_more) == 0
		? NULL
		: pin_list_pop(&list);
}

static void note_run(struct pin_worker *worker, enum pinion_lane lane)
{
	if (lane == PINION_LANE_HIGH) {
		pin_meter_add(&worker->meter.high_run, 1);
	} else if (lane == PINION_LANE_LOW) {
		pin_meter_add(&worker->meter.low_run, 1);
	}
}

struct pin_link *pin_lane_pop(struct pin_worker *worker, enum pinion_lane lane)
{
	struct pin_shared *shared = worker->shared;
	struct pin_lane_queue *queue = &shared->lanes[lane];
	bool has_more = false;
	struct pin_link *link = lane == PINION_LANE_NORMAL ? pop_injector(shared, &has_more)
							   : pin_lane_queue_pop(queue, &has_more);

	if (link == NULL) {
		return NULL;
	}
	pin_room_tell(shared, lane);
	note_run(worker, lane);
	if (has_more) {
		pin_wake_lane(shared, worker, lane);
	}
	if (pin_load_relaxed_u32(&queue->has_warned) != 0 && lane != PINION_LANE_NORMAL) {
		pin_lane_warn(shared, lane, pin_lane_queue_depth(queue));
	}
	return link;
}
