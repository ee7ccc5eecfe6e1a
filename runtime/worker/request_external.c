/* SPDX-License-Identifier: MIT */
/*
 * Requests that other threads post to a worker: they are queued there until
 * the worker takes them, or, if it is stalled, a searcher. Also the messages
 * about requests that come to its inbox: cancels.
 *
 * api/spawn.c posts, on a thread that is no worker of the runtime; the loop
 * takes before it runs anything. request.h, "requests from other threads", has
 * the protocol.
 */
#include "runtime/worker/request.h"
#include "runtime/base/check.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

/* ---- the choice of a worker ---- */

static bool serves(const struct pin_worker_class *worker_class, enum pinion_lane lane)
{
	return (worker_class->order.mask & PIN_LANE_BIT(lane)) != 0;
}

/* Of the first `class_count` in the order of wakes. Relaxed: rules of thumb. */
static uint32_t count_serving(
	const struct pin_shared *shared, enum pinion_lane lane, uint32_t class_count)
{
	uint32_t count = 0;

	PIN_DCHECK(class_count <= shared->class_count);
	for (uint32_t i = 0; i < class_count; i++) {
		const struct pin_worker_class *worker_class =
			&shared->classes[shared->class_order[i]];

		count += serves(worker_class, lane)
			? pin_load_relaxed_u32(&worker_class->serving_count)
			: 0;
	}
	return count;
}

/* The present worker of these classes whose turn it is. */
static struct pin_worker *next_in_turn(
	struct pin_shared *shared, enum pinion_lane lane, uint32_t class_count, uint32_t number)
{
	uint32_t count = count_serving(shared, lane, class_count);

	number = count > 0 ? number % count : 0;
	for (uint32_t i = 0; i < class_count; i++) {
		const struct pin_worker_class *worker_class =
			&shared->classes[shared->class_order[i]];
		uint32_t serving = pin_load_relaxed_u32(&worker_class->serving_count);

		PIN_DCHECK(serving <= worker_class->worker_count);
		if (!serves(worker_class, lane)) {
			continue;
		}
		if (number < serving) {
			return &shared->workers[worker_class->first_worker + number];
		}
		number -= serving;
	}
	/* They became fewer in between; a worker that leaves passes it on. */
	return shared->fallback;
}

/* Of the classes that serve the lane, the least general one comes first. */
static struct pin_worker *find_sleeper(const struct pin_shared *shared, enum pinion_lane lane)
{
	struct pin_worker *sleeper = NULL;

	for (uint32_t i = 0; i < shared->class_count && sleeper == NULL; i++) {
		const struct pin_worker_class *worker_class =
			&shared->classes[shared->class_order[i]];

		if (serves(worker_class, lane)) {
			sleeper = pin_wake_find_sleeper(shared, worker_class);
		}
	}
	return sleeper;
}

/* How many classes to go through until one with workers serves the lane. */
static uint32_t count_to_first(const struct pin_shared *shared, enum pinion_lane lane)
{
	uint32_t class_count = 1;

	while (class_count < shared->class_count && count_serving(shared, lane, class_count) == 0) {
		class_count++;
	}
	return class_count;
}

struct pin_worker *pin_external_choose(struct pin_shared *shared, enum pinion_lane lane)
{
	uint32_t number = pin_fetch_add_relaxed_u32(&shared->next_request_worker, 1);
	uint32_t class_count =
		lane == PINION_LANE_HIGH ? count_to_first(shared, lane) : shared->class_count;
	struct pin_worker *target = PIN_LIKELY(shared->class_count == 1 && !shared->is_thread_pool)
		? &shared->workers[number % shared->worker_count]
		: next_in_turn(shared, lane, class_count, number);
	struct pin_worker *sleeper;

	PIN_DCHECK((uint32_t)lane < PIN_LANES);
	if (pin_parker_is_parked(&target->parker)) {
		return target;
	}
	sleeper = find_sleeper(shared, lane);
	return sleeper != NULL ? sleeper : target;
}

/* ---- posting ---- */

