/* SPDX-License-Identifier: MIT */
/*
 * The way of a request from its caller to the kernel, on the caller's worker.
 *
 *     check    its fields are sound, it is idle, and the ring has room for it
 *     borrow   its buffer is held for I/O: no thread can release it
 *     time     its deadline is armed
 *     cached   a read that the page cache can answer is copied, and is over
 *     admit    rates and credit of its device let it start (device_queue.c)
 *     encode   its entry is written; the worker's next enter submits it
 *     link     it is in the list of requests in flight
 *
 * pin_worker_submit_one() checks a request and marks it as its worker's, and
 * begin_transfer() takes a read or a write through the other stages. They are
 * functions, here in this order; each returns whether the request goes on. One
 * that ends early is linked as well, so that its end is that of all others
 * (complete.c). Operations that move no bytes have neither buffer, cache nor
 * device: they go from time to encode.
 *
 * After the way come its rare sides, submits of several requests at once, of
 * requests from other threads, and of those that had to wait.
 */
#include "runtime/base/check.h"
#include "runtime/base/log.h"
#include "runtime/io/request.h"
#include "runtime/worker/events.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/state.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>

/* Rare sides of the stages. */
static PIN_APART int refuse_request(
	struct pin_worker *worker, struct pinion_request *request, int rc);
