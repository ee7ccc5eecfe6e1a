/* SPDX-License-Identifier: MIT */
/*
 * Takes memory for a worker's buffers as they are used, and gives it back after
 * rest; arena_growth.h has the protocol.
 *
 * buffers.c calls it when the free buffers are used up, the loop when it is
 * time to look for rest. All of it is on the worker's own thread.
 *
 * Invariants: (1) a buffer is open in its pool only while it has pages. (2) a
 * ring's entry of a step is filled only while the step has pages.
 */
#include "runtime/worker/arena_growth.h"

#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/host/cgroup.h"
#include "runtime/host/kernel.h"
#include "runtime/host/numa.h"
#include "runtime/worker/ring_lock.h"
#include "runtime/worker/worker.h"

#include <string.h>

enum {
	/* A step of small buffers: so few that a runtime at rest is small. */
	SMALL_STEP_BYTES = 256 << 10,
	/* The kernel takes 16384 entries in a table. */
	STEPS_MAX = 4096,
	/* Bits of `growth_told`. */
	TOLD_PAGES = 1,
	TOLD_REGISTER = 2,
	TOLD_LIMIT = 4,
	/* How long a worker trusts that there is no limit, or no room. */
	TRUST_MS = 100,
};

/* ---- sizes ---- */

/* Buffers of a step: of a huge page, but at least one. */
static uint32_t step_of(enum pin_grown_kind kind, uint32_t buffer_bytes, uint32_t buffer_count)
{
	uint32_t bytes = kind == PIN_GROWN_SMALL ? SMALL_STEP_BYTES : PIN_HUGE_PAGE_BYTES;
	uint32_t count = bytes > buffer_bytes ? bytes / buffer_bytes : 1;
	uint32_t least = (buffer_count + STEPS_MAX - 1) / STEPS_MAX;

	count = count > least ? count : least;
	return count < buffer_count ? count : buffer_count;
}

static uint32_t steps_of(enum pin_grown_kind kind, uint32_t buffer_bytes, uint32_t buffer_count)
{
	uint32_t step = step_of(kind, buffer_bytes, buffer_count);

	PIN_CHECK(step > 0);
	return (buffer_count + step - 1) / step;
}

uint32_t pin_arena_growth_slots(const struct pin_shared *shared)
{
	const struct pinion_config *config = &shared->config;

	if (!shared->arenas_grow) {
		return 0;
	}
	return steps_of(PIN_GROWN_LARGE, config->buffer_bytes, config->buffer_count) +
		steps_of(PIN_GROWN_SMALL, config->small_buffer_bytes, config->small_buffer_count);
}

static uint64_t period_ns(const struct pin_worker *worker)
{
	return worker->shared->tuning.buffer_rest_ms * 1000 * 1000;
}

/* ---- registering ---- */

static struct pin_grown grown_of(struct pin_worker *worker, enum pin_grown_kind kind)
{
	const struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	size_t step_bytes =
		(size_t)step_of(kind, pool->buffer_bytes, pool->buffer_count) * pool->buffer_bytes;

	return (struct pin_grown){
		.memory = pool->first_memory,
		.step_bytes = step_bytes,
		.step_shift =
			pin_is_power_of_two(step_bytes) ? (uint32_t)__builtin_ctzl(step_bytes) : 0,
		.step_count = steps_of(kind, pool->buffer_bytes, pool->buffer_count),
	};
}

/* One line for all workers. */
static bool is_first_to_tell(struct pin_worker *worker, uint32_t bit)
{
	return (pin_fetch_or_seq_cst_u32(&worker->shared->growth_told, bit) & bit) == 0;
}

static void open_slots(struct pin_worker *worker, struct pin_ring *ring)
{
	struct pin_grown grown[PIN_GROWN_KINDS] = {
		[PIN_GROWN_LARGE] = grown_of(worker, PIN_GROWN_LARGE),
		[PIN_GROWN_SMALL] = grown_of(worker, PIN_GROWN_SMALL),
	};
	int rc = pin_ring_open_slots(ring, grown);

	if (rc < 0 && !ring->is_fallback && is_first_to_tell(worker, TOLD_REGISTER)) {
		pin_arena_setup_tell_unregistered(worker->shared, rc);
	}
}

