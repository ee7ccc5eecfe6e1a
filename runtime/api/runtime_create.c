/* SPDX-License-Identifier: MIT */
/*
 * A runtime's beginning: examines the machine, places the workers, starts their
 * threads and returns when all are ready. Called by threads that are no
 * workers.
 *
 * Invariant: a creation that fails leaves no thread, memory or descriptor.
 */
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/heap.h"
#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/host/process.h"
#include "runtime/loop/loop.h"
#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/wake.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <pinion/runtime.h>
#include <string.h>

/*
 * Probes the kernel and applies the level that was asked for. Missing io_uring
 * is an error only where the configuration requires it; else it is one warning,
 * with the reason for people.
 */
static int choose_io(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;
	uint32_t level = shared->config.io_level;

	PIN_DCHECK(level <= PINION_IO_RING_MESSAGE && !shared->is_fallback);
	if (level == PINION_IO_FALLBACK) {
		shared->is_fallback = true;
		strcpy(runtime->fallback_cause, "asked for by the configuration");
		return 0;
	}
	pin_kernel_probe(&shared->kernel);
	if (pin_level_apply(&shared->kernel, level, shared->tuning.io_without) < 0) {
		if (shared->kernel.passing_error != 0) {
			pin_log(&shared->log, PINION_LOG_ERROR,
				"cannot find out what this kernel's io_uring can do: %s",
				strerror(-shared->kernel.passing_error));
			return shared->kernel.passing_error;
		}
		pin_log(&shared->log, PINION_LOG_ERROR,
			"io_level=%s is not supported by this kernel (highest: %s): set "
			"PINION_IO_LEVEL to that, or to auto",
			pin_level_name(level), pin_level_name(pin_level_reached(&shared->kernel)));
		return -EOPNOTSUPP;
	}
	if (shared->kernel.ring_error == 0) {
		return 0;
	}
	pin_kernel_ring_hint(shared->kernel.ring_error, runtime->fallback_cause,
		sizeof(runtime->fallback_cause));
	PIN_DCHECK(shared->kernel.ring_error < 0);
	if (level != PINION_IO_AUTO) {
		pin_log(&shared->log, PINION_LOG_ERROR, "no io_uring: %s", runtime->fallback_cause);
		return shared->kernel.ring_error;
	}
	pin_log(&shared->log, PINION_LOG_WARN, "reading without io_uring: %s",
		runtime->fallback_cause);
	shared->is_fallback = true;
	return 0;
}

/*
 * Workers are bound only if each has a core of its own and no CPU quota is in
 * force: else the kernel has to choose.
 */
static void place_worker(struct pin_worker *worker, const struct pin_topology *topology)
{
	bool throttled = topology->quota_millicpus != 0 &&
		topology->quota_millicpus < topology->cpu_count * 1000;

	PIN_DCHECK(worker->index < worker->shared->worker_count);
	PIN_DCHECK(&worker->shared->workers[worker->index] == worker);
	if (topology->place_count == 0) {
		return;
	}
	worker->place = topology->places[worker->index % topology->place_count];
	worker->has_place = !throttled && worker->shared->worker_count <= topology->place_count;
	worker->has_claim =
		worker->has_place && worker->shared->config.bind_workers != PINION_BIND_NONE;
	if (worker->has_claim) {
		pin_cpu_claims_take(&worker->place);
	}
}

static int init_victims(struct pin_shared *shared, const struct pin_topology *topology)
{
	uint32_t count = shared->worker_count;

	PIN_DCHECK(count > 0 && (!shared->workers[0].has_place || count <= topology->place_count));
	/* Workers that share CPUs have no place of their own. */
	shared->has_cpu_each =
		count > 0 && topology->place_count > 1 && shared->workers[0].has_place;
	return pin_victims_init(&shared->victims, shared->host, topology->places,
		shared->workers[0].has_place ? count : 0, count, &topology->distances);
}

