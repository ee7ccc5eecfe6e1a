/* SPDX-License-Identifier: MIT */
/*
 * A runtime's end: drain or stop, join, destroy. runtime_create.c has its
 * beginning.
 *
 * Called by threads that are no workers. The end closes the gate, waits until
 * the workers have left, and joins them.
 *
 * Invariant: a destruction that finds pools or scans left keeps the runtime,
 * stopped.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/host.h"
#include "runtime/host/process.h"
#include "runtime/loop/loop.h"
#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/wait.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <string.h>

const char *pinion_version(void)
{
	return PINION_VERSION_STRING;
}

void pin_runtime_join_threads(struct pin_shared *shared)
{
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (shared->workers[i].has_thread) {
			shared->host->thread_join(shared->workers[i].thread);
		}
	}
	pin_watchdog_stop(shared);
	pin_log_flush(&shared->log, true);
}

/*
 * Only when no call into the runtime can be under way any more: until then a
 * thread outside may still ring a doorbell, whose worker woke by itself, ran
 * the task and ended.
 */
static void free_workers(struct pin_shared *shared)
{
	pin_wait_for_callers(shared);
	PIN_CHECK(shared->worker_count == 0 || shared->workers != NULL);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		struct pin_worker *worker = &shared->workers[i];

		if (worker->has_claim) {
			pin_cpu_claims_leave(&worker->place);
		}
		pin_driven_fini(worker);
		pin_worker_fini(worker);
	}
	pin_events_stop(shared);
	pin_metrics_stop(shared);
	pin_arena_setup_fini(shared);
	pin_victims_fini(&shared->victims);
	pin_heap_release(shared->host, shared->cpu_indices, PIN_HEAP_ALIGN, shared->cpu_room,
		sizeof(*shared->cpu_indices));
	pin_heap_release(shared->host, shared->workers, PIN_CACHE_LINE, shared->worker_count,
		sizeof(struct pin_worker));
}

/* With a host of its own that goes with it. */
void pin_runtime_free(struct pinion_runtime *runtime)
{
	struct pin_host host = *runtime->shared.host;

	PIN_DCHECK(runtime->latency_fd >= -1);
	if (runtime->latency_fd >= 0) {
		pin_cpu_latency_drop(runtime->latency_fd);
	}
	free_workers(&runtime->shared);
	pin_heap_release(&host, runtime, PIN_CACHE_LINE, 1, sizeof(*runtime));
}

static bool has_ended(struct pin_shared *shared)
{
	return pin_load_acquire_u32(&shared->has_ended) != 0; /* [END-2] */
}

static int await_end(struct pin_shared *shared, uint64_t deadline_ns)
{
	PIN_DCHECK(pin_worker_of_thread() == NULL); /* it would wait for itself */
	while (!has_ended(shared)) {
		if (shared->host->futex_wait(&shared->has_ended, 0, deadline_ns) == -ETIMEDOUT) {
			return has_ended(shared) ? 0 : -ETIME;
		}
	}
	return 0;
}

/*
 * Begins the end, waits for it up to the deadline, and joins. Any number of
 * threads may call it; the first to get the lock joins the workers.
 */
static int end(struct pinion_runtime *runtime, bool stop, uint64_t deadline_ns)
{
	struct pin_shared *shared = &runtime->shared;
	bool is_driven = shared->config.is_driven != 0;
	int rc = 0;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	/* A worker that blocks here may hold up the end that it waits for. */
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	if (is_driven && !pin_driven_is_owner(&shared->workers[0])) {
		return -EPERM;
	}
	if (stop) {
		pin_shared_stop(shared);
	} else {
		/* Before the wake: each worker looks before it sleeps again. */
		pin_fetch_or_seq_cst_u32(&shared->flags, PIN_SHARED_DRAINING);
		pin_gate_close(&shared->gate);
		pin_wake_all(shared);
		pin_room_close(shared);
	}
	/* The thread that holds the lock may wait for what does not end. */
	if (is_driven) {
		rc = pin_driven_finish(&shared->workers[0], deadline_ns);
	} else if (deadline_ns != PIN_NO_DEADLINE) {
		rc = await_end(shared, deadline_ns);
	}
	if (rc != 0) {
		return rc;
	}
	pin_lock_acquire(&runtime->life, shared->host);
	if (!runtime->is_joined) {
		pin_runtime_join_threads(shared);
		runtime->is_joined = true;
	}
	pin_lock_release(&runtime->life, shared->host);
	return 0;
}

int pinion_runtime_drain(struct pinion_runtime *runtime)
{
	return end(runtime, false, PIN_NO_DEADLINE);
}

int pinion_runtime_stop(struct pinion_runtime *runtime)
{
	return end(runtime, true, PIN_NO_DEADLINE);
}

int pinion_runtime_stop_until(struct pinion_runtime *runtime, uint64_t deadline_ns)
{
	return end(runtime, true, deadline_ns);
}

int pinion_runtime_join(struct pinion_runtime *runtime)
{
	int rc = end(runtime, false, PIN_NO_DEADLINE);

	return rc != 0 ? rc : -(int)pin_load_acquire_u32(&runtime->shared.first_failure);
}

/* Pools and scans of the runtime are in its memory. */
static int refuse_if_used(const struct pinion_runtime *runtime)
{
	struct pin_live_found found;

	if (!pin_live_find(runtime, &found)) {
		return 0;
	}
	PIN_DCHECK(found.object != NULL && found.destroyer != NULL);
	pin_log(&runtime->shared.log, PINION_LOG_ERROR,
		"pinion_runtime_destroy() has stopped the runtime and not freed it: its %s %p "
		"was not destroyed, and %u more; call %s() first, then this again",
		found.kind, found.object, found.others_count, found.destroyer);
	return -EBUSY;
}

/* Stops first, so that even a refused destruction leaves no running tasks. */
int pinion_runtime_destroy(struct pinion_runtime *runtime)
{
	int rc;

	if (runtime == NULL) {
		return 0;
	}
	pin_live_check(PIN_LIVE_RUNTIME, runtime);
	rc = end(runtime, true, PIN_NO_DEADLINE);
	if (rc == -EDEADLK) {
		pin_log(&runtime->shared.log, PINION_LOG_ERROR,
			"pinion_runtime_destroy() was called on a worker thread and has done "
			"nothing: call it on a thread that is no worker of any runtime");
	}
	if (rc == -EPERM) {
		pin_log(&runtime->shared.log, PINION_LOG_ERROR,
			"pinion_runtime_destroy() was called on another thread than the one that "
			"created the runtime with is_driven, and has done nothing");
	}
	if (rc == 0) {
		rc = refuse_if_used(runtime);
	}
	if (rc == 0) {
		pin_live_remove(PIN_LIVE_RUNTIME, runtime);
		PIN_DCHECK(runtime->is_joined);
		pin_runtime_free(runtime);
	}
	/* In a forked child (-ECHILD) its contents are the parent's. */
	return rc;
}

/* ---- what others ask ---- */

bool pinion_runtime_is_accepting(const struct pinion_runtime *runtime)
{
	return !pin_runtime_is_foreign(runtime) && pin_gate_is_open(&runtime->shared.gate);
}

uint32_t pinion_runtime_worker_count(const struct pinion_runtime *runtime)
{
	return runtime->shared.worker_count;
}
