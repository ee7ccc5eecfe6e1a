/* SPDX-License-Identifier: MIT */
/*
 * Goal: of tasks spawned from outside never more wait in a lane than may,
 * whatever workers push and pop meanwhile: [QLIMIT-1], [LANE-1]; a refusal has
 * a reason, a lane takes no room of another, and there is room again in each
 * when all have run. AS-36, C13, W16.
 * Method: two threads spawn past a limit of one, beside a real worker that runs
 * all tasks, or whose task puts another into the same queue; how many wait
 * there is counted after each success. The same in the high lane; then both
 * lanes in one batch beside a spawn into each. Then a thread that waits for
 * room while others take it, and give it back, in each way there is, also by a
 * batch that is refused: [WAIT-1].
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "runtime/worker/lane.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <errno.h>

enum {
	LIMIT = 1,
	TASKS = 5,
};

static struct pinion_runtime *runtime;
static struct model_task tasks[TASKS];
static struct model_task from_inside;
static uint32_t accepted;

/* Added from outside. What a worker has added may be there until it is run. */
static uint64_t waiting(uint64_t inside_count)
{
	uint64_t others = inside_count - from_inside.run_count;
	uint64_t count = pin_injector_count(&runtime->shared.injector);

	return count > others ? count - others : 0;
}

static bool spawn(uint32_t index, uint64_t inside_count)
{
	int rc = pinion_task_spawn(runtime, &tasks[index].request.task);

	if (rc == -EAGAIN) {
		return false;
	}
	MODEL_CHECK(rc == 0);
	MODEL_CHECK(waiting(inside_count) <= LIMIT);
	accepted++;
	return true;
}

static void begin(void (*body)(struct model_task *task))
{
	for (uint32_t i = 0; i < TASKS; i++) {
		model_task_init(&tasks[i], NULL);
	}
	model_task_init(&from_inside, NULL);
	tasks[0].body = body;
	accepted = 0;
	model_injector_tasks = LIMIT;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
}

static void end(uint32_t inside_count)
{
	struct pinion_runtime_stats counters;

	/* All have run, so there is room. */
	model_quiet_begin();
	model_settle();
	MODEL_CHECK(spawn(TASKS - 1, from_inside.run_count));
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	pinion_runtime_get_stats(runtime, &counters, sizeof(counters));
	MODEL_CHECK(counters.tasks_run == accepted + inside_count);
	model_quiet_end();
	model_runtime_end(runtime);
	model_injector_tasks = 0;
}

static void spawn_second(void *arg)
{
	(void)arg;
	spawn(1, 0);
}

/* ---- two outside ---- */

static void run_together(void)
{
	uint32_t thread;
	bool was_first;

	begin(NULL);
	thread = model_thread_start("outside", spawn_second, NULL);
	was_first = spawn(0, 0);
	model_thread_join(thread);
	MODEL_CHECK(was_first || accepted == 1);
	end(0);
}

static const struct model_mutant together_mutants[] = {
	{"admission is no single step", {MODEL_TORN, "pin_gate_admit_until", NULL}},
	{.name = NULL},
};

/* ---- beside a worker that pushes ---- */

static void push_inside(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_task_spawn_shared(runtime, &from_inside.request.task) == 0);
}

static void run_inside(void)
{
	struct pinion_task *pair[] = {&tasks[1].request.task, &tasks[2].request.task};

	begin(push_inside);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &tasks[0].request.task) == 0);
	accepted++;
	/* Two never fit, least of all where an admitted task is overlooked. */
	MODEL_CHECK(pinion_task_spawn_batch(runtime, pair, 2) == -EINVAL);
	spawn(1, 1);
	spawn(2, 1);
	end(1);
}

static const struct model_mutant inside_mutants[] = {
	{"departures are seen before arrivals", {MODEL_RELAXED, "pin_injector_popped", NULL}},
	{.name = NULL},
};

/* ---- the high lane ---- */

static uint64_t waiting_high(void)
{
	return pin_injector_count(&runtime->shared.lanes[PINION_LANE_HIGH].injector);
}

static bool spawn_high(uint32_t index)
{
	int rc;

	tasks[index].request.task.flags = PINION_TASK_HIGH;
	rc = pinion_task_spawn(runtime, &tasks[index].request.task);
	if (rc == -EAGAIN) {
		return false;
	}
	MODEL_CHECK(rc == 0);
	MODEL_CHECK(waiting_high() <= LIMIT);
	accepted++;
	return true;
}

static void spawn_second_high(void *arg)
{
	(void)arg;
	spawn_high(1);
}

/* Two spawn past the limit, which leaves all of the normal lane's room. */
static void run_high(void)
{
	uint32_t thread;
	bool was_first;

	begin(NULL);
	thread = model_thread_start("outside", spawn_second_high, NULL);
	was_first = spawn_high(0);
	model_thread_join(thread);
	MODEL_CHECK(was_first || accepted == 1);
	MODEL_CHECK(spawn(2, 0));
	end(0);
}

static const struct model_mutant high_mutants[] = {
	{"a claim is no single step", {MODEL_TORN, "pin_lane_queue_claim", NULL}},
	{"the queue limit is not notified",
		{MODEL_SKIP, "pin_room_note_elsewhere", "pin_queue_limit_note_elsewhere"}},
	{.name = NULL},
};

/* ---- both lanes at once, beside each ---- */

static void spawn_normal(void *arg)
{
	(void)arg;
	spawn(2, 0);
}

