/* SPDX-License-Identifier: MIT */
/*
 * Submits, cancels and ends requests, between their callers and the worker
 * whose ring they are on (io/request.h).
 *
 * A ring belongs to its worker, and where rings are shared, to the holder of
 * its lock (ring_lock.h). An external submission is queued on one worker, which
 * is woken (request_external.c). A cancel from another thread is sent to the
 * owner's inbox. The task carries the message. From its start to its end a
 * request is in one of two lists of the worker: in flight, or waiting for room
 * in the ring. Deadlines are on a wheel that they share with waits, and end a
 * worker's sleep as timers do.
 *
 *     IDLE       the caller's
 *     CLAIMED    the caller's, while the others of its batch are checked
 *     POSTED     queued on a worker, to be submitted by its taker
 *     IN_FLIGHT  the worker's
 *     CANCELLED  cancelled; in the inbox, and perhaps the worker's as well
 *     ENDING     the worker's, which knows that it is cancelled
 *
 * The word holds the state and the worker. Of the end and a cancel one is
 * first: POSTED is left by compare-and-swap, to IN_FLIGHT by the worker, to
 * CANCELLED by the canceller; IN_FLIGHT is left under a lock of the worker's
 * (`cancels`), to IDLE by the worker, to CANCELLED by the canceller, or, on the
 * worker itself, to ENDING. That lock costs its owner no locked instruction,
 * since each completion takes it; a canceller from elsewhere pays for both.
 * Only the worker leaves CANCELLED and ENDING. The task's link is free while a
 * request is IN_FLIGHT, so the one message at a time needs no memory of its
 * own; and since that message may be in the inbox when the request ends, its
 * task becomes ready only when the message has been taken (`has_ended`).
 *
 * Only the worker sees a deadline: it changes no state, only the reason of the
 * request's end (`ended_by`), and of deadline and cancel the first to get to
 * the worker counts. Either way the worker asks the kernel to end the
 * operation, again if the kernel misses it, and the completion decides: a
 * result that came first is the result.
 *
 * A cancel of many (PINION_OP_CANCEL) is itself a request: it travels through
 * the inboxes of all workers, its own first, after all earlier messages.
 *
 * [REQUEST-1] a change of the word -> the next: the thread that moves it on
 * sees the request as it was left, and finds the right inbox. Changes under the
 * lock are ordered by that: [BIASED-1], [BIASED-2].
 */
#ifndef PIN_WORKER_REQUEST_H
#define PIN_WORKER_REQUEST_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

/* ---- states and lists ---- */

enum pin_request_state {
	PIN_REQUEST_IDLE = 0,	   /* -> POSTED, IN_FLIGHT or CLAIMED by submit */
	PIN_REQUEST_POSTED = 1,	   /* -> IN_FLIGHT by the worker, CANCELLED by cancel */
	PIN_REQUEST_IN_FLIGHT = 2, /* -> IDLE by the worker; CANCELLED, ENDING by cancel */
	PIN_REQUEST_CANCELLED = 3, /* -> ENDING by the worker */
	PIN_REQUEST_ENDING = 4,	   /* -> IDLE by the worker */
	PIN_REQUEST_CLAIMED = 5,   /* -> POSTED, IN_FLIGHT, or IDLE again, by submit */
};

enum {
	PIN_REQUEST_STATE_MASK = 7,
	PIN_REQUEST_WORKER_SHIFT = 3,
};

void pin_requests_init(struct pin_worker *worker);

/*
 * By any thread but the worker, which is in there for a few instructions only.
 */
void pin_requests_lock_cancels(struct pin_worker *owner);

static inline uint32_t pin_request_word(
	const struct pin_worker *worker, enum pin_request_state state)
{
	PIN_DCHECK(worker->index <= UINT32_MAX >> PIN_REQUEST_WORKER_SHIFT);
	PIN_DCHECK((uint32_t)state <= PIN_REQUEST_CLAIMED);
	return worker->index << PIN_REQUEST_WORKER_SHIFT | state;
}

static inline enum pin_request_state pin_request_state_of(uint32_t word)
{
	return (enum pin_request_state)(word & PIN_REQUEST_STATE_MASK);
}

static inline bool pin_request_change(struct pin_request *private, uint32_t word, uint32_t to)
{
	PIN_DCHECK(pin_request_state_of(word) != pin_request_state_of(to)); /* it moves on */
	return pin_cas_seq_cst_u32(&private->word, &word, to);		    /* [REQUEST-1] */
}

