/* SPDX-License-Identifier: MIT */
/*
 * Goal: a timer that is started ends once, by `run` or by `cancel`, however
 * start, expiry, cancel, the worker's sleep and a stop fall together:
 * [TIMER-1]; and though its worker is stalled, another runs it, or its cancel,
 * by whichever thread and at any time: [BIASED-1], [EXTERNAL-1]. W32, C22,
 * AS-21, AS-31. Hazards that others met: a cancelled timer is armed all the
 * same, and an earlier deadline wakes no worker. Method: real workers; time
 * stops, so deadline 0 is due at once and UINT64_MAX never. The main thread
 * starts timers from outside, which has to end the worker's sleep, and waits
 * for their end.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <pinion/timer.h>
#include <string.h>

static struct pinion_runtime *runtime;
static struct pinion_timer timer;
static uint32_t run_count;
static uint32_t cancel_count;
static uint32_t second_count;
static struct model_task other;

static int run(struct pinion_task *task)
{
	(void)task;
	run_count++;
	MODEL_CHECK(run_count + cancel_count == 1);
	return 0;
}

static int run_second(struct pinion_task *task)
{
	(void)task;
	second_count++;
	MODEL_CHECK(second_count == 1);
	return 0;
}

static void cancel_second(struct pinion_task *task)
{
	(void)run_second(task);
}

static void cancel(struct pinion_task *task)
{
	(void)task;
	cancel_count++;
	MODEL_CHECK(run_count + cancel_count == 1);
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return run_count + cancel_count > 0;
}

static void begin(uint32_t worker_count)
{
	memset(&timer, 0, sizeof(timer));
	timer.task = (struct pinion_task){.run = run, .cancel = cancel};
	run_count = 0;
	cancel_count = 0;
	second_count = 0;
	model_task_init(&other, NULL);
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void start(uint64_t deadline_ns)
{
	MODEL_CHECK(pinion_timer_start(runtime, &timer, deadline_ns) == 0);
}

static void run_kicks(void)
{
	begin(1);
	start(0);
	model_await("the timer", has_ended, NULL);
	MODEL_CHECK(run_count == 1);
	model_runtime_end(runtime);
}

static void run_cancels_far(void)
{
	begin(1);
	start(UINT64_MAX);
	MODEL_CHECK(pinion_timer_start(runtime, &timer, 0) == -EBUSY);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_await("the timer", has_ended, NULL);
	MODEL_CHECK(cancel_count == 1);
	model_runtime_end(runtime);
}

static void run_cancels_due(void)
{
	int rc;

	begin(1);
	start(0);
	rc = pinion_timer_cancel(runtime, &timer);
	MODEL_CHECK(rc == 0 || rc == -EALREADY);
	model_await("the timer", has_ended, NULL);
	MODEL_CHECK(rc == 0 ? cancel_count == 1 : run_count == 1);
	model_runtime_end(runtime);
}

/* ---- from another worker ---- */

static int cancel_rc;

static void cancel_there(struct model_task *task)
{
	(void)task;
	cancel_rc = pinion_timer_cancel(runtime, &timer);
}

static void run_two_cancels(void)
{
	int rc;

	begin(2);
	cancel_rc = -EALREADY;
	other.body = cancel_there;
	start(UINT64_MAX);
	MODEL_CHECK(pinion_task_spawn(runtime, &other.request.task) == 0);
	rc = pinion_timer_cancel(runtime, &timer);
	model_await("the timer", has_ended, NULL);
	model_await("the task", model_task_has_run, &other);
	MODEL_CHECK(cancel_count == 1 && (rc == 0) != (cancel_rc == 0));
	model_runtime_end(runtime);
}

/* ---- a stop ---- */

static void run_stop(void)
{
	struct pinion_runtime_stats counters;

	begin(1);
	start(UINT64_MAX);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	MODEL_CHECK(cancel_count == 1);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_cancelled == 1 && counters.tasks_spawned == 1);
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

	begin(1);
	start(UINT64_MAX);
	stopper = model_thread_start("stopper", stop, NULL);
	pinion_timer_cancel(runtime, &timer);
	model_thread_join(stopper);
	MODEL_CHECK(cancel_count == 1);
	model_runtime_end(runtime);
}

/* ---- a worker that is stalled ---- */

static struct pinion_timer second;
static struct model_task keeper;
static bool is_cancelled;
static bool is_armed;

static bool have_both_run(const void *arg)
{
	(void)arg;
	return run_count > 0 && second_count > 0;
}

static bool is_other_coming(const void *arg)
{
	(void)arg;
	return run_count + cancel_count > 0 ||
		(model_clock_ns() > 1 && model_is_worker_awake(runtime, 1));
}

