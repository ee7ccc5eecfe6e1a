/* SPDX-License-Identifier: MIT */
/*
 * A worker's way to sleep and back: publish, check every source once more,
 * sleep, withdraw.
 *
 * The loop calls pin_park() when neither tasks nor completions nor a search
 * brought work. queue/parker.h and worker/wake.h have the interleavings with a
 * thread that adds work.
 *
 * The end: the gate is closed, and a worker that is about to sleep finds that
 * all that was ever admitted, spawned and submitted has also been run. Reading
 * first every "run" and then every "admitted", with counters that only grow,
 * makes equality proof: nothing was left at the moment between the two. (An
 * admission that is undone was too much while it counted, so it cannot make
 * them equal too early.)
 * [END-1] a worker counts its last task (release), fences, and only then reads
 * the others' counters; of two workers that finish at the same time one comes
 * second and sees all. Without the fence both could miss the other's count.
 * [END-2] it says so in a word (RMW, release) and wakes the sleepers on that; a
 * thread that ends the runtime by a deadline loads the word (acquire) and
 * sleeps while it is not set. Without the wake that sleep would last until the
 * deadline. When it is set there is nothing to wait for but the threads' way
 * out. Of several that find so at the same time exactly one was the first to
 * set it, and does all this; the others just leave.
 *
 * Invariant: between its publication and its sleep a worker checks every source
 * from which it could be asked to run; a new source needs a check in
 * pin_park_has_work().
 */
#include "runtime/base/check.h"
#include "runtime/loop/loop.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/device_stall.h"
#include "runtime/worker/events.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/state.h"
#include "runtime/worker/timer.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

/* But for what others may run as well. */
static bool has_own_work(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	PIN_DCHECK(pin_worker_is_current(worker));
	return (pin_list_bits(&worker->ready) | pin_list_bits(&worker->urgent)) != 0 ||
		!pin_list_is_empty(&worker->posted) ||
		!pin_inbox_is_empty(&worker->timer_cancels) || !pin_lifo_is_empty(&worker->lifo) ||
		pin_deque_count(&worker->deque) > 0 || !pin_inbox_is_empty(&worker->inbox) ||
		!pin_external_is_empty(worker) || pin_remote_reap_has_work(worker) ||
		pin_device_queue_has_news(worker) || /* [DEVICE-1] */
		pin_commands_has_work(worker) || pin_load_acquire_u32(&shared->has_ended) != 0 ||
		pin_load_acquire_u32(&worker->service) != PIN_SERVICE_IN || /* [RETIRE-2] */
		pin_requests_owe_ends(worker);
}

bool pin_park_has_work(const struct pin_worker *worker)
{
	return has_own_work(worker) || pin_runnable_has_own_lanes(worker) ||
		!pin_inbox_is_empty(&worker->shared->timer_inbox);
}

static bool is_quiescent(const struct pin_shared *shared)
{
	return !pin_gate_is_open(&shared->gate) && pin_runnable_count_left(shared) == 0;
}

bool pin_park_look_for_end(struct pin_shared *shared)
{
	if (!is_quiescent(shared)) {
		return false;
	}
	/* Several may find so at the same time: the first sees to all. */
	if (pin_exchange_acq_rel_u32(&shared->has_ended, 1) == 0) { /* [END-2] */
		pin_event_done(shared);
		pin_wake_all(shared);
		pin_wake_destroy_waiters(shared);
	}
	return true;
}

/* Work that it may run, and others as well: what it was relied on for. */
static bool sees_shared_work(const struct pin_worker *worker)
{
	return pin_runnable_has_own_lanes(worker) || pin_search_sees_work(worker) ||
		pin_assist_sees_work(worker);
}

/* What others' queues hold is their searchers' business while there are any. */
static bool may_sleep(const struct pin_worker *worker)
{
	PIN_DCHECK(!worker->is_searching); /* a sleeper is none: [SEARCH-1] */
	if (pin_park_has_work(worker) || pin_assist_sees_work(worker)) {
		return false;
	}
	return pin_load_acquire_u32(&worker->worker_class->searching) != 0 || /* [SEARCH-1] */
		(!pin_search_sees_work(worker) && !pin_search_sees_slot(worker));
}

