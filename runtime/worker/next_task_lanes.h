/* SPDX-License-Identifier: MIT */
/*
 * The next task where not all work is in the normal lane: first of lanes that
 * were passed by for too long, then in the order in which the worker serves
 * them, at last what it may assist with.
 */
#ifndef PIN_WORKER_NEXT_TASK_LANES_H
#define PIN_WORKER_NEXT_TASK_LANES_H

#include "runtime/worker/state.h"

/* As those of next_task.h. */
bool pin_poll_lanes(struct pin_worker *worker);

#endif