static PIN_APART int submit_one_checked(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART void submit_cancel(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART void refuse_memory(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART bool borrow_otherwise(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART void note_lane(
	struct pin_worker *worker, struct pinion_request *request, enum pinion_lane lane);
static PIN_APART bool begin_by_time(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART void launch_special(struct pin_worker *worker, struct pinion_request *request);
static PIN_APART void wait_or_call(struct pin_worker *worker, struct pinion_request *request);

/* ---- check ---- */

/* The request, and its task; one comparison for both. */
static PIN_INLINE bool is_idle(const struct pinion_request *request)
{
	const struct pin_request *private = (const void *)request->private_;
	uint32_t state = pin_request_state_of(pin_load_acquire_u32(&private->word));

	_Static_assert(PIN_REQUEST_IDLE == 0 && PIN_TASK_IDLE == 0, "what is compared");
	return (state | pin_task_kind(&request->task)) == 0;
}

static inline int check(const struct pinion_request *request)
{
	int rc = pin_request_check(request);

	return PIN_UNLIKELY(rc == 0 && !is_idle(request)) ? -EBUSY : rc;
}

/*
 * Whether the ring has room for `count` entries. Requests that wait for room
 * come first, or later ones could take each entry before them; and requests
 * that are queued for their device will need one each.
 */
static PIN_INLINE bool has_entries(const struct pin_worker *worker, uint32_t count)
{
	PIN_DCHECK(count > 0);
	return pin_ring_has_room(&worker->ring, count + worker->device_queue.queued) &&
		pin_request_list_is_empty(&worker->waiting);
}

/* ---- borrow ---- */

/*
 * From here to its end a transfer's memory is the kernel's. Most often it is
 * one of the worker's own buffers, or no buffer of this runtime. False: it is
 * in a free buffer, and must not be touched.
 */
static PIN_INLINE bool borrow_memory(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	struct pin_pool *pool = &worker->buffers;
	struct pin_entry *own = pin_pool_find_first(pool, request->bytes);

	PIN_DCHECK(pin_request_moves_bytes(request));
	if (own == NULL) {
		pool = &worker->small_buffers;
		own = pin_pool_find_first(pool, request->bytes);
	}
	private->borrowed = own;
	/* Where rings are shared another worker may end it. */
	if (PIN_LIKELY(own != NULL) && PIN_LIKELY(!worker->shares_ring) &&
		PIN_LIKELY(pin_pool_borrow_own(pool->magazines, 0, own))) {
		private->is_borrowed_own = true;
		return true;
	}
	private->is_borrowed_own = false;
	return PIN_LIKELY(own == NULL && !pin_worker_may_borrow(worker->shared, request->bytes)) ||
		borrow_otherwise(worker, request);
}

/* Notes that it owes its device nothing yet, and which memory it uses. */
static PIN_INLINE void settle(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	private->cost = (struct pin_request_cost){0};
	if (PIN_UNLIKELY(worker->shares_ring)) {
		private->uses_own_buffer = pin_worker_owns_entry(worker, private->borrowed);
	}
}

static PIN_INLINE bool borrow(struct pin_worker *worker, struct pinion_request *request)
{
	bool is_sound = borrow_memory(worker, request);

	settle(worker, request);
	if (PIN_UNLIKELY((request->task.flags & PIN_TASK_LANES) != 0 ||
		    pin_shared_has_lanes(worker->shared))) {
		note_lane(worker, request, pin_load_relaxed_u32(&worker->running_lane));
	}
	return is_sound;
}

/* ---- time ---- */

/* False: the request has ended, or is a TIMEOUT, which waits for its end. */
static PIN_INLINE bool arm_deadline(struct pin_worker *worker, struct pinion_request *request)
{
	return PIN_LIKELY(request->deadline_ns == 0 && !worker->cancel_sent) ||
		begin_by_time(worker, request);
}

/* ---- cached ---- */

/*
 * Nothing has gathered for the ring, and no ended request's task is ready,
 * which might add to that. Requests that gather share one enter, which costs
 * less than a system call to copy each.
 */
static inline bool comes_alone(const struct pin_worker *worker)
{
	return pin_list_is_empty(&worker->ready) && pin_ring_unsubmitted(&worker->ring) == 0;
}

/* True: its bytes are there, and it is over. */
static PIN_INLINE bool copy_cached(struct pin_worker *worker, struct pinion_request *request)
{
	if (pin_request_is_special(request) || !pin_cached_is_worth_it(&worker->cached, request) ||
		!(comes_alone(worker) || pin_device_queue_has_rates(worker, request)) ||
		!pin_cached_read(&worker->cached, &worker->meter, request)) {
		return false;
	}
	PIN_DCHECK(request->result <= (int64_t)request->length_bytes);
	pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
	pin_request_end(worker, worker, request);
	return true;
}

/* ---- admit: device_queue.c; encode and link ---- */

static PIN_INLINE void enter_ring(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_of(request)->link.next == NULL); /* in no list yet */
	if (PIN_LIKELY(pin_request_submit(&worker->ring, request))) {
		pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
	} else {
		wait_or_call(worker, request);
	}
}

/* Submits an admitted read or write to one of the rings, or calls for it. */
static PIN_INLINE void launch(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(!pin_request_of(request)->is_waiting);
	if (PIN_UNLIKELY(pin_request_is_special(request))) {
		launch_special(worker, request);
	} else if (PIN_LIKELY(!worker->has_polled) || !pin_polled_submit(worker, request)) {
		enter_ring(worker, request);
	}
}

/* ---- the way ---- */

/* Of a read or a write. `is_borrowed`: what the stage before them has said. */
static PIN_INLINE void go_on_borrowed(
	struct pin_worker *worker, struct pinion_request *request, bool is_borrowed)
{
	if (PIN_UNLIKELY(!is_borrowed)) {
		refuse_memory(worker, request);
	} else if (arm_deadline(worker, request) && !copy_cached(worker, request) &&
		PIN_LIKELY(pin_device_queue_admit(worker, request))) {
		launch(worker, request);
	}
}

static PIN_APART void begin_transfer(struct pin_worker *worker, struct pinion_request *request)
{
	go_on_borrowed(worker, request, borrow(worker, request));
}

static PIN_INLINE void submit_one(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_task_set_kind(&request->task, PIN_TASK_PLAIN);
	pin_meter_add(&worker->meter.requests_submitted, 1);
	if (PIN_UNLIKELY(pin_request_has(request, PIN_OP_TRAVELS))) {
		submit_cancel(worker, request);
		return;
	}
	pin_request_set(pin_request_of(request), pin_request_word(worker, PIN_REQUEST_IN_FLIGHT));
	PIN_TRACE3(request_submit, worker->index, request, request->op);
	pin_request_reset(request);
	if (pin_request_moves_bytes(request)) {
		begin_transfer(worker, request);
	} else if (arm_deadline(worker, request)) {
		enter_ring(worker, request);
	}
}

int pin_worker_submit_one(struct pin_worker *worker, struct pinion_request *request)
{
	int rc;

	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared))) {
		return -ESHUTDOWN;
	}
	/* The same as check(); refuse_request() finds the error. */
	rc = pin_request_check(request);
	if (PIN_UNLIKELY(rc < 0 || !is_idle(request))) {
		return refuse_request(worker, request, rc);
	}
	if (PIN_UNLIKELY(worker->submit_slow_reasons != 0 || !has_entries(worker, 1))) {
		return submit_one_checked(worker, request);
	}
	submit_one(worker, request);
	return 0;
}

/* ---- rare sides ---- */

static PIN_APART int refuse_request(
	struct pin_worker *worker, struct pinion_request *request, int rc)
{
	return pin_requests_explain(worker->shared, &request, 1, rc < 0 ? rc : -EBUSY);
}

/*
 * Finds the reason by repeating the checks, so that a successful submission
 * pays nothing for it.
 */
int pin_requests_explain(const struct pin_shared *shared, struct pinion_request *const *requests,
	uint32_t count, int rc)
{
	struct pin_refusal why;
	uint32_t i = 0;

	PIN_DCHECK(rc < 0 && count > 0);
	if (!pin_log_is_on(&shared->log, PINION_LOG_DEBUG)) {
		return rc;
	}
	/* None of those before it was refused. */
	while (i < count && requests[i] != NULL && pin_request_explain(requests[i], &why) == 0) {
		i++;
	}
	if (i == count) {
		return rc;
	}
	if (requests[i] == NULL) {
		(void)pin_refuse(&why, rc, "it is NULL");
	}
	if (count == 1) {
		pin_log(&shared->log, PINION_LOG_DEBUG, "request refused: %s", why.text);
	} else {
		pin_log(&shared->log, PINION_LOG_DEBUG, "request %u of %u refused: %s", i + 1,
			count, why.text);
	}
	return rc;
}

/* To the end of this worker's messages, after all that came before. */
static void post_to_self(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_has(request, PIN_OP_TRAVELS));
	pin_inbox_take(&worker->inbox, &worker->posted);
	pin_task_set_kind(&request->task, PIN_TASK_REQUEST);
	pin_request_set(pin_request_of(request), pin_request_word(worker, PIN_REQUEST_POSTED));
	pin_list_push(&worker->posted, pin_task_link(&request->task));
}

