/* SPDX-License-Identifier: MIT */
/*
 * The public calls on pools: attach, acquire, release, wait, statistics.
 *
 * Any thread calls them. A thread with a cache (a worker, or an attached
 * thread) goes by its magazine, every other thread by the shared list;
 * memory/pool.h has both.
 *
 * Invariant: no waiter sleeps beside a free buffer, and no newcomer overtakes
 * it.
 */
#include "runtime/memory/pool.h"
#include "runtime/api/internal.h"
#include "runtime/base/check.h"
#include "runtime/base/metrics.h"
#include "runtime/base/thread.h"
#include "runtime/base/versioned.h"
#include "runtime/host/process.h"
#include "runtime/memory/pool_internal.h"
#include "runtime/observe/histogram.h"
#include "runtime/task/entry.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

_Static_assert(sizeof(struct pinion_buffer) == 16, "released size; BP-41");
_Static_assert(sizeof(struct pinion_buffer) == sizeof(struct pin_waiters_value),
	"a handle is handed over");

/* As often as a worker that falls asleep writes the page. */
enum { SHOW_NS = 1000000 };

/* ---- whose cache ---- */

static bool is_foreign(const struct pinion_pool *pool)
{
	return PIN_UNLIKELY(pool->forked != pin_forked_now());
}

/* Of that pool; number 0: a free slot. NULL: none. */
static struct pin_thread_attachment *attachment_to(struct pin_thread *thread, uint64_t number)
{
	for (int i = 0; thread != NULL && i < PIN_THREAD_ATTACHMENTS; i++) {
		if (thread->attachments[i].number == number) {
			return &thread->attachments[i];
		}
	}
	return NULL;
}

static bool is_own_worker(const struct pinion_pool *pool)
{
	const struct pin_worker *worker = pin_worker_current();

	return worker != NULL && pool->runtime != NULL && worker->shared == &pool->runtime->shared;
}

/*
 * The slow way to a thread's cache; its result is remembered, also "none", so
 * that the next call takes a compare.
 */
static __attribute__((noinline)) uint32_t look_for_cache(const struct pinion_pool *pool)
{
	const struct pin_thread_attachment *attachment;

	if (is_own_worker(pool)) {
		PIN_DCHECK(pin_worker_current()->index < pool->worker_count);
		return pin_worker_current()->index;
	}
	attachment = attachment_to(pin_thread_find(), pool->number);
	if (attachment == NULL) {
		pin_recent.without = pool->has_short_way ? pool->number : ~pool->number;
		pin_recent.listed = (struct pin_pool_listed){0};
		return PIN_POOL_OUTSIDE;
	}
	PIN_DCHECK(attachment->cache < pool->pool.magazine_count);
	return attachment->cache;
}

/* Known to have no cache in it, and what it does there has a short way. */
static inline bool is_outside(const struct pinion_pool *pool)
{
	return pin_recent.without == pool->number;
}

static inline uint32_t own_cache(const struct pinion_pool *pool)
{
	return PIN_LIKELY(is_outside(pool)) || pin_recent.without == ~pool->number
		? PIN_POOL_OUTSIDE
		: look_for_cache(pool);
}

/* The cache of the short way is one of the pool's, if it is this pool's. */
static __attribute__((unused)) bool is_recent_sound(const struct pinion_pool *pool)
{
	return pin_recent.number != pool->number ||
		(pool->has_short_way && pin_recent.cache < pool->pool.magazine_count &&
			pin_recent.magazine == &pool->pool.magazines[pin_recent.cache]);
}

/* As above, and may open the short way for the next call. */
static uint32_t find_cache(const struct pinion_pool *pool)
{
	uint32_t cache = own_cache(pool);

	PIN_DCHECK(cache == PIN_POOL_OUTSIDE || cache < pool->pool.magazine_count);
	if (cache != PIN_POOL_OUTSIDE && pool->has_short_way) {
		pin_recent.number = pool->number;
		pin_recent.cache = cache;
		pin_recent.magazine = &pool->pool.magazines[cache];
	}
	PIN_DCHECK(is_recent_sound(pool));
	return cache;
}

/*
 * For threads without a cache: the free list of the node that the thread is on
 * now.
 */
static __attribute__((noinline)) uint32_t look_for_node(const struct pinion_pool *pool)
{
	unsigned cpu;
	unsigned node;

	PIN_DCHECK(pool->runtime != NULL && pool->pool.node_count > 1);
	if (getcpu(&cpu, &node) != 0) {
		return 0;
	}
	for (uint32_t i = 0; i < pool->worker_count; i++) {
		if (pool->runtime->shared.workers[i].place.node_index == node) {
			PIN_DCHECK(pool->pool.magazines[i].node < pool->pool.node_count);
			return pool->pool.magazines[i].node;
		}
	}
	return 0;
}

