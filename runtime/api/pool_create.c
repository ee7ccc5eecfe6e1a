/* SPDX-License-Identifier: MIT */
/*
 * Making and ending pools: where their memory comes from.
 *
 * With a runtime every worker gives its share from its arena: as many buffers
 * as its cache holds, in order of workers, then the rest in equal parts.
 * Without one there is a mapping for all, on the node of the caller.
 */
#include "runtime/memory/pool.h"
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"
#include "runtime/host/process.h"
#include "runtime/memory/pool_internal.h"
#include "runtime/task/entry.h"
#include "runtime/worker/metrics.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

/* No two pools of a process have the same. */
static struct pin_atomic_u64 next_number;

static uint32_t current_node(void)
{
	unsigned cpu;
	unsigned node;

	return getcpu(&cpu, &node) == 0 ? node : 0;
}

/* ---- shares ---- */

static __attribute__((unused)) uint64_t sum_of(
	const struct pin_pool_region *regions, uint32_t count)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		sum += regions[i].buffer_count;
	}
	return sum;
}

/* How many each worker's memory holds. */
static void divide(struct pin_pool_region *regions, const struct pinion_pool_config *config)
{
	uint32_t left = config->buffer_count;
	uint32_t each;

	PIN_CHECK(config->worker_count > 0);
	for (uint32_t i = 0; i < config->worker_count; i++) {
		uint32_t seeds = left < config->local_count ? left : config->local_count;

		regions[i].buffer_count = seeds;
		left -= seeds;
	}
	each = left / config->worker_count;
	left %= config->worker_count;
	for (uint32_t i = 0; i < config->worker_count; i++) {
		regions[i].buffer_count += each + (i < left ? 1 : 0);
	}
	PIN_DCHECK(sum_of(regions, config->worker_count) == config->buffer_count);
}

/* Numbers the nodes that workers are on from 0; how many there are. */
static uint32_t number_nodes(const struct pin_shared *shared, uint32_t *out_nodes)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		uint32_t before = 0;

		while (before < i &&
			shared->workers[before].place.node_index !=
				shared->workers[i].place.node_index) {
			before++;
		}
		out_nodes[i] = before < i ? out_nodes[before] : count++;
		PIN_DCHECK(out_nodes[i] < count);
	}
	PIN_DCHECK(count > 0 && count <= shared->worker_count);
	return count;
}

static void uncarve(
	struct pin_shared *shared, struct pinion_pool *pool, uint32_t count, uint64_t stride)
{
	PIN_DCHECK(count <= shared->worker_count && stride % PIN_PAGE_BYTES == 0);
	for (uint32_t i = 0; i < count; i++) {
		if (pool->regions[i].buffer_count > 0) {
			PIN_DCHECK(pool->regions[i].memory != NULL);
			pin_arena_uncarve(&shared->workers[i].arena, pool->regions[i].memory,
				pool->regions[i].buffer_count * stride);
		}
	}
}

/* From the workers' arenas, under the lock that all pools are made under. */
static int carve(struct pinion_pool *pool, const struct pinion_pool_config *config)
{
	struct pin_shared *shared = &pool->runtime->shared;
	uint64_t stride = pin_pool_config_stride(config);

	PIN_CHECK(config->worker_count == shared->worker_count);
	PIN_DCHECK(stride > 0 && stride % PIN_PAGE_BYTES == 0);
	divide(pool->regions, config);
	for (uint32_t i = 0; i < config->worker_count; i++) {
		uint64_t bytes = pool->regions[i].buffer_count * stride;
		struct pin_arena *arena = &shared->workers[i].arena;

		if (bytes == 0) {
			continue;
		}
		pool->regions[i].memory = pin_arena_carve(arena, bytes, PIN_PAGE_BYTES);
		if (pool->regions[i].memory == NULL) {
			pin_log(&pool->pool.log, PINION_LOG_ERROR,
				"pool: worker %u has %zu KiB left for pools and would need %llu "
				"with headroom; raise pool_bytes of the runtime's configuration",
				i, (arena->bytes - arena->carved_bytes) >> 10,
				(unsigned long long)(bytes >> 10));
			uncarve(shared, pool, i, stride);
			return -ENOMEM;
		}
		PIN_DCHECK((uintptr_t)pool->regions[i].memory % PIN_PAGE_BYTES == 0);
		PIN_DCHECK(arena->carved_bytes <= arena->bytes);
	}
	return 0;
}

