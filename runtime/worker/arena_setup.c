/* SPDX-License-Identifier: MIT */
/*
 * Fits, registers and reports the workers' arenas as a whole.
 *
 * Before the workers start, the limits of the memory cgroup and of the machine
 * are read: touching more than they leave is not an error but an OOM kill, so
 * large buffers are given up, or the creation fails. Seven eighths of the rest
 * are used: stacks, rings, the embedder and the page cache need memory too.
 *
 * When all arenas are there, they are registered once, on a ring of no other
 * use, and each worker's ring clones that table, where the kernel can (see
 * io/registered_buffers.h). For that the creator and the workers meet twice:
 * workers count themselves in `started_count` when they have their memory, the
 * creator registers and sets `has_registered`, they clone and count themselves
 * again. Elsewhere each worker registers its own arena as it starts.
 *
 * A thread pool may grow later, so its source stays until its end, and is only
 * read: a worker in the slot of one of the first workers clones from it. A
 * worker in a slot that was empty then registers its own arena alone: its reads
 * into others' memory, and theirs into its memory, go the plain way and are
 * counted.
 *
 * [ARENA-1] creator: fill registry and source, release has_registered;
 * worker: acquire it, then read them. Without it a worker could clone from a
 * ring, or look an address up in a table, that is only half made for it. The
 * way back, count after clone and close after count, is started_count's release
 * and acquire: else the source could go while a worker still clones from it.
 *
 * Then each shortage is logged in one line for all workers, with the command
 * that mends it.
 *
 * The creator of a runtime calls it in this order: fit (before any worker
 * starts), register (when every worker has mapped its arena), report (when all
 * have started). Each worker calls pin_arena_setup_join() in between, on its
 * own thread.
 *
 * Invariant: a failure to register costs speed and never correctness, so
 * nothing here but a memory limit that is too low can fail the creation.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/host/numa.h"
#include "runtime/worker/arena_growth.h"
#include "runtime/worker/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
	/*
	 * Fewer pages on their node than this, in thousandths, cause a message.
	 */
	LOCAL_PERMILLE_MIN = 990,
	/* Small pages of more than 1 / 8 of the memory are a warning. */
	SMALL_SHARE = 8,
	/* Headroom of pools: 4 KiB in front of 64 KiB, their defaults. */
	HEADROOM_SHARE = 16,
};

/* ---- before the workers start ---- */

/* For pools: `pool_bytes` counts their buffers, and headroom comes on top. */
static uint64_t bytes_for_pools(const struct pinion_config *config)
{
	return config->pool_bytes +
		pin_round_up(config->pool_bytes / HEADROOM_SHARE, PIN_PAGE_BYTES);
}

size_t pin_arena_setup_arena_bytes(const struct pinion_config *config)
{
	return (size_t)config->buffer_bytes * config->buffer_count +
		(size_t)config->small_buffer_bytes * config->small_buffer_count +
		(size_t)bytes_for_pools(config);
}

/* Bytes that have to be free, in whole MiB, for `wanted` to be usable. */
static uint64_t least_free(uint64_t wanted)
{
	uint64_t share = PIN_MEMLIMIT_RESERVE_SHARE - 1;

	return pin_round_up(wanted + (wanted + share - 1) / share, 1 << 20);
}

/* The part that takes the most. */
static const char *fields_to_lower(const struct pinion_config *config, uint64_t trace_bytes)
{
	uint64_t pools = bytes_for_pools(config);
	uint64_t small = (uint64_t)config->small_buffer_bytes * config->small_buffer_count;
	uint64_t large = config->buffer_bytes; /* of which one suffices */
	uint64_t traces = trace_bytes / config->worker_count;

	if (pools >= small && pools >= large && pools >= traces) {
		return "pool_bytes (PINION_POOL_BYTES)";
	}
	if (traces >= small && traces >= large) {
		return "trace_events (PINION_TRACE_EVENTS)";
	}
	return small >= large ? "small_buffer_count (PINION_SMALL_BUFFER_COUNT)"
			      : "buffer_bytes (PINION_BUFFER_BYTES)";
}

