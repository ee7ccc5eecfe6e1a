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
 * Estimates how much of `memory` is on node `node_index`: asks the kernel about
 * one page in each `step` bytes. Stores how many pages it asked about, and how
 * many of them are on that node. The pages have to be touched already. Returns
 * a negative errno, and stores nothing, where the kernel gives no answer (a
 * sandbox, no NUMA).
 */
int pin_placement_count_local(const void *memory, size_t bytes, size_t step, uint32_t node_index,
	size_t *out_local_count, size_t *out_count);

/* ---- numa pages ---- */

/*
 * Backs memory with pages, and finds out their size.
 *
 * madvise(MADV_HUGEPAGE) succeeds in any case: the kernel may have no huge page
 * left, or may be configured never to use them. So callers that need them ask
 * afterwards: by PAGEMAP_SCAN (Linux 6.7), which counts for exactly the range
 * asked about, else by /proc/self/smaps, which counts for whole mappings, two
 * of which the kernel may have merged; then no more is counted than is certain.
 * Both work for ordinary users.
 *
 * Called on any thread, for memory that has been touched; keeps no state.
 *
 * Source: the kernel's admin-guide/mm/pagemap, proc(5), madvise(2).
 */

/*
 * Gives all of it pages, on the calling thread's behalf; its first bytes may be
 * overwritten. Where the kernel does not do it (Linux 5.14) each page is
 * touched, with a check before each 2 MiB. -EFAULT, -ENOMEM, -EHWPOISON: a
 * touch would have been a signal, as on huge pages that a cgroup withholds.
 */
int pin_pages_populate(void *memory, size_t bytes);

/*
 * How many of the `bytes` at `memory`, both multiples of 4096, are on pages of
 * 2 MiB or more. A negative errno where the kernel gives no answer, as without
 * /proc; the output is then not written.
 */
int pin_pages_count_huge(const void *memory, size_t bytes, size_t *out_huge_bytes);

/* The first way of the above alone: what one question to the kernel costs. */
int pin_pages_scan_huge(const void *memory, size_t bytes, size_t *out_huge_bytes);

/*
 * Gives the pages back to the kernel and keeps the addresses. No page of it may
 * be registered, or the kernel's transfers and the program would from then on
 * see different ones. A negative errno: they stay.
 */
int pin_pages_give_back(void *memory, size_t bytes);

/* From now on small pages only: a touch takes no 2 MiB there. */
void pin_pages_keep_small(void *memory, size_t bytes);

/* The second way of the above alone, `path` being /proc/self/smaps. */
int pin_pages_count_huge_in(
	const char *path, const void *memory, size_t bytes, size_t *out_huge_bytes);

/*
 * Has the kernel move small pages to huge ones, now (Linux 6.1); it does so
 * even where it is configured not to use them by itself. 0, or a negative errno
 * when some could not be moved; those that could are.
 */
int pin_pages_collapse(void *memory, size_t bytes);

/* Free pages of 2 MiB set aside by the administrator. */
uint32_t pin_pages_hugetlb_free(void);

#endif
