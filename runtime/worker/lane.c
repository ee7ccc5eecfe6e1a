/* SPDX-License-Identifier: MIT */
/*
 * Puts tasks into the queues of the high and low lane and takes them out, sorts
 * the workers into classes by their lanes, and admits work from outside as far
 * as there is room.
 *
 * Spawns on any thread push; the workers that serve a lane take from it, in the
 * order that policy/lanes.h gives, and report it, which makes room and serves
 * the oldest waiter.
 *
 * Invariant: an admission is counted by the gate before its task can be run, so
 * a drain never misses it.
 */
#include "runtime/worker/lane.h"
#include "runtime/base/check.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/wake.h"

static uint32_t lane_count(const struct pin_shared *shared, uint32_t worker_class)
{
	PIN_DCHECK(worker_class < shared->class_count);
	PIN_DCHECK(shared->classes[worker_class].order.count >= 1);
	return shared->classes[worker_class].order.count;
}

/*
 * Workers that serve few lanes are woken first: others have more to choose
 * from.
 */
static void order_classes(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->class_count; i++) {
		uint32_t place = i;

		for (; place > 0 &&
			lane_count(shared, shared->class_order[place - 1]) > lane_count(shared, i);
			place--) {
			shared->class_order[place] = shared->class_order[place - 1];
		}
		shared->class_order[place] = (uint8_t)i;
	}
}

/* As ioprio_set(2) has it: class << 13 | level. */
static uint16_t io_priority(uint32_t configured)
{
	enum { CLASS_SHIFT = 13, BEST_EFFORT = 2, IDLE = 3 };

	PIN_DCHECK(configured <= PINION_IO_PRIORITY_IDLE);
	if (configured == PINION_IO_PRIORITY_NONE) {
		return 0;
	}
	return configured == PINION_IO_PRIORITY_IDLE
		? IDLE << CLASS_SHIFT
		: (uint16_t)(BEST_EFFORT << CLASS_SHIFT | (configured - PINION_IO_PRIORITY_BE0));
}

/*
 * Lays out the worker classes of the plan, one after the other by worker index,
 * and the order in which they are woken. Runs before any worker starts.
 */
void pin_lane_init(struct pin_shared *shared)
{
	const struct pin_lane_plan *plan = &shared->lane_plan;
	uint32_t first = 0;

	PIN_CHECK(plan->class_count >= 1 && plan->class_count <= PIN_WORKER_CLASSES_MAX);
	shared->class_count = plan->class_count;
	for (uint32_t i = 0; i < plan->class_count; i++) {
		struct pin_worker_class *worker_class = &shared->classes[i];

		worker_class->order = plan->orders[i];
		worker_class->first_worker = first;
		worker_class->worker_count = plan->worker_counts[i];
		first += worker_class->worker_count;
		/* Relaxed: nothing else runs yet. */
		pin_store_relaxed_u32(&worker_class->serving_count, worker_class->worker_count);
		for (int set = 0; set < PIN_PARKED_SETS; set++) {
			pin_idle_init(&worker_class->parked[set], shared->worker_count);
		}
	}
	PIN_CHECK(first == shared->worker_count); /* each worker is of one worker class */
	order_classes(shared);
	/* Of the last worker class, which always has one. */
	shared->fallback = &shared->workers[shared->classes[plan->class_count - 1].first_worker];
	for (uint32_t i = 0; i < PIN_LANES; i++) {
		pin_lane_queue_init(&shared->lanes[i], shared->host);
	}
	shared->io_priorities[PINION_LANE_HIGH] = io_priority(shared->tuning.io_priority_high);
	shared->io_priorities[PINION_LANE_LOW] = io_priority(shared->tuning.io_priority_low);
	/* Else a worker that serves them all in this order needs no turns. */
	pin_store_relaxed_u32(&shared->flags, shared->class_count > 1 ? PIN_SHARED_LANES : 0);
}

static uint32_t warn_limit(const struct pinion_tuning *tuning, enum pinion_lane lane)
{
	PIN_DCHECK((uint32_t)lane < PIN_LANES);
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
		pin_fetch_or_seq_cst_u32(&shared->flags, PIN_SHARED_LANES);
	}
}

void pin_lane_note_urgent(struct pin_shared *shared)
{
	if (PIN_UNLIKELY(!pin_shared_has_urgent(shared))) {
		pin_fetch_or_seq_cst_u32(&shared->flags, PIN_SHARED_LANES | PIN_SHARED_URGENT);
	}
}

/* Nothing where no metrics are kept, as in models and in the simulator. */
static void note_push(struct pin_shared *shared, enum pinion_lane lane, uint32_t count)
{
	if (shared->metrics != NULL) {
		pin_lane_wait_note_push(&shared->lane_waits[lane], &shared->lanes[lane], count);
	}
}

