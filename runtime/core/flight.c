/* SPDX-License-Identifier: MIT */
/*
 * A request's states, and the lists it is in.
 */
#include "runtime/core/flight.h"
#include "runtime/base/check.h"
#include "runtime/core/io.h"
#include "runtime/core/relief.h"
#include "runtime/core/search.h"
#include "runtime/core/sentry.h"
#include "runtime/core/spawn.h"
#include "runtime/core/task.h"
#include "runtime/core/wake.h"

#include <errno.h>

enum flight_state {
	FLIGHT_IDLE = 0,      /* -> POSTED or FLYING by submit */
	FLIGHT_POSTED = 1,    /* -> FLYING by the worker, CANCELLED by cancel */
	FLIGHT_FLYING = 2,    /* -> IDLE by the worker; CANCELLED, ENDING by cancel */
	FLIGHT_CANCELLED = 3, /* -> ENDING by the worker */
	FLIGHT_ENDING = 4,    /* -> IDLE by the worker */
};

static struct pinion_request *request_of(struct pin_request *private)
{
	return PIN_CONTAINER_OF((uint64_t *)(void *)private, struct pinion_request, private_);
}

/* ---- the word ---- */

enum {
	STATE_MASK = 7,
	WORKER_SHIFT = 3,
};

static uint32_t word_of(const struct pin_worker *worker, enum flight_state state)
{
	return worker->index << WORKER_SHIFT | state;
}

static enum flight_state state_of(uint32_t word)
{
	return (enum flight_state)(word & STATE_MASK);
}

static bool change(struct pin_request *private, uint32_t word, enum flight_state to)
{
	uint32_t expected = word;

	return pin_cas_seq_cst_u32(
		&private->word, &expected, (word & ~(uint32_t)STATE_MASK) | to); /* [FLIGHT-1] */
}

/* On the worker whose it is. */
static bool change_own(const struct pin_worker *worker, struct pin_request *private,
	enum flight_state from, enum flight_state to)
{
	return change(private, word_of(worker, from), to);
}

static void set(struct pin_request *private, uint32_t word)
{
	pin_store_release_u32(&private->word, word); /* [FLIGHT-1] */
}

/* ---- lists ---- */

static void list_init(struct pin_flight_link *list)
{
	list->next = list;
	list->previous = list;
}

static bool list_is_empty(const struct pin_flight_link *list)
{
	return list->next == list;
}

static void list_push(struct pin_flight_link *list, struct pin_flight_link *link)
{
	link->next = list;
	link->previous = list->previous;
	list->previous->next = link;
	list->previous = link;
}

static void list_remove(struct pin_flight_link *link)
{
	link->next->previous = link->previous;
	link->previous->next = link->next;
	link->next = NULL;
}

void pin_flight_init(struct pin_worker *worker)
{
	list_init(&worker->flying);
	list_init(&worker->waiting);
	worker->cancels.is_fenced = !worker->shared->has_fence_all;
	pin_timers_init(&worker->deadlines, worker->shared->host->now_ns());
}

/* ---- the end ---- */

/* An open's task, when the descriptor is there: first looks at the file. */
static int look_at_file(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);
	struct pinion_file_options options;

	task->run = private->run;
	PIN_CHECK(pin_file_options_accept(&options, request->options) == 0);
	request->result =
		pin_file_adopt_with(request->file, request->result, &options, private->devices);
	return task->run(task);
}

static void count_end(struct pin_worker *worker, int32_t result)
{
	if (result == -ECANCELED) {
		pin_meter_add(&worker->meter.requests_cancelled, 1);
	} else if (result == -ETIME) {
		pin_meter_add(&worker->meter.requests_timed_out, 1);
	}
}

/* Of one that any worker may run, on whichever does. */
static int run_landed(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);

	task->private_kind = PIN_TASK_PLAIN;
	if (request->op == PINION_OP_OPEN && request->result >= 0) {
		private->devices = &pin_worker_current()->devices;
		return look_at_file(task);
	}
	task->run = private->run;
	return task->run(task);
}

/*
 * What uses memory that its worker gives out has to give it back there. Opening
 * without a look is the scanner's, whose tasks take it that they stay.
 */
static bool may_move(const struct pin_worker *worker, const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;

	return worker->shares_ring && !private->uses_own_buffer && request->op != PIN_OP_OPEN_PLAIN;
}

