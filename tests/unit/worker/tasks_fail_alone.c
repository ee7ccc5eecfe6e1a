/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that panics, calls pthread_exit() or lets an exception out fails
 * alone: every other task completes, counts balance, the threads are those from
 * before, requests in flight end as they should; what the frames between owe is
 * done; groups, calls, work items and owned buffers get the error; each is
 * logged by name and error, and many are not many lines. C14, W43, WP-19,
 * WP-26, WP-36, BP-6, EX-48, EX-60.
 * Method: one task in a fixed number ends in some way, on few workers that
 * steal from each other; then each way and each kind of task by itself.
 */
#include "tests/support/users.h"

#include <errno.h>
#include <fcntl.h>
#include <unwind.h>

enum {
	WORKERS = 3,
	TASKS = 900,
	BAD_EACH = 10, /* one in this number */
	WAYS = 4,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[TASKS];
static struct pin_atomic_u32 good_count;
static struct pin_atomic_u32 clean_count;
static struct pin_atomic_u32 end_count;

/* ---- ways to end ---- */

static void note_clean(int *unused)
{
	(void)unused;
	tasks_signal(&clean_count);
}

static void note_exit(void *unused)
{
	(void)unused;
	tasks_signal(&clean_count);
}

/* As a C++ throw does it; with a handler it does not return. */
static void throw_something(void)
{
	static _Thread_local struct _Unwind_Exception exception;

	exception = (struct _Unwind_Exception){.exception_class = 0x74657374};
	_Unwind_RaiseException(&exception);
}

__attribute__((noinline)) static void end_somehow(uint32_t way)
{
	__attribute__((cleanup(note_clean))) int cleaned = 0;

	(void)cleaned;
	if (way == 0) {
		pinion_task_panic(-EIO, "on purpose");
	} else if (way == 1) {
		pthread_exit(NULL);
	} else if (way == 2) {
		throw_something();
	} else {
		pthread_cleanup_push(note_exit, NULL);
		pthread_exit(NULL);
		pthread_cleanup_pop(0);
	}
}

static void expect_balance(const char *what, uint64_t failed, uint64_t unwound)
{
	struct pinion_runtime_stats counters = runtimes_counters(runtime);

	expect_number(what, (long long)(counters.tasks_spawned + counters.requests_submitted),
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("failed", (long long)failed, (long long)counters.tasks_failed);
	expect_number("unwound", (long long)unwound, (long long)counters.tasks_unwound);
}

static void start(uint32_t worker_count)
{
	runtime = runtimes_start(worker_count, PINION_IO_AUTO);
	pin_store_release_u32(&good_count, 0);
	pin_store_release_u32(&clean_count, 0);
	pin_store_release_u32(&end_count, 0);
}

/* ---- one in many ---- */

static int run_one(struct pinion_task *task)
{
	uint32_t number = (uint32_t)(task - tasks);

	if (number % BAD_EACH == 0) {
		end_somehow(number / BAD_EACH % WAYS);
	}
	tasks_signal(&good_count);
	return 0;
}

static int read_done(struct pinion_task *task)
{
	tasks_signal(&end_count);
	return task->run == NULL ? -EIO : 0;
}

static int submit_read(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	request->task.run = read_done;
	expect_number("read", 0, pinion_request_submit(runtime, request));
	tasks_signal(&end_count);
	/* The worker's ring has a read in flight; its thread must stay. */
	pthread_exit(NULL);
}

static void check_many(void)
{
	size_t threads;
	uint32_t bad = TASKS / BAD_EACH;
	struct pinion_request request = {.length_bytes = 1};
	struct pinion_file file;
	size_t threads_then;
	char byte = 0;
	int ends[2];

	/* A sanitizer starts a thread of its own with the first one. */
	start(1);
	pinion_runtime_destroy(runtime);
	threads = runtimes_count_entries("/proc/self/task");
	start(WORKERS);
	expect_ready("pipe", pipe(ends) == 0);
	file = runtimes_plain_file(ends[0]);
	request.file = &file;
	request.bytes = (uint8_t *)&byte;
	request.task.run = submit_read;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &request.task));
	tasks_await(&end_count, 1);
	threads_then = runtimes_count_own_threads();
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = run_one};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	tasks_await(&good_count, TASKS - bad);
	expect_ready("write", write(ends[1], "x", 1) == 1);
	tasks_await(&end_count, 2);
	/* A pipe has no offset, which system calls need. */
	expect_number("bytes read", request.result < 0 ? 0 : 'x', byte);
	expect_true("or nothing could be", request.result == 1 || request.result == -ESPIPE);
	expect_true("as many threads", runtimes_count_own_threads() <= threads_then);
	expect_number("join", 0, pinion_runtime_join(runtime) < 0 ? 0 : 1);
	expect_number("good", TASKS - bad, pin_load_acquire_u32(&good_count));
	/* Of the fourth way both. */
	expect_number("frames cleaned up", bad + bad / WAYS, pin_load_acquire_u32(&clean_count));
	expect_balance("many", bad + 1, bad + 1);
	pinion_runtime_destroy(runtime);
	runtimes_expect_threads(threads);
	close(ends[0]);
	close(ends[1]);
}

/* ---- which callbacks run ---- */

static uint32_t way;

static int run_in_group(struct pinion_group_task *task)
{
	(void)task;
	end_somehow(way);
	return 0;
}

static int run_call(void *arg)
{
	(void)arg;
	end_somehow(way);
	return 0;
}

static int work_result;

