/* SPDX-License-Identifier: MIT */
/*
 * Goal: no thread reads a pool that has been ended: [IO-1] [IO-2] [IO-3].
 * BP-19, W17.
 * Method: a pool on the model's heap is taken out and freed, while threads
 * outside, a task, or a worker that has nothing to do search for a buffer in
 * all pools; a read of a freed pool fails the case. With a fence that one
 * thread passes for all, and where there is none.
 */
#include "runtime/base/base.h"
#include "runtime/task/entry.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <string.h>

static struct pinion_runtime *runtime;
static struct pin_pool *pool;
static struct model_task searcher;
static uint8_t bytes[64];

/* Its worker sleeps. */
static void begin(bool has_fence)
{
	pool = model_aligned_alloc(_Alignof(struct pin_pool), sizeof(*pool));
	memset(pool, 0, sizeof(*pool));
	model_has_no_fence = !has_fence;
	runtime = model_runtime_begin(1, PIN_DOORBELL_MESSAGE, NULL);
	model_has_no_fence = false;
	model_quiet_begin();
	MODEL_CHECK(pin_worker_pools_add(&runtime->shared, pool, NULL) == 0);
	model_settle();
	model_quiet_end();
}

static void search(void *arg)
{
	struct pin_entry *entry;

	(void)arg;
	MODEL_CHECK(pin_worker_borrow_posted(&runtime->shared.workers[0], bytes, &entry));
	MODEL_CHECK(entry == NULL);
}

static void end_pool(void *arg)
{
	struct pin_shared *shared = &runtime->shared;

	(void)arg;
	pin_lock_acquire(&shared->pools_lock, shared->host);
	pin_worker_pools_remove(shared, pool);
	model_free(pool);
	pin_lock_release(&shared->pools_lock, shared->host);
}

static void run_outside(bool has_fence, uint32_t count)
{
	uint32_t threads[3];

	begin(has_fence);
	for (uint32_t i = 0; i < count; i++) {
		threads[i] = model_thread_start("searches", search, NULL);
	}
	threads[count] = model_thread_start("ends", end_pool, NULL);
	for (uint32_t i = 0; i <= count; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(runtime->shared.pool_searches.value == 0);
	model_runtime_end(runtime);
}

static void run_one(void)
{
	run_outside(true, 1);
}

static void run_one_fenced(void)
{
	run_outside(false, 1);
}

static void run_two(void)
{
	run_outside(true, 2);
}

static void search_own(struct model_task *task)
{
	struct pin_entry *entry;

	(void)task;
	MODEL_CHECK(pin_worker_borrow(pin_worker_current(), bytes, NULL, &entry) ==
			PIN_POOL_IS_BORROWED &&
		entry == NULL);
}

static void run_beside_worker(bool has_fence, void (*body)(struct model_task *task))
{
	uint32_t thread;

	begin(has_fence);
	model_task_init(&searcher, body);
	thread = model_thread_start("ends", end_pool, NULL);
	MODEL_CHECK(pinion_task_spawn(runtime, &searcher.request.task) == 0);
	model_thread_join(thread);
	MODEL_CHECK(pinion_runtime_drain(runtime) == 0);
	MODEL_CHECK(searcher.run_count == 1);
	/*
	 * The thread that noted any has searched for them in all pools since.
	 */
	MODEL_CHECK(!runtime->shared.workers[0].has_remote_batches);
	model_runtime_end(runtime);
}

static void run_task(void)
{
	run_beside_worker(true, search_own);
}

static void run_task_fenced(void)
{
	run_beside_worker(false, search_own);
}

/* As a task that has gathered buffers for another node leaves it. */
static void note_remote_batches(struct model_task *task)
{
	(void)task;
	pin_worker_current()->has_remote_batches = true;
}

static void run_idle(void)
{
	run_beside_worker(true, note_remote_batches);
}

static const struct model_mutant one_mutants[] = {
	{"a search is not counted", {MODEL_SKIP, "find_pooled_outside", "count"}},
	{.name = NULL},
};

static const struct model_mutant fenced_mutants[] = {
	{"a search passes no fence", {MODEL_DROP_FENCE, "find_pooled_outside", NULL}},
	{.name = NULL},
};

static const struct model_mutant two_mutants[] = {
	{"counted in two steps", {MODEL_TORN, "find_pooled_outside", NULL}},
	{.name = NULL},
};

static const struct model_mutant task_mutants[] = {
	{"a task's look keeps no end away", {MODEL_SKIP, "find_pooled_own", "pin_biased_enter"}},
	{"their lock has no fence", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant task_fenced_mutants[] = {
	{"the lock's owner has no fence", {MODEL_DROP_FENCE, "pin_biased_fence", NULL}},
	{.name = NULL},
};

static const struct model_mutant idle_mutants[] = {
	{"a search does not delay the end",
		{MODEL_SKIP, "pin_worker_send_home", "pin_biased_enter"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"one", run_one, 3, 2, 0, one_mutants, NULL},
	{"one_fenced", run_one_fenced, 3, 2, 0, fenced_mutants, NULL},
	{"two", run_two, 2, 1, 0, two_mutants, NULL},
	{"task", run_task, 2, 1, 0, task_mutants, NULL},
	{"task_fenced", run_task_fenced, 2, 1, 0, task_fenced_mutants, NULL},
	{"idle", run_idle, 2, 1, 0, idle_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("pools", cases, PIN_ARRAY_COUNT(cases));
}
