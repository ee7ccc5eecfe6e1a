/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker that leaves with requests in its ring sleeps there until they
 * have ended, each once; its ring goes when each doorbell for it has rung; a
 * worker that comes in its place has a ring of its own, and lets go of closed
 * files though the former worker got the message. [RETIRE-3], [FILES-1]. W49.
 * Method: real workers, of which one is dismissed while a device completes what
 * it has in flight, and a thread outside wakes it, cancels or closes a file.
 */
#include "runtime/api/internal.h"
#include "runtime/io/registered_files.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>
#include <pinion/request.h>

enum { TASKS = 3, FD = 100 };

static const uint32_t one[] = {1};
static const uint32_t two[] = {2};

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];
static struct pinion_request request;
static uint32_t end_count;
static int64_t result;

static int end_request(struct pinion_task *task)
{
	(void)task;
	end_count++;
	result = request.result;
	return 0;
}

static void submit_one(struct model_task *task)
{
	(void)task;
	request = (struct pinion_request){.task.run = end_request, .op = PINION_OP_NOP};
	MODEL_CHECK(pinion_request_submit(runtime, &request) == 0);
}

static void spawn_on_second(struct model_task *task)
{
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1, &task->request.task) == 0);
}

/* The second worker sleeps in its ring, with one request at the device. */
static void begin_reading(enum pin_doorbell_kind doorbell)
{
	end_count = 0;
	model_task_init(&tasks[0], submit_one);
	model_task_init(&tasks[1], NULL);
	model_task_init(&tasks[2], NULL);
	model_serving_counts = two;
	runtime = model_runtime_begin(2, doorbell, NULL);
	model_serving_counts = NULL;
	model_quiet_begin();
	model_device_hold();
	model_thread_start_daemon("device", model_device, NULL);
	spawn_on_second(&tasks[0]);
	model_settle();
	MODEL_CHECK(end_count == 0 && tasks[0].run_count == 1);
	model_quiet_end();
}

static void finish(void)
{
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(end_count == 1);
	model_runtime_end(runtime);
}

/* ---- it leaves while a request is in flight ---- */

static void release_device(void *arg)
{
	(void)arg;
	model_device_release();
}

static void run_reading(void)
{
	uint32_t other;

	begin_reading(PIN_DOORBELL_MESSAGE);
	other = model_thread_start("other", release_device, NULL);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	MODEL_CHECK(end_count == 1);
	model_thread_join(other);
	finish();
}

/* ---- a doorbell comes late ---- */

static void spawn_late(void *arg)
{
	(void)arg;
	spawn_on_second(&tasks[1]);
}

static void ring_late(enum pin_doorbell_kind doorbell)
{
	uint32_t other;

	begin_reading(doorbell);
	model_device_release();
	other = model_thread_start("other", spawn_late, NULL);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	model_thread_join(other);
	model_await("the task", model_task_has_run, &tasks[1]);
	finish();
}

static void run_doorbell(void)
{
	ring_late(PIN_DOORBELL_MESSAGE);
}

static void run_eventfd(void)
{
	ring_late(PIN_DOORBELL_EVENTFD);
}

/* ---- a cancel comes as its worker leaves ---- */

static void cancel(void *arg)
{
	int rc = pinion_request_cancel(runtime, &request);

	(void)arg;
	MODEL_CHECK(rc == 0 || rc == -EALREADY);
}

static void run_cancel(void)
{
	uint32_t other;

	begin_reading(PIN_DOORBELL_MESSAGE);
	model_device_release();
	other = model_thread_start("other", cancel, NULL);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	model_thread_join(other);
	finish();
	MODEL_CHECK(result == 0 || result == -ECANCELED);
}

/* ---- another comes in its place ---- */

static void run_again(void)
{
	begin_reading(PIN_DOORBELL_MESSAGE);
	model_device_release();
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	MODEL_CHECK(end_count == 1);
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	model_task_init(&tasks[1], submit_one);
	spawn_on_second(&tasks[1]);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(end_count == 2);
	model_runtime_end(runtime);
}

/* ---- a file is closed as its worker leaves ---- */

static struct pinion_file files[2];
static struct pin_file_record *records[2];

static void register_file(struct model_task *task)
{
	struct pin_file_table *table = &pin_worker_current()->files;
	uint32_t number = (uint32_t)(task - tasks);
	uint32_t uses = 0;

	while (!pin_file_table_note(table, &files[number], 0)) {
		uses++;
		MODEL_CHECK(uses < PIN_FILE_USES_MIN);
	}
}

static bool is_registered(const void *arg)
{
	return model_file_slots(FD + (int)*(const uint32_t *)arg) > 0;
}

static void register_on_second(uint32_t number)
{
	model_task_init(&tasks[number], register_file);
	records[number] = pin_file_record_create(&pin_host_linux);
	files[number] = (struct pinion_file){
		.fd = FD + (int)number,
		.private_ = (uint64_t)(uintptr_t)records[number],
	};
	spawn_on_second(&tasks[number]);
	model_await("the file", is_registered, &number);
	MODEL_CHECK(model_file_slots(FD + (int)number) == 1);
}

static void close_first(void *arg)
{
	(void)arg;
	pin_file_forget(&files[0]);
}

static bool is_gone(const void *arg)
{
	return model_is_freed(*(struct pin_file_record *const *)arg);
}

/*
 * The message about the first may come when the worker has left, to the
 * fallback worker, or to the next thread in its place, whose own file is to go
 * as well.
 */
static void run_files(void)
{
	uint32_t other;

	model_files_begin();
	model_serving_counts = two;
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
	model_serving_counts = NULL;
	model_quiet_begin();
	register_on_second(0);
	model_quiet_end();
	other = model_thread_start("other", close_first, NULL);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	model_quiet_begin();
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	register_on_second(1);
	model_quiet_end();
	pin_file_forget(&files[1]);
	model_thread_join(other);
	for (uint32_t i = 0; i < 2; i++) {
		model_await("the record's end", is_gone, &records[i]);
		MODEL_CHECK(model_file_slots(FD + (int)i) == 0);
	}
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
	model_registers_files = false;
}

static const struct model_mutant files_mutants[] = {
	{"its message is taken for the fallback worker's",
		{MODEL_SKIP, "pin_files_take", "pin_files_owner_of"}},
	{.name = NULL},
};

static const struct model_mutant reading_mutants[] = {
	{"it leaves while it reads", {MODEL_SKIP, "has_bound", "pin_request_is_over"}},
	{"it sleeps beside its ring", {MODEL_SKIP, "pin_retire_sleep", "pin_park_choose_mode"}},
	{.name = NULL},
};

static const struct model_mutant doorbell_mutants[] = {
	{"its ring goes before a doorbell", {MODEL_SKIP, "close_rings", "pin_retire_has_rung"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"reading", run_reading, 1, 1, 0, reading_mutants, NULL},
	{"doorbell", run_doorbell, 1, 1, 0, doorbell_mutants, NULL},
	{"eventfd", run_eventfd, 1, 0, 0, doorbell_mutants, NULL},
	{"cancel", run_cancel, 1, 1, 0, NULL, NULL},
	{"again", run_again, 1, 0, 0, NULL, NULL},
	{"files", run_files, 1, 0, 0, files_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("retire", cases, PIN_ARRAY_COUNT(cases));
}