static PIN_APART void submit_cancel(struct pin_worker *worker, struct pinion_request *request)
{
	pin_request_of(request)->hops_left = worker->shared->worker_count;
	request->result = 0;
	pin_external_hold(worker->shared);
	post_to_self(worker, request);
}

/* `borrowed` is one of the worker's own buffers, or NULL. */
static PIN_APART bool borrow_otherwise(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	enum pin_pool_borrowed borrowed =
		pin_worker_borrow(worker, request->bytes, private->borrowed, &private->borrowed);

	/* Its end gives back what it borrowed: nothing of a free buffer. */
	PIN_DCHECK(borrowed != PIN_POOL_IS_BORROWED_OWN || private->borrowed != NULL);
	PIN_DCHECK(borrowed != PIN_POOL_IS_FREE || private->borrowed == NULL);
	private->is_borrowed_own = borrowed == PIN_POOL_IS_BORROWED_OWN;
	return borrowed != PIN_POOL_IS_FREE;
}

void pin_requests_expect_urgent(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	worker->sorts_ends = true;
	pin_ring_set_bound(&worker->ring);
}

/*
 * Its own lane, else that of the task that submits it: as an I/O priority, and
 * whether it passes others: in the device wait queue, and to its task.
 */
static PIN_APART void note_lane(
	struct pin_worker *worker, struct pinion_request *request, enum pinion_lane lane)
{
	if ((request->task.flags & PIN_TASK_LANES) != 0) {
		lane = pin_task_lane(&request->task);
	}
	PIN_CHECK((uint32_t)lane < PIN_LANES);
	pin_request_of(request)->lane_priority = worker->shared->io_priorities[lane];
	pin_request_of(request)->cost.is_urgent = lane == PINION_LANE_HIGH;
	if (lane == PINION_LANE_HIGH && PIN_UNLIKELY(!worker->ring.is_bounded)) {
		pin_lane_note_urgent(worker->shared);
		pin_requests_expect_urgent(worker);
	}
}

