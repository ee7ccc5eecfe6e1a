/* SPDX-License-Identifier: MIT */
/*
 * A worker's life: set-up on the creator's thread, start on its own, steps,
 * end.
 *
 * api/ calls init before it starts the thread, and fini after it joined it.
 * pin_worker_main() is the thread.
 *
 * Invariant: memory is touched, and the ring made, on the worker's own thread
 * and after it was bound, so both are near its CPU, and the ring accepts this
 * thread as its only submitter.
 */
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/kernel.h"
#include "runtime/loop/loop.h"
#include "runtime/memory/pool.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/request.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/watchdog.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Thread_local struct pin_worker *pin_worker_self PIN_TLS_INITIAL;

/* Neither a worker nor in one's hook any more. */
static void forget(void)
{
	struct pin_thread *thread = pin_thread_find();

	pin_worker_self = NULL;
	if (thread != NULL) {
		thread->worker_in_hook = NULL;
	}
}

void pin_worker_forget(void)
{
	forget();
}

/*
 * Makes the worker's ring. Where io_uring is not required the worker notes a
 * refusal, of which the creator warns, and carries out its requests by system
 * calls.
 */
static int start_ring(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	struct pin_ring_options options = {
		.entries = shared->tuning.ring_entries,
		.helper_count = shared->tuning.ring_helper_count,
		.is_fallback = shared->is_fallback,
		.is_shared = worker->shares_ring,
		.kernel = &shared->kernel,
	};
	char hint[192];
	int rc;

	PIN_DCHECK(!worker->ring.is_initialised);
	rc = pin_ring_init(&worker->ring, shared->host, &worker->meter, &options, &shared->log);

	if (rc == 0) {
		pin_request_ask_parts(worker, &worker->ring);
		/* Of a kernel that cannot they run anywhere, as before. */
		if (pin_load_relaxed_u32(&worker->is_bound) != 0 && !shared->is_fallback) {
			(void)shared->host->ring_bind_helpers(
				worker->ring.uring.ring_fd, worker->place.node_index);
		}
		return 0;
	}
	if (shared->config.io_level != PINION_IO_AUTO || worker->needs_ring) {
		pin_kernel_ring_hint(rc, hint, sizeof(hint));
		pin_log(&shared->log, PINION_LOG_ERROR, "worker %u has no io_uring: %s",
			worker->index, hint);
		return rc;
	}
	worker->ring_error = rc;
	options.is_fallback = true;
	rc = pin_ring_init(&worker->ring, shared->host, &worker->meter, &options, &shared->log);
	if (rc == 0) {
		pin_request_ask_parts(worker, &worker->ring);
	}
	return rc;
}

/* Of one magazine, which holds them all and is the worker's. */
static int init_pool(struct pin_pool *pool, const struct pin_shared *shared, uint8_t *memory,
	uint32_t buffer_bytes, uint32_t buffer_count)
{
	struct pin_pool_region region = {.memory = memory, .buffer_count = buffer_count};
	struct pin_pool_setup setup = {
		.host = shared->host,
		.log = shared->log,
		.buffer_bytes = buffer_bytes,
		.magazine_count = 1,
		.magazine_capacity = buffer_count,
		.is_closed = shared->arenas_grow,
		.seeded_count = 1,
		.node_count = 1,
		.regions = &region,
		.region_count = 1,
	};

	return pin_pool_init(pool, &setup);
}

/*
 * Maps the arena and cuts it into the worker's own buffers; the rest is for
 * pools. A worker in a slot that had one before finds the arena in place.
 */