/* The number of the calling CPU's node's list, for a thread without a cache. */
static inline uint32_t own_node(const struct pinion_pool *pool)
{
	return PIN_LIKELY(pool->pool.node_count == 1) ? 0 : look_for_node(pool);
}

/*
 * Claims a cache by a compare-and-swap on each until one is free; the thread
 * then finds it by its own record, without a search.
 */
int pinion_pool_attach(struct pinion_pool *pool)
{
	/* With a runtime the first ones are its workers'. */
	uint32_t first = pool->runtime != NULL ? pool->worker_count : 0;
	struct pin_thread_attachment *place;
	struct pin_thread *thread;

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	if (own_cache(pool) != PIN_POOL_OUTSIDE) {
		return -EALREADY;
	}
	thread = pin_thread_own();
	if (thread == NULL) {
		return -ENOMEM;
	}
	place = attachment_to(thread, 0);
	if (place == NULL) {
		return -EMFILE;
	}
	PIN_DCHECK(first <= pool->pool.magazine_count && pool->number != 0);
	for (uint32_t i = first; i < pool->pool.magazine_count; i++) {
		uint32_t is_free = 0;

		if (pin_cas_acquire_u32(&pool->attached[i], &is_free, 1)) { /* [BUFFERS-1] */
			*place = (struct pin_thread_attachment){.number = pool->number, .cache = i};
			pin_recent.without = 0;
			return 0;
		}
	}
	return -EAGAIN;
}

/*
 * The cache's buffers go to the free lists first, so that none waits in a cache
 * without an owner.
 */
int pinion_pool_detach(struct pinion_pool *pool)
{
	struct pin_thread_attachment *attachment = attachment_to(pin_thread_find(), pool->number);

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	if (attachment == NULL) {
		return -EPERM;
	}
	PIN_CHECK(attachment->cache < pool->pool.magazine_count);
	/* The first are the workers', which are never attached. */
	PIN_DCHECK(pool->runtime == NULL || attachment->cache >= pool->worker_count);
	pin_pool_flush(&pool->pool, attachment->cache);
	pin_store_release_u32(&pool->attached[attachment->cache], 0); /* [BUFFERS-1] */
	*attachment = (struct pin_thread_attachment){0};
	pin_recent.number = 0;
	return 0;
}

/* ---- acquire ---- */

static __attribute__((noinline)) int try_acquire(
	struct pinion_pool *pool, struct pinion_buffer *out_buffer)
{
	uint32_t cache;

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	cache = find_cache(pool);
	return pin_pool_acquire(&pool->pool, cache, cache != PIN_POOL_OUTSIDE ? 0 : own_node(pool),
		       out_buffer)
		? 0
		: -EAGAIN;
}

static __attribute__((noinline)) int try_acquire_outside(
	struct pinion_pool *pool, struct pinion_buffer *out_buffer)
{
	PIN_DCHECK(is_outside(pool) && pool->has_short_way);
	return pin_pool_acquire_listed(&pool->pool, own_node(pool), &pin_recent.listed, out_buffer)
		? 0
		: try_acquire(pool, out_buffer);
}

int pinion_pool_try_acquire(struct pinion_pool *pool, struct pinion_buffer *out_buffer)
{
	PIN_DCHECK(is_recent_sound(pool));
	if (PIN_LIKELY(pin_recent.number == pool->number) &&
		PIN_LIKELY(pin_pool_acquire_own(
			&pool->pool, pin_recent.magazine, pin_recent.cache, out_buffer))) {
		return 0;
	}
	if (is_outside(pool)) {
		return try_acquire_outside(pool, out_buffer);
	}
	return try_acquire(pool, out_buffer);
}

static struct pin_waiters_value value_of(const struct pinion_buffer *buffer)
{
	struct pin_waiters_value value;

	memcpy(&value, buffer, sizeof(value));
	return value;
}

static struct pinion_buffer buffer_of(const struct pin_waiters_value *value)
{
	struct pinion_buffer buffer;

	memcpy(&buffer, value, sizeof(buffer));
	return buffer;
}

/* Whether no thread waits any more. */
static bool has_ended(const struct pinion_pool *pool)
{
	return pin_load_acquire_u32(&pool->is_closed) != 0 ||
		(pool->runtime != NULL && pin_shared_is_stopping(&pool->runtime->shared));
}

