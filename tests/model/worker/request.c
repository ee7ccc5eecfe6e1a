/* SPDX-License-Identifier: MIT */
/*
 * Goal: a request ends once, by `run`, however its submission, its completion,
 * a cancel, its deadline and a stop fall together: [REQUEST-1]; a drain ends
 * one that waits for its peer. G2.
 * Method: real workers, and a device that completes when it likes or, held,
 * only cancelled requests. Time stops: deadline 1 has passed, UINT64_MAX never
 * comes. Requests are submitted from outside, some of them urgent, or by a task
 * on a worker; the cancel comes from outside, from another worker, or from its
 * own.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <string.h>

static struct pinion_runtime *runtime;
static struct pinion_request request;
static struct pinion_request all; /* cancels all others */
static struct pinion_file file;
static uint32_t lane_flags; /* of the request of the next case that begins */
static uint32_t run_count;
static uint32_t all_run_count;
static struct model_task tasks[2];
static int cancel_rc;

static int run(struct pinion_task *task)
{
	(void)task;
	run_count++;
	MODEL_CHECK(run_count == 1);
	/* The caller's again: its private part is, too. */
	memset(&request.private_, 0xff, sizeof(request.private_));
	return 0;
}

static int run_all(struct pinion_task *task)
{
	(void)task;
	all_run_count++;
	MODEL_CHECK(all_run_count == 1);
	return 0;
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return run_count > 0;
}

static bool all_has_ended(const void *arg)
{
	(void)arg;
	return all_run_count > 0;
}

