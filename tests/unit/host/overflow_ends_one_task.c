/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that overflows its stack is named on stderr, and by policy ends
 * alone: every other task completes, its group gets -EFAULT, counts balance,
 * the threads are those from before; or the process ends as it would have, by
 * the handler that was there before if there was one. Other faults are not
 * touched. WP-36.
 * Method: children with each policy, with and without a handler of their own.
 */
#include "tests/support/child.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	TASKS = 60,
	BAD_EACH = 10,
	OWN_HANDLER = 42,
	LIMIT_SECONDS = 60,
};

struct plan {
	uint32_t policy;
	bool has_handler;
	bool is_plain_fault;
};

static struct pinion_runtime *runtime;
static struct pinion_group group;
static struct pinion_group_task tasks[TASKS];
static struct pin_atomic_u32 good_count;
static volatile uint32_t depth_max = UINT32_MAX;

static uint32_t dig(uint32_t depth)
{
	volatile char room[512];

	room[depth % sizeof(room)] = (char)depth;
	return depth == depth_max ? 0 : dig(depth + 1) + (uint8_t)room[depth % sizeof(room)];
}

static int run_one(struct pinion_group_task *task)
{
	if ((task - tasks) % BAD_EACH == 0) {
		return (int)dig(0);
	}
	tasks_signal(&good_count);
	return 0;
}

static int run_fault(struct pinion_group_task *task)
{
	volatile int *nowhere = NULL;

	(void)task;
	return *nowhere;
}

static void handle(int signal_number)
{
	(void)signal_number;
	_exit(OWN_HANDLER);
}

static void start(const struct plan *plan)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
	struct pinion_config config;

	if (plan->has_handler) {
		sigaction(SIGSEGV, &action, NULL);
	}
	alarm(LIMIT_SECONDS);
	runtimes_config(&config, 2, PINION_IO_AUTO);
	config.overflow_policy = plan->policy;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	expect_number("group", 0, pinion_group_init(&group, runtime, PINION_GROUP_RUN_ALL));
}

static int run_plan(void *arg)
{
	const struct plan *plan = arg;
	struct pinion_runtime_stats counters;
	size_t threads;

	start(plan);
	threads = runtimes_count_entries("/proc/self/task");
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i].run = plan->is_plain_fault ? run_fault : run_one;
		expect_number("spawn", 0, pinion_group_spawn(&group, &tasks[i]));
	}
	/* With all policies but one it does not get further. */
	expect_number("wait", 0, pinion_group_wait(&group, UINT64_MAX));
	expect_number("result", -EFAULT, pinion_group_result(&group));
	expect_true("threads", runtimes_count_entries("/proc/self/task") <= threads);
	expect_number("join", -EFAULT, pinion_runtime_join(runtime));
	expect_number(
		"good", TASKS - TASKS / BAD_EACH, (long long)pin_load_acquire_u32(&good_count));
	counters = runtimes_counters(runtime);
	expect_number("run", TASKS, (long long)counters.tasks_run);
	expect_number("unwound", TASKS / BAD_EACH, (long long)counters.tasks_unwound);
	expect_number("failed", TASKS / BAD_EACH, (long long)counters.tasks_failed);
	expect_true("logged", strstr(runtimes_log, "overflowed its stack: Bad address") != NULL);
	pinion_runtime_destroy(runtime);
	return expect_status();
}

static void check(const char *what, struct plan plan, int code, bool is_reported)
{
	char output[2048];
	int got = child_code(child_run(run_plan, &plan, output, sizeof(output)));

	expect_number(what, code, got);
	expect_number(what, is_reported,
		strstr(output, ": stack overflow in task overflow_ends_one_task+0x") != NULL);
}

int main(void)
{
	struct plan unwind = {.policy = PINION_OVERFLOW_UNWIND};
	struct plan report = {.policy = PINION_OVERFLOW_REPORT};
	struct plan ignore = {.policy = PINION_OVERFLOW_IGNORE};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	puts("sanitizers have a handler and stacks of their own");
	return EXPECT_SKIPPED;
#endif
	check("unwound", unwind, 0, true);
	check("reported", report, 128 + SIGSEGV, true);
	check("ignored", ignore, 128 + SIGSEGV, false);
	report.has_handler = true;
	check("reported, then chained", report, OWN_HANDLER, true);
	report.is_plain_fault = true;
	check("chained", report, OWN_HANDLER, false);
	report.has_handler = false;
	check("left alone", report, 128 + SIGSEGV, false);
	return expect_status();
}