static int run_work(struct pinion_work *work)
{
	(void)work;
	end_somehow(way);
	return 0;
}

static void end_work(struct pinion_work *work, int result)
{
	(void)work;
	work_result = result;
	tasks_signal(&end_count);
}

static int run_with_buffer(struct pinion_buffer_task *task, struct pinion_buffer *buffer)
{
	(void)task;
	expect_true("has a buffer", buffer->bytes != NULL);
	end_somehow(way);
	return 0;
}

static void cancel_badly(struct pinion_task *task)
{
	(void)task;
	end_somehow(way);
}

static void check_deliveries(void)
{
	int expected = way == 0 ? -EIO : -EOWNERDEAD;
	struct pinion_group_task in_group = {.run = run_in_group};
	struct pinion_timer timer = {.task = {.run = run_one, .cancel = cancel_badly}};
	struct pinion_buffer_task owning;
	struct pinion_buffer buffer;
	struct pinion_group group;
	struct pinion_work work;
	struct pinion_pool *pool = users_pool(NULL, 1, 1, 2);
	int result = 1;

	start(1);
	expect_number("group", 0, pinion_group_init(&group, runtime, 0));
	expect_number("group task", 0, pinion_group_spawn(&group, &in_group));
	expect_number("joined", 0, pinion_group_wait(&group, UINT64_MAX));
	expect_number("group's failure", expected, pinion_group_result(&group));

	expect_number("call", 0, pinion_call_run(runtime, run_call, NULL, &result));
	expect_number("call's result", expected, result);

	pinion_work_init(&work, run_work, end_work);
	expect_number("work", 0, pinion_work_wake(runtime, &work));
	tasks_await(&end_count, 1);
	expect_number("work's result", expected, work_result);

	expect_number("acquire", 0, pinion_pool_try_acquire(pool, &buffer));
	pinion_buffer_task_init(&owning, pool, &buffer, run_with_buffer, NULL);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &owning.task));

	/* A cancel that does not return counts as cancelled. */
	expect_number("timer", 0, pinion_timer_start(runtime, &timer, UINT64_MAX));
	expect_number("cancel", 0, pinion_timer_cancel(runtime, &timer));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("buffer is back", 2, users_free(pool));
	expect_number("cancelled", 1, (long long)runtimes_counters(runtime).tasks_cancelled);
	expect_balance("deliveries", 4, 5);
	pinion_pool_destroy(pool);
	pinion_runtime_destroy(runtime);
}

/* ---- the messages ---- */

static int fail(struct pinion_task *task)
{
	(void)task;
	return -ENOSPC;
}

static uint32_t count_lines(const char *text)
{
	uint32_t lines = 0;

	for (; *text != '\0'; text++) {
		lines += *text == '\n' ? 1 : 0;
	}
	return lines;
}

static int panic(struct pinion_task *task)
{
	char reason[32] = "gone with its frame";

	(void)task;
	pinion_task_panic(-EIO, reason);
}

static void check_log(void)
{
	struct pinion_task failing = {.run = fail};
	struct pinion_task panicking = {.run = panic};

	start(1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &panicking));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &failing));
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_true("the failure",
		strstr(runtimes_log, "task fail failed: No space left on device (-28)") != NULL);
	expect_true("the panic",
		strstr(runtimes_log,
			"task panic panicked: gone with its frame: Input/output error (-5)") !=
			NULL);
	expect_true("and no other", strstr(runtimes_log, "pthread_exit") == NULL);
	pinion_runtime_destroy(runtime);

	start(1);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = fail};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	expect_number("join", -ENOSPC, pinion_runtime_join(runtime));
	/* A second may pass, on a slow machine several. */
	expect_true("no flood", count_lines(runtimes_log) < TASKS / 4);
	expect_balance("failures", TASKS, 0);
	pinion_runtime_destroy(runtime);
}

/* ---- all the same ---- */

static int go_on(struct pinion_task *task)
{
	if (pin_fetch_add_acq_rel_u32(&good_count, 1) < TASKS) {
		expect_number("respawn", 0, pinion_task_respawn(runtime, task));
	}
	pinion_task_panic(-EIO, NULL);
}

/* Batches of one task each must not keep completions out. */
static void check_endless(void)
{
	struct pinion_request request = {.op = PINION_OP_NOP, .task = {.run = read_done}};
	struct pinion_task endless = {.run = go_on};

	start(1);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &endless));
	expect_number("submit", 0, pinion_request_submit(runtime, &request));
	tasks_await(&end_count, 1);
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_balance("endless", TASKS + 1, TASKS + 1);
	pinion_runtime_destroy(runtime);
}

/* Queued tasks go to their cancel. C14. */
static void check_fail_fast(void)
{
	struct tasks_hold hold = {0};
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.fault_policy = PINION_FAULT_FAIL_FAST;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pin_store_release_u32(&good_count, 0);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < BAD_EACH; i++) {
		tasks[i] = (struct pinion_task){.run = run_one};
		expect_number("spawn", 0, pinion_task_spawn_on(runtime, 0, &tasks[i]));
	}
	tasks_hold_end(&hold);
	expect_number("join", -EIO, pinion_runtime_join(runtime));
	expect_number(
		"cancelled", BAD_EACH - 1, (long long)runtimes_counters(runtime).tasks_cancelled);
	expect_balance("fail_fast", 1, 1);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_many();
	for (way = 0; way < WAYS; way++) {
		check_deliveries();
	}
	check_log();
	check_endless();
	check_fail_fast();
	return expect_status();
}
