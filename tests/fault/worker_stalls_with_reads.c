/* SPDX-License-Identifier: MIT */
/*
 * Goal: while one worker is stalled in a task, its reads in flight, the other
 * runs everything that is not its alone; when it goes on, each of its reads has
 * ended once, with the right bytes; a stop that comes meanwhile waits for it
 * and for them. W39.
 * Method: a task submits reads and holds its worker until the other one has run
 * a thousand tasks and a scan, or until the runtime is seen to be stopping.
 */
#include "tests/support/scans.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	READS = 64,
	TASKS = 1000,
	SIZE = 1 << 18,
	LIMIT_SECONDS = 60,
	PIECE = SIZE / READS,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request requests[READS];
static uint8_t pieces[READS][PIECE] __attribute__((aligned(4096)));
static struct pin_atomic_u32 reads_ended;
static struct pin_atomic_u32 tasks_run;
static struct pinion_task tasks[TASKS];

static int has_read(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&reads_ended, 1);
	return 0;
}

static int count_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&tasks_run);
	return 0;
}

static void count_cancel(struct pinion_task *task)
{
	(void)count_run(task);
}

static void submit_reads(struct tasks_hold *hold)
{
	(void)hold;
	for (size_t i = 0; i < READS; i++) {
		requests[i] = (struct pinion_request){.task.run = has_read,
			.file = &file,
			.bytes = pieces[i],
			.offset_bytes = i * PIECE,
			.length_bytes = PIECE};
		expect_number("submit", 0, pinion_request_submit(runtime, &requests[i]));
	}
	/* Those that wait for the end of the loop have it now. */
	(void)pinion_worker_should_yield(runtime);
}

static void check_reads(bool may_be_cancelled)
{
	expect_number("reads that ended", READS, pin_load_acquire_u32(&reads_ended));
	for (size_t i = 0; i < READS; i++) {
		if (may_be_cancelled && requests[i].result == -ECANCELED) {
			continue;
		}
		expect_number("result", PIECE, requests[i].result);
		expect_number(
			"bytes", 0, memcmp(pieces[i], scans_files[0].bytes + i * PIECE, PIECE));
	}
}

static void begin(struct tasks_hold *hold, uint32_t direct)
{
	runtime = runtimes_start(2, PINION_IO_AUTO);
	pin_store_release_u32(&reads_ended, 0);
	pin_store_release_u32(&tasks_run, 0);
	memset(pieces, 0, sizeof(pieces));
	expect_number("open", 0, pinion_file_open(&file, "0", direct));
	tasks_hold_begin(hold, runtime, 0);
}

static void check_others_go_on(uint32_t direct)
{
	struct tasks_hold hold = {.prepare = submit_reads};
	struct pinion_scan_config config;
	struct pinion_scan *scan;

	begin(&hold, direct);
	for (size_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	tasks_await(&tasks_run, TASKS);
	scans_config(&config);
	config.window_bytes = PIECE;
	scan = scans_create(runtime, &config);
	scans_add(scan, 0);
	expect_number("finish", 0, pinion_scan_finish(scan, NULL, 0));
	scans_expect_end(0, PINION_SCAN_DONE, 0);
	pinion_scan_destroy(scan);
	tasks_hold_end(&hold);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	check_reads(false);
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
}

static void *stop(void *arg)
{
	(void)arg;
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	return NULL;
}

static void check_stop_waits(uint32_t direct)
{
	struct tasks_hold hold = {.prepare = submit_reads};
	struct pinion_task late = {.run = count_run, .cancel = count_cancel};
	pthread_t other;

	begin(&hold, direct);
	expect_ready("thread", pthread_create(&other, NULL, stop, NULL) == 0);
	while (pinion_task_spawn(runtime, &late) != -ESHUTDOWN) {
		tasks_await(&tasks_run, 1);
		pin_store_release_u32(&tasks_run, 0);
	}
	expect_number("has ended before it went on", 0, pin_load_acquire_u32(&hold.has_ended));
	tasks_hold_end(&hold);
	pthread_join(other, NULL);
	check_reads(true);
	pinion_runtime_destroy(runtime);
	pinion_file_close(&file);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	scratch_enter("worker_stalls_with_reads");
	scans_make(0, SIZE);
	for (uint32_t direct = PINION_DIRECT_ALWAYS; direct <= PINION_DIRECT_NEVER; direct++) {
		check_others_go_on(direct);
		check_stop_waits(direct);
	}
	scans_forget();
	scratch_leave();
	return expect_status();
}
