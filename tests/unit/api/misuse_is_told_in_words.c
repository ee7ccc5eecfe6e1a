/* SPDX-License-Identifier: MIT */
/*
 * Goal: a caller's mistake that is refused or that aborts says in words which
 * rule was broken, on which object, and how to mend it; through the log hook as
 * long as there is a runtime, and on stderr before an abort.
 * Method: each mistake in a child, whose hook writes to stderr; all that stderr
 * got, word by word, and how the child ended. early_changes_are_told_in_words
 * has those that change what is in flight.
 */
#include "runtime/io/registered_files.h"
#include "tests/support/mistakes.h"

#include <errno.h>
#include <fcntl.h>
#include <pinion/budget.h>
#include <pinion/channel.h>
#include <pinion/chunk.h>
#include <pinion/retry.h>
#include <pinion/scan.h>
#include <pinion/work.h>
#include <semaphore.h>

static int destroy_runtime_twice(void *arg)
{
	struct pinion_runtime *runtime = mistakes_start();

	(void)arg;
	pinion_runtime_destroy(runtime);
	pinion_runtime_destroy(runtime);
	return 0;
}

static int destroy_what_is_no_runtime(void *arg)
{
	static uint64_t memory[64];

	(void)arg;
	pinion_runtime_destroy((struct pinion_runtime *)(void *)memory);
	return 0;
}

static struct pinion_pool *make_pool(struct pinion_runtime *runtime)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool = NULL;

	pinion_pool_config_init(&config);
	config.buffer_bytes = 4096;
	config.buffer_count = 4;
	config.worker_count = runtime == NULL ? 1 : 0;
	config.local_count = 1;
	expect_number("pool", 0, pinion_pool_create(runtime, &config, &pool));
	return pool;
}

static int destroy_runtime_before_pools(void *arg)
{
	struct pinion_runtime *runtime = mistakes_start();
	struct pinion_pool *first = make_pool(runtime);
	struct pinion_pool *second = make_pool(runtime);

	(void)arg;
	expect_number("two pools", -EBUSY, pinion_runtime_destroy(runtime));
	expect_number("second", 0, pinion_pool_destroy(second));
	expect_number("one pool", -EBUSY, pinion_runtime_destroy(runtime));
	expect_number("first", 0, pinion_pool_destroy(first));
	expect_number("in order", 0, pinion_runtime_destroy(runtime));
	return expect_status();
}

static int destroy_pool_twice(void *arg)
{
	struct pinion_pool *pool = make_pool(NULL);

	(void)arg;
	pinion_pool_destroy(pool);
	pinion_pool_destroy(pool);
	return 0;
}

static int scan_window(void *arg, struct pinion_scan_file *file, const struct pinion_window *window)
{
	(void)arg;
	(void)file;
	(void)window;
	return 0;
}

static void scan_report(
	void *arg, const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	(void)arg;
	(void)file;
	(void)outcome;
	(void)error;
}

static struct pinion_scan *make_scan(struct pinion_runtime *runtime)
{
	static const struct pinion_scan_ops ops = {.window = scan_window, .report = scan_report};
	struct pinion_scan *scan = NULL;

	expect_number("scan", 0, pinion_scan_create(runtime, NULL, &ops, NULL, &scan));
	return scan;
}

static int destroy_runtime_before_scan(void *arg)
{
	struct pinion_runtime *runtime = mistakes_start();
	struct pinion_scan *scan = make_scan(runtime);

	(void)arg;
	expect_number("one scan", -EBUSY, pinion_runtime_destroy(runtime));
	expect_number("scan", 0, pinion_scan_destroy(scan));
	expect_number("in order", 0, pinion_runtime_destroy(runtime));
	return expect_status();
}

static int destroy_scan_twice(void *arg)
{
	struct pinion_scan *scan = make_scan(mistakes_start());

	(void)arg;
	pinion_scan_destroy(scan);
	pinion_scan_destroy(scan);
	return 0;
}

/* ---- on a worker ---- */

static struct pinion_scan *workers_scan;

static int use_scan(struct pinion_task *task)
{
	(void)task;
	expect_number("add", -EDEADLK, pinion_scan_add_file(workers_scan, "x"));
	expect_number("finish", -EDEADLK, pinion_scan_finish(workers_scan, NULL, 0));
	expect_number("destroy", -EDEADLK, pinion_scan_destroy(workers_scan));
	return 0;
}

static int use_scan_on_worker(void *arg)
{
	struct pinion_task task = {.run = use_scan};
	struct pinion_runtime *runtime = mistakes_start();

	(void)arg;
	workers_scan = make_scan(runtime);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("scan", 0, pinion_scan_destroy(workers_scan));
	expect_number("runtime", 0, pinion_runtime_destroy(runtime));
	return expect_status();
}