/*
 * Serves one waiter, under the queue's lock. After the end of the pool every
 * waiter is served with nothing, which ends its wait.
 */
bool pin_buffers_take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	struct pinion_pool *pool = arg;
	struct pinion_buffer buffer = {0};

	(void)demand;
	/* Nothing ends the wait. */
	if (!has_ended(pool)) {
		if (try_acquire(pool, &buffer) != 0) {
			return false;
		}
		PIN_DCHECK(buffer.bytes != NULL); /* NULL is the end of the wait */
		pin_pool_disclaim(&pool->pool, &buffer);
	}
	*out_value = value_of(&buffer);
	return true;
}

static int accept_value(struct pinion_pool *pool, const struct pin_waiters_value *value,
	struct pinion_buffer *out_buffer)
{
	struct pinion_buffer buffer = buffer_of(value);

	if (buffer.bytes == NULL) {
		return -ESHUTDOWN;
	}
	pin_pool_claim(&pool->pool, own_cache(pool), &buffer);
	PIN_DCHECK(pin_pool_owns(&pool->pool, &buffer));
	*out_buffer = buffer;
	return 0;
}

/*
 * The page is written by workers, which may all sleep while threads outside
 * wait for buffers.
 */
static void show_shortage(struct pinion_pool *pool, uint64_t now_ns)
{
	/* Relaxed: a figure. Another waiter may have written a later time. */
	if (pool->runtime == NULL || now_ns < pin_load_relaxed_u64(&pool->shown_ns) + SHOW_NS) {
		return;
	}
	pin_store_relaxed_u64(&pool->shown_ns, now_ns);
	(void)pin_metrics_publish_outside(&pool->runtime->shared, now_ns);
}

static void note_wait(struct pinion_pool *pool, uint64_t waited_ns)
{
	/* Relaxed: figures. */
	pin_fetch_add_relaxed_u64(&pool->waits[pin_histogram_bucket(waited_ns)], 1);
	pin_fetch_add_relaxed_u64(&pool->pool.waits, 1);
	pin_fetch_add_relaxed_u64(&pool->pool.wait_ns, waited_ns);
}

/*
 * A worker must not block, so it is refused; a task there uses the form without
 * a wait of the thread.
 */
int pinion_pool_acquire_wait(
	struct pinion_pool *pool, uint64_t deadline_ns, struct pinion_buffer *out_buffer)
{
	struct pin_waiter waiter;
	uint64_t begin_ns;
	uint64_t end_ns;
	int rc;

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	if (is_own_worker(pool)) {
		return -EDEADLK;
	}
	if (!pin_waiters_any(&pool->waiters) && try_acquire(pool, out_buffer) == 0) {
		return 0;
	}
	if (pin_worker_of_thread() != NULL) {
		return -EDEADLK;
	}
	pin_waiter_init(&waiter, 1, NULL);
	begin_ns = pool->waiters.host->now_ns();
	show_shortage(pool, begin_ns);
	rc = pin_waiters_wait(&pool->waiters, &waiter, deadline_ns);
	end_ns = pool->waiters.host->now_ns();
	note_wait(pool, end_ns - begin_ns);
	show_shortage(pool, end_ns);
	return rc != 0 ? rc : accept_value(pool, &waiter.value, out_buffer);
}

static int32_t finish_wait(void *target, const struct pin_waiters_value *value)
{
	struct pinion_pool_wait *wait = target;
	struct pinion_pool *pool = wait->private_pool;
	int rc = accept_value(pool, value, &wait->buffer);

	/* Other ends are not noted: the pool may be gone. */
	if (rc == 0 && wait->private_begin_ns != 0) {
		note_wait(pool, pool->waiters.host->now_ns() - wait->private_begin_ns);
	}
	return rc;
}

int pinion_pool_acquire_async(
	struct pinion_runtime *runtime, struct pinion_pool *pool, struct pinion_pool_wait *wait)
{
	struct pin_worker *worker = pin_runtime_own_worker(runtime);
	struct pin_wait_aim aim = {
		.waiters = &pool->waiters,
		.demand = 1,
		.finish = finish_wait,
		.target = wait,
	};
	int rc;

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	if (worker == NULL) {
		return -EPERM;
	}
	wait->private_pool = pool;
	wait->private_begin_ns = 0;
	rc = pin_wait_begin(worker, &wait->wait, &aim);
	/* It ends on this worker, so not before this task does. */
	if (rc == 0 && pin_task_kind(&wait->wait.task) == PIN_TASK_WAIT) {
		wait->private_begin_ns = pool->waiters.host->now_ns();
	}
	return rc;
}

