/* SPDX-License-Identifier: MIT */
/*
 * Goal: a file that a worker's ring has registered leaves it when it is closed,
 * whatever the worker is at, and not before what names it is submitted; its
 * record is freed then, once: [RECORD-1], [FILES-1]. G5.
 * Method: real workers, that register files in tasks; closes from outside, two
 * at once, beside a task, beside the end of the runtime.
 */
#include "runtime/base/base.h"
#include "runtime/worker/state.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <string.h>

enum { FILES = 2, FD = 100 };

static struct pinion_runtime *runtime;
static struct pinion_file files[FILES];
static struct pin_file_record *records[FILES];
static struct model_task tasks[2];
static struct pinion_request request;
static uint32_t file_count;
static uint32_t request_runs;
static uint32_t registered_count; /* workers that have done it */

static void begin(uint32_t worker_count, uint32_t count)
{
	file_count = count;
	request_runs = 0;
	registered_count = 0;
	model_task_init(&tasks[0], NULL);
	model_task_init(&tasks[1], NULL);
	model_files_begin();
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	for (uint32_t i = 0; i < count; i++) {
		records[i] = pin_file_record_create(&pin_host_linux);
		files[i] = (struct pinion_file){
			.fd = FD + (int)i,
			.private_ = (uint64_t)(uintptr_t)records[i],
		};
	}
}

/* On a worker: all of them, as their requests would. */
static void register_files(struct model_task *task)
{
	struct pin_file_table *table = &pin_worker_current()->files;

	(void)task;
	MODEL_CHECK(table->slot_count > 0);
	for (uint32_t i = 0; i < file_count; i++) {
		uint32_t uses = 0;

		MODEL_CHECK(pin_file_table_find(table, records[i], 0) == -1);
		while (!pin_file_table_note(table, &files[i], 0)) {
			uses++;
			MODEL_CHECK(uses < PIN_FILE_USES_MIN);
		}
		MODEL_CHECK(uses == PIN_FILE_USES_MIN - 1);
		MODEL_CHECK(pin_file_table_find(table, records[i], 0) >= 0);
		MODEL_CHECK(model_file_slots(FD + (int)i) > 0);
	}
	registered_count++;
}

static bool has_registered(const void *arg)
{
	const uint32_t *count = arg;

	return registered_count >= *count;
}

static void register_on(uint32_t worker_index, struct model_task *task)
{
	uint32_t count = worker_index + 1;

	task->body = register_files;
	MODEL_CHECK(pinion_task_spawn_on(runtime, worker_index, &task->request.task) == 0);
	model_await("the task", has_registered, &count);
}

static bool is_gone(const void *arg)
{
	const uint32_t *index = arg;

	return model_is_freed(records[*index]);
}

static void finish(void)
{
	for (uint32_t i = 0; i < file_count; i++) {
		model_await("the record's end", is_gone, &i);
		MODEL_CHECK(model_file_slots(FD + (int)i) == 0);
	}
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
	model_registers_files = false;
}

static void close_second(void *arg)
{
	(void)arg;
	pin_file_forget(&files[1]);
}

/* Of a worker that sleeps, or is about to. */
static void run_closes(void)
{
	begin(1, 1);
	register_on(0, &tasks[0]);
	pin_file_forget(&files[0]);
	finish();
}

static void run_closes_two(void)
{
	uint32_t closer;

	begin(1, 2);
	model_quiet_begin();
	register_on(0, &tasks[0]);
	model_quiet_end();
	closer = model_thread_start("closer", close_second, NULL);
	pin_file_forget(&files[0]);
	model_thread_join(closer);
	finish();
}

/* Two rings have it; the last to let go frees the record. */
static void run_two_rings(void)
{
	begin(2, 1);
	model_quiet_begin();
	register_on(0, &tasks[0]);
	register_on(1, &tasks[1]);
	model_quiet_end();
	MODEL_CHECK(model_file_slots(FD) == 2);
	pin_file_forget(&files[0]);
	finish();
}

static int run_request(struct pinion_task *task)
{
	(void)task;
	request_runs++;
	return 0;
}

/* An entry has gathered that names the slot: the close may not take it. */
static void name_and_close(struct model_task *task)
{
	struct pin_worker *worker = pin_worker_current();

	register_files(task);
	request = (struct pinion_request){.task.run = run_request, .op = PINION_OP_NOP};
	MODEL_CHECK(pinion_request_submit(runtime, &request) == 0);
	MODEL_CHECK(pin_file_table_find(&worker->files, records[0], 1) >= 0);
	model_file_slots_keep(1);
	pin_file_forget(&files[0]);
}

static void run_named(void)
{
	begin(1, 1);
	model_thread_start_daemon("device", model_device, NULL);
	tasks[0].body = name_and_close;
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	finish();
	MODEL_CHECK(request_runs == 1);
}

static void close_first(void *arg)
{
	(void)arg;
	pin_file_forget(&files[0]);
}

/* The worker may do its last check at any time. */
static void run_close_and_end(void)
{
	uint32_t closer;
	uint32_t index = 0;

	begin(1, 1);
	model_quiet_begin();
	register_on(0, &tasks[0]);
	model_quiet_end();
	closer = model_thread_start("closer", close_first, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(closer);
	MODEL_CHECK(is_gone(&index));
	MODEL_CHECK(model_file_slots(FD) == 0);
	model_runtime_end(runtime);
	model_registers_files = false;
}

static const struct model_mutant close_mutants[] = {
	{"the worker is not notified", {MODEL_SKIP, "tell", "pin_wake_worker"}},
	{"no fence before the check of the sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{"there is no message", {MODEL_SKIP, "tell", "pin_inbox_push"}},
	{"the record is not let go", {MODEL_SKIP, "give_up", "pin_file_record_leave"}},
	{.name = NULL},
};

static const struct model_mutant two_mutants[] = {
	{"the message is sent twice", {MODEL_TORN, "tell", NULL}},
	{"the user of a message is not seen", {MODEL_RELAXED, "pin_files_take", NULL}},
	{"the user of a message shows nothing", {MODEL_RELAXED, "tell", NULL}},
	{.name = NULL},
};

static const struct model_mutant rings_mutants[] = {
	{"letting go takes no lock", {MODEL_SKIP, "pin_file_record_leave", "pin_lock_acquire"}},
	{.name = NULL},
};

static const struct model_mutant named_mutants[] = {
	{"a named slot is given up", {MODEL_SKIP, "give_up", "pin_file_slot_is_awaited"}},
	{.name = NULL},
};

static const struct model_mutant end_mutants[] = {
	{"letting go takes no lock", {MODEL_SKIP, "pin_file_record_leave", "pin_lock_acquire"}},
	{"the end keeps the record", {MODEL_SKIP, "pin_file_table_fini", "pin_file_record_leave"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"closes", run_closes, 2, 1, 0, close_mutants, NULL},
	{"closes_two", run_closes_two, 2, 1, 0, two_mutants, NULL},
	{"two_rings", run_two_rings, 1, 1, 0, rings_mutants, NULL},
	{"named", run_named, 1, 1, 0, named_mutants, NULL},
	{"close_and_end", run_close_and_end, 2, 1, 0, end_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("files", cases, PIN_ARRAY_COUNT(cases));
}