/* ---- objects in the caller's memory ---- */

static int release_too_much(void *arg)
{
	struct pinion_budget budget;
	uint64_t total = 4;
	uint64_t amount = 3;

	(void)arg;
	expect_number("init", 0, pinion_budget_init(&budget, mistakes_start(), &total, 1));
	expect_number("acquire", 0, pinion_budget_acquire_wait(&budget, &amount, UINT64_MAX));
	amount = 4;
	pinion_budget_release(&budget, &amount);
	return 0;
}

static int release_buffer_elsewhere(void *arg)
{
	struct pinion_buffer buffer = {0};

	(void)arg;
	pinion_buffer_release(mistakes_start(), &buffer);
	return 0;
}

static int return_odd_state(struct pinion_work *work)
{
	(void)work;
	return 7;
}

static int run_odd_work(void *arg)
{
	struct pinion_runtime *runtime = mistakes_start();
	struct pinion_work work;

	(void)arg;
	pinion_work_init(&work, return_odd_state, NULL);
	pinion_work_wake(runtime, &work);
	pinion_runtime_drain(runtime);
	return 0;
}

static int attempt(struct pinion_retry *retry)
{
	(void)retry;
	return PINION_RETRY_PENDING;
}

static void end_attempts(struct pinion_retry *retry, int result)
{
	(void)retry;
	(void)result;
}

static int report_pending(void *arg)
{
	struct pinion_runtime *runtime = mistakes_start();
	struct pinion_retry retry;

	(void)arg;
	pinion_retry_init(&retry, attempt, end_attempts);
	pinion_retry_start(runtime, &retry);
	pinion_runtime_drain(runtime);
	pinion_retry_report(&retry, PINION_RETRY_PENDING);
	return 0;
}

static struct pinion_runtime *channel_runtime;
static struct pinion_channel channel;
static sem_t is_waiting;

static int receive(struct pinion_task *task)
{
	static struct pinion_wait wait;
	static uint64_t message;

	(void)task;
	wait.task.run = receive;
	wait.deadline_ns = UINT64_MAX;
	expect_number("receive", 0,
		pinion_channel_receive_async(channel_runtime, &channel, &message, &wait));
	sem_post(&is_waiting);
	return 0;
}

static int end_channel_in_use(void *arg)
{
	struct pinion_task task = {.run = receive};
	uint64_t memory;

	(void)arg;
	channel_runtime = mistakes_start();
	sem_init(&is_waiting, 0, 0);
	expect_number("init", 0,
		pinion_channel_init(&channel, channel_runtime, &memory, sizeof(memory), 1));
	expect_number("spawn", 0, pinion_task_spawn(channel_runtime, &task));
	sem_wait(&is_waiting);
	pinion_channel_fini(&channel);
	return expect_status();
}

static struct pinion_runtime *buffer_runtime;

static int release_copy(struct pinion_task *task)
{
	struct pinion_buffer buffer;
	struct pinion_buffer copy;

	(void)task;
	expect_number("acquire", 0, pinion_buffer_acquire(buffer_runtime, 1, &buffer));
	copy = buffer;
	pinion_buffer_release(buffer_runtime, &buffer);
	pinion_buffer_release(buffer_runtime, &copy);
	return 0;
}

static int release_buffer_twice(void *arg)
{
	static struct pinion_task task = {.run = release_copy};

	(void)arg;
	buffer_runtime = mistakes_start();
	expect_number("spawn", 0, pinion_task_spawn(buffer_runtime, &task));
	pinion_runtime_drain(buffer_runtime);
	return 0;
}

static int prepend_to_nothing(void *arg)
{
	struct pinion_chunk chunk = {.length = 1};

	(void)arg;
	pinion_chunk_prepend(&chunk, &chunk, 1);
	return 0;
}

static void tell_nothing(void *arg)
{
	(void)arg;
}

/* As a ring holds it whose worker has not let go of it yet. */
static int close_file_twice(void *arg)
{
	static const struct pin_log log = {.fn = mistakes_hook};
	struct pin_file_holder holder = {.tell = tell_nothing, .log = &log};
	struct pinion_file file = {0};
	struct pinion_file copy;

	(void)arg;
	expect_number("open", 0, pinion_file_open(&file, "/proc/self/exe", PINION_DIRECT_NEVER));
	expect_true("held", pin_file_record_hold(pin_file_record_of(&file), &holder));
	copy = file;
	pinion_file_close(&file);
	pinion_file_close(&copy);
	return 0;
}