/* The rings of the worker that know its buffers. */
static uint32_t rings_of(struct pin_worker *worker, struct pin_ring *out_rings[3])
{
	uint32_t count = 0;

	if (!pin_kernel_has(&worker->shared->kernel, PINION_IO_REGISTERED_BUFFERS)) {
		return 0;
	}
	out_rings[count++] = &worker->ring;
	if (worker->has_polled) {
		out_rings[count++] = &worker->polled;
	}
	if (worker->sqe128.is_initialised) {
		out_rings[count++] = &worker->sqe128;
	}
	return count;
}

static void register_step(
	struct pin_worker *worker, enum pin_grown_kind kind, size_t offset, size_t bytes)
{
	struct pin_ring *rings[3];
	uint32_t count = rings_of(worker, rings);

	PIN_DCHECK(offset % grown_of(worker, kind).step_bytes == 0); /* a ring's entry is a step */
	for (uint32_t i = 0; i < count; i++) {
		int rc;

		if (rings[i]->slots == PIN_RING_SLOTS_UNTRIED) {
			open_slots(worker, rings[i]);
		}
		rc = pin_ring_grow(rings[i], kind, offset, bytes);
		if (rc < 0 && is_first_to_tell(worker, TOLD_REGISTER)) {
			pin_arena_setup_tell_unregistered(worker->shared, rc);
		}
	}
}

/* All that is open, with a ring that was made later. */
void pin_arena_growth_tell(struct pin_worker *worker, struct pin_ring *ring)
{
	if (!pin_kernel_has(&worker->shared->kernel, PINION_IO_REGISTERED_BUFFERS) ||
		ring->slots != PIN_RING_SLOTS_UNTRIED) {
		return;
	}
	open_slots(worker, ring);
	for (uint32_t kind = 0; kind < PIN_GROWN_KINDS; kind++) {
		const struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
		size_t end = (size_t)pool->open_count * pool->buffer_bytes;
		size_t step_bytes = grown_of(worker, kind).step_bytes;
		int rc = 0;

		for (size_t at = 0; rc == 0 && at < end; at += step_bytes) {
			rc = pin_ring_grow(
				ring, kind, at, end - at < step_bytes ? end - at : step_bytes);
		}
	}
}

static void unregister_from(struct pin_worker *worker, enum pin_grown_kind kind, size_t offset)
{
	struct pin_ring *rings[3];
	uint32_t count = rings_of(worker, rings);

	for (uint32_t i = 0; i < count; i++) {
		pin_ring_shrink(rings[i], kind, offset);
	}
}

static void note_registered(struct pin_worker *worker)
{
	pin_meter_set(&worker->growth.registered_bytes,
		worker->ring.grown[PIN_GROWN_LARGE].bytes +
			worker->ring.grown[PIN_GROWN_SMALL].bytes);
}

/* ---- pages ---- */

/* On huge pages if that goes; for small buffers they would be too much. */
static bool wants_huge(const struct pin_worker *worker, enum pin_grown_kind kind)
{
	return kind == PIN_GROWN_LARGE && worker->arena.page_kind == PIN_PAGES_THP;
}

/* Of a step that has pages. */
static size_t count_huge(uint8_t *memory, size_t bytes)
{
	size_t huge_bytes = 0;

	if (pin_pages_scan_huge(memory, bytes, &huge_bytes) == 0 && huge_bytes < bytes &&
		bytes >= PIN_HUGE_PAGE_BYTES) {
		pin_pages_collapse(memory, bytes);
		(void)pin_pages_scan_huge(memory, bytes, &huge_bytes);
	}
	return huge_bytes;
}

/*
 * Beyond the limit of a memory cgroup a touched page is no error: the kernel
 * kills the process. The limit may have been set, or others may have used what
 * it left, since the arenas were fitted. So it is read for each step; without
 * any, and after a refusal, at most once in TRUST_MS: a worker whose buffers
 * are all out would else read some ten files for each request.
 */
static bool is_within_limit(struct pin_worker *worker, size_t bytes)
{
	struct pin_growth *growth = &worker->growth;
	struct pin_memlimit limit;
	uint64_t now_ns;

	if (worker->now_ns < growth->unlimited_ns) {
		return true;
	}
	now_ns = worker->shared->host->now_ns();
	if (now_ns < growth->unlimited_ns) {
		return true;
	}
	if (now_ns < growth->refused_ns && bytes >= growth->refused_bytes) {
		return false;
	}
	pin_memlimit_find("", &limit);
	if (limit.free_bytes == UINT64_MAX) {
		growth->unlimited_ns = now_ns + (uint64_t)TRUST_MS * 1000 * 1000;
		return true;
	}
	if (bytes <= pin_memlimit_usable(&limit)) {
		return true;
	}
	growth->refused_ns = now_ns + (uint64_t)TRUST_MS * 1000 * 1000;
	growth->refused_bytes = bytes;
	if (is_first_to_tell(worker, TOLD_LIMIT)) {
		pin_log(&worker->shared->log, PINION_LOG_WARN,
			"%s is %llu MiB, of which %llu are free: no memory for more buffers of "
			"worker %u, which wants %zu KiB; it goes on with those that it has, if "
			"any; raise it (systemd: MemoryMax=)",
			limit.path, (unsigned long long)(limit.limit_bytes >> 20),
			(unsigned long long)(limit.free_bytes >> 20), worker->index, bytes >> 10);
	}
	return false;
}

