/* SPDX-License-Identifier: MIT */
/*
 * A driven worker: the embedder's thread runs its steps, call by call, and
 * sleeps in a loop of its own on the worker's wake set.
 *
 * Its sleep is that of any worker, cut in two. A call that finds nothing to run
 * goes to sleep by pin_park(): it publishes, fences, looks again, sets the
 * timer of the wake set, and returns. The next call gets up by
 * pin_park_get_up(). Between the two other threads find a worker that sleeps in
 * its ring: they claim it, leave their token and ring the doorbell, which makes
 * the wake set readable. So [PARK-1] and [PARK-2] of queue/parker.h hold as
 * they are, and a thread that adds work makes a system call only where the
 * owner is not in a call.
 *
 * The doorbell has to be made unreadable again:
 *
 *     owner, in a call                   waker, or the kernel
 *     1  state := RUNNING                a  push work, or post a completion
 *     2  clear the doorbell              b  raise the doorbell
 *     3  look at every source
 *     4  park, or go on
 *
 * [DRIVEN-1] b against 2: both are under the lock of the eventfd. If 2 takes
 * the token of b it comes after a, which 3 then sees. If it comes before b the
 * token stays, and ends the next sleep, for nothing at worst. A clear after 3
 * would take a token whose cause nothing looks for.
 *
 * A call that returns while the worker is awake, as it has run what it may,
 * raises the doorbell itself. So between two calls the wake set is readable, or
 * the worker is parked.
 *
 * Invariants: only the owner runs it, and not in a worker's code; a task may
 * unwind a call's steps, so what has to survive that is in `driven`.
 */
#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/pool.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum {
	/*
	 * Steps in a row that ran no task, nor put the worker to sleep, after
	 * which a call that does not wait returns. One or two are usual: after
	 * a request that came from outside, or completions. More are polls of a
	 * device.
	 */
	EMPTY_STEPS_MAX = 8,
};

/* Ended, by `run` or by `cancel`. */
static uint64_t ended_tasks(const struct pin_worker *worker)
{
	/* Relaxed: its own. */
	return pin_load_relaxed_u64(&worker->meter.tasks_run) +
		pin_load_relaxed_u64(&worker->meter.tasks_cancelled);
}

static uint64_t ended_in_call(const struct pin_worker *worker)
{
	return ended_tasks(worker) - worker->driven.ended_before;
}

/* From here on the thread is the worker. */
static void enter(struct pin_worker *worker)
{
	PIN_CHECK(pin_worker_self == NULL);
	PIN_DCHECK(pin_driven_is_owner(worker));
	pin_worker_self = worker;
	/* Which magazines of pools are its is another matter now. */
	pin_recent_forget();
	/* The clock has gone on. */
	worker->is_on_time = false;
}

static void leave(struct pin_worker *worker)
{
	PIN_DCHECK(pin_worker_is_current(worker));
	pin_worker_self = NULL;
	pin_recent_forget();
}

bool pin_driven_is_owner(const struct pin_worker *worker)
{
	PIN_DCHECK(worker->is_driven);
	return pthread_equal(worker->driven.owner, pthread_self()) != 0;
}

int pin_driven_start(struct pin_worker *worker)
{
	const struct pin_log *log = &worker->shared->log;
	struct pin_driven *driven = &worker->driven;
	struct pin_thread *record = pin_thread_own();
	int rc = pin_wake_set_open(&driven->wake_set);

	PIN_CHECK(worker->is_driven && worker->index == 0);
	if (rc < 0) {
		pin_log(log, PINION_LOG_ERROR, "no descriptor for an embedder's loop: %s%s",
			strerror(-rc), rc == -EMFILE ? ": raise `ulimit -n`" : "");
		return rc;
	}
	if (record == NULL) {
		return -ENOMEM;
	}
	driven->owner = pthread_self();
	pin_worker_begin(worker, record);
	if (worker->start_error != 0) {
		pin_worker_end(worker);
		return worker->start_error;
	}
	pin_worker_open(worker);
	/* It is awake: its first call looks for what the hooks have spawned. */
	pin_ring_doorbell(&worker->ring);
	leave(worker);
	return 0;
}

void pin_driven_fini(struct pin_worker *worker)
{
	if (worker->is_driven) {
		pin_wake_set_close(&worker->driven.wake_set);
	}
}

/* Asleep, with nothing run yet. False: the call is over. */
static bool await(struct pin_worker *worker)
{
	struct pin_driven *driven = &worker->driven;

	PIN_DCHECK(driven->is_parked);
	if (driven->deadline_ns == 0 ||
		!pin_wake_set_wait(&driven->wake_set, worker->shared->host, driven->deadline_ns)) {
		return false;
	}
	pin_park_get_up(worker);
	return true;
}