/* The buffer is free: its next user would share it with the request. */
static PIN_APART void refuse_memory(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_of(request)->borrowed == NULL); /* so its end gives none back */
	pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
	pin_request_end_with(worker, request, -EFAULT);
}

/* For a request with a deadline, or after a stop has cancelled all requests. */
static PIN_APART bool begin_by_time(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	bool is_in_time = true;

	PIN_DCHECK(!pin_timer_is_armed(&private->deadline));
	if (request->deadline_ns != 0) {
		is_in_time = request->deadline_ns > worker->shared->host->now_ns();
		if (is_in_time) {
			private->is_timed = true;
			pin_timers_insert(
				&worker->deadlines, &private->deadline, request->deadline_ns);
		}
	}
	if (!is_in_time || worker->cancel_sent) {
		pin_request_list_push(&worker->in_flight, &private->link);
		pin_request_end_with(worker, request, is_in_time ? -ECANCELED : -ETIME);
		return false;
	}
	if (pin_request_has(request, PIN_OP_WAITS)) {
		pin_request_list_push(&worker->in_flight, &private->link);
		return false;
	}
	return true;
}

static PIN_APART void launch_special(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_request_is_special(request));
	if ((request->file->flags & PIN_FILE_COMMANDS) != 0) {
		pin_commands_begin(worker, request);
		return;
	}
	pin_request_list_push(&worker->in_flight, &pin_request_of(request)->link);
	pin_requests_carry_out(worker, request);
}

/* The ring has no room, so the request waits for it, or lacks the operation. */
static PIN_APART void wait_or_call(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);

	if (pin_request_is_beyond(&worker->ring, request)) {
		pin_request_list_push(&worker->in_flight, &private->link);
		pin_requests_carry_out(worker, request);
		return;
	}
	PIN_DCHECK(!private->is_waiting && !pin_ring_has_room(&worker->ring, 1));
	private->is_waiting = true;
	pin_request_list_push(&worker->waiting, &private->link);
}

/* ---- several at once ---- */

static bool needs_entry(const struct pinion_request *request)
{
	return !pin_request_has(request, PIN_OP_WAITS | PIN_OP_TRAVELS);
}

static bool has_room(
	const struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	uint32_t wanted = 0;

	for (uint32_t i = 0; i < count; i++) {
		wanted += needs_entry(requests[i]) ? 1 : 0;
	}
	return wanted == 0 || has_entries(worker, wanted);
}

/* Before any of them begins: it may end at once and be submitted anew. */
static PIN_APART void note_submitted(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct pinion_request *request = requests[i];

		pin_event_note_request(worker, PIN_TRACE_SUBMIT, request,
			(int64_t)pin_min_u64(request->length_bytes, UINT32_MAX),
			request->offset_bytes);
		if (pin_event_opens(request->op)) {
			pin_event_note_path(worker, request->path);
		}
	}
}

/* Submits all of the checked requests, or none if the ring has no room. */
static int submit_checked(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	bool is_taken;

	PIN_DCHECK(pin_worker_is_current(worker)); /* the ring's owner */
	if (PIN_UNLIKELY(worker->shares_ring)) {
		pin_watchdog_note_kept(worker);
	}
	pin_remote_reap_enter(worker);
	is_taken = has_room(worker, requests, count);
	if (PIN_UNLIKELY(worker->notes_submitted) && is_taken) {
		note_submitted(worker, requests, count);
	}
	for (uint32_t i = 0; i < count && is_taken; i++) {
		submit_one(worker, requests[i]);
	}
	pin_remote_reap_leave(worker);
	return is_taken ? 0 : -EAGAIN;
}

/* Apart: only here its address is needed. */
static PIN_APART int submit_one_checked(struct pin_worker *worker, struct pinion_request *request)
{
	return submit_checked(worker, &request, 1);
}

static void release_all(struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		pin_request_set(pin_request_of(requests[i]), PIN_REQUEST_IDLE);
	}
}

/* Marks each request as it is checked, so that one listed twice is refused. */
static int claim_all(struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = check(requests[i]);

		if (PIN_UNLIKELY(rc < 0)) {
			release_all(requests, i);
			return rc;
		}
		pin_request_set(pin_request_of(requests[i]), PIN_REQUEST_CLAIMED);
	}
	return 0;
}

