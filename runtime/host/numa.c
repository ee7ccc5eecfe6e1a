/* SPDX-License-Identifier: MIT */
/*
 * mbind(2), asked for only where there is a choice, and move_pages(2).
 */
#include "runtime/host/numa.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>

/* As many nodes as a kernel can be built for (CONFIG_NODES_SHIFT is <= 10). */
#define NODE_COUNT_MAX 1024u
#define LONG_BITS ((uint32_t)(sizeof(unsigned long) * CHAR_BIT))

/* Pages asked about in one call; they lie on the stack. */
enum { QUERY_PAGES = 128 };

/* "0-1,3": the kernel's list of nodes with memory. */
static bool is_without_memory(uint32_t node_index)
{
	FILE *stream = fopen("/sys/devices/system/node/has_memory", "re");
	unsigned first;
	unsigned last;
	bool is_without = stream != NULL;
	int count;

	while (is_without && (count = fscanf(stream, "%u-%u", &first, &last)) > 0) {
		last = count == 1 ? first : last;
		is_without = node_index < first || node_index > last;
		(void)fgetc(stream); /* the comma */
	}
	if (stream != NULL) {
		fclose(stream);
	}
	return is_without;
}

int pin_placement_prefer(void *memory, size_t bytes, uint32_t node_index)
{
	unsigned long mask[NODE_COUNT_MAX / LONG_BITS] = {0};
	int saved_errno = errno;
	int rc = 0;

	PIN_CHECK(((uintptr_t)memory & (PIN_PAGE_BYTES - 1)) == 0);
	if (numa_available() < 0 || numa_max_node() <= 0 || bytes == 0) {
		errno = saved_errno;
		return 0;
	}
	if (node_index >= NODE_COUNT_MAX) {
		return -EINVAL;
	}
	mask[node_index / LONG_BITS] = 1ul << (node_index % LONG_BITS);
	/* The kernel takes one off the count of bits it is told. */
	if (mbind(memory, bytes, MPOL_PREFERRED, mask, NODE_COUNT_MAX + 1, 0) != 0) {
		rc = errno == ENOSYS ? 0 : -errno;
		/* By itself the kernel takes what is nearest to its CPUs. */
		rc = rc == -EINVAL && is_without_memory(node_index) ? 0 : rc;
	}
	errno = saved_errno;
	return rc;
}

int pin_placement_count_local(const void *memory, size_t bytes, size_t step, uint32_t node_index,
	size_t *out_local_count, size_t *out_count)
{
	int saved_errno = errno;
	size_t local_count = 0;
	size_t count = 0;

	PIN_CHECK(step >= PIN_PAGE_BYTES);
	for (size_t at = 0; at < bytes;) {
		void *pages[QUERY_PAGES];
		int nodes[QUERY_PAGES];
		uint32_t page_count = 0;

		for (; page_count < QUERY_PAGES && at < bytes; at += step) {
			pages[page_count] = (uint8_t *)(uintptr_t)memory + at;
			page_count++;
		}
		/* Without target nodes it only asks. */
		if (move_pages(0, page_count, pages, NULL, nodes, 0) < 0) {
			int rc = -errno;

			errno = saved_errno;
			return rc;
		}
		for (uint32_t i = 0; i < page_count; i++) {
			local_count += nodes[i] == (int)node_index ? 1 : 0;
		}
		count += page_count;
	}
	*out_local_count = local_count;
	*out_count = count;
	return 0;
}