/* When it has something to do, whatever others do. */
static uint64_t next_due_ns(struct pin_worker *worker)
{
	uint64_t deadline_ns = pin_timer_next_ns(worker);
	uint64_t own_ns;

	pin_remote_reap_enter(worker);
	own_ns = pin_timers_next_ns(&worker->deadlines);
	pin_remote_reap_leave(worker);
	deadline_ns = own_ns < deadline_ns ? own_ns : deadline_ns;
	own_ns = pin_arena_growth_due_ns(worker);
	deadline_ns = own_ns < deadline_ns ? own_ns : deadline_ns;
	own_ns = pin_metrics_next_ns(worker);
	deadline_ns = own_ns < deadline_ns ? own_ns : deadline_ns;
	return worker->tick_ns < deadline_ns ? worker->tick_ns : deadline_ns;
}

static void sleep_in_ring(struct pin_worker *worker, uint64_t deadline_ns)
{
	pin_remote_reap_enter(worker);
	/*
	 * A worker that was just in its ring may have made room there, taken
	 * the doorbell out, or found that its poll has ended: then it is armed
	 * anew with the wait.
	 */
	if (!pin_remote_reap_has_room_for_more(worker) &&
		(!worker->shares_ring || pin_parker_is_parked(&worker->parker))) { /* [REAP-1] */
		if (worker->shares_ring) {
			pin_ring_prepare_wait(&worker->ring);
		}
		pin_ring_wait(&worker->ring, deadline_ns);
	}
	pin_remote_reap_leave(worker);
}

/*
 * Its waker has most likely written these lines, and it writes them next: one
 * after the other they would make a wake between CPUs that stay awake longer.
 */
static void prefetch_news(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	pin_prefetch_write(&shared->injector.newcomers);
	pin_prefetch_write(&worker->worker_class->searching);
	pin_prefetch_write(&shared->injector.lock);
}

void pin_park_sleep_until(struct pin_worker *worker, enum pin_park_state mode, uint64_t deadline_ns)
{
	PIN_DCHECK(mode == PIN_PARK_FUTEX || mode == PIN_PARK_RING);
	pin_event_park(worker, mode, deadline_ns);
	pin_meter_set(&worker->meter.park_until_ns, deadline_ns);
	pin_metrics_set_place(worker,
		mode == PIN_PARK_RING ? PINION_WORKER_PARKED_RING : PINION_WORKER_PARKED_FUTEX);
	if (mode == PIN_PARK_RING) {
		sleep_in_ring(worker, deadline_ns);
	} else {
		pin_parker_sleep(&worker->parker, worker->shared->host, deadline_ns);
	}
	pin_metrics_set_place(worker, PINION_WORKER_RUNNING);
	prefetch_news(worker);
	pin_event_unpark(worker);
}

static struct pin_idle *parked_set(const struct pin_worker *worker, enum pin_park_state mode)
{
	PIN_DCHECK(mode == PIN_PARK_FUTEX || mode == PIN_PARK_RING);
	return &worker->worker_class
			->parked[mode == PIN_PARK_RING ? PIN_PARKED_RING : PIN_PARKED_FUTEX];
}

/*
 * It was not woken, although a waker has claimed it for that, on which others
 * then rely, whatever is left to do; or work waits and no worker searches.
 */
static bool is_forgotten(const struct pin_worker *worker, enum pin_park_state mode)
{
	uint32_t rank = pin_victims_rank(&worker->shared->victims, worker->index);

	if (!pin_parker_is_parked(&worker->parker) || pin_remote_reap_has_work(worker) ||
		pin_commands_has_work(worker)) {
		return false;
	}
	return !pin_idle_holds(parked_set(worker, mode), rank) ||
		(pin_park_has_work(worker) &&
			pin_load_acquire_u32(&worker->worker_class->searching) == 0);
}