static int start_memory(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;
	const struct pinion_config *config = &shared->config;
	const struct pinion_tuning *tuning = &shared->tuning;
	size_t large_bytes = (size_t)config->buffer_bytes * config->buffer_count;
	size_t small_bytes = (size_t)config->small_buffer_bytes * config->small_buffer_count;
	struct pin_arena_options options = {
		.bytes = pin_arena_setup_arena_bytes(config),
		.lazy_bytes = shared->arenas_grow ? large_bytes + small_bytes : 0,
		.worker_index = worker->index,
		.node_index = worker->place.node_index,
		.map = tuning->arena_map,
		.unmap = tuning->arena_unmap,
		.map_arg = tuning->arena_arg,
	};
	/* That of the worker that was here before; pools may be in it. */
	bool is_new = worker->arena.memory == NULL;
	uint8_t *large;
	uint8_t *small;
	int rc = is_new ? pin_arena_init(&worker->arena, shared->host, &options, &shared->log) : 0;

	if (rc < 0) {
		return rc;
	}
	if (!pin_arena_setup_is_shared(shared)) {
		pin_arena_setup_register_own(worker);
	}
	if (!is_new) {
		return 0;
	}
	large = pin_arena_carve(&worker->arena, large_bytes, PIN_PAGE_BYTES);
	small = pin_arena_carve(&worker->arena, small_bytes, PIN_PAGE_BYTES);
	PIN_CHECK(large != NULL);
	PIN_CHECK(small != NULL);
	rc = init_pool(&worker->buffers, shared, large, config->buffer_bytes, config->buffer_count);
	if (rc < 0) {
		return rc;
	}
	rc = init_pool(&worker->small_buffers, shared, small, config->small_buffer_bytes,
		config->small_buffer_count);
	if (rc == 0) {
		pin_arena_growth_start(worker);
	}
	return rc;
}

enum {
	NICE_MAX = 19,
	/* Far more than it takes, unless it makes way for others in between. */
	WAKER_DELAY_NS = 10 * 1000 * 1000,
	/* A fence costs as much as one spawn and a half. */
	FENCE_HOARDS = 4,
};

static uint32_t lowest_lane(const struct pin_worker_class *worker_class)
{
	uint32_t lane = PIN_LANES - 1;

	PIN_CHECK((worker_class->order.mask & PIN_LANES_ALL) != 0); /* else there is no end below */
	while ((worker_class->order.mask & 1u << lane) == 0) {
		lane--;
	}
	return lane;
}

/* By how much more than those of the topmost class it has to make way. */
static uint32_t niceness_of(const struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	uint32_t step = shared->tuning.class_nice;
	uint32_t own = lowest_lane(worker->worker_class);
	uint32_t top = own;

	for (uint32_t i = 0; i < shared->class_count; i++) {
		uint32_t lane = lowest_lane(&shared->classes[i]);

		top = lane < top ? lane : top;
	}
	PIN_DCHECK(own >= top);
	if (step == PIN_NICE_IDLE) {
		return own > top ? step : 0;
	}
	return step * (own - top) < NICE_MAX ? step * (own - top) : NICE_MAX;
}

static void make_way(const struct pin_worker *worker)
{
	uint32_t niceness = niceness_of(worker);
	int rc = niceness > 0 ? worker->shared->host->thread_make_way(niceness) : 0;

	if (rc < 0) {
		pin_log(&worker->shared->log, PINION_LOG_DEBUG,
			"worker %u does not make way for those of upper lanes: %s", worker->index,
			strerror(-rc));
	}
}

/*
 * The order matters: CPU, then ring, then memory, then the rings that register
 * the memory, then the embedder's hook, which may use all of it.
 */
static int start(struct pin_worker *worker, struct pin_thread *record)
{
	int rc;

	PIN_DCHECK(pin_worker_is_current(worker));
	if (pin_thread_provide(record) < 0) {
		pin_log(&worker->shared->log, PINION_LOG_ERROR,
			"worker %u has no thread-specific data: no memory, or all keys of "
			"pthread_key_create(3) are in use",
			worker->index);
		return -ENOMEM;
	}
	/*
	 * Bound before the first touch, so that memory lands on the right node.
	 */
	pin_binding_start(worker);
	worker->shared->host->thread_sleep_exactly();
	if (worker->shared->host->thread_number != NULL) {
		/* Relaxed: a name, for messages. */
		pin_store_relaxed_u32(
			&worker->thread_number, worker->shared->host->thread_number());
	}
	make_way(worker);
	rc = start_ring(worker);
	if (rc == 0) {
		pin_files_start(worker);
		rc = start_memory(worker);
	}
	if (rc == 0) {
		pin_polled_start(worker);
		pin_arena_setup_register_polled(worker);
	}
	return rc < 0 ? rc : pin_hooks_start(worker);
}

