/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a task that fails, or does not return at all.
 *
 * A failure is counted, logged with the job's name and its error, and kept if
 * it is the runtime's first. A task that ends by pinion_panic(), pthread_exit()
 * or an exception fails too: its frames are unwound up to the worker's loop
 * (host/unwind.h), which accounts for it here and goes on. Whatever is owed to
 * others when a task ends, by a group, a future, a work item, is done by
 * cleanup attributes in the frames between.
 *
 * Each task costs one store: which function the worker is in.
 *
 * Invariant: wherever users' code is called in the loop, what the loop holds
 * lies in the worker, not in locals of the frames between, which are lost.
 */
#ifndef PIN_WORKER_FAULT_H
#define PIN_WORKER_FAULT_H

#include "runtime/worker/hooks_running.h"

/* The task that `worker` is in has returned `error`. */
void pin_fault_note(struct pin_worker *worker, int error);

/*
 * On the worker, in its guard: accounts for what it was in when it landed
 * there. Does nothing if it has not.
 */
void pin_fault_recover(struct pin_worker *worker);

/* In a cleanup: what the task that is being unwound ends with. */
int pin_fault_error(void);

/* By what runs a user's function in a task of the library's. */
static inline void pin_fault_name(pin_fault_fn function)
{
	struct pin_worker *worker = pin_worker_current();

	if (worker != NULL) {
		pin_running_enter(worker, function);
	}
}

#endif
