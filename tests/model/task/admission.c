/* SPDX-License-Identifier: MIT */
/*
 * Goal: no limit is ever exceeded, no slot is lost, no job waits while there
 * is room for it, also after a larger request that gave up, no job comes in
 * once it is closed, the thread that has drained it may free it, and a job that
 * loses its slot is cancelled instead of run: [PERMITS-1]. RP-13, W41, W51.
 * Method: threads spawn jobs, which count how many of them are in. A job runs
 * inside of its spawn, or in a queue that another thread works off, or on a
 * real worker whose runtime is drained meanwhile. A forgotten job is a
 * deadlock; counts that are left at the end are lost slots.
 */
#include "runtime/task/admission.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"
#include "tests/model/task/jobs_model.h"

#include <errno.h>

enum { LOW = PINION_LANE_LOW, HIGH = PINION_LANE_HIGH };

static uint32_t over_count;

/* The first two jobs together, if there is room for both in time. */
static void spawn_both_in_time(void *arg)
{
	struct pinion_job *both[] = {&jobs_model.all[0].job, &jobs_model.all[1].job};

	(void)arg;
	jobs_model.all[0].rc = pinion_admission_spawn_wait(jobs_model.admission, both, 2, 1);
	MODEL_CHECK(jobs_model.all[0].rc == 0 || jobs_model.all[0].rc == -ETIME);
}

/* ---- limits ---- */

/* Two want the last slot, a third is given back meanwhile. */
static void run_limit(void)
{
	uint32_t threads[2];

	jobs_model_begin(2, 2, 0);
	jobs_model_begin_going_on(&jobs_model.all[2]);
	threads[0] = model_thread_start("spawner", jobs_model_spawn, &jobs_model.all[0]);
	threads[1] = model_thread_start("spawner", jobs_model_spawn, &jobs_model.all[1]);
	jobs_model_end(&jobs_model.all[2]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[0].rc == 0 || jobs_model.all[1].rc == 0);
	jobs_model_expect_end(3);
}

/* In two lanes, so that the total alone limits them. */
static void run_total_limit(void)
{
	uint32_t threads[2];

	jobs_model_begin(3, 1, 0);
	jobs_model.all[1].job.task.flags = PINION_TASK_LOW;
	threads[0] = model_thread_start("spawner", jobs_model_spawn, &jobs_model.all[0]);
	threads[1] = model_thread_start("spawner", jobs_model_spawn, &jobs_model.all[1]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[0].rc == 0 || jobs_model.all[1].rc == 0);
	jobs_model_expect_end(2);
}

/* ---- waits ---- */

static void run_waits(void)
{
	uint32_t threads[2];

	jobs_model_begin(1, 1, 0);
	threads[0] = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[0]);
	threads[1] = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[1]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[0].rc == 0 && jobs_model.all[1].rc == 0);
	jobs_model_expect_end(2);
}

static void note_over(struct pin_waiter *waiter)
{
	MODEL_CHECK(waiter->value.words[PIN_ADMISSION_ANSWER] == PIN_PERMITS_ROOM);
	over_count++;
}

static void enter_queue(void *arg)
{
	pin_waiters_enter(&pin_admission_of(jobs_model.admission)->lanes[HIGH].waiters, arg);
}

/* Without a check beforehand, which would have said already that it waits. */
static void run_queues(void)
{
	static struct pin_waiter waiter;
	uint32_t thread;

	jobs_model_begin(1, 1, 0);
	over_count = 0;
	jobs_model_begin_going_on(&jobs_model.all[0]);
	pin_waiter_init(&waiter, pin_permits_amount(HIGH, 1), note_over);
	thread = model_thread_start("waits", enter_queue, &waiter);
	jobs_model_end(&jobs_model.all[0]);
	model_thread_join(thread);
	MODEL_CHECK(over_count == 1);
	pin_admission_leave(pin_admission_of(jobs_model.admission), pin_permits_amount(HIGH, 1));
	jobs_model_expect_end(1);
}

/* A waiter waits in another lane than the one that gets a slot back. */
static void run_waits_for_total(void)
{
	uint32_t waiter;

	jobs_model_begin(2, 1, 0);
	jobs_model.all[1].job.task.flags = PINION_TASK_LOW;
	jobs_model_begin_going_on(&jobs_model.all[0]);
	waiter = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[1]);
	jobs_model_end(&jobs_model.all[0]);
	model_thread_join(waiter);
	MODEL_CHECK(jobs_model.all[1].rc == 0);
	jobs_model_expect_end(2);
}

