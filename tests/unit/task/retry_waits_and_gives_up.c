/* SPDX-License-Identifier: MIT */
/*
 * Goal: a transient failure is tried again, as often as configured and at the
 * right time: after waits that double up to a limit and differ by chance;
 * another is not; a late result counts as one at once; a cancel, a stop and a
 * panic end it, once; only the last failure is the runtime's; fields out of
 * range are refused. WP-26.
 * Method: attempts that fail a given number of times; for the waits on a worker
 * whose clock is set to the end of each.
 */
#include "runtime/task/entry.h"
#include "runtime/worker/timer.h"
#include "tests/support/clock.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	BASE_NS = 200 * 1000,
	WAITS_MAX = 1000,
	LIMIT_SECONDS = 60,
};

struct job {
	struct pinion_retry retry;
	struct pinion_task later;
	uint32_t failures; /* attempts that fail, with: */
	int error;
	bool is_late;
	bool panics;
	uint64_t before_ns; /* not to be attempted earlier */
	struct pin_atomic_u32 early_count;
	struct pin_atomic_u32 attempt_count;
	struct pin_atomic_u32 end_count;
	int result;
};

static struct pinion_runtime *runtime;

static int report(struct pinion_task *task)
{
	struct job *job = PIN_CONTAINER_OF(task, struct job, later);

	pinion_retry_report(&job->retry, job->retry.attempts <= job->failures ? job->error : 7);
	return 0;
}

static int attempt(struct pinion_retry *retry)
{
	struct job *job = PIN_CONTAINER_OF(retry, struct job, retry);
	uint64_t wait_ns =
		retry->attempts > 8 ? retry->cap_ns : retry->base_ns << (retry->attempts - 1);

	if (pinion_clock_now_ns() < job->before_ns) {
		tasks_signal(&job->early_count);
	}
	/* The next one; at least, by its jitter. */
	wait_ns = wait_ns < retry->cap_ns ? wait_ns : retry->cap_ns;
	job->before_ns = pinion_clock_now_ns() + wait_ns - wait_ns / 100 * retry->jitter_percent;
	tasks_signal(&job->attempt_count);
	if (job->panics) {
		pinion_task_panic(-EAGAIN, "an attempt");
	}
	if (job->is_late) {
		job->later.run = report;
		expect_number("spawn", 0, pinion_task_spawn(runtime, &job->later));
		return PINION_RETRY_PENDING;
	}
	return retry->attempts <= job->failures ? job->error : 7;
}

static void end(struct pinion_retry *retry, int result)
{
	struct job *job = PIN_CONTAINER_OF(retry, struct job, retry);

	job->result = result;
	tasks_signal(&job->end_count);
}

static void init(struct job *job, uint32_t failures, int error)
{
	*job = (struct job){.failures = failures, .error = error};
	pinion_retry_init(&job->retry, attempt, end);
	job->retry.base_ns = BASE_NS;
	job->retry.cap_ns = 4 * BASE_NS;
}

static void start(struct job *job)
{
	runtime = runtimes_start(2, PINION_IO_AUTO);
	expect_number("start", 0, pinion_retry_start(runtime, &job->retry));
}

static void finish(
	const char *what, struct job *job, int result, uint32_t attempts, uint32_t failed)
{
	tasks_await(&job->end_count, 1);
	pinion_runtime_drain(runtime);
	expect_number(what, result, job->result);
	expect_number(what, attempts, pin_load_acquire_u32(&job->attempt_count));
	expect_number("ends", 1, pin_load_acquire_u32(&job->end_count));
	expect_number("early", 0, pin_load_acquire_u32(&job->early_count));
	expect_number("failed", failed, (long long)runtimes_counters(runtime).tasks_failed);
	pinion_runtime_destroy(runtime);
}

static void check(const char *what, struct job *job, int result, uint32_t attempts, uint32_t failed)
{
	start(job);
	finish(what, job, result, attempts, failed);
}

