/* SPDX-License-Identifier: MIT */
/*
 * Placing memory on a NUMA node.
 *
 * Memory is preferred on a node, never bound to it: binding more than a node
 * has free ends in an OOM kill, not in an error, while a preference spills to
 * the next node. It only decides where pages come from at first touch, so it
 * is called on a fresh mapping, before anything is written.
 *
 * Whether it came out that way is asked afterwards: a node that is full, a
 * cpuset or a page that was there before move it elsewhere.
 *
 * Called by the arena on its owner's thread.
 *
 * Of libnuma only calls without a printing or exiting path are used; its
 * numa_error() and numa_warn() hooks are symbols an application may define,
 * which a library must not.
 * Source: mbind(2), move_pages(2), numa(3).
 */
#ifndef PIN_HOST_NUMA_H
#define PIN_HOST_NUMA_H

#include <stddef.h>
#include <stdint.h>

/*
 * Prefers node `node_index` (its OS index) for the pages of `memory`, which is
 * page-aligned. 0 also where there is nothing to choose: one node, a node
 * without memory, a kernel without NUMA, a sandbox that hides it. Else a
 * negative errno of mbind(2); going on without is harmless.
 */
int pin_placement_prefer(void *memory, size_t bytes, uint32_t node_index);

/*
 * Looks at one page in each `step` bytes of `memory`, which has been touched,
 * and counts those on node `node_index`. A negative errno where the kernel does
 * not tell (a sandbox, no NUMA); outputs are then not written.
 */
int pin_placement_count_local(const void *memory, size_t bytes, size_t step, uint32_t node_index,
	size_t *out_local_count, size_t *out_count);

#endif
