/* SPDX-License-Identifier: MIT */
/*
 * Goal: no worker sleeps for good while work is visible in another's queue:
 * [SEARCH-1] [SEARCH-2]. AS-11, AS-24, AS-26, AS-27, AS-28, AS-29, C7, W18,
 * W26, W27, W28, W37, EX-59. Hazards that others met: a plain load where no
 * worker is to be woken, work that runs nowhere while a worker idles, and a
 * worker that stops spinning, or parks, without checking all queues.
 * Method: real workers. A task makes others visible, then waits for them to
 * have run, which its own worker cannot do meanwhile; so another one has to
 * come, or there is a deadlock. Work becomes visible in a deque by way of the
 * rule for unannounced spawns, also in a deque whose head is reserved, in an
 * inbox, and in the injector, where a worker may see it that has a task of its
 * own to run first.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

static struct pinion_runtime *runtime;
static struct model_task producers[2];
static struct model_task children[2];

static bool have_children_run(const void *arg)
{
	(void)arg;
	return children[0].run_count > 0 && children[1].run_count > 0;
}

static void begin(uint32_t worker_count, void (*body)(struct model_task *task))
{
	for (uint32_t i = 0; i < 2; i++) {
		model_task_init(&producers[i], body);
		model_task_init(&children[i], NULL);
	}
	runtime = model_runtime_begin(worker_count, PIN_DOORBELL_MESSAGE, NULL);
}

static void finish(void)
{
	model_await("the children", have_children_run, NULL);
	model_runtime_end(runtime);
}

/* ---- wake batches: every spawn counts as one ---- */

static void wake_batch(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_task_spawn(runtime, &children[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn(runtime, &children[1].request.task) == 0);
	model_await("the children", have_children_run, NULL);
}

static void run_wake_batch(void)
{
	begin(2, wake_batch);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	finish();
}

/* The same, where each worker has reserved the head of its deque. */

static void run_reserved_wake_batch(void)
{
	model_has_no_fence = false;
	begin(2, wake_batch);
	for (uint32_t i = 0; i < 2; i++) {
		struct pin_deque *deque = &runtime->shared.workers[i].deque;

		MODEL_CHECK(deque->host != NULL && pin_load_relaxed_u64(&deque->head) == 0);
		pin_store_relaxed_u64(&deque->head, pin_deque_reserved_head(0));
		pin_store_relaxed_u32(&deque->is_asked, 0);
		deque->is_reserved = true;
	}
	model_has_no_fence = model_is_spoilt(MODEL_SKIP, __func__, "fence_all");
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	finish();
}

/* The same, but only each second check since the last wake has a fence. */

static void wake_batch_two(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_task_spawn(runtime, &children[0].request.task) == 0);
	/* The first may have run, and all be over by now. */
	(void)pinion_task_spawn(runtime, &children[1].request.task);
	model_await("the first child", model_task_has_run, &children[0]);
}

static void run_late_fence(void)
{
	model_fence_wake_batches = 2;
	begin(2, wake_batch_two);
	model_fence_wake_batches = 1;
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	model_await("the first child", model_task_has_run, &children[0]);
	model_runtime_end(runtime);
}

/*
 * ---- the same, where workers wait awake before they sleep ----
 *
 * They count as searchers meanwhile, so no worker is woken for new work. One
 * check represents many: those between change nothing.
 */

static void run_awake(void)
{
	begin(2, wake_batch);
	for (uint32_t i = 0; i < 2; i++) {
		struct pin_spin *spin = &runtime->shared.workers[i].spin;

		pin_spin_init(spin, 1);
		spin->gap_ns = 0; /* as when work has come at once so far */
	}
	runtime->shared.has_cpu_each = true;
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	finish();
}

/* ---- two producers, each waiting for both children, and one to help ---- */

static void wake_batch_one(struct model_task *task)
{
	uint32_t number = task == &producers[0] ? 0 : 1;

	MODEL_CHECK(pinion_task_spawn(runtime, &children[number].request.task) == 0);
	model_await("the children", have_children_run, NULL);
}