/* Which of them are there from the beginning; NULL: all. */
static void choose_serving(struct pin_shared *shared, const uint32_t *counts)
{
	shared->is_thread_pool = counts != NULL;
	for (uint32_t i = 0; i < shared->class_count && counts != NULL; i++) {
		struct pin_worker_class *worker_class = &shared->classes[i];

		PIN_CHECK(counts[i] <= worker_class->worker_count);
		PIN_DCHECK(worker_class->first_worker + worker_class->worker_count <=
			shared->worker_count);
		/* Relaxed: nothing else runs yet. */
		pin_store_relaxed_u32(&worker_class->serving_count, counts[i]);
		for (uint32_t j = counts[i]; j < worker_class->worker_count; j++) {
			pin_store_relaxed_u32(
				&shared->workers[worker_class->first_worker + j].service,
				PIN_SERVICE_OUT);
		}
	}
}

/* How many workers there are, and what each of them serves. */
static void complete_lanes(struct pin_shared *shared, uint32_t default_count)
{
	struct pinion_config *config = &shared->config;
	/* The text was accepted with the rest of the configuration. */
	const char *fault = pin_lane_plan_parse(&shared->lane_plan, config->lanes);
	uint32_t count;

	PIN_CHECK(fault == NULL);
	count = pin_lane_plan_complete(&shared->lane_plan, config->worker_count, default_count);
	PIN_CHECK(count > 0);
	config->worker_count = count;
	config->lanes = NULL; /* the caller's, and no longer needed */
}

/*
 * Decides how many workers there are, and their CPUs, lanes and victims. All of
 * it happens before the first thread starts.
 */
static int place_workers(
	struct pin_shared *shared, struct pin_topology *topology, const uint32_t *serving_counts)
{
	int rc;

	complete_lanes(
		shared, shared->config.is_driven != 0 ? 1 : pin_topology_default_workers(topology));
	if (shared->config.is_driven != 0 && shared->config.worker_count != 1) {
		pin_log(&shared->log, PINION_LOG_ERROR,
			"is_driven: a runtime whose worker is its creator's thread has 1 worker, "
			"not %u: set worker_count to 1 and lanes to NULL (PINION_WORKER_COUNT, "
			"PINION_LANES)",
			shared->config.worker_count);
		return -EINVAL;
	}
	pin_config_complete(&shared->config, shared->config.worker_count);
	rc = pin_arena_setup_fit(shared);
	if (rc < 0) {
		return rc;
	}
	shared->workers = pin_heap_allocate(shared->host, PIN_CACHE_LINE,
		shared->config.worker_count, sizeof(struct pin_worker));
	if (shared->workers == NULL) {
		return -ENOMEM;
	}
	shared->worker_count = shared->config.worker_count;
	pin_disks_init(&shared->disks, shared->host, &shared->tuning, shared->worker_count);
	memset(shared->workers, 0, (size_t)shared->worker_count * sizeof(struct pin_worker));
	pin_lane_init(shared);
	PIN_DCHECK(shared->class_count > 0 && shared->class_count <= PIN_WORKER_CLASSES_MAX);
	choose_serving(shared, serving_counts);
	shared->announces = shared->tuning.spawn_wake_us > 0 && shared->worker_count > 1 &&
		shared->has_fence_all; /* [ANNOUNCE-3] */
	pin_watchdog_init(shared);
	if (shared->config.bind_workers != PINION_BIND_NONE) {
		pin_cpu_claims_sort(topology->places, topology->place_count);
	}
	if (shared->config.bind_workers == PINION_BIND_NODE) {
		/* Also for workers that come later. */
		shared->cpu_indices = topology->cpu_indices;
		shared->cpu_room = topology->place_room;
		topology->cpu_indices = NULL;
	}
	for (uint32_t i = 0; i < shared->worker_count && rc == 0; i++) {
		struct pin_worker *worker = &shared->workers[i];

		worker->shared = shared;
		worker->index = i;
		place_worker(worker, topology);
		rc = pin_worker_init(worker);
	}
	return rc == 0 ? init_victims(shared, topology) : rc;
}

