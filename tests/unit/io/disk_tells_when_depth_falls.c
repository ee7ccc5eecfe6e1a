/* SPDX-License-Identifier: MIT */
/*
 * Goal: when the depth that is found for a disk falls, workers are notified
 * before the unused credit that they may still keep of the former depth leaves
 * too little of the new; and they are not notified all the time. G2.
 * Method: a disk whose rate drops to a sixteenth, so its knee does, counted in
 * intervals as worker/device_queue.c does it.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/io/device.h"
#include "tests/support/expect.h"

enum {
	MS = 1000 * 1000,
	INTERVALS = 6000,
	LATENCY_NS = 1 * MS,
	WORKERS = 4,
};

static struct pin_disks disks;
static struct pin_disk *disk;
static struct pinion_tuning tuning;

/* Kept at most, if all workers but one start nothing since the last word. */
static uint64_t largest;
static uint32_t told_count;

static uint64_t depth_now(void)
{
	return pin_credit_count(pin_load_relaxed_u64(&disk->credit.limit));
}

static void run_interval(struct pin_disk_sums *sums, uint64_t *now_ns, uint64_t rate_max)
{
	uint64_t depth = depth_now();
	uint64_t rate = depth * 1000 * MS / LATENCY_NS;
	uint64_t units;

	rate = rate < rate_max ? rate : rate_max;
	*now_ns += 20 * MS;
	units = rate / 50;
	sums->units += units;
	sums->requests += units;
	sums->waited += units;
	sums->timed += units;
	sums->latency_ns += units * (depth * 1000 * MS / rate);
	if (pin_disk_learn(&disks, disk, &pin_host_linux, &tuning, *now_ns, sums)) {
		told_count++;
		largest = 0;
	}
	depth = depth_now();
	largest = depth > largest ? depth : largest;
	expect_true("half of the largest since the last word", depth >= largest / 2);
}

int main(void)
{
	struct pin_disk_sums sums = {0};
	uint64_t now_ns = 1;
	uint64_t high;

	pinion_tuning_init(&tuning);
	pin_disks_init(&disks, &pin_host_linux, &tuning, WORKERS);
	disk = pin_disks_find(&disks, &pin_host_linux, &tuning, 0);
	for (uint32_t i = 0; i < INTERVALS; i++) {
		run_interval(&sums, &now_ns, 200 * 1000);
	}
	high = depth_now();
	told_count = 0;
	for (uint32_t i = 0; i < INTERVALS; i++) {
		run_interval(&sums, &now_ns, 200 * 1000 / 16);
	}
	expect_true("the depth fell", depth_now() < high / 4);
	expect_true("and workers were notified", told_count > 0);
	expect_true("but not with each change", told_count < 16);
	return expect_status();
}
