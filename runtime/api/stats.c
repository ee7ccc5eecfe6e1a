/* SPDX-License-Identifier: MIT */
/*
 * Statistics of a runtime: sums over the workers' counters, the state of its
 * scheduler, its memory, rings and devices.
 *
 * Any thread may call these at any time; no worker is stopped or slowed.
 * Counters are exact each, and their sum is of no single instant until the
 * runtime has ended.
 */
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/kernel.h"
#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"

#include <errno.h>
#include <pinion/lane.h>
#include <pinion/limit.h>
#include <pinion/runtime.h>
#include <string.h>

/* How the scheduler is at this moment. */
static void add_figures(const struct pin_shared *shared, struct pinion_runtime_stats *sum)
{
	sum->look_interval_min = UINT64_MAX;
	sum->park_until_ns = PIN_NO_DEADLINE;
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];
		uint64_t interval = pin_meter_read(&worker->meter.look_interval);
		uint64_t turn_polls = pin_meter_read(&worker->meter.turn_polls);
		uint64_t until_ns = pin_meter_read(&worker->meter.park_until_ns);
		uint32_t lifo_row = pin_load_relaxed_u32(&worker->lifo_row);
		enum pin_park_state place = pin_parker_place(&worker->parker);

		if (interval < sum->look_interval_min) {
			sum->look_interval_min = interval;
		}
		if (interval > sum->look_interval_max) {
			sum->look_interval_max = interval;
		}
		if (turn_polls > sum->turn_polls_max) {
			sum->turn_polls_max = turn_polls;
		}
		if (lifo_row > sum->lifo_row_max) {
			sum->lifo_row_max = lifo_row;
		}
		/* A running worker's is that of its last sleep. */
		if (place != PIN_RUNNING && until_ns < sum->park_until_ns) {
			sum->park_until_ns = until_ns;
		}
		sum->parked_futex += place == PIN_PARK_FUTEX ? 1 : 0;
		sum->parked_ring += place == PIN_PARK_RING ? 1 : 0;
		if (place != PIN_RUNNING && i < 64) {
			sum->parked_set |= UINT64_C(1) << i;
		}
	}
	PIN_DCHECK(sum->look_interval_min <= sum->look_interval_max);
	PIN_DCHECK(sum->parked_futex + sum->parked_ring <= shared->worker_count);
	for (uint32_t i = 0; i < shared->class_count; i++) {
		/* Relaxed: a figure. */
		sum->searching += pin_load_relaxed_u32(&shared->classes[i].searching);
	}
}

/*
 * Adds up the workers' own counters. Work from outside is counted by the gate,
 * and distinguished from requests by the counter of posted ones.
 */
