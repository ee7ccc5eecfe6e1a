/* SPDX-License-Identifier: MIT */
/*
 * Goal: while workers leave and come, each task is run once, also those in the
 * queues, the slot, the inbox and on the wheel of a leaving worker; no wake is
 * lost on it, a drain ends, and a wait that its task had begun is served;
 * credit that is granted to it as it leaves is not lost: [RETIRE-1],
 * [RETIRE-2]. W53, WP-36, G2.
 * Method: real workers, of which one is dismissed while the others, a thread
 * outside and the end of the runtime meet it.
 */
#include "runtime/api/internal.h"
#include "runtime/base/base.h"
#include "runtime/worker/lane.h"
#include "runtime/worker/request.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>
#include <pinion/limit.h>
#include <pinion/request.h>
#include <pinion/timer.h>

enum { TASKS = 3, BYTES = 4096 };

static const uint32_t one[] = {1};
static const uint32_t two[] = {2};

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];
static uint32_t spawned_count;
static bool may_go;

static void begin(uint32_t worker_count, const uint32_t *serving, void (*body)(struct model_task *))
{
	for (uint32_t i = 0; i < TASKS; i++) {
		model_task_init(&tasks[i], i == 0 ? body : NULL);
	}
	spawned_count = 0;
	model_serving_counts = serving;
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	model_serving_counts = NULL;
}

static void spawn(void *task)
{
	struct model_task *model_task = task;

	MODEL_CHECK(pinion_task_spawn(runtime, &model_task->request.task) == 0);
	spawned_count++;
}

static void spawn_on_second(void *task)
{
	struct model_task *model_task = task;

	MODEL_CHECK(pinion_task_spawn_on(runtime, 1, &model_task->request.task) == 0);
	spawned_count++;
}

/* Those before have run by themselves, or it waits for ever. */
static void finish(void)
{
	struct pinion_runtime_stats counters;

	for (uint32_t i = 0; i < spawned_count; i++) {
		model_await("a task", model_task_has_run, &tasks[i]);
	}
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_run == spawned_count);
	model_runtime_end(runtime);
}

/* ---- what it has in its own queues ---- */

static void spawn_others(struct model_task *task)
{
	(void)task;
	spawn(&tasks[1]);
	spawn(&tasks[2]);
}

static void run_queued(void)
{
	model_uses_lifo = true;
	begin(2, two, spawn_others);
	model_uses_lifo = false;
	spawn_on_second(&tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	finish();
}

/* ---- messages on their way into its inbox ---- */

static void run_inbox(void)
{
	uint32_t other;

	begin(2, two, NULL);
	other = model_thread_start("other", spawn_on_second, &tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	model_thread_join(other);
	finish();
}

/* ---- a wake that was meant for it ---- */

static void run_wake(void)
{
	uint32_t other;

	begin(2, two, NULL);
	other = model_thread_start("other", spawn, &tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	model_thread_join(other);
	finish();
}

/* ---- its last task is the last of all ---- */

static void resize_to_one(void *arg)
{
	int rc = pin_runtime_resize(runtime, one);

	(void)arg;
	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN || rc == -EBUSY);
}

static void run_drain(void)
{
	struct pinion_runtime_stats counters;
	uint32_t other;

	begin(2, two, NULL);
	spawn_on_second(&tasks[0]);
	other = model_thread_start("other", resize_to_one, NULL);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(other);
	MODEL_CHECK(tasks[0].run_count == 1);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_run == 1);
	model_runtime_end(runtime);
}

static bool is_true(const void *flag)
{
	return *(const bool *)flag;
}

static void hold(struct model_task *task)
{
	(void)task;
	model_await("the event that ends it", is_true, &may_go);
}

/*
 * A worker comes or goes as all ends; a refused resize does not wait for a task
 * that ends only then.
 */
static void refuse_or_resize(void *arg)
{
	int rc = pin_runtime_resize(runtime, arg);

	MODEL_CHECK(rc == 0 || rc == -ESHUTDOWN);
	may_go = true;
}

static void run_beside_drain(const uint32_t *before, const uint32_t *after)
{
	uint32_t other;

	may_go = false;
	begin(2, before, hold);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &tasks[0].request.task) == 0);
	other = model_thread_start("other", refuse_or_resize, (void *)(uintptr_t)after);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_thread_join(other);
	MODEL_CHECK(tasks[0].run_count == 1);
	model_runtime_end(runtime);
}

static void run_drain_grow(void)
{
	run_beside_drain(one, two);
}

static void run_drain_shrink(void)
{
	run_beside_drain(two, one);
}

/* ---- the new one works ---- */