/* Publishes to the workers where its buffers are. */
static int publish(struct pinion_pool *pool)
{
	int rc = pin_worker_pools_add(&pool->runtime->shared, &pool->pool, &pool->waiters);

	if (rc != 0) {
		pin_log(&pool->pool.log, PINION_LOG_ERROR, "pool: the runtime has %d already",
			PIN_POOLS_MAX);
	}
	return rc;
}

/* ---- create ---- */

/*
 * Numbers the nodes of the workers, so that buffers can be sent home by node,
 * and seeds each worker's magazine from its own region.
 */
static int init_buffers(struct pinion_pool *pool, const struct pinion_pool_config *config,
	const struct pin_log *log)
{
	struct pin_pool_setup setup = {
		.host = pool->host,
		.log = *log,
		.buffer_bytes = config->buffer_bytes,
		.headroom_bytes = config->headroom_bytes,
		.magazine_count = config->worker_count + config->thread_count,
		.magazine_capacity = config->local_count,
		.seeded_count = config->worker_count,
		.node_count = 1,
		.flags = config->flags,
		.regions = pool->regions,
		.region_count = pool->runtime != NULL ? config->worker_count : 1,
	};
	uint32_t *nodes =
		pin_heap_zeroed(pool->host, PIN_HEAP_ALIGN, setup.magazine_count, sizeof(*nodes));
	int rc;

	if (nodes == NULL) {
		return -ENOMEM;
	}
	if (pool->runtime != NULL) {
		setup.victims = &pool->runtime->shared.victims;
		setup.seed = pool->runtime->shared.tuning.seed;
		setup.node_count = number_nodes(&pool->runtime->shared, nodes);
		for (uint32_t i = 0; i < config->worker_count; i++) {
			pool->regions[i].node = nodes[i];
		}
	}
	setup.nodes = nodes;
	PIN_DCHECK(setup.node_count > 0 && setup.seeded_count <= setup.magazine_count);
	rc = pin_pool_init(&pool->pool, &setup);
	PIN_DCHECK(rc != 0 || pool->pool.buffer_count == config->buffer_count);
	PIN_DCHECK(rc != 0 || pool->pool.magazine_count == pool->cache_count);
	pin_heap_release(pool->host, nodes, PIN_HEAP_ALIGN, setup.magazine_count, sizeof(*nodes));
	/* Before it is published: a stop serves those who wait. */
	pin_waiters_init(
		&pool->waiters, setup.host, pin_buffers_take, pool, PIN_WAITERS_RELEASE_LIGHT);
	return rc;
}

/*
 * Without a runtime one mapping serves all caches, on the caller's node; each
 * seeded cache gets its part of it.
 */
static int map_alone(struct pinion_pool *pool, const struct pinion_pool_config *config,
	const struct pin_log *log)
{
	uint64_t bytes = config->buffer_count * pin_pool_config_stride(config);
	struct pin_arena_options options = {.bytes = bytes, .node_index = current_node()};
	int rc;

	PIN_DCHECK(pool->runtime == NULL && bytes > 0);
	rc = pin_arena_init(&pool->arena, pool->host, &options, log);
	if (rc != 0) {
		return rc;
	}
	pool->regions[0] = (struct pin_pool_region){
		.memory = pin_arena_carve(&pool->arena, bytes, PIN_PAGE_BYTES),
		.buffer_count = config->buffer_count,
	};
	PIN_CHECK(pool->regions[0].memory != NULL);
	pool->mapped_bytes = pool->arena.bytes;
	rc = init_buffers(pool, config, log);
	if (rc != 0) {
		pin_arena_fini(&pool->arena);
	}
	return rc;
}

