/* SPDX-License-Identifier: MIT */
/*
 * Goal: many more reads than a device may have at once, on several workers,
 * with rings and without: each one ends once with its own bytes, the depth is
 * kept, all of it is given back, and a worker that is granted credit is woken
 * wherever it sleeps, or is about to. G2.
 * Method: each request's callback submits it again from its worker, so those
 * that are granted run dry all the time. The page cache is not asked first: it
 * would answer at once, outside the depth.
 */
#include "runtime/base/atomic.h"
#include "tests/support/runtimes.h"
#include "tests/support/scratch.h"
#include "tests/support/tasks.h"

#include <fcntl.h>

enum {
	WORKERS = 3,
	REQUESTS = 24,
	ROUNDS = 2000, /* of each request */
	DEPTH = 3,
	BLOCK = 4096,
	LIMIT_SECONDS = 60,
};

struct slot {
	struct pinion_request request;
	uint32_t ended_count;
	uint8_t bytes[BLOCK] __attribute__((aligned(BLOCK)));
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct slot slots[REQUESTS];
static struct pin_atomic_u32 wrong_count;
static struct pin_atomic_u32 over_count;
static struct pin_atomic_u32 ended_count;

static int read_again(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);
	struct slot *slot = PIN_CONTAINER_OF(request, struct slot, request);
	struct pinion_device_stats figures;

	if (request->result != BLOCK || slot->bytes[0] != slot - slots ||
		slot->bytes[BLOCK - 1] != slot - slots) {
		pin_fetch_add_acq_rel_u32(&wrong_count, 1);
	}
	if (pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)) != 0 ||
		figures.taken_count > DEPTH) {
		pin_fetch_add_acq_rel_u32(&over_count, 1);
	}
	slot->ended_count++;
	if (slot->ended_count == ROUNDS) {
		pin_fetch_add_acq_rel_u32(&ended_count, 1);
		return 0;
	}
	memset(slot->bytes, 0xff, BLOCK);
	return pinion_request_submit(runtime, request);
}

static void make_file(void)
{
	static uint8_t block[BLOCK];
	int fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	for (uint32_t i = 0; i < REQUESTS; i++) {
		memset(block, (int)i, sizeof(block));
		expect_ready("file", fd >= 0 && write(fd, block, sizeof(block)) == sizeof(block));
	}
	close(fd);
	expect_ready("open", pinion_file_open(&file, "file", PINION_DIRECT_NEVER) == 0);
	file.cached_percent = 0;
	file.flags = 0;
}

static void run_once(uint32_t io_level)
{
	struct pinion_device_stats figures = {0};
	struct pinion_limits limits;

	runtime = runtimes_start(WORKERS, io_level);
	pinion_limits_init(&limits);
	limits.depth_count = DEPTH;
	expect_number("limit", 0, pinion_runtime_set_limits(runtime, &limits));
	pin_store_release_u32(&ended_count, 0);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		slots[i].ended_count = 0;
		slots[i].request = (struct pinion_request){
			.task.run = read_again,
			.file = &file,
			.bytes = slots[i].bytes,
			.offset_bytes = (uint64_t)i * BLOCK,
			.length_bytes = BLOCK,
		};
		expect_number("submit", 0, pinion_request_submit(runtime, &slots[i].request));
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("all ended", REQUESTS, pin_load_acquire_u32(&ended_count));
	expect_number("wrong", 0, pin_load_acquire_u32(&wrong_count));
	expect_number("beyond the depth", 0, pin_load_acquire_u32(&over_count));
	expect_number("figures", 0, pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)));
	expect_number("requests", (long long)REQUESTS * ROUNDS, (long long)figures.requests);
	expect_number("given back", 0, (long long)figures.taken_count);
	expect_true("some had to wait", figures.waited > 0);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	uint32_t count = tasks_iterations(1);

	runtimes_watchdog(count > 1 ? 3600 : LIMIT_SECONDS);
	scratch_enter("credit_is_passed_on");
	make_file();
	for (uint32_t i = 0; i < count && expect_failure_count == 0; i++) {
		run_once(PINION_IO_AUTO);
		run_once(PINION_IO_FALLBACK);
	}
	pinion_file_close(&file);
	scratch_leave();
	return expect_status();
}
