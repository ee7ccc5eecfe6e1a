/* SPDX-License-Identifier: MIT */
/*
 * The counts, the state and the times of a worker, taken from its fields and
 * handed to observe/, which shows them: in snapshots, in histograms, and on the
 * metrics page (observe/metrics_page.h).
 *
 * On the worker, unless said otherwise.
 */
#ifndef PIN_WORKER_METRICS_H
#define PIN_WORKER_METRICS_H

#include "runtime/base/check.h"
#include "runtime/observe/metrics_page.h"
#include "runtime/worker/state.h"

/* ---- snapshots ---- */

/*
 * The worker's counts of now. Between two tasks of the worker they agree with
 * each other; else those that are derived may be too small. Any thread.
 */
void pin_metrics_collect(const struct pin_worker *worker, struct pinion_worker_stats *out_stats);

/* Where the worker is and for how long it has been running. Any thread. */
void pin_metrics_observe(const struct pin_worker *worker, struct pinion_worker_info *out_info);

/* ---- the page ---- */

/*
 * Before any worker starts, by the runtime's creator. -ENOMEM. A page that
 * others cannot see is no error: the log says why.
 */
int pin_metrics_start(struct pin_shared *shared);

/* When all workers are gone. Any thread. */
void pin_metrics_stop(struct pin_shared *shared);

/* Copies the worker's counts, and moves its times. */
void pin_metrics_publish(struct pin_worker *worker);

/*
 * Copies the runtime's values, by a thread that is none of its workers and has
 * news of stalls or pools, as the workers may all sleep. False: another thread
 * copies them at this moment, perhaps without these.
 */
bool pin_metrics_publish_outside(struct pin_shared *shared, uint64_t now_ns);

/* The last time, when it leaves its runtime; then waits for the lock. */
void pin_metrics_publish_last(struct pin_worker *worker);

static inline bool pin_metrics_is_due(const struct pin_worker *worker)
{
	return PIN_UNLIKELY(worker->now_ns >= worker->observed.publish_ns);
}

/*
 * About to sleep. True: it publishes before that; it has not done so within a
 * millisecond.
 */
bool pin_metrics_begin_park(struct pin_worker *worker);

/* Counts that grow without it are not worth a wake. */
static inline uint64_t pin_metrics_work(const struct pin_worker *worker)
{
	/* Relaxed: its own. */
	return pin_load_relaxed_u64(&worker->meter.tasks_run) +
		pin_load_relaxed_u64(&worker->meter.tasks_cancelled) +
		pin_load_relaxed_u64(&worker->meter.requests_completed);
}

/* When it wakes to publish its unpublished work, or never. */
static inline uint64_t pin_metrics_next_ns(const struct pin_worker *worker)
{
	return pin_metrics_work(worker) == worker->observed.published_work
		? PIN_NO_DEADLINE
		: worker->observed.publish_ns;
}

/* Of a worker that falls asleep, also where it publishes nothing before. */
void pin_metrics_show_in_flight(const struct pin_worker *worker);

/*
 * It has found work after a time without, and has read the clock: its next task
 * has not lasted since the worker fell asleep.
 */
static inline void pin_metrics_show_clock(const struct pin_worker *worker)
{
	if (worker->observed.slot != NULL) {
		/* Relaxed: a figure by itself. */
		pin_store_relaxed_u64(&worker->observed.slot[PIN_SLOT_CLOCK], worker->now_ns);
	}
}

/* It falls asleep, or has got up. */
static inline void pin_metrics_set_place(struct pin_worker *worker, enum pinion_worker_place place)
{
	/* First: the place publishes it. */
	if (place != PINION_WORKER_RUNNING && worker->observed.slot != NULL) {
		pin_metrics_show_in_flight(worker);
	}
	pin_metrics_page_set_place(&worker->observed, place);
}

/* ---- times ---- */

/* A time of no lane. Where nothing is set up it does nothing. */
static inline void pin_metrics_record(
	struct pin_worker *worker, enum pinion_timing timing, uint64_t value_ns)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_timings_record(
		worker->observed.timings, pin_timing_of(timing, PINION_LANE_NORMAL), value_ns, 1);
}

void pin_metrics_note_batch_slowly(struct pin_worker *worker, bool has_more);

/* A batch was taken from the shared queue of the normal lane. */
static inline void pin_metrics_note_batch(struct pin_worker *worker, bool has_more)
{
	const struct pin_shared *shared = worker->shared;

	/*
	 * Nothing where no metrics are kept, as in models. Relaxed: its own
	 * count, or another worker's, which that sees to.
	 */
	if (shared->metrics != NULL &&
		PIN_UNLIKELY(pin_lane_wait_is_batch_due(&shared->lane_waits[PINION_LANE_NORMAL],
			pin_load_relaxed_u64(&shared->injector.popped), has_more))) {
		pin_metrics_note_batch_slowly(worker, has_more);
	}
}

/* A series of tasks that took so long together, up to the worker's `now_ns`. */
void pin_metrics_note_series_slowly(struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks);

static inline void pin_metrics_note_series(
	struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	if (pin_timings_is_due(&worker->observed, elapsed_ns, tasks)) {
		pin_metrics_note_series_slowly(worker, elapsed_ns, tasks);
	}
}

/*
 * A read or write that took so long in the device, whose index is given, and is
 * about to be handed over: its task records when it is entered.
 */
void pin_metrics_note_request(struct pin_worker *worker, uint32_t device_index,
	struct pinion_request *request, uint64_t now_ns, uint64_t took_ns);

/* Entered in place of such a task's function, which it then calls. */
int pin_metrics_run_ready(struct pinion_task *task);

/* A waker, before it ends the sleep of `target`. Any thread. */
static inline void pin_metrics_stamp_wake(struct pin_worker *target)
{
	if (target->observed.timings != NULL) {
		/* Relaxed: a figure. */
		pin_store_relaxed_u64(&target->notified_ns, target->shared->host->now_ns());
	}
}

static inline void pin_metrics_end_park(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	if (worker->observed.timings != NULL) {
		worker->observed.woken_ns = pin_load_relaxed_u64(&worker->notified_ns);
		pin_store_relaxed_u64(&worker->notified_ns, 0);
	}
}

void pin_metrics_note_wake_slowly(struct pin_worker *worker);

/* The clock was read for a turn. */
static inline void pin_metrics_note_wake(struct pin_worker *worker)
{
	if (PIN_UNLIKELY(worker->observed.woken_ns != 0)) {
		pin_metrics_note_wake_slowly(worker);
	}
}

#endif