/*
 * Under the lock that also ends pools: the parts of the arenas, and the place
 * in the table of pools, are taken together or not at all.
 */
static int cut_from_runtime(struct pinion_pool *pool, const struct pinion_pool_config *config,
	const struct pin_log *log)
{
	struct pin_shared *shared = &pool->runtime->shared;
	uint64_t stride = pin_pool_config_stride(config);
	int rc;

	PIN_DCHECK(config->buffer_count >= config->worker_count);
	pool->pool.log = *log;
	pool->mapped_bytes = config->buffer_count * stride;
	pin_lock_acquire(&shared->pools_lock, shared->host);
	rc = carve(pool, config);
	if (rc == 0) {
		rc = init_buffers(pool, config, log);
		if (rc == 0) {
			rc = publish(pool);
		}
		if (rc != 0) {
			pin_pool_fini(&pool->pool);
			uncarve(shared, pool, config->worker_count, stride);
		}
	}
	pin_lock_release(&shared->pools_lock, shared->host);
	return rc;
}

static void free_pool(struct pinion_pool *pool)
{
	/* It may be in the pool. */
	const struct pin_host room = *pool->host;
	const struct pin_host *host = &room;

	pin_heap_release(
		host, pool->attached, PIN_HEAP_ALIGN, pool->cache_count, sizeof(*pool->attached));
	pin_heap_release(
		host, pool->regions, PIN_HEAP_ALIGN, pool->worker_count, sizeof(*pool->regions));
	pin_heap_release(host, pool, _Alignof(struct pinion_pool), 1, sizeof(*pool));
}

/*
 * Builds the pool up to the point at which other threads may see it; until then
 * an error frees all of it.
 */
static int create(struct pinion_runtime *runtime, const struct pinion_pool_config *config,
	const struct pin_log *log, struct pinion_pool **out_pool)
{
	struct pin_host own_host = {0};
	const struct pin_host *host =
		pin_heap_choose(runtime != NULL ? runtime->shared.host : &pin_host_linux,
			config->allocator, &own_host);
	struct pinion_pool *pool =
		pin_heap_allocate(host, _Alignof(struct pinion_pool), 1, sizeof(*pool));
	int rc;

	if (pool == NULL) {
		return -ENOMEM;
	}
	*pool = (struct pinion_pool){
		.runtime = runtime,
		.host = host == &own_host ? &pool->own_host : host,
		.own_host = own_host,
		.cache_count = config->worker_count + config->thread_count,
		.worker_count = config->worker_count,
		.number = pin_fetch_add_relaxed_u64(&next_number, 1) + 1,
		.forked = pin_forked_now(),
	};
	pool->regions =
		pin_heap_zeroed(host, PIN_HEAP_ALIGN, config->worker_count, sizeof(*pool->regions));
	pool->attached =
		pin_heap_zeroed(host, PIN_HEAP_ALIGN, pool->cache_count, sizeof(*pool->attached));
	pin_store_relaxed_u32(&pool->owners, 1);
	rc = pool->regions == NULL || pool->attached == NULL ? -ENOMEM
		: runtime != NULL			     ? cut_from_runtime(pool, config, log)
							     : map_alone(pool, config, log);
	if (rc != 0) {
		free_pool(pool);
		return rc;
	}
	PIN_DCHECK(pool->number != 0 && pool->worker_count <= pool->cache_count);
	pool->has_short_way = pin_pool_has_short_way(&pool->pool) &&
		pool->waiters.fences == PIN_WAITERS_RELEASE_LIGHT;
	pin_live_add(&pool->live, PIN_LIVE_POOL, pool, runtime);
	*out_pool = pool;
	return 0;
}

