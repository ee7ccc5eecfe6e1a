/* SPDX-License-Identifier: MIT */
/*
 * Reads the fields of a worker and of its runtime, for readers of metrics.
 *
 * The worker publishes from its loop, before it sleeps, and when it leaves, and
 * notes times at readings of the clock; any thread may take a snapshot.
 *
 * Invariant: a worker publishes between two tasks, when its counts agree with
 * each other; so the sums in pinion_metrics(3) hold on the page.
 */
#include "runtime/worker/metrics.h"
#include "runtime/base/check.h"
#include "runtime/io/request.h"
#include "runtime/worker/request.h"
#include "runtime/worker/worker.h"

#define PUBLISH_NS (UINT64_C(10) * 1000 * 1000)
#define PARK_PUBLISH_NS (UINT64_C(1) * 1000 * 1000)
#define STALL_MS_NS (UINT64_C(1) * 1000 * 1000)

/* More than any worker has done. */
#define UNPUBLISHED UINT64_MAX

/* ---- snapshots ---- */

void pin_metrics_collect(const struct pin_worker *worker, struct pinion_worker_stats *out_stats)
{
	pin_counts_collect(&worker->meter, out_stats);
}

static enum pinion_worker_place place_of(const struct pin_worker *worker)
{
	if (pin_load_acquire_u32(&worker->service) == PIN_SERVICE_OUT ||
		pin_meter_read(&worker->meter.has_left) != 0) {
		return PINION_WORKER_ABSENT;
	}
	switch (pin_parker_place(&worker->parker)) {
	case PIN_PARK_FUTEX:
		return PINION_WORKER_PARKED_FUTEX;
	case PIN_PARK_RING:
		return PINION_WORKER_PARKED_RING;
	case PIN_RUNNING:
	case PIN_NOTIFIED:
		break;
	}
	return PINION_WORKER_RUNNING;
}

/* Any thread. */
static uint32_t queue_depth_of(const struct pin_worker *worker)
{
	return pin_deque_count(&worker->deque) + (pin_lifo_is_empty(&worker->lifo) ? 0 : 1);
}

/* All but where it is and for how long it has been running. */
static struct pinion_worker_info observe_own(const struct pin_worker *worker)
{
	const struct pin_meter *meter = &worker->meter;

	return (struct pinion_worker_info){
		.queue_depth = queue_depth_of(worker),
		.requests_in_flight = pin_counts_in_flight(meter),
		.look_interval = pin_meter_read(&meter->look_interval),
		.turn_polls = pin_meter_read(&meter->turn_polls),
		.lifo_row = pin_load_relaxed_u32(&worker->lifo_row),
		.park_until_ns = PIN_NO_DEADLINE,
	};
}

void pin_metrics_observe(const struct pin_worker *worker, struct pinion_worker_info *out_info)
{
	uint64_t clock_ns = pin_meter_read(&worker->meter.clock_ns);
	uint64_t now_ns = worker->shared->host->now_ns();

	*out_info = observe_own(worker);
	out_info->place = place_of(worker);
	if (out_info->place == PINION_WORKER_RUNNING) {
		out_info->running_ns = clock_ns != 0 && now_ns > clock_ns ? now_ns - clock_ns : 0;
	} else if (out_info->place != PINION_WORKER_ABSENT) {
		out_info->park_until_ns = pin_meter_read(&worker->meter.park_until_ns);
	}
}

/* ---- the page ---- */

int pin_metrics_start(struct pin_shared *shared)
{
	struct pin_page_setup setup = {
		.host = shared->host,
		.log = &shared->log,
		.worker_count = shared->worker_count,
		.is_shared = shared->tuning.metrics_page != 0,
		.path = shared->tuning.metrics_file,
	};
	int rc;

	PIN_DCHECK(shared->metrics == NULL);
	rc = pin_metrics_page_create(&setup, &shared->metrics);
	if (rc < 0) {
		return rc;
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		pin_metrics_page_join(shared->metrics, i, &shared->workers[i].observed);
	}
	shared->tuning.metrics_file = NULL; /* the caller's, and no longer needed */
	return 0;
}

void pin_metrics_stop(struct pin_shared *shared)
{
	pin_metrics_page_destroy(shared->metrics, shared->host);
	shared->metrics = NULL;
}

