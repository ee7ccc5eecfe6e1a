/* SPDX-License-Identifier: MIT */
/*
 * Places memory on NUMA nodes and counts huge pages: mbind(2), move_pages(2),
 * PAGEMAP_SCAN, smaps.
 *
 * memory/arena.c uses it; each function does nothing, or says that it does not
 * know, where the machine or a sandbox lacks the call.
 */
#include "runtime/host/numa.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <numa.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As many nodes as a kernel can be built for (CONFIG_NODES_SHIFT is <= 10). */
#define NODE_COUNT_MAX 1024u
#define LONG_BITS ((uint32_t)(sizeof(unsigned long) * CHAR_BIT))

/* Pages asked about in one call; their list is on the stack. */
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

/*
 * Prefers the node and does not insist: memory on a far node is slower, a
 * failed start is worse.
 */
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
	/* The kernel subtracts one from the given count of bits. */
	if (mbind(memory, bytes, MPOL_PREFERRED, mask, NODE_COUNT_MAX + 1, 0) != 0) {
		rc = errno == ENOSYS ? 0 : -errno;
		/* By itself the kernel takes the memory nearest to its CPUs. */
		rc = rc == -EINVAL && is_without_memory(node_index) ? 0 : rc;
	}
	errno = saved_errno;
	return rc;
}

/*
 * Asks for one page in each `step`, in groups, as a question for every page of
 * a large arena would take long.
 */
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
		PIN_DCHECK(page_count > 0); /* so this ends */
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
	PIN_CHECK(local_count <= count);
	*out_local_count = local_count;
	*out_count = count;
	return 0;
}

/* ---- where pages are ---- */

/*
 * Asking the kernel, newest way first.
 */

/* Newer than Debian 12's headers, hence under names of our own. */
#define ADVICE_POPULATE_WRITE 23
#define ADVICE_COLLAPSE 25
#define SCAN_IS_HUGE (UINT64_C(1) << 6)

struct scan_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};

struct scan {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t regions;
	uint64_t region_count;
	uint64_t pages_max;
	uint64_t inverted;
	uint64_t all_of;
	uint64_t any_of;
	uint64_t returned;
};

_Static_assert(sizeof(struct scan) == 96, "struct pm_scan_arg");

#define SCAN_REQUEST _IOWR('f', 16, struct scan)

enum { SCAN_REGIONS = 32 };

/*
 * Linux 6.7 and newer: the kernel lists the ranges of huge pages, without
 * privileges.
 */
int pin_pages_scan_huge(const void *memory, size_t bytes, size_t *out_huge_bytes)
{
	/* Zeroed for valgrind, which does not know this ioctl. */
	struct scan_region regions[SCAN_REGIONS] = {0};
	struct scan scan = {
		.size = sizeof(scan),
		.start = (uintptr_t)memory,
		.end = (uintptr_t)memory + bytes,
		.regions = (uintptr_t)regions,
		.region_count = SCAN_REGIONS,
		.all_of = SCAN_IS_HUGE,
		.returned = SCAN_IS_HUGE,
	};
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	size_t huge_bytes = 0;
	int rc = 0;

	if (fd < 0) {
		return -errno;
	}
	while (scan.start < scan.end) {
		int count = ioctl(fd, SCAN_REQUEST, &scan);

		if (count < 0 || scan.walk_end <= scan.start) {
			rc = count < 0 ? -errno : -EIO;
			break;
		}
		PIN_CHECK(count <= SCAN_REGIONS);
		for (int i = 0; i < count; i++) {
			PIN_CHECK(regions[i].start >= scan.start);
			PIN_CHECK(regions[i].end > regions[i].start && regions[i].end <= scan.end);
			huge_bytes += (size_t)(regions[i].end - regions[i].start);
		}
		scan.start = scan.walk_end;
	}
	close(fd);
	PIN_CHECK(huge_bytes <= bytes);
	if (rc == 0) {
		*out_huge_bytes = huge_bytes;
	}
	return rc;
}

/* The part of a mapping in the range asked about. */
struct overlap {
	uint64_t mapping_bytes;
	uint64_t bytes; /* 0: nothing */
};

static struct overlap overlap_of(uint64_t start, uint64_t end, const void *memory, size_t bytes)
{
	uint64_t first = (uintptr_t)memory > start ? (uintptr_t)memory : start;
	uint64_t last = (uintptr_t)memory + bytes < end ? (uintptr_t)memory + bytes : end;

	PIN_DCHECK(start <= end);
	return (struct overlap){
		.mapping_bytes = end - start,
		.bytes = first < last ? last - first : 0,
	};
}

/*
 * Of a mapping that reaches beyond the range, the huge pages may all be out
 * there.
 */