static void note_pop(struct pin_worker *worker, enum pinion_lane lane, bool has_more)
{
	struct pin_shared *shared = worker->shared;

	if (shared->metrics != NULL && lane != PINION_LANE_NORMAL) {
		pin_lane_wait_note_pop(&shared->lane_waits[lane], &shared->lanes[lane],
			worker->observed.timings, pin_timing_of(PINION_TIMING_QUEUED, lane));
	} else if (lane == PINION_LANE_NORMAL) {
		pin_metrics_note_batch(worker, has_more);
	}
}

/* After a push into a lane that is not normal. */
static void announce(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane)
{
	PIN_DCHECK(lane != PINION_LANE_NORMAL && pin_shared_has_lanes(shared));
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
	PIN_DCHECK(count > 0 && !pin_list_is_empty(list));
	PIN_DCHECK(pin_worker_is_caller(shared, waker));
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
	note_push(shared, lane, count);
	pin_lane_queue_push(&shared->lanes[lane], list, count);
	announce(shared, waker, lane);
}

void pin_lane_push_claimed(struct pin_shared *shared, enum pinion_lane lane, struct pin_list *list)
{
	PIN_DCHECK(!pin_list_is_empty(list));
	if (lane == PINION_LANE_NORMAL) {
		push_normal(shared, NULL, list);
		return;
	}
	note_lanes(shared);
	note_push(shared, lane, 0); /* they count as pushed from their claim on */
	pin_lane_queue_push_claimed(&shared->lanes[lane], list);
	announce(shared, NULL, lane);
}

void pin_lane_push_one(
	struct pin_shared *shared, struct pin_worker *waker, struct pinion_task *task)
{
	struct pin_list list = {0};

	PIN_DCHECK(pin_task_is_runnable(task)); /* messages are for one worker */
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
	} else {
		pin_meter_add(&worker->meter.injector_takes, 1);
		pin_meter_add(&worker->meter.injector_tasks, 1);
	}
}

struct pin_link *pin_lane_pop(struct pin_worker *worker, enum pinion_lane lane)
{
	struct pin_shared *shared = worker->shared;
	struct pin_lane_queue *queue = &shared->lanes[lane];
	bool has_more = false;
	struct pin_link *link = lane == PINION_LANE_NORMAL ? pop_injector(shared, &has_more)
							   : pin_lane_queue_pop(queue, &has_more);

	PIN_DCHECK(pin_worker_is_current(worker));
	if (link == NULL) {
		return NULL;
	}
	pin_room_tell(shared, lane);
	note_pop(worker, lane, has_more);
	note_run(worker, lane);
	if (has_more) {
		pin_wake_lane(shared, worker, lane);
	}
	if (pin_load_relaxed_u32(&queue->has_warned) != 0 && lane != PINION_LANE_NORMAL) {
		pin_lane_warn(shared, lane, pin_lane_queue_depth(queue));
	}
	return link;
}

/* ---- room: refusals ---- */

/* As far as the fields go. */
static uint32_t saturate(uint64_t count)
{
	return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static void tell_full(const struct pin_shared *shared, enum pinion_lane lane, uint64_t waiting,
	struct pinion_full *out_full)
{
	if (out_full != NULL) {
		*out_full = (struct pinion_full){
			.current = saturate(waiting),
			.max = saturate(shared->queue_limit.limit),
			.lane = (uint32_t)lane,
		};
	}
}

/* Relaxed: a figure. */
static int refuse(struct pin_shared *shared, uint32_t count)
{
	pin_fetch_add_relaxed_u64(&shared->queue_limit.refused, count);
	return -EAGAIN;
}

/* ---- room: the normal lane ---- */

/* The end of the queue limit as it is now; false: `count` more do not fit. */
static bool renew_queue_limit(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	struct pin_queue_limit_view view = {
		.admitted = pin_gate_admitted(&shared->gate),
		.popped = pin_injector_popped(&shared->injector),
	};
	uint64_t waiting;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		view.pushed_inside +=
			pin_meter_read(&shared->workers[i].meter.tasks_shared); /* [QLIMIT-1] */
	}
	if (pin_queue_limit_renew(&shared->queue_limit, &view, count, &waiting)) {
		return true;
	}
	tell_full(shared, PINION_LANE_NORMAL, waiting, out_full);
	return false;
}

PIN_APART int pin_room_admit_anew(
	struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	bool ever_fits = count <= shared->queue_limit.limit;

	while (renew_queue_limit(shared, count, ever_fits ? out_full : NULL)) {
		switch (pin_room_try(shared, count)) {
		case PIN_GATE_ADMITTED:
			return 0;
		case PIN_GATE_CLOSED:
			return -ESHUTDOWN;
		case PIN_GATE_FULL:
			break;
		}
	}
	return ever_fits ? refuse(shared, count) : -EINVAL;
}

/* ---- room: any lanes ---- */

static bool claim_places(struct pin_shared *shared, enum pinion_lane lane,
	const struct pin_room_counts *counts, struct pinion_full *out_full)
{
	uint64_t waiting;

	if (counts->of[lane] == 0 ||
		pin_lane_queue_claim(&shared->lanes[lane], counts->of[lane],
			shared->queue_limit.limit, &waiting)) {
		return true;
	}
	tell_full(shared, lane, waiting, out_full);
	return false;
}