static int give_pages(
	struct pin_worker *worker, enum pin_grown_kind kind, uint8_t *memory, size_t bytes)
{
	int rc;

	PIN_DCHECK(bytes > 0);
	if (!is_within_limit(worker, bytes)) {
		return -ENOMEM;
	}
	/* The library itself may write there, on older kernels. */
	PIN_ASAN_UNPOISON(memory, bytes);
	rc = pin_pages_populate(memory, bytes);
	PIN_ASAN_POISON(memory, bytes);
	if (rc < 0) {
		(void)pin_pages_give_back(memory, bytes);
		if (is_first_to_tell(worker, TOLD_PAGES)) {
			pin_log(&worker->shared->log, PINION_LOG_WARN,
				"no memory for more buffers of worker %u, which wants %zu KiB: %s; "
				"it goes on with those that it has, if any",
				worker->index, bytes >> 10, strerror(-rc));
		}
		return rc;
	}
	if (wants_huge(worker, kind)) {
		pin_meter_add(&worker->growth.huge_bytes, count_huge(memory, bytes));
	}
	return 0;
}

/* ---- growing ---- */

/* No huge pages for small buffers, nor for large buffers of less. */
void pin_arena_growth_start(struct pin_worker *worker)
{
	const struct pin_pool *small = &worker->small_buffers;
	const struct pin_pool *large = &worker->buffers;

	if (!worker->shared->arenas_grow) {
		return;
	}
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_CHECK(large->open_count == 0 && small->open_count == 0);
	if (worker->arena.page_kind == PIN_PAGES_THP) {
		pin_pages_keep_small(small->first_memory, small->first_bytes);
		if (large->first_bytes < PIN_HUGE_PAGE_BYTES) {
			pin_pages_keep_small(large->first_memory, large->first_bytes);
		}
	}
}

int pin_arena_grow(struct pin_worker *worker, enum pin_grown_kind kind)
{
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	uint32_t left = pool->buffer_count - pool->open_count;
	uint32_t step = step_of(kind, pool->buffer_bytes, pool->buffer_count);
	uint32_t count = step < left ? step : left;
	size_t offset = (size_t)pool->open_count * pool->buffer_bytes;
	size_t bytes = (size_t)count * pool->buffer_bytes;
	int rc;

	if (count == 0) {
		return -EAGAIN;
	}
	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(worker->shared->arenas_grow && pool->open_count % step == 0);
	rc = give_pages(worker, kind, pool->first_memory + offset, bytes);
	if (rc < 0) {
		return -ENOMEM;
	}
	pin_remote_reap_enter(worker);
	register_step(worker, kind, offset, bytes); /* invariant 2 */
	pin_remote_reap_leave(worker);
	pin_pool_open(pool, count); /* invariant 1 */
	note_registered(worker);
	pin_meter_add(&worker->growth.bytes, bytes);
	pin_meter_add(&worker->growth.grown_count, 1);
	if (worker->growth.look_ns == PIN_NO_DEADLINE) {
		worker->growth.look_ns = worker->shared->host->now_ns() + period_ns(worker);
	}
	return 0;
}

/* ---- rest ---- */

static uint64_t acquires_of(const struct pin_pool *pool)
{
	return pin_meter_read(&pool->magazines[0].hits) +
		pin_meter_read(&pool->magazines[0].misses);
}

