/* SPDX-License-Identifier: MIT */
/*
 * Mapping, placing and warming one worker's memory.
 */
#include "runtime/memory/arena.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/placement.h"

#include <errno.h>

static void touch(uint8_t *memory, size_t bytes)
{
	/*
	 * The first write decides the node and costs the page fault; it belongs
	 * here, not in the first read. One write per small page, because a huge
	 * page may have been refused.
	 */
	for (size_t i = 0; i < bytes; i += PIN_PAGE_BYTES) {
		((volatile uint8_t *)memory)[i] = 0;
	}
}

int pin_arena_init(struct pin_arena *arena, const struct pin_host *host, size_t bytes,
	uint32_t node_index, const struct pin_log *log)
{
	size_t rounded = pin_round_up(bytes, PIN_HUGE_PAGE_BYTES);
	int rc;

	PIN_CHECK(bytes > 0);
	*arena = (struct pin_arena){.host = host};
	for (int kind = PIN_PAGES_HUGETLB; kind <= PIN_PAGES_SMALL; kind++) {
		arena->memory = host->map(rounded, (enum pin_page_kind)kind);
		if (arena->memory != NULL) {
			arena->page_kind = (enum pin_page_kind)kind;
			break;
		}
	}
	if (arena->memory == NULL) {
		pin_log(log, PINION_LOG_ERROR,
			"cannot map %zu MiB for a worker's buffers: out of memory or over the "
			"limit of `ulimit -v`; use fewer or smaller buffers",
			rounded >> 20);
		return -ENOMEM;
	}
	arena->bytes = rounded;
	rc = pin_placement_prefer(arena->memory, rounded, node_index);
	if (rc < 0) {
		pin_log(log, PINION_LOG_INFO, "memory cannot be placed on NUMA node %u (errno %d)",
			node_index, -rc);
	}
	touch(arena->memory, rounded);
	return 0;
}

void pin_arena_fini(struct pin_arena *arena)
{
	if (arena->memory != NULL) {
		arena->host->unmap(arena->memory, arena->bytes);
		arena->memory = NULL;
	}
}

uint32_t pin_arena_page_bytes(const struct pin_arena *arena)
{
	return arena->page_kind == PIN_PAGES_SMALL ? PIN_PAGE_BYTES : PIN_HUGE_PAGE_BYTES;
}