/*
 * What the machine and its kernel offer. The CPUs are looked for on another
 * thread, for a millisecond or two, while this one asks for the fence: the
 * kernel grants it, if not when the program was loaded, when all CPUs have
 * passed through the scheduler, some milliseconds later. Then it probes rings,
 * for another millisecond.
 */
static int examine_machine(struct pinion_runtime *runtime, struct pin_topology *out_topology)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_topology_search search;
	int io_rc;
	int rc;

	pin_topology_begin(&search, out_topology, shared->host, shared->tuning.use_smt != 0);
	shared->has_fence_all = shared->host->fence_all();
	io_rc = choose_io(runtime);
	rc = pin_topology_end(&search);
	if (rc < 0) {
		pin_log(&shared->log, PINION_LOG_ERROR, "cannot find out this machine's CPUs: %s",
			strerror(-rc));
	}
	return io_rc < 0 ? io_rc : rc;
}

static void await_workers(struct pin_shared *shared, uint32_t count)
{
	for (;;) {
		uint32_t started = pin_load_acquire_u32(&shared->started_count);

		PIN_DCHECK(started <= count);
		if (started == count) {
			return;
		}
		shared->host->futex_wait(&shared->started_count, started, PIN_NO_DEADLINE);
	}
}

/* Explains a refused thread by the limit that was reached. */
static int start_thread(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	int rc;

	PIN_CHECK(!worker->has_thread); /* else it would never be joined */
	rc = shared->host->thread_start(
		&worker->thread, shared->tuning.stack_bytes, pin_worker_main, worker);
	if (rc < 0) {
		char hint[192];

		pin_threadlimit_hint(rc, shared->tuning.stack_bytes, hint, sizeof(hint));
		pin_log(&shared->log, PINION_LOG_ERROR,
			"cannot start worker %u of %u: %s, or use fewer workers", worker->index,
			shared->worker_count, hint);
		return rc;
	}
	worker->has_thread = true;
	return 0;
}

/*
 * For a thread pool that grows: starts one worker and waits until it serves, or
 * has failed.
 */
int pin_runtime_start_worker(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	uint32_t started = pin_load_acquire_u32(&shared->started_count);
	int rc;

	/* Without, beside others with rings, it would be slow: it fails. */
	worker->needs_ring = !shared->is_fallback;
	rc = start_thread(worker);
	if (rc < 0) {
		return rc;
	}
	await_workers(shared, started + (pin_arena_setup_is_shared(shared) ? 2 : 1));
	rc = worker->start_error;
	PIN_DCHECK(rc <= 0);
	if (rc < 0) {
		pin_runtime_join_worker(worker);
	}
	return rc;
}

void pin_runtime_join_worker(struct pin_worker *worker)
{
	PIN_CHECK(worker->has_thread);
	worker->shared->host->thread_join(worker->thread);
	worker->has_thread = false;
	pin_worker_reset(worker);
}

/* One line for all workers that were refused a ring of their own. */
static void report_refused_rings(const struct pin_shared *shared)
{
	uint32_t count = 0;
	int error = 0;
	char hint[192];

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		if (shared->workers[i].ring_error != 0) {
			error = shared->workers[i].ring_error;
			count++;
		}
	}
	if (count > 0) {
		pin_kernel_ring_hint(error, hint, sizeof(hint));
		pin_log(&shared->log, PINION_LOG_WARN,
			"%u of %u workers run without io_uring: %s; or use fewer workers", count,
			shared->worker_count, hint);
	}
}

/*
 * Meets the workers twice where arenas are registered for all: once when all
 * memory is mapped, once when all have cloned the registration.
 */