static uint64_t certain_in(const struct overlap *overlap, uint64_t huge_bytes)
{
	uint64_t outside = overlap->mapping_bytes - overlap->bytes;

	PIN_DCHECK(overlap->bytes <= overlap->mapping_bytes);
	return huge_bytes > outside ? huge_bytes - outside : 0;
}

static bool is_of_huge_pages(const char *name)
{
	static const char *const names[] = {
		"AnonHugePages",
		"FilePmdMapped",
		"Private_Hugetlb",
		"Shared_Hugetlb",
		"ShmemPmdMapped",
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(names); i++) {
		if (strcmp(name, names[i]) == 0) {
			return true;
		}
	}
	return false;
}

/*
 * Before Linux 6.7: smaps has a sum for each mapping, so a mapping that only
 * overlaps gives a lower bound.
 */
int pin_pages_count_huge_in(
	const char *path, const void *memory, size_t bytes, size_t *out_huge_bytes)
{
	FILE *file = fopen(path, "re");
	struct overlap overlap = {0};
	uint64_t mapping_huge = 0;
	uint64_t seen = 0;
	uint64_t huge = 0;
	char line[512];

	if (file == NULL) {
		return -errno;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		uint64_t start;
		uint64_t end;
		uint64_t kib;
		char name[32];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2) {
			huge += certain_in(&overlap, mapping_huge);
			overlap = overlap_of(start, end, memory, bytes);
			seen += overlap.bytes;
			mapping_huge = 0;
		} else if (overlap.bytes > 0 &&
			sscanf(line, "%31[A-Za-z_]: %" SCNu64, name, &kib) == 2 &&
			is_of_huge_pages(name)) {
			mapping_huge += kib << 10;
		}
	}
	huge += certain_in(&overlap, mapping_huge);
	fclose(file);
	PIN_DCHECK(seen <= bytes); /* mappings do not overlap */
	if (seen < bytes) {
		return -ENOENT;
	}
	*out_huge_bytes = (size_t)huge;
	return 0;
}

int pin_pages_count_huge(const void *memory, size_t bytes, size_t *out_huge_bytes)
{
	int saved_errno = errno;
	int rc;

	PIN_CHECK(((uintptr_t)memory | bytes) % PIN_PAGE_BYTES == 0);
	rc = pin_pages_scan_huge(memory, bytes, out_huge_bytes);
	if (rc < 0) {
		rc = pin_pages_count_huge_in("/proc/self/smaps", memory, bytes, out_huge_bytes);
	}
	errno = saved_errno;
	return rc;
}

static int advise(void *memory, size_t bytes, int advice)
{
	int saved_errno = errno;
	int rc = madvise(memory, bytes, advice) < 0 ? -errno : 0;

	PIN_DCHECK(((uintptr_t)memory | bytes) % PIN_PAGE_BYTES == 0);
	errno = saved_errno;
	return rc;
}

/*
 * Whether a touch would be a signal. The kernel's own write to the same place
 * is an error instead; which call has it write there does not matter.
 */
static bool can_be_touched(uint8_t *memory)
{
	int saved_errno = errno;
	bool can = syscall(SYS_getcpu, memory, NULL, NULL) == 0 || errno != EFAULT;

	errno = saved_errno;
	return can;
}

/* One write per small page, because a huge page may have been refused. */
static int touch(uint8_t *memory, size_t bytes)
{
	PIN_DCHECK((uintptr_t)memory % PIN_PAGE_BYTES == 0); /* one write is one page */
	for (size_t i = 0; i < bytes; i += PIN_PAGE_BYTES) {
		if (i % PIN_HUGE_PAGE_BYTES == 0 && !can_be_touched(memory + i)) {
			return -EFAULT;
		}
		((volatile uint8_t *)memory)[i] = 0;
	}
	return 0;
}

int pin_pages_populate(void *memory, size_t bytes)
{
	int rc = advise(memory, bytes, ADVICE_POPULATE_WRITE);

	if (rc == 0 || rc == -EFAULT || rc == -ENOMEM || rc == -EHWPOISON) {
		return rc;
	}
	/* An older kernel, or a sandbox that knows better. */
	return touch(memory, bytes);
}

int pin_pages_collapse(void *memory, size_t bytes)
{
	return advise(memory, bytes, ADVICE_COLLAPSE);
}

int pin_pages_give_back(void *memory, size_t bytes)
{
	return advise(memory, bytes, MADV_DONTNEED);
}

void pin_pages_keep_small(void *memory, size_t bytes)
{
	(void)advise(memory, bytes, MADV_NOHUGEPAGE);
}

uint32_t pin_pages_hugetlb_free(void)
{
	int saved_errno = errno;
	FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
	unsigned count = 0;

	if (file != NULL) {
		if (fscanf(file, "%u", &count) != 1) {
			count = 0;
		}
		fclose(file);
	}
	errno = saved_errno;
	return count;
}
