/* SPDX-License-Identifier: MIT */
/*
 * Goal: with `polled`, reads and writes are right whether the device polls, or
 * refuses them one by one, which is remembered, or the kernel refuses the ring;
 * large transfers, or those through the cache, are never tried; and there is no
 * second ring where none is asked for, rings are shared or there is no
 * io_uring. Which devices poll is read from sysfs, for a partition from its
 * disk's part of it. G12. Hazard that others met: a device that does not poll
 * never completes.
 * Method: the devices of this machine, most of which refuse; a copy of the host
 * that refuses the ring; a sysfs of the test's own.
 */
#include "runtime/host/block_device.h"
#include "runtime/task/entry.h"
#include "tests/support/requests.h"
#include "tests/support/rings.h"
#include "tests/support/scratch.h"

#include <sys/sysmacros.h>

enum {
	LIMIT_SECONDS = 60,
	BLOCK = 4096,
	LARGE = 256 << 10,
	FILE_BYTES = 1 << 20,
	READS = 100,
};

static struct pinion_runtime *runtime;
static uint8_t *bytes;

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 2654435761u >> 11) ^ (offset >> 12));
}

static void start(uint32_t polled, uint32_t sharing, uint32_t io_level)
{
	struct pinion_config config;

	/* An only worker never shares its ring. */
	runtimes_config(&config, sharing == PINION_RING_SHARED ? 2 : 1, io_level);
	runtimes_tuning.polled = polled;
	/* The watchdog checks its rings all the while. */
	runtimes_tuning.cq_stall_us = 100;
	runtimes_tuning.ring_sharing = sharing;
	runtime = NULL;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
}

static uint32_t polled_rings(void)
{
	struct pinion_runtime_info facts;

	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	return facts.polled_rings;
}

static void end(void)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
}

static void transfer(struct pinion_file *file, uint16_t op, uint64_t offset, uint32_t length)
{
	struct requests_one one;
	struct pinion_request *request = requests_begin(&one, op);
	bool is_right = true;

	request->file = file;
	request->bytes = bytes;
	request->offset_bytes = offset;
	request->length_bytes = length;
	for (uint32_t i = 0; i < length; i++) {
		bytes[i] = op == PINION_OP_WRITE ? byte_at(offset + i) : 0;
	}
	expect_number("transfer", length, requests_do(runtime, &one));
	for (uint32_t i = 0; i < length; i++) {
		is_right &= bytes[i] == byte_at(offset + i);
	}
	expect_true("the file's bytes", is_right);
}

/* How many were tried on the second ring, and how many refused there. */
static struct pinion_runtime_stats move_blocks(
	struct pinion_file *file, uint16_t op, uint32_t length)
{
	struct pinion_runtime_stats before = runtimes_counters(runtime);
	struct pinion_runtime_stats after;

	for (uint32_t i = 0; i < READS; i++) {
		transfer(file, op, (uint64_t)i * length % FILE_BYTES, length);
	}
	after = runtimes_counters(runtime);
	after.polled_transfers -= before.polled_transfers;
	after.polled_refusals -= before.polled_refusals;
	return after;
}

static void open_file(struct pinion_file *file, uint32_t direct)
{
	struct pinion_file_options options;

	pinion_file_options_init(&options);
	options.direct = direct;
	options.flags = PINION_FILE_READ | PINION_FILE_WRITE | PINION_FILE_CREATE;
	expect_ready("open", pinion_file_open_with(file, "file", &options) == 0);
}