int pin_worker_submit(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count)
{
	int rc;

	if (PIN_UNLIKELY(pin_shared_is_stopping(worker->shared))) {
		return -ESHUTDOWN;
	}
	rc = claim_all(requests, count);
	if (PIN_UNLIKELY(rc < 0)) {
		return pin_requests_explain(worker->shared, requests, count, rc);
	}
	rc = submit_checked(worker, requests, count);
	if (PIN_UNLIKELY(rc < 0)) {
		release_all(requests, count);
	}
	return rc;
}

/* ---- from other threads ---- */

int pin_request_claim(struct pinion_request *const *requests, uint32_t count)
{
	int rc = claim_all(requests, count);

	if (rc < 0) {
		return rc;
	}
	for (uint32_t i = 0; i < count; i++) {
		pin_task_set_kind(&requests[i]->task, PIN_TASK_REQUEST);
	}
	return 0;
}

void pin_request_disclaim(struct pinion_request *const *requests, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		PIN_DCHECK(pin_task_kind(&requests[i]->task) == PIN_TASK_REQUEST);
		pin_task_release(&requests[i]->task);
	}
	release_all(requests, count);
}

/*
 * As borrow(), for a request that another thread has posted. That thread has
 * borrowed the buffer already, if it found one. False also if it found the
 * buffer free: a task may use it by now, which the request must not disturb.
 */
static PIN_APART bool borrow_posted(struct pin_worker *worker, struct pinion_request *request)
{
	struct pin_request *private = pin_request_of(request);
	bool is_sound =
		!private->was_free && (private->borrowed != NULL || borrow_memory(worker, request));

	PIN_DCHECK(!private->was_free || private->borrowed == NULL);
	settle(worker, request);
	/* No task submits it: what the worker has run last does not count. */
	note_lane(worker, request, PINION_LANE_NORMAL);
	return is_sound;
}

static PIN_APART void begin_posted_transfer(
	struct pin_worker *worker, struct pinion_request *request)
{
	go_on_borrowed(worker, request, borrow_posted(worker, request));
}

void pin_request_begin(struct pin_worker *worker, struct pinion_request *request)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(pin_task_kind(&request->task) == PIN_TASK_PLAIN);
	PIN_TRACE3(request_submit, worker->index, request, request->op);
	if (PIN_UNLIKELY(worker->notes_submitted)) {
		note_submitted(worker, &request, 1);
	}
	pin_request_reset(request);
	if (pin_request_moves_bytes(request)) {
		begin_posted_transfer(worker, request);
	} else if (arm_deadline(worker, request)) {
		enter_ring(worker, request);
	}
}

void pin_request_prepare(struct pin_worker *worker, struct pinion_request *request)
{
	pin_request_reset(request);
	if (pin_request_moves_bytes(request)) {
		borrow_posted(worker, request);
	}
}

/* ---- those that had to wait ---- */

static void resume(struct pin_worker *worker)
{
	while (!pin_request_list_is_empty(&worker->waiting)) {
		struct pin_request *private =
			PIN_CONTAINER_OF(worker->waiting.next, struct pin_request, link);

		if (!pin_request_submit(&worker->ring, pin_request_of_link(private))) {
			return;
		}
		PIN_DCHECK(private->is_waiting);
		private->is_waiting = false;
		pin_request_list_remove(&private->link);
		pin_request_list_push(&worker->in_flight, &private->link);
	}
}

/* Requests queued for a device go after those that wait for room. */
static void start_queued(struct pin_worker *worker)
{
	struct pinion_request *request;

	while ((request = pin_device_queue_next(worker)) != NULL) {
		PIN_DCHECK(pin_request_moves_bytes(request)); /* no other waits for a device */
		launch(worker, request);
	}
}

void pin_requests_resume(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	/* Only its own thread changes that list. */
	if (PIN_UNLIKELY(!pin_request_list_is_empty(&worker->waiting))) {
		pin_remote_reap_enter(worker);
		resume(worker);
		pin_remote_reap_leave(worker);
	}
	if (PIN_UNLIKELY(pin_device_queue_has_news(worker))) {
		pin_remote_reap_enter(worker);
		start_queued(worker);
		pin_remote_reap_leave(worker);
	}
}
