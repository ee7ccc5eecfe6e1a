/* SPDX-License-Identifier: MIT */
/*
 * The step a worker repeats: the one loop body that threads, the simulator and
 * the model tests all run. worker/thread.h tells what it does.
 */
#ifndef PIN_WORKER_LOOP_H
#define PIN_WORKER_LOOP_H

#include "runtime/worker/state.h"

enum pin_step {
	PIN_STEP_RAN,  /* did something, or was woken: step again */
	PIN_STEP_EXIT, /* the runtime has ended, or the worker has left */
};

enum pin_step pin_worker_step(struct pin_worker *worker);

/*
 * What is left of a step whose batch was cut short by a task that did not
 * return: others are told, completions collected, as ever.
 */
void pin_worker_end_loop(struct pin_worker *worker);

/* As pinion_should_yield(). */
bool pin_worker_should_yield(struct pin_worker *worker);

#endif