static bool is_late(const struct pin_worker *worker)
{
	uint64_t deadline_ns = worker->driven.deadline_ns;

	return deadline_ns != PIN_NO_DEADLINE &&
		(deadline_ns == 0 || worker->shared->host->now_ns() >= deadline_ns);
}

/* After a step. */
static bool goes_on(struct pin_worker *worker)
{
	struct pin_driven *driven = &worker->driven;
	uint64_t ended = ended_tasks(worker);

	driven->empty_steps = ended == driven->ended_last ? driven->empty_steps + 1 : 0;
	driven->ended_last = ended;
	if (driven->has_exited || ended_in_call(worker) >= driven->max_tasks) {
		return false;
	}
	if (driven->is_parked) {
		return ended_in_call(worker) == 0 && await(worker);
	}
	return driven->empty_steps < EMPTY_STEPS_MAX ||
		(ended_in_call(worker) == 0 && !is_late(worker));
}

/* The turn ends with the last task that the call may run. */
static void set_budget(struct pin_worker *worker)
{
	uint32_t left = worker->driven.max_tasks - (uint32_t)ended_in_call(worker);

	PIN_DCHECK(ended_in_call(worker) < worker->driven.max_tasks);
	worker->budget_polls = pin_min_u32(worker->shared->tuning.budget_polls, left);
}

/* In the guard, as run_steps() of thread.c. */
static void run_call(void *arg)
{
	struct pin_worker *worker = arg;
	struct pin_driven *driven = &worker->driven;
	bool has_more = true;

	PIN_DCHECK(pin_worker_of_thread() == worker && worker->guard != NULL);
	if (worker->unwind_result != PIN_UNWIND_RETURNED) {
		pin_fault_recover(worker);
		pin_worker_end_loop(worker);
		has_more = goes_on(worker);
	}
	while (has_more && !driven->has_exited) {
		set_budget(worker);
		driven->has_exited = pin_worker_step(worker) == PIN_STEP_EXIT;
		has_more = goes_on(worker);
	}
	if (driven->has_exited) {
		pin_hooks_stop(worker);
	}
}

/* A thread that a task has ended by pthread_exit() goes on as it was. */
static void call_without_cancel(struct pin_worker *worker, uint32_t max_tasks, uint64_t deadline_ns)
{
	struct pin_driven *driven = &worker->driven;

	PIN_DCHECK(!driven->has_left && max_tasks > 0);
	enter(worker);
	if (driven->is_parked) {
		pin_park_get_up(worker);
	} else {
		pin_ring_clear_doorbell(&worker->ring); /* [DRIVEN-1] */
	}
	driven->max_tasks = max_tasks;
	driven->deadline_ns = deadline_ns;
	driven->empty_steps = 0;
	driven->ended_before = ended_tasks(worker);
	driven->ended_last = driven->ended_before;
	pin_worker_guard(worker, &driven->guard, run_call);
	if (!driven->is_parked) {
		pin_ring_doorbell(&worker->ring);
	}
	if (!driven->has_exited) {
		leave(worker);
		return;
	}
	pin_worker_end(worker);
	driven->has_left = true;
}

/*
 * A cancel of the owner waits: halfway it would leave a worker that nobody can
 * end.
 */
static void call(struct pin_worker *worker, uint32_t max_tasks, uint64_t deadline_ns)
{
	int cancel_state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	call_without_cancel(worker, max_tasks, deadline_ns);
	pthread_setcancelstate(cancel_state, NULL);
}

int pin_driven_poll(struct pin_worker *worker, uint32_t max_tasks, uint64_t deadline_ns)
{
	const struct pin_driven *driven = &worker->driven;
	uint64_t ended;

	PIN_DCHECK(max_tasks <= INT32_MAX);
	if (driven->has_left) {
		return -ESHUTDOWN;
	}
	call(worker, max_tasks, deadline_ns);
	ended = ended_in_call(worker);
	PIN_DCHECK(ended <= INT32_MAX); /* cancelled timers come on top of `max_tasks` */
	return ended == 0 && driven->has_left ? -ESHUTDOWN : (int)ended;
}

int pin_driven_finish(struct pin_worker *worker, uint64_t deadline_ns)
{
	while (!worker->driven.has_left) {
		call(worker, INT32_MAX, deadline_ns);
		if (!worker->driven.has_left && is_late(worker)) {
			return -ETIME;
		}
	}
	return 0;
}
