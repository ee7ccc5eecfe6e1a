/* SPDX-License-Identifier: MIT */
/*
 * Goal: drain and stop refuse new outside work and leave it untouched; stop
 * gives queued work to `cancel`; both may be called again, by two threads, one
 * after the other, and never from a worker. EX-44, EX-45.
 * Method: a task that blocks its worker until the test releases it while others
 * queue up.
 */
#include "runtime/base/atomic.h"
#include "tests/support/runtimes.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>

enum {
	QUEUED = 1000,
	PROBES = 1000, /* far fewer than the shared queue has room for */
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task queued[QUEUED];
static struct pinion_task blocker;
static sem_t has_begun;
static sem_t may_end;
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 cancel_count;
static int inner_results[4];
static struct pinion_task probes[PROBES];
static uint32_t probe_count;

static int count_run(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&run_count, 1);
	return 0;
}

static void count_cancel(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&cancel_count, 1);
}

static void await_semaphore(sem_t *semaphore)
{
	while (sem_wait(semaphore) < 0) {
	}
}

static int block(struct pinion_task *task)
{
	static struct pinion_task inner = {.run = count_run, .cancel = count_cancel};

	(void)task;
	inner_results[0] = pinion_runtime_drain(runtime);
	inner_results[1] = pinion_runtime_stop(runtime);
	sem_post(&has_begun);
	await_semaphore(&may_end);
	inner_results[2] = pinion_task_spawn(runtime, &inner);
	inner_results[3] = inner_results[2] == 0 ? 0 : pinion_task_spawn_shared(runtime, &inner);
	return 0;
}

/*
 * Returns when the runtime takes no more. Spawns meanwhile, some of the time:
 * tasks admitted before are as good as the others.
 */
static void await_refusal(void)
{
	probe_count = 0;
	while (pinion_runtime_is_accepting(runtime)) {
		struct pinion_task *probe = &probes[probe_count];

		if (probe_count < PROBES) {
			*probe = (struct pinion_task){.run = count_run};
			probe_count += pinion_task_spawn(runtime, probe) == 0 ? 1 : 0;
		}
		sched_yield();
	}
}

static void *drain_thread(void *arg)
{
	(void)arg;
	expect_number("drain by a thread", 0, pinion_runtime_drain(runtime));
	return NULL;
}

static void *stop_thread(void *arg)
{
	(void)arg;
	expect_number("stop by a thread", 0, pinion_runtime_stop(runtime));
	return NULL;
}

static void start_blocked(void)
{
	runtime = runtimes_start(1, PINION_IO_AUTO);
	pin_store_release_u32(&run_count, 0);
	pin_store_release_u32(&cancel_count, 0);
	blocker = (struct pinion_task){.run = block};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &blocker));
	await_semaphore(&has_begun);
	for (size_t i = 0; i < QUEUED; i++) {
		/* Every tenth has no `cancel`. */
		queued[i] = (struct pinion_task){
			.run = count_run, .cancel = i % 10 == 0 ? NULL : count_cancel};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &queued[i]));
	}
}

static void check_refusal(void)
{
	struct pinion_task task = {.run = count_run, .private_ = 11};
	struct pinion_task before = task;

	expect_number("spawn when closed", -ESHUTDOWN, pinion_task_spawn(runtime, &task));
	expect_number("shared, when closed", -ESHUTDOWN, pinion_task_spawn_shared(runtime, &task));
	expect_number("the task", 0, memcmp(&before, &task, sizeof(task)));
}

static void check_again(void)
{
	expect_number("drain again", 0, pinion_runtime_drain(runtime));
	expect_number("stop again", 0, pinion_runtime_stop(runtime));
	check_refusal();
}

static void check_drain(void)
{
	struct pinion_runtime_stats counters;
	pthread_t threads[2];

	start_blocked();
	for (int i = 0; i < 2; i++) {
		expect_ready("thread", pthread_create(&threads[i], NULL, drain_thread, NULL) == 0);
	}
	/* Refuses already, while admitted tasks have yet to run. */
	await_refusal();
	counters = runtimes_counters(runtime);
	expect_number("still there", QUEUED + 1 + probe_count,
		(long long)(counters.tasks_spawned - counters.tasks_run));
	check_refusal();
	sem_post(&may_end);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
	expect_number("drain on a worker", -EDEADLK, inner_results[0]);
	expect_number("stop on a worker", -EDEADLK, inner_results[1]);
	expect_number("a task may spawn under drain", 0, inner_results[2]);
	expect_number(
		"run under drain", QUEUED + 1 + probe_count, pin_load_acquire_u32(&run_count));
	expect_number("cancelled under drain", 0, pin_load_acquire_u32(&cancel_count));
	check_again();
	counters = runtimes_counters(runtime);
	expect_number("counted", QUEUED + 2 + probe_count, (long long)counters.tasks_run);
	expect_number("admitted", QUEUED + 2 + probe_count, (long long)counters.tasks_spawned);
	pinion_runtime_destroy(runtime);
}

/* By stop alone, or by stop while a drain is already waiting. */
static void check_stop(bool is_draining)
{
	struct pinion_runtime_stats counters;
	pthread_t threads[2];
	uint32_t cancelled;
	uint32_t run;

	start_blocked();
	if (is_draining) {
		expect_ready("thread", pthread_create(&threads[0], NULL, drain_thread, NULL) == 0);
	}
	expect_ready("thread", pthread_create(&threads[1], NULL, stop_thread, NULL) == 0);
	/*
	 * A refused spawn shows outside that the stop has begun; but a drain
	 * refuses too, and during a drain the tasks may run or not.
	 */
	if (!is_draining) {
		await_refusal();
	}
	sem_post(&may_end);
	for (int i = is_draining ? 0 : 1; i < 2; i++) {
		pthread_join(threads[i], NULL);
	}
	run = pin_load_acquire_u32(&run_count);
	cancelled = pin_load_acquire_u32(&cancel_count);
	counters = runtimes_counters(runtime);
	expect_number("each ended once", (long long)counters.tasks_spawned,
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("run counts the blocker too", run + 1, (long long)counters.tasks_run);
	if (!is_draining) {
		expect_number("a task may not spawn under stop", -ESHUTDOWN, inner_results[2]);
		expect_number("nor shared", -ESHUTDOWN, inner_results[3]);
		expect_number("run under stop", 0, run);
		expect_number("`cancel` called", QUEUED - QUEUED / 10, cancelled);
		expect_number(
			"cancelled", QUEUED + probe_count, (long long)counters.tasks_cancelled);
	}
	check_again();
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready(
		"semaphores", sem_init(&has_begun, 0, 0) == 0 && sem_init(&may_end, 0, 0) == 0);
	check_drain();
	check_stop(false);
	check_stop(true);
	return expect_status();
}