static void check_refusals(void)
{
	struct job job;

	runtime = runtimes_start(1, PINION_IO_AUTO);
	init(&job, 0, 0);
	job.retry.attempts_max = 0;
	expect_number("no attempts", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	job.retry.jitter_percent = 101;
	expect_number("jitter", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	job.retry.end = NULL;
	expect_number("no end", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	expect_number("not started", -EALREADY, pinion_retry_cancel(runtime, &job.retry));
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("closed", -ESHUTDOWN, pinion_retry_start(runtime, &job.retry));
	pinion_runtime_destroy(runtime);
}

/* Each errno: those that may pass by themselves, and no other. */
static void check_errors(void)
{
	static const int transient[] = {EAGAIN, EBUSY, EINTR, ENOBUFS, ENOMEM, ETIME, ETIMEDOUT,
		ECONNREFUSED, ECONNRESET, ECONNABORTED, EHOSTUNREACH, ENETDOWN, ENETRESET,
		ENETUNREACH, EPIPE};

	for (int error = -200; error <= 200; error++) {
		bool is_listed = false;

		for (size_t i = 0; i < PIN_ARRAY_COUNT(transient); i++) {
			is_listed |= error == -transient[i];
		}
		expect_number("transient", is_listed, pinion_error_is_transient(error));
	}
}

/* The longest wait that there can be, and the next one. */
static void check_ranges(void)
{
	uint64_t most_ns = UINT64_C(1) << 56;
	struct job job;

	runtime = runtimes_start(1, PINION_IO_AUTO);
	init(&job, 0, 0);
	job.retry.base_ns = most_ns + 1;
	expect_number("first wait", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	job.retry.cap_ns = most_ns + 1;
	expect_number("longest wait", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	job.retry.attempt = NULL;
	expect_number("no attempt", -EINVAL, pinion_retry_start(runtime, &job.retry));
	init(&job, 0, 0);
	job.retry.base_ns = most_ns;
	job.retry.cap_ns = most_ns;
	job.retry.jitter_percent = 100;
	job.retry.attempts_max = 1;
	expect_number("the most", 0, pinion_retry_start(runtime, &job.retry));
	finish("once", &job, 7, 1, 0);
}

/* While it waits for what never comes by itself. */
static void check_ends(bool is_stop)
{
	struct job job;

	init(&job, 1, -EAGAIN);
	job.retry.base_ns = job.retry.cap_ns = UINT64_C(1) << 56;
	job.before_ns = 0;
	start(&job);
	tasks_await(&job.attempt_count, 1);
	if (is_stop) {
		expect_number("stop", 0, pinion_runtime_stop(runtime));
	} else {
		/* Until it has begun to wait. */
		while (pinion_retry_cancel(runtime, &job.retry) != 0) {
			sched_yield();
		}
	}
	tasks_await(&job.end_count, 1);
	/* A stop may come before the wait does: then the failure is the end. */
	expect_true("result", job.result == -ECANCELED || (is_stop && job.result == -EAGAIN));
	pinion_runtime_destroy(runtime);
	expect_number("attempts", 1, pin_load_acquire_u32(&job.attempt_count));
	expect_number("ends", 1, pin_load_acquire_u32(&job.end_count));
}

static uint64_t waits_ns[WAITS_MAX]; /* by the worker */
static uint32_t wait_count;

/* On the worker: what it waits for has come. */
static void pass_wait(struct tasks_hold *hold)
{
	uint64_t next_ns = pin_timer_next_ns(&runtime->shared.workers[0]);

	(void)hold;
	waits_ns[wait_count++] = next_ns - clock_own_ns;
	clock_own_ns = next_ns;
}

/* Waits that number of times, until it is given up. */
static void note_waits(struct job *job, uint32_t count)
{
	struct tasks_hold hold = {.prepare = pass_wait};

	wait_count = 0;
	job->retry.attempts_max = count + 1;
	runtime = runtimes_start(1, PINION_IO_AUTO);
	clock_stop(runtime, 0);
	expect_number("start", 0, pinion_retry_start(runtime, &job->retry));
	for (uint32_t i = 0; i < count; i++) {
		tasks_await(&job->attempt_count, i + 1);
		tasks_hold_begin(&hold, runtime, 0);
		tasks_hold_end(&hold);
	}
	finish("all attempts", job, -EAGAIN, count + 1, 1);
}

static void check_waits(void)
{
	static const uint32_t expected_ns[] = {1000, 2000, 4000, 7000, 7000};
	struct job job;

	init(&job, UINT32_MAX, -EAGAIN);
	job.retry.base_ns = 1000;
	job.retry.cap_ns = 7000;
	job.retry.jitter_percent = 0;
	note_waits(&job, PIN_ARRAY_COUNT(expected_ns));
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(expected_ns); i++) {
		expect_number("a wait", expected_ns[i], (long long)waits_ns[i]);
	}
}

/* Up to that much more or less: as far as chance brings 1000 of them. */
static void check_jitter(uint32_t percent, uint64_t least_ns, uint64_t most_ns)
{
	uint64_t shortest_ns = UINT64_MAX;
	uint64_t longest_ns = 0;
	uint64_t near_ns = (most_ns - least_ns) / 25;
	struct job job;

	init(&job, UINT32_MAX, -EAGAIN);
	job.retry.base_ns = job.retry.cap_ns = 1000000;
	job.retry.jitter_percent = percent;
	note_waits(&job, WAITS_MAX);
	for (uint32_t i = 0; i < WAITS_MAX; i++) {
		shortest_ns = waits_ns[i] < shortest_ns ? waits_ns[i] : shortest_ns;
		longest_ns = waits_ns[i] > longest_ns ? waits_ns[i] : longest_ns;
	}
	printf("%u %%: %llu to %llu ns\n", percent, (unsigned long long)shortest_ns,
		(unsigned long long)longest_ns);
	expect_true("the shortest", shortest_ns >= least_ns && shortest_ns < least_ns + near_ns);
	expect_true("the longest", longest_ns <= most_ns && longest_ns > most_ns - near_ns);
}

static void check_defaults(void)
{
	struct pinion_retry retry;

	pinion_retry_init(&retry, attempt, end);
	expect_number("attempts", 4, retry.attempts_max);
	expect_number("jitter", 20, retry.jitter_percent);
	expect_number("first wait", 50 * 1000 * 1000, (long long)retry.base_ns);
	expect_number("longest wait", 2000000000, (long long)retry.cap_ns);
}

int main(void)
{
	struct job job;

	runtimes_watchdog(LIMIT_SECONDS);
	init(&job, 0, 0);
	check("at once", &job, 7, 1, 0);
	init(&job, 2, -ECONNRESET);
	check("third", &job, 7, 3, 0);
	init(&job, UINT32_MAX, -EAGAIN);
	check("given up", &job, -EAGAIN, 4, 1);
	init(&job, UINT32_MAX, -ENOENT);
	check("for good", &job, -ENOENT, 1, 1);
	init(&job, 2, -ETIMEDOUT);
	job.is_late = true;
	check("late", &job, 7, 3, 0);
	init(&job, 0, 0);
	job.panics = true;
	check("panic", &job, -EAGAIN, 1, 1);
	check_ends(false);
	check_ends(true);
	check_refusals();
	check_errors();
	check_ranges();
	check_defaults();
	check_waits();
	check_jitter(20, 800000, 1200000);
	check_jitter(100, 0, 2000000);
	return expect_status();
}