/* To a queue that others steal from. */
static void hand_to_any(struct pin_worker *taker, struct pinion_request *request)
{
	pin_request_of(request)->run = request->task.run;
	request->task.run = run_landed;
	request->task.private_kind = PIN_TASK_LANDED;
	pin_sentry_note_kept(taker);
	pin_spawn_enqueue(taker, pin_task_link(&request->task));
}

/* Home: to a worker that is busy, from the one that relieves it. */
static void hand_back(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	request->task.private_kind = PIN_TASK_LANDED;
	pin_inbox_push(&worker->inbox, pin_task_link(&request->task));
	pin_wake_worker(worker, taker);
}

/*
 * It is the caller's again as soon as its task is entered. `taker` is the
 * calling worker.
 */
static void hand_over(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	pin_meter_add(&worker->meter.requests_completed, 1);
	if (PIN_UNLIKELY(may_move(worker, request))) {
		pin_meter_add(&taker->meter.tasks_stolen, taker != worker);
		hand_to_any(taker, request);
		return;
	}
	if (request->op == PINION_OP_OPEN && request->result >= 0) {
		private->run = request->task.run;
		private->devices = &worker->devices;
		request->task.run = look_at_file;
	}
	if (PIN_UNLIKELY(taker != worker)) {
		hand_back(worker, taker, request);
		return;
	}
	pin_list_push(&worker->ready, pin_task_link(&request->task));
}

/* From here to its landing it is the kernel's. */
static void lend(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	private->lent =
		pin_request_moves_bytes(request) ? pin_worker_lend(worker, request->bytes) : NULL;
	if (PIN_UNLIKELY(worker->shares_ring)) {
		private->uses_own_buffer = pin_worker_owns_entry(worker, private->lent);
	}
}

/* By anyone but the worker, which is in there for a few instructions only. */
static void lock_cancels(struct pin_worker *owner)
{
	const struct pin_host *host = owner->shared->host;

	while (!pin_owned_take(&owner->cancels, host)) {
		host->yield();
	}
}

static bool leave_locked(struct pin_request *private)
{
	enum flight_state state = state_of(pin_load_relaxed_u32(&private->word));

	if (PIN_UNLIKELY(state == FLIGHT_CANCELLED)) {
		return false;
	}
	PIN_CHECK(state == FLIGHT_FLYING || state == FLIGHT_ENDING);
	set(private, FLIGHT_IDLE);
	return true;
}

/*
 * Makes it the caller's again; false while a cancel of it is under way. On
 * `taker`, which has the ring's lock if it is not the worker.
 */
static bool leave_flight(
	struct pin_worker *worker, struct pin_worker *taker, struct pin_request *private)
{
	bool has_left;

	if (PIN_LIKELY(taker == worker)) {
		pin_owned_enter(&worker->cancels, worker->shared->host);
		has_left = leave_locked(private);
		pin_owned_leave(&worker->cancels);
	} else {
		lock_cancels(worker);
		has_left = leave_locked(private);
		pin_owned_release(&worker->cancels);
	}
	return has_left;
}

/* By the worker itself, of one of its own; false: another was first. */
static bool cancel_own(struct pin_worker *worker, struct pin_request *private)
{
	bool is_flying;

	pin_owned_enter(&worker->cancels, worker->shared->host);
	is_flying = pin_load_relaxed_u32(&private->word) == word_of(worker, FLIGHT_FLYING);
	if (is_flying) {
		set(private, word_of(worker, FLIGHT_ENDING));
	}
	pin_owned_leave(&worker->cancels);
	return is_flying;
}

/* By anyone else. */
static bool cancel_other(struct pin_worker *owner, struct pin_request *private)
{
	bool is_flying;

	lock_cancels(owner);
	is_flying = pin_load_relaxed_u32(&private->word) == word_of(owner, FLIGHT_FLYING);
	if (is_flying) {
		set(private, word_of(owner, FLIGHT_CANCELLED));
	}
	pin_owned_release(&owner->cancels);
	return is_flying;
}

static void end(struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	if (private->lent != NULL) {
		pin_pool_unlend(private->lent);
		private->lent = NULL;
	}
	list_remove(&private->link);
	if (PIN_UNLIKELY(request->deadline_ns != 0)) {
		/* No longer armed if it was the deadline that came. */
		pin_timers_cancel(&worker->deadlines, &private->deadline);
	}
	if (PIN_UNLIKELY(request->result < 0)) {
		count_end(worker, request->result);
	}
	if (PIN_LIKELY(leave_flight(worker, taker, private))) {
		hand_over(worker, taker, request);
	} else {
		private->has_ended = true;
	}
}

