/* SPDX-License-Identifier: MIT */
/*
 * Decides which worker to wake for new work, and when to wake none.
 *
 * A worker without work of its own searches the others' queues before it
 * sleeps. While any worker searches, new work needs no wake: the searcher finds
 * it, or a worker that the last searcher wakes. So every wake makes its target
 * a searcher, counted by the waker already, and a searcher that finds work, if
 * it was the last one, wakes the next: a chain, as long as there is work,
 * instead of a crowd.
 *
 *     pusher                               searcher S
 *     a  push work                         1  publish its bit
 *     b  seq_cst fence                     2  searching -= 1
 *     c  no bit published: done            3  seq_cst fence
 *     d  searching: 0 -> 1, else done      4  look at its own sources;
 *     e  claim a bit, notify                  no searcher: check all queues
 *
 * [SEARCH-1] a-b against 2-3-4: a pusher that goes without waking because S
 * still counts made its push before 2, so S, or the worker that searches last,
 * sees it in 4. A worker that was refused as a searcher takes part in 4 as
 * well: the searchers may have ended before it published its bit. A worker that
 * sees such work in 4 and so does not sleep counts as a searcher again until it
 * runs something: it may have tasks of its own to run first, and then another
 * has to be woken for the work it saw.
 * [SEARCH-2] d is a compare-and-swap: of several pushers one wakes. If it then
 * finds no bit to claim it counts back, and checks again if it was the last: a
 * pusher meanwhile has relied on it.
 *
 * Workers that serve different lanes are in classes (policy/lanes.h), each with
 * its parked set and its count of searchers, and the rule above is for one
 * class. Work of a lane asks the classes that serve it, first those that serve
 * little else: if no worker of a class searches or sleeps, the next is asked. A
 * searcher of a class is relied on for every lane the class serves; so when the
 * last of them finds something it wakes for each lane in which there is more.
 *
 * [SEARCH-3] A waker of one lane that counted as a searcher in d, and found
 * none to claim in e, may have been relied on for another lane, whose other
 * classes were then not asked. So it counts back, fences, and goes on for every
 * lane of that class in which it sees work: a thread that relied on it pushed
 * before.
 *
 * [PARK-1] as in queue/parker.h.
 *
 * Source: docs/decisions/waking.md, "While one worker searches, new work wakes
 * none".
 */
#ifndef PIN_WORKER_WAKE_H
#define PIN_WORKER_WAKE_H

#include "runtime/base/check.h"
#include "runtime/worker/state.h"

/* ---- runnable work ---- */

/*
 * Runnable work visible to other workers, per lane: in the queues that all
 * share and in workers' own. Results are hints unless read after a full fence.
 */

/* Whether something waits in the queue of a lane that all share. */
static inline bool pin_runnable_has_lane(const struct pin_shared *shared, uint32_t lane)
{
	PIN_DCHECK(lane < PIN_LANES);
	return lane == PINION_LANE_NORMAL ? !pin_injector_is_empty(&shared->injector)
					  : !pin_lane_queue_is_empty(&shared->lanes[lane]);
}

/*
 * Whether something waits in those of the lanes that the worker serves. The
 * first push of a task that is not normal sets PIN_SHARED_LANES before its
 * fence, so a worker that parks sees it after its own: [PARK-1].
 */
static inline bool pin_runnable_has_own_lanes(const struct pin_worker *worker)
{
	if (!pin_shared_has_lanes(worker->shared)) { /* [PARK-1] */
		return !pin_injector_is_empty(&worker->shared->injector);
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (pin_worker_serves(worker, lane) &&
			pin_runnable_has_lane(worker->shared, lane)) {
			return true;
		}
	}
	return false;
}

/* Whether something waits in some worker's own queue, which is of normal. */
static inline bool pin_runnable_has_queued(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (pin_deque_count(&shared->workers[i].deque) > 0) {
			return true;
		}
	}
	return false;
}

/*
 * An upper bound of unfinished work, of all that was ever given to the runtime:
 * finished work is counted first. [END-1]
 */
static inline uint64_t pin_runnable_count_left(const struct pin_shared *shared)
{
	uint64_t over = 0;
	uint64_t admitted = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		over += pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled);
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		admitted += pin_meter_read(&meter->tasks_spawned) +
			pin_meter_read(&meter->requests_submitted);
	}
	admitted += pin_gate_admitted(&shared->gate);
	PIN_DCHECK(admitted >= over); /* [END-1] rests on it */
	return admitted - over;
}

/* ---- waking ---- */

