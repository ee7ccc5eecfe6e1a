/* SPDX-License-Identifier: MIT */
/*
 * Goal: a transfer that waits for credit, for a rate, or for its turn starts
 * when it may, whatever brings that: the end of another on its own worker or
 * elsewhere, a change of limits, the end of an earlier waiter; a long one pays
 * for each part, and leaves the device to others between them; an urgent one
 * passes others that wait, which go on all the same; each ends once,
 * and credit that was granted too late is not lost:
 * [DEVICE-1] [CREDIT-1] [CREDIT-2] [LIMIT-1]. G2. The fences of [CREDIT-1]
 * are those of [WAIT-1], whose mutants are in the model `waiters`.
 * Method: real workers, and a device that completes when it likes, or holds
 * what it has. A worker with something in a ring sleeps without a deadline, but
 * for one within a second, so a forgotten one is a deadlock. One request is all
 * the depth. The least part of a long one is all that a rate of 1 lets start.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <pinion/limit.h>
#include <pinion/request.h>

enum { REQUESTS = 3, BYTES = 4096 };

static struct pinion_runtime *runtime;
static struct pinion_request requests[REQUESTS];
static struct pinion_file file;
static uint8_t memory[REQUESTS][BYTES] __attribute__((aligned(BYTES)));
static uint32_t run_counts[REQUESTS];
static uint32_t run_order[REQUESTS]; /* indices of requests */
static uint32_t run_count;
static uint32_t submitted;

static int run(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	run_counts[request - requests]++;
	MODEL_CHECK(run_counts[request - requests] == 1);
	run_order[run_count++] = (uint32_t)(request - requests);
	return 0;
}

static bool have_ended(const void *arg)
{
	uint32_t count = 0;

	(void)arg;
	for (uint32_t i = 0; i < submitted; i++) {
		count += run_counts[i];
	}
	return count == submitted;
}

static void limit(uint32_t depth_count, uint64_t bytes_per_second)
{
	struct pinion_limits limits;

	pinion_limits_init(&limits);
	limits.depth_count = depth_count;
	limits.bytes_per_second = bytes_per_second;
	MODEL_CHECK(pinion_runtime_set_limits(runtime, &limits) == 0);
}

static void begin(uint32_t worker_count, uint32_t depth_count, uint64_t bytes_per_second)
{
	file = (struct pinion_file){.fd = 0,
		.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = BYTES,
		.is_direct = 1};
	for (uint32_t i = 0; i < REQUESTS; i++) {
		requests[i] = (struct pinion_request){
			.task.run = run,
			.file = &file,
			.bytes = memory[i],
			.length_bytes = BYTES,
		};
		run_counts[i] = 0;
	}
	submitted = 0;
	run_count = 0;
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	model_quiet_begin();
	limit(depth_count, bytes_per_second);
	model_quiet_end();
}

/* From outside: on one worker after the other. */
static void submit(void)
{
	MODEL_CHECK(pinion_request_submit(runtime, &requests[submitted]) == 0);
	submitted++;
}

/* The same, of the high lane. */
static void submit_urgent(void)
{
	requests[submitted].task.flags = PINION_TASK_HIGH;
	submit();
}

static void expect_all_given_back(void)
{
	struct pinion_device_stats figures;

	/* None if all were cancelled on their way. */
	if (pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)) == 0) {
		MODEL_CHECK(figures.taken_count == 0 && figures.taken_bytes == 0);
	}
}