static void report_too_little(const struct pinion_config *config, const struct pin_memlimit *limit,
	uint64_t trace_bytes, uint64_t least_bytes, const struct pin_log *log)
{
	pin_log(log, PINION_LOG_ERROR,
		"%s is %llu MiB, of which %llu are free, but %u workers need %llu MiB for "
		"buffers%s: %slower %s%s",
		limit->path, (unsigned long long)(limit->limit_bytes >> 20),
		(unsigned long long)(limit->free_bytes >> 20), config->worker_count,
		(unsigned long long)(least_free(least_bytes) >> 20),
		trace_bytes > 0 ? " and the trace" : "",
		limit->is_machine ? "" : "raise it (systemd: MemoryMax=), or ",
		fields_to_lower(config, trace_bytes),
		config->worker_count > 1 ? " or worker_count (PINION_WORKER_COUNT)" : "");
}

/*
 * Gives up large buffers of each worker until the arenas fit. It keeps the
 * small buffers, the memory for pools and the trace: programs depend on these,
 * and large buffers only on being there at all.
 */
int pin_arena_setup_shrink(struct pinion_config *config, uint64_t trace_bytes,
	const struct pin_memlimit *limit, const struct pin_log *log)
{
	uint64_t workers = config->worker_count;
	uint64_t wanted_each =
		pin_round_up(pin_arena_setup_arena_bytes(config), PIN_HUGE_PAGE_BYTES);
	uint64_t usable = pin_memlimit_usable(limit);
	uint64_t fixed = (uint64_t)config->small_buffer_bytes * config->small_buffer_count +
		bytes_for_pools(config);
	uint64_t each;
	uint64_t count;

	PIN_CHECK(workers > 0);
	PIN_CHECK(config->buffer_bytes > 0);
	usable -= trace_bytes < usable ? trace_bytes : usable;
	each = pin_round_down(usable / workers, PIN_HUGE_PAGE_BYTES);
	if (limit->free_bytes == UINT64_MAX || wanted_each <= each) {
		return 0;
	}
	count = each > fixed ? (each - fixed) / config->buffer_bytes : 0;
	if (count == 0) {
		uint64_t least = pin_round_up(fixed + config->buffer_bytes, PIN_HUGE_PAGE_BYTES);

		report_too_little(config, limit, trace_bytes, workers * least + trace_bytes, log);
		return -ENOMEM;
	}
	pin_log(log, PINION_LOG_WARN,
		"%s is %llu MiB, of which %llu are free, but %llu workers want %llu MiB for "
		"buffers%s: each gets %llu large buffers instead of %u; %s",
		limit->path, (unsigned long long)(limit->limit_bytes >> 20),
		(unsigned long long)(limit->free_bytes >> 20), (unsigned long long)workers,
		(unsigned long long)((workers * wanted_each + trace_bytes) >> 20),
		trace_bytes > 0 ? " and the trace" : "", (unsigned long long)count,
		config->buffer_count,
		limit->is_machine ? "lower buffer_count (PINION_BUFFER_COUNT)"
				  : "raise it (systemd: MemoryMax=)");
	PIN_CHECK(count < config->buffer_count);
	config->buffer_count = (uint32_t)count;
	return 0;
}

/*
 * Reserved huge pages are not charged to the memory cgroup, so its limit does
 * not matter where they suffice. Arenas do not grow then: other programs cannot
 * use these pages anyway.
 */