void pinion_runtime_get_stats(
	const struct pinion_runtime *runtime, struct pinion_runtime_stats *out_stats, size_t size)
{
	const struct pin_shared *shared = &runtime->shared;
	struct pinion_runtime_stats sum = {0};
	uint64_t posted = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;

		sum.tasks_run += pin_meter_read(&meter->tasks_run);
		sum.tasks_failed += pin_meter_read(&meter->tasks_failed);
		sum.tasks_cancelled += pin_meter_read(&meter->tasks_cancelled);
		sum.tasks_spawned += pin_meter_read(&meter->tasks_spawned);
		sum.requests_completed += pin_meter_read(&meter->requests_completed);
		sum.requests_submitted += pin_meter_read(&meter->requests_submitted);
		sum.read_bytes += pin_meter_read(&meter->read_bytes);
		sum.ring_enters += pin_meter_read(&meter->ring_enters);
		sum.parks_futex += pin_meter_read(&meter->parks_futex);
		sum.parks_ring += pin_meter_read(&meter->parks_ring);
		sum.wakes_sent += pin_meter_read(&meter->wakes_sent);
		sum.unregistered_reads += pin_meter_read(&meter->unregistered_reads);
		sum.tasks_stolen += pin_meter_read(&meter->tasks_stolen);
		sum.steals += pin_meter_read(&meter->steals);
		sum.lifo_polls += pin_meter_read(&meter->lifo_polls);
		sum.injector_takes += pin_meter_read(&meter->injector_takes);
		sum.searches += pin_meter_read(&meter->searches);
		sum.spin_hits += pin_meter_read(&meter->spin_hits);
		sum.park_timeout_found_work += pin_meter_read(&meter->park_timeout_found_work);
		sum.write_bytes += pin_meter_read(&meter->write_bytes);
		sum.unregistered_writes += pin_meter_read(&meter->unregistered_writes);
		sum.requests_cancelled += pin_meter_read(&meter->requests_cancelled);
		sum.requests_timed_out += pin_meter_read(&meter->requests_timed_out);
		sum.ticks += pin_meter_read(&meter->ticks);
		sum.tasks_unwound += pin_meter_read(&meter->tasks_unwound);
		sum.cached_reads += pin_meter_read(&meter->cached_reads);
		sum.dontcache_reads += pin_meter_read(&meter->dontcache_reads);
		sum.evicted_reads += pin_meter_read(&meter->evicted_reads);
		sum.files_registered += pin_meter_read(&meter->files_registered);
		sum.plain_file_transfers += pin_meter_read(&meter->plain_file_transfers);
		sum.polled_transfers += pin_meter_read(&meter->polled_transfers);
		sum.polled_refusals += pin_meter_read(&meter->polled_refusals);
		sum.ring_commands += pin_meter_read(&meter->ring_commands);
		sum.tasks_shared +=
			pin_meter_read(&meter->tasks_shared) + pin_meter_read(&meter->tasks_laned);
		sum.files_direct += pin_meter_read(&meter->files_by_way[PINION_WAY_DIRECT]);
		sum.files_asked += pin_meter_read(&meter->files_by_way[PINION_WAY_ASKED]);
		sum.files_cached += pin_meter_read(&meter->files_by_way[PINION_WAY_CACHED]);
		sum.files_empty += pin_meter_read(&meter->files_by_way[PINION_WAY_EMPTY]);
		sum.files_unable += pin_meter_read(&meter->files_by_way[PINION_WAY_UNABLE]);
		sum.direct_refusals += pin_meter_read(&meter->direct_refusals);
		sum.errors_tried_alone += pin_meter_read(&meter->errors_tried_alone);
		sum.steal_rounds += pin_meter_read(&meter->steal_rounds);
		sum.timers_processed += pin_meter_read(&meter->timers_processed);
		sum.workers_rebound += pin_meter_read(&meter->rebinds);
		sum.received_bytes += pin_meter_read(&meter->received_bytes);
		sum.sent_bytes += pin_meter_read(&meter->sent_bytes);
		posted += pin_meter_read(&meter->requests_posted);
	}
	/* The gate counts what it admits, requests or not. */
	sum.tasks_spawned += pin_gate_admitted(&shared->gate) - posted;
	sum.requests_submitted += posted;
	/* Relaxed: a figure. */
	sum.spawns_refused = pin_load_relaxed_u64(&shared->queue_limit.refused);
	sum.cq_stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_RING]);
	sum.cq_stall_us = pin_meter_read(&shared->stalls.ring_ns) / 1000;
	sum.watchdog_found_work = pin_load_relaxed_u64(&shared->watchdog_found_work);
	sum.stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_TASK]);
	sum.stall_us = pin_meter_read(&shared->stalls.task_ns) / 1000;
	sum.device_stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_DEVICE]);
	sum.starved_lanes = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_LANE]);
	add_figures(shared, &sum);
	pin_sized_give(out_stats, size, &sum, sizeof(sum));
}

static const char *doorbell_name(enum pin_doorbell_kind kind)
{
	switch (kind) {
	case PIN_DOORBELL_MESSAGE:
		return "send_msg_ring";
	case PIN_DOORBELL_EVENTFD:
		return "eventfd";
	case PIN_DOORBELL_NONE:
		break;
	}
	return "none";
}

/*
 * The choices that the runtime made at its start. Where workers differ, the
 * worst of them is reported.
 */
