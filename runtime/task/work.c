/* SPDX-License-Identifier: MIT */
/*
 * Work items: a task that may be woken any number of times and runs once for
 * one or more wakes, never twice at once.
 *
 * Any thread wakes and cancels; a worker runs. The table of steps has every
 * state and event, and one function makes all changes.
 *
 * Invariant: a wake that comes while the item runs makes it run again, so none
 * is lost ([WORK-1]).
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/task/entry.h"
#include "runtime/task/internal.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <string.h>

/* ---- states ---- */

/* A step that is not named cannot happen: PIN_WORK_NONE. */
static const enum pin_work_state steps[PIN_WORK_STATES][PIN_WORK_EVENTS] = {
	[PIN_WORK_IDLE][PIN_WORK_WAKE] = PIN_WORK_SCHEDULED,
	[PIN_WORK_IDLE][PIN_WORK_CANCEL] = PIN_WORK_ENDED,

	[PIN_WORK_SCHEDULED][PIN_WORK_WAKE] = PIN_WORK_SCHEDULED,
	[PIN_WORK_SCHEDULED][PIN_WORK_CANCEL] = PIN_WORK_CANCELLED,
	[PIN_WORK_SCHEDULED][PIN_WORK_ENTER] = PIN_WORK_RUNNING,
	[PIN_WORK_SCHEDULED][PIN_WORK_STOP] = PIN_WORK_ENDED,

	[PIN_WORK_CANCELLED][PIN_WORK_WAKE] = PIN_WORK_CANCELLED,
	[PIN_WORK_CANCELLED][PIN_WORK_CANCEL] = PIN_WORK_CANCELLED,
	[PIN_WORK_CANCELLED][PIN_WORK_ENTER] = PIN_WORK_ENDED,
	[PIN_WORK_CANCELLED][PIN_WORK_STOP] = PIN_WORK_ENDED,

	[PIN_WORK_RUNNING][PIN_WORK_WAKE] = PIN_WORK_NOTIFIED,
	[PIN_WORK_RUNNING][PIN_WORK_CANCEL] = PIN_WORK_RUNNING_CANCELLED,
	[PIN_WORK_RUNNING][PIN_WORK_IS_IDLE] = PIN_WORK_IDLE,
	[PIN_WORK_RUNNING][PIN_WORK_IS_BUSY] = PIN_WORK_SCHEDULED,
	[PIN_WORK_RUNNING][PIN_WORK_IS_DONE] = PIN_WORK_ENDED,

	[PIN_WORK_NOTIFIED][PIN_WORK_WAKE] = PIN_WORK_NOTIFIED,
	[PIN_WORK_NOTIFIED][PIN_WORK_CANCEL] = PIN_WORK_RUNNING_CANCELLED,
	[PIN_WORK_NOTIFIED][PIN_WORK_IS_IDLE] = PIN_WORK_SCHEDULED,
	[PIN_WORK_NOTIFIED][PIN_WORK_IS_BUSY] = PIN_WORK_SCHEDULED,
	[PIN_WORK_NOTIFIED][PIN_WORK_IS_DONE] = PIN_WORK_ENDED,

	[PIN_WORK_RUNNING_CANCELLED][PIN_WORK_WAKE] = PIN_WORK_RUNNING_CANCELLED,
	[PIN_WORK_RUNNING_CANCELLED][PIN_WORK_CANCEL] = PIN_WORK_RUNNING_CANCELLED,
	[PIN_WORK_RUNNING_CANCELLED][PIN_WORK_IS_IDLE] = PIN_WORK_ENDED,
	[PIN_WORK_RUNNING_CANCELLED][PIN_WORK_IS_BUSY] = PIN_WORK_ENDED,
	[PIN_WORK_RUNNING_CANCELLED][PIN_WORK_IS_DONE] = PIN_WORK_ENDED,

	[PIN_WORK_ENDED][PIN_WORK_WAKE] = PIN_WORK_ENDED,
	[PIN_WORK_ENDED][PIN_WORK_CANCEL] = PIN_WORK_ENDED,
};

enum pin_work_state pin_work_next(enum pin_work_state state, enum pin_work_event event)
{
	PIN_DCHECK(state < PIN_WORK_STATES && event < PIN_WORK_EVENTS);
	return steps[state][event];
}

