/* SPDX-License-Identifier: MIT */
/*
 * Goal: a thread that is still inside pinion_task_spawn(), about to ring a
 * worker's doorbell, never finds the ring closed by a drain that ends
 * meanwhile: its descriptor may be another's by then, or the ring is asked for
 * ever.
 * Method: the spawner is held up at its doorbell while the worker wakes by
 * itself, runs the task and the runtime is drained. It goes on when the drain
 * has returned, or after a number of yields when the drain waits for it. A
 * worker whose sleep just ended for no reason needs no doorbell: it is tried
 * again.
 */
#include "tests/support/runtimes.h"
#include "tests/support/syscalls.h"
#include "tests/support/tasks.h"

#include "runtime/host/host.h"
#include "runtime/host/kernel.h"
#include "runtime/task/entry.h"

#include <errno.h>

enum {
	LIMIT_SECONDS = 30,
	YIELDS_MAX = 100000,
};

static struct pinion_runtime *runtime;
static struct pinion_file file;
static struct pinion_request request;
static uint8_t byte;
static struct pin_atomic_u32 is_at_doorbell;
static struct pin_atomic_u32 has_drained;
static struct pin_atomic_u32 run_count;
static uint32_t spawned_count;
static _Thread_local bool is_spawner;

static bool hold_up_doorbell(long number, const long *arguments, long *out_result)
{
	if (!is_spawner || number != __NR_io_uring_register ||
		arguments[1] != IORING_REGISTER_SEND_MSG_RING) {
		return false;
	}
	pin_store_release_u32(&is_at_doorbell, 1);
	for (int i = 0; i < YIELDS_MAX && pin_load_acquire_u32(&has_drained) == 0; i++) {
		pin_host_linux.yield();
	}
	*out_result = syscalls_pass(number, arguments);
	if (*out_result < 0) {
		printf("doorbell: expected an open ring, got errno %d\n", errno);
		fflush(stdout);
		_exit(1);
	}
	return true;
}

static int end(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int note_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&run_count);
	return 0;
}

static int start_read(struct pinion_task *task)
{
	(void)task;
	request = (struct pinion_request){
		.task.run = end, .file = &file, .bytes = &byte, .length_bytes = 1};
	return pinion_request_submit(runtime, &request);
}

static void *spawn_when_parked(void *arg)
{
	is_spawner = true;
	while (pin_load_acquire_u32(&is_at_doorbell) == 0) {
		tasks_await(&run_count, spawned_count);
		while (!pin_parker_is_parked(&runtime->shared.workers[0].parker)) {
			pin_host_linux.yield();
		}
		spawned_count++;
		expect_number("spawn", 0, pinion_task_spawn(runtime, arg));
	}
	return NULL;
}

int main(void)
{
	struct pinion_task starter = {.run = start_read};
	struct pinion_task task = {.run = note_run};
	struct pinion_runtime_info facts;
	pthread_t spawner;
	int ends[2];

	runtimes_watchdog(LIMIT_SECONDS);
	syscalls_begin();
	syscalls_hook = hold_up_doorbell;
	runtime = runtimes_start(1, PINION_IO_AUTO);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (strcmp(facts.doorbell, "send_msg_ring") != 0) {
		printf("skipped: the doorbell here is %s\n", facts.doorbell);
		pinion_runtime_destroy(runtime);
		return EXPECT_SKIPPED;
	}
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	expect_ready("thread", pthread_create(&spawner, NULL, spawn_when_parked, &task) == 0);
	while (pin_load_acquire_u32(&is_at_doorbell) == 0) {
		pin_host_linux.yield();
	}
	expect_ready("write", write(ends[1], "x", 1) == 1);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pin_store_release_u32(&has_drained, 1);
	pthread_join(spawner, NULL);
	expect_number("run", 2 + (long long)spawned_count,
		(long long)runtimes_counters(runtime).tasks_run);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
	return expect_status();
}
