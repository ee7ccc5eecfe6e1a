/* SPDX-License-Identifier: MIT */
/*
 * An arena: the memory one worker reads into. One mapping, aligned to 2 MiB,
 * on the best pages that can be had, on the worker's own NUMA node.
 *
 * Huge pages are not a luxury: a buffer that is contiguous in physical memory
 * needs fewer segments per request, and that alone triples what some disks
 * deliver. So what the kernel really gave is looked at once all is touched, and
 * small pages are asked to become huge ones while the memory is warm and holds
 * nothing yet. An arena is as large as asked, in pages of 4096 bytes; on huge
 * pages it is rounded up to 2 MiB, as its last page is whole. Created and first
 * touched by the worker that owns it.
 *
 * The front of an arena can be left untouched, as address space alone: the
 * worker takes memory for it as it needs some (worker/arena_growth.h). No pages
 * set aside by the administrator are used then.
 *
 * An embedder may give the memory instead; then it is taken as it is.
 *
 * Pieces are carved off from the front and stay carved until the arena goes,
 * except the piece carved last. Nothing here is synchronised: a thread that
 * carves while others may does so under a lock of theirs.
 *
 * Invariants: (1) pieces do not overlap, and are within the arena.
 *
 * Elsewhere: its size, and the messages about the outcome, are
 * worker/worker.h's; registering it is the ring's.
 */
#ifndef PIN_MEMORY_ARENA_H
#define PIN_MEMORY_ARENA_H

#include "runtime/base/log.h"
#include "runtime/host/host.h"

#include <pinion/hooks.h>
#include <stdbool.h>

/* Of pin_arena.local_permille: unknown, as the kernel does not say. */
#define PIN_ARENA_NODE_UNKNOWN UINT32_MAX

struct pin_arena_options {
	size_t bytes; /* more than 0 */
	/* Of its front, a multiple of 4096: reserved, not touched. */
	size_t lazy_bytes;
	uint32_t worker_index;
	uint32_t node_index;
	/* The embedder's memory; NULL: it is mapped here. */
	pinion_arena_map_fn map;
	pinion_arena_unmap_fn unmap;
	void *map_arg;
};

struct pin_arena {
	/* [const] */
	const struct pin_host *host;
	struct pin_arena_options options;
	uint8_t *memory;
	size_t bytes;		      /* a multiple of 2 MiB, if given of 4096 */
	size_t lazy_bytes;	      /* of its front, not touched here; or all */
	enum pin_page_kind page_kind; /* what it was mapped as; small if given */
	size_t huge_bytes;	      /* on pages of 2 MiB or more, of the touched part */
	bool has_unknown_pages;	      /* `huge_bytes` is only the requested size */
	uint32_t local_permille;      /* pages on the wanted node, thousandths */
	/* as the header says */
	size_t carved_bytes; /* from the front */
};

/*
 * Maps at least `options->bytes`, or takes them from the embedder, prefers the
 * node, and touches every page after `lazy_bytes`.
 * -ENOMEM: not even small pages could be had. Else what `map` returned, or
 * -EINVAL: it gave memory that is not aligned to 4096.
 */
int pin_arena_init(struct pin_arena *arena, const struct pin_host *host,
	const struct pin_arena_options *options, const struct pin_log *log);

/* Accepts an arena that is zeroed or was never initialised completely. */
void pin_arena_fini(struct pin_arena *arena);

/*
 * The next `bytes` of it whose address is a multiple of `align`, a power of two
 * up to 2 MiB. NULL when less is left; the arena is then as before.
 */
uint8_t *pin_arena_carve(struct pin_arena *arena, size_t bytes, size_t align);

/*
 * Gives the piece carved last back, for a caller that fails half-way; false,
 * and nothing happens, when another was carved since. What aligned it stays
 * carved.
 */
bool pin_arena_uncarve(struct pin_arena *arena, const uint8_t *memory, size_t bytes);

/* The part that was touched at its start, and how long it is. */
static inline uint8_t *pin_arena_kept(const struct pin_arena *arena)
{
	return arena->memory + arena->lazy_bytes;
}

static inline size_t pin_arena_kept_bytes(const struct pin_arena *arena)
{
	return arena->bytes - arena->lazy_bytes;
}

/* Bytes of the smallest pages of that part: 4096 or 2 MiB. */
uint32_t pin_arena_page_bytes(const struct pin_arena *arena);

#endif
