/* SPDX-License-Identifier: MIT */
/*
 * Goal: each field of the statistics of a runtime, of its lanes, of a device,
 * of a pool and of an admission is the sum of its own counters over all
 * workers, and of no other.
 * Method: a stopped runtime of three workers, in which every counter is set to
 * a number that no sum of others gives: bit 3k of the first worker, 3k + 1 of
 * the second and 3k + 2 of the third, for counter k of a round of 20. What a
 * round does not set keeps what it had.
 */
#include "runtime/api/internal.h"
#include "runtime/task/admission.h"
#include "runtime/worker/state.h"
#include "tests/support/runtimes.h"

enum {
	WORKERS = 3,
	ROUND = 20,
};

/* One counter: where it is kept, and the field that shows it. */
struct counter {
	const char *name;
	size_t kept_at;
	size_t shown_at;
};

#define RUNTIME(kept, shown) \
	{ \
#shown, offsetof(struct pin_meter, kept), \
			offsetof(struct pinion_runtime_stats, shown) \
	}
#define LANE(kept, shown) \
	{ \
#shown, offsetof(struct pin_meter, kept), \
			offsetof(struct pinion_lane_stats, shown) \
	}
#define WAY(way) files_by_way[way]

static const struct counter of_runtime[] = {
	RUNTIME(tasks_run, tasks_run),
	RUNTIME(tasks_failed, tasks_failed),
	RUNTIME(tasks_cancelled, tasks_cancelled),
	RUNTIME(tasks_spawned, tasks_spawned),
	RUNTIME(requests_completed, requests_completed),
	RUNTIME(requests_submitted, requests_submitted),
	RUNTIME(read_bytes, read_bytes),
	RUNTIME(ring_enters, ring_enters),
	RUNTIME(parks_futex, parks_futex),
	RUNTIME(parks_ring, parks_ring),
	RUNTIME(wakes_sent, wakes_sent),
	RUNTIME(unregistered_reads, unregistered_reads),
	RUNTIME(tasks_stolen, tasks_stolen),
	RUNTIME(steals, steals),
	RUNTIME(lifo_polls, lifo_polls),
	RUNTIME(injector_takes, injector_takes),
	RUNTIME(searches, searches),
	RUNTIME(spin_hits, spin_hits),
	RUNTIME(park_timeout_found_work, park_timeout_found_work),
	RUNTIME(write_bytes, write_bytes),
	RUNTIME(unregistered_writes, unregistered_writes),
	RUNTIME(requests_cancelled, requests_cancelled),
	RUNTIME(requests_timed_out, requests_timed_out),
	RUNTIME(ticks, ticks),
	RUNTIME(tasks_unwound, tasks_unwound),
	RUNTIME(cached_reads, cached_reads),
	RUNTIME(dontcache_reads, dontcache_reads),
	RUNTIME(evicted_reads, evicted_reads),
	RUNTIME(files_registered, files_registered),
	RUNTIME(plain_file_transfers, plain_file_transfers),
	RUNTIME(polled_transfers, polled_transfers),
	RUNTIME(polled_refusals, polled_refusals),
	RUNTIME(ring_commands, ring_commands),
	RUNTIME(tasks_shared, tasks_shared),
	RUNTIME(tasks_laned, tasks_shared),
	RUNTIME(WAY(PINION_WAY_DIRECT), files_direct),
	RUNTIME(WAY(PINION_WAY_ASKED), files_asked),
	RUNTIME(WAY(PINION_WAY_CACHED), files_cached),
	RUNTIME(WAY(PINION_WAY_EMPTY), files_empty),
	RUNTIME(WAY(PINION_WAY_UNABLE), files_unable),
	RUNTIME(direct_refusals, direct_refusals),
	RUNTIME(errors_tried_alone, errors_tried_alone),
	RUNTIME(steal_rounds, steal_rounds),
	RUNTIME(timers_processed, timers_processed),
	RUNTIME(rebinds, workers_rebound),
	RUNTIME(received_bytes, received_bytes),
	RUNTIME(sent_bytes, sent_bytes),
};

/* check_jobs() has those that were completed, and failed. */
static const struct counter of_lanes[] = {
	LANE(high_run, high_jobs_run),
	LANE(low_run, low_jobs_run),
	LANE(floor_turns, floor_turns),
	LANE(aged_turns, aged_turns),
	LANE(assists, assists),
};

static uint64_t *field(void *stats, size_t at)
{
	return (uint64_t *)(void *)((char *)stats + at);
}

static uint64_t share(uint32_t counter, uint32_t worker)
{
	return UINT64_C(1) << (counter % ROUND * WORKERS + worker);
}

