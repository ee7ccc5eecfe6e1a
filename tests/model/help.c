/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that blocks is served whoever serves it, its own worker's other
 * tasks too, as these are run meanwhile; its wait ends once, and no wake is
 * lost by it. It gets -EDEADLK if nobody of its runtime is left to serve it,
 * also if the last one to have been has just run out of work, [KNOT-1], and
 * never if somebody was; who cannot be told of it comes back if he is the
 * only one who can. So it is for one that waits until another runtime has
 * ended, or until workers of it have left. C2, WP-1, C14, C15.
 * Method: real workers; a word that one of the tasks, or a thread, gives. A
 * wait for the own runtime stands for a ring of runtimes that wait for each
 * other: it is a knot of one.
 */
#include "runtime/core/help.h"
#include "runtime/base/base.h"
#include "runtime/core/resize.h"
#include "runtime/core/runtime_state.h"
#include "tests/model/explorer.h"
#include "tests/model/runtime_model.h"

#include <errno.h>
#include <string.h>

enum { TASKS = 3 };

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];
static struct pin_waiters waiters;
static bool is_given; /* under their lock */
static bool knows_target;
static uint64_t deadline_ns;
static int wait_rc;
static uint32_t end_count;

static bool take(void *arg, uint64_t demand, struct pin_waiters_value *out_value)
{
	(void)arg;
	out_value->words[0] = demand;
	return is_given;
}

static void give(void *arg)
{
	(void)arg;
	pin_waiters_lock(&waiters);
	is_given = true;
	pin_waiters_serve_unlock(&waiters);
}

static void wait_in_task(struct model_task *task)
{
	const struct pin_worker *worker = pin_worker_current();
	struct pin_waiter waiter;

	(void)task;
	pin_waiter_init(&waiter, 5, NULL);
	wait_rc = pin_help_wait(
		knows_target ? &runtime->shared : NULL, &waiters, &waiter, deadline_ns);
	MODEL_CHECK(wait_rc != 0 || waiter.value.words[0] == 5);
	MODEL_CHECK(pin_worker_current() == worker && worker->help_depth == 0);
	MODEL_CHECK(!worker->is_searching);
	end_count++;
}

static void give_in_task(struct model_task *task)
{
	give(task);
}

static bool has_ended(const void *arg)
{
	(void)arg;
	return end_count > 0;
}