static void end_with(struct pin_worker *worker, struct pinion_request *request, int32_t result)
{
	request->result = result;
	end(worker, worker, request);
}

/* Ends it now, or has the kernel do so; what comes first counts. */
static void abandon(struct pin_worker *worker, struct pinion_request *request, int32_t error)
{
	struct pin_request *private = pin_request_of(request);

	if (private->ended_by != 0) {
		return;
	}
	private->ended_by = error;
	if (private->is_waiting || request->op == PINION_OP_TIMEOUT) {
		end_with(worker, request, error);
	} else {
		pin_request_abandon(&worker->ring, request);
	}
}

struct landing {
	struct pin_worker *worker; /* whose ring it is */
	struct pin_worker *taker;  /* who reaps it */
};

static void land(void *arg, uint64_t user_data, int32_t result)
{
	const struct landing *landing = arg;
	struct pinion_request *request =
		pin_request_complete(&landing->worker->ring, user_data, result);

	if (request != NULL) {
		end(landing->worker, landing->taker, request);
	}
}

uint32_t pin_flight_poll(struct pin_worker *worker)
{
	struct landing landing = {.worker = worker, .taker = worker};
	uint32_t count;

	pin_relief_enter(worker);
	count = pin_ring_poll(&worker->ring, land, &landing);
	pin_relief_leave(worker);
	return count;
}

bool pin_flight_relieve(struct pin_worker *worker, struct pin_worker *taker)
{
	struct landing landing = {.worker = worker, .taker = taker};
	uint32_t count;

	if (!pin_relief_is_wanted(worker) || pin_parker_is_parked(&worker->parker) ||
		!pin_search_is_stuck(worker) || !pin_relief_take(worker)) {
		return false;
	}
	count = pin_ring_poll(&worker->ring, land, &landing);
	pin_relief_release(worker);
	pin_meter_add(&taker->meter.steals, count > 0);
	return true;
}

static void resume(struct pin_worker *worker)
{
	while (!list_is_empty(&worker->waiting)) {
		struct pin_request *private =
			PIN_CONTAINER_OF(worker->waiting.next, struct pin_request, link);

		if (!pin_request_submit(&worker->ring, request_of(private))) {
			return;
		}
		private->is_waiting = false;
		list_remove(&private->link);
		list_push(&worker->flying, &private->link);
	}
}

void pin_flight_resume(struct pin_worker *worker)
{
	/* Only its own thread changes that list. */
	if (PIN_UNLIKELY(!list_is_empty(&worker->waiting))) {
		pin_relief_enter(worker);
		resume(worker);
		pin_relief_leave(worker);
	}
}

/* ---- the start ---- */

/* FLYING, and in no list yet. */
static void begin(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	bool is_in_time = true;

	lend(worker, request);
	private->is_waiting = false;
	private->ended_by = 0;
	request->done_bytes = 0;
	if (PIN_UNLIKELY(request->deadline_ns != 0)) {
		is_in_time = request->deadline_ns > worker->shared->host->now_ns();
		if (is_in_time) {
			pin_timers_insert(
				&worker->deadlines, &private->deadline, request->deadline_ns);
		}
	}
	if (PIN_UNLIKELY(!is_in_time || worker->cancel_sent)) {
		list_push(&worker->flying, &private->link);
		end_with(worker, request, is_in_time ? -ECANCELED : -ETIME);
	} else if (PIN_UNLIKELY(pin_request_is_plain(request))) {
		list_push(&worker->flying, &private->link);
		pin_request_carry_out(&worker->ring, request);
		end(worker, worker, request);
	} else if (pin_cached_is_worth_it(&worker->cached, request) &&
		pin_cached_read(&worker->cached, &worker->meter, request)) {
		list_push(&worker->flying, &private->link);
		end(worker, worker, request);
	} else if (PIN_UNLIKELY(request->op == PINION_OP_TIMEOUT) ||
		pin_request_submit(&worker->ring, request)) {
		list_push(&worker->flying, &private->link);
	} else {
		private->is_waiting = true;
		list_push(&worker->waiting, &private->link);
	}
}

static int check(const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;
	int rc = pin_request_check(request);

	if (PIN_UNLIKELY(
		    rc == 0 && state_of(pin_load_acquire_u32(&private->word)) != FLIGHT_IDLE)) {
		rc = -EBUSY;
	}
	return rc;
}