/* Arms one more while the other worker comes for the first. */
static void keep_two(struct model_task *task)
{
	(void)task;
	start(1);
	model_await("another worker", is_other_coming, NULL);
	second = (struct pinion_timer){.task = {.run = run_second, .cancel = cancel}};
	MODEL_CHECK(pinion_timer_start(runtime, &second, 2) == 0);
	model_await("both timers", have_both_run, NULL);
}

static bool has_ended_or_is_cancelled(const void *arg)
{
	return is_cancelled || has_ended(arg);
}

static void keep_one(struct model_task *task)
{
	(void)task;
	start(1);
	model_await("the timer", has_ended_or_is_cancelled, NULL);
}

static void begin_stalled(void (*body)(struct model_task *task))
{
	model_has_watchdog = true;
	is_cancelled = false;
	model_task_init(&keeper, body);
	begin(2);
	model_has_watchdog = false;
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &keeper.request.task) == 0);
}

static void run_late(void)
{
	begin_stalled(keep_two);
	model_await("both timers", have_both_run, NULL);
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

static bool is_late(const void *arg)
{
	(void)arg;
	return model_clock_ns() > 1;
}

static void run_cancels_late(void)
{
	begin_stalled(keep_one);
	model_await("the clock", is_late, NULL);
	is_cancelled = pinion_timer_cancel(runtime, &timer) == 0;
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(is_cancelled ? cancel_count == 1 : run_count == 1);
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

/* Later than the clock gets. */
enum { FAR_NS = 1000 * 1000 * 1000 };

/* Its worker is in a task until the cancel has been called. */
static void keep_far(struct model_task *task)
{
	(void)task;
	start(FAR_NS);
	is_armed = true;
	model_await("the end", has_ended, NULL);
}

static bool is_on_the_wheel(const void *arg)
{
	(void)arg;
	return is_armed;
}

static void run_cancels_stalled(void)
{
	is_armed = false;
	model_task_init(&keeper, keep_far);
	begin(2);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &keeper.request.task) == 0);
	model_await("the timer", is_on_the_wheel, NULL);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(cancel_count == 1);
	/* No worker sleeps until the timer would have been due. */
	model_quiet_begin();
	model_settle();
	MODEL_CHECK(!model_pass_time());
	model_quiet_end();
	model_runtime_end(runtime);
}

static bool is_second_armed;

/* It arms another meanwhile, on the wheel from which the first is taken. */
static void arm_another(struct model_task *task)
{
	(void)task;
	start(UINT64_MAX);
	is_armed = true;
	second = (struct pinion_timer){.task = {.run = run_second, .cancel = cancel_second}};
	is_second_armed = pinion_timer_start(runtime, &second, UINT64_MAX) == 0;
}

static void run_cancels_beside(void)
{
	is_armed = false;
	is_second_armed = false;
	model_task_init(&keeper, arm_another);
	begin(2);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &keeper.request.task) == 0);
	model_await("the timer", is_on_the_wheel, NULL);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	MODEL_CHECK(cancel_count == 1 && second_count == (is_second_armed ? 1 : 0));
	model_runtime_end(runtime);
}

/* ---- cancelled, and then stalled ---- */

static struct model_task blocker;

static bool have_both_ended(const void *arg)
{
	(void)arg;
	return cancel_count > 0 && second_count > 0;
}

/*
 * What it cancels itself, others have to end; it cancels one more while the
 * other worker comes for the first.
 */
static void cancel_own(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_await("another worker", is_other_coming, NULL);
	second = (struct pinion_timer){.task = {.run = run_second, .cancel = cancel_second}};
	MODEL_CHECK(pinion_timer_start(runtime, &second, UINT64_MAX) == 0);
	MODEL_CHECK(pinion_timer_cancel(runtime, &second) == 0);
	model_await("both", have_both_ended, NULL);
}

static void arm_far(struct model_task *task)
{
	(void)task;
	start(UINT64_MAX);
}

/* A timer is armed, and all sleep; then this begins on the worker. */
static void begin_armed(void (*body)(struct model_task *task))
{
	model_quiet_begin();
	begin_stalled(arm_far);
	model_settle();
	model_watchdog_settle(runtime);
	model_settle();
	model_quiet_end();
	model_task_init(&blocker, body);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &blocker.request.task) == 0);
}