static void add(struct pinion_runtime *runtime, const struct counter *counter, uint32_t number)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		char *meter = (char *)&runtime->shared.workers[i].meter;

		pin_meter_add((struct pin_atomic_u64 *)(void *)(meter + counter->kept_at),
			share(number, i));
	}
}

static void expect_same(const char *what, const void *expected, const void *got, size_t bytes)
{
	const uint64_t *left = expected;
	const uint64_t *right = got;

	for (size_t i = 0; i < bytes / sizeof(*left); i++) {
		if (left[i] != right[i]) {
			printf("%s, field %zu: ", what, i);
			expect_number("number", (long long)left[i], (long long)right[i]);
		}
	}
}

static void check_runtime(struct pinion_runtime *runtime)
{
	size_t count = PIN_ARRAY_COUNT(of_runtime);

	for (size_t first = 0; first < count; first += ROUND) {
		struct pinion_runtime_stats expected = runtimes_counters(runtime);
		struct pinion_runtime_stats got;

		for (size_t i = first; i < count && i < first + ROUND; i++) {
			add(runtime, &of_runtime[i], (uint32_t)i);
			for (uint32_t worker = 0; worker < WORKERS; worker++) {
				*field(&expected, of_runtime[i].shown_at) +=
					share((uint32_t)i, worker);
			}
		}
		got = runtimes_counters(runtime);
		expect_same("pinion_runtime_stats", &expected, &got, sizeof(got));
	}
}

/* What a worker took over from outside was admitted as if it were tasks. */
static void check_shared(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;
	struct pinion_runtime_stats expected = runtimes_counters(runtime);
	struct pinion_runtime_stats got;

	for (uint32_t i = 0; i < WORKERS; i++) {
		pin_meter_add(&shared->workers[i].meter.requests_posted, 10 + i);
	}
	pin_store_relaxed_u64(&shared->queue_limit.refused, 5);
	for (uint32_t i = 0; i < PIN_STALL_KINDS; i++) {
		pin_store_relaxed_u64(&shared->stalls.counts[i], 4 + i);
	}
	pin_meter_set(&shared->stalls.task_ns, 5999999);
	pin_meter_set(&shared->stalls.ring_ns, 8999999);
	expected.tasks_spawned -= 33;
	expected.requests_submitted += 33;
	expected.spawns_refused = 5;
	expected.cq_stalls = 7;
	expected.cq_stall_us = 8999;
	expected.stalls = 4;
	expected.stall_us = 5999;
	expected.device_stalls = 5;
	expected.starved_lanes = 6;
	got = runtimes_counters(runtime);
	expect_same("shared counters", &expected, &got, sizeof(got));
}

/* ---- what workers show of themselves ---- */

static void set_states(struct pin_shared *shared, uint32_t first)
{
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pin_worker *worker = &shared->workers[(first + i) % WORKERS];

		pin_meter_set(&worker->meter.look_interval, 20 + i);
		pin_meter_set(&worker->meter.turn_polls, 30 + i);
		pin_store_relaxed_u32(&worker->lifo_row, 40 + i);
	}
}

static void check_states(struct pinion_runtime *runtime)
{
	for (uint32_t first = 0; first < WORKERS; first++) {
		struct pinion_runtime_stats got;

		set_states(&runtime->shared, first);
		got = runtimes_counters(runtime);
		expect_number("least interval", 20, (long long)got.look_interval_min);
		expect_number("most interval", 22, (long long)got.look_interval_max);
		expect_number("longest turn", 32, (long long)got.turn_polls_max);
		expect_number("longest row", 42, (long long)got.lifo_row_max);
	}
}

/* ---- lanes ---- */

static struct pinion_lane_stats lane_stats(struct pinion_runtime *runtime)
{
	struct pinion_lane_stats stats;

	expect_number("lanes", 0, pinion_runtime_get_lane_stats(runtime, &stats, sizeof(stats)));
	return stats;
}

static void check_lanes(struct pinion_runtime *runtime)
{
	struct pinion_lane_stats expected = lane_stats(runtime);
	struct pinion_lane_stats got;

	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(of_lanes); i++) {
		add(runtime, &of_lanes[i], i);
		for (uint32_t worker = 0; worker < WORKERS; worker++) {
			*field(&expected, of_lanes[i].shown_at) += share(i, worker);
		}
	}
	got = lane_stats(runtime);
	expect_same("pinion_lane_stats", &expected, &got, sizeof(got));
}

/* A failure may be seen before its end. */
static void check_jobs(struct pinion_runtime *runtime)
{
	struct pinion_lane_stats got;

	for (uint32_t i = 0; i < WORKERS; i++) {
		struct pin_meter *meter = &runtime->shared.workers[i].meter;

		pin_meter_set(&meter->tasks_run, 100);
		pin_meter_set(&meter->tasks_failed, i == 0 ? 101 : 30);
		pin_meter_set(&meter->busy_ns, 2500);
	}
	got = lane_stats(runtime);
	expect_number("completed", 70 + 70, (long long)got.jobs_completed);
	expect_number("failed", 101 + 30 + 30, (long long)got.jobs_failed);
	expect_number("busy", 7, (long long)got.total_execution_time);
}