/* By the worker that has its message, even if it was sent to another. */
static inline bool pin_request_change_own(const struct pin_worker *worker,
	struct pin_request *private, enum pin_request_state from, enum pin_request_state to)
{
	uint32_t word = pin_load_acquire_u32(&private->word); /* [REQUEST-1] */

	return pin_request_state_of(word) == from &&
		pin_request_change(private, word, pin_request_word(worker, to));
}

static inline void pin_request_set(struct pin_request *private, uint32_t word)
{
	pin_store_release_u32(&private->word, word); /* [REQUEST-1] */
}

/* ---- waiting for a device ---- */

/*
 * When a transfer may start: a worker between its requests and the credit and
 * rates of their disks (io/device.h).
 *
 * A read or write starts when the rates allow it and there is credit; else it
 * queues, after others of its file, and is in no other list. An urgent request,
 * of the high lane, passes the others, 8 in a row at most. Rates come first, so
 * a request that may not start yet never holds credit. The first request of a
 * device wait queue waits for one of these:
 *
 *     a rate      until an instant that is known: a timer of the worker's wheel
 *     credit      for the end of another request of this worker on that disk,
 *                 or for its turn among the workers that are queued
 *     a change    of limits, by another thread
 *
 * Credit and changes from others come as a kick: a flag of the worker, set
 * before its sleep is ended. The worker checks the flag before it sleeps, as it
 * checks its inbox, clears it, and then checks all device wait queues.
 *
 *     granter, setter of limits         worker
 *     a  credit, epoch of limits        1  finds neither, queues
 *     b  kicked := 1 (release)          2  publishes that it sleeps
 *     c  fence; asleep? wake it         3  fence; kicked? look again
 *
 * [DEVICE-1] a, b -> the worker takes the flag (RMW, acquire): it finds what
 * it was kicked for. b-c against 2-3 is [PARK-1].
 *
 * The deadline of a request goes on while it is queued, and ends it there.
 * Requests of the library itself may set `stops_clock` instead: a file's
 * timeout is for the file, not for the limits that its user has set.
 *
 * A long request pays for its parts one by one (io/request.h), so that no other
 * waits for the price of all of it: between two of them it has queued again,
 * and gives its credit back.
 *
 * On the worker, or under its ring's lock: pin_device_queue_end() and the calls
 * about parts only.
 */

void pin_device_queue_init(struct pin_worker *worker);

/* True: it may start now. False: it has queued. */
bool pin_device_queue_admit(struct pin_worker *worker, struct pinion_request *request);

/* There are rates for it, which reads from the page cache need not keep. */
bool pin_device_queue_has_rates(struct pin_worker *worker, const struct pinion_request *request);

/* There is a rate of bytes, of the runtime or of the file's device. */
bool pin_device_queue_limits_bytes(struct pin_worker *worker, const struct pinion_file *file);

/*
 * For a request in flight, before its next part: that has to be paid for first.
 */
bool pin_device_queue_owes_part(const struct pin_worker *worker, struct pinion_request *request);

/*
 * It queues for that part, and leaves the device to others meanwhile; it is
 * in no list. By the holder of its ring's lock.
 */