int pin_arena_setup_fit(struct pin_shared *shared)
{
	struct pinion_config *config = &shared->config;
	const struct pinion_tuning *tuning = &shared->tuning;
	uint64_t wanted = config->worker_count *
		pin_round_up(pin_arena_setup_arena_bytes(config), PIN_HUGE_PAGE_BYTES);
	struct pin_memlimit limit;

	/* The embedder's memory, and pages set aside, are charged elsewhere. */
	if (tuning->arena_map != NULL ||
		(uint64_t)pin_pages_hugetlb_free() * PIN_HUGE_PAGE_BYTES >= wanted) {
		return 0;
	}
	shared->arenas_grow = tuning->buffer_rest_ms > 0;
	pin_memlimit_find("", &limit);
	pin_memlimit_lower_to_machine("", &limit);
	return pin_arena_setup_shrink(config,
		tuning->trace_events == 0
			? 0
			: pin_trace_bytes(config->worker_count, tuning->trace_events),
		&limit, &shared->log);
}

/* ---- registering ---- */

bool pin_arena_setup_is_shared(const struct pin_shared *shared)
{
	return !shared->is_fallback && pin_kernel_has(&shared->kernel, PINION_IO_CLONE_BUFFERS) &&
		pin_kernel_has(&shared->kernel, PINION_IO_REGISTERED_BUFFERS) &&
		shared->worker_count > 1 && (!shared->arenas_grow || shared->config.pool_bytes > 0);
}

static int compare_regions(const void *left, const void *right)
{
	const struct pin_region *a = left;
	const struct pin_region *b = right;

	return a->memory < b->memory ? -1 : a->memory > b->memory;
}

static void set_up_source(void *arg)
{
	struct pin_shared *shared = arg;
	struct io_uring_params params = {0};

	shared->has_source = shared->host->ring_setup(&shared->source, 1, &params) == 0;
}

/* False: every worker registers its own arena. */
static bool open_source(struct pin_shared *shared)
{
	struct pin_registry *registry = &shared->registry;

	PIN_DCHECK(!shared->has_source && registry->regions == NULL);
	registry->regions = pin_heap_zeroed(
		shared->host, PIN_HEAP_ALIGN, shared->worker_count, sizeof(*registry->regions));
	if (registry->regions == NULL) {
		return false;
	}
	shared->host->thread_call(set_up_source, shared);
	return shared->has_source;
}

/*
 * Lists the arenas of all workers, sorted by address so that a request can
 * search them, and registers them on the source ring that every worker then
 * clones.
 */
void pin_arena_setup_register(struct pin_shared *shared)
{
	struct pin_registry *registry = &shared->registry;
	int error;

	if (!open_source(shared)) {
		return;
	}
	registry->range_bytes = pin_registry_range_bytes(shared->config.buffer_bytes);
	registry->region_count = 0;
	registry->slot_count = pin_arena_growth_slots(shared);
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_arena *arena = &shared->workers[i].arena;

		/* A place of a thread pool may be empty. */
		if (arena->memory != NULL) {
			registry->regions[registry->region_count] =
				(struct pin_region){.memory = pin_arena_kept(arena),
					.bytes = pin_arena_kept_bytes(arena)};
			registry->region_count++;
		}
	}
	PIN_CHECK(registry->region_count <= shared->worker_count); /* as many as were allocated */
	qsort(registry->regions, registry->region_count, sizeof(*registry->regions),
		compare_regions);
	/* Too little memory for all is too little for each, too. */
	if (pin_registry_register(registry, shared->host, &shared->source, &error) == 0 &&
		error != -ENOMEM) {
		pin_arena_setup_close(shared);
	}
	for (uint32_t i = 0; i < shared->worker_count; i++) {
		shared->workers[i].register_error = error;
	}
}

void pin_arena_setup_register_own(struct pin_worker *worker)
{
	const struct pin_arena *arena = &worker->arena;

	if (!pin_kernel_has(&worker->shared->kernel, PINION_IO_REGISTERED_BUFFERS) ||
		pin_arena_kept_bytes(arena) == 0) {
		return;
	}
	worker->registered_bytes =
		pin_ring_register(&worker->ring, pin_arena_kept(arena), pin_arena_kept_bytes(arena),
			pin_registry_range_bytes(worker->shared->config.buffer_bytes),
			pin_arena_growth_slots(worker->shared), &worker->register_error);
	PIN_DCHECK(worker->registered_bytes <= pin_arena_kept_bytes(arena));
}

