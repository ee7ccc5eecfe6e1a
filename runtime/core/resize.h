/* SPDX-License-Identifier: MIT */
/*
 * More workers, or fewer, while a runtime runs.
 *
 * All the workers there may ever be have their places from the beginning: in
 * the arrays, in the orders of search and wake. So nothing that others look at
 * changes its place; a worker that is not there is one that has nothing, sleeps
 * in no set and has no thread (retire.h). Of each tier the first so many are
 * there, and of the last one always one, the heir.
 *
 * One resize at a time, and none beside the end of the runtime: it changes
 * something only with the lock that joins the threads, and does not wait for
 * it, as only who ends the runtime could have it. First come the new ones, of
 * which each may fail, then go the others.
 *
 * A task of another runtime may resize: its worker goes on with others until
 * those that leave have left (help.h), without the lock. If these wait for that
 * one in turn it gets -EDEADLK, or the other does (knot.h); they are on their
 * way nevertheless, and the next resize begins by seeing them off. So workers
 * of a tier that are not IN, behind those that are, are what a resize has left.
 */
#ifndef PIN_CORE_RESIZE_H
#define PIN_CORE_RESIZE_H

#include "runtime/core/runtime_state.h"

/*
 * `counts` of each tier, at most those of its lane plan, at least 1 of the
 * last. Any thread but its workers'; sleeps until those have ended what they
 * have to. -EBUSY: another resize is under way. -ESHUTDOWN: the runtime is
 * drained or stopped, or about to be, or has come to its end meanwhile.
 * -EDEADLK: they leave when they can. Those of starting a worker: nothing has
 * changed.
 */
int pin_runtime_resize(struct pinion_runtime *runtime, const uint32_t *counts);

#endif