static int start_threads(struct pin_shared *shared, uint32_t *out_count)
{
	uint32_t count = 0;
	int rc = 0;

	for (uint32_t i = 0; i < shared->worker_count && rc == 0; i++) {
		/* Relaxed: of this thread. */
		if (pin_load_relaxed_u32(&shared->workers[i].service) == PIN_SERVICE_IN) {
			rc = start_thread(&shared->workers[i]);
			count += rc == 0 ? 1 : 0;
		}
	}
	PIN_DCHECK(rc < 0 || shared->is_thread_pool || count == shared->worker_count);
	await_workers(shared, count);
	for (uint32_t i = 0; i < shared->worker_count && rc == 0; i++) {
		rc = shared->workers[i].start_error;
	}
	if (pin_arena_setup_is_shared(shared)) {
		if (rc == 0) {
			pin_arena_setup_register(shared);
		}
		pin_store_release_u32(&shared->has_registered, 1); /* [ARENA-1] */
		shared->host->futex_wake(&shared->has_registered, UINT32_MAX);
		await_workers(shared, 2 * count);
		/*
		 * Workers of a thread pool may come later and clone from it,
		 * too.
		 */
		if (!shared->is_thread_pool) {
			pin_arena_setup_close(shared);
		}
	}
	*out_count = count;
	return rc;
}

/* All of them, or the one that is this thread. A failure of any ends all. */
static int start_workers(struct pin_shared *shared)
{
	uint32_t count = 1;
	int rc = shared->config.is_driven != 0 ? pin_driven_start(&shared->workers[0])
					       : start_threads(shared, &count);

	if (rc == 0) {
		report_refused_rings(shared);
		pin_arena_setup_report(shared);
	}
	if (rc == 0 && count == shared->worker_count) {
		pin_worker_buffers_publish(shared);
	}
	if (rc == 0) {
		rc = pin_watchdog_start(shared);
		if (rc < 0) {
			char hint[192];

			pin_threadlimit_hint(rc, 0, hint, sizeof(hint));
			pin_log(&shared->log, PINION_LOG_ERROR,
				"cannot start the watchdog of stalled workers: %s, or "
				"set watchdog_us to 0",
				hint);
		}
	}
	if (rc < 0) {
		pin_store_release_u32(&shared->has_ended, 1);
		pin_wake_all(shared);
	}
	return rc;
}

static const char *latency_reason(int error)
{
	PIN_DCHECK(error < 0);
	if (error == -EOPNOTSUPP) {
		return "this kernel has no idle driver to heed it (" PIN_CPU_IDLE_DRIVER
		       " is none); guests of KVM have cpuidle-haltpoll";
	}
	return error == -EACCES ? "no access; it takes root, or a udev rule that gives it"
				: strerror(-error);
}

/* Where that is refused wakes take longer, and nothing else changes. */
static void ask_for_latency(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;
	int rc;

	PIN_DCHECK(runtime->latency_fd < 0);
	if (shared->tuning.cpu_latency_us == PINION_CPU_LATENCY_ANY) {
		return;
	}
	PIN_DCHECK(shared->tuning.cpu_latency_us <= INT32_MAX);
	rc = pin_cpu_latency_ask((uint32_t)shared->tuning.cpu_latency_us);
	if (rc >= 0) {
		runtime->latency_fd = rc;
		return;
	}
	pin_log(&shared->log, PINION_LOG_WARN,
		"idle CPUs may take longer than the %llu us of cpu_latency_us to run again: "
		"/dev/cpu_dma_latency: %s",
		(unsigned long long)shared->tuning.cpu_latency_us, latency_reason(rc));
	shared->tuning.cpu_latency_us = PINION_CPU_LATENCY_ANY;
}

/*
 * The worker of a driven runtime is the calling thread, which sleeps in a loop
 * of its own, and has its own affinity.
 */
static int fit_driven(
	struct pinion_config *config, struct pinion_tuning *tuning, const uint32_t *serving_counts)
{
	struct pin_log log = pin_config_log(config);