static void undo_permits(
	struct pin_shared *shared, enum pinion_lane lane, const struct pin_room_counts *counts)
{
	if (counts->of[lane] > 0) {
		pin_lane_queue_undo(&shared->lanes[lane], counts->of[lane]);
	}
}

/* Whether those of normal fit, to spare the other lanes' claims. */
static bool has_normal_room(struct pin_shared *shared, uint32_t count, struct pinion_full *out_full)
{
	return count == 0 ||
		pin_gate_admitted(&shared->gate) + count <=
		pin_queue_limit_end(&shared->queue_limit) ||
		renew_queue_limit(shared, count, out_full);
}

/* Tasks whose places are claimed; the end is for those of normal alone. */
static int admit_claimed(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	uint32_t normal_count = counts->of[PINION_LANE_NORMAL];
	uint32_t others_count = pin_room_others(counts);

	do {
		uint64_t end = normal_count == 0
			? UINT64_MAX
			: pin_queue_limit_end(&shared->queue_limit) + others_count;

		switch (pin_gate_admit_until(&shared->gate, normal_count + others_count, end)) {
		case PIN_GATE_ADMITTED:
			return 0;
		case PIN_GATE_CLOSED:
			return -ESHUTDOWN;
		case PIN_GATE_FULL:
			break;
		}
	} while (renew_queue_limit(shared, normal_count, out_full));
	return -EAGAIN;
}

/*
 * Places in the queue of each lane, then the gate. Low comes last: a claim that
 * is given back makes the tasks that wait there look younger.
 */
static int claim_and_admit(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	int rc = -EAGAIN;

	if (!has_normal_room(shared, counts->of[PINION_LANE_NORMAL], out_full) ||
		!claim_places(shared, PINION_LANE_HIGH, counts, out_full)) {
		return rc;
	}
	if (claim_places(shared, PINION_LANE_LOW, counts, out_full)) {
		rc = admit_claimed(shared, counts, out_full);
		if (rc == 0) {
			return 0;
		}
		undo_permits(shared, PINION_LANE_LOW, counts);
	}
	undo_permits(shared, PINION_LANE_HIGH, counts);
	return rc;
}

/*
 * Claims room for tasks of several lanes together, all or none. A claim that is
 * undone may have turned another thread away meanwhile, so the waiters of those
 * lanes are served again.
 */
int pin_room_admit_lanes(struct pin_shared *shared, const struct pin_room_counts *counts,
	struct pinion_full *out_full)
{
	int rc;

	if (!pin_gate_is_open(&shared->gate)) {
		return -ESHUTDOWN;
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (counts->of[lane] > shared->queue_limit.limit) {
			return -EINVAL;
		}
	}
	rc = claim_and_admit(shared, counts, out_full);
	if (rc != 0) {
		/* Its claims may have delayed another's admission. */
		pin_room_tell(shared, PINION_LANE_HIGH);
		pin_room_tell(shared, PINION_LANE_LOW);
	}
	return rc == -EAGAIN
		? refuse(shared, counts->of[PINION_LANE_NORMAL] + pin_room_others(counts))
		: rc;
}

void pin_room_undo(struct pin_shared *shared, enum pinion_lane lane)
{
	PIN_DCHECK((uint32_t)lane < PIN_LANES);
	if (lane != PINION_LANE_NORMAL) {
		pin_lane_queue_undo(&shared->lanes[lane], 1);
		pin_room_tell(shared, lane);
	}
}

void pin_room_note_elsewhere(struct pin_shared *shared, uint32_t count)
{
	pin_queue_limit_note_elsewhere(&shared->queue_limit, count);
	pin_room_tell(shared, PINION_LANE_NORMAL);
}

/* ---- room: waiters ---- */

/* Under the waiters' lock: one task of the lane is admitted for a waiter. */
static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	const struct pin_room *room = arg;
	struct pin_room_counts counts = {0};
	int rc = -ESHUTDOWN;

	PIN_CHECK(demand == 1);
	if (pin_gate_is_open(&room->shared->gate)) {
		counts.of[room->lane] = 1;
		rc = claim_and_admit(room->shared, &counts, NULL);
	}
	out_value->words[PIN_ROOM_ANSWER] = (uint64_t)(int64_t)rc;
	return rc != -EAGAIN;
}

void pin_room_init(struct pin_shared *shared)
{
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		struct pin_room *room = &shared->rooms[lane];

		room->shared = shared;
		room->lane = lane;
		pin_waiters_init(
			&room->waiters, shared->host, take, room, PIN_WAITERS_RELEASE_LIGHT);
	}
}

PIN_APART void pin_room_serve(struct pin_shared *shared, enum pinion_lane lane)
{
	pin_waiters_serve(&shared->rooms[lane].waiters);
}

void pin_room_close(struct pin_shared *shared)
{
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		pin_room_tell(shared, lane);
	}
}