static void publish_slot(const struct pin_worker *worker)
{
	struct pin_shown_worker shown;

	if (worker->observed.slot == NULL) {
		return;
	}
	pin_metrics_collect(worker, &shown.stats);
	shown.info = observe_own(worker);
	shown.clock_ns = pin_meter_read(&worker->meter.clock_ns);
	pin_metrics_page_write_slot(&worker->observed, &shown, worker->now_ns);
}

/* Relaxed: a figure. */
static uint64_t count_bits(const struct pin_atomic_u32 *bits)
{
	return (uint64_t)__builtin_popcount(pin_load_relaxed_u32(bits));
}

static struct pin_shown_runtime observe_runtime(const struct pin_shared *shared)
{
	uint64_t posted = 0;
	uint64_t queued = 0;
	uint64_t searching = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		posted += pin_meter_read(&shared->workers[i].meter.requests_posted);
		queued += queue_depth_of(&shared->workers[i]);
	}
	/* Relaxed, from here on: figures. */
	for (uint32_t i = 0; i < shared->class_count; i++) {
		searching += pin_load_relaxed_u32(&shared->classes[i].searching);
	}
	return (struct pin_shown_runtime){
		.spawned_outside = pin_gate_admitted(&shared->gate) - posted,
		.spawns_refused = pin_load_relaxed_u64(&shared->queue_limit.refused),
		.watchdog_found_work = pin_load_relaxed_u64(&shared->watchdog_found_work),
		.cq_stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_RING]),
		.cq_stall_ns = pin_meter_read(&shared->stalls.ring_ns),
		.queue_depth = queued,
		.injector_depth = pin_load_relaxed_u64(&shared->injector.length),
		.high_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_HIGH]),
		.low_depth = pin_lane_queue_depth(&shared->lanes[PINION_LANE_LOW]),
		.searching = searching,
		.device_count = pin_load_acquire_u32(&shared->disks.count), /* [DISK-1] */
		.stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_TASK]),
		.stall_ns = pin_meter_read(&shared->stalls.task_ns),
		.device_stalls = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_DEVICE]),
		.starved_lanes = pin_load_relaxed_u64(&shared->stalls.counts[PIN_STALL_OF_LANE]),
		.tasks_stalled = pin_load_relaxed_u32(&shared->stalls.tasks_now),
		.devices_stalled = count_bits(&shared->stalls.devices_now),
		.lanes_starving = count_bits(&shared->stalls.lanes_now),
	};
}

/*
 * The lock under which pools are made and ended says which there are; it is
 * only tried. Before the page's lock, whose rank is above.
 */
static bool observe_pools(struct pin_shared *shared, struct pin_shown_pools *out_shown)
{
	struct pin_pool_shortages sum;

	*out_shown = (struct pin_shown_pools){0};
	if (pin_load_relaxed_u32(&shared->has_pools) == 0) {
		return true;
	}
	if (!pin_lock_try(&shared->pools_lock)) {
		return false;
	}
	sum = shared->ended_pools;
	for (uint32_t i = 0; i < PIN_POOLS_MAX; i++) {
		/* Relaxed: the lock orders it. */
		const struct pin_pool *pool =
			(const void *)(uintptr_t)pin_load_relaxed_u64(&shared->pools[i]);

		if (pool != NULL) {
			out_shown->count++;
			out_shown->buffers += pool->buffer_count;
			pin_pool_add_shortages(pool, &sum);
		}
	}
	pin_lock_release(&shared->pools_lock, shared->host);
	out_shown->exhausted = sum.exhausted;
	out_shown->false_nulls = sum.false_nulls;
	out_shown->waits = sum.waits;
	out_shown->wait_ns = sum.wait_ns;
	return true;
}

static struct pin_shown_device observe_device(const struct pin_shared *shared, uint32_t index)
{
	const struct pin_disk *disk = &shared->disks.disks[index];
	struct pin_disk_sums sums = pin_device_account_sums(shared, disk);

	return (struct pin_shown_device){
		.device = disk->device,
		.depth_count = pin_credit_count(pin_load_relaxed_u64(&disk->credit.limit)),
		.taken_count = pin_credit_count(pin_load_relaxed_u64(&disk->credit.taken)),
		.requests = sums.requests,
		.bytes = sums.bytes,
		.waited = sums.waited,
		.throttled = sums.throttled,
		.throttled_ns = sums.throttled_ns,
		.latency_sum_ns = sums.latency_ns,
		.timed = sums.timed,
		.slow = sums.slow,
	};
}