static void run_two_wake_batches(void)
{
	begin(3, wake_batch_one);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[1].request.task) == 0);
	finish();
}

/*
 * ---- one worker, and two threads that push ----
 *
 * The first sees that the worker sleeps. The second wakes the worker, so the
 * first counts as a searcher while it finds no sleeper to claim. Then the
 * worker goes to sleep, and the second pushes again and relies on that count:
 * the first has to look once more, [SEARCH-2].
 */

static bool has_first_pushed;

static bool does_first_search(const void *arg)
{
	(void)arg;
	return has_first_pushed || runtime->shared.classes[0].searching.value != 0;
}

static void await_first_search(struct model_task *task)
{
	(void)task;
	model_await("the first to push", does_first_search, NULL);
}

static void push_twice(void *arg)
{
	(void)arg;
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	model_await("the worker", model_task_has_run, &producers[0]);
	MODEL_CHECK(pinion_task_spawn(runtime, &children[1].request.task) == 0);
}

static void run_vain_wake(void)
{
	uint32_t second;

	has_first_pushed = false;
	begin(1, await_first_search);
	second = model_thread_start("second", push_twice, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &children[0].request.task) == 0);
	has_first_pushed = true;
	model_thread_join(second);
	finish();
}

/*
 * ---- lone spawns: each child is in the slot, and its spawner goes on ----
 *
 * The worker's first spawn may find that no worker sleeps: then the worker
 * that falls asleep next must see the child, or have the second announced.
 */

static void spawn_lone(struct model_task *task)
{
	(void)task;
	MODEL_CHECK(pinion_task_spawn(runtime, &children[0].request.task) == 0);
	model_await("the first child", model_task_has_run, &children[0]);
}

static void begin_lone(void (*body)(struct model_task *task))
{
	model_uses_lifo = true;
	model_announces = true;
	begin(2, body);
	model_uses_lifo = false;
	model_announces = false;
}

static void run_lone(void)
{
	begin_lone(spawn_lone);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	model_await("the first child", model_task_has_run, &children[0]);
	model_runtime_end(runtime);
}

static void spawn_lone_twice(struct model_task *task)
{
	spawn_lone(task);
	MODEL_CHECK(pinion_task_spawn(runtime, &children[1].request.task) == 0);
	model_await("the second child", model_task_has_run, &children[1]);
}

/* The second worker runs the first child while it is awake anyway. */
static void run_lone_twice(void)
{
	begin_lone(spawn_lone_twice);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	model_await("the second child", model_task_has_run, &children[1]);
	model_runtime_end(runtime);
}

/* ---- inboxes ---- */

static void post(struct model_task *task)
{
	uint32_t own = (uint32_t)pinion_worker_index(runtime);

	(void)task;
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1 - own, &children[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1 - own, &children[1].request.task) == 0);
	model_await("the children", have_children_run, NULL);
}

static void run_post(void)
{
	begin(2, post);
	MODEL_CHECK(pinion_task_spawn(runtime, &producers[0].request.task) == 0);
	finish();
}

static void run_post_from_outside(void)
{
	begin(1, NULL);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &children[0].request.task) == 0);
	MODEL_CHECK(pinion_task_spawn_on(runtime, 0, &children[1].request.task) == 0);
	finish();
}

/* ---- the injector, seen by a worker that has something else to do ---- */

static bool has_first_run(const void *arg)
{
	(void)arg;
	return children[0].run_count > 0;
}

static void await_first(struct model_task *task)
{
	(void)task;
	model_await("the first child", has_first_run, NULL);
}

static void run_own_first(void)
{
	begin(2, await_first);
	/* Else each of these turns would have to be a preemption. */
	model_yield();
	MODEL_CHECK(pinion_task_spawn(runtime, &children[0].request.task) == 0);
	model_yield();
	/* Worker 0 is asleep before 1 has begun, in most executions. */
	MODEL_CHECK(pinion_task_spawn_on(runtime, 1, &producers[0].request.task) == 0);
	model_await("the first child", has_first_run, NULL);
	model_await("its waiter", model_task_has_run, &producers[0]);
	model_runtime_end(runtime);
}