static void await_other(struct model_task *task)
{
	model_await(
		"the other task", model_task_has_run, task == &tasks[0] ? &tasks[1] : &tasks[0]);
}

static void run_grow(void)
{
	begin(2, one, await_other);
	model_task_init(&tasks[1], await_other);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	finish();
}

/* Another thread in the place of a worker that has left. */
static void run_again(void)
{
	begin(2, two, NULL);
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	spawn_on_second(&tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	spawn_on_second(&tasks[1]);
	finish();
}

/* ---- another thread comes while its place is being emptied ---- */

static void expect_second(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_worker_index(runtime) == 1);
}

static void resize_quietly(const uint32_t *serving)
{
	model_quiet_begin();
	MODEL_CHECK(pin_runtime_resize(runtime, serving) == 0);
	model_quiet_end();
}

/* The other thread still forwards the tasks it left with the former worker. */
static void run_replaced(void)
{
	uint32_t other;

	begin(2, two, NULL);
	model_task_init(&tasks[1], expect_second);
	resize_quietly(one);
	other = model_thread_start("other", spawn_on_second, &tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	spawn_on_second(&tasks[1]);
	model_thread_join(other);
	finish();
}

/* ---- timers ---- */

static struct pinion_timer timer;
static uint32_t timer_ends;
static uint32_t timer_cancels;
static bool has_timer;

static int end_timer(struct pinion_task *task)
{
	(void)task;
	timer_ends++;
	return 0;
}

static void cancel_timer(struct pinion_task *task)
{
	(void)task;
	timer_cancels++;
}

static void start_timer(struct model_task *task)
{
	(void)task;
	timer = (struct pinion_timer){.task = {.run = end_timer, .cancel = cancel_timer}};
	MODEL_CHECK(pinion_timer_start(runtime, &timer, UINT64_MAX - 1) == 0);
	has_timer = true;
}

static void run_timer(void)
{
	uint32_t other;

	timer_ends = 0;
	timer_cancels = 0;
	has_timer = false;
	begin(2, two, start_timer);
	spawn_on_second(&tasks[0]);
	model_await("the timer", is_true, &has_timer);
	other = model_thread_start("other", resize_to_one, NULL);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_thread_join(other);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(timer_ends == 0 && timer_cancels == 1);
	model_runtime_end(runtime);
}

/* No other thread can get to its wheel, so it needs a message. */
static void run_timer_told(void)
{
	model_has_no_fence = true;
	run_timer();
	model_has_no_fence = false;
}

/*
 * As in run_replaced(), and the newcomer has the timer on its wheel, and gets
 * the message of its cancel.
 */
static void run_timer_replaced(void)
{
	uint32_t other;

	timer_ends = 0;
	timer_cancels = 0;
	has_timer = false;
	begin(2, two, NULL);
	model_task_init(&tasks[1], start_timer);
	resize_quietly(one);
	other = model_thread_start("other", spawn_on_second, &tasks[0]);
	MODEL_CHECK(pin_runtime_resize(runtime, two) == 0);
	spawn_on_second(&tasks[1]);
	model_await("the timer", is_true, &has_timer);
	MODEL_CHECK(pinion_timer_cancel(runtime, &timer) == 0);
	model_thread_join(other);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(timer_ends == 0 && timer_cancels == 1);
	model_runtime_end(runtime);
}

/* ---- credit ---- */

static struct pinion_request requests[2];
static uint8_t memory[2][BYTES] __attribute__((aligned(BYTES)));
static uint32_t ended_count;

static int end_request(struct pinion_task *task)
{
	(void)task;
	ended_count++;
	return 0;
}

static void submit_own(struct model_task *task)
{
	static struct pinion_file file = {.memory_align_bytes = 1,
		.offset_align_bytes = 1,
		.size_bytes = BYTES,
		.is_direct = 1};
	uint32_t number = (uint32_t)(task - tasks);

	requests[number] = (struct pinion_request){
		.task.run = end_request,
		.file = &file,
		.bytes = memory[number],
		.length_bytes = BYTES,
	};
	MODEL_CHECK(pinion_request_submit(runtime, &requests[number]) == 0);
}

static void spawn_on(uint32_t index, struct model_task *task)
{
	MODEL_CHECK(pinion_task_spawn_on(runtime, index, &task->request.task) == 0);
	spawned_count++;
}

/*
 * One request is all the depth. The second, which waits for it on a worker that
 * is to leave, is cancelled, just before the first ends.
 */
static void run_credit(void)
{
	struct pinion_limits limits;
	struct pinion_device_stats figures;

	ended_count = 0;
	may_go = false;
	begin(2, two, submit_own);
	model_task_init(&tasks[1], submit_own);
	model_task_init(&tasks[2], hold);
	model_quiet_begin();
	model_device_hold();
	model_thread_start_daemon("device", model_device, NULL);
	pinion_limits_init(&limits);
	limits.depth_count = 1;
	MODEL_CHECK(pinion_runtime_set_limits(runtime, &limits) == 0);
	spawn_on(0, &tasks[0]);
	model_settle();
	spawn_on(1, &tasks[1]);
	model_settle();
	spawn_on(1, &tasks[2]);
	model_settle();
	MODEL_CHECK(pinion_request_cancel(runtime, &requests[1]) == 0);
	model_quiet_end();
	may_go = true;
	model_device_release();
	MODEL_CHECK(pin_runtime_resize(runtime, one) == 0);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(ended_count == 2 && requests[1].result == -ECANCELED);
	MODEL_CHECK(pinion_device_get_stats(runtime, 0, &figures, sizeof(figures)) == 0);
	MODEL_CHECK(figures.taken_count == 0 && figures.taken_bytes == 0);
	model_runtime_end(runtime);
}

/* ---- a cancel of many, after a request ---- */

static struct pinion_request cancel_of_all;
static bool is_cancel_over;
static bool is_leaving;

static int end_cancel(struct pinion_task *task)
{
	(void)task;
	is_cancel_over = true;
	return 0;
}

static void hold_and_go(struct model_task *task)
{
	hold(task);
	is_leaving = true;
}

/* Or it has taken the request, with which it stays. */
static bool is_second_out(const void *arg)
{
	uint32_t word = pin_request_of(&requests[0])->word.value;

	(void)arg;
	return runtime->shared.workers[1].service.value == PIN_SERVICE_OUT ||
		pin_request_state_of(word) == PIN_REQUEST_IN_FLIGHT;
}

static void submit_to_second(struct pinion_request *const *submitted, uint32_t count)
{
	struct pin_shared *shared = &runtime->shared;

	/* As a submit does that finds no free worker. */
	MODEL_CHECK(pin_request_claim(submitted, count) == 0);
	MODEL_CHECK(pin_gate_admit(&shared->gate, count));
	pin_room_note_elsewhere(shared, count);
	pin_request_post(&shared->workers[1], submitted, count);
}

/* The request ends by a cancel alone; the second worker leaves any moment. */
static uint32_t begin_leaving(void)
{
	uint32_t other;

	ended_count = 0;
	is_cancel_over = false;
	may_go = false;
	requests[0] = (struct pinion_request){
		.task.run = end_request, .op = PINION_OP_TIMEOUT, .deadline_ns = UINT64_MAX - 1};
	cancel_of_all = (struct pinion_request){.task.run = end_cancel, .op = PINION_OP_CANCEL};
	is_leaving = false;
	model_quiet_begin();
	begin(2, two, hold_and_go);
	spawn_on(1, &tasks[0]);
	model_settle();
	other = model_thread_start("other", resize_to_one, NULL);
	model_settle();
	model_quiet_end();
	may_go = true;
	model_await("the second to be about to leave", is_true, &is_leaving);
	return other;
}

static void expect_cancelled(uint32_t other)
{
	model_await("the cancel", is_true, &is_cancel_over);
	MODEL_CHECK(cancel_of_all.result == 1);
	model_thread_join(other);
	model_quiet_begin();
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(ended_count == 1 && requests[0].result == -ECANCELED);
	model_runtime_end(runtime);
}

/* The cancel must find it, whichever queue it is in. */
static void run_urgent_left(void)
{
	struct pinion_request *const both[] = {&requests[0], &cancel_of_all};
	uint32_t other = begin_leaving();

	requests[0].task.flags = PINION_TASK_HIGH;
	submit_to_second(both, 2);
	expect_cancelled(other);
}

/* Both find their worker there, and it leaves before it takes them. */
static void run_cancel_left(void)
{
	struct pinion_request *const both[] = {&requests[0], &cancel_of_all};
	uint32_t other = begin_leaving();

	submit_to_second(both, 2);
	expect_cancelled(other);
}

/* Only the request does; the cancel finds it gone, and forwards as well. */
static void run_cancel_behind(void)
{
	struct pinion_request *const first[] = {&requests[0]};
	struct pinion_request *const second[] = {&cancel_of_all};
	uint32_t other = begin_leaving();

	submit_to_second(first, 1);
	model_await("the second to leave", is_second_out, NULL);
	submit_to_second(second, 1);
	expect_cancelled(other);
}

/* One resize at a time. */
static void run_busy(void)
{
	int rc;
	uint32_t other;

	begin(2, two, NULL);
	other = model_thread_start("other", resize_to_one, NULL);
	rc = pin_runtime_resize(runtime, one);
	MODEL_CHECK(rc == 0 || rc == -EBUSY);
	model_thread_join(other);
	spawn(&tasks[0]);
	finish();
}

static const struct model_mutant queued_mutants[] = {
	{"its deque is lost", {MODEL_SKIP, "hand_over_tasks", "pin_injector_push"}},
	{.name = NULL},
};

static const struct model_mutant inbox_mutants[] = {
	{"its contents stay", {MODEL_SKIP, "pin_wake_forward", "pin_inbox_take"}},
	{"the last arrival stays", {MODEL_SKIP, "pin_retire_try_leave", "pin_wake_forward"}},
	{"no fence before its last check", {MODEL_DROP_FENCE, "pin_retire_try_leave", NULL}},
	{"no fence after the push", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{.name = NULL},
};

static const struct model_mutant wake_mutants[] = {
	{"a wake goes with it", {MODEL_SKIP, "pin_retire_hand_over", "pin_search_succeed"}},
	{.name = NULL},
};

static const struct model_mutant drain_mutants[] = {
	{"it leaves without a check of the end",
		{MODEL_SKIP, "pin_retire_try_leave", "pin_park_look_for_end"}},
	{.name = NULL},
};

static const struct model_mutant drain_grow_mutants[] = {
	{"it waits for the end of the runtime", {MODEL_SKIP, "pin_runtime_resize", "pin_lock_try"}},
	{.name = NULL},
};

static const struct model_mutant replaced_mutants[] = {
	{"a worker that has come meanwhile is overlooked",
		{MODEL_SKIP, "pin_wake_forward", "pin_load_acquire_u32"}},
	{.name = NULL},
};

static const struct model_mutant timer_replaced_mutants[] = {
	{"a worker that has come meanwhile is checked before the take",
		{MODEL_EARLY, "forward_cancels", "pin_load_acquire_u32"}},
	{.name = NULL},
};

static const struct model_mutant timer_mutants[] = {
	{"what it would have waited for is lost",
		{MODEL_SKIP, "hand_over_timers", "pin_timer_give_up"}},
	{.name = NULL},
};

static const struct model_mutant told_mutants[] = {
	{"a message after it has gone is lost", {MODEL_SKIP, "forward_cancels", "pin_inbox_take"}},
	{.name = NULL},
};

static const struct model_mutant credit_mutants[] = {
	{"credit granted to it goes with it",
		{MODEL_SKIP, "pin_retire_try_leave", "pin_device_queue_give_up"}},
	{.name = NULL},
};

static const struct model_mutant cancel_left_mutants[] = {
	{"the inbox goes before posted requests",
		{MODEL_EARLY, "forward_external", "pin_inbox_take"}},
	{.name = NULL},
};

static const struct model_mutant urgent_left_mutants[] = {
	{"it stays", {MODEL_SKIP, "forward_queue", "pin_injector_pop"}},
	{.name = NULL},
};

static const struct model_mutant cancel_behind_mutants[] = {
	{"a cancel overtakes a request on its way",
		{MODEL_SKIP, "forward_external", "pin_lock_acquire"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"queued", run_queued, 1, 1, 0, queued_mutants, NULL},
	{"inbox", run_inbox, 1, 1, 0, inbox_mutants, NULL},
	{"wake", run_wake, 1, 1, 0, wake_mutants, NULL},
	{"drain", run_drain, 1, 1, 0, drain_mutants, NULL},
	{"drain_grow", run_drain_grow, 1, 1, 0, drain_grow_mutants, NULL},
	{"drain_shrink", run_drain_shrink, 2, 0, 0, NULL, NULL},
	{"grow", run_grow, 1, 1, 0, NULL, NULL},
	{"again", run_again, 1, 1, 0, NULL, NULL},
	{"replaced", run_replaced, 1, 0, 0, replaced_mutants, NULL},
	{"timer", run_timer, 1, 1, 0, timer_mutants, NULL},
	{"timer_told", run_timer_told, 1, 1, 0, told_mutants, NULL},
	{"timer_replaced", run_timer_replaced, 1, 0, 0, timer_replaced_mutants, NULL},
	{"credit", run_credit, 1, 0, 0, credit_mutants, NULL},
	{"cancel_left", run_cancel_left, 2, 0, 0, cancel_left_mutants, NULL},
	{"urgent_left", run_urgent_left, 2, 0, 0, urgent_left_mutants, NULL},
	{"cancel_behind", run_cancel_behind, 2, 0, 0, cancel_behind_mutants, NULL},
	{"busy", run_busy, 1, 1, 0, NULL, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("resize", cases, PIN_ARRAY_COUNT(cases));
}