static void finish(void)
{
	model_await("the requests", have_ended, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	expect_all_given_back();
	model_runtime_end(runtime);
}

/* ---- credit ---- */

/* The second waits for the first, on the other worker. */
static void run_credit(void)
{
	begin(2, 1, 0);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	submit();
	finish();
}

/* On the same worker. */
static void run_own_credit(void)
{
	begin(1, 1, 0);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	submit();
	finish();
}

/* The waiting one is cancelled, perhaps while it is granted credit. */
static void run_cancel(void)
{
	int rc;

	begin(2, 1, 0);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	submit();
	rc = pinion_request_cancel(runtime, &requests[1]);
	MODEL_CHECK(rc == 0 || rc == -EALREADY);
	submit();
	finish();
	MODEL_CHECK(requests[1].result >= 0 || requests[1].result == -ECANCELED);
}

/* The device holds the first until it is cancelled; then comes the second. */
static void run_cancel_first(void)
{
	begin(2, 1, 0);
	submit();
	submit();
	MODEL_CHECK(pinion_request_cancel(runtime, &requests[0]) == 0);
	model_thread_start_daemon("device", model_device, NULL);
	finish();
}

/* ---- urgent requests ---- */

static bool have_two_queued(const void *arg)
{
	(void)arg;
	return runtime->shared.workers[0].device_queue.queued == 2;
}

/* One is in the device, one waits; the urgent one passes that. */
static void run_urgent(void)
{
	begin(1, 1, 0);
	submit();
	submit();
	submit_urgent();
	model_await("two to queue", have_two_queued, NULL);
	model_thread_start_daemon("device", model_device, NULL);
	finish();
	/* It may be begun before the first, too. */
	MODEL_CHECK(run_order[2] == 1);
}

/* It is cancelled, perhaps as it passes: the request before it goes on. */
static void run_urgent_cancelled(void)
{
	int rc;

	begin(1, 1, 0);
	submit();
	submit();
	submit_urgent();
	model_await("two to queue", have_two_queued, NULL);
	model_thread_start_daemon("device", model_device, NULL);
	rc = pinion_request_cancel(runtime, &requests[2]);
	MODEL_CHECK(rc == 0 || rc == -EALREADY);
	finish();
	MODEL_CHECK(requests[1].result >= 0);
	MODEL_CHECK(requests[2].result >= 0 || requests[2].result == -ECANCELED);
}

/* On another worker, where the request that it passes waits as well. */
static void run_urgent_elsewhere(void)
{
	begin(2, 1, 0);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	submit();
	submit_urgent();
	finish();
}

/* ---- a change of limits ---- */

static bool have_both_started(const void *arg)
{
	uint32_t count = 0;

	(void)arg;
	for (uint32_t i = 0; i < runtime->shared.worker_count; i++) {
		count += runtime->shared.workers[i].ring.in_flight;
	}
	return count == 2;
}

static void stop(void)
{
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	MODEL_CHECK(have_ended(NULL));
	expect_all_given_back();
	model_runtime_end(runtime);
}

/* The device holds the first; the second has to wait for an hour. */
static void run_rate_lifted(void)
{
	begin(1, 2, 1);
	submit();
	submit();
	limit(2, 1 << 30);
	model_await("the second to start", have_both_started, NULL);
	stop();
}

static void run_depth_raised(void)
{
	begin(1, 1, 0);
	submit();
	submit();
	limit(2, 0);
	model_await("the second to start", have_both_started, NULL);
	stop();
}

/* ---- parts ---- */

static void submit_long(void)
{
	requests[submitted].length_bytes = 2 * (uint64_t)PIN_REQUEST_PART_BYTES_MIN;
	submit();
}

static bool has_first_part(const void *arg)
{
	(void)arg;
	return requests[0].done_bytes == PIN_REQUEST_PART_BYTES_MIN &&
		runtime->shared.workers[0].device_queue.queued == 1;
}

/* The second part has to wait for an hour, until the rate is lifted. */
static void run_part_waits(void)
{
	begin(1, 1, 1);
	model_thread_start_daemon("device", model_device, NULL);
	submit_long();
	model_await("the first part", has_first_part, NULL);
	expect_all_given_back();
	limit(1, 0);
	finish();
	MODEL_CHECK(requests[0].done_bytes >= PIN_REQUEST_PART_BYTES_MIN);
}

/* Lifted at any time, while another has all the depth. */
static void run_part_lifted(void)
{
	begin(2, 1, 1);
	model_thread_start_daemon("device", model_device, NULL);
	submit_long();
	submit();
	limit(1, 1 << 30);
	finish();
}

static void run_part_cancelled(void)
{
	int rc;

	begin(1, 1, 1);
	model_thread_start_daemon("device", model_device, NULL);
	submit_long();
	rc = pinion_request_cancel(runtime, &requests[0]);
	MODEL_CHECK(rc == 0);
	finish();
	MODEL_CHECK(requests[0].result == -ECANCELED);
}

/* ---- a stop ---- */

static void run_stop(void)
{
	begin(2, 1, 0);
	submit();
	submit();
	stop();
	MODEL_CHECK(requests[0].result == -ECANCELED && requests[1].result == -ECANCELED);
}

static const struct model_mutant credit_mutants[] = {
	{"a worker with granted credit is not notified", {MODEL_SKIP, "kick", "pin_wake_worker"}},
	{"a grant is not collected", {MODEL_SKIP, "collect", "pin_credit_collect"}},
	{.name = NULL},
};

static const struct model_mutant own_mutants[] = {
	{"no check when another has ended",
		{MODEL_SKIP, "pin_requests_resume", "pin_device_queue_has_news"}},
	{.name = NULL},
};

static const struct model_mutant urgent_mutants[] = {
	{"an urgent one does not pass", {MODEL_SKIP, "push", "is_urgent"}},
	{.name = NULL},
};

static const struct model_mutant urgent_cancelled_mutants[] = {
	{"an urgent one leaves as one of the others",
		{MODEL_SKIP, "leave_device_waiters", "is_urgent"}},
	{.name = NULL},
};

static const struct model_mutant change_mutants[] = {
	{"no worker is notified", {MODEL_SKIP, "kick", "pin_wake_worker"}},
	{"no check before a sleep", {MODEL_SKIP, "has_own_work", "pin_device_queue_has_news"}},
	{"reservations stay valid", {MODEL_SKIP, "pin_limiter_set", "pin_limiter_begin_epoch"}},
	{.name = NULL},
};

static const struct model_mutant raise_mutants[] = {
	{"no worker is notified", {MODEL_SKIP, "kick", "pin_wake_worker"}},
	{.name = NULL},
};

static const struct model_mutant part_mutants[] = {
	{"all parts for the price of one", {MODEL_SKIP, "ask_part", "pin_device_queue_owes_part"}},
	{"credit is kept between parts",
		{MODEL_SKIP, "pin_device_queue_defer_part", "pin_credit_end"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"credit", run_credit, 1, 0, 0, credit_mutants, NULL},
	{"own_credit", run_own_credit, 1, 0, 0, own_mutants, NULL},
	{"cancel", run_cancel, 0, 0, 0, NULL, NULL},
	{"cancel_first", run_cancel_first, 1, 0, 0, NULL, NULL},
	{"urgent", run_urgent, 1, 0, 0, urgent_mutants, NULL},
	{"urgent_cancelled", run_urgent_cancelled, 1, 0, 0, urgent_cancelled_mutants, NULL},
	{"urgent_elsewhere", run_urgent_elsewhere, 0, 0, 0, NULL, NULL},
	{"rate_lifted", run_rate_lifted, 2, 1, 0, change_mutants, NULL},
	{"depth_raised", run_depth_raised, 2, 1, 0, raise_mutants, NULL},
	{"part_waits", run_part_waits, 1, 0, 0, part_mutants, NULL},
	{"part_lifted", run_part_lifted, 0, 0, 0, NULL, NULL},
	{"part_cancelled", run_part_cancelled, 1, 0, 0, NULL, NULL},
	{"stop", run_stop, 1, 0, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	model_near_ns = 1000000000;
	return model_main("device_queue", cases, PIN_ARRAY_COUNT(cases));
}