void pin_external_push(struct pin_worker *target, struct pin_list *urgent, struct pin_list *others)
{
	PIN_DCHECK(!pin_list_is_empty(urgent) || !pin_list_is_empty(others));
	if (!pin_list_is_empty(urgent)) {
		pin_lane_note_urgent(target->shared);
		pin_injector_push(&target->external_urgent, urgent);
	}
	if (!pin_list_is_empty(others)) {
		pin_injector_push(&target->external, others);
	}
	pin_wake_worker(target, NULL);
	if (!pin_parker_is_parked(&target->parker)) {
		pin_fence_seq_cst(); /* [EXTERNAL-1] */
		pin_watchdog_tell_of_other(target->shared);
	}
}

bool pin_external_may_adopt(const struct pin_worker *worker)
{
	PIN_DCHECK(!pin_worker_is_current(worker));
	return !pin_external_is_empty(worker) &&
		pin_load_acquire_u32(&worker->shared->cancels) == 0 && /* [EXTERNAL-2] */
		!pin_parker_is_parked(&worker->parker) && pin_search_is_stalled(worker);
}

static void post_cancel(struct pin_worker *target, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_has(request, PIN_OP_TRAVELS));
	pin_request_of(request)->hops_left = target->shared->worker_count;
	request->result = 0;
	pin_external_hold(target->shared);
	pin_inbox_push(&target->inbox, pin_task_link(&request->task));
	pin_wake_worker(target, NULL);
}

static void push_both(struct pin_worker *target, struct pin_list *urgent, struct pin_list *others)
{
	if (!pin_list_is_empty(urgent) || !pin_list_is_empty(others)) {
		pin_external_push(target, urgent, others);
	}
}

/*
 * Borrows each request's buffer now, while the submitter still has it: the
 * worker may begin the request long after that thread has released it.
 */
void pin_request_post(
	struct pin_worker *target, struct pinion_request *const *requests, uint32_t count)
{
	struct pin_list urgent = {0};
	struct pin_list others = {0};

	for (uint32_t i = 0; i < count; i++) {
		struct pin_request *private = pin_request_of(requests[i]);
		bool is_urgent = pin_task_lane(&requests[i]->task) == PINION_LANE_HIGH;

		PIN_DCHECK(pin_task_kind(&requests[i]->task) == PIN_TASK_REQUEST);
		private->is_from_outside = true;
		if (pin_request_moves_bytes(requests[i])) {
			private->is_borrowed_own = false;
			private->was_free = !pin_worker_borrow_posted(
				target, requests[i]->bytes, &private->borrowed);
		}
		pin_request_set(private, pin_request_word(target, PIN_REQUEST_POSTED));
		if (!pin_request_has(requests[i], PIN_OP_TRAVELS)) {
			pin_list_push(
				is_urgent ? &urgent : &others, pin_task_link(&requests[i]->task));
			continue;
		}
		/* After all that came before. */
		push_both(target, &urgent, &others);
		post_cancel(target, requests[i]);
	}
	push_both(target, &urgent, &others);
}

/* ---- taking ---- */

static void note_posted(struct pin_worker *worker, struct pin_request *private)
{
	if (private->is_from_outside) {
		private->is_from_outside = false;
		pin_meter_add(&worker->meter.requests_posted, 1);
	}
}

/*
 * A posted request begins here, or was cancelled on the way and ends here;
 * either way this worker owns it now.
 */
static void take_over(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	bool was_cancelled;

	PIN_DCHECK(pin_task_kind(&request->task) == PIN_TASK_REQUEST);
	pin_task_set_kind(&request->task, PIN_TASK_PLAIN);
	if (pin_request_change_own(worker, private, PIN_REQUEST_POSTED, PIN_REQUEST_IN_FLIGHT)) {
		pin_request_begin(worker, request);
		return;
	}
	/* Cancelled on its way here. */
	was_cancelled =
		pin_request_change_own(worker, private, PIN_REQUEST_CANCELLED, PIN_REQUEST_ENDING);
	PIN_CHECK(was_cancelled);
	pin_request_prepare(worker, request);
	pin_request_list_push(&worker->in_flight, &private->link);
	pin_request_end_with(worker, request, -ECANCELED);
}

static void take_posted(struct pin_worker *worker, struct pinion_request *request)
{
	note_posted(worker, pin_request_of(request));
	take_over(worker, request);
}

