/* SPDX-License-Identifier: MIT */
/*
 * Goal: what a task leaves in its worker's own queues, too little to be worth a
 * wake, is run while that task blocks and another worker sleeps: the watchdog
 * is awake whenever it has to be, and sleeps when all workers do: [WATCHDOG-1].
 * A task that does not end is seen by it, also of an only worker and as the
 * first after a long sleep: [WATCHDOG-2]. AS-21, AS-31, EX-31, C3, C7, WP-26.
 * Method: real workers that wake no sleepers for their spawns, and the real
 * watchdog, whose pauses end at any moment. A task spawns another and waits
 * until that has run, which its own worker cannot do meanwhile: nothing but the
 * watchdog could bring another worker to it. At the end all must sleep.
 */
#include "runtime/worker/watchdog.h"
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include <pinion/timer.h>

static struct pinion_runtime *runtime;
static struct model_task producers[2];
static struct model_task children[2];
static uint32_t keeper_index; /* the worker that has notified the watchdog */

static void keep(struct model_task *task)
{
	struct model_task *child = &children[task - producers];

	keeper_index = (uint32_t)pinion_worker_index(runtime);
	MODEL_CHECK(pinion_task_spawn(runtime, &child->request.task) == 0);
	model_await("the child", model_task_has_run, child);
}

static void begin(bool uses_lifo)
{
	for (uint32_t i = 0; i < 2; i++) {
		model_task_init(&producers[i], keep);
		model_task_init(&children[i], NULL);
	}
	model_uses_lifo = uses_lifo;
	model_has_watchdog = true;
	runtime = model_runtime_begin(2, PIN_DOORBELL_MESSAGE, NULL);
}

static void finish(void)
{
	model_watchdog_settle(runtime);
	model_runtime_end(runtime);
}

static void run_round(uint32_t number)
{
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[number].request.task) == 0);
	model_await("the child", model_task_has_run, &children[number]);
}

static void run_deque(void)
{
	begin(false);
	run_round(0);
	finish();
}

static void run_slot(void)
{
	begin(true);
	run_round(0);
	finish();
}

/*
 * From when all workers sleep and the watchdog looks about for the last time.
 */
static void begin_last_look(void)
{
	begin(false);
	model_quiet_begin();
	run_round(0);
	model_settle();
	MODEL_CHECK(model_pass_time());
	model_quiet_end();
}

static void run_again(void)
{
	begin_last_look();
	MODEL_CHECK(pinion_task_spawn_on(runtime, keeper_index, &producers[1].request.task) == 0);
	model_await("the child", model_task_has_run, &children[1]);
	finish();
}

/*
 * A worker that gets up has a sleeping watchdog look for tasks that do not end,
 * which does not find the work that it then keeps.
 */
static void run_dozing(void)
{
	model_stall_ms = 1;
	begin(false);
	model_stall_ms = 0;
	model_quiet_begin();
	run_round(0);
	model_settle();
	while (runtime->shared.watchdog.value != PIN_WATCHDOG_ASLEEP) {
		MODEL_CHECK(model_pass_time());
		model_settle();
	}
	model_quiet_end();
	run_round(1);
	finish();
}

/* ---- tasks that do not end, of an only worker ---- */

static bool is_stall_counted(const void *arg)
{
	const struct pinion_runtime *watched = arg;

	return watched->shared.stalls.counts[PIN_STALL_OF_TASK].value > 0;
}

static void stall(struct model_task *task)
{
	(void)task;
	model_await("the watchdog to see it", is_stall_counted, runtime);
}

static void begin_watched(void)
{
	model_task_init(&producers[0], NULL);
	model_task_init(&producers[1], stall);
	model_uses_lifo = false;
	model_has_watchdog = false;
	model_stall_ms = 1;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	model_stall_ms = 0;
}

static void run_first_stall(void)
{
	begin_watched();
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[1].request.task) == 0);
	model_await("the task", model_task_has_run, &producers[1]);
	finish();
}

/* Whether the watchdog then falls asleep, unless a worker gets up. */
static bool is_last_look_next(void)
{
	const struct pin_worker *worker = &runtime->shared.workers[0];
	const struct pin_meter *meter = &worker->meter;

	return worker->stall_look_signs ==
		meter->tasks_run.value + meter->parks_futex.value + meter->parks_ring.value;
}

