/* SPDX-License-Identifier: MIT */
/*
 * Gives the workers of a runtime their rings, where a trace is asked for.
 *
 * The runtime's creator calls it before the first thread starts, and its
 * destroyer when all have ended. events.h has the events.
 */
#include "runtime/worker/events.h"
#include "runtime/base/check.h"

/* From here on it takes the ways that are slower, and noted. */
static void trace_worker(struct pin_worker *worker, struct pin_trace_ring *ring)
{
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