/* After the deque, which counts. */
static void init_wake_batch(struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	uint32_t worth_spawns = shared->tuning.wake_batch_spawns;
	/* A check without a fence is of the own worker class only. */
	uint32_t fence_spawns =
		shared->class_count > 1 ? worth_spawns : FENCE_HOARDS * worth_spawns;

	PIN_DCHECK(worth_spawns > 0);
	PIN_DCHECK(worth_spawns <= UINT32_MAX / FENCE_HOARDS);
	if (shared->worker_count == 1) {
		worth_spawns = PIN_WAKE_BATCH_NEVER;
		fence_spawns = PIN_WAKE_BATCH_NEVER;
	}
	pin_wake_batch_init(&worker->wake_batch, worth_spawns, fence_spawns,
		(uint64_t)shared->tuning.wake_worth_us * 1000, shared->tuning.spawn_wake_us * 1000);
	pin_spawn_note_told(worker);
	worker->announce_ns = PIN_NO_DEADLINE;
	pin_spawn_note_awake(worker);
}

/*
 * Fills in every field that the configuration decides. All of it runs before
 * the thread exists, so no store needs an order.
 */
int pin_worker_init(struct pin_worker *worker)
{
	const struct pinion_config *config = &worker->shared->config;
	const struct pinion_tuning *tuning = &worker->shared->tuning;
	struct pin_queue_interval_options looks = {
		.alpha_permille = tuning->ewma_alpha_permille,
		.target_ns = tuning->injector_target_us * 1000,
		.interval_min = tuning->interval_min,
		.interval_max = tuning->interval_max,
		.default_task_ns = tuning->task_ns,
	};
	bool is_fifo = tuning->queue_order == PINION_QUEUE_FIFO;
	uint32_t struck = pin_level_struck(config->io_level, tuning->io_without);
	struct pin_shared *shared = worker->shared;
	struct pin_atomic_u64 *slots =
		pin_heap_zeroed(shared->host, PIN_HEAP_ALIGN, tuning->queue_tasks, sizeof(*slots));

	if (slots == NULL) {
		return -ENOMEM;
	}
	PIN_CHECK(worker->index < shared->worker_count);
	worker->worker_class =
		&shared->classes[pin_lane_plan_class(&shared->lane_plan, worker->index)];
	PIN_DCHECK(worker->index - worker->worker_class->first_worker <
		worker->worker_class->worker_count);

	pin_parker_init(&worker->parker);
	pin_injector_init(&worker->external, shared->host);
	pin_injector_init(&worker->external_urgent, shared->host);
	pin_queue_interval_init(&worker->queue_interval, &looks);
	pin_meter_set(
		&worker->meter.look_interval, pin_queue_interval_interval(&worker->queue_interval));
	pin_meter_set(&worker->meter.park_until_ns, PIN_NO_DEADLINE);
	pin_timers_init(&worker->timers, worker->shared->host->now_ns());
	pin_store_relaxed_u64(&worker->timer_ns, PIN_NO_DEADLINE);
	pin_requests_init(worker);
	pin_random_init(&worker->random, tuning->seed, worker->index);
	if (!is_fifo || tuning->lifo_polls == 0 || !pin_worker_serves(worker, PINION_LANE_NORMAL)) {
		pin_lifo_close(&worker->lifo, PIN_SLOW_REASON_UNUSED);
	}
	pin_spin_init(&worker->spin, tuning->spin_iters);
	pin_store_relaxed_u32(&worker->running_lane, PINION_LANE_NORMAL);
	worker->tick_ns = PIN_NO_DEADLINE;
	pin_observed_init(&worker->observed);
	worker->growth.look_ns = PIN_NO_DEADLINE;
	pin_binding_reset(worker);
	worker->stride = 1;
	worker->waker_delay_ns = WAKER_DELAY_NS;
	pin_watchdog_set_must_tell(worker, worker->shared->has_watchdog);
	worker->shares_ring =
		worker->shared->worker_count > 1 && tuning->ring_sharing == PINION_RING_SHARED;
	worker->sorts_ends = worker->shares_ring;
	worker->devices.meter = &worker->meter;
	worker->devices.skips_dioalign = (struck & PINION_IO_STATX_DIOALIGN) != 0;
	worker->devices.skips_cachestat = (struck & PINION_IO_CACHESTAT) != 0;
	worker->devices.skips_dontcache = (struck & PINION_IO_DONTCACHE) != 0;
	pin_lane_turns_init(&worker->lanes, &worker->worker_class->order, tuning->lane_floor);
	pin_deque_init(&worker->deque, slots, tuning->queue_tasks,
		is_fifo ? PIN_DEQUE_FIFO : PIN_DEQUE_LIFO);
	if (is_fifo && worker->shared->has_fence_all) {
		pin_deque_allow_reservation(&worker->deque, worker->shared->host);
	}
	if (!pin_worker_serves(worker, PINION_LANE_NORMAL)) {
		pin_deque_close(&worker->deque);
	}
	init_wake_batch(worker);
	return 0;
}