void pinion_pool_close(struct pinion_pool *pool)
{
	if (is_foreign(pool)) {
		return;
	}
	pin_store_release_u32(&pool->is_closed, 1);
	pin_waiters_serve(&pool->waiters);
}

/* ---- release ---- */

/* The returned buffer is on top of the own cache, and is taken from there. */
static __attribute__((noinline)) int serve(struct pinion_pool *pool)
{
	if (pin_waiters_any(&pool->waiters)) { /* [WAIT-1] */
		pin_waiters_serve(&pool->waiters);
	}
	return 0;
}

/* A worker may have gathered buffers that are to go home before it sleeps. */
static void note_remote_batch(const struct pinion_pool *pool)
{
	if (PIN_UNLIKELY(pool->pool.node_count > 1) && is_own_worker(pool)) {
		pin_worker_current()->has_remote_batches = true;
	}
}

/*
 * The slow path; a waiter is served by the releasing thread, after the buffer
 * is back.
 */
static __attribute__((noinline)) int release(struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	int rc;

	if (is_foreign(pool)) {
		return -ECHILD;
	}
	rc = pin_pool_release(&pool->pool, find_cache(pool), buffer);
	if (rc == 0) {
		note_remote_batch(pool);
		*buffer = (struct pinion_buffer){0};
		serve(pool);
	}
	return rc;
}

static __attribute__((noinline)) int release_outside(
	struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	PIN_DCHECK(is_outside(pool) && pool->has_short_way);
	if (PIN_UNLIKELY(!pin_pool_release_listed(&pool->pool, buffer, &pin_recent.listed))) {
		return release(pool, buffer);
	}
	*buffer = (struct pinion_buffer){0};
	if (PIN_UNLIKELY(pin_waiters_any_light(&pool->waiters))) { /* [WAIT-1] */
		return serve(pool);
	}
	return 0;
}

/* The thread has no cache in it, or its short way did not do. */
static PIN_APART int release_otherwise(struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	if (is_outside(pool)) {
		return release_outside(pool, buffer);
	}
	return release(pool, buffer);
}

int pinion_pool_release(struct pinion_pool *pool, struct pinion_buffer *buffer)
{
	PIN_DCHECK(is_recent_sound(pool));
	if (PIN_UNLIKELY(pin_recent.number != pool->number) ||
		PIN_UNLIKELY(!pin_pool_release_own(
			&pool->pool, pin_recent.magazine, pin_recent.cache, buffer))) {
		return release_otherwise(pool, buffer);
	}
	*buffer = (struct pinion_buffer){0};
	if (PIN_UNLIKELY(pin_waiters_any_light(&pool->waiters))) { /* [WAIT-1] */
		return serve(pool);
	}
	return 0;
}

/* ---- its contents ---- */

uint8_t *pinion_pool_bytes(struct pinion_pool *pool, const struct pinion_buffer *buffer)
{
	return !is_foreign(pool) && pin_pool_owns(&pool->pool, buffer) ? buffer->bytes : NULL;
}

int pinion_pool_clear(struct pinion_pool *pool, const struct pinion_buffer *buffer)
{
	int rc = is_foreign(pool) ? -ECHILD : pin_pool_check_check(&pool->pool, buffer);

	if (rc == 0) {
		explicit_bzero(buffer->bytes - pool->pool.headroom_bytes,
			(size_t)pool->pool.headroom_bytes + pool->pool.buffer_bytes);
	}
	return rc;
}

uint32_t pinion_pool_buffer_bytes(const struct pinion_pool *pool)
{
	return pool->pool.buffer_bytes;
}

uint32_t pinion_pool_headroom_bytes(const struct pinion_pool *pool)
{
	return pool->pool.headroom_bytes;
}

/* Sizes that were fixed when the pool was made; no counter is read. */
void pinion_pool_get_info(
	const struct pinion_pool *pool, struct pinion_pool_info *out_info, size_t size)
{
	uint64_t buffer_count = pool->pool.buffer_count;
	struct pinion_pool_info info = {
		.worker_count = pool->worker_count,
		.buffer_count = pool->pool.buffer_count,
		.buffer_bytes = pool->pool.buffer_bytes,
		.headroom_bytes = pool->pool.headroom_bytes,
		.peak_bytes = buffer_count * pool->pool.buffer_bytes,
		.headroom_bytes_total = buffer_count * pool->pool.headroom_bytes,
		.mapped_bytes = pool->mapped_bytes,
	};

	PIN_DCHECK(info.peak_bytes + info.headroom_bytes_total <= info.mapped_bytes);
	pin_sized_give(out_info, size, &info, sizeof(info));
}