/* A waiter for two holds up a lower lane, and may give up. */
static void run_gives_up(void)
{
	uint32_t threads[2];

	jobs_model_begin(2, 2, 0);
	jobs_model.all[2].job.task.flags = PINION_TASK_LOW;
	jobs_model_begin_going_on(&jobs_model.all[3]);
	threads[0] = model_thread_start("wants two", spawn_both_in_time, NULL);
	threads[1] = model_thread_start("wants one", jobs_model_spawn_wait, &jobs_model.all[2]);
	jobs_model_end(&jobs_model.all[3]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[2].rc == 0);
	jobs_model.all[1].rc = jobs_model.all[0].rc;
	jobs_model_expect_end(4);
}

/* ---- other limits ---- */

static void set_total(uint32_t max_total)
{
	struct pinion_admission_limits limits = {.max_tasks_total = max_total};

	for (uint32_t i = 0; i < PINION_LANES; i++) {
		limits.max_tasks[i] = max_total;
	}
	MODEL_CHECK(pinion_admission_set_limits(jobs_model.admission, &limits) == 0);
}

/* A waiter comes in though no job leaves. */
static void run_raised(void)
{
	uint32_t thread;

	jobs_model_begin(1, 1, 0);
	jobs_model.in_max = 2;
	jobs_model_begin_going_on(&jobs_model.all[0]);
	thread = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[1]);
	set_total(2);
	model_thread_join(thread);
	MODEL_CHECK(jobs_model.all[1].rc == 0);
	jobs_model_end(&jobs_model.all[0]);
	jobs_model_expect_end(2);
}

/* A waiter for more than the limit is refused, and holds up no other. */
static void spawn_both(void *arg)
{
	struct pinion_job *both[] = {&jobs_model.all[0].job, &jobs_model.all[1].job};

	(void)arg;
	jobs_model.all[0].rc =
		pinion_admission_spawn_wait(jobs_model.admission, both, 2, PIN_NO_DEADLINE);
	MODEL_CHECK(jobs_model.all[0].rc == 0 || jobs_model.all[0].rc == -EINVAL);
}

static void run_lowered(void)
{
	uint32_t threads[2];

	jobs_model_begin(2, 2, 0);
	jobs_model.all[2].job.task.flags = PINION_TASK_LOW;
	jobs_model_begin_going_on(&jobs_model.all[3]);
	threads[0] = model_thread_start("wants two", spawn_both, NULL);
	threads[1] = model_thread_start("wants one", jobs_model_spawn_wait, &jobs_model.all[2]);
	set_total(1);
	jobs_model_end(&jobs_model.all[3]);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[2].rc == 0);
	jobs_model.all[1].rc = jobs_model.all[0].rc;
	jobs_model_expect_end(4);
}

static bool has_waiters(const void *arg)
{
	const uint32_t *count = arg;
	const struct pin_admission_lane *lane =
		&pin_admission_of(jobs_model.admission)->lanes[HIGH];

	return lane->waiters.count.value == *count;
}

/* Also after one that may still come in, before any job has ended. */
static void run_lowered_behind(void)
{
	static const uint32_t one = 1;
	static const uint32_t two = 2;
	uint32_t threads[2];

	jobs_model_begin(2, 2, 0);
	jobs_model_begin_going_on(&jobs_model.all[3]);
	jobs_model_begin_going_on(&jobs_model.all[4]);
	threads[0] = model_thread_start("wants one", jobs_model_spawn_wait, &jobs_model.all[2]);
	model_await("the first in the queue", has_waiters, &one);
	threads[1] = model_thread_start("wants two", spawn_both, NULL);
	model_await("both in the queue", has_waiters, &two);
	set_total(1);
	model_thread_join(threads[1]);
	MODEL_CHECK(jobs_model.all[0].rc == -EINVAL);
	jobs_model_end(&jobs_model.all[3]);
	jobs_model_end(&jobs_model.all[4]);
	model_thread_join(threads[0]);
	MODEL_CHECK(jobs_model.all[2].rc == 0);
	jobs_model.all[1].rc = jobs_model.all[0].rc;
	jobs_model_expect_end(5);
}

/* ---- its end ---- */

