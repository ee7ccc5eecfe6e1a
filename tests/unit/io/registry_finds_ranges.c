/* SPDX-License-Identifier: MIT */
/*
 * Goal: the range that holds a buffer follows from its address, in one region
 * and among many, and nothing that is not registered has one; when the kernel
 * refuses, halves are tried and the rest stays without. W3, C21.
 * Method: a double of the one liburing call that takes ranges, which grants a
 * given number of bytes; regions of addresses that are never touched.
 */
#include "runtime/base/base.h"
#include "runtime/io/registered_buffers.h"
#include "tests/support/expect.h"

#include <errno.h>
#include <sys/uio.h>

static size_t granted_bytes;
static int refusal;
static uint32_t calls;
static struct iovec known[64];
static uint32_t known_count;

static int register_some(const void *uring, const struct iovec *ranges, unsigned count)
{
	size_t sum = 0;

	(void)uring;
	calls++;
	for (unsigned i = 0; i < count; i++) {
		expect_true("a range within 1 GiB",
			ranges[i].iov_len > 0 && ranges[i].iov_len <= (size_t)1 << 30);
		sum += ranges[i].iov_len;
	}
	if (sum > granted_bytes) {
		return refusal;
	}
	memcpy(known, ranges, count * sizeof(known[0]));
	known_count = count;
	return 0;
}

#define io_uring_register_buffers(uring, ranges, count) register_some(uring, ranges, count)
#include "runtime/io/registered_buffers.c"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static uint8_t *at(size_t mib)
{
	return (uint8_t *)(uintptr_t)(0x100000000000 + mib * MIB);
}

/* The kernel's rule: all of the buffer within the range of that index. */
static void check_index(const struct pin_registry *registry, uint32_t home, const uint8_t *bytes,
	size_t length, bool is_expected)
{
	int index = pin_registry_index(registry, home, bytes, length);

	expect_number("registered", is_expected, index >= 0);
	expect_number(
		"looked up near by", index, pin_registry_index_near(registry, home, bytes, length));
	if (index >= 0 && expect_true("index", (uint32_t)index < known_count)) {
		const uint8_t *start = known[index].iov_base;

		expect_true("all of it in that range",
			bytes >= start && bytes + length <= start + known[index].iov_len);
	}
}

static void check_one(size_t buffer_bytes)
{
	struct pin_region region = {.memory = at(0), .bytes = 3 * GIB + 6 * MIB};
	struct pin_registry registry = {
		.range_bytes = pin_registry_range_bytes(buffer_bytes),
		.region_count = 1,
		.regions = &region,
	};
	int error;

	granted_bytes = SIZE_MAX;
	expect_number("all", (long long)region.bytes,
		(long long)pin_registry_register(&registry, &pin_host_linux, NULL, &error));
	expect_number("error", 0, error);
	expect_true("few ranges", known_count <= 4);
	for (size_t i = 0; (i + 1) * buffer_bytes <= region.bytes; i++) {
		check_index(&registry, 0, region.memory + i * buffer_bytes, buffer_bytes, true);
	}
	check_index(&registry, 0, region.memory + region.bytes - 1, 1, true);
	check_index(&registry, 0, region.memory + region.bytes - 1, 2, false);
	check_index(&registry, 0, region.memory + region.bytes, 1, false);
	check_index(&registry, 0, region.memory - 1, 1, false);
	check_index(&registry, 0, region.memory - 1, 2, false);
	check_index(&registry, 0, region.memory + registry.range_bytes - 1, 2, false);
	check_index(&registry, 0, region.memory, SIZE_MAX, false);
}

enum { REGIONS = 5 };

/* Each of 40 MiB, with holes of 8 MiB between them. */
static void check_many(size_t granted_mib, size_t each_mib)
{
	struct pin_region regions[REGIONS];
	struct pin_registry registry = {
		.range_bytes = pin_registry_range_bytes(MIB),
		.region_count = REGIONS,
		.regions = regions,
	};
	int error;

	for (uint32_t i = 0; i < REGIONS; i++) {
		regions[i] = (struct pin_region){.memory = at(48 * i), .bytes = 40 * MIB};
	}
	granted_bytes = granted_mib * MIB;
	refusal = -ENOMEM;
	expect_number("as much as may be", (long long)(REGIONS * each_mib * MIB),
		(long long)pin_registry_register(&registry, &pin_host_linux, NULL, &error));
	expect_number("error", each_mib == 40 ? 0 : -ENOMEM, error);
	for (uint32_t home = 0; home < REGIONS; home++) {
		for (size_t mib = 0; mib < 48 * REGIONS; mib++) {
			check_index(&registry, home, at(mib), MIB, mib % 48 < each_mib);
		}
	}
}

int main(void)
{
	struct pin_region region = {.memory = at(0), .bytes = 40 * MIB};
	struct pin_registry registry = {.range_bytes = GIB, .region_count = 1, .regions = &region};
	int error;

	check_one(MIB);
	check_one(3 * MIB); /* of which 1 GiB is no multiple */
	check_one(256 * MIB - 4096);
	check_many(200, 40);
	check_many(199, 20);
	check_many(50, 10);
	check_many(49, 4);
	check_many(10, 2);
	check_many(0, 0);

	/* What less memory does not help is not tried again. */
	granted_bytes = 0;
	refusal = -EOPNOTSUPP;
	calls = 0;
	expect_number("nothing", 0,
		(long long)pin_registry_register(&registry, &pin_host_linux, NULL, &error));
	expect_number("error", -EOPNOTSUPP, error);
	expect_number("calls", 1, calls);
	expect_number("index", -1, pin_registry_index(&registry, 0, at(0), 1));
	return expect_status();
}