/* To the end of what this worker was sent, behind all that came before. */
static void post_to_self(struct pin_worker *worker, struct pinion_request *request)
{
	pin_inbox_take(&worker->inbox, &worker->posted);
	request->task.private_kind = PIN_TASK_REQUEST;
	set(pin_request_of(request), word_of(worker, FLIGHT_POSTED));
	pin_list_push(&worker->posted, pin_task_link(&request->task));
}

static void submit_one(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	pin_meter_add(&worker->meter.requests_submitted, 1);
	if (PIN_UNLIKELY(request->op == PINION_OP_CANCEL)) {
		private->hops_left = worker->shared->worker_count;
		request->result = 0;
		post_to_self(worker, request);
		return;
	}
	set(private, word_of(worker, FLIGHT_FLYING));
	begin(worker, request);
}

static bool needs_entry(const struct pinion_request *request)
{
	return request->op != PINION_OP_TIMEOUT && request->op != PINION_OP_CANCEL;
}

/* Who waits comes first: others could take each credit before it. */
static bool has_room(
	const struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	uint32_t entries = 0;

	if (PIN_LIKELY(pin_ring_room(&worker->ring) >= count && list_is_empty(&worker->waiting))) {
		return true;
	}
	for (uint32_t i = 0; i < count; i++) {
		entries += needs_entry(requests[i]) ? 1 : 0;
	}
	return entries == 0 ||
		(entries <= pin_ring_room(&worker->ring) && list_is_empty(&worker->waiting));
}

int pin_worker_submit_one(struct pin_worker *worker, struct pinion_request *request)
{
	bool is_taken;
	int rc;

	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared))) {
		return -ESHUTDOWN;
	}
	rc = check(request);
	if (PIN_UNLIKELY(rc < 0)) {
		return rc;
	}
	if (PIN_UNLIKELY(worker->shares_ring)) {
		pin_sentry_note_kept(worker);
	}
	pin_relief_enter(worker);
	is_taken = has_room(worker, &request, 1);
	if (PIN_LIKELY(is_taken)) {
		submit_one(worker, request);
	}
	pin_relief_leave(worker);
	return PIN_LIKELY(is_taken) ? 0 : -EAGAIN;
}

int pin_worker_submit(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	bool is_taken;

	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared))) {
		return -ESHUTDOWN;
	}
	for (uint32_t i = 0; i < count; i++) {
		int rc = check(requests[i]);

		if (PIN_UNLIKELY(rc < 0)) {
			return rc;
		}
	}
	if (PIN_UNLIKELY(worker->shares_ring)) {
		pin_sentry_note_kept(worker);
	}
	pin_relief_enter(worker);
	is_taken = has_room(worker, requests, count);
	for (uint32_t i = 0; i < count && is_taken; i++) {
		submit_one(worker, requests[i]);
	}
	pin_relief_leave(worker);
	return is_taken ? 0 : -EAGAIN;
}

/* ---- from elsewhere ---- */

int pin_flight_claim(struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = check(requests[i]);

		if (rc < 0) {
			return rc;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		requests[i]->task.private_kind = PIN_TASK_REQUEST;
	}
	return 0;
}

void pin_flight_disclaim(struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		requests[i]->task.private_kind = PIN_TASK_PLAIN;
	}
}

void pin_flight_post(struct pin_worker *target, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	private->is_from_outside = true;
	private->hops_left = target->shared->worker_count;
	request->result = 0;
	set(private, word_of(target, FLIGHT_POSTED));
	pin_inbox_push(&target->inbox, pin_task_link(&request->task));
}

static int cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	struct pin_request *private = pin_request_of(request);
	uint32_t word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */
	uint32_t index;

	*out_must_post = false;
	if (request->op == PINION_OP_CANCEL) {
		return -EALREADY;
	}
	if (state_of(word) == FLIGHT_POSTED) {
		if (change(private, word, FLIGHT_CANCELLED)) {
			return 0;
		}
		/* Its worker took it over, or it was cancelled. */
		word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */
	}
	index = word >> WORKER_SHIFT;
	if (state_of(word) != FLIGHT_FLYING || index >= shared->worker_count) {
		return -EALREADY;
	}
	if (worker == &shared->workers[index]) {
		if (!cancel_own(worker, private)) {
			return -EALREADY;
		}
		abandon(worker, request, -ECANCELED);
		return 0;
	}
	if (!cancel_other(&shared->workers[index], private)) {
		return -EALREADY;
	}
	request->task.private_kind = PIN_TASK_REQUEST;
	*out_must_post = true;
	*out_index = index;
	return 0;
}

