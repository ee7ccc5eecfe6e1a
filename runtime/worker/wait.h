/* SPDX-License-Identifier: MIT */
/*
 * Waits between the worker that begins them, the clock, and the threads that
 * serve or cancel them (queue/wait_queue.h).
 *
 * A wait belongs to the worker that began it: it is in that worker's list and,
 * with a deadline, on its wheel. The thread that takes it out of the queue of
 * waiters ends it, so it ends once:
 *
 *     served      by any thread, of any runtime: into the worker's inbox
 *     cancelled   by any thread, in the same way
 *     timed out   by the worker, as its wheel says
 *     stopped     by the worker, which goes through its list
 *
 * The inbox brings a message: the worker takes the wait off list and wheel,
 * makes its result, and then runs its task. In the worker's ready list it is a
 * task like any other.
 *
 * A wait is counted as a task spawned when it begins, as a task run at its end,
 * so the end of a runtime waits for it. A thread of another runtime, or of
 * none, that puts it into the inbox goes on to wake the worker. Meanwhile the
 * worker may run it, and it may be the runtime's last task. So such a thread is
 * counted as an **outside caller** until it has woken the worker, and the
 * workers are freed when no outside caller is left.
 *
 * [WAIT-3] an outside caller leaves (RMW, release half) -> the freeing thread
 * (load acquire): no caller touches anything of the workers any more.
 *
 * A cancel may come at any time, also while the call that begins the wait has
 * not returned, or not even been made. It goes by the queue's address alone,
 * which the worker stores when the wait is ready to be ended by others and
 * takes back before its task runs.
 *
 * [WAIT-4] the worker fills in the wait, then stores the address (release) -> a
 * canceller loads it (acquire): it finds the queue's lock and the waiter's
 * place as they are. Without, it could take the lock of a queue whose beginning
 * it has not seen, or read a place that is just being written.
 */
#ifndef PIN_WORKER_WAIT_H
#define PIN_WORKER_WAIT_H

#include "runtime/queue/wait_queue.h"
#include "runtime/worker/state.h"

#include <pinion/wait.h>

/*
 * Makes the result of a wait that was served, on its worker, before its task
 * runs: `target` is what the wait was begun with. Not called for other ends.
 */
typedef int32_t (*pin_wait_finish_fn)(void *target, const struct pin_waiters_value *value);

/* What a wait is for. */
struct pin_wait_aim {
	struct pin_waiters *waiters;
	uint64_t demand;
	pin_wait_finish_fn finish; /* NULL: the result is 0 */
	void *target;
};

/*
 * Begins a wait on `worker`, the calling one. Whatever happens then, its task
 * is run. -EINVAL, -EBUSY, -ESHUTDOWN: it was not begun.
 */
int pin_wait_begin(
	struct pin_worker *worker, struct pinion_wait *wait, const struct pin_wait_aim *aim);

/* Any thread. -EALREADY. */
int pin_wait_cancel(struct pinion_wait *wait);

/* Whether `task` is a wait's message rather than a task to be run. */
bool pin_wait_is_message(const struct pinion_task *task);

/* On its worker: the message has come; its task is to be run now. */
void pin_wait_take(struct pin_worker *worker, struct pinion_task *task);

/* On its worker: that has come. */
void pin_wait_expire(struct pin_worker *worker, struct pin_timer *timer);

/* On the worker, as its runtime stops: ends all that it has. */
void pin_wait_cancel_all(struct pin_worker *worker);

/*
 * When PIN_SHARED_STOPPING is set: ends all waits for a buffer of the runtime's
 * pools, wherever they are.
 */
void pin_wait_stop_pools(struct pin_shared *shared);

/* Before the workers are freed: until no outside caller is left. */
void pin_wait_for_callers(struct pin_shared *shared);

#endif
