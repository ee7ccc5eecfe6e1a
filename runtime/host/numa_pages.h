/* SPDX-License-Identifier: MIT */
/*
 * Having memory lie on pages, and finding out of which size they are.
 *
 * madvise(MADV_HUGEPAGE) succeeds whatever comes of it: the kernel may have no
 * huge page left, or may be told never to use them. So who needs them asks
 * afterwards: by PAGEMAP_SCAN (Linux 6.7), which tells for exactly the range
 * asked about, else by /proc/self/smaps, which tells for whole mappings, two of
 * which the kernel may have merged; then no more is counted than is certain.
 * Both work for ordinary users.
 *
 * Called on any thread, for memory that has been touched; keeps no state.
 *
 * Source: the kernel's admin-guide/mm/pagemap, proc(5), madvise(2).
 */
#ifndef PIN_HOST_NUMA_PAGES_H
#define PIN_HOST_NUMA_PAGES_H

#include <stddef.h>
#include <stdint.h>

/*
 * Gives all of it pages, on the calling thread's behalf; what is in its first
 * bytes may be overwritten. Where the kernel does not do it (Linux 5.14) each
 * page is touched, with a look before each 2 MiB. -EFAULT, -ENOMEM,
 * -EHWPOISON: a touch would have been a signal, as on huge pages that a cgroup
 * withholds.
 */
int pin_pages_populate(void *memory, size_t bytes);

/*
 * How many of the `bytes` at `memory`, both multiples of 4096, lie on pages of
 * 2 MiB or more. A negative errno where the kernel does not tell, as without
 * /proc; the output is then not written.
 */
int pin_pages_count_huge(const void *memory, size_t bytes, size_t *out_huge_bytes);

/* The second way of the above alone, `path` being /proc/self/smaps. */
int pin_pages_count_huge_in(
	const char *path, const void *memory, size_t bytes, size_t *out_huge_bytes);

/*
 * Has the kernel move what lies on small pages to huge ones, now (Linux 6.1);
 * it does so even where it is told not to use them by itself. 0, or a negative
 * errno when some could not be moved; those that could are.
 */
int pin_pages_collapse(void *memory, size_t bytes);

/* Pages of 2 MiB set aside by the administrator that nobody uses. */
uint32_t pin_pages_hugetlb_free(void);

#endif