static void begin(uint32_t worker_count, uint64_t help_depth, void (*other)(struct model_task *))
{
	pin_knot_forget();
	is_given = false;
	deadline_ns = PIN_NO_DEADLINE;
	knows_target = true;
	wait_rc = 1;
	end_count = 0;
	model_help_depth = help_depth;
	pin_waiters_init(&waiters, &pin_host_linux, take, NULL, PIN_WAITERS_LOCKED);
	model_task_init(&tasks[0], wait_in_task);
	model_task_init(&tasks[1], other);
	model_task_init(&tasks[2], NULL);
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void spawn(uint32_t index)
{
	MODEL_CHECK(pinion_spawn(runtime, &tasks[index].request.task) == 0);
}

static void finish(int expected)
{
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(end_count == 1 && wait_rc == expected);
	MODEL_CHECK(pin_knot_blocked_count.value == 0 && waiters.oldest == NULL);
	model_runtime_end(runtime);
}

/* The one worker there is has to give it above the task that waits. */
static void run_above(void)
{
	begin(1, 1, give_in_task);
	knows_target = false;
	spawn(0);
	spawn(1);
	finish(0);
}

static void run_outside(void)
{
	uint32_t giver;

	begin(1, 1, NULL);
	knows_target = false;
	giver = model_thread_start("giver", give, NULL);
	spawn(0);
	model_await("the end", has_ended, NULL);
	model_thread_join(giver);
	finish(0);
}

static void run_timed_out(void)
{
	uint32_t giver;

	begin(1, 1, NULL);
	knows_target = false;
	deadline_ns = 1;
	giver = model_thread_start("giver", give, NULL);
	spawn(0);
	model_thread_join(giver);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(wait_rc == 0 || wait_rc == -ETIME);
	finish(wait_rc);
}

/* No stop ends its wait. */
static void run_stopped(void)
{
	uint32_t giver;

	begin(1, 1, NULL);
	knows_target = false;
	model_quiet_begin();
	spawn(0);
	model_settle();
	model_quiet_end();
	giver = model_thread_start("giver", give, NULL);
	MODEL_CHECK(pinion_runtime_stop(runtime) == 0);
	model_thread_join(giver);
	finish(0);
}

/* Nobody ever gives it; the last other task may end before or after. */
static void run_knot(uint64_t help_depth)
{
	begin(2, help_depth, NULL);
	spawn(1);
	spawn(0);
	finish(-EDEADLK);
}

static void run_knot_of_helpers(void)
{
	run_knot(1);
}

static void run_knot_of_blocked(void)
{
	run_knot(0);
}

/* Nobody who is known gives it, and somebody does, perhaps just then. */
static void run_given_late(void)
{
	uint32_t giver;

	begin(1, 1, NULL);
	giver = model_thread_start("giver", give, NULL);
	spawn(0);
	model_thread_join(giver);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(wait_rc == 0 || wait_rc == -EDEADLK);
	finish(wait_rc);
}

/* The last other task gives it. */
static void run_no_knot(void)
{
	begin(2, 1, give_in_task);
	spawn(1);
	spawn(0);
	finish(0);
}

/* ---- the end of another runtime ---- */

static struct pinion_runtime *another;
static struct model_task others_task;
static int end_rc;
static int others_end_rc;

static void end_another(struct model_task *task)
{
	const struct pin_worker *worker = pin_worker_current();

	(void)task;
	end_rc = pinion_runtime_drain(another);
	MODEL_CHECK(pin_worker_current() == worker && worker->help_depth == 0);
}

static void end_first(struct model_task *task)
{
	(void)task;
	others_end_rc = pinion_runtime_drain(runtime);
	end_count++;
}

static void begin_two(void (*others_body)(struct model_task *),
	void (*own_body)(struct model_task *), bool has_giver)
{
	begin(1, 1, give_in_task);
	model_task_init(&tasks[2], own_body);
	tasks[2].request.task.flags = PINION_TASK_MANDATORY;
	model_task_init(&others_task, others_body);
	others_task.request.task.flags = PINION_TASK_MANDATORY;
	end_rc = 1;
	others_end_rc = 1;
	another = model_runtime_begin_another(1);
	/*
	 * Each may be closed as soon as the other's task runs, and what is yet
	 * to come from outside is not seen.
	 */
	model_quiet_begin();
	MODEL_CHECK(pinion_spawn(another, &others_task.request.task) == 0);
	spawn(2);
	if (has_giver) {
		spawn(1);
	}
	model_quiet_end();
}

static void finish_two(void)
{
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(pinion_runtime_drain(another) == 0);
	MODEL_CHECK(end_count == 1 && others_task.run_count == 1);
	MODEL_CHECK(pin_knot_blocked_count.value == 0);
	model_runtime_end(another);
	model_runtime_end(runtime);
}

/* Which waits for what this worker's other task gives. */
static void run_end_above(void)
{
	begin_two(wait_in_task, end_another, true);
	finish_two();
	MODEL_CHECK(end_rc == 0 && wait_rc == 0);
}

static void run_ends_of_each_other(void)
{
	begin_two(end_first, end_another, false);
	finish_two();
	MODEL_CHECK((end_rc == -EDEADLK && others_end_rc == 0) ||
		(end_rc == 0 && others_end_rc == -EDEADLK));
}

static struct pinion_runtime *runtime_left;

static void destroy_side(struct pinion_runtime *side)
{
	pinion_runtime_destroy(side);
	/* The other comes back only when this task's runtime is gone. */
	if (end_count++ == 0) {
		runtime_left = side;
	}
}

static void destroy_another(struct model_task *task)
{
	(void)task;
	destroy_side(another);
}

static void destroy_first(struct model_task *task)
{
	(void)task;
	destroy_side(runtime);
}

static bool have_both_ended(const void *arg)
{
	(void)arg;
	return end_count == 2;
}

/* Nobody else can be told: one of them comes back, and has not freed it. */
static void run_destroys_of_each_other(void)
{
	begin_two(destroy_first, destroy_another, false);
	model_await("both", have_both_ended, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime_left) == 0);
	MODEL_CHECK(pin_knot_blocked_count.value == 0);
	model_runtime_end(runtime_left);
}

/* ---- workers of another runtime that are to leave ---- */

static const uint32_t one[] = {1};
static const uint32_t two[] = {2};

static void resize_another(struct model_task *task)
{
	const struct pin_worker *worker = pin_worker_current();

	(void)task;
	end_rc = pin_runtime_resize(another, one);
	MODEL_CHECK(pin_worker_current() == worker && worker->help_depth == 0);
}

/* Its task is on the worker that stays, or on the one that leaves. */
static void begin_resize(
	void (*others_body)(struct model_task *), uint32_t worker_index, bool has_giver)
{
	begin(1, 1, give_in_task);
	model_task_init(&tasks[2], resize_another);
	model_task_init(&others_task, others_body);
	end_rc = 1;
	others_end_rc = 1;
	model_serving_counts = two;
	another = model_runtime_begin_another(2);
	model_serving_counts = NULL;
	model_quiet_begin();
	MODEL_CHECK(pinion_spawn_on(another, worker_index, &others_task.request.task) == 0);
	spawn(2);
	if (has_giver) {
		spawn(1);
	}
	model_quiet_end();
}