/*
 * Clones the source's table into this worker's ring. Falls back to the worker's
 * own arena wherever the clone cannot cover it.
 */
void pin_arena_setup_join(struct pin_worker *worker)
{
	const struct pin_registry *registry = &worker->shared->registry;
	uint32_t home = 0;

	PIN_DCHECK(pin_worker_is_current(worker));
	PIN_DCHECK(worker->ring.is_initialised && worker->arena.memory != NULL);
	while (home < registry->region_count &&
		registry->regions[home].memory != pin_arena_kept(&worker->arena)) {
		home++;
	}
	/* Not among them: a place of a thread pool that was empty at first. */
	if (!worker->shared->has_source || home == registry->region_count) {
		pin_arena_setup_register_own(worker);
		return;
	}
	if (registry->regions[home].bytes == 0) {
		return;
	}
	if (pin_ring_clone(&worker->ring, &worker->shared->source, registry, home) < 0) {
		pin_arena_setup_register_own(worker);
		return;
	}
	worker->registered_bytes = registry->regions[home].bytes;
}

/*
 * The polled ring clones the first one's table; where it cannot, it registers
 * as much as the limit still allows.
 */
void pin_arena_setup_register_polled(struct pin_worker *worker)
{
	const struct pin_ring *first = &worker->ring;
	int error;

	if (!worker->has_polled || first->registry == NULL) {
		return;
	}
	/* A clone of filled entries would hold pages that are given back. */
	PIN_DCHECK(first->slots == PIN_RING_SLOTS_UNTRIED);
	if (pin_kernel_has(&worker->shared->kernel, PINION_IO_CLONE_BUFFERS) &&
		pin_ring_clone(
			&worker->polled, &first->uring, first->registry, first->home_region) == 0) {
		return;
	}
	/* What the limit leaves; the rest is read the plain way. */
	(void)pin_ring_register(&worker->polled, pin_arena_kept(&worker->arena),
		pin_arena_kept_bytes(&worker->arena),
		pin_registry_range_bytes(worker->shared->config.buffer_bytes),
		pin_arena_growth_slots(worker->shared), &error);
}

void pin_arena_setup_close(struct pin_shared *shared)
{
	if (shared->has_source) {
		/* Now, rather than when the kernel takes the ring apart. */
		if (shared->registry.region_count > 0) {
			io_uring_unregister_buffers(&shared->source);
		}
		shared->host->ring_exit(&shared->source);
		shared->has_source = false;
	}
}

void pin_arena_setup_fini(struct pin_shared *shared)
{
	pin_arena_setup_close(shared);
	pin_heap_release(shared->host, shared->registry.regions, PIN_HEAP_ALIGN,
		shared->worker_count, sizeof(*shared->registry.regions));
	shared->registry.regions = NULL;
}

/* ---- the messages ---- */

struct sums {
	size_t bytes;
	size_t registered_bytes;
	size_t small_bytes;
	uint32_t local_permille; /* the smallest */
	uint32_t remote_worker;	 /* whose that is */
	int register_error;
	bool has_fallback;
};

/*
 * One pass over all workers, so that each shortage becomes one message and not
 * one for each worker.
 */
static struct sums sums_of(const struct pin_shared *shared)
{
	struct sums sums = {.local_permille = PIN_ARENA_NODE_UNKNOWN};