static void run_closed(void)
{
	uint32_t threads[2];

	jobs_model_begin(1, 1, 0);
	threads[0] = model_thread_start("spawner", jobs_model_spawn, &jobs_model.all[0]);
	threads[1] = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[1]);
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	jobs_model.is_drained = true;
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	jobs_model_spawn(&jobs_model.all[2]);
	MODEL_CHECK(jobs_model.all[2].rc == -ESHUTDOWN);
	jobs_model_expect_end(3);
}

/* Freed while the end that made that possible is under way. */
static void run_freed(void)
{
	uint32_t finisher;

	jobs_model_begin(1, 1, 0);
	jobs_model_begin_going_on(&jobs_model.all[0]);
	finisher = model_thread_start("finisher", jobs_model_end, &jobs_model.all[0]);
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(jobs_model.in_count == 0);
	model_free(jobs_model.admission);
	model_thread_join(finisher);
}

/* ---- evicted ---- */

static bool has_queued(const void *arg)
{
	const uint32_t *count = arg;

	return jobs_model.queued_count > *count;
}

static void work_off(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 2; i++) {
		model_await("a job in the queue", has_queued, &i);
		jobs_model.queue[i]->run(jobs_model.queue[i]);
	}
}

static void run_evicted(void)
{
	uint32_t worker;

	jobs_model_begin(1, 1, PINION_ADMISSION_EVICT);
	jobs_model.queues = true;
	jobs_model.all[0].job.task.flags = PINION_TASK_LOW;
	jobs_model_spawn(&jobs_model.all[0]);
	worker = model_thread_start("worker", work_off, NULL);
	jobs_model_spawn(&jobs_model.all[1]);
	if (jobs_model.all[1].rc != 0) {
		/* The other has begun: so it waits for its end. */
		jobs_model_spawn_wait(&jobs_model.all[1]);
	}
	MODEL_CHECK(jobs_model.all[1].rc == 0);
	model_thread_join(worker);
	MODEL_CHECK(jobs_model.all[1].run_count == 1);
	MODEL_CHECK(pin_admission_of(jobs_model.admission)->evicted[LOW].value ==
		jobs_model.all[0].cancel_count);
	MODEL_CHECK(pin_admission_of(jobs_model.admission)->evicted_queued == 0);
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	jobs_model_expect_end(2);
}

static void work_off_newest_first(void *arg)
{
	(void)arg;
	jobs_model.queue[1]->run(jobs_model.queue[1]);
	jobs_model.queue[0]->run(jobs_model.queue[0]);
}

/* Drained and freed only when the task of an evicted job is over as well. */
static void run_evicted_freed(void)
{
	uint32_t worker;

	jobs_model_begin(1, 1, PINION_ADMISSION_EVICT);
	jobs_model.queues = true;
	jobs_model.all[0].job.task.flags = PINION_TASK_LOW;
	jobs_model_spawn(&jobs_model.all[0]);
	jobs_model_spawn(&jobs_model.all[1]);
	worker = model_thread_start("worker", work_off_newest_first, NULL);
	MODEL_CHECK(pinion_admission_drain(jobs_model.admission, PIN_NO_DEADLINE) == 0);
	MODEL_CHECK(jobs_model.all[0].cancel_count == 1);
	model_free(jobs_model.admission);
	model_thread_join(worker);
}

/* ---- the runtime's end ---- */

/* A job that has a slot and is refused by the runtime gives it to a waiter. */
static void run_runtime_drained(void)
{
	uint32_t threads[2];

	jobs_model.uses_runtime = true;
	jobs_model.runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	jobs_model_begin(1, 1, 0);
	threads[0] = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[0]);
	threads[1] = model_thread_start("waits", jobs_model_spawn_wait, &jobs_model.all[1]);
	MODEL_CHECK(pinion_runtime_drain(jobs_model.runtime) == 0);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	model_runtime_end(jobs_model.runtime);
	jobs_model.uses_runtime = false;
	jobs_model_expect_end(2);
}

static const struct model_mutant limit_mutants[] = {
	{"overshoots: taken in two steps", {MODEL_TORN, "pin_permits_take", NULL}},
	{"a slot is lost: given in two steps", {MODEL_TORN, "pin_permits_give", NULL}},
	{.name = NULL},
};