	if (config->is_driven == 0) {
		return 0;
	}
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	if (serving_counts != NULL) {
		pin_log(&log, PINION_LOG_ERROR,
			"is_driven: a thread pool has threads of its own: leave it 0");
		return -EINVAL;
	}
	config->bind_workers = PINION_BIND_NONE;
	tuning->spin_iters = 0;
	tuning->park_timeout_us = 0;
	/* No thread watches this one: between calls it is the embedder's. */
	tuning->watchdog_us = 0;
	tuning->stall_ms = 0;
	tuning->cq_stall_us = 0;
	return 0;
}

/*
 * The order: configuration, machine, workers, shared queues, threads. The
 * runtime is listed as alive last, when it can be used.
 */
int pin_runtime_create(const struct pinion_config *config, const uint32_t *serving_counts,
	struct pinion_runtime **out_runtime)
{
	struct pinion_runtime *runtime;
	struct pin_topology topology;
	struct pinion_config accepted;
	struct pinion_tuning tuning;
	const struct pin_host *host;
	struct pin_host own_host = {0};
	int rc = pin_config_accept(&accepted, &tuning, config);

	rc = rc < 0 ? rc : fit_driven(&accepted, &tuning, serving_counts);
	if (rc < 0) {
		return rc;
	}
	host = pin_heap_choose(&pin_host_linux, tuning.allocator, &own_host);
	tuning.allocator = NULL; /* the caller's, and no longer needed */
	pin_forked_watch(pin_worker_forget);
	pin_forked_watch(pin_cpu_claims_forget);
	runtime = pin_heap_zeroed(host, PIN_CACHE_LINE, 1, sizeof(*runtime));
	if (runtime == NULL) {
		return -ENOMEM;
	}
	/* Field by field: on the stack the struct would take 60 KiB. */
	runtime->shared.host = host == &own_host ? &runtime->own_host : host;
	runtime->shared.log = pin_config_log(&accepted);
	runtime->shared.config = accepted;
	runtime->shared.tuning = tuning;
	runtime->forked = pin_forked_now();
	runtime->own_host = own_host;
	runtime->latency_fd = -1;
	runtime->shared.log_rates.now_ns = host->now_ns;
	runtime->shared.log.rates = &runtime->shared.log_rates;
	rc = examine_machine(runtime, &topology);
	if (rc == 0) {
		rc = place_workers(&runtime->shared, &topology, serving_counts);
	}
	pin_topology_fini(&topology);
	rc = rc == 0 ? pin_metrics_start(&runtime->shared) : rc;
	rc = rc == 0 ? pin_events_start(&runtime->shared) : rc;
	runtime->forked_untraced = runtime->shared.trace == NULL ? runtime->forked : UINT32_MAX;
	if (rc == 0) {
		pin_gate_init(&runtime->shared.gate);
		pin_queue_limit_init(&runtime->shared.queue_limit, tuning.injector_tasks);
		pin_injector_init(&runtime->shared.injector, runtime->shared.host);
		pin_injector_set_batch(&runtime->shared.injector, tuning.injector_batch_min,
			tuning.injector_batch_max);
		pin_room_init(&runtime->shared);
		rc = start_workers(&runtime->shared);
	}
	PIN_DCHECK(rc <= 0);
	if (rc < 0) {
		pin_runtime_join_threads(&runtime->shared);
		pin_runtime_free(runtime);
		return rc;
	}
	/* All that refers to memory of the caller's is taken off by now. */
	PIN_DCHECK(runtime->shared.config.lanes == NULL && runtime->shared.config.tuning == NULL);
	PIN_DCHECK(runtime->shared.worker_count == runtime->shared.config.worker_count);
	ask_for_latency(runtime);
	pin_live_add(&runtime->live, PIN_LIVE_RUNTIME, runtime, NULL);
	*out_runtime = runtime;
	return 0;
}

int pinion_runtime_create(const struct pinion_config *config, struct pinion_runtime **out_runtime)
{
	struct pinion_config standard;

	if (config == NULL) {
		pinion_config_init(&standard);
		config = &standard;
	}
	return pin_runtime_create(config, NULL, out_runtime);
}
