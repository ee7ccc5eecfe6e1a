/* SPDX-License-Identifier: MIT */
/*
 * A list of waiting tasks, oldest first, and a check of every worker.
 *
 * The one place that looks into the scheduler: at the shared queue's length and
 * at a worker's ring, as plain memory, so that looking changes nothing.
 */
#include "tests/sim/watch.h"
#include "runtime/worker/worker.h"
#include "tests/sim/device.h"
#include "tests/sim/workload.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <string.h>

#define NOBODY UINT32_MAX

enum {
	/*
	 * Urgent tasks in a row that pass others of the same worker: until
	 * those are due, then one, and one for each lane that is due in vain.
	 */
	PASSED_MAX = PIN_LANE_BOUND_FLOOR - 1 + 1 + PIN_LANES,
	/* Others between two urgent ones: normal, low, and of the worker. */
	BETWEEN_MAX = 3,
};

enum bound { NOT_BOUND, BOUND, BOUND_URGENT };

/* Tasks of requests that are over, on one worker. */
struct turns {
	uint32_t urgent_count;
	uint32_t other_count;
	uint32_t passed_count;	/* urgent ones entered, in a row, beside others */
	uint32_t between_count; /* others entered, in a row, beside urgent ones */
};

struct waiting {
	uint32_t older;
	uint32_t younger;
	uint64_t since_ns;
	bool is_waiting;
	enum bound bound;
};

static struct {
	uint64_t age_limit_ns;
	uint64_t sleeper_limit_ns;
	uint64_t all_awake_ns; /* when no worker slept, last of all */
	bool has_net;
	bool shares_rings;
	struct turns turns[WORLD_THREADS_MAX];
	uint32_t oldest;
	uint32_t youngest;
	struct waiting tasks[WORKLOAD_TASKS_MAX];
} watch;

void watch_begin(uint64_t age_limit_ns, uint64_t sleeper_limit_ns, bool has_net)
{
	watch.age_limit_ns = age_limit_ns;
	watch.sleeper_limit_ns = sleeper_limit_ns;
	watch.all_awake_ns = 0;
	watch.has_net = has_net;
	watch.shares_rings = false;
	memset(watch.turns, 0, sizeof(watch.turns));
	watch.oldest = NOBODY;
	watch.youngest = NOBODY;
	memset(watch.tasks, 0, sizeof(watch.tasks));
}

void watch_task_ready(uint32_t task)
{
	struct waiting *waiting = &watch.tasks[task];

	*waiting = (struct waiting){
		.older = watch.youngest,
		.younger = NOBODY,
		.since_ns = world_now_ns(),
		.is_waiting = true,
	};
	if (watch.youngest != NOBODY) {
		watch.tasks[watch.youngest].younger = task;
	} else {
		watch.oldest = task;
	}
	watch.youngest = task;
}

void watch_task_gone(uint32_t task)
{
	struct waiting *waiting = &watch.tasks[task];

	if (!waiting->is_waiting) {
		return;
	}
	waiting->is_waiting = false;
	if (waiting->older != NOBODY) {
		watch.tasks[waiting->older].younger = waiting->younger;
	} else {
		watch.oldest = waiting->younger;
	}
	if (waiting->younger != NOBODY) {
		watch.tasks[waiting->younger].older = waiting->older;
	} else {
		watch.youngest = waiting->older;
	}
}

void watch_shares_rings(void)
{
	watch.shares_rings = true;
}

void watch_task_bound(uint32_t task, bool is_urgent)
{
	struct turns *turns = &watch.turns[world_thread_current()];

	if (!watch.shares_rings) {
		watch.tasks[task].bound = is_urgent ? BOUND_URGENT : BOUND;
		*(is_urgent ? &turns->urgent_count : &turns->other_count) += 1;
	}
}

static void enter_urgent(struct turns *turns, uint32_t task)
{
	turns->urgent_count--;
	turns->between_count = 0;
	turns->passed_count = turns->other_count > 0 ? turns->passed_count + 1 : 0;
	if (turns->passed_count > PASSED_MAX) {
		world_fail("urgent task %u is the %uth in a row that passes others", task,
			turns->passed_count);
	}
}

void watch_task_entered(uint32_t task)
{
	struct turns *turns = &watch.turns[world_thread_current()];
	enum bound bound = watch.tasks[task].bound;

	watch.tasks[task].bound = NOT_BOUND;
	if (bound == BOUND_URGENT) {
		enter_urgent(turns, task);
		return;
	}
	if (bound == BOUND) {
		turns->other_count--;
		turns->passed_count = 0;
	}
	turns->between_count = turns->urgent_count > 0 ? turns->between_count + 1 : 0;
	if (turns->between_count > BETWEEN_MAX) {
		world_fail("task %u is the %uth in a row that an urgent one waits for", task,
			turns->between_count);
	}
}