static const struct model_mutant total_mutants[] = {
	{"overshoots: taken in two steps", {MODEL_TORN, "pin_permits_take", NULL}},
	{"given without a release", {MODEL_RELAXED, "pin_permits_give", NULL}},
	{"taken without an acquire", {MODEL_RELAXED, "pin_permits_take", NULL}},
	{.name = NULL},
};

static const struct model_mutant waits_mutants[] = {
	{"stranded: a waiter does not say so", {MODEL_SKIP, "pin_permits_take_or_watch", "watch"}},
	{"stranded: a leaving job serves none",
		{MODEL_SKIP, "serve_unlock", "&self->lanes[i].waiters"}},
	{"a slot is not given back", {MODEL_SKIP, "pin_admission_leave", "pin_permits_give"}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_mutant queues_mutants[] = {
	{"stranded: said in a second step", {MODEL_LATE, "pin_permits_take_or_watch", "watch"}},
	{.name = NULL},
};

static const struct model_mutant total_wait_mutants[] = {
	{"stranded: a leaving job serves none",
		{MODEL_SKIP, "serve_unlock", "&self->lanes[i].waiters"}},
	{.name = NULL},
};

static const struct model_mutant raised_mutants[] = {
	{"stranded: raised limits serve none",
		{MODEL_SKIP, "serve_unlock", "&self->lanes[i].waiters"}},
	{.name = NULL},
};

static const struct model_mutant lowered_mutants[] = {
	{"a waiter for too many waits for ever", {MODEL_SKIP, "wants_too_many", "pin_permits_fit"}},
	{.name = NULL},
};

static const struct model_mutant lowered_behind_mutants[] = {
	{"only the oldest is notified",
		{MODEL_SKIP, "pinion_admission_set_limits", "pin_waiters_pop_ended"}},
	{.name = NULL},
};

static const struct model_mutant closed_mutants[] = {
	{"comes in while it closes: taken in two steps", {MODEL_TORN, "pin_permits_take", NULL}},
	{"closed in two steps", {MODEL_TORN, "pin_permits_close", NULL}},
	{"the drain is not notified", {MODEL_SKIP, "serve_unlock", "&self->drained"}},
	{.name = NULL},
};

static const struct model_mutant freed_mutants[] = {
	{"touched when the slot is given", {MODEL_LATE, "pin_admission_leave", "pin_permits_give"}},
	{.name = NULL},
};

static const struct model_mutant evicted_mutants[] = {
	{"the lists without the lock", {MODEL_SKIP, "pin_admission_lock", "pin_waiters_lock"}},
	{"an evicted job keeps its slot", {MODEL_SKIP, "evict", "pin_permits_exchange"}},
	{.name = NULL},
};

static const struct model_mutant evicted_freed_mutants[] = {
	{"no slot is taken, so it is drained", {MODEL_SKIP, "take_end", "has_evicted"}},
	{"the last evicted task notifies no drain",
		{MODEL_SKIP, "cancel_evicted", "pin_admission_serve_unlock"}},
	{.name = NULL},
};

static const struct model_mutant drained_mutants[] = {
	{"refused, and the slot is lost", {MODEL_SKIP, "pin_admission_leave", "pin_permits_give"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"limit", run_limit, 2, 1, 0, limit_mutants, NULL},
	{"total_limit", run_total_limit, 3, 2, 0, total_mutants, NULL},
	{"waits", run_waits, 2, 1, 1, waits_mutants, NULL},
	{"queues", run_queues, 3, 2, 0, queues_mutants, NULL},
	{"waits_for_total", run_waits_for_total, 2, 1, 1, total_wait_mutants, NULL},
	{"gives_up", run_gives_up, 2, 1, 0, total_wait_mutants, NULL},
	{"raised", run_raised, 2, 1, 0, raised_mutants, NULL},
	{"lowered", run_lowered, 2, 1, 0, lowered_mutants, NULL},
	{"lowered_behind", run_lowered_behind, 2, 1, 0, lowered_behind_mutants, NULL},
	{"closed", run_closed, 2, 1, 0, closed_mutants, NULL},
	{"freed", run_freed, 3, 2, 0, freed_mutants, NULL},
	{"evicted", run_evicted, 3, 2, 0, evicted_mutants, NULL},
	{"evicted_freed", run_evicted_freed, 2, 1, 0, evicted_freed_mutants, NULL},
	{"runtime_drained", run_runtime_drained, 1, 1, 0, drained_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("admission", cases, PIN_ARRAY_COUNT(cases));
}