/* ---- a device ---- */

static void set_account(struct pin_account *account, uint64_t unit)
{
	pin_store_release_u32(&account->disk_place, 1);
	pin_meter_set(&account->requests, 1 * unit);
	pin_meter_set(&account->bytes, 2 * unit);
	pin_meter_set(&account->waited, 3 * unit);
	pin_meter_set(&account->throttled, 4 * unit);
	pin_meter_set(&account->throttled_ns, 5 * unit);
	pin_meter_set(&account->latency_ns, 600 * unit);
	pin_meter_set(&account->timed, 7 * unit);
	pin_meter_set(&account->slow, 8 * unit);
}

static struct pinion_device_stats device_stats(struct pinion_runtime *runtime)
{
	struct pinion_device_stats stats;

	expect_number("device", 0, pinion_device_get_stats(runtime, 0, &stats, sizeof(stats)));
	return stats;
}

static void expect_device(const struct pinion_device_stats *got, uint64_t sum)
{
	expect_number("device", 0x801, (long long)got->device);
	expect_number("depth", 12, (long long)got->depth_count);
	expect_number("depth bytes", 34 * PIN_PAGE_BYTES, (long long)got->depth_bytes);
	expect_number("taken", 5, (long long)got->taken_count);
	expect_number("taken bytes", 6 * PIN_PAGE_BYTES, (long long)got->taken_bytes);
	expect_number("requests", (long long)sum, (long long)got->requests);
	expect_number("bytes", (long long)(2 * sum), (long long)got->bytes);
	expect_number("waited", (long long)(3 * sum), (long long)got->waited);
	expect_number("throttled", (long long)(4 * sum), (long long)got->throttled);
	expect_number("throttled time", (long long)(5 * sum), (long long)got->throttled_ns);
	expect_number("timed", (long long)(7 * sum), (long long)got->timed);
	expect_number("slow", (long long)(8 * sum), (long long)got->slow);
}

static void check_device(struct pinion_runtime *runtime)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_disk *disk = &shared->disks.disks[0];
	struct pinion_device_stats got;

	expect_number("no device yet", 0, pin_load_relaxed_u32(&shared->disks.count));
	disk->device = 0x801;
	disk->is_rotational = true;
	pin_store_relaxed_u64(&disk->look_ns, 9);
	pin_store_relaxed_u64(&disk->credit.limit, pin_credit_amount(12, 34));
	pin_store_relaxed_u64(&disk->credit.taken, pin_credit_amount(5, 6));
	pin_store_release_u32(&shared->disks.count, 1);
	got = device_stats(runtime);
	expect_device(&got, 0);
	expect_number("no latency", 0, (long long)got.latency_ns);
	for (uint32_t i = 0; i < WORKERS; i++) {
		/* Of another disk; then the disk that is asked for. */
		set_account(&shared->workers[i].device_queue.accounts[0], 1000000);
		pin_store_release_u32(&shared->workers[i].device_queue.accounts[0].disk_place, 2);
		set_account(&shared->workers[i].device_queue.accounts[1], 10 + i);
	}
	got = device_stats(runtime);
	expect_device(&got, 33);
	expect_number("latency", 600 / 7, (long long)got.latency_ns);
	expect_number("rotational", 1, got.is_rotational);
	expect_number("found out", 1, got.is_found_out);
	disk->is_rotational = false;
	pin_store_relaxed_u64(&disk->look_ns, UINT64_MAX);
	got = device_stats(runtime);
	expect_number("not rotational", 0, got.is_rotational);
	expect_number("set by hand", 0, got.is_found_out);
	pin_store_release_u32(&shared->disks.count, 0);
}

/* ---- a pool ---- */

static struct pinion_pool_stats pool_stats(const struct pinion_pool *pool)
{
	struct pinion_pool_stats stats;

	pinion_pool_get_stats(pool, &stats, sizeof(stats));
	return stats;
}

