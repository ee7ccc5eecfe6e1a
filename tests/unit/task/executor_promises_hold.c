/* SPDX-License-Identifier: MIT */
/*
 * Goal: what executors of this kind promise their users, one case per promise:
 * all external tasks run, singly and in batches; tasks spawn 10 000 more; a
 * join without tasks returns; spawns after a shutdown or join are refused and
 * given back; one worker and one seed make one order (in tasks_run_in_order);
 * state per worker needs no lock; steals are counted; a failed task is counted
 * off; workers know their index, others have none; tasks spawn by the same
 * pointer as threads outside, at the same time as others and from completions,
 * also into other runtimes; and several runtimes live side by side. EX-1,
 * EX-17, EX-18, EX-19, EX-21, EX-22, EX-26, EX-30, EX-44, EX-54, EX-60, RP-1,
 * G10; the source tests at the end of checklist 1.5. The one about spawns
 * against a join is tests/stress/tasks_end_once.
 * Method: a small runtime for each.
 */
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	WORKERS = 4,
	TASKS = 10000,
	BATCH = 100,
	RUNTIMES = 6,
	PRODUCERS = 4,
	HOPS = 500,
	MANY_WORKERS = 200,
	LIMIT_SECONDS = 60,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[TASKS + 1];
static struct pin_atomic_u32 run_count;
static struct pin_atomic_u32 odd;

static void begin_at(uint32_t worker_count, uint32_t io_level)
{
	runtime = runtimes_start(worker_count, io_level);
	pin_store_release_u32(&run_count, 0);
}

static void begin(uint32_t worker_count)
{
	begin_at(worker_count, PINION_IO_FALLBACK);
}

static void end(const char *what, int expected, uint32_t tasks_run)
{
	expect_number(what, expected, pinion_runtime_join(runtime));
	expect_number(what, tasks_run, pin_load_acquire_u32(&run_count));
	expect_number(what, tasks_run, (long long)runtimes_counters(runtime).tasks_run);
	expect_number(what, 0, pin_load_acquire_u32(&odd));
	pinion_runtime_destroy(runtime);
}

static int count_run(struct pinion_task *task)
{
	(void)task;
	pin_fetch_add_acq_rel_u32(&run_count, 1);
	return 0;
}

static void note_odd(bool is_odd)
{
	if (is_odd) {
		pin_fetch_add_acq_rel_u32(&odd, 1);
	}
}

static void check_external(void)
{
	struct pinion_task *pointers[BATCH];

	begin(WORKERS);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	end("external tasks", 0, TASKS);
	begin(WORKERS);
	for (uint32_t i = 0; i < TASKS; i += BATCH) {
		for (uint32_t j = 0; j < BATCH; j++) {
			pointers[j] = &tasks[i + j];
		}
		expect_number("batch", 0, pinion_task_spawn_batch(runtime, pointers, BATCH));
	}
	end("external batches", 0, TASKS);
}

static int spawn_more(struct pinion_task *task)
{
	for (uint32_t i = 1; i <= TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		note_odd(pinion_task_spawn(runtime, &tasks[i]) != 0);
	}
	return count_run(task);
}

static void check_more(uint32_t worker_count)
{
	begin(worker_count);
	tasks[0] = (struct pinion_task){.run = spawn_more};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0]));
	end("tasks spawn more tasks", 0, TASKS + 1);
}

static void check_ended(bool is_stopped)
{
	struct pinion_task task = {.run = count_run, .private_ = 7};
	struct pinion_task before = task;
	struct pinion_task *pointer = &task;

	begin(WORKERS);
	expect_number(
		"end", 0, is_stopped ? pinion_runtime_stop(runtime) : pinion_runtime_join(runtime));
	expect_number("spawn", -ESHUTDOWN, pinion_task_spawn(runtime, &task));
	expect_number("spawn_shared", -ESHUTDOWN, pinion_task_spawn_shared(runtime, &task));
	expect_number("spawn_on", -ESHUTDOWN, pinion_task_spawn_on(runtime, 0, &task));
	expect_number("batch", -ESHUTDOWN, pinion_task_spawn_batch(runtime, &pointer, 1));
	expect_number("given back", 0, memcmp(&before, &task, sizeof(task)));
	end("none", 0, 0);
}

/* ---- one pointer for all ---- */

static void *produce(void *arg)
{
	struct pinion_task *own = arg;

	for (uint32_t i = 0; i < TASKS / PRODUCERS; i++) {
		own[i] = (struct pinion_task){.run = count_run};
		note_odd(pinion_task_spawn(runtime, &own[i]) != 0);
	}
	return NULL;
}

static void check_producers(void)
{
	pthread_t threads[PRODUCERS];

	begin(WORKERS);
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		expect_ready("thread",
			pthread_create(
				&threads[i], NULL, produce, &tasks[i * (TASKS / PRODUCERS)]) == 0);
	}
	for (uint32_t i = 0; i < PRODUCERS; i++) {
		pthread_join(threads[i], NULL);
	}
	end("several producers", 0, TASKS);
}

/* A request that is over spawns as any task does. */
static int spawn_from_completion(struct pinion_task *task)
{
	struct pinion_request *request = PIN_CONTAINER_OF(task, struct pinion_request, task);

	note_odd(request->result != 0);
	tasks[0] = (struct pinion_task){.run = count_run};
	tasks[1] = tasks[0];
	note_odd(pinion_task_spawn(runtime, &tasks[0]) != 0);
	note_odd(pinion_task_spawn_shared(runtime, &tasks[1]) != 0);
	return count_run(task);
}