/*
 * Most likely a waker comes, which is between its push, its claim and its wake.
 * A sleep that ends for no reason, by a signal say, proves nothing: it goes on.
 * Nor does a sleep that ends for expired work: a worker that gets up for that
 * finds the work without the timeout.
 */
static void await_waker(struct pin_worker *worker, enum pin_park_state mode, uint64_t due_ns)
{
	const struct pin_host *host = worker->shared->host;
	uint64_t now_ns = host->now_ns();
	uint64_t end_ns = now_ns + worker->waker_delay_ns;

	while (now_ns < due_ns && is_forgotten(worker, mode)) {
		if (now_ns >= end_ns) {
			pin_meter_add(&worker->meter.park_timeout_found_work, 1);
			return;
		}
		pin_park_sleep_until(worker, mode, end_ns < due_ns ? end_ns : due_ns);
		now_ns = host->now_ns();
	}
}

static void sleep_in(struct pin_worker *worker, enum pin_park_state mode)
{
	const struct pin_shared *shared = worker->shared;
	uint64_t timeout_ns = (uint64_t)shared->tuning.park_timeout_us * 1000;
	uint64_t due_ns = next_due_ns(worker);
	uint64_t end_ns;

	PIN_DCHECK(!worker->is_searching); /* a sleeper is none: [SEARCH-1] */
	pin_meter_add(
		mode == PIN_PARK_RING ? &worker->meter.parks_ring : &worker->meter.parks_futex, 1);
	if (timeout_ns == 0) {
		pin_park_sleep_until(worker, mode, due_ns);
		return;
	}
	end_ns = shared->host->now_ns() + timeout_ns;
	pin_park_sleep_until(worker, mode, end_ns < due_ns ? end_ns : due_ns);
	await_waker(worker, mode, due_ns);
}

/*
 * Without io_uring a worker sleeps on its futex, or in a poll of what its
 * requests wait for; while it has any that it can carry out it only seems to
 * park, as they are work.
 */
bool pin_park_choose_mode(struct pin_worker *worker, enum pin_park_state *out_mode)
{
	bool may_park;

	pin_remote_reap_enter(worker);
	*out_mode = PIN_PARK_FUTEX;
	may_park = !pin_remote_reap_has_room_for_more(worker);
	pin_device_stall_note_used(worker);
	if (may_park &&
		(worker->is_driven || pin_ring_may_wait(&worker->ring) ||
			pin_commands_is_busy(worker))) {
		*out_mode = PIN_PARK_RING;
		pin_ring_prepare_wait(&worker->ring);
		pin_commands_watch(worker);
	}
	pin_remote_reap_leave(worker);
	return may_park;
}

/*
 * A driven worker's sleep: all that an embedder's loop does until the next
 * call. It seems to sleep in its ring, whose doorbell makes its wake set
 * readable. The watch of a secondary ring has to go out: no wait submits it.
 */
static PIN_APART void lie_down(struct pin_worker *worker)
{
	struct pin_driven *driven = &worker->driven;
	uint64_t due_ns = next_due_ns(worker);

	PIN_DCHECK(!worker->is_searching && !driven->is_parked);
	pin_meter_add(&worker->meter.parks_ring, 1);
	pin_event_park(worker, PIN_PARK_RING, due_ns);
	pin_meter_set(&worker->meter.park_until_ns, due_ns);
	pin_metrics_set_place(worker, PINION_WORKER_PARKED_RING);
	pin_ring_submit(&worker->ring);
	pin_wake_set_arm(&driven->wake_set, due_ns);
	driven->is_parked = true;
}

void pin_park_finish(struct pin_worker *worker)
{
	/* [WATCHDOG-1] [RETIRE-3] */
	worker->rings_due += pin_parker_finish(&worker->parker) ? 1 : 0;
	pin_watchdog_note_awake(worker);
	pin_spawn_note_awake(worker);
	pin_metrics_end_park(worker);
}