static struct pin_atomic_u32 *state_of(struct pinion_work *work)
{
	struct pin_work_word *word = (void *)work->private_;

	return &word->state;
}

/* Of the worker that calls; a thread outside has none. */
static const struct pin_log *log_of_caller(void)
{
	const struct pin_worker *worker = pin_worker_current();

	return worker == NULL ? NULL : &worker->shared->log;
}

/*
 * Makes the step that `event` is if the state is *state. False: it is another,
 * which is in *state now.
 */
static bool change(struct pinion_work *work, uint32_t *state, enum pin_work_event event)
{
	enum pin_work_state next;

	if (PIN_UNLIKELY(*state >= PIN_WORK_STATES)) {
		pin_check_misused(log_of_caller(),
			"a pinion_work in state %u, which there is not: call pinion_work_init() "
			"first, and leave its memory alone until it has ended",
			*state);
	}
	next = pin_work_next((enum pin_work_state) * state, event);
	if (PIN_UNLIKELY(next == PIN_WORK_NONE)) {
		pin_check_misused(log_of_caller(),
			"a pinion_work in state %u cannot go on: it was initialised again, or its "
			"memory used for something else, before it had ended",
			*state);
	}
	/* Invariant 3: a work item that has ended stays so. */
	PIN_DCHECK(*state != PIN_WORK_ENDED || next == PIN_WORK_ENDED);
	return pin_cas_acq_rel_u32(state_of(work), state, next); /* [WORK-1] [WORK-2] */
}

/* The same, until the step is made; returns the state before. */
static enum pin_work_state change_from(
	struct pinion_work *work, enum pin_work_state likely, enum pin_work_event event)
{
	uint32_t state = likely;

	PIN_DCHECK(pin_work_next(likely, event) != PIN_WORK_NONE);
	while (!change(work, &state, event)) {
	}
	PIN_DCHECK(state > PIN_WORK_NONE && state < PIN_WORK_STATES);
	return (enum pin_work_state)state;
}

/* ---- on its worker ---- */

static int run_work(struct pinion_task *task);

/* The struct may be gone afterwards. */
static void end_work(struct pinion_work *work, int result)
{
	PIN_DCHECK(result <= 0 && work->task.run == run_work);
	if (work->end != NULL) {
		work->end(work, result);
	}
}

/*
 * After a run. Unless this makes the step into ENDED the struct is another's
 * from then on: a wake may have it run, and end, on another worker.
 */
static void leave(struct pinion_work *work, enum pin_work_event event, int result)
{
	enum pin_work_state before = change_from(work, PIN_WORK_RUNNING, event); /* [WORK-2] */

	PIN_DCHECK(before == PIN_WORK_RUNNING || before == PIN_WORK_NOTIFIED ||
		before == PIN_WORK_RUNNING_CANCELLED); /* invariant 2 */
	PIN_DCHECK(event == PIN_WORK_IS_DONE || result == 0);
	switch (pin_work_next(before, event)) {
	case PIN_WORK_SCHEDULED:
		pin_worker_respawn(pin_worker_current(), &work->task);
		break;
	case PIN_WORK_ENDED:
		end_work(work, event == PIN_WORK_IS_DONE ? result : -ECANCELED);
		break;
	case PIN_WORK_NONE:
	case PIN_WORK_IDLE:
	case PIN_WORK_CANCELLED:
	case PIN_WORK_RUNNING:
	case PIN_WORK_NOTIFIED:
	case PIN_WORK_RUNNING_CANCELLED:
	case PIN_WORK_STATES:
		break;
	}
}

/* When a run is unwound; NULL when it has returned. */
static void abandon(struct pinion_work *const *running)
{
	if (*running != NULL) {
		leave(*running, PIN_WORK_IS_DONE, pin_fault_error());
	}
}

static int run_own(struct pinion_work *work)
{
	__attribute__((cleanup(abandon))) struct pinion_work *running = work;
	int next;

	pin_fault_name((pin_fault_fn)work->run);
	next = work->run(work); /* [WORK-1] */
	running = NULL;
	return next;
}

/*
 * Once for each turn; what `run` returns chooses the next state. A wake that
 * came meanwhile has already changed it to "again".
 */
