/* SPDX-License-Identifier: MIT */
/*
 * Who has shown no sign of life since when.
 */
#include "runtime/core/stall.h"
#include "runtime/core/running.h"

enum {
	LOOKS_PER_LIMIT = 2,
	/* Of all workers; many stalls must not become as many lines. */
	LINES_MAX = 10,
	LINES_PERIOD_NS = 1000 * 1000 * 1000,
};

static uint64_t limit_ns(const struct pin_shared *shared)
{
	return shared->config.stall_ms * 1000 * 1000;
}

static uint64_t signs_of(const struct pin_worker *worker)
{
	const struct pin_meter *meter = &worker->meter;

	return pin_meter_read(&meter->tasks_run) + pin_meter_read(&meter->tasks_cancelled) +
		pin_meter_read(&meter->parks_futex) + pin_meter_read(&meter->parks_ring) +
		pin_load_relaxed_u32(&worker->life);
}

static bool may_be_in_task(const struct pin_worker *worker)
{
	return !pin_parker_is_parked(&worker->parker) &&
		pin_load_acquire_u32(&worker->service) == PIN_SERVICE_IN;
}

/* Whether one more line is fine; tells how many were not. */
static bool may_log(struct pin_shared *shared, uint64_t now_ns)
{
	struct pin_stalls *stalls = &shared->stalls;

	if (now_ns - stalls->period_ns >= LINES_PERIOD_NS) {
		if (stalls->skipped > 0) {
			pin_log(&shared->log, PINION_LOG_WARN,
				"%u more stalled tasks were not logged", stalls->skipped);
		}
		stalls->period_ns = now_ns;
		stalls->lines = 0;
		stalls->skipped = 0;
	}
	if (stalls->lines == LINES_MAX) {
		stalls->skipped++;
		return false;
	}
	stalls->lines++;
	return true;
}

static void say(const struct pin_worker *worker)
{
	static const char *const lanes[PIN_LANES] = {"high", "normal", "low"};
	pin_fault_fn function = pin_running_of(worker);
	uint32_t lane = pin_load_relaxed_u32(&worker->running_lane);
	uint64_t signs = worker->stall.signs;
	char name[PIN_RUNNING_NAME_BYTES];

	/* If it is still in there; else the name is another's. */
	if (signs_of(worker) == signs) {
		pin_running_describe(function, name);
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u: task %s of the %s lane runs for more than %llu ms without "
			"progress",
			worker->index, name, lanes[lane],
			(unsigned long long)worker->shared->config.stall_ms);
	}
}

static void look_at(struct pin_shared *shared, struct pin_worker *worker, uint64_t now_ns)
{
	struct pin_stall *stall = &worker->stall;
	uint64_t signs = signs_of(worker);

	if (!may_be_in_task(worker)) {
		stall->is_seen = false;
	} else if (!stall->is_seen || signs != stall->signs) {
		*stall = (struct pin_stall){.signs = signs, .since_ns = now_ns, .is_seen = true};
	} else if (!stall->is_told && now_ns - stall->since_ns >= limit_ns(shared)) {
		stall->is_told = true;
		if (may_log(shared, now_ns)) {
			say(worker);
		}
	}
}

uint64_t pin_stall_look(struct pin_shared *shared)
{
	struct pin_stalls *stalls = &shared->stalls;
	uint64_t now_ns;

	if (!pin_stall_is_watched(shared)) {
		return PIN_NO_DEADLINE;
	}
	now_ns = shared->host->now_ns();
	if (now_ns >= stalls->look_ns) {
		for (uint32_t i = 0; i < shared->worker_count; i++) {
			look_at(shared, &shared->workers[i], now_ns);
		}
		stalls->look_ns = now_ns + limit_ns(shared) / LOOKS_PER_LIMIT;
	}
	return stalls->look_ns;
}