uint32_t pinion_pool_available_local(const struct pinion_pool *pool, uint32_t cache)
{
	return cache < pool->pool.magazine_count ? pin_pool_count_magazine(&pool->pool, cache) : 0;
}

/*
 * Reads counters that their owners go on writing: each is exact, their sum is
 * of no single instant.
 */
void pinion_pool_get_stats(
	const struct pinion_pool *pool, struct pinion_pool_stats *out_stats, size_t size)
{
	struct pinion_pool_stats sum = {
		.outside = pin_pool_count_acquires(&pool->pool),
		.steals = pin_load_relaxed_u64(&pool->pool.steals),
		.exhausted = pin_load_relaxed_u64(&pool->pool.exhausted),
		.misuses = pin_load_relaxed_u64(&pool->pool.misuses),
		.false_nulls = pin_load_relaxed_u64(&pool->pool.false_nulls),
		.free_count = pin_pool_count(&pool->pool),
		.shared_count = pin_pool_count_lists(&pool->pool),
	};

	PIN_DCHECK(pool->pool.magazine_count <= pool->pool.place_count);
	for (uint32_t i = 0; i < pool->pool.magazine_count; i++) {
		const struct pin_magazine *magazine = &pool->pool.magazines[i];

		sum.local_hits += pin_meter_read(&magazine->hits);
		/* Of all, what those with a magazine did not take. */
		sum.outside -= pin_meter_read(&magazine->hits) + pin_meter_read(&magazine->misses);
		sum.refills += pin_meter_read(&magazine->refills);
	}
	for (uint32_t i = 0; i < pool->pool.place_count; i++) {
		sum.spills += pin_meter_read(&pool->pool.magazines[i].spills);
	}
	pin_sized_give(out_stats, size, &sum, sizeof(sum));
}

void pinion_pool_get_waits(const struct pinion_pool *pool, struct pinion_histogram *out_histogram)
{
	memset(out_histogram, 0, sizeof(*out_histogram));
	out_histogram->sum_ns = pin_load_relaxed_u64(&pool->pool.wait_ns);
	for (uint32_t i = 0; i < PINION_HISTOGRAM_BUCKETS; i++) {
		out_histogram->buckets[i] = pin_load_relaxed_u64(&pool->waits[i]);
		out_histogram->count += out_histogram->buckets[i];
	}
}

/* ---- a task's own ---- */

static void cancel_with_buffer(struct pinion_task *plain);

/*
 * The attribute on the local variable gives the buffer back if the task is
 * unwound; a task that keeps it clears the handle.
 */
static int run_with_buffer(struct pinion_task *plain)
{
	struct pinion_buffer_task *task = PIN_CONTAINER_OF(plain, struct pinion_buffer_task, task);
	/* Given back by itself when the task is unwound. */
	PINION_AUTO_BUFFER(buffer, task->pool);
	struct pinion_pool *pool = task->pool;
	int rc;

	PIN_DCHECK(plain->run == run_with_buffer && plain->cancel == cancel_with_buffer);
	/* From here on the struct is the caller's. */
	*buffer = task->buffer;
	task->buffer = (struct pinion_buffer){0};
	pin_fault_name((pin_fault_fn)task->run);
	rc = task->run(task, buffer);
	if (buffer->bytes != NULL) {
		int given = pinion_pool_release(pool, buffer);

		*buffer = (struct pinion_buffer){0};
		rc = rc < 0 || given == 0 ? rc : given;
	}
	return rc;
}

static void cancel_with_buffer(struct pinion_task *plain)
{
	struct pinion_buffer_task *task = PIN_CONTAINER_OF(plain, struct pinion_buffer_task, task);

	PIN_DCHECK(plain->run == run_with_buffer && plain->cancel == cancel_with_buffer);
	pinion_pool_release(task->pool, &task->buffer);
	if (task->cancel != NULL) {
		task->cancel(task);
	}
}

void pinion_buffer_task_init(struct pinion_buffer_task *task, struct pinion_pool *pool,
	struct pinion_buffer *buffer, pinion_buffer_task_fn run,
	void (*cancel)(struct pinion_buffer_task *task))
{
	*task = (struct pinion_buffer_task){
		.task = {.run = run_with_buffer, .cancel = cancel_with_buffer},
		.run = run,
		.cancel = cancel,
		.pool = pool,
		.buffer = *buffer,
	};
	*buffer = (struct pinion_buffer){0};
}