/* On the metrics page, which the workers do not write while they sleep. */
static void show_pools(struct pin_shared *shared)
{
	while (!pin_metrics_publish_outside(shared, shared->host->now_ns())) {
		shared->host->yield();
	}
}

/*
 * Without a configuration of its own a pool gets the standard one; the
 * runtime's log serves where the pool has none.
 */
int pinion_pool_create(struct pinion_runtime *runtime, const struct pinion_pool_config *config,
	struct pinion_pool **out_pool)
{
	struct pinion_pool_config accepted;
	struct pinion_pool_config standard;
	struct pin_log log;
	int rc;

	if (config == NULL) {
		pinion_pool_config_init(&standard);
		config = &standard;
	}
	log = (struct pin_log){.fn = config->log, .arg = config->log_arg};
	if (runtime != NULL && pin_runtime_is_foreign(runtime)) {
		return -ECHILD;
	}
	if (log.fn == NULL && runtime != NULL) {
		log = runtime->shared.log;
		log.rates = NULL; /* the pool may live on */
	}
	pin_forked_watch(pin_recent_forget);
	rc = pin_pool_config_accept(
		&accepted, config, runtime == NULL ? 0 : runtime->shared.worker_count, &log);
	rc = rc != 0 ? rc : create(runtime, &accepted, &log, out_pool);
	if (rc == 0 && runtime != NULL) {
		show_pools(&runtime->shared);
	}
	return rc;
}

/* ---- share and destroy ---- */

struct pinion_pool *pinion_pool_share(struct pinion_pool *pool)
{
	uint32_t before = pin_fetch_add_relaxed_u32(&pool->owners, 1);

	PIN_DCHECK(before > 0 && before < UINT32_MAX);
	return pool;
}

/* The last owner's: true if no thread uses it any more. */
static bool is_idle(struct pinion_pool *pool)
{
	bool is_waited_for = pin_waiters_any(&pool->waiters);

	if (is_waited_for) {
		pin_log(&pool->pool.log, PINION_LOG_ERROR,
			"pool: a thread or task waits for a buffer; pinion_pool_close() ends that");
	}
	return pin_pool_check_report_in_use(&pool->pool) == 0 && !is_waited_for;
}

/*
 * Only the last of the owners ends the pool. If buffers are out or waiters
 * queue it stays, with that owner, and the call can be repeated.
 */
int pinion_pool_destroy(struct pinion_pool *pool)
{
	uint32_t owners;

	if (pool == NULL) {
		return 0;
	}
	pin_live_check(PIN_LIVE_POOL, pool);
	if (pool->forked != pin_forked_now()) {
		return -ECHILD;
	}
	owners = pin_fetch_sub_acq_rel_u32(&pool->owners, 1);
	PIN_CHECK(owners > 0);
	if (owners > 1) {
		return 0;
	}
	if (!is_idle(pool)) {
		pin_store_relaxed_u32(&pool->owners, 1);
		return -EBUSY;
	}
	pin_live_remove(PIN_LIVE_POOL, pool);
	if (pool->runtime != NULL) {
		struct pin_shared *shared = &pool->runtime->shared;
		uint64_t stride = (uint64_t)pool->pool.headroom_bytes + pool->pool.buffer_bytes;

		pin_lock_acquire(&shared->pools_lock, shared->host);
		pin_worker_pools_remove(shared, &pool->pool);
		pin_pool_fini(&pool->pool);
		uncarve(shared, pool, pool->worker_count, stride);
		pin_lock_release(&shared->pools_lock, shared->host);
		show_pools(shared);
	} else {
		pin_pool_fini(&pool->pool);
		pin_arena_fini(&pool->arena);
	}
	free_pool(pool);
	return 0;
}

/* ---- configuration ---- */

/*
 * One table says what each field may be.
 */