/*
 * To be called after work was made visible; `waker` is the calling worker or
 * NULL. At most one system call.
 */
void pin_wake_one(struct pin_shared *shared, struct pin_worker *waker);

/* That is for the normal lane; this for any. */
void pin_wake_lane(struct pin_shared *shared, struct pin_worker *waker, enum pinion_lane lane);

/* Whether there is a worker to wake; a guess, unless after a fence. */
static inline bool pin_wake_sees_sleeper(const struct pin_worker_class *worker_class)
{
	return !pin_idle_is_empty(&worker_class->parked[PIN_PARKED_FUTEX]) || /* [PARK-1] */
		!pin_idle_is_empty(&worker_class->parked[PIN_PARKED_RING]);   /* [PARK-1] */
}

/* The same for any worker that serves the normal lane. */
static inline bool pin_wake_sees_any_sleeper(const struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->class_count; i++) {
		const struct pin_worker_class *worker_class = &shared->classes[i];

		if ((worker_class->order.mask & PIN_LANE_BIT(PINION_LANE_NORMAL)) != 0 &&
			pin_wake_sees_sleeper(worker_class)) {
			return true;
		}
	}
	return false;
}

/*
 * Ends the sleep of a worker after a push to its inbox; pushes to a worker that
 * has left go to the fallback worker.
 */
void pin_wake_worker(struct pin_worker *target, struct pin_worker *waker);

/*
 * Moves the inbox of a worker that is OUT, and its external submissions, to the
 * fallback worker; its cancelled timers to any. Any thread; waits for another
 * that is moving posted requests.
 */
void pin_wake_forward(struct pin_worker *gone, struct pin_worker *waker);

/*
 * A sleeping worker of the class, or NULL; a guess. One with nothing in flight
 * comes first.
 */
struct pin_worker *pin_wake_find_sleeper(
	const struct pin_shared *shared, const struct pin_worker_class *worker_class);

/* A sleeping worker of its class with nothing in flight, or NULL; a guess. */
struct pin_worker *pin_wake_find_free(const struct pin_worker *worker);

void pin_wake_all(struct pin_shared *shared);

/* Wakes threads that wait for the end of all (`has_ended`, which is set). */
void pin_wake_destroy_waiters(struct pin_shared *shared);

/* False: enough of them search already. */
bool pin_search_begin(struct pin_worker *worker);

/* Found something: the last searcher wakes the next. */
void pin_search_succeed(struct pin_worker *worker);

/* Step 2. */
void pin_search_give_up(struct pin_worker *worker);

/* It saw work in step 4. */
void pin_search_resume(struct pin_worker *worker);

/* ---- helping other lanes ---- */

/*
 * Assistance: a worker whose own lanes are empty takes one task of another
 * lane, as long as enough of its worker class stay free for their own.
 *
 * `assist = idle` turns it on. A class counts its free workers, which have
 * nothing to run, awake or asleep. A worker that would assist takes itself out
 * of that count by compare-and-swap, and only if `assist_reserve` are left; a
 * worker that checks its own lanes takes itself out without asking, and comes
 * back when there was nothing. So if two would assist at once and one has to
 * stay, only one does, and assisting never leaves less than the reserve.
 *
 * [ASSIST-1] push, fence, look at `free_count` and for sleepers; come back to
 * it, fence, look for others' work. One sees the other, as in [PARK-1]; so work
 * that a free worker may assist with does not wait while it sleeps.
 *
 * Assisting is for tasks in the queues that all share only: tasks that a worker
 * has queued for itself are its worker class's.
 *
 * Called by the worker itself, unless said otherwise.
 */

static inline bool pin_assist_is_on(const struct pin_shared *shared)
{
	return shared->tuning.assist == PINION_ASSIST_IDLE;
}

/*
 * Whether one more of the class may assist now; a guess, unless after a fence.
 */
static inline bool pin_assist_has_room(
	const struct pin_shared *shared, const struct pin_worker_class *worker_class)
{
	return pin_load_acquire_u32(&worker_class->free_count) > /* [ASSIST-1] */
		shared->tuning.assist_reserve;
}

/* Marks the worker idle. Idempotent. */
void pin_assist_enter(struct pin_worker *worker);

/* The worker may have something to run. Idempotent. */
void pin_assist_leave(struct pin_worker *worker);

/* Takes it out to assist; false: it has to stay. */
bool pin_assist_try_leave(struct pin_worker *worker);

/* Whether it should not sleep; after its fence. */
bool pin_assist_sees_work(const struct pin_worker *worker);

#endif
