/* SPDX-License-Identifier: MIT */
/*
 * The trace of a runtime: its workers' rings, from creation to destruction, and
 * the call that opens it for an embedder.
 *
 * worker/events.h has the events, observe/trace_reader.c the other calls of
 * trace.h.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/observe/trace_reader.h"
#include "runtime/worker/state.h"

#include <errno.h>
#include <unistd.h>

/*
 * Makes the worker record events: each flag takes it off the fast path of its
 * operation, onto the path that has the calls of worker/events.h.
 */
static void trace_worker(struct pin_worker *worker, struct pin_trace_ring *ring)
{
	PIN_CHECK(!worker->has_thread); /* the flags are not atomic */
	worker->trace_ring = ring;
	worker->is_traced = true;
	worker->notes_submitted = true;
	worker->sorts_ends = true;
	pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_TRACED);
}

int pin_events_start(struct pin_shared *shared)
{
	uint64_t slots = shared->tuning.trace_events;
	int rc;

	PIN_DCHECK(shared->trace == NULL);
	if (slots == 0) {
		return 0;
	}
	rc = pin_trace_create(
		shared->host, &shared->log, shared->worker_count, slots, &shared->trace);
	if (rc < 0) {
		return rc;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		trace_worker(&shared->workers[i], &shared->trace->rings[i]);
	}
	return 0;
}

void pin_events_stop(struct pin_shared *shared)
{
	pin_trace_destroy(shared->trace);
	shared->trace = NULL;
}

/* Any thread. */
int pinion_trace_open(const struct pinion_runtime *runtime, struct pinion_trace **out_trace)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (runtime->shared.trace == NULL) {
		return -ENOTSUP;
	}
	return pin_trace_open_words(runtime->shared.trace->words, (int)getpid(), out_trace);
}