/* The struct as it was first; those who know only that get defaults. */
#define CONFIG_BYTES_MIN offsetof(struct pinion_pool_config, allocator)
_Static_assert(CONFIG_BYTES_MIN == 48, "first size");
_Static_assert(sizeof(struct pinion_pool_config) == 56, "released as 0.1");

enum {
	FLAGS = PINION_POOL_ZERO | PINION_POOL_GUARD,
	BYTES_MAX = 256 << 20,
	HEADROOM_MAX = 16 << 20,
	CACHES_MAX = 4096,
	LOCAL_MAX = 65536,
	BUFFERS_MAX = 1 << 24,
};

struct field {
	const char *name;
	size_t offset;
	uint32_t standard;
	uint32_t min;
	uint32_t max;
	uint32_t multiple;
};

#define FIELD(member, standard, min, max, multiple) \
	{ \
#member, offsetof(struct pinion_pool_config, member), standard, min, max, multiple \
	}

static const struct field fields[] = {
	FIELD(worker_count, 0, 0, CACHES_MAX, 1),
	FIELD(thread_count, 4, 0, CACHES_MAX, 1),
	FIELD(local_count, 4, 1, LOCAL_MAX, 1),
	FIELD(buffer_count, 0, 0, BUFFERS_MAX, 1),
	FIELD(buffer_bytes, 64 << 10, PIN_PAGE_BYTES, BYTES_MAX, PIN_PAGE_BYTES),
	FIELD(headroom_bytes, PIN_PAGE_BYTES, 0, HEADROOM_MAX, PIN_PAGE_BYTES),
	FIELD(flags, 0, 0, FLAGS, 1),
};

static uint32_t *field_of(struct pinion_pool_config *config, const struct field *field)
{
	PIN_DCHECK(field->offset + sizeof(uint32_t) <= sizeof(*config));
	return (uint32_t *)(void *)((uint8_t *)config + field->offset);
}

void pinion_pool_config_init_sized(struct pinion_pool_config *config, uint32_t size)
{
	struct pinion_pool_config standard = {.size = size};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		PIN_DCHECK(fields[i].min <= fields[i].standard);
		PIN_DCHECK(fields[i].standard <= fields[i].max);
		PIN_DCHECK(fields[i].standard % fields[i].multiple == 0);
		*field_of(&standard, &fields[i]) = fields[i].standard;
	}
	pin_sized_give(config, size, &standard, sizeof(standard));
}

static int refuse(const struct pin_log *log, const char *name, uint64_t value, const char *wanted)
{
	pin_log(log, PINION_LOG_ERROR, "pool: %s is %llu, %s", name, (unsigned long long)value,
		wanted);
	return -EINVAL;
}

/*
 * Range and multiple of each field by the table; rules that concern several
 * fields are in check_counts().
 */
static int check_fields(struct pinion_pool_config *config, const struct pin_log *log)
{
	char wanted[96];

	for (size_t i = 0; i < PIN_ARRAY_COUNT(fields); i++) {
		uint32_t value = *field_of(config, &fields[i]);

		if (value < fields[i].min || value > fields[i].max ||
			value % fields[i].multiple != 0) {
			snprintf(wanted, sizeof(wanted), "not %u to %u, a multiple of %u",
				fields[i].min, fields[i].max, fields[i].multiple);
			return refuse(log, fields[i].name, value, wanted);
		}
	}
	return 0;
}

static int check_allocator(const struct pinion_pool_config *config, const struct pin_log *log)
{
	if (!pin_heap_is_whole(config->allocator)) {
		pin_log(log, PINION_LOG_ERROR, "pool: allocator lacks one of its functions");
		return -EINVAL;
	}
	return 0;
}

/*
 * Completes the counts that the caller left at 0. More caches than buffers
 * works, and is worth a warning.
 */
static int check_counts(
	struct pinion_pool_config *config, uint32_t runtime_workers, const struct pin_log *log)
{
	uint32_t capacity;

