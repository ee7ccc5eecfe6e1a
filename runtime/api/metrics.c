/* SPDX-License-Identifier: MIT */
/*
 * The counts and the state of workers, as users have them, and the arithmetic
 * of snapshots: add, subtract, ratios.
 *
 * Any thread may call these at any time; no worker is stopped or slowed.
 */
#include "runtime/worker/metrics.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/task/entry.h"

#include <errno.h>

/* ---- counts ---- */

/* -ENOENT, or -ECHILD. */
static int check_index(const struct pinion_runtime *runtime, int worker_index)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	return worker_index >= 0 && (uint32_t)worker_index < runtime->shared.worker_count ? 0
											  : -ENOENT;
}

int pinion_worker_get_stats(const struct pinion_runtime *runtime, int worker_index,
	struct pinion_worker_stats *out_stats, size_t size)
{
	const struct pin_shared *shared = &runtime->shared;
	struct pinion_worker_stats sum = {0};
	uint32_t first = 0;
	uint32_t end = shared->worker_count;
	int rc = check_index(runtime, worker_index == PINION_ALL_WORKERS ? 0 : worker_index);

	if (rc < 0) {
		return rc;
	}
	if (worker_index != PINION_ALL_WORKERS) {
		first = (uint32_t)worker_index;
		end = first + 1;
	}
	PIN_DCHECK(first < end && end <= shared->worker_count);
	for (uint32_t i = first; i < end; i++) {
		struct pinion_worker_stats own;

		pin_metrics_collect(&shared->workers[i], &own);
		pinion_worker_stats_add(&sum, &own, sizeof(sum));
	}
	pin_sized_give(out_stats, size, &sum, sizeof(sum));
	return 0;
}

void pinion_worker_stats_add(
	struct pinion_worker_stats *sum, const struct pinion_worker_stats *more, size_t size)
{
	uint64_t *to = (uint64_t *)(void *)sum;
	const uint64_t *from = (const uint64_t *)(const void *)more;

	for (size_t i = 0; i < size / sizeof(*to); i++) {
		to[i] += from[i];
	}
}

void pinion_worker_stats_subtract(
	struct pinion_worker_stats *stats, const struct pinion_worker_stats *before, size_t size)
{
	uint64_t *to = (uint64_t *)(void *)stats;
	const uint64_t *from = (const uint64_t *)(const void *)before;

	for (size_t i = 0; i < size / sizeof(*to); i++) {
		to[i] = to[i] > from[i] ? to[i] - from[i] : 0;
	}
}

/* ---- state ---- */

int pinion_worker_get_info(const struct pinion_runtime *runtime, int worker_index,
	struct pinion_worker_info *out_info, size_t size)
{
	struct pinion_worker_info state;
	int rc = check_index(runtime, worker_index);

	if (rc < 0) {
		return rc;
	}
	pin_metrics_observe(&runtime->shared.workers[worker_index], &state);
	pin_sized_give(out_info, size, &state, sizeof(state));
	return 0;
}

/* ---- ratios ---- */

static double ratio(uint64_t part, uint64_t whole)
{
	return whole == 0 ? 0 : (double)part / (double)whole;
}

/* Of counts that are read one after the other, a part may be ahead. */
static double share(uint64_t part, uint64_t whole)
{
	return part >= whole ? (whole == 0 ? 0 : 1) : ratio(part, whole);
}

void pinion_worker_stats_ratios(const struct pinion_worker_stats *stats, size_t stats_size,
	struct pinion_worker_ratios *out_ratios, size_t size)
{
	struct pinion_worker_stats known = {0};
	struct pinion_worker_ratios ratios;
	uint64_t tried;

