/* SPDX-License-Identifier: MIT */
/*
 * Goal: no more than `injector_tasks` wait in the shared queue of each lane for
 * those outside to add to: a spawn beyond is refused with -EAGAIN, all of a
 * batch or none, counted, the tasks untouched, and there is room again when
 * some have run. A full lane takes no room of another. Calls are bounded in the
 * same way, also those of another runtime's tasks. Spawns of workers are never
 * refused, though they take room in their lane, as jobs do; work items, timers
 * and tasks for one worker do not ask. 0 is no limit. AS-36, C13, W16, WP-1.
 * Method: the workers are held while tasks are queued from outside, in one lane
 * and in all; a worker that overflows its queue many times over; threads that
 * spawn past a small limit while the waiting tasks are counted, in each lane.
 * How far one check lasts is compared with a sixteenth of the limit.
 */
#include "runtime/task/entry.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pthread.h>

enum {
	LIMIT = 8,
	MANY = 1000,
	STANDARD = 65536,
	THREADS = 3,
	ITERATIONS = 20000,
	LIMIT_SECONDS = 120,
};

static struct pinion_runtime *runtime;
static struct pinion_task tasks[STANDARD + 1];
static struct pinion_task *pointers[STANDARD + 1];
static struct pin_atomic_u32 done;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

static void begin(uint32_t limit)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.injector_tasks = limit;
	runtimes_tuning.queue_tasks = 4;
	/* One at a time, so that a popped task is run at once. */
	runtimes_tuning.injector_batch_min = 1;
	runtimes_tuning.injector_batch_max = 1;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	pin_store_release_u32(&done, 0);
	for (uint32_t i = 0; i <= STANDARD; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
		pointers[i] = &tasks[i];
	}
}

static void end(uint32_t run_count)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("run", run_count, pin_load_acquire_u32(&done));
	pinion_runtime_destroy(runtime);
}

static void expect_refused(const char *what, int expected, uint32_t first, uint32_t count)
{
	uint64_t before = runtimes_counters(runtime).spawns_refused;
	uint64_t counted = expected == -EAGAIN ? count : 0;
	struct pinion_task copy = tasks[first];

	expect_number(what, expected, pinion_task_spawn_batch(runtime, &pointers[first], count));
	if (count == 1) {
		expect_number(what, expected, pinion_task_spawn(runtime, &tasks[first]));
		expect_number(what, expected, pinion_task_spawn_shared(runtime, &tasks[first]));
		counted *= 3;
	}
	expect_number(what, 0, memcmp(&copy, &tasks[first], sizeof(copy)));
	expect_number("counted as refused", (long long)(before + counted),
		(long long)runtimes_counters(runtime).spawns_refused);
}

static void check_refusals(void)
{
	struct tasks_hold hold = {0};

	begin(LIMIT);
	tasks_hold_begin(&hold, runtime, 0);
	expect_refused("never fits", -EINVAL, 0, LIMIT + 1);
	for (uint32_t i = 0; i < LIMIT - 2; i++) {
		expect_number("fits", 0, pinion_task_spawn(runtime, &tasks[i]));
	}
	expect_refused("a batch of three for two places", -EAGAIN, LIMIT - 2, 3);
	expect_number("two", 0, pinion_task_spawn_batch(runtime, &pointers[LIMIT - 2], 2));
	expect_refused("full", -EAGAIN, LIMIT, 1);
	tasks_hold_end(&hold);
	tasks_await(&done, LIMIT);
	expect_number("room again for all", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT));
	end(2 * LIMIT);
}

/* ---- how far a check lasts ---- */

static void expect_end(const char *what, uint64_t expected, struct pin_queue_limit_view view)
{
	struct pin_queue_limit queue_limit;
	uint64_t waiting = 0;

	pin_queue_limit_init(&queue_limit, 320);
	expect_true(what, pin_queue_limit_renew(&queue_limit, &view, 3, &waiting));
	expect_number(what, (long long)expected, (long long)pin_load_relaxed_u64(&queue_limit.end));
}

/* Counted from outside, a limit's sixteenth fits before the next check. */
static void check_ends(void)
{
	expect_end("a sixteenth of 320", 3 + 20, (struct pin_queue_limit_view){0});
	expect_end("admitted before", 100 + 3 + 20, (struct pin_queue_limit_view){.admitted = 100});
	expect_end("less is left", 320, (struct pin_queue_limit_view){.admitted = 310});
	expect_end("less is left to those outside", 320 - 30,
		(struct pin_queue_limit_view){.admitted = 270, .pushed_inside = 30});
	expect_end("what was popped makes room", 310 + 3 + 20,
		(struct pin_queue_limit_view){.admitted = 310, .popped = 50});
}