void pin_device_queue_defer_part(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/* There may be something to start, which pin_device_queue_next() returns. */
static inline bool pin_device_queue_has_news(const struct pin_worker *worker)
{
	return worker->device_queue.must_look || pin_load_relaxed_u32(&worker->kicked) != 0;
}

/* The next that has queued and may start now, in no list; NULL: none. */
struct pinion_request *pin_device_queue_next(struct pin_worker *worker);

/*
 * A transfer that pin_device_queue_admit() has seen ends, whether it has
 * started or not, while it is still in its list; `taker` is the calling worker.
 */
void pin_device_queue_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/*
 * On a worker that leaves and has no transfers any more: gives back the credit
 * that it kept. False: credit is being granted to it, with a notification soon.
 */
bool pin_device_queue_give_up(struct pin_worker *worker);

/* On its worker: the time of a device wait queue has come. */
void pin_device_queue_expire(struct pin_worker *worker, struct pin_timer *timer);

/* Has each worker look again, as limits are others. Any thread. */
void pin_device_queue_kick_all(struct pin_shared *shared);

/* ---- accounts with devices ---- */

enum {
	/*
	 * Ends until a worker checks whether an interval is over: as many as
	 * come in 100 µs, and at least this number, since reading the clock
	 * takes 25 ns, and some reads are over in 700.
	 */
	PIN_ACCOUNT_ENDS_MIN = 16,
};

/* On its worker, which has none with that device yet. */
struct pin_account *pin_device_account_open(struct pin_worker *worker, uint64_t device);

/* On its worker: has the disk learn its depth when an interval is over. */
void pin_device_account_look(struct pin_worker *worker, struct pin_account *account);

/* Of one disk, all workers together. Any thread. */
struct pin_disk_sums pin_device_account_sums(
	const struct pin_shared *shared, const struct pin_disk *disk);

/* ---- submitting ---- */

/*
 * The way of a request into its ring: submit.c has its stages in order. A
 * request that finds no room in the ring waits for it, in order; requests that
 * wait for their device are in the list above.
 */

/* On the worker: starts a request. Errors as pinion_request_submit(). */
int pin_worker_submit_one(struct pin_worker *worker, struct pinion_request *request);

/* The same for `count` of them, all or none. */
int pin_worker_submit(
	struct pin_worker *worker, struct pinion_request *const *requests, uint32_t count);

/*
 * Says to the log, at debug level, which of the requests was refused, and why:
 * which field, which value. Says nothing where none is (-EBUSY). Returns `rc`.
 */
int pin_requests_explain(const struct pin_shared *shared, struct pinion_request *const *requests,
	uint32_t count, int rc);

/*
 * On other threads: 0 if all can be submitted; they are the library's then. If
 * one cannot, undoes everything.
 */
int pin_request_claim(struct pinion_request *const *requests, uint32_t count);
void pin_request_disclaim(struct pinion_request *const *requests, uint32_t count);

/*
 * Sends claimed ones, which were admitted, to `target`, in order. A pool's
 * buffer is borrowed from here on.
 */
void pin_request_post(
	struct pin_worker *target, struct pinion_request *const *requests, uint32_t count);

/* Submits requests that wait for room, in order, as far as there is some. */
void pin_requests_resume(struct pin_worker *worker);

/* Whether that might find something. Loads only. */
static inline bool pin_requests_may_resume(const struct pin_worker *worker)
{
	return !pin_request_list_is_empty(&worker->waiting) || pin_device_queue_has_news(worker);
}

/*
 * On the worker, in the ring's lock: from now on requests of the high lane
 * come, so its calls are bounded, and their tasks pass others.
 */
void pin_requests_expect_urgent(struct pin_worker *worker);

/*
 * Begins a posted request that is IN_FLIGHT now, in no list; in the ring's
 * lock.
 */
void pin_request_begin(struct pin_worker *worker, struct pinion_request *request);

/* The first part of that, for a request that ends at once. */
void pin_request_prepare(struct pin_worker *worker, struct pinion_request *request);

/* ---- completing ---- */

/*
 * The end of requests: taking completions in, giving a request back to its
 * caller, and having its task entered. Where rings are shared, another worker
 * may do that for a stalled one: the taker; it queues the tasks that it may
 * enter itself, and sends the rest home by the inbox. See request.h.
 *
 * All of it with the ring's lock (ring_lock.h), which the first two take.
 */

/*
 * On the worker: submits gathered requests and takes in completed ones; returns
 * how many those were.
 */
uint32_t pin_requests_poll(struct pin_worker *worker);

/*
 * On `taker`, which has nothing to do: the same for the ring of `worker`, if
 * that is stalled and its ring shared. Completed requests go into the taker's
 * deque, or back to their worker's inbox. False: nothing was done.
 */
bool pin_requests_reap_remote(struct pin_worker *worker, struct pin_worker *taker);

/*
 * A request whose deadline, on the worker's wheel, has come; in the ring's
 * lock.
 */
void pin_requests_expire(struct pin_worker *worker, struct pin_timer *timer);

/*
 * On the worker, for a request in flight that no ring may have: part after part
 * as long as rates allow; blocks.
 */
void pin_requests_carry_out(struct pin_worker *worker, struct pinion_request *request);

/* Has a ring of the worker's ask before a long transfer's next part. */
void pin_request_ask_parts(struct pin_worker *worker, struct pin_ring *ring);

/* A request that has its result: out of its list, and to its caller. */
void pin_request_end(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/* The same on the worker, with a result. */
void pin_request_end_with(
	struct pin_worker *worker, struct pinion_request *request, int32_t result);

/* Ends it now, or asks the kernel to; the first outcome counts. */
void pin_request_abandon_in_flight(
	struct pin_worker *worker, struct pinion_request *request, int32_t error);

/*
 * Queues its task, when it is out of its list and IDLE. It is the caller's
 * again as soon as its task is entered. `taker` is the calling worker.
 */
void pin_request_hand_over(
	struct pin_worker *worker, struct pin_worker *taker, struct pinion_request *request);

/*
 * The function that the caller gave a task, where another one is entered first:
 * for messages and traces that show it.
 */
uint64_t pin_request_run_of(struct pinion_task *task);

/* On the worker: it has none. */
static inline bool pin_request_is_over(const struct pin_worker *worker)
{
	return pin_request_list_is_empty(&worker->in_flight) &&
		pin_request_list_is_empty(&worker->waiting);
}

/* ---- cancelling ---- */

/*
 * Ending requests early: one from anywhere, all of a worker, all at a stop. See
 * request.h.
 */

/*
 * Any thread: 0, or -EALREADY. *out_must_post: the caller must put it on the
 * inbox of worker *out_index. `worker` is the calling one or NULL.
 */
int pin_request_cancel(struct pin_shared *shared, struct pin_worker *worker,
	struct pinion_request *request, bool *out_must_post, uint32_t *out_index);

/*
 * On the worker, in the ring's lock: asks for the end of all that are on it, or
 * of those of one file; how many those were.
 */
uint32_t pin_requests_abandon_all(struct pin_worker *worker, const struct pinion_file *file);

/*
 * On the worker: asks for the end of those whose file's struct is in a range of
 * memory.
 */
void pin_requests_abandon_among(struct pin_worker *worker, const void *memory, size_t bytes);

/* Asks for the end of all there is; nothing starts any more. */
void pin_requests_stop(struct pin_worker *worker);

/*
 * The runtime is drained: asks for the end of those that wait for a peer and
 * have no deadline, as they might for ever. The kernel has tried each of them
 * once by then: an answer still goes out.
 */
void pin_requests_drain(struct pin_worker *worker);

/*
 * Grows whenever a request may have begun to wait for its peer, and only then:
 * when it gets an entry in the ring, also one that had to wait for room, and
 * when its poll is begun without a ring.
 */
static inline uint64_t pin_requests_moves(const struct pin_worker *worker)
{
	/* Relaxed: a taker adds entries only of those that have had one. */
	return 1 + pin_load_relaxed_u64(&worker->ring.peer_entries) + worker->ring.waits.begun;
}

/* Whether a stop or a drain has some to be done by one of these. */
static inline bool pin_requests_owe_ends(const struct pin_worker *worker)
{
	if (PIN_LIKELY(!pin_shared_is_ending(worker->shared))) {
		return false;
	}
	return pin_shared_is_stopping(worker->shared)
		? !worker->cancel_sent
		: pin_requests_moves(worker) != worker->drained_moves;
}

/* ---- secondary rings ---- */

/*
 * Secondary requests are in flight on another ring of their worker than its
 * first, which cannot carry them: extra_rings.c. They are in the worker's lists
 * and end as all do, but such a ring takes no cancels: a request on it ends
 * when its device ends it.
 *
 * One count says whether there are any, so a worker without them reads that and
 * nothing else.
 *
 * On the worker alone.
 */

/* It is on that ring now, and in flight. */
static inline void pin_secondary_enter(struct pin_worker *worker, struct pin_request *private)
{
	PIN_DCHECK(!private->is_secondary && private->link.next == NULL);
	private->is_secondary = true;
	worker->secondary_count++;
	pin_request_list_push(&worker->in_flight, &private->link);
}

/* It has left that ring, and is still in the list. */
static inline void pin_secondary_leave(struct pin_worker *worker, struct pin_request *private)
{
	PIN_CHECK(private->is_secondary && worker->secondary_count > 0);
	private->is_secondary = false;
	worker->secondary_count--;
}

static inline bool pin_secondary_is_busy(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->secondary_count > 0);
}

static inline bool pin_secondary_ring_has_gathered(const struct pin_ring *ring)
{
	return ring->in_flight > 0 && pin_ring_unsubmitted(ring) > 0;
}

/* Of these, some wait to be submitted. */
static inline bool pin_secondary_has_gathered(const struct pin_worker *worker)
{
	return pin_secondary_is_busy(worker) &&
		(pin_secondary_ring_has_gathered(&worker->polled) ||
			pin_secondary_ring_has_gathered(&worker->sqe128));
}

/* ---- messages between workers ---- */

/*
 * Other threads post requests to the external queue of a worker, and to its
 * inbox requests to be cancelled, or a cancel of many on its way through all
 * workers.
 */

/* Whether `task` is a request's message rather than a task to be run. */
static inline bool pin_request_is_message(const struct pinion_task *task)
{
	return task->private_kind == PIN_TASK_REQUEST;
}

/*
 * On the worker: begins up to `count_max` of the requests that were posted to
 * `owner`, itself or another, and as many urgent ones before; how many.
 */
uint32_t pin_requests_take_external(
	struct pin_worker *worker, struct pin_worker *owner, uint32_t count_max);

/* The urgent ones alone, which are submitted at once, before others gather. */
uint32_t pin_requests_take_urgent(
	struct pin_worker *worker, struct pin_worker *owner, uint32_t count_max);

/* On the worker, from its inbox: does what the message says. */
void pin_request_take(struct pin_worker *worker, struct pinion_task *task);

/* ---- requests from other threads ---- */

/*
 * Other threads post a request to the external queue of one worker, but any
 * worker may begin it.
 *
 * The workers that serve a request's lane have turns, so that all rings are
 * used; where the next worker in turn is busy, a sleeping one gets the request.
 * Those of the high lane go to a worker that serves little else. A worker takes
 * its own requests at the start of a loop, before it runs anything, so none
 * waits for a task that was there already. If the worker is stalled, they stay
 * in its queue, which others may take from as well: the watchdog finds them
 * there and wakes a sleeper, which begins them on its own ring. A request that
 * has begun stays with its ring.
 *
 * Those of the high lane are in a queue of their own, which the worker looks
 * into before each task as well, once there was one (PIN_SHARED_URGENT). It
 * submits them at once: an entry waits for all that were gathered before it.
 *
 * A submitter that queues a request on a worker that is awake makes sure that
 * the watchdog is awake, too:
 *
 *     submitter                           watchdog
 *     a  push                             1  word := ASLEEP
 *     b  the worker is parked: wake it    2  seq_cst fence
 *     c  else: seq_cst fence              3  some worker is not parked:
 *     d  word is ASLEEP: notify              word := AWAKE, check again later
 *
 * [EXTERNAL-1] c against 2: of two fences one is first; either d sees that the
 * watchdog sleeps, or the watchdog sees in 3 the worker that was seen awake in
 * b.
 * For a worker that goes to sleep a and b are [PARK-1].
 *
 * A cancel of many goes from worker to worker and ends requests submitted
 * before it. A queued submission must not move past it, from a worker that it
 * has yet to see to a worker that it has seen; so nothing is adopted while
 * there is such a cancel (`cancels`), and each worker it comes to first begins
 * its own submissions. Submissions queued on a worker that has left move to the
 * fallback worker (wake.h), under a lock that a thread also takes before it
 * moves such a cancel there: so the cancel comes after them.
 * [EXTERNAL-2] it is counted (RMW) before it is sent -> a worker that it has
 * been to sees the count (acquire).
 *
 * Source: docs/decisions/rings.md, "External submissions are queued on a
 * worker".
 */

/*
 * Any thread: the worker that requests of a lane are queued on next, of those
 * that serve the lane. A guess of which is free.
 */
struct pin_worker *pin_external_choose(struct pin_shared *shared, enum pinion_lane lane);

/*
 * Any thread but a worker's: posts all of both lists to it; one of them may be
 * empty.
 */
void pin_external_push(struct pin_worker *target, struct pin_list *urgent, struct pin_list *others);

static inline bool pin_external_is_empty(const struct pin_worker *worker)
{
	return pin_injector_is_empty(&worker->external) &&
		pin_injector_is_empty(&worker->external_urgent);
}

/* By another worker: it is stalled, and others may take its posted requests. */
bool pin_external_may_adopt(const struct pin_worker *worker);

/* From before a cancel of many is sent until it has been to all workers. */
static inline void pin_external_hold(struct pin_shared *shared)
{
	pin_fetch_add_seq_cst_u32(&shared->cancels, 1); /* [EXTERNAL-2] */
}

static inline void pin_external_release(struct pin_shared *shared)
{
	uint32_t before = pin_fetch_sub_seq_cst_u32(&shared->cancels, 1);

	PIN_CHECK(before > 0);
}

#endif
