/* SPDX-License-Identifier: MIT */
/*
 * Goal: work of any lane is run by a worker that serves it, or may assist with
 * it, however its push meets their ways to sleep, and while others of the
 * runtime, of other classes, sleep on, search or give up: [PARK-1], [SEARCH-1],
 * [SEARCH-3], [ASSIST-1]. C12, W42, WP-8, WP-17.
 * Method: real workers in classes; tasks that wait for each other, so that work
 * left beside a sleeper is a deadlock. Spawned by threads outside, each with
 * one lane.
 */
#include "runtime/base/base.h"
#include "runtime/worker/wake.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

static struct pinion_runtime *runtime;
static struct model_task tasks[3];

static void init(uint32_t number, enum pinion_lane lane, void (*body)(struct model_task *task))
{
	model_task_init(&tasks[number], body);
	tasks[number].request.task.flags = pinion_lane_flags(lane);
}

static void begin(const char *lanes, uint32_t worker_count, uint32_t assist, uint32_t reserve)
{
	model_lanes = lanes;
	model_assist = assist;
	model_assist_reserve = reserve;
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
	model_lanes = NULL;
	model_assist = PINION_ASSIST_OFF;
}

static void spawn(void *task)
{
	struct model_task *model_task = task;

	MODEL_CHECK(pinion_task_spawn(runtime, &model_task->request.task) == 0);
}

static void await_all(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		model_await("a task", model_task_has_run, &tasks[i]);
	}
	model_runtime_end(runtime);
}

/* ---- one worker, and work of other lanes ---- */

static void run_one_worker(void)
{
	init(0, PINION_LANE_HIGH, NULL);
	begin(NULL, 1, PINION_ASSIST_OFF, 0);
	spawn(&tasks[0]);
	await_all(1);
}

static void run_two_lanes(void)
{
	init(0, PINION_LANE_LOW, NULL);
	init(1, PINION_LANE_HIGH, NULL);
	begin(NULL, 1, PINION_ASSIST_OFF, 0);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	await_all(2);
}

/* ---- two of them, each to run one of two that need each other ---- */

static void await_other(struct model_task *task)
{
	model_await(
		"the other task", model_task_has_run, task == &tasks[0] ? &tasks[1] : &tasks[0]);
}

static void run_together(void)
{
	init(0, PINION_LANE_LOW, await_other);
	init(1, PINION_LANE_LOW, await_other);
	begin(NULL, 2, PINION_ASSIST_OFF, 0);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	await_all(2);
}

/* ---- classes: a dedicated worker sleeps on while others have work ---- */

static void run_dedicated(void)
{
	init(0, PINION_LANE_LOW, NULL);
	init(1, PINION_LANE_HIGH, NULL);
	begin("h:1,nl:1", 2, PINION_ASSIST_OFF, 0);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	await_all(2);
}

/*
 * A worker woken for one lane counts as a searcher for a moment, and another,
 * of a lane that has one worker class more, relies on it.
 */
static void run_stranded(void)
{
	uint32_t other;

	init(0, PINION_LANE_HIGH, await_other);
	init(1, PINION_LANE_NORMAL, NULL);
	begin("hn:1,nl:1", 2, PINION_ASSIST_OFF, 0);
	other = model_thread_start("other", spawn, &tasks[1]);
	spawn(&tasks[0]);
	model_thread_join(other);
	await_all(2);
}

/* A worker woken for one lane runs another, while a spawner relied on it. */
static void run_successor(void)
{
	uint32_t other;

	init(0, PINION_LANE_LOW, await_other);
	init(1, PINION_LANE_HIGH, await_other);
	begin("hl:2,n:1", 3, PINION_ASSIST_OFF, 0);
	other = model_thread_start("other", spawn, &tasks[1]);
	spawn(&tasks[0]);
	model_thread_join(other);
	await_all(2);
}

/* ---- from a worker that does not serve it ---- */