/* ---- each lane by itself ---- */

static const uint32_t lane_flags[] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW};

static void set_flags(uint32_t first, uint32_t count, uint32_t flags)
{
	for (uint32_t i = first; i < first + count; i++) {
		tasks[i].flags = flags;
	}
}

/* One lane is full first; the others have all their room. */
static void check_lanes(uint32_t full_lane)
{
	struct tasks_hold hold = {0};
	uint32_t first = 0;

	begin(LIMIT);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		uint32_t flags = lane_flags[(full_lane + i) % PINION_LANES];

		set_flags(first, LIMIT + 1, flags);
		expect_refused("never fits", -EINVAL, first, LIMIT + 1);
		for (uint32_t j = 0; j < LIMIT - 3; j++) {
			expect_number("fits", 0, pinion_task_spawn(runtime, &tasks[first + j]));
		}
		first += LIMIT - 3;
		expect_refused("four for three places", -EAGAIN, first, 4);
		expect_number("shared", 0, pinion_task_spawn_shared(runtime, &tasks[first]));
		expect_number("two", 0, pinion_task_spawn_batch(runtime, &pointers[first + 1], 2));
		first += 3;
		expect_refused("full", -EAGAIN, first, 1);
	}
	tasks_hold_end(&hold);
	tasks_await(&done, first);
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		set_flags(0, LIMIT, lane_flags[i]);
		expect_number("room again", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT));
		tasks_await(&done, first + (i + 1) * LIMIT);
	}
	end(first + PINION_LANES * LIMIT);
}

/* A batch of all lanes finds no room in one, and takes none in the others. */
static void check_mixed(uint32_t full_lane)
{
	struct tasks_hold hold = {0};

	begin(LIMIT);
	tasks_hold_begin(&hold, runtime, 0);
	set_flags(0, LIMIT - 1, lane_flags[full_lane]);
	expect_number("all but one", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT - 1));
	for (uint32_t i = 0; i < 2 * PINION_LANES; i++) {
		tasks[LIMIT - 1 + i].flags = lane_flags[i % PINION_LANES];
	}
	for (uint32_t i = 0; i < 2 * LIMIT; i++) {
		expect_refused("two of each", -EAGAIN, LIMIT - 1, 2 * PINION_LANES);
	}
	expect_number("one of each", 0,
		pinion_task_spawn_batch(runtime, &pointers[LIMIT - 1], PINION_LANES));
	for (uint32_t i = 1; i < PINION_LANES; i++) {
		uint32_t first = MANY + i * LIMIT;

		set_flags(first, LIMIT - 1, lane_flags[(full_lane + i) % PINION_LANES]);
		expect_number("all others", 0,
			pinion_task_spawn_batch(runtime, &pointers[first], LIMIT - 1));
	}
	tasks_hold_end(&hold);
	end(PINION_LANES * LIMIT);
}

/* Jobs are bounded by their admission, and take room in their lane. */
static struct pinion_job jobs[LIMIT];

static int answer_job(struct pinion_job *job)
{
	return answer(&job->task);
}

static void check_jobs(void)
{
	struct pinion_admission admission;
	struct tasks_hold hold = {0};

	begin(LIMIT);
	expect_number("admission", 0, pinion_admission_init(&admission, runtime, NULL));
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i < LIMIT; i++) {
		struct pinion_job *job = &jobs[i];

		*job = (struct pinion_job){.run = answer_job, .task.flags = PINION_TASK_HIGH};
		expect_number("job", 0, pinion_admission_spawn(&admission, &job, 1, NULL));
	}
	set_flags(0, LIMIT, PINION_TASK_HIGH);
	expect_refused("a full lane", -EAGAIN, 0, 1);
	set_flags(0, LIMIT, 0);
	expect_number("another", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT));
	expect_refused("full", -EAGAIN, LIMIT, 1);
	tasks_hold_end(&hold);
	expect_number("drain", 0, pinion_admission_drain(&admission, UINT64_MAX));
	end(2 * LIMIT);
}

/* ---- calls ---- */

static struct pinion_runtime *other;
static struct pinion_call calls[LIMIT + 1];
static struct pinion_call high_call;
static struct pinion_wait call_wait;

static int answer_call(void *arg)
{
	(void)arg;
	tasks_signal(&done);
	return 7;
}

static int never_runs(struct pinion_task *task)
{
	(void)task;
	expect_true("a wait that was not begun", false);
	return 0;
}