/* The file exists, of its full size. */
static void check_transfers(uint32_t polled)
{
	struct pinion_runtime_stats counters;
	struct pinion_file file;

	start(polled, PINION_RING_OWN, PINION_IO_AUTO);
	if (polled_rings() == 0) {
		printf("no second ring here\n");
	}
	open_file(&file, PINION_DIRECT_ALWAYS);
	counters = move_blocks(&file, PINION_OP_READ, LARGE);
	expect_number("large ones", 0, (long long)counters.polled_transfers);
	counters = move_blocks(&file, PINION_OP_READ, BLOCK);
	printf("%llu of %d reads were polled, %llu refused\n",
		(unsigned long long)counters.polled_transfers, READS,
		(unsigned long long)counters.polled_refusals);
	if (counters.polled_refusals == 0) {
		expect_true("all or none",
			counters.polled_transfers == READS || counters.polled_transfers == 0);
	} else {
		expect_number("one was enough", 1, (long long)counters.polled_transfers);
		counters = move_blocks(&file, PINION_OP_WRITE, BLOCK);
		expect_number("none from then on", 0, (long long)counters.polled_transfers);
	}
	if (polled == PINION_POLLED_ALWAYS && polled_rings() == 1 && file.is_direct != 0) {
		expect_true("it was tried", runtimes_counters(runtime).polled_transfers > 0);
	}
	pinion_file_close(&file);
	open_file(&file, PINION_DIRECT_NEVER);
	counters = move_blocks(&file, PINION_OP_READ, BLOCK);
	expect_number("through the cache", 0, (long long)counters.polled_transfers);
	pinion_file_close(&file);
	end();
}

static void make_file(void)
{
	struct pinion_file file;

	start(PINION_POLLED_NEVER, PINION_RING_OWN, PINION_IO_AUTO);
	expect_number("never", 0, polled_rings());
	open_file(&file, PINION_DIRECT_NEVER);
	for (uint64_t offset = 0; offset < FILE_BYTES; offset += LARGE) {
		transfer(&file, PINION_OP_WRITE, offset, LARGE);
	}
	expect_number("sync", 0, fsync(file.fd));
	expect_number("polled", 0, (long long)runtimes_counters(runtime).polled_transfers);
	pinion_file_close(&file);
	end();
}

static void check_without(uint32_t sharing, uint32_t io_level)
{
	struct pinion_file file;

	start(PINION_POLLED_ALWAYS, sharing, io_level);
	expect_number("no second ring", 0, polled_rings());
	open_file(&file, PINION_DIRECT_ALWAYS);
	expect_number("nothing is polled", 0,
		(long long)move_blocks(&file, PINION_OP_READ, BLOCK).polled_transfers);
	pinion_file_close(&file);
	end();
}

/* ---- refused by the kernel ---- */

static void check_ring_refused(void)
{
	struct pin_ring_options options = {
		.entries = 8, .helper_count = 1, .is_polled = true, .kernel = &rings_kernel};

	expect_number("with all flags", rings_step_count(),
		rings_expect_refused(&options, IORING_SETUP_IOPOLL));
}

/* ---- what sysfs says ---- */

static void put(const char *path, const char *text)
{
	unlink(path);
	scratch_file(path, text);
}

static bool is_polled(unsigned minor_number)
{
	return pin_block_find(".", makedev(8, minor_number)).is_polled;
}

static void check_sysfs(void)
{
	static const char *const folders[] = {
		"sys", "sys/dev", "sys/dev/block", "sys/disk", "sys/disk/queue", "sys/disk/part"};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(folders); i++) {
		expect_ready(folders[i], mkdir(folders[i], 0755) == 0);
	}
	expect_ready("link", symlink("../../disk", "sys/dev/block/8:0") == 0);
	expect_ready("link", symlink("../../disk/part", "sys/dev/block/8:1") == 0);
	put("sys/disk/dev", "8:0\n");
	put("sys/disk/part/partition", "1\n");
	expect_true("it has no report", !is_polled(0) && !is_polled(1));
	put("sys/disk/queue/io_poll", "0\n");
	expect_true("it does not poll", !is_polled(0) && !is_polled(1));
	put("sys/disk/queue/io_poll", "1\n");
	expect_true("it polls", is_polled(0));
	expect_true("its partition", is_polled(1));
	expect_true("another", !is_polled(2));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("polled");
	bytes = aligned_alloc(BLOCK, LARGE);
	expect_ready("memory", bytes != NULL);
	check_sysfs();
	make_file();
	check_without(PINION_RING_OWN, PINION_IO_FALLBACK);
	check_without(PINION_RING_SHARED, PINION_IO_AUTO);
	check_transfers(PINION_POLLED_AUTO);
	check_transfers(PINION_POLLED_ALWAYS);
	scratch_leave();
	free(bytes);
	rings_require();
	check_ring_refused();
	return expect_status();
}
