/* SPDX-License-Identifier: MIT */
/*
 * Cuts regions of memory into ranges for the kernel, registers as much of them
 * as the locked-memory limit allows, and finds the range of an address.
 *
 * A worker registers at its start, or the creator for all
 * (worker/arena_setup.c); each transfer looks its buffer up.
 *
 * Invariant: regions are sorted and do not overlap, so one binary search
 * decides.
 */
#include "runtime/io/registered_buffers.h"
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/* The kernel takes at most 1 GiB per range. */
#define RANGE_BYTES_MAX ((size_t)1 << 30)

size_t pin_registry_range_bytes(size_t buffer_bytes)
{
	PIN_CHECK(buffer_bytes > 0);
	PIN_CHECK(buffer_bytes <= RANGE_BYTES_MAX);
	return RANGE_BYTES_MAX / buffer_bytes * buffer_bytes;
}

/* The part of a region tried after `halvings`; whole pages, huge ones first. */
static size_t bytes_after(const struct pin_region *region, uint32_t halvings)
{
	size_t bytes = halvings < sizeof(bytes) * 8 ? region->bytes >> halvings : 0;

	if (halvings == 0) {
		return bytes;
	}
	return pin_round_down(
		bytes, bytes >= PIN_HUGE_PAGE_BYTES ? PIN_HUGE_PAGE_BYTES : PIN_PAGE_BYTES);
}

static uint32_t range_count_of(size_t bytes, size_t range_bytes)
{
	PIN_DCHECK(range_bytes > 0 && range_bytes <= RANGE_BYTES_MAX);
	return (uint32_t)((bytes + range_bytes - 1) / range_bytes);
}

static size_t sum_of(const struct pin_registry *registry)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < registry->region_count; i++) {
		sum += registry->regions[i].bytes;
	}
	return sum;
}

/* Returns how many there are. */
static uint32_t cut(
	const struct pin_registry *registry, uint32_t halvings, struct iovec *out_ranges)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < registry->region_count; i++) {
		const struct pin_region *region = &registry->regions[i];
		size_t left = bytes_after(region, halvings);

		for (uint8_t *start = region->memory; left > 0; count++) {
			size_t length = left < registry->range_bytes ? left : registry->range_bytes;
			PIN_DCHECK(length <= RANGE_BYTES_MAX);

			out_ranges[count] = (struct iovec){.iov_base = start, .iov_len = length};
			start += length;
			left -= length;
		}
	}
	return count;
}

/* The regions become the registered parts. Returns the sum. */
static size_t settle(struct pin_registry *registry, uint32_t halvings)
{
	uint32_t index = 0;
	size_t sum = 0;

	for (uint32_t i = 0; i < registry->region_count; i++) {
		struct pin_region *region = &registry->regions[i];

		PIN_DCHECK(bytes_after(region, halvings) <= region->bytes);
		PIN_DCHECK((uintptr_t)region->memory % PIN_PAGE_BYTES == 0);
		region->bytes = bytes_after(region, halvings);
		region->first_index = index;
		index += range_count_of(region->bytes, registry->range_bytes);
		sum += region->bytes;
	}
	registry->range_count = index;
	return sum;
}

/*
 * Tries everything first, and waits for the memory of rings that were closed a
 * moment ago; then half of each region, a quarter, and so on. The rest is read
 * unregistered.
 */
size_t pin_registry_register(struct pin_registry *registry, const struct pin_host *host,
	struct io_uring *uring, int *out_error)
{
	size_t wanted = sum_of(registry);
	size_t range_count = 0;
	struct iovec *ranges;
	uint32_t halvings = 0;
	uint32_t tries = 0;
	size_t sum;

	for (uint32_t i = 0; i < registry->region_count; i++) {
		PIN_CHECK(i == 0 || registry->regions[i - 1].memory < registry->regions[i].memory);
		range_count += range_count_of(registry->regions[i].bytes, registry->range_bytes);
	}
	*out_error = -ENOMEM;
	range_count += registry->slot_count; /* their ranges stay zeroed: empty entries */
	ranges = pin_heap_zeroed(host, PIN_HEAP_ALIGN, range_count, sizeof(*ranges));
	for (; ranges != NULL; halvings++) {
		uint32_t count = cut(registry, halvings, ranges);
		uint32_t entries = count + registry->slot_count;
		int rc;

		PIN_CHECK(entries <= range_count);
		/* Those of an earlier, larger try. */
		memset(ranges + count, 0, (range_count - count) * sizeof(*ranges));
		rc = count == 0 ? -ENOMEM : io_uring_register_buffers(uring, ranges, entries);
		while (rc == -ENOMEM && halvings == 0 &&
			host->locked_await(sum_of(registry), &tries)) {
			rc = io_uring_register_buffers(uring, ranges, entries);
		}
		if (rc >= 0) {
			*out_error = halvings == 0 ? 0 : -ENOMEM;
			break;
		}
		/* Only for want of memory is less of it more likely. */
		if (rc != -ENOMEM || count == 0) {
			*out_error = rc;
			halvings = UINT32_MAX;
			break;
		}
	}
	if (ranges == NULL) {
		halvings = UINT32_MAX;
	}
	pin_heap_release(host, ranges, PIN_HEAP_ALIGN, range_count, sizeof(*ranges));
	sum = settle(registry, halvings);
	PIN_CHECK(sum <= wanted);
	PIN_CHECK(sum == wanted || *out_error < 0);
	return sum;
}

static int index_in(const struct pin_registry *registry, const struct pin_region *region,
	const uint8_t *bytes, size_t length)
{
	size_t offset = (size_t)(bytes - region->memory);
	size_t first;

	if (offset >= region->bytes || length > region->bytes - offset) {
		return -1;
	}
	first = offset / registry->range_bytes;
	if (length > 0 && (offset + length - 1) / registry->range_bytes != first) {
		return -1;
	}
	PIN_DCHECK(first < range_count_of(region->bytes, registry->range_bytes));
	return (int)(region->first_index + first);
}

/*
 * Most buffers are of the worker's own region, which is compared first; the
 * others need a binary search.
 */
int pin_registry_index(const struct pin_registry *registry, uint32_t home_region,
	const uint8_t *bytes, size_t length)
{
	const struct pin_region *regions = registry->regions;
	uint32_t low = 0;
	uint32_t high = registry->region_count;

	if (home_region < high && bytes >= regions[home_region].memory &&
		(size_t)(bytes - regions[home_region].memory) < regions[home_region].bytes) {
		return index_in(registry, &regions[home_region], bytes, length);
	}
	/* The last region that does not start after it. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (regions[middle].memory <= bytes) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	PIN_DCHECK(low == 0 || regions[low - 1].memory <= bytes);
	PIN_DCHECK(low == registry->region_count || regions[low].memory > bytes);
	return low == 0 ? -1 : index_in(registry, &regions[low - 1], bytes, length);
}