static const struct model_mutant own_first_mutants[] = {
	{"a worker that saw work does not count as a searcher",
		{MODEL_SKIP, "pin_park", "pin_search_resume"}},
	{.name = NULL},
};

static const struct model_mutant wake_batch_mutants[] = {
	{"sleepers do not look at others' queues",
		{MODEL_SKIP, "may_sleep", "pin_search_sees_work"}},
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{"a load decides that a worker searches", {MODEL_TORN, "wake_in_class", NULL}},
	{"giving up is no single step", {MODEL_TORN, "pin_search_give_up", NULL}},
	{"the claimed worker is guessed", {MODEL_TORN, "pin_idle_withdraw", NULL}},
	{.name = NULL},
};

static const struct model_mutant lone_mutants[] = {
	{"a lone spawn wakes none", {MODEL_SKIP, "tell", "pin_wake_one"}},
	{"a worker falls asleep beside a filled slot",
		{MODEL_SKIP, "may_sleep", "pin_search_sees_slot"}},
	{.name = NULL},
};

static const struct model_mutant lone_twice_mutants[] = {
	{"a worker that falls asleep asks for no announcement",
		{MODEL_SKIP, "pin_park", "pin_spawn_set_announce_all"}},
	{"no fence before the last check for sleepers",
		{MODEL_DROP_FENCE, "stop_announcing", NULL}},
	{"it does not make the spawner fence", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant vain_mutants[] = {
	{"a waker that claims no worker does not look again",
		{MODEL_SKIP, "wake_in_class", "again"}},
	{.name = NULL},
};

static const struct model_mutant reserved_mutants[] = {
	{"a thief cannot end a reservation", {MODEL_SKIP, "run_reserved_wake_batch", "fence_all"}},
	{"sleepers do not look at others' queues",
		{MODEL_SKIP, "may_sleep", "pin_search_sees_work"}},
	{.name = NULL},
};

static const struct model_mutant late_mutants[] = {
	{"no fence before the check for sleepers", {MODEL_DROP_FENCE, "pin_wake_one", NULL}},
	{.name = NULL},
};

static const struct model_mutant awake_mutants[] = {
	{"a task stolen while awake is lost", {MODEL_SKIP, "pin_worker_step", "pin_run_or_cancel"}},
	{"a worker that has waited awake checks no queues of others",
		{MODEL_SKIP, "may_sleep", "pin_search_sees_work"}},
	{.name = NULL},
};

/* As where a flag says that the worker is about to park: W28. */
static const struct model_mutant post_mutants[] = {
	{"the check of the sleeper comes before the push",
		{MODEL_EARLY, "pin_worker_spawn_on", "pin_wake_worker"}},
	{.name = NULL},
};

static const struct model_mutant outside_mutants[] = {
	{"no fence before the re-check", {MODEL_DROP_FENCE, "pin_park", NULL}},
	{"no fence before the check of the sleeper", {MODEL_DROP_FENCE, "pin_wake_worker", NULL}},
	{"sleep without compare", {MODEL_NO_COMPARE, "model_futex_wait", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"wake_batch", run_wake_batch, 2, 1, 0, wake_batch_mutants, NULL},
	{"reserved_wake_batch", run_reserved_wake_batch, 2, 0, 0, reserved_mutants, NULL},
	{"late_fence", run_late_fence, 2, 1, 0, late_mutants, NULL},
	{"awake", run_awake, 1, 1, 0, awake_mutants, NULL},
	{"two_wake_batches", run_two_wake_batches, 1, 1, 0, NULL, NULL},
	{"lone", run_lone, 1, 1, 0, lone_mutants, NULL},
	{"lone_twice", run_lone_twice, 1, 1, 0, lone_twice_mutants, NULL},
	{"vain_wake", run_vain_wake, 2, 0, 0, vain_mutants, NULL},
	{"post", run_post, 2, 1, 0, post_mutants, NULL},
	{"own_first", run_own_first, 2, 0, 0, own_first_mutants, NULL},
	{"post_from_outside", run_post_from_outside, 3, 2, 0, outside_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("search", cases, PIN_ARRAY_COUNT(cases));
}