	pin_sized_give(&known, sizeof(known), stats,
		stats_size < sizeof(known) ? stats_size : sizeof(known));
	tried = known.searches + known.spin_hits;
	ratios = (struct pinion_worker_ratios){
		.failed_share = share(known.tasks_failed, known.tasks_run),
		.lifo_share = share(known.lifo_polls, known.normal_polls),
		.deque_share = share(known.deque_polls, known.normal_polls),
		.ready_share = share(known.ready_polls, known.normal_polls),
		.inbox_share = share(known.inbox_polls, known.normal_polls),
		.injector_share = share(known.injector_polls, known.normal_polls),
		.steal_share = share(known.steal_polls, known.normal_polls),
		.high_share = share(
			known.high_polls, known.high_polls + known.normal_polls + known.low_polls),
		.low_share = share(
			known.low_polls, known.high_polls + known.normal_polls + known.low_polls),
		.steal_rate = share(known.steals, tried > known.steals ? tried : known.steals),
		.stolen_per_steal = ratio(known.tasks_stolen, known.steals),
		.announced_share = share(known.spawns_announced, known.spawned_local),
		.wakes_saved_share = share(known.wakes_saved, known.wakes_saved + known.wakes_sent),
		.tasks_per_park = ratio(known.tasks_run, known.parks_futex + known.parks_ring),
		.requests_per_enter = ratio(known.requests_completed, known.ring_enters),
		.task_ns_mean = ratio(known.busy_ns, known.tasks_run),
	};
	pin_sized_give(out_ratios, size, &ratios, sizeof(ratios));
}

/* ---- histograms ---- */

enum {
	/* Attempts to read between two writes, each of some microseconds. */
	READ_TRIES = 1000,
};

static int read_histogram(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_histogram *out_histogram)
{
	PIN_CHECK(runtime->shared.metrics != NULL);
	PIN_DCHECK(index < PIN_TIMINGS);
	for (int i = 0; i < READ_TRIES; i++) {
		if (pin_metrics_page_read_histogram(
			    runtime->shared.metrics, index, out_histogram)) {
			return 0;
		}
		pin_cpu_relax();
	}
	return -EAGAIN;
}

int pinion_runtime_get_histogram(const struct pinion_runtime *runtime, enum pinion_timing timing,
	uint32_t lane, struct pinion_histogram *out_histogram)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if ((uint32_t)timing >= PINION_TIMINGS || lane >= PIN_LANES ||
		((uint32_t)timing >= PIN_TIMINGS_LANED && lane != PINION_LANE_NORMAL)) {
		return -EINVAL;
	}
	return read_histogram(runtime, pin_timing_of(timing, lane), out_histogram);
}

int pinion_device_get_histogram(const struct pinion_runtime *runtime, uint32_t index,
	struct pinion_histogram *out_histogram)
{
	if (pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (index >= PIN_TIMED_DEVICES ||
		index >= pin_load_acquire_u32(&runtime->shared.disks.count)) { /* [DISK-1] */
		return -ENOENT;
	}
	return read_histogram(runtime, PIN_TIMINGS_OF_DEVICES + index, out_histogram);
}

void pinion_histogram_record(struct pinion_histogram *histogram, uint64_t value_ns, uint64_t weight)
{
	histogram->buckets[pin_histogram_bucket(value_ns)] += weight;
	histogram->count += weight;
	histogram->sum_ns += value_ns * weight;
}

void pinion_histogram_add(struct pinion_histogram *sum, const struct pinion_histogram *more)
{
	sum->count += more->count;
	sum->sum_ns += more->sum_ns;
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		sum->buckets[i] += more->buckets[i];
	}
}

void pinion_histogram_subtract(
	struct pinion_histogram *histogram, const struct pinion_histogram *before)
{
	histogram->count = pin_rest_u64(histogram->count, before->count);
	histogram->sum_ns = pin_rest_u64(histogram->sum_ns, before->sum_ns);
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		histogram->buckets[i] = pin_rest_u64(histogram->buckets[i], before->buckets[i]);
	}
}

/* By the buckets alone, whatever `count` says. */
uint64_t pinion_histogram_quantile_ns(const struct pinion_histogram *histogram, uint32_t permille)
{
	uint64_t count = 0;
	uint64_t seen = 0;
	uint64_t wanted;

	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		count += histogram->buckets[i];
	}
	permille = permille < 1000 ? permille : 1000;
	wanted = count / 1000 * permille + (count % 1000 * permille + 999) / 1000;
	wanted = wanted > 0 ? wanted : 1;
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS && count > 0; i++) {
		seen += histogram->buckets[i];
		if (seen >= wanted) {
			return pin_histogram_middle(i);
		}
	}
	return 0;
}

uint64_t pinion_histogram_lowest_ns(uint32_t bucket)
{
	return bucket < PINION_HISTOGRAM_BUCKETS ? pin_histogram_lowest(bucket) : UINT64_MAX;
}