/* The creator sees all that came before once it sees the count. */
static void arrive(struct pin_shared *shared)
{
	pin_fetch_add_acq_rel_u32(&shared->started_count, 1);
	shared->host->futex_wake(&shared->started_count, 1);
}

/* Also when this worker has failed: others may have not. */
static void join_registry(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_DCHECK(pin_arena_setup_is_shared(shared));
	/* [ARENA-1] */
	while (pin_load_acquire_u32(&shared->has_registered) == 0) {
		shared->host->futex_wait(&shared->has_registered, 0, PIN_NO_DEADLINE);
	}
	if (worker->start_error == 0) {
		pin_arena_setup_join(worker);
		pin_arena_setup_register_polled(worker);
	}
	arrive(shared);
}

/*
 * In the guard: the outcome of the last unwind is accounted for, and another
 * may follow.
 */
static void run_steps(void *arg)
{
	struct pin_worker *worker = arg;

	PIN_DCHECK(pin_worker_of_thread() == worker && worker->guard != NULL);
	if (worker->unwind_result != PIN_UNWIND_RETURNED) {
		pin_fault_recover(worker);
		pin_worker_end_loop(worker);
	}
	while (pin_worker_step(worker) != PIN_STEP_EXIT) {
	}
	pin_hooks_stop(worker);
}

/* Code that runs on it still, destructors of its own data, is no worker's. */
static void leave_thread(void)
{
	forget();
	pin_recent_forget();
}

/*
 * A task that unwinds returns from the guard without PIN_UNWIND_RETURNED: the
 * loop then accounts for it and steps on, on this thread.
 */
void *pin_worker_main(void *arg)
{
	struct pin_worker *worker = arg;
	struct pin_shared *shared = worker->shared;
	struct pin_thread record = {.guard = NULL};

	PIN_CHECK(pin_worker_self == NULL);
	pin_worker_self = worker;
	worker->start_error = start(worker, &record);
	if (worker->start_error == 0) {
		pin_store_release_u32(&worker->service, PIN_SERVICE_IN); /* [RETIRE-1] */
	}
	arrive(shared);
	if (pin_arena_setup_is_shared(shared)) {
		join_registry(worker);
	}
	if (worker->start_error == 0) {
		struct pin_guard guard = {.frame = NULL};

		pin_meter_set(&worker->meter.has_left, 0);
		pin_metrics_set_place(worker, PINION_WORKER_RUNNING);
		pin_remote_reap_open(worker);
		worker->guard = &guard;
		/* Relaxed: a hint for the stall watch. */
		pin_store_relaxed_u32(&worker->is_stepping, 1);
		do {
			worker->unwind_result = pin_guard_run(&guard, run_steps, worker);
		} while (worker->unwind_result != PIN_UNWIND_RETURNED);
		worker->guard = NULL;
		PIN_CHECK(pin_list_is_empty(&worker->ready));
		PIN_CHECK(pin_list_is_empty(&worker->urgent));
		PIN_CHECK(pin_list_is_empty(&worker->posted));
		PIN_CHECK(pin_deque_count(&worker->deque) == 0);
		PIN_CHECK(worker->waits == NULL);
		PIN_CHECK(pin_request_is_over(worker));
		PIN_CHECK(worker->secondary_count == 0 && worker->device_queue.queued == 0);
	}
	pin_store_relaxed_u32(&worker->is_stepping, 0);
	pin_metrics_publish_last(worker);
	pin_arena_growth_end(worker);
	pin_files_end(worker);
	pin_polled_end(worker);
	pin_commands_end(worker);
	pin_ring_retire(&worker->ring);
	leave_thread();
	pin_thread_take_back(&record);
	return NULL;
}