/* The oldest; NULL: none. By the worker of that queue, or the adopter. */
static struct pinion_request *pop_posted(struct pin_injector *queue)
{
	struct pin_list list = {0};
	bool has_more;

	return pin_injector_pop(queue, 1, 1, &list, &has_more) == 0
		? NULL
		: PIN_CONTAINER_OF(pin_task_of(pin_list_pop(&list)), struct pinion_request, task);
}

static void take_all(struct pin_worker *worker)
{
	struct pinion_request *request;

	while ((request = pop_posted(&worker->external_urgent)) != NULL ||
		(request = pop_posted(&worker->external)) != NULL) {
		take_posted(worker, request);
	}
}

static uint32_t take_some(struct pin_worker *worker, struct pin_injector *queue, uint32_t max)
{
	struct pinion_request *request;
	uint32_t count = 0;

	while (count < max && (request = pop_posted(queue)) != NULL) {
		pin_remote_reap_enter(worker);
		take_posted(worker, request);
		pin_remote_reap_leave(worker);
		count++;
	}
	return count;
}

uint32_t pin_requests_take_urgent(struct pin_worker *worker, struct pin_worker *owner, uint32_t max)
{
	uint32_t count;

	if (PIN_LIKELY(pin_injector_is_empty(&owner->external_urgent))) {
		return 0;
	}
	count = take_some(worker, &owner->external_urgent, max);
	if (count > 0) {
		/* What copies meanwhile is over with that. */
		(void)pin_requests_poll(worker);
	}
	return count;
}

uint32_t pin_requests_take_external(
	struct pin_worker *worker, struct pin_worker *owner, uint32_t max)
{
	uint32_t count = pin_requests_take_urgent(worker, owner, max);

	return count + take_some(worker, &owner->external, max);
}

/* ---- messages in the inbox ---- */

/*
 * One stage of a cancel of many on its way through all workers: cancels this
 * worker's matching requests, then goes to the next worker's inbox, or ends
 * after the last.
 */
static void visit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	struct pin_shared *shared = worker->shared;
	/* The worker it was for, which may have left. */
	uint32_t index = pin_load_acquire_u32(&private->word) >> PIN_REQUEST_WORKER_SHIFT;
	struct pin_worker *next = &shared->workers[(index + 1) % shared->worker_count];

	PIN_DCHECK(index < shared->worker_count);
	PIN_DCHECK(private->hops_left <= shared->worker_count);
	take_all(worker);
	request->result += (int64_t)pin_requests_abandon_all(worker, request->file);
	PIN_CHECK(private->hops_left > 0);
	private->hops_left--;
	if (private->hops_left > 0) {
		pin_request_set(private, pin_request_word(next, PIN_REQUEST_POSTED));
		pin_inbox_push(&next->inbox, pin_task_link(&request->task));
		pin_wake_worker(next, worker);
		return;
	}
	pin_external_release(shared);
	pin_task_set_kind(&request->task, PIN_TASK_PLAIN);
	pin_request_set(private, PIN_REQUEST_IDLE);
	pin_request_hand_over(worker, worker, request);
}

/*
 * The end may have come while the cancel was in the inbox; the task became
 * ready only when this message was taken.
 */
static void take(struct pin_worker *worker, struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);
	bool was_cancelled;

	PIN_DCHECK(pin_task_kind(task) == PIN_TASK_REQUEST);
	note_posted(worker, private);
	if (pin_request_has(request, PIN_OP_TRAVELS)) {
		visit(worker, request);
		return;
	}
	pin_task_set_kind(task, PIN_TASK_PLAIN);
	was_cancelled =
		pin_request_change_own(worker, private, PIN_REQUEST_CANCELLED, PIN_REQUEST_ENDING);
	PIN_CHECK(was_cancelled);
	if (private->has_ended) {
		private->has_ended = false;
		pin_request_set(private, PIN_REQUEST_IDLE);
		pin_request_hand_over(worker, worker, request);
	} else {
		pin_request_abandon_in_flight(worker, request, -ECANCELED);
	}
}

void pin_request_take(struct pin_worker *worker, struct pinion_task *task)
{
	pin_remote_reap_enter(worker);
	take(worker, task);
	pin_remote_reap_leave(worker);
}
