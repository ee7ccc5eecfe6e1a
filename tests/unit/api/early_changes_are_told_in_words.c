/* SPDX-License-Identifier: MIT */
/*
 * Goal: a caller that changes memory which the library still uses, of a request
 * in flight, or of a group, call or work item that is not over, is told so in
 * words: which object, which rule, how to mend it.
 * Method: a task holds the one worker while each change is made, in a child;
 * all that stderr got, word by word, and how the child ended.
 */
#include "tests/support/mistakes.h"

#include <pinion/call.h>
#include <pinion/group.h>
#include <pinion/work.h>
#include <semaphore.h>
#include <sys/uio.h>

static struct pinion_runtime *held_runtime;
static sem_t is_held;
static sem_t may_go;

static int hold(struct pinion_task *task)
{
	(void)task;
	sem_post(&is_held);
	sem_wait(&may_go);
	return 0;
}

/* The one worker is in a task until may_go: later tasks wait. */
static void hold_worker(struct pinion_runtime *runtime)
{
	static struct pinion_task task = {.run = hold};

	held_runtime = runtime;
	sem_init(&is_held, 0, 0);
	sem_init(&may_go, 0, 0);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
	sem_wait(&is_held);
}

static void let_go(void)
{
	sem_post(&may_go);
	pinion_runtime_drain(held_runtime);
}

static int end_request(struct pinion_task *task)
{
	(void)task;
	return 0;
}

static int change_options(void *arg)
{
	static struct pinion_file_options options;
	static struct pinion_file file;
	static struct pinion_request request;

	(void)arg;
	hold_worker(mistakes_start());
	pinion_file_options_init(&options);
	request = (struct pinion_request){.task.run = end_request,
		.op = PINION_OP_OPEN,
		.path = "/dev/null",
		.file = &file,
		.options = &options};
	expect_number("submit", 0, pinion_request_submit(held_runtime, &request));
	options.flags = UINT32_MAX;
	let_go();
	return 0;
}

static int change_operation(void *arg)
{
	static struct pinion_request request;

	(void)arg;
	hold_worker(mistakes_start());
	request = (struct pinion_request){.task.run = end_request, .op = PINION_OP_NOP};
	expect_number("submit", 0, pinion_request_submit(held_runtime, &request));
	request.op = PINION_OP_CANCEL;
	let_go();
	return 0;
}

/* Past its first part it goes on in the array, where nothing more is. */
static int change_vector(void *arg)
{
	static struct pinion_request request;
	static struct pinion_file file;
	static struct iovec vector;

	(void)arg;
	hold_worker(mistakes_start());
	file = runtimes_plain_file(open("/dev/null", O_WRONLY | O_CLOEXEC));
	vector = (struct iovec){.iov_base = &vector, .iov_len = UINT64_C(1) << 32};
	request = (struct pinion_request){.task.run = end_request,
		.op = PINION_OP_WRITEV,
		.file = &file,
		.vector = &vector,
		.vector_count = 1,
		.length_bytes = vector.iov_len};
	expect_number("submit", 0, pinion_request_submit(held_runtime, &request));
	vector.iov_len = 1;
	let_go();
	return 0;
}

static int hold_member(struct pinion_group_task *task)
{
	return hold(&task->task);
}

static int leave_too_often(void *arg)
{
	static struct pinion_group_task member = {.run = hold_member};
	static struct pinion_group group;

	(void)arg;
	held_runtime = mistakes_start();
	sem_init(&is_held, 0, 0);
	sem_init(&may_go, 0, 0);
	expect_number("init", 0, pinion_group_init(&group, held_runtime, 0));
	expect_number("spawn", 0, pinion_group_spawn(&group, &member));
	sem_wait(&is_held);
	pinion_group_init(&group, held_runtime, 0);
	let_go();
	return 0;
}

static int hold_call(void *arg)
{
	(void)arg;
	return hold(NULL);
}

/* Starts its own call while it runs; the second run returns at once. */
static int start_itself(void *arg)
{
	static bool was_started;

	if (!was_started) {
		was_started = true;
		expect_number("again", 0, pinion_call_start(held_runtime, arg));
	}
	return 0;
}

