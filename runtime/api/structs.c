/* SPDX-License-Identifier: MIT */
/*
 * Sizes and alignments of the public structs, for callers in languages that
 * include no header.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <pinion/pinion.h>
#include <string.h>

#define STRUCT(name) \
	{ \
#name, sizeof(struct name), _Alignof(struct name) \
	}

static const struct {
	const char *name;
	size_t bytes;
	size_t align;
} structs[] = {
	STRUCT(pinion_admission),
	STRUCT(pinion_admission_limits),
	STRUCT(pinion_admission_stats),
	STRUCT(pinion_allocator),
	STRUCT(pinion_auto_buffer),
	STRUCT(pinion_budget),
	STRUCT(pinion_buffer),
	STRUCT(pinion_buffer_task),
	STRUCT(pinion_call),
	STRUCT(pinion_channel),
	STRUCT(pinion_checkpoint_config),
	STRUCT(pinion_checkpoint_fact),
	STRUCT(pinion_checkpoint_info),
	STRUCT(pinion_checkpoint_record),
	STRUCT(pinion_chunk),
	STRUCT(pinion_chunk_range),
	STRUCT(pinion_config),
	STRUCT(pinion_thread_pool_sizes),
	STRUCT(pinion_device_stats),
	STRUCT(pinion_file),
	STRUCT(pinion_file_options),
	STRUCT(pinion_full),
	STRUCT(pinion_future),
	STRUCT(pinion_future_callback),
	STRUCT(pinion_gap),
	STRUCT(pinion_group),
	STRUCT(pinion_group_task),
	STRUCT(pinion_histogram),
	STRUCT(pinion_job),
	STRUCT(pinion_lane_stats),
	STRUCT(pinion_limits),
	STRUCT(pinion_log_record),
	STRUCT(pinion_machine),
	STRUCT(pinion_metrics_field),
	STRUCT(pinion_metrics_info),
	STRUCT(pinion_pool_config),
	STRUCT(pinion_pool_info),
	STRUCT(pinion_pool_stats),
	STRUCT(pinion_pool_wait),
	STRUCT(pinion_request),
	STRUCT(pinion_retry),
	STRUCT(pinion_runtime_info),
	STRUCT(pinion_runtime_stats),
	STRUCT(pinion_scan_config),
	STRUCT(pinion_scan_file),
	STRUCT(pinion_scan_ops),
	STRUCT(pinion_scan_part),
	STRUCT(pinion_scan_stats),
	STRUCT(pinion_socket),
	STRUCT(pinion_task),
	STRUCT(pinion_timer),
	STRUCT(pinion_trace_info),
	STRUCT(pinion_tuning),
	STRUCT(pinion_wait),
	STRUCT(pinion_walk_config),
	STRUCT(pinion_walk_entry),
	STRUCT(pinion_walk_filter),
	STRUCT(pinion_window),
	STRUCT(pinion_work),
	STRUCT(pinion_worker_ratios),
	STRUCT(pinion_worker_info),
	STRUCT(pinion_worker_stats),
	STRUCT(pinion_yield),
};

/* The count of entries if there is none. */
static size_t find(const char *name)
{
	size_t i = 0;

	while (i < PIN_ARRAY_COUNT(structs) && strcmp(structs[i].name, name) != 0) {
		i++;
	}
	return i;
}

size_t pinion_struct_bytes(const char *name)
{
	size_t i = find(name);

	PIN_DCHECK(i == PIN_ARRAY_COUNT(structs) || structs[i].bytes % structs[i].align == 0);
	return i < PIN_ARRAY_COUNT(structs) ? structs[i].bytes : 0;
}

size_t pinion_struct_align(const char *name)
{
	size_t i = find(name);

	PIN_DCHECK(i == PIN_ARRAY_COUNT(structs) || pin_is_power_of_two(structs[i].align));
	return i < PIN_ARRAY_COUNT(structs) ? structs[i].align : 0;
}