static void close_rings(struct pin_worker *worker)
{
	struct pin_shared *shared = worker->shared;

	PIN_DCHECK(!pin_worker_is_current(worker));
	PIN_CHECK(pin_request_is_over(worker));
	while (!pin_retire_has_rung(worker)) { /* [RETIRE-3] */
		shared->host->yield();
	}
	pin_lock_acquire(&shared->rings_lock, shared->host); /* [RETIRE-3] */
	pin_store_release_u32(&worker->ring_is_open, 0);
	pin_store_release_u32(&worker->sqe128_is_open, 0);
	pin_ring_fini(&worker->polled);
	pin_ring_fini(&worker->sqe128);
	pin_ring_fini(&worker->ring);
	worker->polled = (struct pin_ring){0};
	worker->sqe128 = (struct pin_ring){0};
	worker->ring = (struct pin_ring){0};
	worker->has_polled = false;
	pin_lock_release(&shared->rings_lock, shared->host);
	PIN_CHECK(worker->secondary_count == 0);
}

void pin_worker_reset(struct pin_worker *worker)
{
	close_rings(worker);
	worker->registered_bytes = 0;
	worker->register_error = 0;
	worker->start_error = 0;
	worker->ring_error = 0;
	pin_binding_reset(worker);
	pin_watchdog_set_must_tell(worker, worker->shared->has_watchdog);
	worker->is_dry = false;
	/* The wake that dismissed it: its next thread is no later for it. */
	worker->observed.woken_ns = 0;
	pin_store_relaxed_u64(&worker->notified_ns, 0);
	pin_spin_init(&worker->spin, worker->shared->tuning.spin_iters);
	worker->tick_ns = PIN_NO_DEADLINE;
	worker->context = NULL;
	worker->has_last_tick = false;
	worker->has_stopped = false;
}

void pin_worker_fini(struct pin_worker *worker)
{
	pin_ring_fini(&worker->polled);
	pin_ring_fini(&worker->sqe128);
	pin_ring_fini(&worker->ring);
	pin_pool_fini(&worker->buffers);
	pin_pool_fini(&worker->small_buffers);
	pin_arena_fini(&worker->arena);
	/* Workers after a failed one were never made. */
	if (worker->deque.slots != NULL) {
		pin_heap_release(worker->shared->host, worker->deque.slots, PIN_HEAP_ALIGN,
			worker->shared->tuning.queue_tasks, sizeof(*worker->deque.slots));
	}
}

/* ---- binding to CPUs ---- */

/*
 * Binding workers, and binding them again.
 */

enum {
	PLACE_BYTES = 32,
};

/* Rare beside a system call, soon beside what a wrong CPU costs. */
#define LOOK_NS (UINT64_C(100) * 1000 * 1000)
/* Of one worker: repeated widening fills no log. */
#define TELL_NS (UINT64_C(60) * 1000 * 1000 * 1000)

