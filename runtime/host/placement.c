/* SPDX-License-Identifier: MIT */
/*
 * One mbind(2), asked for only where there is a choice.
 */
#include "runtime/host/placement.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>

/* As many nodes as a kernel can be built for (CONFIG_NODES_SHIFT is <= 10). */
#define NODE_COUNT_MAX 1024u
#define LONG_BITS ((uint32_t)(sizeof(unsigned long) * CHAR_BIT))

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
	}
	errno = saved_errno;
	return rc;
}