/*
 * By the holder of the lock. `pools` NULL: they are as they were. `gathered`: a
 * worker's, or NULL.
 */
static void publish_runtime(struct pin_shared *shared, const struct pin_shown_pools *pools,
	struct pin_timings *gathered, uint64_t now_ns)
{
	struct pin_shown_runtime shown = observe_runtime(shared);
	struct pin_shown_device devices[PIN_TIMED_DEVICES];

	PIN_DCHECK(shown.device_count <= PIN_DISKS);
	if (pools != NULL) {
		shared->metrics->pools = *pools;
	}
	shown.pools = shared->metrics->pools;
	for (uint32_t i = 0; i < shown.device_count && i < PIN_TIMED_DEVICES; i++) {
		devices[i] = observe_device(shared, i);
	}
	pin_metrics_page_write_runtime(shared->metrics, &shown, devices, gathered, now_ns);
}

PIN_APART void pin_metrics_publish(struct pin_worker *worker)
{
	struct pin_metrics_page *metrics = worker->shared->metrics;
	struct pin_shown_pools pools;
	bool are_seen;

	PIN_DCHECK(metrics != NULL && pin_worker_is_current(worker));
	worker->observed.publish_ns = worker->now_ns + PUBLISH_NS;
	publish_slot(worker);
	worker->observed.published_work = UNPUBLISHED;
	are_seen = observe_pools(worker->shared, &pools);
	if (pin_lock_try(&metrics->lock)) {
		publish_runtime(worker->shared, are_seen ? &pools : NULL, worker->observed.timings,
			worker->now_ns);
		pin_lock_release(&metrics->lock, worker->shared->host);
		worker->observed.published_work = pin_metrics_work(worker);
	}
}

bool pin_metrics_publish_outside(struct pin_shared *shared, uint64_t now_ns)
{
	struct pin_metrics_page *metrics = shared->metrics;
	struct pin_shown_pools pools;
	bool are_seen;

	if (metrics == NULL) {
		return true;
	}
	are_seen = observe_pools(shared, &pools);
	if (!pin_lock_try(&metrics->lock)) {
		return false;
	}
	publish_runtime(shared, are_seen ? &pools : NULL, NULL, now_ns);
	pin_lock_release(&metrics->lock, shared->host);
	return true;
}

void pin_metrics_publish_last(struct pin_worker *worker)
{
	struct pin_metrics_page *metrics = worker->shared->metrics;
	struct pin_shown_pools pools;
	bool are_seen;

	pin_meter_set(&worker->meter.has_left, 1);
	if (metrics == NULL) {
		return;
	}
	worker->now_ns = worker->shared->host->now_ns();
	publish_slot(worker);
	pin_metrics_set_place(worker, PINION_WORKER_ABSENT);
	are_seen = observe_pools(worker->shared, &pools);
	pin_lock_acquire(&metrics->lock, worker->shared->host);
	publish_runtime(
		worker->shared, are_seen ? &pools : NULL, worker->observed.timings, worker->now_ns);
	pin_lock_release(&metrics->lock, worker->shared->host);
}

void pin_metrics_show_in_flight(const struct pin_worker *worker)
{
	/* Relaxed: a figure by itself. */
	pin_store_relaxed_u64(
		&worker->observed.slot[PIN_SLOT_IN_FLIGHT], pin_counts_in_flight(&worker->meter));
}

bool pin_metrics_begin_park(struct pin_worker *worker)
{
	if (worker->observed.publish_ns == PIN_NO_DEADLINE) {
		return false;
	}
	/* Before it may be woken: a stamp of an earlier sleep is void. */
	pin_store_relaxed_u64(&worker->notified_ns, 0);
	return worker->now_ns + PUBLISH_NS >= worker->observed.publish_ns + PARK_PUBLISH_NS;
}

/* ---- times ---- */

PIN_APART void pin_metrics_note_series_slowly(
	struct pin_worker *worker, uint64_t elapsed_ns, uint32_t tasks)
{
	const struct pin_deque *deque = &worker->deque;
	/* Relaxed, all: its own. */
	struct pin_series series = {
		.elapsed_ns = elapsed_ns,
		.now_ns = worker->now_ns,
		.usual_ns = pin_queue_interval_average_ns(&worker->queue_interval),
		.runs = pin_load_relaxed_u64(&worker->meter.tasks_run),
		.tasks = tasks,
		.lane = pin_load_relaxed_u32(&worker->running_lane) % PIN_LANES,
		.first = pin_load_relaxed_u32(&deque->own_first),
		.tail = pin_load_relaxed_u32(&deque->tail),
		.is_in_order = deque->order == PIN_DEQUE_FIFO && !deque->takes_newest,
	};