static void spawn_second(struct model_task *task)
{
	spawn(&tasks[1]);
	await_other(task);
}

static void run_foreign_spawn(void)
{
	init(0, PINION_LANE_HIGH, spawn_second);
	init(1, PINION_LANE_NORMAL, NULL);
	begin("h:1,nl:1", 2, PINION_ASSIST_OFF, 0);
	spawn(&tasks[0]);
	await_all(2);
}

/* ---- assistance ---- */

/* Both need each other, and one serves that lane. */
static void run_assist(void)
{
	init(0, PINION_LANE_NORMAL, await_other);
	init(1, PINION_LANE_NORMAL, await_other);
	begin("h:1,hnl:1", 2, PINION_ASSIST_IDLE, 0);
	spawn(&tasks[0]);
	spawn(&tasks[1]);
	await_all(2);
}

/* Of two that would assist at once, with one to stay, one does. */
static struct pin_shared *reserve_shared;
static struct pin_worker reserve_workers[2];
static bool has_left[2];

static void leave(void *arg)
{
	struct pin_worker *worker = arg;

	has_left[worker->index] = pin_assist_try_leave(worker);
}

static void run_reserve(void)
{
	static struct pin_shared shared;
	uint32_t other;

	shared.tuning.assist_reserve = 1;
	reserve_shared = &shared;
	pin_store_relaxed_u32(&shared.classes[0].free_count, 0);
	for (uint32_t i = 0; i < 2; i++) {
		reserve_workers[i] = (struct pin_worker){
			.shared = reserve_shared, .worker_class = &shared.classes[0], .index = i};
		pin_assist_enter(&reserve_workers[i]);
	}
	other = model_thread_start("other", leave, &reserve_workers[1]);
	leave(&reserve_workers[0]);
	model_thread_join(other);
	MODEL_CHECK(has_left[0] != has_left[1]);
}

static const struct model_mutant one_worker_mutants[] = {
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_lane", NULL}},
	{"no re-check", {MODEL_SKIP, "pin_park_has_work", "pin_runnable_has_own_lanes"}},
	{"no worker is woken", {MODEL_SKIP, "announce", "pin_wake_lane"}},
	{.name = NULL},
};

static const struct model_mutant stranded_mutants[] = {
	{"a searcher that counts back forgets lanes that rely on it",
		{MODEL_SKIP, "filled", "pin_runnable_has_lane"}},
	{.name = NULL},
};

static const struct model_mutant successor_mutants[] = {
	{"the last searcher wakes for no lane", {MODEL_SKIP, "filled", "pin_runnable_has_lane"}},
	{.name = NULL},
};

static const struct model_mutant assist_mutants[] = {
	{"a possible helper is not woken", {MODEL_SKIP, "wake_for_lane", "pin_assist_has_room"}},
	{"a possible helper does not check", {MODEL_SKIP, "may_sleep", "pin_assist_sees_work"}},
	{.name = NULL},
};

static const struct model_mutant reserve_mutants[] = {
	{"leaving is no single step", {MODEL_TORN, "pin_assist_try_leave", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one_worker", run_one_worker, 3, 2, 1, one_worker_mutants, NULL},
	{"two_lanes", run_two_lanes, 2, 1, 0, NULL, NULL},
	{"together", run_together, 1, 1, 0, NULL, NULL},
	{"dedicated", run_dedicated, 1, 1, 0, NULL, NULL},
	{"stranded", run_stranded, 1, 0, 0, stranded_mutants, NULL},
	{"successor", run_successor, 1, 0, 0, successor_mutants, NULL},
	{"foreign_spawn", run_foreign_spawn, 1, 1, 0, NULL, NULL},
	{"assist", run_assist, 1, 1, 0, assist_mutants, NULL},
	{"reserve", run_reserve, 2, 2, 0, reserve_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("lanes", cases, PIN_ARRAY_COUNT(cases));
}