void pinion_runtime_get_info(
	const struct pinion_runtime *runtime, struct pinion_runtime_info *out_info, size_t size)
{
	const struct pin_shared *shared = &runtime->shared;
	struct pinion_runtime_info info = {
		.worker_count = shared->worker_count,
		.uses_ring = 1,
		.ring_setup_flags = shared->fallback->ring.setup_flags,
		.page_bytes = PIN_HUGE_PAGE_BYTES,
		.local_permille = UINT32_MAX,
		.buffer_count = shared->config.buffer_count,
		.cpu_latency_us = shared->tuning.cpu_latency_us,
		.file_slots = UINT32_MAX,
		.doorbell = doorbell_name(shared->fallback->ring.doorbell_kind),
		.fallback_cause =
			runtime->fallback_cause[0] != '\0' ? runtime->fallback_cause : NULL,
		.io_level =
			pin_level_name(shared->is_fallback ? PINION_IO_FALLBACK
							   : pin_level_reached(&shared->kernel)),
	};

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];
		const struct pin_arena *arena = &worker->arena;
		uint64_t populated_bytes;
		uint64_t registered_bytes;
		uint64_t huge_bytes;
		uint32_t page_bytes;

		/* It has never been there. */
		if (arena->memory == NULL) {
			continue;
		}
		/* Of no single instant, while it grows. */
		registered_bytes =
			worker->registered_bytes + pin_meter_read(&worker->growth.registered_bytes);
		huge_bytes = arena->huge_bytes + pin_meter_read(&worker->growth.huge_bytes);
		populated_bytes =
			pin_arena_kept_bytes(arena) + pin_meter_read(&worker->growth.bytes);
		page_bytes = huge_bytes < populated_bytes || populated_bytes == 0
			? PIN_PAGE_BYTES
			: pin_arena_page_bytes(arena);
		PIN_DCHECK(pin_is_power_of_two(page_bytes) && huge_bytes <= arena->bytes);
		PIN_DCHECK(registered_bytes <= arena->bytes);
		if (worker->ring.is_fallback) {
			info.uses_ring = 0;
		}
		info.workers_bound += pin_load_relaxed_u32(&worker->is_bound);
		info.arenas_registered +=
			populated_bytes > 0 && registered_bytes == populated_bytes ? 1 : 0;
		info.registered_bytes += registered_bytes;
		info.populated_bytes += populated_bytes;
		info.given_back_bytes += pin_meter_read(&worker->growth.given_back_bytes);
		info.arena_bytes += arena->bytes;
		info.huge_bytes += huge_bytes;
		info.hugetlb_bytes += arena->page_kind == PIN_PAGES_HUGETLB ? arena->bytes : 0;
		info.arenas_unexamined += arena->has_unknown_pages ? 1 : 0;
		info.polled_rings += worker->has_polled ? 1 : 0;
		info.arenas_shared += worker->ring.registry == &shared->registry ? 1 : 0;
		if (worker->files.slot_count < info.file_slots) {
			info.file_slots = worker->files.slot_count;
		}
		if (page_bytes < info.page_bytes) {
			info.page_bytes = page_bytes;
		}
		if (arena->local_permille < info.local_permille) {
			info.local_permille = arena->local_permille;
		}
	}
	PIN_DCHECK(info.workers_bound <= info.worker_count);
	PIN_DCHECK(info.registered_bytes <= info.arena_bytes);
	pin_sized_give(out_info, size, &info, sizeof(info));
}

/* ---- lanes ---- */

/* The length of each lane's queue, and counts of finished jobs. */

static uint64_t own_queues_depth(const struct pin_shared *shared)
{
	uint64_t depth = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		depth += pin_deque_count(&worker->deque);
		depth += pin_lifo_is_empty(&worker->lifo) ? 0 : 1;
	}
	return depth;
}

static void add_meters(const struct pin_shared *shared, struct pinion_lane_stats *sum)
{
	uint64_t busy_ns = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_meter *meter = &shared->workers[i].meter;
		/*
		 * A failure is counted before its end is, so it is read after
		 * it.
		 */
		uint64_t run = pin_meter_read(&meter->tasks_run);
		uint64_t failed = pin_meter_read(&meter->tasks_failed);

		sum->jobs_failed += failed;
		sum->jobs_completed += run > failed ? run - failed : 0;
		busy_ns += pin_meter_read(&meter->busy_ns);
		sum->high_jobs_run += pin_meter_read(&meter->high_run);
		sum->low_jobs_run += pin_meter_read(&meter->low_run);
		sum->floor_turns += pin_meter_read(&meter->floor_turns);
		sum->aged_turns += pin_meter_read(&meter->aged_turns);
		sum->assists += pin_meter_read(&meter->assists);
	}
	sum->total_execution_time = busy_ns / 1000;
}

/*
 * Depths are readings of queues that others are changing; their sum may be of
 * no single instant.
 */
int pinion_runtime_get_lane_stats(
	struct pinion_runtime *runtime, struct pinion_lane_stats *out_stats, size_t size)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_lane_stats sum = {0};

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	sum.high_queue_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_HIGH]);
	sum.medium_queue_depth = own_queues_depth(shared) + pin_injector_count(&shared->injector);
	sum.low_queue_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_LOW]);
	add_meters(shared, &sum);
	pin_sized_give(out_stats, size, &sum, sizeof(sum));
	return 0;
}