	for (uint32_t i = 0; i < shared->worker_count; i++) {
		const struct pin_worker *worker = &shared->workers[i];

		/* It has never been there. */
		if (worker->arena.memory == NULL) {
			continue;
		}
		PIN_DCHECK(worker->registered_bytes <= pin_arena_kept_bytes(&worker->arena));
		PIN_DCHECK(worker->arena.huge_bytes <= pin_arena_kept_bytes(&worker->arena));
		sums.bytes += pin_arena_kept_bytes(&worker->arena);
		sums.registered_bytes += worker->registered_bytes;
		sums.small_bytes += pin_arena_kept_bytes(&worker->arena) - worker->arena.huge_bytes;
		sums.has_fallback |= worker->ring.is_fallback;
		if (worker->register_error != 0) {
			sums.register_error = worker->register_error;
		}
		if (worker->arena.local_permille < sums.local_permille) {
			sums.local_permille = worker->arena.local_permille;
			sums.remote_worker = i;
		}
	}
	return sums;
}

/*
 * Names the limit that a registration met. Only -ENOMEM means the locked-memory
 * limit, so only then does the message say how to raise it.
 */
static void tell_registration(
	const struct pin_shared *shared, const char *which, size_t wanted_bytes, int error)
{
	struct rlimit limit;
	char limit_text[32] = "none";
	size_t wanted_kib = pin_round_up(2 * wanted_bytes, 1 << 20) >> 10;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
		snprintf(limit_text, sizeof(limit_text), "%llu KiB",
			(unsigned long long)limit.rlim_cur >> 10);
	}
	if (error != -ENOMEM) {
		pin_log(&shared->log, PINION_LOG_INFO,
			"%s buffers are registered with io_uring: %s (reads into the rest cost a "
			"little more CPU, nothing else changes)",
			which, strerror(-error));
		return;
	}
	pin_log(&shared->log, PINION_LOG_INFO,
		"%s buffers are registered with io_uring: the locked-memory limit is %s, raise it "
		"with `ulimit -l %zu` or LimitMEMLOCK=%zuM (reads into the rest cost a little more "
		"CPU, nothing else changes)",
		which, limit_text, wanted_kib, wanted_kib >> 10);
}

static void report_registration(const struct pin_shared *shared, const struct sums *sums)
{
	char which[64];

	snprintf(which, sizeof(which), "%zu of %zu MiB of", sums->registered_bytes >> 20,
		sums->bytes >> 20);
	tell_registration(shared, which, sums->bytes, sums->register_error);
}

void pin_arena_setup_tell_unregistered(const struct pin_shared *shared, int error)
{
	tell_registration(shared, "not all",
		shared->worker_count * pin_arena_setup_arena_bytes(&shared->config), error);
}

/*
 * Reports, in this order: unregistered memory, small pages, memory on another
 * node. An embedder's own arenas are left out of the last two.
 */
void pin_arena_setup_report(const struct pin_shared *shared)
{
	struct sums sums = sums_of(shared);

	if (sums.register_error != 0 && !sums.has_fallback) {
		report_registration(shared, &sums);
	}
	/* An embedder's memory is where the embedder put it. */
	if (shared->tuning.arena_map != NULL) {
		return;
	}
	if (sums.small_bytes > 0) {
		pin_log(&shared->log,
			sums.small_bytes > sums.bytes / SMALL_SHARE ? PINION_LOG_WARN
								    : PINION_LOG_INFO,
			"%zu of %zu MiB of buffers are on 4 KiB pages, which makes direct reads of "
			"some disks three times slower: sysctl vm.nr_hugepages=%zu, or echo "
			"madvise > /sys/kernel/mm/transparent_hugepage/enabled",
			sums.small_bytes >> 20, sums.bytes >> 20, sums.bytes / PIN_HUGE_PAGE_BYTES);
	}
	if (sums.local_permille < LOCAL_PERMILLE_MIN) {
		const struct pin_worker *worker = &shared->workers[sums.remote_worker];

		pin_log(&shared->log, PINION_LOG_WARN,
			"only %u.%u %% of worker %u's buffers are on its NUMA node %u: `numactl "
			"--hardware` shows what is free there, echo 1 > /proc/sys/vm/drop_caches "
			"frees page cache",
			sums.local_permille / 10, sums.local_permille % 10, sums.remote_worker,
			worker->place.node_index);
	}
}