static void begin(uint32_t worker_count, uint16_t op, uint64_t deadline_ns)
{
	request = (struct pinion_request){.task = {.run = run, .flags = lane_flags},
		.op = op,
		.file = &file,
		.deadline_ns = deadline_ns};
	lane_flags = 0;
	all = (struct pinion_request){.task.run = run_all, .op = PINION_OP_CANCEL};
	run_count = 0;
	all_run_count = 0;
	cancel_rc = 1;
	model_task_init(&tasks[0], NULL);
	model_task_init(&tasks[1], NULL);
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void submit(void)
{
	MODEL_CHECK(pinion_request_submit(runtime, &request) == 0);
}

static void cancel(void)
{
	cancel_rc = pinion_request_cancel(runtime, &request);
	MODEL_CHECK(cancel_rc == 0 || cancel_rc == -EALREADY);
}

/* All that was counted has ended. */
static void finish(uint64_t request_count)
{
	struct pinion_runtime_stats counters;

	model_await("the request", has_ended, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.requests_submitted == request_count);
	MODEL_CHECK(counters.requests_completed == request_count);
	MODEL_CHECK(counters.tasks_run == counters.tasks_spawned + request_count);
	model_runtime_end(runtime);
}

/* ---- from outside ---- */

static void run_submits(void)
{
	begin(1, PINION_OP_NOP, 0);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	finish(1);
	MODEL_CHECK(request.result == 0);
}

/* By the queue of urgent ones. */
static void run_submits_urgent(void)
{
	lane_flags = PINION_TASK_HIGH;
	run_submits();
}

/* Nothing but the cancel ends it. */
static void run_cancels(void)
{
	begin(1, PINION_OP_NOP, 0);
	submit();
	cancel();
	MODEL_CHECK(cancel_rc == 0);
	finish(1);
	MODEL_CHECK(request.result == -ECANCELED);
}

static void cancel_done(void)
{
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	cancel();
	finish(1);
	MODEL_CHECK(request.result == 0 || (cancel_rc == 0 && request.result == -ECANCELED));
}

static void run_cancels_done(void)
{
	begin(1, PINION_OP_NOP, 0);
	cancel_done();
}

/* Where no thread can make others pass a fence. */
static void run_cancels_fenced(void)
{
	model_has_no_fence = true;
	begin(1, PINION_OP_NOP, 0);
	model_has_no_fence = false;
	cancel_done();
}

static void run_cancels_late(void)
{
	begin(1, PINION_OP_TIMEOUT, 1);
	submit();
	cancel();
	finish(1);
	MODEL_CHECK(request.result == -ETIME || (cancel_rc == 0 && request.result == -ECANCELED));
}

static void run_cancels_timeout(void)
{
	begin(1, PINION_OP_TIMEOUT, UINT64_MAX);
	submit();
	cancel();
	MODEL_CHECK(cancel_rc == 0);
	finish(1);
	MODEL_CHECK(request.result == -ECANCELED);
}

/* ---- from workers ---- */

static void cancel_there(struct model_task *task)
{
	(void)task;
	cancel();
}

/* Two at once, of which one is too late. */
static void run_two_cancels(void)
{
	int rc;

	begin(2, PINION_OP_TIMEOUT, UINT64_MAX);
	tasks[0].body = cancel_there;
	submit();
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	rc = pinion_request_cancel(runtime, &request);
	model_await("the task", model_task_has_run, &tasks[0]);
	MODEL_CHECK((rc == 0) != (cancel_rc == 0));
	finish(1);
	MODEL_CHECK(request.result == -ECANCELED);
}

static void submit_and_cancel_there(struct model_task *task)
{
	(void)task;
	submit();
	cancel();
	MODEL_CHECK(cancel_rc == 0 && run_count == 0);
}

/* On the worker itself, while another may do the same. */
static void run_own_cancel(void)
{
	begin(1, PINION_OP_NOP, 0);
	tasks[0].body = submit_and_cancel_there;
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	finish(1);
	MODEL_CHECK(request.result == -ECANCELED);
}

/* Submitted on one of two workers, cancelled with all others from outside. */
static void run_cancel_of_all(void)
{
	begin(2, PINION_OP_TIMEOUT, UINT64_MAX);
	submit();
	MODEL_CHECK(pinion_request_submit(runtime, &all) == 0);
	model_await("the cancel", all_has_ended, NULL);
	MODEL_CHECK(all.result == 1);
	finish(2);
	MODEL_CHECK(request.result == -ECANCELED);
}

static void run_cancel_of_urgent(void)
{
	lane_flags = PINION_TASK_HIGH;
	run_cancel_of_all();
}

/* ---- a worker that is stalled ---- */

static bool is_kept;
static bool is_submitted;

static bool keeper_is_there(const void *arg)
{
	(void)arg;
	return is_kept;
}

static void keep(struct model_task *task)
{
	(void)task;
	is_kept = true;
	model_await("the request", has_ended, NULL);
}

/* The first worker, to which the first request is sent, has begun a task. */
static void begin_stalled(uint16_t op, void (*body)(struct model_task *task))
{
	is_kept = false;
	is_submitted = false;
	model_has_watchdog = true;
	begin(2, op, op == PINION_OP_TIMEOUT ? UINT64_MAX : 0);
	model_has_watchdog = false;
	tasks[0].body = body;
	model_quiet_begin();
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &tasks[0].request.task) == 0);
	model_await("the task", keeper_is_there, NULL);
	model_quiet_end();
}

static void finish_stalled(uint64_t request_count)
{
	model_await("the request", has_ended, NULL);
	model_watchdog_settle(runtime);
	finish(request_count);
}

static void run_adopted(void)
{
	begin_stalled(PINION_OP_NOP, keep);
	model_thread_start_daemon("device", model_device, NULL);
	submit();
	finish_stalled(1);
	MODEL_CHECK(request.result == 0);
}

static void run_adopted_urgent(void)
{
	lane_flags = PINION_TASK_HIGH;
	run_adopted();
}

/* Before, while or after it is adopted. */
static void run_adopted_cancel(void)
{
	begin_stalled(PINION_OP_TIMEOUT, keep);
	submit();
	cancel();
	MODEL_CHECK(cancel_rc == 0);
	finish_stalled(1);
	MODEL_CHECK(request.result == -ECANCELED);
}