static void run_stall(void)
{
	begin_watched();
	model_quiet_begin();
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	model_settle();
	while (!is_last_look_next()) {
		MODEL_CHECK(model_pass_time());
		model_settle();
	}
	MODEL_CHECK(model_pass_time());
	model_quiet_end();
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[1].request.task) == 0);
	model_await("the task", model_task_has_run, &producers[1]);
	finish();
}

/* ---- woken by its own deadline, so no token shows that it is awake ---- */

static struct pinion_timer timer;

static int keep_when_due(struct pinion_task *task)
{
	(void)task;
	keep(&producers[1]);
	return 0;
}

static void begin_due(void)
{
	begin(false);
	timer = (struct pinion_timer){.task.run = keep_when_due};
	model_quiet_begin();
	run_round(0);
	model_settle();
	MODEL_CHECK(pinion_timer_start(runtime, &timer, model_clock_ns() + 1) == 0);
	model_settle();
}

/* The watchdog looks about for the last time as the timer's worker gets up. */
static void run_deadline(void)
{
	begin_due();
	MODEL_CHECK(model_pass_time() && model_pass_time());
	model_quiet_end();
	model_await("the child", model_task_has_run, &children[1]);
	finish();
}

static void run_end(void)
{
	begin_last_look();
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	model_runtime_end(runtime);
}

static const struct model_mutant deque_mutants[] = {
	{"no worker is woken for the work found", {MODEL_SKIP, "look", "pin_wake_one"}},
	{"the watchdog is not woken", {MODEL_SKIP, "spawn_for", "pin_watchdog_note_kept"}},
	{"it stays awake when all sleep", {MODEL_LATE, "look", "pin_parker_is_parked"}},
	{"it sleeps without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_mutant slot_mutants[] = {
	{"it does not look at the slot", {MODEL_SKIP, "keeps_work", "pin_lifo_is_empty"}},
	{.name = NULL},
};

static const struct model_mutant again_mutants[] = {
	{"a waking worker does not check it",
		{MODEL_SKIP, "pin_park_finish", "pin_watchdog_note_awake"}},
	{"no fence before that check", {MODEL_DROP_FENCE, "pin_watchdog_note_awake", NULL}},
	{"no fence before it looks who is awake", {MODEL_DROP_FENCE, "fall_asleep", NULL}},
	{"it falls asleep beside a worker that is awake",
		{MODEL_SKIP, "is_any_awake", "pin_parker_is_parked"}},
	{.name = NULL},
};

static const struct model_mutant dozing_mutants[] = {
	{"the watchdog is not woken", {MODEL_SKIP, "spawn_for", "pin_watchdog_note_kept"}},
	{.name = NULL},
};

static const struct model_mutant deadline_mutants[] = {
	{"a waking worker checks it while it seems to sleep",
		{MODEL_EARLY, "pin_park_finish", "pin_watchdog_note_awake"}},
	{.name = NULL},
};

static const struct model_mutant stall_mutants[] = {
	{"a waking worker does not wake it",
		{MODEL_SKIP, "pin_park_finish", "pin_watchdog_note_awake"}},
	{"no fence before that check", {MODEL_DROP_FENCE, "pin_watchdog_note_awake", NULL}},
	{"no fence before it looks who is awake", {MODEL_DROP_FENCE, "fall_asleep", NULL}},
	{"it falls asleep beside a worker that is awake",
		{MODEL_SKIP, "is_any_awake", "pin_parker_is_parked"}},
	{.name = NULL},
};

static const struct model_mutant end_mutants[] = {
	{"falling asleep is no single step", {MODEL_TORN, "fall_asleep", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"deque", run_deque, 1, 0, 0, deque_mutants, NULL},
	{"slot", run_slot, 1, 0, 0, slot_mutants, NULL},
	{"again", run_again, 1, 2, 0, again_mutants, NULL},
	{"dozing", run_dozing, 1, 0, 0, dozing_mutants, NULL},
	{"deadline", run_deadline, 1, 1, 0, deadline_mutants, NULL},
	{"first", run_first_stall, 1, 0, 0, NULL, NULL},
	{"stall", run_stall, 1, 3, 0, stall_mutants, NULL},
	{"end", run_end, 2, 0, 0, end_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("watchdog", cases, PIN_ARRAY_COUNT(cases));
}