/* A worker of another runtime is outside. */
static int call_from_other(struct pinion_task *task)
{
	(void)task;
	/* A call that cannot be awaited takes no place. */
	call_wait = (struct pinion_wait){.deadline_ns = UINT64_MAX};
	for (uint32_t i = 0; i < 2 * LIMIT; i++) {
		expect_number("no wait", -EINVAL,
			pinion_call_run_async(runtime, &high_call, other, &call_wait));
	}
	call_wait = (struct pinion_wait){.task.run = never_runs, .deadline_ns = UINT64_MAX};
	expect_number(
		"await", -EAGAIN, pinion_call_run_async(runtime, &calls[LIMIT], other, &call_wait));
	return 0;
}

static void expect_calls_refused(void)
{
	struct pinion_task task = {.run = call_from_other};
	int result = 5;

	expect_number("start", -EAGAIN, pinion_call_start(runtime, &calls[LIMIT]));
	expect_number("execute", -EAGAIN, pinion_call_run(runtime, answer_call, NULL, &result));
	expect_number("untouched", 5, result);
	expect_number("spawn", 0, pinion_task_spawn(other, &task));
	expect_number("join", 0, pinion_runtime_join(other));
	expect_number("counted", 3, (long long)runtimes_counters(runtime).spawns_refused);
	expect_refused("a spawn", -EAGAIN, 0, 1);
}

/* Those of a lane that is not full. */
static void expect_high_calls_started(void)
{
	set_flags(0, LIMIT, PINION_TASK_HIGH);
	expect_number("all but one", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT - 1));
	expect_number("a call", 0, pinion_call_start(runtime, &high_call));
	expect_refused("full", -EAGAIN, LIMIT - 1, 1);
}

static void check_calls(void)
{
	struct tasks_hold hold = {0};

	other = runtimes_start(1, PINION_IO_AUTO);
	begin(LIMIT);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i <= LIMIT; i++) {
		calls[i] = (struct pinion_call){.run = answer_call};
	}
	high_call = (struct pinion_call){.run = answer_call, .task.flags = PINION_TASK_HIGH};
	for (uint32_t i = 0; i < LIMIT; i++) {
		expect_number("fits", 0, pinion_call_start(runtime, &calls[i]));
	}
	expect_calls_refused();
	expect_high_calls_started();
	tasks_hold_end(&hold);
	tasks_await(&done, 2 * LIMIT);
	expect_number("wait", 0, pinion_future_wait(&high_call.done, UINT64_MAX));
	expect_number("room again", 0, pinion_call_start(runtime, &calls[LIMIT]));
	expect_number("wait", 0, pinion_future_wait(&calls[LIMIT].done, UINT64_MAX));
	expect_number("result", 7, calls[LIMIT].result);
	end(2 * LIMIT + 1);
	pinion_runtime_destroy(other);
}

/* ---- what does not ask ---- */

static int note_work(struct pinion_work *work)
{
	(void)work;
	tasks_signal(&done);
	return PINION_WORK_WAIT;
}

static void check_exempt(void)
{
	struct tasks_hold hold = {0};
	struct pinion_work work;
	struct pinion_timer timer = {.task = {.run = answer}};

	begin(1);
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, pinion_task_spawn(runtime, &tasks[0]));
	expect_refused("full", -EAGAIN, 1, 1);
	expect_number("on a worker", 0, pinion_task_spawn_on(runtime, 0, &tasks[1]));
	expect_number("timer", 0, pinion_timer_start(runtime, &timer, 0));
	pinion_work_init(&work, note_work, NULL);
	expect_number("work item", 0, pinion_work_wake(runtime, &work));
	expect_refused("still full", -EAGAIN, 2, 1);
	tasks_hold_end(&hold);
	tasks_await(&done, 4);
	/* None of these has left a place taken, or a place too many. */
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("room", 0, pinion_task_spawn(runtime, &tasks[2]));
	expect_refused("for one", -EAGAIN, 3, 1);
	tasks_hold_end(&hold);
	end(5);
}

/* ---- from within ---- */

static int inner_failures;
static struct tasks_hold inner_hold;

static int spawn_many(struct pinion_task *task)
{
	(void)task;
	for (uint32_t i = 0; i < MANY / 2; i++) {
		inner_failures += pinion_task_spawn(runtime, &tasks[i]) != 0;
	}
	inner_failures +=
		pinion_task_spawn_batch(runtime, &pointers[MANY / 2], MANY / 2 - LIMIT) != 0;
	for (uint32_t i = MANY - LIMIT; i < MANY; i++) {
		inner_failures += pinion_task_spawn_shared(runtime, &tasks[i]) != 0;
	}
	return tasks_hold_run(&inner_hold.task);
}