/* A call that waits is counted, and for how long. */
static void check_pool_waits(struct pinion_runtime *runtime)
{
	static struct pinion_histogram waits;
	struct pinion_buffer buffers[64];
	struct pinion_buffer none;
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;

	pinion_pool_config_init(&config);
	config.buffer_count = 64;
	config.buffer_bytes = 4096;
	expect_number("pool", 0, pinion_pool_create(runtime, &config, &pool));
	for (int i = 0; i < 64; i++) {
		expect_number(
			"at once", 0, pinion_pool_acquire_wait(pool, UINT64_MAX, &buffers[i]));
	}
	pinion_pool_get_waits(pool, &waits);
	expect_number("no wait", 0, (long long)waits.count);
	expect_number("waits in vain", -ETIME,
		pinion_pool_acquire_wait(pool, pinion_clock_now_ns() + 1000000, &none));
	pinion_pool_get_waits(pool, &waits);
	expect_number("a wait", 1, (long long)waits.count);
	expect_true("its time is in its bucket",
		waits.sum_ns / 33 * 32 <= pinion_histogram_quantile_ns(&waits, 1000) + 2 &&
			pinion_histogram_quantile_ns(&waits, 1000) / 33 * 32 <= waits.sum_ns + 2);
	for (int i = 0; i < 64; i++) {
		expect_number("release", 0, pinion_pool_release(pool, &buffers[i]));
	}
	pinion_pool_destroy(pool);
}

static void check_pool(struct pinion_runtime *runtime)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;
	struct pinion_pool_stats before;
	struct pinion_pool_stats got;

	pinion_pool_config_init(&config);
	config.buffer_count = 64;
	config.buffer_bytes = 4096;
	expect_number("pool", 0, pinion_pool_create(runtime, &config, &pool));
	before = pool_stats(pool);
	expect_number("free at first", 64, (long long)before.free_count);
	for (uint32_t i = 0; i < pool->pool.magazine_count; i++) {
		struct pin_magazine *magazine = &pool->pool.magazines[i];

		pin_meter_set(&magazine->hits, UINT64_C(1) << i);
		pin_meter_set(&magazine->misses, UINT64_C(0x100) << i);
		pin_meter_set(&magazine->refills, UINT64_C(0x10000) << i);
		pin_meter_set(&magazine->spills, UINT64_C(0x1000000) << i);
	}
	pin_store_relaxed_u64(&pool->pool.steals, 5);
	pin_store_relaxed_u64(&pool->pool.exhausted, 6);
	pin_store_relaxed_u64(&pool->pool.misuses, 7);
	pin_store_relaxed_u64(&pool->pool.false_nulls, 8);
	got = pool_stats(pool);
	expect_true("few caches",
		pool->pool.magazine_count >= WORKERS && pool->pool.magazine_count <= 8);
	{
		uint64_t ones = (UINT64_C(1) << pool->pool.magazine_count) - 1;

		expect_number("hits", (long long)ones, (long long)got.local_hits);
		expect_number("outside", (long long)(before.outside - ones - 0x100 * ones),
			(long long)got.outside);
		expect_number("refills", (long long)(0x10000 * ones), (long long)got.refills);
		expect_number("spills", (long long)(0x1000000 * ones), (long long)got.spills);
	}
	expect_number("steals", 5, (long long)got.steals);
	expect_number("exhausted", 6, (long long)got.exhausted);
	expect_number("misuses", 7, (long long)got.misuses);
	expect_number("false nulls", 8, (long long)got.false_nulls);
	expect_number("free", 64, (long long)got.free_count);
	expect_number("shared", (long long)before.shared_count, (long long)got.shared_count);
	pinion_pool_destroy(pool);
}

/* ---- an admission ---- */

static void check_admission(void)
{
	struct pinion_admission admission;
	struct pin_admission *self = (void *)admission.private_;
	struct pinion_admission_stats got;

	memset(&admission, 0, sizeof(admission));
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		pin_store_relaxed_u64(&self->refused[i], 10 + i);
		pin_store_relaxed_u64(&self->evicted[i], 20 + i);
	}
	pin_store_relaxed_u32(&self->running, 1);
	pin_store_relaxed_u64(&self->failed, 2);
	pin_store_relaxed_u64(&self->job_ns, 3);
	pin_store_relaxed_u64(&self->cancelled, 4);
	pin_store_relaxed_u64(&self->timed_out, 5);
	pinion_admission_get_stats(&admission, &got, sizeof(got));
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		expect_number("current", 0, got.current[i]);
		expect_number("refused", 10 + i, (long long)got.refused[i]);
		expect_number("evicted", 20 + i, (long long)got.evicted[i]);
	}
	expect_number("running", 1, got.running);
	expect_number("failed", 2, (long long)got.failed);
	expect_number("time", 3, (long long)got.job_ns);
	expect_number("cancelled", 4, (long long)got.cancelled);
	expect_number("timed out", 5, (long long)got.timed_out);
}

int main(void)
{
	struct pinion_runtime *runtime = runtimes_start(WORKERS, PINION_IO_FALLBACK);

	check_pool_waits(runtime);
	check_pool(runtime);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	check_runtime(runtime);
	check_shared(runtime);
	check_states(runtime);
	check_lanes(runtime);
	check_jobs(runtime);
	check_device(runtime);
	check_admission();
	pinion_runtime_destroy(runtime);
	return expect_status();
}
