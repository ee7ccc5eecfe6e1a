/* SPDX-License-Identifier: MIT */
/*
 * More workers, or fewer, while a runtime runs.
 *
 * All the workers there may ever be have their places from the beginning: in
 * the arrays, in the orders of search and wake. So nothing that others look at
 * changes its place; a worker that is not there is one that has nothing, sleeps
 * in no set and has no thread (worker/retire.h). Of each tier the first so many
 * are there, and of the last one always one, the heir.
 *
 * One resize at a time, and none beside the end of the runtime: it holds the
 * lock that joins the threads from its first change until those that leave have
 * left, and does not wait for it, as only who ends the runtime could have it.
 * First come the new ones, of which each may fail, then go the others.
 */
#ifndef PIN_API_RESIZE_H
#define PIN_API_RESIZE_H

#include "runtime/worker/runtime_state.h"

/*
 * `counts` of each tier, at most those of its lane plan, at least 1 of the
 * last. Sleeps until those that leave have ended what they have to. -EBUSY:
 * another resize is under way. -ESHUTDOWN: the runtime is drained or stopped,
 * or about to be. -EDEADLK: on a worker thread of any runtime. Those of
 * starting a worker. After an error nothing has changed.
 */
int pin_runtime_resize(struct pinion_runtime *runtime, const uint32_t *counts);

#endif
