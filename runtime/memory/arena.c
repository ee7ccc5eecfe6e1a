/* SPDX-License-Identifier: MIT */
/*
 * Maps, places, touches and examines one worker's memory.
 *
 * The worker calls it on its own thread, bound to its CPU, before it reads
 * anything: the first touch decides the node. A pool without a runtime calls it
 * too.
 *
 * Invariant: an arena that was made is touched from `lazy_bytes` on, so no
 * later write there meets a page that the kernel withholds.
 */
#include "runtime/memory/arena.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/numa.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum {
	/* The kernel may find no room for a huge page now and then. */
	COLLAPSE_TRIES = 2,
	/* Pages asked about for their node; of more, evenly spaced ones. */
	NODE_SAMPLES_MAX = 65536,
};

/*
 * One attempt with one kind of pages. A page that the kernel withholds fails
 * here, so that the caller can try the next kind.
 */
static int map_kind(struct pin_arena *arena, enum pin_page_kind kind, const struct pin_log *log)
{
	uint32_t node_index = arena->options.node_index;
	uint8_t *memory = arena->host->map(arena->bytes, kind);
	int rc;

	if (memory == NULL) {
		return -ENOMEM;
	}
	PIN_CHECK((uintptr_t)memory % PIN_PAGE_BYTES == 0);
	rc = pin_placement_prefer(memory, arena->bytes, node_index);
	if (rc < 0) {
		pin_log(log, PINION_LOG_INFO, "memory cannot be placed on NUMA node %u (errno %d)",
			node_index, -rc);
	}
	/*
	 * A child of a process with pools may find their addresses free: it
	 * inherits AddressSanitizer's marks, not the memory.
	 */
	PIN_ASAN_UNPOISON(memory, arena->bytes);
	/*
	 * The first write decides the node and costs the page fault; it belongs
	 * here, not in the first read.
	 */
	rc = arena->lazy_bytes == arena->bytes
		? 0
		: pin_pages_populate(memory + arena->lazy_bytes, pin_arena_kept_bytes(arena));
	if (rc < 0) {
		arena->host->unmap(memory, arena->bytes);
		return rc;
	}
	arena->memory = memory;
	arena->page_kind = kind;
	return 0;
}

/*
 * Names RLIMIT_DATA only where it alone is set: a failed mmap() does not say
 * which limit it ran into.
 */
static const char *limit_name(void)
{
	struct rlimit space;
	struct rlimit data;

	return getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur == RLIM_INFINITY &&
			getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY
		? "`ulimit -d` (LimitDATA= in the systemd unit)"
		: "`ulimit -v`";
}

static int map(struct pin_arena *arena, const struct pin_log *log)
{
	size_t lazy_bytes = arena->options.lazy_bytes;

	PIN_CHECK(lazy_bytes <= arena->options.bytes && lazy_bytes % PIN_PAGE_BYTES == 0);
	for (int kind = lazy_bytes > 0 ? PIN_PAGES_THP : PIN_PAGES_HUGETLB; kind <= PIN_PAGES_SMALL;
		kind++) {
		arena->bytes = pin_round_up(arena->options.bytes,
			kind == PIN_PAGES_SMALL ? PIN_PAGE_BYTES : PIN_HUGE_PAGE_BYTES);
		/* The rest of the last huge page is not touched either. */
		arena->lazy_bytes = lazy_bytes == arena->options.bytes ? arena->bytes : lazy_bytes;
		if (map_kind(arena, (enum pin_page_kind)kind, log) == 0) {
			return 0;
		}
	}
	pin_log(log, PINION_LOG_ERROR,
		"cannot map %zu MiB for a worker's buffers: out of memory or over the "
		"limit of %s; lower buffer_count, buffer_bytes or pool_bytes "
		"(PINION_BUFFER_COUNT, PINION_BUFFER_BYTES, PINION_POOL_BYTES)",
		pin_round_up(arena->bytes, 1 << 20) >> 20, limit_name());
	return -ENOMEM;
}

static void give_back(const struct pin_arena *arena, void *memory)
{
	const struct pin_arena_options *options = &arena->options;

	PIN_CHECK(options->map != NULL); /* what we mapped is not theirs to unmap */
	if (options->unmap != NULL) {
		options->unmap(options->map_arg, options->worker_index, memory, arena->bytes);
	}
}

/*
 * An embedder's memory is touched and otherwise taken as it is. Whatever is
 * wrong with it is reported and it is given back.
 */
static int take(struct pin_arena *arena, const struct pin_log *log)
{
	const struct pin_arena_options *options = &arena->options;
	void *memory = NULL;
	int rc;

	arena->bytes = pin_round_up(options->bytes, PIN_PAGE_BYTES);
	rc = options->map(options->map_arg, options->worker_index, options->node_index,
		arena->bytes, &memory);
	if (rc != 0) {
		pin_log(log, PINION_LOG_ERROR, "arena_map gives worker %u no memory: %s",
			options->worker_index, strerror(rc < 0 ? -rc : EINVAL));
		return rc < 0 ? rc : -EINVAL;
	}
	if (memory == NULL || (uintptr_t)memory % PIN_PAGE_BYTES != 0) {
		pin_log(log, PINION_LOG_ERROR,
			"arena_map gives worker %u memory at %p, which is not aligned to %u bytes",
			options->worker_index, memory, PIN_PAGE_BYTES);
		rc = -EINVAL;
	} else {
		rc = pin_pages_populate(memory, arena->bytes);
		if (rc < 0) {
			pin_log(log, PINION_LOG_ERROR,
				"arena_map gives worker %u memory that cannot be written: %s",
				options->worker_index, strerror(-rc));
		}
	}
	if (rc < 0) {
		if (memory != NULL) {
			give_back(arena, memory);
		}
		return rc;
	}
	arena->memory = memory;
	arena->page_kind = PIN_PAGES_SMALL;
	return 0;
}

