/* SPDX-License-Identifier: MIT */
/*
 * Which of the users' functions a worker is in, so that a message can name it
 * when it fails or does not end. The last one counts until the next is entered.
 */
#ifndef PIN_WORKER_HOOKS_RUNNING_H
#define PIN_WORKER_HOOKS_RUNNING_H

#include "runtime/worker/state.h"

#include <string.h>

enum { PIN_RUNNING_NAME_BYTES = 160 };

/* Any function: callbacks are named by their address alone. */
typedef void (*pin_fault_fn)(void);

/* On the worker. Relaxed: a name, nothing is ordered by it. */
static inline void pin_running_enter(struct pin_worker *worker, pin_fault_fn function)
{
	uint64_t word = 0;

	_Static_assert(sizeof(function) <= sizeof(word), "addresses fit");
	memcpy(&word, &function, sizeof(function));
	pin_store_relaxed_u64(&worker->running, word);
}

/* Any thread. */
static inline pin_fault_fn pin_running_of(const struct pin_worker *worker)
{
	uint64_t word = pin_load_relaxed_u64(&worker->running);
	pin_fault_fn function;

	memcpy(&function, &word, sizeof(function));
	return function;
}

/* Its symbol if that is shown, else what addr2line(1) takes. */
void pin_running_describe(pin_fault_fn function, char out_name[PIN_RUNNING_NAME_BYTES]);

#endif