/* A batch of both gets in, or takes no place of either. */
static void run_beside(void)
{
	struct pinion_task *pair[] = {&tasks[0].request.task, &tasks[1].request.task};
	uint32_t thread;
	int rc;

	begin(NULL);
	tasks[1].request.task.flags = PINION_TASK_HIGH;
	thread = model_thread_start("outside", spawn_normal, NULL);
	rc = pinion_task_spawn_batch(runtime, pair, 2);
	MODEL_CHECK(rc == 0 || rc == -EAGAIN);
	MODEL_CHECK(waiting(0) <= LIMIT && waiting_high() <= LIMIT);
	accepted += rc == 0 ? 2 : 0;
	model_thread_join(thread);
	model_quiet_begin();
	model_settle();
	model_quiet_end();
	MODEL_CHECK(spawn_high(3));
	end(0);
}

static const struct model_mutant beside_mutants[] = {
	{"its places are kept", {MODEL_SKIP, "undo_permits", "pin_lane_queue_undo"}},
	{.name = NULL},
};

/* ---- a thread that waits for room ---- */

static uint32_t wait_lane;

/* As pinion_call_start_wait(), of a plain task. */
static void spawn_when_room(void *arg)
{
	struct pinion_task *task = &tasks[1].request.task;
	struct pin_waiter waiter;

	(void)arg;
	task->flags = pinion_lane_flags(wait_lane);
	pin_waiter_init(&waiter, 1, NULL);
	MODEL_CHECK(pin_runtime_wait(runtime, pin_runtime_room(runtime, wait_lane), &waiter,
			    PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(waiter.value.words[PIN_ROOM_ANSWER] == 0);
	pin_runtime_spawn_in_room(runtime, task);
	MODEL_CHECK(waiting_high() <= LIMIT && waiting(0) <= LIMIT);
	accepted++;
}

static uint32_t begin_waiting(enum pinion_lane lane)
{
	begin(NULL);
	wait_lane = lane;
	return model_thread_start("waits", spawn_when_room, NULL);
}

/* One task fills the lane, another comes when that is popped. */
static void run_waits(void)
{
	uint32_t thread = begin_waiting(PINION_LANE_NORMAL);

	/* Unless the other one is there first. */
	(void)spawn(0, 0);
	model_thread_join(thread);
	end(0);
}

static const struct model_mutant waits_mutants[] = {
	{"a pop notifies no waiter", {MODEL_SKIP, "pin_poll_injected", "pin_room_tell"}},
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static void run_waits_high(void)
{
	uint32_t thread = begin_waiting(PINION_LANE_HIGH);

	(void)spawn_high(0);
	model_thread_join(thread);
	end(0);
}

static const struct model_mutant waits_high_mutants[] = {
	{"a pop notifies no waiter", {MODEL_SKIP, "pin_lane_pop", "pin_room_tell"}},
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

/*
 * A task that passes the gate for another lane is in the way until that lane
 * knows it.
 */
static void run_waits_beside(void)
{
	uint32_t thread = begin_waiting(PINION_LANE_NORMAL);

	(void)spawn_high(0);
	model_thread_join(thread);
	end(0);
}

static const struct model_mutant waits_beside_mutants[] = {
	{"a task that goes elsewhere is not counted",
		{MODEL_SKIP, "pin_room_note_elsewhere", "pin_room_tell"}},
	{.name = NULL},
};

/* A place that is given back is not popped. */
static void run_undone(void)
{
	uint32_t thread = begin_waiting(PINION_LANE_HIGH);
	int rc = pin_runtime_reserve_room(runtime, PINION_LANE_HIGH);

	MODEL_CHECK(rc == 0 || rc == -EAGAIN);
	if (rc == 0) {
		pin_runtime_undo_room(runtime, PINION_LANE_HIGH);
	}
	model_thread_join(thread);
	end(0);
}

static const struct model_mutant undone_mutants[] = {
	{"a returned place notifies no waiter", {MODEL_SKIP, "pin_room_undo", "pin_room_tell"}},
	{.name = NULL},
};

/* What a batch that is refused has claimed meanwhile is in the way. */
static void run_refused_batch(void)
{
	struct pinion_task *pair[] = {&tasks[2].request.task, &tasks[3].request.task};
	uint32_t thread = begin_waiting(PINION_LANE_HIGH);
	int rc;

	tasks[0].request.task.flags = PINION_TASK_LOW;
	tasks[2].request.task.flags = PINION_TASK_HIGH;
	tasks[3].request.task.flags = PINION_TASK_LOW;
	MODEL_CHECK(pinion_task_spawn(runtime, &tasks[0].request.task) == 0);
	accepted++;
	/* Refused, unless the first has been popped by then. */
	rc = pinion_task_spawn_batch(runtime, pair, 2);
	MODEL_CHECK(rc == 0 || rc == -EAGAIN);
	accepted += rc == 0 ? 2 : 0;
	model_thread_join(thread);
	end(0);
}

static const struct model_mutant refused_batch_mutants[] = {
	{"a batch that is refused says nothing",
		{MODEL_SKIP, "pin_room_admit_lanes", "pin_room_tell"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"together", run_together, 2, 1, 0, together_mutants, NULL},
	{"inside", run_inside, 2, 1, 0, inside_mutants, NULL},
	{"high", run_high, 2, 1, 0, high_mutants, NULL},
	{"beside", run_beside, 2, 1, 0, beside_mutants, NULL},
	{"waits", run_waits, 2, 1, 0, waits_mutants, NULL},
	{"waits high", run_waits_high, 2, 1, 0, waits_high_mutants, NULL},
	{"waits beside", run_waits_beside, 2, 1, 0, waits_beside_mutants, NULL},
	{"undone", run_undone, 2, 1, 0, undone_mutants, NULL},
	{"refused_batch", run_refused_batch, 1, 1, 0, refused_batch_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("queue_limit", cases, PIN_ARRAY_COUNT(cases));
}
