/* SPDX-License-Identifier: MIT */
/*
 * Goal: limits that are set for a device before its first request are in force
 * from that request on, take no place once they are taken back, and still hold
 * when other devices have used up all places.
 * Method: a table of disks, asked as the API and as workers ask it, with device
 * numbers of major 0: each a device of its own.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/io/device.h"
#include "tests/support/expect.h"

#include <errno.h>

enum { WORKERS = 2, STANDARD = 5, OWN = 3 };

static struct pin_disks disks;
static struct pinion_tuning tuning;

static void init(void)
{
	pinion_tuning_init(&tuning);
	tuning.depth_count = STANDARD;
	pin_disks_init(&disks, &pin_host_linux, &tuning, WORKERS);
}

static int limit(uint64_t device, const struct pinion_limits *limits)
{
	return pin_disks_limit_one(&disks, &pin_host_linux, &tuning, device, limits);
}

static struct pin_disk *find(uint64_t device)
{
	return pin_disks_find(&disks, &pin_host_linux, &tuning, device);
}

static long long depth_of(const struct pin_disk *disk)
{
	return pin_credit_count(pin_load_relaxed_u64(&disk->credit.limit));
}

static long long count_disks(void)
{
	return pin_load_relaxed_u32(&disks.count);
}

static void check_first_request(const struct pinion_limits *own)
{
	struct pin_disk *disk;

	init();
	expect_number("limits", 0, limit(7, own));
	expect_number("limits", 0, limit(8, own));
	expect_number("taken back", 0, limit(8, NULL));
	expect_number("no disk yet", 0, count_disks());
	expect_true("but limits", pin_disks_have_early_limits(&disks));
	disk = find(7);
	expect_number("its own depth", OWN, depth_of(disk));
	expect_number("its own rate", 1, pin_load_relaxed_u32(&disk->limiter.is_on));
	expect_true("none are early any more", !pin_disks_have_early_limits(&disks));
	expect_number("the runtime's depth", STANDARD, depth_of(find(8)));
	expect_number("both are there", 2, count_disks());
	expect_number("taken back", 0, limit(7, NULL));
	expect_number("the runtime's depth again", STANDARD, depth_of(disk));
	expect_number("no rate", 0, pin_load_relaxed_u32(&disk->limiter.is_on));
	expect_number("as many", 2, count_disks());
}

/* Limits of 15 and requests of one use up all places. */
static void check_full(const struct pinion_limits *own)
{
	struct pin_disk *first;
	struct pin_disk *shared;

	init();
	first = find(1);
	for (uint64_t device = 2; device <= PIN_DISKS; device++) {
		expect_number("limits", 0, limit(device, own));
	}
	expect_number("one too many", -ENOSPC, limit(17, own));
	expect_number("one of those with limits", 3, (long long)find(3)->device);
	expect_number("is added alone", 2, count_disks());
	shared = find(17);
	expect_number("all are there", PIN_DISKS, count_disks());
	expect_number("it shares the last", PIN_DISKS - 1, shared - disks.disks);
	expect_true("as others do", find(18) == shared);
	for (uint64_t device = 2; device <= PIN_DISKS; device++) {
		struct pin_disk *disk = find(device);

		expect_number("of that device", (long long)device, (long long)disk->device);
		expect_number("its own depth", OWN, depth_of(disk));
	}
	expect_true("the first one stays", find(1) == first);
	expect_number("of the first", STANDARD, depth_of(first));
}

int main(void)
{
	struct pinion_limits own;

	pinion_limits_init(&own);
	own.depth_count = OWN;
	own.bytes_per_second = 1 << 20;
	check_first_request(&own);
	check_full(&own);
	return expect_status();
}