static bool are_submitted(const void *arg)
{
	(void)arg;
	return is_submitted;
}

static void keep_until_submitted(struct model_task *task)
{
	(void)task;
	is_kept = true;
	model_await("the cancel's start", are_submitted, NULL);
}

/* It must not get from the second worker's future into its past. */
static void run_adopted_cancel_of_all(void)
{
	begin_stalled(PINION_OP_TIMEOUT, keep_until_submitted);
	submit();
	MODEL_CHECK(pinion_request_submit(runtime, &all) == 0);
	is_submitted = true;
	model_await("the cancel", all_has_ended, NULL);
	MODEL_CHECK(all.result == 1);
	finish_stalled(2);
	MODEL_CHECK(request.result == -ECANCELED);
}

/* ---- a stop ---- */

static void run_stop(void)
{
	begin(1, PINION_OP_NOP, 0);
	submit();
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	MODEL_CHECK(run_count == 1 && request.result == -ECANCELED);
	MODEL_CHECK(pinion_request_submit(runtime, &all) == -ESHUTDOWN);
	MODEL_CHECK(all.task.private_kind == 0);
	model_runtime_end(runtime);
}

static void stop(void *arg)
{
	(void)arg;
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
}

static void run_cancel_and_stop(void)
{
	uint32_t stopper;

	begin(1, PINION_OP_NOP, 0);
	submit();
	stopper = model_thread_start("stopper", stop, NULL);
	cancel();
	model_thread_join(stopper);
	MODEL_CHECK(run_count == 1 && request.result == -ECANCELED);
	model_runtime_end(runtime);
}

/* ---- a drain ---- */

/* Of what waits for its peer, and nothing but the drain ends it. */
static void drain(void)
{
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(run_count == 1 && request.result == -ECANCELED);
	model_runtime_end(runtime);
}

static void run_drain(void)
{
	begin(1, PINION_OP_POLL, 0);
	submit();
	drain();
}

static void submit_there(struct model_task *task)
{
	(void)task;
	submit();
}

/* Submitted before it, meanwhile or after it has begun. */
static void run_drain_of_later(void)
{
	begin(1, PINION_OP_POLL, 0);
	tasks[0].body = submit_there;
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	drain();
}

/* Of drain and cancel one ends it. */
static void cancel_there_now(void *arg)
{
	(void)arg;
	cancel();
}