/* Those from number `first` on, where a step begins. False: one is out. */
static bool give_back_from(struct pin_worker *worker, enum pin_grown_kind kind, uint32_t first)
{
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	uint8_t *memory = pool->first_memory + (size_t)first * pool->buffer_bytes;
	size_t bytes = (size_t)(pool->open_count - first) * pool->buffer_bytes;
	size_t huge_bytes = 0;

	PIN_CHECK(first < pool->open_count);
	PIN_CHECK(pin_meter_read(&worker->growth.bytes) >= bytes); /* it was counted when taken */
	if (!pin_pool_close(pool, first)) {			   /* [POOL-4] invariant 1 */
		return false;
	}
	if (wants_huge(worker, kind)) {
		(void)pin_pages_scan_huge(memory, bytes, &huge_bytes);
	}
	pin_remote_reap_enter(worker);
	unregister_from(worker, kind, (size_t)first * pool->buffer_bytes); /* invariant 2 */
	pin_remote_reap_leave(worker);
	(void)pin_pages_give_back(memory, bytes);
	note_registered(worker);
	pin_meter_set(&worker->growth.bytes, pin_meter_read(&worker->growth.bytes) - bytes);
	pin_meter_set(&worker->growth.huge_bytes,
		huge_bytes < pin_meter_read(&worker->growth.huge_bytes)
			? pin_meter_read(&worker->growth.huge_bytes) - huge_bytes
			: 0);
	pin_meter_add(&worker->growth.given_back_bytes, bytes);
	return true;
}

/*
 * Gives back all steps beyond the `needed` buffers; if one of their buffers is
 * out, only the steps after it.
 */
static void give_back_rest(struct pin_worker *worker, enum pin_grown_kind kind, uint32_t needed)
{
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	uint32_t step = step_of(kind, pool->buffer_bytes, pool->buffer_count);
	uint32_t first = (needed + step - 1) / step * step;
	bool goes_on = true;

	if (first >= pool->open_count || give_back_from(worker, kind, first)) {
		return;
	}
	while (goes_on && pool->open_count > first) {
		goes_on = give_back_from(worker, kind, (pool->open_count - 1) / step * step);
	}
}

static void look_at(struct pin_worker *worker, enum pin_grown_kind kind)
{
	struct pin_growth *growth = &worker->growth;
	struct pin_pool *pool = pin_arena_growth_pool(worker, kind);
	uint64_t acquires = acquires_of(pool);
	uint64_t recent = acquires - growth->seen_acquires[kind];
	uint32_t out = pool->open_count - pin_pool_count_magazine(pool, 0);

	PIN_CHECK(out <= pool->open_count); /* a buffer is free, or out, and in no case both */
	if (recent > 0) {
		growth->is_quiet = false;
	}
	growth->seen_acquires[kind] = acquires;
	if (recent < pool->open_count - out) {
		give_back_rest(worker, kind, out + (uint32_t)recent);
	}
	growth->seen_free[kind] = pin_pool_count_magazine(pool, 0);
}

static bool has_any(const struct pin_worker *worker)
{
	return worker->buffers.open_count > 0 || worker->small_buffers.open_count > 0;
}

void pin_arena_growth_look(struct pin_worker *worker)
{
	struct pin_growth *growth = &worker->growth;

	PIN_DCHECK(pin_worker_is_current(worker));
	growth->is_quiet = true;
	for (uint32_t kind = 0; kind < PIN_GROWN_KINDS; kind++) {
		look_at(worker, kind);
	}
	growth->look_ns = has_any(worker) ? worker->shared->host->now_ns() + period_ns(worker)
					  : PIN_NO_DEADLINE;
}

/* Nothing was acquired or released since the end of a quiet period. */
static bool is_still_quiet(const struct pin_worker *worker)
{
	const struct pin_growth *growth = &worker->growth;
	const struct pin_pool *pools[PIN_GROWN_KINDS] = {
		[PIN_GROWN_LARGE] = &worker->buffers,
		[PIN_GROWN_SMALL] = &worker->small_buffers,
	};
	bool is_quiet = growth->is_quiet;

	for (uint32_t kind = 0; is_quiet && kind < PIN_GROWN_KINDS; kind++) {
		is_quiet = acquires_of(pools[kind]) == growth->seen_acquires[kind] &&
			pin_pool_count_magazine(pools[kind], 0) == growth->seen_free[kind];
	}
	return is_quiet;
}

uint64_t pin_arena_growth_due_ns(const struct pin_worker *worker)
{
	return worker->growth.look_ns == PIN_NO_DEADLINE || is_still_quiet(worker)
		? PIN_NO_DEADLINE
		: worker->growth.look_ns;
}

void pin_arena_growth_end(struct pin_worker *worker)
{
	if (worker->growth.look_ns == PIN_NO_DEADLINE) {
		return;
	}
	give_back_rest(worker, PIN_GROWN_LARGE, 0);
	give_back_rest(worker, PIN_GROWN_SMALL, 0);
	worker->growth.look_ns = PIN_NO_DEADLINE;
}