int pin_flight_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index)
{
	int rc;

	if (worker == NULL) {
		return cancel(shared, NULL, request, out_must_post, out_index);
	}
	/* Of its own, nobody may end it between the change and the rest. */
	pin_relief_enter(worker);
	rc = cancel(shared, worker, request, out_must_post, out_index);
	pin_relief_leave(worker);
	return rc;
}

bool pin_flight_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_REQUEST;
}

/* ---- a cancel of many ---- */

static uint32_t abandon_list(
	struct pin_worker *worker, struct pin_flight_link *list, const struct pinion_file *file)
{
	struct pin_flight_link *next;
	uint32_t count = 0;

	for (struct pin_flight_link *link = list->next; link != list; link = next) {
		struct pin_request *private = PIN_CONTAINER_OF(link, struct pin_request, link);
		struct pinion_request *request = request_of(private);

		next = link->next;
		if ((file == NULL || request->file == file) && cancel_own(worker, private)) {
			abandon(worker, request, -ECANCELED);
			count++;
		}
	}
	return count;
}

static uint32_t abandon_all(struct pin_worker *worker, const struct pinion_file *file)
{
	return abandon_list(worker, &worker->waiting, file) +
		abandon_list(worker, &worker->flying, file);
}

static void visit(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	struct pin_shared *shared = worker->shared;
	/* Of whom it was for, who may have left. */
	uint32_t index = pin_load_acquire_u32(&private->word) >> WORKER_SHIFT;
	struct pin_worker *next = &shared->workers[(index + 1) % shared->worker_count];

	request->result += (int32_t)abandon_all(worker, request->file);
	private->hops_left--;
	if (private->hops_left > 0) {
		set(private, word_of(next, FLIGHT_POSTED));
		pin_inbox_push(&next->inbox, pin_task_link(&request->task));
		pin_wake_worker(next, worker);
		return;
	}
	request->task.private_kind = PIN_TASK_PLAIN;
	set(private, FLIGHT_IDLE);
	hand_over(worker, worker, request);
}

/* ---- on the worker ---- */

static void take_over(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	request->task.private_kind = PIN_TASK_PLAIN;
	if (change_own(worker, private, FLIGHT_POSTED, FLIGHT_FLYING)) {
		begin(worker, request);
		return;
	}
	/* Cancelled on its way here. */
	PIN_CHECK(change_own(worker, private, FLIGHT_CANCELLED, FLIGHT_ENDING));
	lend(worker, request);
	list_push(&worker->flying, &private->link);
	end_with(worker, request, -ECANCELED);
}

/* What was for a worker that has left is the heir's. */
static void inherit(const struct pin_worker *worker, struct pin_request *private)
{
	uint32_t word = pin_load_acquire_u32(&private->word); /* [FLIGHT-1] */

	while (word >> WORKER_SHIFT != worker->index &&
		!pin_cas_seq_cst_u32(
			&private->word, &word, word_of(worker, state_of(word)))) { /* [FLIGHT-1] */
	}
}

static void take(struct pin_worker *worker, struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);

	if (private->is_from_outside) {
		private->is_from_outside = false;
		pin_meter_add(&worker->meter.requests_posted, 1);
	}
	if (request->op == PINION_OP_CANCEL) {
		visit(worker, request);
		return;
	}
	inherit(worker, private);
	if (private->link.next == NULL && !private->has_ended) {
		take_over(worker, request);
		return;
	}
	task->private_kind = PIN_TASK_PLAIN;
	PIN_CHECK(change_own(worker, private, FLIGHT_CANCELLED, FLIGHT_ENDING));
	if (private->has_ended) {
		private->has_ended = false;
		set(private, FLIGHT_IDLE);
		hand_over(worker, worker, request);
	} else {
		abandon(worker, request, -ECANCELED);
	}
}

void pin_flight_take(struct pin_worker *worker, struct pinion_task *task)
{
	pin_relief_enter(worker);
	take(worker, task);
	pin_relief_leave(worker);
}

void pin_flight_expire(struct pin_worker *worker, struct pin_timer *timer)
{
	struct pin_request *private = PIN_CONTAINER_OF(timer, struct pin_request, deadline);

	abandon(worker, request_of(private), -ETIME);
}

bool pin_flight_is_over(const struct pin_worker *worker)
{
	return list_is_empty(&worker->flying) && list_is_empty(&worker->waiting);
}

void pin_flight_stop(struct pin_worker *worker)
{
	pin_relief_enter(worker);
	worker->cancel_sent = true;
	abandon_all(worker, NULL);
	pin_relief_leave(worker);
}
