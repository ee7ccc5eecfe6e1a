/* SPDX-License-Identifier: MIT */
/*
 * An arena: the memory one worker reads into. One mapping, aligned to 2 MiB,
 * on the best pages that can be had, on the worker's own NUMA node.
 *
 * Huge pages are not a luxury: a buffer that is contiguous in physical memory
 * needs fewer segments per request, and that alone triples what some disks
 * deliver. Created and first touched by the worker that owns it.
 */
#ifndef PIN_MEMORY_ARENA_H
#define PIN_MEMORY_ARENA_H

#include "runtime/base/log.h"
#include "runtime/host/host.h"

struct pin_arena {
	const struct pin_host *host;  /* [const] */
	uint8_t *memory;	      /* [const] */
	size_t bytes;		      /* [const] a multiple of 2 MiB */
	enum pin_page_kind page_kind; /* [const] */
};

/*
 * Maps at least `bytes`, prefers `node_index`, and touches every page.
 * -ENOMEM: not even small pages could be had.
 */
int pin_arena_init(struct pin_arena *arena, const struct pin_host *host, size_t bytes,
	uint32_t node_index, const struct pin_log *log);

/* Accepts an arena that is zeroed or was never initialised completely. */
void pin_arena_fini(struct pin_arena *arena);

/* Bytes of the pages behind it: 4096 or 2 MiB. */
uint32_t pin_arena_page_bytes(const struct pin_arena *arena);

#endif