static int start_call_twice(void *arg)
{
	static struct pinion_call call = {.run = start_itself, .arg = &call};

	(void)arg;
	held_runtime = mistakes_start();
	expect_number("start", 0, pinion_call_start(held_runtime, &call));
	pinion_runtime_drain(held_runtime);
	return 0;
}

static int set_future_of_call(void *arg)
{
	static struct pinion_call call = {.run = hold_call};

	(void)arg;
	held_runtime = mistakes_start();
	sem_init(&is_held, 0, 0);
	sem_init(&may_go, 0, 0);
	expect_number("start", 0, pinion_call_start(held_runtime, &call));
	sem_wait(&is_held);
	expect_number("set", 0, pinion_future_set(&call.done, NULL, 0));
	let_go();
	return 0;
}

static int hold_work(struct pinion_work *work)
{
	(void)work;
	hold(NULL);
	return PINION_WORK_DONE;
}

static int begin_work_anew(void *arg)
{
	static struct pinion_work work;

	(void)arg;
	held_runtime = mistakes_start();
	sem_init(&is_held, 0, 0);
	sem_init(&may_go, 0, 0);
	pinion_work_init(&work, hold_work, NULL);
	expect_number("wake", 0, pinion_work_wake(held_runtime, &work));
	sem_wait(&is_held);
	pinion_work_init(&work, hold_work, NULL);
	let_go();
	return 0;
}

static const struct mistake mistakes[] = {
	{"options", change_options, ABORTS,
		"hook: the options of the pinion_request at @ were changed while it was in "
		"flight to what the submit would have refused: leave them alone until its task "
		"is entered\n"
		"pinion: the options of the pinion_request at @ were changed while it was in "
		"flight to what the submit would have refused: leave them alone until its task "
		"is entered\n"},
	{"operation", change_operation, ABORTS,
		"hook: the pinion_request at @ was written to while it was in flight: leave it "
		"alone from the submit until its task is entered\n"
		"pinion: the pinion_request at @ was written to while it was in flight: leave "
		"it alone from the submit until its task is entered\n"},
	{"vector", change_vector, ABORTS,
		"hook: the vector of the pinion_request at @ was changed while it was in flight: "
		"leave it alone until its task is entered\n"
		"pinion: the vector of the pinion_request at @ was changed while it was in flight: "
		"leave it alone until its task is entered\n"},
	{"group", leave_too_often, ABORTS,
		"hook: a task of the pinion_group at @ has ended, which counts none: it was "
		"initialised again, or its memory used for something else, before its tasks "
		"were over; join it first\n"
		"pinion: a task of the pinion_group at @ has ended, which counts none: it was "
		"initialised again, or its memory used for something else, before its tasks "
		"were over; join it first\n"},
	{"call", set_future_of_call, ABORTS,
		"hook: the future of the pinion_call at @ was set already: the call was started "
		"again before it had ended, or the program has set call.done; wait for "
		"call.done, which the library sets\n"
		"pinion: the future of the pinion_call at @ was set already: the call was "
		"started again before it had ended, or the program has set call.done; wait for "
		"call.done, which the library sets\n"},
	{"call twice", start_call_twice, ABORTS,
		"hook: the future of the pinion_call at @ was set already: the call was started "
		"again before it had ended, or the program has set call.done; wait for "
		"call.done, which the library sets\n"
		"pinion: the future of the pinion_call at @ was set already: the call was "
		"started again before it had ended, or the program has set call.done; wait for "
		"call.done, which the library sets\n"},
	{"work anew", begin_work_anew, ABORTS,
		"hook: a pinion_work in state 1 cannot go on: it was initialised again, or its "
		"memory used for something else, before it had ended\n"
		"pinion: a pinion_work in state 1 cannot go on: it was initialised again, or "
		"its memory used for something else, before it had ended\n"},
};

int main(void)
{
	mistakes_check(mistakes, sizeof(mistakes) / sizeof(mistakes[0]));
	return expect_status();
}