static void run_cancels_own(void)
{
	begin_armed(cancel_own);
	model_await("both", have_both_ended, NULL);
	MODEL_CHECK(cancel_count == 1 && second_count == 1);
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

static void block(struct model_task *task)
{
	(void)task;
	model_await("the end", has_ended, NULL);
}

/* The message comes before it stalls and it reads it, or not, or after. */
static void run_cancels_before(void)
{
	begin_armed(block);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_await("the end", has_ended, NULL);
	MODEL_CHECK(cancel_count == 1);
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

static bool is_second_over(const void *arg)
{
	(void)arg;
	return second_count > 0;
}

static void cancel_and_block(struct pinion_task *task)
{
	cancel(task);
	model_await("the second", is_second_over, NULL);
}

/* One worker may get both at once, and is stalled in the first one's cancel. */
static void run_cancels_both(void)
{
	model_has_watchdog = true;
	begin(2);
	model_has_watchdog = false;
	timer.task.cancel = cancel_and_block;
	second = (struct pinion_timer){.task = {.run = run_second, .cancel = cancel_second}};
	start(UINT64_MAX);
	MODEL_CHECK(pinion_timer_start(runtime, &second, UINT64_MAX) == 0);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	MODEL_CHECK(pinion_timer_cancel(runtime, &second) == 0);
	model_await("both", is_second_over, NULL);
	model_await("the first", has_ended, NULL);
	MODEL_CHECK(cancel_count == 1 && second_count == 1);
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

static const struct model_mutant own_mutants[] = {
	{"no worker is woken for it", {MODEL_SKIP, "look", "pin_wake_one"}},
	{"the watchdog is not woken",
		{MODEL_SKIP, "pin_worker_timer_cancelled", "pin_watchdog_note_kept"}},
	{.name = NULL},
};

/* No other thread takes it off the wheel: it is always a message. */
static const struct model_defect is_told[] = {
	{MODEL_SKIP, "is_taken_off", "pin_timer_take_off"},
	{.site = NULL},
};

static const struct model_mutant before_mutants[] = {
	{"no worker is woken for it", {MODEL_SKIP, "look", "pin_wake_one"}},
	{"the watchdog does not look there", {MODEL_SKIP, "keeps_work", "pin_timer_needs_help"}},
	{"the watchdog is not woken", {MODEL_SKIP, "tell_of_cancel", "pin_watchdog_tell_of_other"}},
	{.name = NULL},
};

static const struct model_mutant both_mutants[] = {
	{"no worker is woken for it", {MODEL_SKIP, "look", "pin_wake_one"}},
	{"the watchdog is not woken",
		{MODEL_SKIP, "pin_due_end_cancelled", "pin_watchdog_note_kept"}},
	{.name = NULL},
};

static const struct model_mutant far_mutants[] = {
	{"a change is no single step", {MODEL_TORN, "change", NULL}},
	{"the worker does not look", {MODEL_SKIP, "pin_due_take_all", "pin_timer_drop_told"}},
	{"no fence before it sleeps", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for a sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{.name = NULL},
};

static const struct model_mutant stalled_mutants[] = {
	{"its worker is left to do it", {MODEL_SKIP, "is_taken_off", "pin_timer_take_off"}},
	{"no worker is woken for it", {MODEL_SKIP, "pin_worker_timer_cancelled", "pin_wake_one"}},
	{"its worker wakes when it would have been due",
		{MODEL_SKIP, "pin_timer_take_off", "publish"}},
	{.name = NULL},
};

static const struct model_mutant late_mutants[] = {
	{"its lock has no fence", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"no worker is woken for it", {MODEL_SKIP, "look", "pin_wake_one"}},
	{"the watchdog is not woken",
		{MODEL_SKIP, "pin_worker_timer_start", "pin_watchdog_note_kept"}},
	{.name = NULL},
};

static const struct model_mutant kick_mutants[] = {
	{"the owner is not notified", {MODEL_SKIP, "post_timer", "pin_wake_one"}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{.name = NULL},
};

static const struct model_mutant cancel_mutants[] = {
	{"a change is no single step", {MODEL_TORN, "change", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"kicks", run_kicks, 3, 2, 1, kick_mutants, NULL},
	{"cancels_far", run_cancels_far, 3, 1, 0, far_mutants, NULL},
	{"cancels_due", run_cancels_due, 3, 1, 0, cancel_mutants, NULL},
	{"two_cancels", run_two_cancels, 1, 1, 0, cancel_mutants, NULL},
	{"stop", run_stop, 3, 1, 0, NULL, NULL},
	{"cancel_and_stop", run_cancel_and_stop, 2, 1, 0, NULL, NULL},
	{"late", run_late, 1, 1, 0, late_mutants, NULL},
	{"cancels_late", run_cancels_late, 1, 0, 0, NULL, NULL},
	{"cancels_stalled", run_cancels_stalled, 1, 1, 0, stalled_mutants, NULL},
	{"cancels_beside", run_cancels_beside, 1, 1, 0, NULL, NULL},
	{"cancels_own", run_cancels_own, 1, 1, 0, own_mutants, NULL},
	{"cancels_before", run_cancels_before, 1, 1, 0, before_mutants, is_told},
	{"cancels_both", run_cancels_both, 1, 0, 0, both_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("timer", cases, PIN_ARRAY_COUNT(cases));
}