static bool is_any_asleep(void)
{
	for (uint32_t i = 0; i < world_thread_count(); i++) {
		if (workload_is_worker(i) && world_thread_is_asleep(i)) {
			return true;
		}
	}
	return false;
}

static void check_age_beside_sleeper(uint64_t now_ns)
{
	uint64_t since_ns = watch.tasks[watch.oldest].since_ns;

	if (!is_any_asleep()) {
		watch.all_awake_ns = now_ns;
	}
	if (since_ns < watch.all_awake_ns) {
		since_ns = watch.all_awake_ns;
	}
	if (now_ns - since_ns > watch.sleeper_limit_ns) {
		world_fail("task %u has waited beside a sleeper for %" PRIu64 " us", watch.oldest,
			(now_ns - since_ns) / 1000);
	}
}

void watch_age(uint64_t now_ns)
{
	uint64_t age_ns;

	if (watch.oldest == NOBODY) {
		return;
	}
	age_ns = now_ns - watch.tasks[watch.oldest].since_ns;
	if (age_ns > watch.age_limit_ns) {
		world_fail("task %u has waited for %" PRIu64 " us", watch.oldest, age_ns / 1000);
	}
	if (watch.sleeper_limit_ns > 0) {
		check_age_beside_sleeper(now_ns);
	}
}

static void check_ranges(const struct pin_worker *worker)
{
	const struct pinion_tuning *tuning = &worker->shared->tuning;
	uint32_t interval = pin_queue_interval_interval(&worker->queue_interval);
	uint32_t searching = worker->worker_class->searching.value;

	if (worker->lifo_row.value > tuning->lifo_polls) {
		world_fail("worker %u polls its slot %" PRIu32 " times in a row", worker->index,
			worker->lifo_row.value);
	}
	if (worker->meter.turn_polls.value > tuning->budget_polls) {
		world_fail("a turn of worker %u had %" PRIu64 " polls", worker->index,
			worker->meter.turn_polls.value);
	}
	if (interval < tuning->interval_min || interval > tuning->interval_max) {
		world_fail("interval of worker %u is out of range: %u", worker->index, interval);
	}
	if (searching > world_thread_count()) {
		world_fail("searchers of worker %u's worker_class are %" PRIu32, worker->index,
			searching);
	}
}

void watch_ranges(void)
{
	for (uint32_t i = 0; i < world_thread_count(); i++) {
		if (workload_is_worker(i)) {
			check_ranges(world_thread_arg(i));
		}
	}
}

static bool has_stalled_thread(void)
{
	for (uint32_t i = 0; i < world_thread_count(); i++) {
		if (world_thread_state(i) == WORLD_STALLED) {
			return true;
		}
	}
	return false;
}

static bool has_shared_work(const struct pin_shared *shared, uint32_t lane)
{
	const struct pin_injector *injector =
		lane == PINION_LANE_NORMAL ? &shared->injector : &shared->lanes[lane].injector;

	return injector->length.value > 0 || injector->newcomers.value != 0;
}

/* A worker that is free beyond the reserve of its class takes others' work. */
static void check_assistant(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	if (shared->tuning.assist != PINION_ASSIST_IDLE || !worker->is_free ||
		worker->worker_class->free_count.value <= shared->tuning.assist_reserve) {
		return;
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (!pin_worker_serves(worker, lane) && has_shared_work(shared, lane)) {
			world_fail("worker %u sleeps beside tasks of lane %u to assist with",
				worker->index, lane);
		}
	}
}

static void check_sleeper(uint32_t thread, const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;

	if (worker->service.value != PIN_SERVICE_IN) {
		return; /* it waits for tasks bound to it, and serves nothing more */
	}
	for (uint32_t lane = 0; lane < PIN_LANES; lane++) {
		if (pin_worker_serves(worker, lane) && has_shared_work(shared, lane)) {
			world_fail("worker %u sleeps beside tasks in the shared queue of lane %u",
				worker->index, lane);
		}
	}
	check_assistant(worker);
	if (worker->polled.in_flight > 0) {
		world_fail("worker %u sleeps beside a device that it should poll", worker->index);
	}
	if (worker->sqe128.is_initialised && device_unseen_count(&worker->sqe128.uring) > 0) {
		world_fail("worker %u sleeps beside completed commands", worker->index);
	}
	if (world_thread_state(thread) == WORLD_FUTEX && worker->ring.is_initialised &&
		!worker->ring.is_fallback && device_unseen_count(&worker->ring.uring) > 0) {
		world_fail("worker %u sleeps on its futex beside completions", worker->index);
	}
}

void watch_sleepers(void)
{
	/* A stalled thread may be on its way to wake a worker. */
	if (watch.has_net || has_stalled_thread()) {
		return;
	}
	for (uint32_t i = 0; i < world_thread_count(); i++) {
		if (workload_is_worker(i) && world_thread_is_asleep(i)) {
			check_sleeper(i, world_thread_arg(i));
		}
	}
}