/* Whose task waits for what this worker's other task gives. */
static void run_resize_above(void)
{
	begin_resize(wait_in_task, 1, true);
	finish_two();
	MODEL_CHECK(end_rc == 0 && wait_rc == 0);
}

static void run_resize_knot(void)
{
	begin_resize(end_first, 1, false);
	finish_two();
	MODEL_CHECK((end_rc == -EDEADLK && others_end_rc == 0) ||
		(end_rc == 0 && others_end_rc == -EDEADLK));
}

/* It leaves by itself: a knot only to who does not see that. */
static void run_on_its_way(void)
{
	begin_resize(end_first, 0, false);
	finish_two();
	MODEL_CHECK(end_rc == 0 && others_end_rc == 0);
}

static const struct model_twin resize_above_twins[] = {
	{"its worker runs nothing else", {MODEL_SKIP, "run_steps", "pin_worker_step"}},
	{"who waits is not told", {MODEL_SKIP, "pin_retire_try_leave", "pin_wake_resizer"}},
	{.name = NULL},
};

static const struct model_twin resize_knot_twins[] = {
	{"the one that fails is not told", {MODEL_SKIP, "settle_unlock", "pin_waiters_tell"}},
	{.name = NULL},
};

static const struct model_twin on_its_way_twins[] = {
	{"who leaves does not count", {MODEL_SKIP, "has_leaver", "pin_worker_is_leaving"}},
	{"who was served counts", {MODEL_SKIP, "leave_out_served", "pin_waiter_is_queued"}},
	{.name = NULL},
};

static const struct model_twin end_above_twins[] = {
	{"its worker runs nothing else", {MODEL_SKIP, "run_steps", "pin_worker_step"}},
	{"who waits is not told", {MODEL_SKIP, "pin_park_look_for_end", "pin_wake_enders"}},
	{.name = NULL},
};

static const struct model_twin ends_twins[] = {
	{"the one that fails is not told", {MODEL_SKIP, "settle_unlock", "pin_waiters_tell"}},
	{.name = NULL},
};

static const struct model_twin destroys_twins[] = {
	{"the one that is chosen is not told", {MODEL_SKIP, "settle_unlock", "pin_waiters_tell"}},
	{.name = NULL},
};

static const struct model_twin above_twins[] = {
	{"its worker runs nothing else", {MODEL_SKIP, "run_steps", "pin_worker_step"}},
	{.name = NULL},
};

static const struct model_twin outside_twins[] = {
	{"its worker is not told", {MODEL_SKIP, "post", "pin_wake_worker"}},
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{.name = NULL},
};

static const struct model_twin knot_twins[] = {
	{"who runs out of work does not look", {MODEL_SKIP, "pin_park", "pin_knot_note_idle"}},
	{.name = NULL},
};

static const struct model_twin blocked_twins[] = {
	{"no fence before the counts", {MODEL_DROP_FENCE, "pin_knot_enter", NULL}},
	{.name = NULL},
};

static const struct model_twin late_twins[] = {
	{"ended though served", {MODEL_SKIP, "pick", "pin_waiter_withdraw"}},
	{.name = NULL},
};

static const struct model_twin no_knot_twins[] = {
	{"who has work left does not count", {MODEL_SKIP, "is_stuck", "pin_supply_count_left"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"above", run_above, 2, 1, 0, above_twins, NULL},
	{"outside", run_outside, 2, 1, 0, outside_twins, NULL},
	{"timed_out", run_timed_out, 1, 1, 0, NULL, NULL},
	{"stopped", run_stopped, 2, 1, 0, NULL, NULL},
	{"knot", run_knot_of_helpers, 1, 1, 0, knot_twins, NULL},
	{"knot_of_blocked", run_knot_of_blocked, 1, 1, 0, blocked_twins, NULL},
	{"given_late", run_given_late, 2, 1, 0, late_twins, NULL},
	{"no_knot", run_no_knot, 1, 1, 0, no_knot_twins, NULL},
	{"end_above", run_end_above, 1, 1, 0, end_above_twins, NULL},
	{"ends_of_each_other", run_ends_of_each_other, 1, 1, 0, ends_twins, NULL},
	{"destroys_of_each_other", run_destroys_of_each_other, 1, 1, 0, destroys_twins, NULL},
	{"resize_above", run_resize_above, 1, 1, 0, resize_above_twins, NULL},
	{"resize_knot", run_resize_knot, 1, 1, 0, resize_knot_twins, NULL},
	{"on_its_way", run_on_its_way, 1, 1, 0, on_its_way_twins, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("help", cases, PIN_ARRAY_COUNT(cases));
}