static void check_completion(uint32_t io_level)
{
	struct pinion_request request = {
		.op = PINION_OP_NOP, .task = {.run = spawn_from_completion}};

	begin_at(WORKERS, io_level);
	expect_number("submit", 0, pinion_request_submit(runtime, &request));
	end("spawned by a completion", 0, 3);
}

/* Plain memory: a lock or an atomic would be needed if two shared an index. */
static uint32_t scratch[WORKERS][64];

static int use_scratch(struct pinion_task *task)
{
	int index = pinion_worker_index(runtime);

	if (index < 0 || index >= WORKERS) {
		note_odd(true);
	} else {
		scratch[index][0]++;
	}
	return count_run(task);
}

static void check_scratch(void)
{
	uint32_t sum = 0;

	begin(WORKERS);
	for (uint32_t i = 0; i < TASKS; i++) {
		tasks[i] = (struct pinion_task){.run = use_scratch};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	end("scratch", 0, TASKS);
	for (uint32_t i = 0; i < WORKERS; i++) {
		sum += scratch[i][0];
	}
	expect_number("counted without a lock", TASKS, sum);
}

/* Queues a task after itself that only a thief can run. */
static int await_thief(struct pinion_task *task)
{
	for (uint32_t i = 1; i <= BATCH; i++) {
		tasks[i] = (struct pinion_task){.run = count_run};
		note_odd(pinion_task_spawn(runtime, &tasks[i]) != 0);
	}
	while (pin_load_acquire_u32(&run_count) == 0) {
		sched_yield();
	}
	return count_run(task);
}

static void check_steals(void)
{
	struct pinion_runtime_stats counters;

	begin(2);
	tasks[0] = (struct pinion_task){.run = await_thief};
	expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0]));
	expect_number("join", 0, pinion_runtime_join(runtime));
	counters = runtimes_counters(runtime);
	expect_true("steals", counters.steals > 0);
	expect_true("tasks_stolen", counters.tasks_stolen >= counters.steals);
	expect_true("searches", counters.searches > 0);
	end("steals", 0, BATCH + 1);
}

static int fail(struct pinion_task *task)
{
	(void)count_run(task);
	return -EIO;
}

static void check_failures(void)
{
	begin(2);
	for (uint32_t i = 0; i < BATCH; i++) {
		tasks[i] = (struct pinion_task){.run = i % 10 == 5 ? fail : count_run};
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	end("failed tasks are counted off", -EIO, BATCH);
}

/* ---- indices ---- */

static int check_index(struct pinion_task *task)
{
	note_odd(pinion_worker_index(runtime) != (int)(task - tasks));
	return count_run(task);
}

static void *index_elsewhere(void *arg)
{
	(void)arg;
	note_odd(pinion_worker_index(runtime) != -ENOENT);
	return NULL;
}

static void check_indices(uint32_t worker_count)
{
	pthread_t thread;

	begin(worker_count);
	expect_number("index of this thread", -ENOENT, pinion_worker_index(runtime));
	expect_ready("thread", pthread_create(&thread, NULL, index_elsewhere, NULL) == 0);
	for (uint32_t i = 0; i < worker_count; i++) {
		tasks[i] = (struct pinion_task){.run = check_index};
		expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, i, &tasks[i]));
	}
	pthread_join(thread, NULL);
	end("indices", 0, worker_count);
}

/* ---- several runtimes ---- */

static struct pinion_runtime *runtimes[RUNTIMES];
static struct pinion_task hopper;
static uint32_t hops; /* by the task alone, which is in one place at a time */
static struct pin_atomic_u32 has_arrived;

static int hop(struct pinion_task *task)
{
	uint32_t here = hops % RUNTIMES;
	uint32_t next = (here + 1) % RUNTIMES;

	for (uint32_t i = 0; i < RUNTIMES; i++) {
		note_odd((pinion_worker_index(runtimes[i]) >= 0) != (i == here));
	}
	note_odd(pinion_task_respawn(runtimes[next], task) != -EPERM);
	hops++;
	if (hops == HOPS) {
		tasks_signal(&has_arrived);
		return 0;
	}
	return hops % 2 == 0 ? pinion_task_spawn(runtimes[next], task)
			     : pinion_task_spawn_on(runtimes[next], hops % 2, task);
}

static void check_several(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < RUNTIMES; i++) {
		runtimes[i] = runtimes_start(2, i % 2 == 0 ? PINION_IO_AUTO : PINION_IO_FALLBACK);
	}
	hopper = (struct pinion_task){.run = hop};
	expect_number("spawn", 0, pinion_task_spawn(runtimes[0], &hopper));
	tasks_await(&has_arrived, 1);
	for (uint32_t i = 0; i < RUNTIMES; i++) {
		/* The inner ones first. */
		uint32_t number = (i + RUNTIMES / 2) % RUNTIMES;
		struct pinion_task last = {.run = count_run};

		expect_number("spawn", 0, pinion_task_spawn(runtimes[number], &last));
		expect_number("join", 0, pinion_runtime_join(runtimes[number]));
		sum += runtimes_counters(runtimes[number]).tasks_run;
		pinion_runtime_destroy(runtimes[number]);
	}
	expect_number("runs in all of them", HOPS + RUNTIMES, (long long)sum);
	expect_number("odd", 0, pin_load_acquire_u32(&odd));
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_external();
	check_more(1);
	check_more(WORKERS);
	begin(WORKERS);
	end("join without tasks", 0, 0);
	check_ended(true);
	check_ended(false);
	check_producers();
	check_completion(PINION_IO_AUTO);
	check_completion(PINION_IO_FALLBACK);
	check_scratch();
	check_steals();
	check_failures();
	check_indices(1);
	check_indices(WORKERS);
	check_indices(MANY_WORKERS);
	check_several();
	return expect_status();
}
