/* SPDX-License-Identifier: MIT */
/*
 * Limits and figures of devices, as users have them: include/pinion/limit.h.
 */
#include "runtime/base/versioned.h"
#include "runtime/worker/device_queue.h"
#include "runtime/worker/runtime_state.h"

#include <errno.h>
#include <pinion/limit.h>
#include <string.h>

/* 1 TiB, and what no sum of two overflows. */
#define DEPTH_BYTES_MAX (UINT64_C(1) << 40)
#define RATE_MAX (UINT64_C(1) << 62)

void pinion_limits_init_sized(struct pinion_limits *limits, uint32_t size)
{
	memset(limits, 0, size);
	limits->size = size;
}

static int accept_limits(struct pinion_limits *out, const struct pinion_limits *given)
{
	int rc;

	if (given->size < sizeof(given->size)) {
		return -EINVAL;
	}
	*out = (struct pinion_limits){0};
	rc = pin_sized_take(out, sizeof(*out), given, given->size);
	if (rc < 0) {
		return rc;
	}
	if (out->depth_count > PIN_CREDIT_COUNT_MAX || out->depth_bytes > DEPTH_BYTES_MAX ||
		out->bytes_per_second > RATE_MAX || out->requests_per_second > RATE_MAX) {
		return -EINVAL;
	}
	return 0;
}

int pinion_runtime_limit(struct pinion_runtime *runtime, const struct pinion_limits *limits)
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
	pin_disks_limit(&shared->disks, shared->host, &shared->config, &accepted);
	pin_throttle_nudge_all(shared);
	return 0;
}

int pinion_device_limit(
	struct pinion_runtime *runtime, uint64_t device, const struct pinion_limits *limits)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_limits accepted;
	struct pin_disk *disk;
	int rc;

	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	rc = accept_limits(&accepted, limits);
	if (rc < 0) {
		return rc;
	}
	disk = pin_disks_find(&shared->disks, shared->host, &shared->config, device);
	if (!pin_disk_is(disk, device)) {
		return -ENOSPC;
	}
	pin_disk_limit(&shared->disks, disk, shared->host, &shared->config, &accepted);
	pin_throttle_nudge_all(shared);
	return 0;
}

int pinion_device_figures(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_device_stats *out_figures, size_t size)
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
	disk = &shared->disks.disks[index];
	sums = pin_throttle_sums(shared, disk);
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
	};
	pin_sized_give(out_figures, size, &figures, sizeof(figures));
	return 0;
}