/* ---- limits ---- */

/*
 * Limits and figures of devices, as users have them: include/pinion/limit.h.
 */

/* 1 TiB, and what no sum of two overflows. */
#define DEPTH_BYTES_MAX (UINT64_C(1) << 40)
#define RATE_MAX (UINT64_C(1) << 62)
#define SLOW_NS_MAX (UINT64_C(1) << 62)

void pinion_limits_init_sized(struct pinion_limits *limits, uint32_t size)
{
	memset(limits, 0, size);
	limits->size = size;
}

/* An older, smaller struct leaves its missing limits at 0, as NULL does all. */
static int accept_limits(struct pinion_limits *out, const struct pinion_limits *given)
{
	int rc;

	*out = (struct pinion_limits){0};
	if (given == NULL) {
		return 0;
	}
	if (given->size < sizeof(given->size)) {
		return -EINVAL;
	}
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	PIN_DCHECK(rc <= 0);
	if (rc < 0) {
		return rc;
	}
	if (out->depth_count > PIN_CREDIT_COUNT_MAX || out->depth_bytes > DEPTH_BYTES_MAX ||
		out->bytes_per_second > RATE_MAX || out->requests_per_second > RATE_MAX ||
		out->slow_ns > SLOW_NS_MAX) {
		return -EINVAL;
	}
	return 0;
}

/*
 * Depths of the devices without limits of their own, and the rates of all
 * devices together.
 */
int pinion_runtime_set_limits(struct pinion_runtime *runtime, const struct pinion_limits *limits)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_limits accepted;
	int rc;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	rc = accept_limits(&accepted, limits);
	if (rc < 0) {
		return rc;
	}
	pin_disks_limit(&shared->disks, shared->host, &shared->tuning, &accepted);
	pin_device_queue_kick_all(shared);
	return 0;
}

/*
 * Wakes every worker that has queued requests, as higher limits may let them
 * start.
 */
int pinion_device_set_limits(
	struct pinion_runtime *runtime, uint64_t device, const struct pinion_limits *limits)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_limits accepted;
	int rc;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	rc = accept_limits(&accepted, limits);
	if (rc < 0) {
		return rc;
	}
	PIN_DCHECK(accepted.depth_bytes <= DEPTH_BYTES_MAX);
	rc = pin_disks_limit_one(&shared->disks, shared->host, &shared->tuning, device,
		limits == NULL ? NULL : &accepted);
	if (rc < 0) {
		return rc;
	}
	pin_device_queue_kick_all(shared);
	return 0;
}

/*
 * The index counts the devices in the order of their first request; it is no
 * device number.
 */
int pinion_device_get_stats(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_stats, size_t size)
{
	const struct pin_shared *shared = &runtime->shared;
	struct pinion_device_stats figures = {0};
	const struct pin_disk *disk;
	struct pin_disk_sums sums;
	uint64_t limit;
	uint64_t taken;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (index >= pin_load_acquire_u32(&shared->disks.count)) { /* [DISK-1] */
		return -ENOENT;
	}
	PIN_CHECK(index < PIN_ARRAY_COUNT(shared->disks.disks));
	disk = &shared->disks.disks[index];
	sums = pin_device_account_sums(shared, disk);
	limit = pin_load_relaxed_u64(&disk->credit.limit);
	taken = pin_load_relaxed_u64(&disk->credit.taken);
	figures = (struct pinion_device_stats){
		.device = disk->device,
		.depth_count = pin_credit_count(limit),
		.depth_bytes = (uint64_t)pin_credit_pages(limit) * PIN_PAGE_BYTES,
		.taken_count = pin_credit_count(taken),
		.taken_bytes = (uint64_t)pin_credit_pages(taken) * PIN_PAGE_BYTES,
		.requests = sums.requests,
		.bytes = sums.bytes,
		.waited = sums.waited,
		.throttled = sums.throttled,
		.throttled_ns = sums.throttled_ns,
		.latency_ns = sums.timed == 0 ? 0 : sums.latency_ns / sums.timed,
		.is_rotational = disk->is_rotational,
		.is_found_out = pin_load_relaxed_u64(&disk->look_ns) != UINT64_MAX,
		.timed = sums.timed,
		.slow = sums.slow,
	};
	pin_sized_give(out_stats, size, &figures, sizeof(figures));
	return 0;
}