/* madvise(2) promises nothing, so the outcome is looked at, and mended. */
static void examine_pages(struct pin_arena *arena)
{
	uint8_t *kept = pin_arena_kept(arena);
	size_t bytes = pin_arena_kept_bytes(arena);
	int rc = pin_pages_count_huge(kept, bytes, &arena->huge_bytes);

	for (int i = 0; rc == 0 && arena->page_kind == PIN_PAGES_THP && arena->huge_bytes < bytes &&
		i < COLLAPSE_TRIES;
		i++) {
		pin_pages_collapse(kept, bytes);
		rc = pin_pages_count_huge(kept, bytes, &arena->huge_bytes);
	}
	if (rc < 0) {
		arena->has_unknown_pages = true;
		arena->huge_bytes = arena->page_kind == PIN_PAGES_SMALL ? 0 : bytes;
	}
	PIN_CHECK(arena->huge_bytes <= bytes);
}

/*
 * Returns the bytes that only fill up the last huge page to the kernel, where
 * it made no huge page of them: on small pages they are memory for nothing.
 * Where the kernel does not say which pages it gave they stay.
 */
static void trim(struct pin_arena *arena)
{
	size_t asked = pin_round_up(arena->options.bytes, PIN_PAGE_BYTES);
	size_t last = arena->bytes - PIN_HUGE_PAGE_BYTES;
	size_t huge_bytes;

	if (arena->page_kind != PIN_PAGES_THP || arena->has_unknown_pages ||
		asked == arena->bytes ||
		pin_pages_count_huge(arena->memory + last, PIN_HUGE_PAGE_BYTES, &huge_bytes) < 0 ||
		huge_bytes > 0) {
		return;
	}
	PIN_CHECK(asked > last);
	PIN_DCHECK(arena->carved_bytes == 0);
	arena->host->unmap(arena->memory + asked, arena->bytes - asked);
	arena->bytes = asked;
	PIN_CHECK(arena->huge_bytes <= arena->bytes); /* none was among the unmapped */
}

static void examine_placement(struct pin_arena *arena)
{
	size_t step = pin_arena_page_bytes(arena);
	size_t local_count;
	size_t count;

	while (arena->bytes / step > NODE_SAMPLES_MAX) {
		step *= 2;
	}
	if (pin_placement_count_local(pin_arena_kept(arena), pin_arena_kept_bytes(arena), step,
		    arena->options.node_index, &local_count, &count) == 0) {
		PIN_DCHECK(count > 0 && local_count <= count);
		arena->local_permille = (uint32_t)(local_count * 1000 / count);
	}
}

int pin_arena_init(struct pin_arena *arena, const struct pin_host *host,
	const struct pin_arena_options *options, const struct pin_log *log)
{
	int rc;

	PIN_CHECK(options->bytes > 0);
	*arena = (struct pin_arena){.host = host, .options = *options};
	rc = options->map != NULL ? take(arena, log) : map(arena, log);
	if (rc < 0) {
		return rc;
	}
	arena->local_permille = PIN_ARENA_NODE_UNKNOWN;
	if (pin_arena_kept_bytes(arena) > 0) {
		examine_pages(arena);
		trim(arena);
		examine_placement(arena);
	}
	PIN_CHECK(arena->bytes >= options->bytes);
	PIN_DCHECK(arena->bytes % PIN_PAGE_BYTES == 0);
	return 0;
}

void pin_arena_fini(struct pin_arena *arena)
{
	if (arena->memory == NULL) {
		return;
	}
	PIN_DCHECK(arena->carved_bytes <= arena->bytes);
	if (arena->options.map != NULL) {
		give_back(arena, arena->memory);
	} else {
		arena->host->unmap(arena->memory, arena->bytes);
	}
	arena->memory = NULL;
}

uint8_t *pin_arena_carve(struct pin_arena *arena, size_t bytes, size_t align)
{
	uintptr_t base = (uintptr_t)arena->memory;
	size_t start;

	PIN_CHECK(pin_is_power_of_two(align));
	PIN_CHECK(align <= PIN_HUGE_PAGE_BYTES);
	start = (size_t)(pin_round_up(base + arena->carved_bytes, align) - base);
	PIN_DCHECK(start >= arena->carved_bytes); /* invariant 1 */
	if (start > arena->bytes || bytes > arena->bytes - start) {
		return NULL;
	}
	arena->carved_bytes = start + bytes;
	PIN_CHECK(arena->carved_bytes <= arena->bytes); /* invariant 1 */
	return arena->memory + start;
}

bool pin_arena_uncarve(struct pin_arena *arena, const uint8_t *memory, size_t bytes)
{
	PIN_CHECK(memory >= arena->memory);
	PIN_CHECK(bytes <= arena->carved_bytes);
	PIN_CHECK((size_t)(memory - arena->memory) <= arena->carved_bytes - bytes);
	if (memory + bytes != arena->memory + arena->carved_bytes) {
		return false;
	}
	arena->carved_bytes = (size_t)(memory - arena->memory);
	return true;
}

uint32_t pin_arena_page_bytes(const struct pin_arena *arena)
{
	PIN_DCHECK(arena->huge_bytes <= pin_arena_kept_bytes(arena));
	return arena->huge_bytes < pin_arena_kept_bytes(arena) ? PIN_PAGE_BYTES
							       : PIN_HUGE_PAGE_BYTES;
}