	PIN_DCHECK(pin_worker_is_current(worker));
	if (PIN_UNLIKELY(elapsed_ns >= worker->shared->tuning.stall_ms * STALL_MS_NS)) {
		pin_meter_set(&worker->meter.long_end_ns, worker->now_ns);
	}
	pin_timings_note_series(&worker->observed, &series);
}

/* Its task's lane, else that of the task that has submitted it. */
static uint32_t lane_of(const struct pin_worker *worker, struct pinion_request *request)
{
	const struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(pin_request_moves_bytes(request)); /* no other has a cost */
	if ((request->task.flags & PIN_TASK_LANES) != 0) {
		return pin_task_lane(&request->task);
	}
	if (private->cost.is_urgent) {
		return PINION_LANE_HIGH;
	}
	return private->lane_priority != 0 &&
			private->lane_priority == worker->shared->io_priorities[PINION_LANE_LOW]
		? PINION_LANE_LOW
		: PINION_LANE_NORMAL;
}

static void record_in_lane(struct pin_worker *worker, enum pinion_timing timing,
	struct pinion_request *request, uint64_t value_ns)
{
	pin_timings_record(worker->observed.timings,
		pin_timing_of(timing, lane_of(worker, request)), value_ns, 1);
}

/* In place of the task's `run`: records when it is entered. */
int pin_metrics_run_ready(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct pin_request *private = pin_request_of(request);
	struct pin_worker *worker = pin_worker_current();

	PIN_DCHECK(private->run != NULL && private->run != pin_metrics_run_ready);
	task->run = private->run;
	record_in_lane(worker, PINION_TIMING_READY, request,
		worker->shared->host->now_ns() - private->cost.started_ns);
	pin_running_enter(worker, (pin_fault_fn)task->run);
	return task->run(task);
}

void pin_metrics_note_request(struct pin_worker *worker, uint32_t device_index,
	struct pinion_request *request, uint64_t now_ns, uint64_t took_ns)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(took_ns <= now_ns);
	/* Where rings are shared its task may be entered elsewhere. */
	if (worker->observed.timings == NULL || worker->shares_ring) {
		return;
	}
	record_in_lane(worker, PINION_TIMING_REQUEST, request, took_ns);
	if (device_index < PIN_TIMED_DEVICES) {
		pin_timings_record(worker->observed.timings, PIN_TIMINGS_OF_DEVICES + device_index,
			took_ns, 1);
	}
	PIN_DCHECK(request->task.run != pin_metrics_run_ready);
	private->cost.started_ns = now_ns;
	private->run = request->task.run;
	request->task.run = pin_metrics_run_ready;
}

/* Into the shared queue, as far as counts show: as the queue limit has it. */
static uint64_t count_pushed(const struct pin_shared *shared)
{
	uint64_t elsewhere = pin_load_relaxed_u64(&shared->queue_limit.elsewhere);
	uint64_t pushed = pin_gate_admitted(&shared->gate);

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		pushed += pin_meter_read(&shared->workers[i].meter.tasks_shared);
	}
	return pushed > elsewhere ? pushed - elsewhere : 0;
}

PIN_APART void pin_metrics_note_batch_slowly(struct pin_worker *worker, bool has_more)
{
	struct pin_shared *shared = worker->shared;
	struct pin_lane_wait_batch batch = {
		.popped = pin_load_relaxed_u64(&shared->injector.popped),
		.pushed = has_more ? count_pushed(shared) : 0,
	};

	PIN_DCHECK(pin_worker_is_current(worker));
	pin_lane_wait_take_batch(&shared->lane_waits[PINION_LANE_NORMAL], shared->host, &batch,
		worker->observed.timings, pin_timing_of(PINION_TIMING_SHARED, PINION_LANE_NORMAL));
}

PIN_APART void pin_metrics_note_wake_slowly(struct pin_worker *worker)
{
	bool is_late = pin_timings_note_wake(&worker->observed, worker->now_ns);

	pin_meter_add(&worker->meter.late_wakes, is_late ? 1 : 0);
}