static uint32_t cpus_of(const struct pin_worker *worker, const uint32_t **out_cpus)
{
	const struct pin_shared *shared = worker->shared;
	const struct pin_cpu_place *place = &worker->place;

	PIN_DCHECK(worker->has_place);
	if (shared->config.bind_workers == PINION_BIND_NODE) {
		PIN_DCHECK(place->node_cpus.first < place->node_cpus.end);
		PIN_DCHECK(place->node_cpus.end <= shared->cpu_room);
		*out_cpus = &shared->cpu_indices[place->node_cpus.first];
		return pin_range_count(place->node_cpus);
	}
	*out_cpus = &place->cpu_index;
	return 1;
}

void pin_binding_start(struct pin_worker *worker)
{
	const struct pin_shared *shared = worker->shared;
	const uint32_t *cpus;
	uint32_t count;

	if (!worker->has_place || shared->config.bind_workers == PINION_BIND_NONE) {
		return;
	}
	count = cpus_of(worker, &cpus);
	if (shared->host->thread_bind(cpus, count) == 0) {
		pin_store_relaxed_u32(&worker->is_bound, 1);
		worker->binding.look_ns = shared->host->now_ns() + LOOK_NS;
	}
}

void pin_binding_reset(struct pin_worker *worker)
{
	pin_store_relaxed_u32(&worker->is_bound, 0);
	worker->binding = (struct pin_binding){.look_ns = PIN_NO_DEADLINE};
}

/* At most once in TELL_NS. */
static bool may_tell(struct pin_worker *worker)
{
	PIN_DCHECK(worker->now_ns >= worker->binding.told_ns);
	if (worker->binding.has_told && worker->now_ns - worker->binding.told_ns < TELL_NS) {
		return false;
	}
	worker->binding.has_told = true;
	worker->binding.told_ns = worker->now_ns;
	return true;
}

/* "CPU 3", or "the CPUs of node 1". */
static void name_place(const struct pin_worker *worker, char *out, size_t size)
{
	const struct pin_cpu_place *place = &worker->place;

	if (worker->shared->config.bind_workers == PINION_BIND_NODE) {
		snprintf(out, size, "the CPUs of node %u", place->node_index);
	} else {
		snprintf(out, size, "CPU %u", place->cpu_index);
	}
}

static void note_loss(struct pin_worker *worker, int error)
{
	char place[PLACE_BYTES];

	PIN_DCHECK(error < 0);
	if (pin_load_relaxed_u32(&worker->is_bound) == 0) {
		return;
	}
	pin_store_relaxed_u32(&worker->is_bound, 0);
	worker->binding.loss_is_told = may_tell(worker);
	if (worker->binding.loss_is_told) {
		name_place(worker, place, sizeof(place));
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u cannot be bound to %s again: %s; is that offline, or not in the "
			"cpuset? It runs where the kernel lets it, and tries again",
			worker->index, place, strerror(-error));
	}
}

static void note_return(struct pin_worker *worker, bool is_rebound)
{
	char place[PLACE_BYTES];
	bool was_lost = pin_load_relaxed_u32(&worker->is_bound) == 0;

	if (is_rebound) {
		pin_meter_add(&worker->meter.rebinds, 1);
	}
	pin_store_relaxed_u32(&worker->is_bound, 1);
	if (was_lost ? worker->binding.loss_is_told : is_rebound && may_tell(worker)) {
		name_place(worker, place, sizeof(place));
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"worker %u is bound to %s again: it was allowed on others, since that was "
			"offline or a program set its affinity; bind_workers=none leaves affinity "
			"to others",
			worker->index, place);
	}
}

void pin_binding_look(struct pin_worker *worker)
{
	const uint32_t *cpus;
	uint32_t count = cpus_of(worker, &cpus);
	int rc = worker->shared->host->thread_rebind(cpus, count);

	PIN_DCHECK(pin_worker_is_current(worker)); /* it is this thread that was bound */
	PIN_DCHECK(worker->shared->config.bind_workers != PINION_BIND_NONE);
	worker->binding.look_ns = worker->now_ns + LOOK_NS;
	if (rc < 0) {
		note_loss(worker, rc);
	} else {
		note_return(worker, rc > 0);
	}
}
