/* SPDX-License-Identifier: MIT */
/*
 * Goal: park_timeout_found_work becomes more than 0 where work came to a
 * sleeping worker and no wake was sent: for its own inbox as for the queue that
 * all share, on a futex as in a ring, and also when a waker has claimed the
 * worker and gone no further. The task is run all the same. So a 0 of it
 * elsewhere says something. AS-31, C5, EX-13, W33.
 * Method: tasks pushed as a spawn does it, but for its wake or the last step of
 * it, until one of them met a worker asleep and was counted. A worker that is
 * up finds the task by itself, and a worker that is woken, in time or by
 * another spawn, is no catch; so each push waits for its task. That a push with
 * its wake is never counted is in tests/stress/wakes_need_no_timeout, and in
 * the simulator, whose runs have no pauses but their own.
 */
#include "runtime/task/entry.h"
#include "tests/support/pending.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
	TIMEOUT_US = 1000,
	LIMIT_SECONDS = 120,
};

enum source { INBOX, SHARED_QUEUE, SHARED_QUEUE_CLAIMED };

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 done;

static int signal_run(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

/* The wake rule up to the notice to the claimed worker. */
static void claim(struct pin_worker_class *worker_class)
{
	uint32_t nobody = 0;
	bool has_claimed = false;

	pin_fence_seq_cst();
	if (!pin_cas_seq_cst_u32(&worker_class->searching, &nobody, 1)) {
		return;
	}
	for (int i = 0; i < PIN_PARKED_SETS && !has_claimed; i++) {
		has_claimed = pin_idle_claim(&worker_class->parked[i]) != PIN_IDLE_NONE;
	}
	if (!has_claimed) {
		pin_fetch_sub_seq_cst_u32(&worker_class->searching, 1);
	}
}

/*
 * As pinion_task_spawn_on() and pinion_task_spawn() from outside, and no more.
 */
static void spawn_untold(enum source source, struct pinion_task *task)
{
	struct pin_shared *shared = &runtime->shared;
	struct pin_list list = {0};

	expect_ready("admitted", pin_gate_admit(&shared->gate, 1));
	if (source == INBOX) {
		pin_inbox_push(&shared->workers[0].inbox, pin_task_link(task));
		return;
	}
	pin_list_push(&list, pin_task_link(task));
	pin_injector_push(&shared->injector, &list);
	if (source == SHARED_QUEUE_CLAIMED) {
		claim(&shared->classes[0]);
	}
}

static void await_catch(enum source source)
{
	uint64_t before = runtimes_counters(runtime).park_timeout_found_work;
	struct pinion_task task = {.run = signal_run};

	do {
		pin_store_release_u32(&done, 0);
		spawn_untold(source, &task);
		tasks_await(&done, 1);
	} while (runtimes_counters(runtime).park_timeout_found_work == before);
}

static void check(bool has_read)
{
	struct pending_read read;
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	struct pinion_config config;
	struct pinion_file file;
	int ends[2];

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.park_timeout_us = TIMEOUT_US;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (has_read && facts.uses_ring == 0) {
		printf("no io_uring, so no worker sleeps in a ring: %s\n", facts.fallback_cause);
		pinion_runtime_destroy(runtime);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	if (has_read) {
		file = runtimes_plain_file(ends[0]);
		pending_begin(&read, runtime, 0, &file);
	}
	await_catch(INBOX);
	await_catch(SHARED_QUEUE);
	await_catch(SHARED_QUEUE_CLAIMED);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	counters = runtimes_counters(runtime);
	expect_true("slept", (has_read ? counters.parks_ring : counters.parks_futex) > 0);
	expect_true("caught", counters.park_timeout_found_work >= 3);
	expect_number("all is over", (long long)(counters.tasks_spawned + has_read),
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check(false);
	check(true);
	return expect_status();
}