static const struct mistake mistakes[] = {
	{"runtime twice", destroy_runtime_twice, ABORTS,
		"pinion: pinion_runtime_destroy() called twice, or with a pointer that is no "
		"runtime: @; call it once, with what pinion_runtime_create gave\n"},
	{"no runtime", destroy_what_is_no_runtime, ABORTS,
		"pinion: pinion_runtime_destroy() called twice, or with a pointer that is no "
		"runtime: @; call it once, with what pinion_runtime_create gave\n"},
	{"pool twice", destroy_pool_twice, ABORTS,
		"pinion: pinion_pool_destroy() called twice, or with a pointer that is no "
		"pool: @; call it once, with what pinion_pool_create gave\n"},
	{"scan twice", destroy_scan_twice, ABORTS,
		"pinion: pinion_scan_destroy() called twice, or with a pointer that is no "
		"scan: @; call it once, with what pinion_scan_create gave\n"},
	{"runtime before pools", destroy_runtime_before_pools, ENDS,
		"hook: pinion_runtime_destroy() has stopped the runtime and not freed it: its "
		"pool @ was not destroyed, and 1 more; call pinion_pool_destroy() first, then "
		"this again\n"
		"hook: pinion_runtime_destroy() has stopped the runtime and not freed it: its "
		"pool @ was not destroyed, and 0 more; call pinion_pool_destroy() first, then "
		"this again\n"},
	{"runtime before scan", destroy_runtime_before_scan, ENDS,
		"hook: pinion_runtime_destroy() has stopped the runtime and not freed it: its "
		"scan @ was not destroyed, and 0 more; call pinion_scan_destroy() first, then "
		"this again\n"},
	{"scan on a worker", use_scan_on_worker, ENDS,
		"hook: a scan cannot be added to on a worker thread, and nothing was done: call "
		"it on a thread that is no worker of any runtime\n"
		"hook: a scan cannot be waited for or destroyed on a worker thread, and nothing "
		"was done: call it on a thread that is no worker of any runtime\n"
		"hook: a scan cannot be waited for or destroyed on a worker thread, and nothing "
		"was done: call it on a thread that is no worker of any runtime\n"},
	{"channel", end_channel_in_use, ENDS,
		"hook: pinion_channel_fini() while a receiver waits: call pinion_channel_close() "
		"and let the waits end first\n"},
	{"budget", release_too_much, ABORTS,
		"hook: pinion_budget_release() of 4 units of kind 0 where 3 are out: release "
		"each acquired unit once\n"
		"pinion: pinion_budget_release() of 4 units of kind 0 where 3 are out: release "
		"each acquired unit once\n"},
	{"buffer", release_buffer_elsewhere, ABORTS,
		"hook: pinion_buffer_release() on a thread that is no worker of the buffer's "
		"runtime: release it in a task there, or take buffers of a pinion_pool\n"
		"pinion: pinion_buffer_release() on a thread that is no worker of the buffer's "
		"runtime: release it in a task there, or take buffers of a pinion_pool\n"},
	{"work", run_odd_work, ABORTS,
		"hook: the run of a pinion_work returned 7: it returns a negative errno, or "
		"PINION_WORK_WAIT, PINION_WORK_AGAIN or PINION_WORK_DONE\n"
		"pinion: the run of a pinion_work returned 7: it returns a negative errno, or "
		"PINION_WORK_WAIT, PINION_WORK_AGAIN or PINION_WORK_DONE\n"},
	{"retry", report_pending, ABORTS,
		"hook: pinion_retry_report() was given PINION_RETRY_PENDING: report 0 or the "
		"error the attempt ended with\n"
		"pinion: pinion_retry_report() was given PINION_RETRY_PENDING: report 0 or the "
		"error the attempt ended with\n"},
	{"buffer twice", release_buffer_twice, ABORTS,
		"hook: buffer 7 was given back before; taken last by worker 0\n"
		"hook: pinion_buffer_release() of a buffer that is not out, at @: release "
		"each acquired buffer once\n"
		"pinion: pinion_buffer_release() of a buffer that is not out, at @: release "
		"each acquired buffer once\n"},
	{"chunk", prepend_to_nothing, ABORTS,
		"pinion: pinion_chunk_prepend() of a chunk at @ that pinion_chunk_init() would "
		"refuse: leave its bounds as they were, or make it anew\n"},
	{"file twice", close_file_twice, ABORTS,
		"hook: a pinion_file was closed twice, by a copy of the struct: close it once, "
		"by the struct that was opened, and copy none\n"
		"pinion: a pinion_file was closed twice, by a copy of the struct: close it "
		"once, by the struct that was opened, and copy none\n"},
};

int main(void)
{
	mistakes_check(mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
	return expect_status();
}
