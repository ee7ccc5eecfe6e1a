/* SPDX-License-Identifier: MIT */
/*
 * How much memory the control groups this process is in leave it.
 *
 * Touching more than that is not an error but an OOM kill, so it has to be
 * known before. Any group between the process and the root of its hierarchy may
 * set a limit; the one that leaves the least counts. What a group uses is taken
 * without the page cache, which the kernel gives up under pressure.
 *
 * Called once per runtime, on any thread.
 *
 * Elsewhere: pages of MAP_HUGETLB are not charged to these groups by default.
 * Source: of the kernel's documents admin-guide/cgroup-v2, "memory.max", and
 * cgroup-v1/memory.
 */
#ifndef PIN_HOST_CGROUP_MEMORY_H
#define PIN_HOST_CGROUP_MEMORY_H

#include <stdint.h>

struct pin_memlimit {
	uint64_t limit_bytes; /* UINT64_MAX: none or none to be found */
	uint64_t free_bytes;  /* what may still be touched under it; likewise */
	char path[256];	      /* of the file that sets it, cut if need be; "" */
};

/* `root` goes in front of every path read: "" for this machine. */
void pin_memlimit_find(const char *root, struct pin_memlimit *out_limit);

#endif