static void run_drain_and_cancel(void)
{
	uint32_t canceller;

	begin(1, PINION_OP_POLL, 0);
	submit();
	canceller = model_thread_start("canceller", cancel_there_now, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(canceller);
	MODEL_CHECK(run_count == 1 && request.result == -ECANCELED);
	model_runtime_end(runtime);
}

static const struct model_mutant drain_mutants[] = {
	{"a worker does not heed it", {MODEL_SKIP, "end_requests", "pin_requests_drain"}},
	{"no worker is notified", {MODEL_SKIP, "end", "pin_wake_all"}},
	{.name = NULL},
};

static const struct model_mutant submit_mutants[] = {
	{"the worker is not notified", {MODEL_SKIP, "pin_external_push", "pin_wake_worker"}},
	{"no fence before the check of the sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{.name = NULL},
};

static const struct model_mutant submit_urgent_mutants[] = {
	{"the worker is not notified", {MODEL_SKIP, "pin_external_push", "pin_wake_worker"}},
	{"no fence before the check of the sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{"a sleeper checks the others only", {MODEL_SKIP, "has_own_work", "external_urgent"}},
	{.name = NULL},
};

static const struct model_mutant cancel_mutants[] = {
	{"a change is no single step", {MODEL_TORN, "pin_request_change", NULL}},
	{"the worker is not notified", {MODEL_SKIP, "pinion_request_cancel", "pin_wake_worker"}},
	{.name = NULL},
};

static const struct model_mutant done_mutants[] = {
	{"a change is no single step", {MODEL_TORN, "pin_request_change", NULL}},
	{"the end is blind to a cancel", {MODEL_SKIP, "leave_flight", "pin_biased_enter"}},
	{"a cancel is blind to the end",
		{MODEL_SKIP, "pin_requests_lock_cancels", "pin_biased_take"}},
	{"their lock has no fence", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant fenced_mutants[] = {
	{"the lock's owner has no fence", {MODEL_DROP_FENCE, "pin_biased_fence", NULL}},
	{"the other side of the lock has none", {MODEL_DROP_FENCE, "pin_biased_fence_other", NULL}},
	{.name = NULL},
};

static const struct model_mutant torn_mutants[] = {
	{"a change is no single step", {MODEL_TORN, "pin_request_change", NULL}},
	{.name = NULL},
};

static const struct model_mutant all_mutants[] = {
	{"the next worker is not notified", {MODEL_SKIP, "visit", "pin_wake_worker"}},
	{.name = NULL},
};

static const struct model_mutant adopted_mutants[] = {
	{"the watchdog is not woken",
		{MODEL_SKIP, "pin_external_push", "pin_watchdog_tell_of_other"}},
	{"the watchdog does not look", {MODEL_SKIP, "keeps_work", "pin_external_is_empty"}},
	{"no worker takes it over", {MODEL_SKIP, "adopt_external", "pin_external_may_adopt"}},
	{.name = NULL},
};

static const struct model_mutant adopted_urgent_mutants[] = {
	{"the watchdog looks at the others only", {MODEL_SKIP, "keeps_work", "external_urgent"}},
	{.name = NULL},
};

static const struct model_mutant adopted_all_mutants[] = {
	{"the cancel is not counted", {MODEL_SKIP, "post_cancel", "pin_external_hold"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"submits", run_submits, 2, 1, 0, submit_mutants, NULL},
	{"submits_urgent", run_submits_urgent, 2, 1, 0, submit_urgent_mutants, NULL},
	{"cancels", run_cancels, 2, 1, 0, cancel_mutants, NULL},
	{"cancels_done", run_cancels_done, 2, 1, 0, done_mutants, NULL},
	{"cancels_fenced", run_cancels_fenced, 2, 1, 0, fenced_mutants, NULL},
	{"cancels_late", run_cancels_late, 2, 1, 0, torn_mutants, NULL},
	{"cancels_timeout", run_cancels_timeout, 3, 1, 0, cancel_mutants, NULL},
	{"two_cancels", run_two_cancels, 1, 1, 0, torn_mutants, NULL},
	{"own_cancel", run_own_cancel, 2, 1, 0, NULL, NULL},
	{"cancel_of_all", run_cancel_of_all, 1, 1, 0, all_mutants, NULL},
	{"cancel_of_urgent", run_cancel_of_urgent, 1, 1, 0, NULL, NULL},
	{"adopted", run_adopted, 0, 1, 0, adopted_mutants, NULL},
	{"adopted_urgent", run_adopted_urgent, 0, 1, 0, adopted_urgent_mutants, NULL},
	{"adopted_cancel", run_adopted_cancel, 1, 0, 0, torn_mutants, NULL},
	{"adopted_cancel_of_all", run_adopted_cancel_of_all, 1, 0, 0, adopted_all_mutants, NULL},
	{"stop", run_stop, 2, 1, 0, NULL, NULL},
	{"cancel_and_stop", run_cancel_and_stop, 2, 1, 0, done_mutants, NULL},
	{"drain", run_drain, 2, 1, 0, drain_mutants, NULL},
	{"drain_of_later", run_drain_of_later, 2, 1, 0, NULL, NULL},
	{"drain_and_cancel", run_drain_and_cancel, 2, 1, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("request", cases, PIN_ARRAY_COUNT(cases));
}