	if (runtime_workers == 0 && config->worker_count == 0) {
		return refuse(log, "worker_count", 0, "not at least 1, without a runtime");
	}
	if (runtime_workers != 0 && config->worker_count != 0 &&
		config->worker_count != runtime_workers) {
		return refuse(log, "worker_count", config->worker_count,
			"not 0 or the runtime's number of workers");
	}
	if (runtime_workers != 0) {
		config->worker_count = runtime_workers;
	}
	if (config->buffer_count == 0) {
		config->buffer_count =
			pinion_pool_recommend(config->worker_count, config->local_count, 0);
	}
	if (config->buffer_count > BUFFERS_MAX || config->buffer_count < config->worker_count) {
		return refuse(log, "buffer_count", config->buffer_count,
			"fewer than there are workers, or more than 16777216");
	}
	PIN_DCHECK(config->worker_count > 0);
	capacity = pinion_pool_config_local_capacity(config);
	if (config->buffer_count < capacity) {
		pin_log(log, PINION_LOG_WARN,
			"pool: buffer_count is %u, less than the %u that the caches of %u "
			"workers hold; some stay empty",
			config->buffer_count, capacity, config->worker_count);
	}
	return 0;
}

/*
 * An older, smaller struct is completed with defaults; a newer one is accepted
 * if it sets no unknown field.
 */
int pin_pool_config_accept(struct pinion_pool_config *out_config,
	const struct pinion_pool_config *given, uint32_t runtime_workers, const struct pin_log *log)
{
	size_t known = sizeof(*out_config);
	int rc;

	if (given->size < CONFIG_BYTES_MIN) {
		return refuse(log, "size", given->size,
			"less than any version; use pinion_pool_config_init()");
	}
	pinion_pool_config_init_sized(out_config, (uint32_t)known);
	rc = pin_sized_take(out_config, known, given, given->size);
	if (rc < 0) {
		pin_log(log, PINION_LOG_ERROR,
			"pool: the configuration has a field this library does not know");
		return rc;
	}
	out_config->size = (uint32_t)known;
	rc = check_fields(out_config, log);
	rc = rc != 0 ? rc : check_allocator(out_config, log);
	return rc != 0 ? rc : check_counts(out_config, runtime_workers, log);
}

/* ---- sizes ---- */

static uint32_t saturate(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

uint32_t pinion_pool_recommend(uint32_t worker_count, uint32_t local_count, uint32_t depth_count)
{
	uint64_t locals = (uint64_t)worker_count * local_count;
	uint64_t with_reserve = locals + locals / 4 + (locals % 4 != 0);
	uint64_t in_flight = (uint64_t)depth_count + 2ull * worker_count;
	uint64_t count = with_reserve > in_flight ? with_reserve : in_flight;

	if (worker_count == 0) {
		return 0;
	}
	return saturate((count + worker_count - 1) / worker_count * worker_count);
}

uint32_t pinion_pool_config_local_capacity(const struct pinion_pool_config *config)
{
	return saturate((uint64_t)config->worker_count * config->local_count);
}

/* As a pool without a runtime takes it; of no buffers if it is refused. */
static struct pinion_pool_config accept_quietly(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted;
	struct pin_log quiet = {0};

	if (pin_pool_config_accept(&accepted, config, 0, &quiet) != 0) {
		accepted.buffer_count = 0;
	}
	return accepted;
}

uint64_t pinion_pool_config_peak_bytes(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return (uint64_t)accepted.buffer_count * accepted.buffer_bytes;
}

uint64_t pinion_pool_config_headroom_bytes_total(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return (uint64_t)accepted.buffer_count * accepted.headroom_bytes;
}

uint64_t pinion_pool_config_mapped_bytes_max(const struct pinion_pool_config *config)
{
	struct pinion_pool_config accepted = accept_quietly(config);

	return pin_round_up(
		accepted.buffer_count * pin_pool_config_stride(&accepted), PIN_HUGE_PAGE_BYTES);
}