static int run_work(struct pinion_task *task)
{
	struct pinion_work *work = PIN_CONTAINER_OF(task, struct pinion_work, task);
	enum pin_work_state before = change_from(work, PIN_WORK_SCHEDULED, PIN_WORK_ENTER);
	int next;

	/* Invariant 1: its task was in a queue. */
	PIN_DCHECK(before == PIN_WORK_SCHEDULED || before == PIN_WORK_CANCELLED);
	if (before == PIN_WORK_CANCELLED) {
		end_work(work, -ECANCELED);
		return 0;
	}
	next = run_own(work);
	if (PIN_UNLIKELY(next > PINION_WORK_DONE)) {
		pin_check_misused(&pin_worker_current()->shared->log,
			"the run of a pinion_work returned %d: it returns a negative errno, or "
			"PINION_WORK_WAIT, PINION_WORK_AGAIN or PINION_WORK_DONE",
			next);
	}
	if (next == PINION_WORK_WAIT) {
		leave(work, PIN_WORK_IS_IDLE, 0);
	} else if (next == PINION_WORK_AGAIN) {
		leave(work, PIN_WORK_IS_BUSY, 0);
	} else {
		leave(work, PIN_WORK_IS_DONE, next < 0 ? next : 0);
	}
	return next < 0 ? next : 0;
}

static void stop_work(struct pinion_task *task)
{
	struct pinion_work *work = PIN_CONTAINER_OF(task, struct pinion_work, task);
	enum pin_work_state before = change_from(work, PIN_WORK_SCHEDULED, PIN_WORK_STOP);

	PIN_DCHECK(before == PIN_WORK_SCHEDULED || before == PIN_WORK_CANCELLED);
	end_work(work, -ECANCELED);
}

/* ---- from anywhere ---- */

void pinion_work_init(struct pinion_work *work, pinion_work_fn run, pinion_work_end_fn end)
{
	static const struct pin_work_word idle = {.state = {PIN_WORK_IDLE}};

	*work = (struct pinion_work){
		.task = {.run = run_work, .cancel = stop_work},
		.run = run,
		.end = end,
	};
	/* No order, no atomic store: no other thread uses the struct yet. */
	memcpy(work->private_, &idle, sizeof(idle));
}

/* No run begins any more. */
static bool is_cancelled(enum pin_work_state state)
{
	return state == PIN_WORK_CANCELLED || state == PIN_WORK_RUNNING_CANCELLED ||
		state == PIN_WORK_ENDED;
}

/*
 * Reserves the admission before the state changes: a refusal afterwards would
 * break the promise that other threads rely on.
 */
int pinion_work_wake(struct pinion_runtime *runtime, struct pinion_work *work)
{
	bool is_reserved = false;
	uint32_t state;

	if (work->run == NULL) {
		return -EINVAL;
	}
	/* Relaxed: a first guess, which change() compares. */
	state = pin_load_relaxed_u32(state_of(work));
	do {
		if (state == PIN_WORK_IDLE && !is_reserved) {
			int rc = pin_runtime_reserve(runtime);

			if (rc < 0) {
				return rc;
			}
			is_reserved = true;
		}
	} while (!change(work, &state, PIN_WORK_WAKE));	   /* [WORK-1] */
	PIN_DCHECK(state != PIN_WORK_IDLE || is_reserved); /* no refusal from here on */
	if (state == PIN_WORK_IDLE) {
		/* The last touch: it may run and end at once. */
		pin_runtime_spawn_reserved(runtime, &work->task);
		return 0;
	}
	if (is_reserved) {
		pin_runtime_undo(runtime);
	}
	return is_cancelled((enum pin_work_state)state) ? -ECANCELED : 0;
}

int pinion_work_cancel(struct pinion_work *work)
{
	enum pin_work_state before =
		change_from(work, PIN_WORK_IDLE, PIN_WORK_CANCEL); /* [WORK-2] */

	if (is_cancelled(before)) {
		return -EALREADY;
	}
	return before == PIN_WORK_IDLE ? PINION_WORK_ENDED : PINION_WORK_END_FOLLOWS;
}

bool pinion_work_is_cancelled(const struct pinion_work *work)
{
	const struct pin_work_word *word = (const void *)work->private_;

	return is_cancelled((enum pin_work_state)pin_load_acquire_u32(&word->state));
}
