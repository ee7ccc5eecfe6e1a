/* SPDX-License-Identifier: MIT */
/*
 * The threads of a workload that are no workers, its end, and its books.
 */
#include "tests/sim/workload.h"
#include "runtime/api/internal.h"
#include "tests/sim/device.h"
#include "tests/sim/disk.h"
#include "tests/sim/host.h"
#include "tests/sim/watch.h"
#include "tests/sim/workload_state.h"
#include "tests/sim/world.h"

#include <errno.h>

enum {
	SMALL_BUFFERS = 4,
	REQUESTS_PER_SECOND = 20 * 1000,
};

struct workload_entry workload_entries[WORKLOAD_TASKS_MAX];
struct workload workload;

/* ---- threads ---- */

static void *spawn_from_outside(void *arg)
{
	const struct sim_source *source = arg;

	for (uint32_t i = 0; i < source->tasks; i++) {
		if (!workload_spawn(workload_new_task(source->program), world_random(2) == 0)) {
			break;
		}
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	for (uint32_t i = 0; i < source->requests; i++) {
		if (!workload_submit_outside(source->program)) {
			break;
		}
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	for (uint32_t i = 0; i < source->cancels && workload.entry_count > 0; i++) {
		workload_cancel_any();
		world_busy(world_random((uint64_t)source->pause_us * 1000));
	}
	return NULL;
}

static void *resize_from_outside(void *arg)
{
	const struct sim_case *test = arg;

	for (uint32_t i = 0; i < test->resizes; i++) {
		uint32_t count = 1 + (uint32_t)world_random(test->workers);
		int rc;

		world_busy(world_random((uint64_t)test->end_us * 1000 / test->resizes));
		rc = pin_runtime_resize(workload.runtime, &count);
		world_event("resizes", count, (uint64_t)(int64_t)rc);
		if (rc == -ESHUTDOWN) {
			break;
		}
		if (rc != 0 && (rc != -EAGAIN || test->faults.no_thread == 0)) {
			world_fail("a resize returns %d", rc);
		}
	}
	return NULL;
}

static void limit(uint32_t depth, uint64_t requests_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = depth;
	limits.requests_per_second = requests_per_second;
	workload.was_free |= depth == 0;
	world_event("limits", depth, requests_per_second);
	WORLD_CHECK(pinion_runtime_set_limits(workload.runtime, &limits) == 0);
}

static void *limit_from_outside(void *arg)
{
	const struct sim_case *test = arg;

	for (uint32_t i = 0; i < test->limits; i++) {
		world_busy(world_random((uint64_t)test->end_us * 1000 / test->limits));
		limit((uint32_t)world_random(test->depth + 1),
			world_random(2) == 0 ? 0 : REQUESTS_PER_SECOND);
	}
	return NULL;
}

/* ---- books ---- */

static void check_device(void)
{
	struct pinion_device_stats figures;

	if (pinion_device_get_stats(workload.runtime, 0, &figures, sizeof(figures)) != 0) {
		return; /* nothing was read or written */
	}
	world_event("the disk had", figures.requests, figures.waited);
	if (!workload.was_free) {
		WORLD_CHECK(figures.taken_count == 0 && figures.taken_bytes == 0);
	}
}

static void check_books(void)
{
	struct pinion_runtime_stats counters;

	for (uint32_t i = 0; i < workload.entry_count; i++) {
		const struct workload_entry *entry = &workload_entries[i];

		if (entry->is_accepted != entry->is_entered) {
			world_fail("task %u was accepted and never entered", i);
		}
	}
	pinion_runtime_get_stats(workload.runtime, &counters, sizeof(counters));
	world_event("counts", counters.tasks_run, counters.tasks_cancelled);
	WORLD_CHECK(counters.tasks_spawned == workload.spawned + workload.joins);
	WORLD_CHECK(counters.tasks_run == workload.run + workload.joins);
	WORLD_CHECK(counters.tasks_cancelled == workload.cancelled);
	WORLD_CHECK(counters.tasks_failed == workload.failed);
	WORLD_CHECK(counters.park_timeout_found_work == 0);
	WORLD_CHECK(counters.requests_submitted == workload.submitted);
	WORLD_CHECK(counters.requests_completed == workload.submitted);
	WORLD_CHECK(workload.run + workload.cancelled == workload.spawned + workload.submitted);
	check_device();
}

/* ---- a run ---- */

static bool create(void)
{
	const struct sim_case *test = workload.test;
	struct pinion_config config;
	struct pinion_tuning tuning;
	int rc;

	pinion_config_init(&config);
	pinion_tuning_init(&tuning);
	config.tuning = &tuning;
	config.worker_count = test->workers;
	tuning.ring_entries = test->ring_entries;
	config.buffer_bytes = WORKLOAD_READ_BYTES_MAX;
	config.buffer_count = 1;
	config.small_buffer_bytes = WORKLOAD_READ_BYTES_MAX;
	config.small_buffer_count = SMALL_BUFFERS;
	config.io_level = PINION_IO_AUTO;
	config.lanes = test->lanes;
	tuning.lane_floor = test->lane_floor;
	tuning.low_max_wait_ms = test->low_max_wait_ms;
	tuning.assist = test->assist == 0 ? PINION_ASSIST_OFF : PINION_ASSIST_IDLE;
	tuning.assist_reserve = test->assist_reserve;
	tuning.ring_sharing = test->ring_sharing == 0 ? PINION_RING_OWN : PINION_RING_SHARED;
	if (test->task_ns > 0) {
		tuning.task_ns = test->task_ns;
	}
	if (test->ring_sharing != 0) {
		device_share_rings();
		watch_shares_rings();
	}
	tuning.park_timeout_us = test->park_timeout_us;
	tuning.stall_ms = test->stall_ms;
	tuning.buffer_rest_ms = test->polled == 0 && world_chance(500) ? 1 : 0;
	tuning.spawn_wake_us = test->spawn_wake_us;
	tuning.polled = test->polled;
	if (test->polled != 0) {
		device_poll();
	}
	if (test->commands != 0) {
		device_take_commands(test->commands == 2);
	}
	if (test->no_rings != 0) {
		config.io_level = PINION_IO_FALLBACK;
	}
	rc = pin_runtime_create(
		&config, test->resizes > 0 ? &test->workers : NULL, &workload.runtime);
	world_event("creates a runtime", (uint64_t)(int64_t)rc, test->workers);
	if (rc != 0 && test->faults.no_thread == 0) {
		world_fail("creating a runtime returns %d", rc);
	}
	return rc == 0;
}

static void end_runtime(bool is_stop)
{
	world_event(is_stop ? "stops" : "drains", 0, 0);
	workload.is_stopping = is_stop;
	workload.is_draining = !is_stop;
	WORLD_CHECK((is_stop ? pinion_runtime_stop : pinion_runtime_drain)(workload.runtime) == 0);
}

void workload_begin(const struct sim_case *test)
{
	workload = (struct workload){.test = test};
}

void workload_run(void)
{
	static const char *const names[SIM_SOURCES_MAX] = {"outside 0", "outside 1", "outside 2",
		"outside 3", "outside 4", "outside 5", "outside 6", "outside 7"};
	const struct sim_case *test = workload.test;
	bool is_stop = test->may_stop && (!test->may_drain || world_random(2) == 0);
	uint32_t threads[SIM_SOURCES_MAX];
	uint32_t resizer = 0;
	uint32_t limiter = 0;

	disk_open(&workload.file);
	disk_open_namespace(&workload.namespace);
	if (!create()) {
		goto done;
	}
	if (test->depth > 0) {
		limit(test->depth, 0);
	} else {
		workload.was_free = true;
	}
	for (uint32_t i = 0; i < test->source_count; i++) {
		threads[i] = world_thread_start(
			names[i], spawn_from_outside, (void *)(uintptr_t)&test->sources[i]);
	}
	if (test->resizes > 0) {
		resizer =
			world_thread_start("resizer", resize_from_outside, (void *)(uintptr_t)test);
	}
	if (test->limits > 0) {
		limiter =
			world_thread_start("limiter", limit_from_outside, (void *)(uintptr_t)test);
	}
	world_busy(world_random((uint64_t)test->end_us * 1000));
	end_runtime(is_stop);
	for (uint32_t i = 0; i < test->source_count; i++) {
		world_thread_join(threads[i]);
	}
	if (test->resizes > 0) {
		world_thread_join(resizer);
	}
	if (test->limits > 0) {
		world_thread_join(limiter);
	}
	check_books();
	pinion_runtime_destroy(workload.runtime);
done:
	device_end();
	host_end();
}

bool workload_is_worker(uint32_t thread)
{
	return host_is_worker(thread);
}