static void check_inside(void)
{
	struct pinion_task spawner = {.run = spawn_many};
	uint64_t shared;

	begin(LIMIT);
	inner_failures = 0;
	inner_hold = (struct tasks_hold){0};
	expect_number("spawner", 0, pinion_task_spawn(runtime, &spawner));
	tasks_await(&inner_hold.has_begun, 1);
	expect_number("refused to a task", 0, inner_failures);
	/* All but what its own queue of 4 and its slot hold. */
	shared = runtimes_counters(runtime).tasks_shared;
	expect_true("tasks_shared", shared >= MANY - 5 && shared <= MANY);
	expect_refused("what workers pushed takes room", -EAGAIN, MANY, 1);
	tasks_signal(&inner_hold.may_end);
	tasks_await(&done, MANY);
	expect_number("room again", 0, pinion_task_spawn(runtime, &tasks[MANY]));
	end(MANY + 1);
}

/* ---- the default, and none ---- */

static void check_standard(uint32_t limit)
{
	struct tasks_hold hold = {0};
	uint32_t accepted = 0;
	struct pinion_tuning tuning;

	pinion_tuning_init(&tuning);
	expect_number("default", STANDARD, (long long)tuning.injector_tasks);
	begin(limit);
	tasks_hold_begin(&hold, runtime, 0);
	for (uint32_t i = 0; i <= STANDARD; i++) {
		accepted += pinion_task_spawn(runtime, &tasks[i]) == 0;
	}
	expect_number("accepted", limit == 0 ? STANDARD + 1 : STANDARD, accepted);
	tasks_hold_end(&hold);
	end(accepted);
}

/* ---- many at once ---- */

enum { OWN_TASKS = LIMIT + 2 };

struct spawner {
	pthread_t thread;
	uint32_t accepted;
	struct {
		struct pinion_task task;
		struct pin_atomic_u32 is_out;
	} slots[OWN_TASKS];
};

static struct pin_atomic_u32 longest;
static struct pin_injector *together_queue;
static uint32_t together_flags;
static uint32_t iterations;

static int leave(struct pinion_task *task)
{
	struct pin_atomic_u32 *is_out = (struct pin_atomic_u32 *)(task + 1);

	pin_store_release_u32(is_out, 0);
	return 0;
}

static void *spawn_past_limit(void *arg)
{
	struct spawner *self = arg;

	for (uint32_t i = 0; self->accepted < iterations; i = (i + 1) % OWN_TASKS) {
		uint64_t count;

		if (pin_load_acquire_u32(&self->slots[i].is_out) != 0) {
			sched_yield();
			continue;
		}
		pin_store_release_u32(&self->slots[i].is_out, 1);
		self->slots[i].task = (struct pinion_task){.run = leave, .flags = together_flags};
		if (pinion_task_spawn(runtime, &self->slots[i].task) != 0) {
			pin_store_release_u32(&self->slots[i].is_out, 0);
			continue;
		}
		self->accepted++;
		count = pin_injector_count(together_queue);
		if (count > pin_load_relaxed_u32(&longest)) {
			pin_store_relaxed_u32(&longest, (uint32_t)count);
		}
	}
	return NULL;
}

static void check_together(enum pinion_lane lane)
{
	static struct spawner spawners[THREADS];
	struct pinion_runtime_stats counters;
	struct tasks_hold hold = {0};

	begin(LIMIT);
	memset(spawners, 0, sizeof(spawners));
	together_flags = pinion_lane_flags(lane);
	together_queue = lane == PINION_LANE_NORMAL ? &runtime->shared.injector
						    : &runtime->shared.lanes[lane].injector;
	/* Until they have come up against the limit. */
	tasks_hold_begin(&hold, runtime, 0);
	iterations = tasks_iterations(ITERATIONS);
	for (uint32_t i = 0; i < THREADS; i++) {
		expect_ready("thread",
			pthread_create(&spawners[i].thread, NULL, spawn_past_limit, &spawners[i]) ==
				0);
	}
	while (runtimes_counters(runtime).spawns_refused == 0) {
		sched_yield();
	}
	tasks_hold_end(&hold);
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(spawners[i].thread, NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	counters = runtimes_counters(runtime);
	expect_number("run, and the holder", (long long)THREADS * iterations + 1,
		(long long)counters.tasks_run);
	expect_true("never more than the limit", pin_load_relaxed_u32(&longest) <= LIMIT);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_ends();
	check_refusals();
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		check_lanes(i);
		check_mixed(i);
	}
	check_jobs();
	check_calls();
	check_exempt();
	check_inside();
	check_standard(STANDARD);
	check_standard(0);
	for (uint32_t i = 0; i < PINION_LANES; i++) {
		check_together((enum pinion_lane)i);
	}
	return expect_status();
}