/*
 * The hook may take its time. Until then others have relied on this worker to
 * find work they added; work that comes meanwhile is for another worker, and
 * earlier work is searched for as always when it is parked: [SEARCH-1].
 */
static void call_hook(struct pin_worker *worker)
{
	if (PIN_LIKELY(worker->shared->config.before_park == NULL)) {
		return;
	}
	if (worker->is_searching) {
		pin_search_give_up(worker); /* [SEARCH-1] */
	}
	pin_hooks_park(worker);
	PIN_DCHECK(pin_worker_is_current(worker));
}

/* It takes some microseconds, in which others do not rely on it, as above. */
static void publish(struct pin_worker *worker)
{
	if (PIN_LIKELY(!pin_metrics_begin_park(worker))) {
		return;
	}
	if (worker->is_searching) {
		pin_search_give_up(worker); /* [SEARCH-1] */
	}
	pin_metrics_publish(worker);
}

void pin_park_undo(struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	PIN_DCHECK(pin_polled_is_busy(worker));
	pin_stall_note_life(worker);
	if (worker->is_searching) {
		pin_search_give_up(worker);
		pin_fence_seq_cst(); /* [SEARCH-1] */
		if (sees_shared_work(worker)) {
			pin_search_resume(worker); /* [SEARCH-1] */
		}
	}
	if (shared->has_cpu_each) {
		pin_cpu_relax();
	} else {
		shared->host->yield();
	}
}

/* Withdraws, however it comes that it is awake. */
static inline void get_up(struct pin_worker *worker, enum pin_park_state mode, bool has_slept)
{
	uint32_t rank = pin_victims_rank(&worker->shared->victims, worker->index);

	if (!pin_idle_withdraw(parked_set(worker, mode), rank)) {
		/*
		 * The claiming waker has counted it among the searchers
		 * already.
		 */
		PIN_DCHECK(!worker->is_searching);
		worker->is_searching = true;
	} else if (!has_slept && sees_shared_work(worker)) {
		pin_search_resume(worker); /* [SEARCH-1] */
	}
	pin_park_finish(worker);
}

/*
 * The doorbell is cleared when no waker rings it any more, and before anything
 * is looked for: [DRIVEN-1].
 */
void pin_park_get_up(struct pin_worker *worker)
{
	PIN_DCHECK(worker->driven.is_parked);
	worker->driven.is_parked = false;
	pin_metrics_set_place(worker, PINION_WORKER_RUNNING);
	prefetch_news(worker);
	pin_event_unpark(worker);
	get_up(worker, PIN_PARK_RING, true);
	pin_ring_clear_doorbell(&worker->ring); /* [DRIVEN-1] */
}

/*
 * The checks come after the fence and the publication, never before: a waker
 * that saw no sleeper has published its work before that fence.
 */
void pin_park(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	uint32_t rank = pin_victims_rank(&shared->victims, worker->index);
	enum pin_park_state mode;
	bool has_slept = false;
	bool is_first;

	PIN_DCHECK(worker->is_dry);
	call_hook(worker);
	publish(worker);
	if (!pin_park_choose_mode(worker, &mode) || !pin_parker_prepare(&worker->parker, mode)) {
		return;
	}
	is_first = pin_idle_publish(
		parked_set(worker, mode), rank); /* [PARK-1] [SEARCH-1] [ANNOUNCE-1] */
	if (worker->is_searching) {
		pin_search_give_up(worker);
	}
	/* [PARK-1] [END-1] [SEARCH-1] [ASSIST-1] [ANNOUNCE-1] [ANNOUNCE-2] */
	pin_fence_seq_cst();
	if (is_first && shared->announces && pin_worker_serves(worker, PINION_LANE_NORMAL)) {
		pin_spawn_set_announce_all(worker);
	}
	if (!pin_park_look_for_end(shared) && may_sleep(worker)) {
		if (PIN_UNLIKELY(worker->is_driven)) {
			lie_down(worker);
			return;
		}
		sleep_in(worker, mode);
		has_slept = true;
	}
	get_up(worker, mode, has_slept);
}
