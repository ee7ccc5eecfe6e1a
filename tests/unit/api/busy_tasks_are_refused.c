/* SPDX-License-Identifier: MIT */
/*
 * Goal: a task that waits to be run is refused with -EBUSY by every call that
 * would queue it once more, and runs once; a batch with one such task leaves
 * all others untouched. The task is idle again when its `run` or `cancel` is
 * entered, and after any spawn that fails. Check builds name the task.
 * Method: the only worker is held while each call is made, from outside and
 * from a task; runs and log lines are counted. Then threads that spawn their
 * own tasks again at once: as many runs as spawns that were accepted.
 */
#include "runtime/worker/state.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>

enum {
	LIMIT = 4,
	THREADS = 3,
	ITERATIONS = 20000,
	LIMIT_SECONDS = 120,
};

struct counted {
	struct pinion_task task;
	struct pin_atomic_u32 run_count;
	struct pin_atomic_u32 cancel_count;
};

static struct pinion_runtime *runtime;
static uint32_t refused_count; /* since prepare() */
static bool has_own_functions; /* the tasks that are refused */

static int count_run(struct pinion_task *task)
{
	struct counted *counted = PIN_CONTAINER_OF(task, struct counted, task);

	expect_number("idle in its run", PIN_TASK_IDLE, task->private_kind);
	pin_fetch_add_acq_rel_u32(&counted->run_count, 1);
	return 0;
}

static void count_cancel(struct pinion_task *task)
{
	struct counted *counted = PIN_CONTAINER_OF(task, struct counted, task);

	expect_number("idle in its cancel", PIN_TASK_IDLE, task->private_kind);
	pin_fetch_add_acq_rel_u32(&counted->cancel_count, 1);
}

static void prepare(void)
{
	struct pinion_config config;

	runtimes_config(&config, 1, PINION_IO_AUTO);
	runtimes_tuning.injector_tasks = LIMIT;
	expect_ready("create", pinion_runtime_create(&config, &runtime) == 0);
	refused_count = 0;
	has_own_functions = true;
}

/* Of each refusal one line with the task's name, in check builds. */
static void expect_named(void)
{
	uint32_t line_count = 0;
	const char *line = runtimes_log;

	while ((line = strstr(line, "is spawned, and waits to be run already")) != NULL) {
		line_count++;
		line++;
	}
#ifdef PIN_ENABLE_DCHECK
	expect_number("lines", refused_count, line_count);
	/* That of a job and the like is the library's. */
	if (refused_count > 0 && has_own_functions) {
		expect_ready("its function",
			strstr(runtimes_log, " (count_run) is spawned") != NULL ||
				strstr(runtimes_log, " (spawn_itself) is spawned") != NULL ||
				strstr(runtimes_log, " (note_end) is spawned") != NULL);
	}
#else
	expect_number("lines", 0, line_count);
#endif
}

static void end(uint32_t run_count)
{
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	expect_number("tasks run", run_count, (long long)runtimes_counters(runtime).tasks_run);
	pinion_runtime_destroy(runtime);
	expect_named();
}

static void expect_busy(const char *what, int rc)
{
	expect_number(what, -EBUSY, rc);
	refused_count++;
}

/* By each call that spawns, on a worker or outside. */
static void expect_busy_everywhere(struct pinion_task *busy)
{
	struct counted idle[3] = {
		{.task = {.run = count_run}},
		{.task = {.run = count_run, .flags = PINION_TASK_LOW}},
		{.task = {.run = count_run}},
	};
	struct counted copies[3];

	memcpy(copies, idle, sizeof(idle));
	expect_busy("spawn", pinion_task_spawn(runtime, busy));
	expect_busy("spawn_shared", pinion_task_spawn_shared(runtime, busy));
	expect_busy("spawn_on", pinion_task_spawn_on(runtime, 0, busy));
	for (uint32_t place = 0; place < 3; place++) {
		struct pinion_task *batch[3] = {&idle[0].task, &idle[1].task, &idle[2].task};

		batch[place] = busy;
		expect_busy("spawn_batch", pinion_task_spawn_batch(runtime, batch, 3));
		expect_number("the others", 0, memcmp(copies, idle, sizeof(idle)));
	}
	/* The same task twice. */
	expect_busy("twice in a batch",
		pinion_task_spawn_batch(runtime,
			(struct pinion_task *[]){&idle[0].task, &idle[2].task, &idle[0].task}, 3));
	expect_number("it", 0, memcmp(copies, idle, sizeof(idle)));
}

static void check_outside(uint32_t flags)
{
	struct counted task = {.task = {.run = count_run, .flags = flags}};
	struct tasks_hold hold = {0};

	prepare();
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("first", 0, pinion_task_spawn(runtime, &task.task));
	expect_busy_everywhere(&task.task);
	tasks_hold_end(&hold);
	end(2);
	expect_number("runs", 1, pin_load_acquire_u32(&task.run_count));
}

/* ---- on a worker ---- */

struct spawner {
	struct pinion_task task;
	struct counted counted;
	uint32_t times; /* how often it is still to spawn itself */
};

/* In each way, before the task has had its turn. */
static int spawn_twice(struct pinion_task *task)
{
	struct counted *counted = &PIN_CONTAINER_OF(task, struct spawner, task)->counted;

	expect_number("first", 0, pinion_task_spawn(runtime, &counted->task));
	expect_busy_everywhere(&counted->task);
	expect_busy("respawn", pinion_task_respawn(runtime, &counted->task));
	return 0;
}

static int respawn_twice(struct pinion_task *task)
{
	struct counted *counted = &PIN_CONTAINER_OF(task, struct spawner, task)->counted;

	expect_number("first", 0, pinion_task_respawn(runtime, &counted->task));
	expect_busy_everywhere(&counted->task);
	expect_busy("respawn", pinion_task_respawn(runtime, &counted->task));
	return 0;
}

static int post_twice(struct pinion_task *task)
{
	struct counted *counted = &PIN_CONTAINER_OF(task, struct spawner, task)->counted;

	expect_number("first", 0, pinion_task_spawn_on(runtime, 0, &counted->task));
	expect_busy_everywhere(&counted->task);
	expect_busy("respawn", pinion_task_respawn(runtime, &counted->task));
	return 0;
}

static void check_inside(pinion_task_fn run, uint32_t flags)
{
	struct spawner spawner = {
		.task = {.run = run},
		.counted = {.task = {.run = count_run, .flags = flags}},
	};

	prepare();
	expect_number("spawner", 0, pinion_task_spawn(runtime, &spawner.task));
	end(2);
	expect_number("runs", 1, pin_load_acquire_u32(&spawner.counted.run_count));
}

/* Its own memory is its own when it is entered. */
static int spawn_itself(struct pinion_task *task)
{
	struct spawner *spawner = PIN_CONTAINER_OF(task, struct spawner, task);

	if (spawner->times > 0) {
		spawner->times--;
		expect_number("itself", 0,
			spawner->times % 2 == 0 ? pinion_task_spawn(runtime, task)
						: pinion_task_respawn(runtime, task));
		expect_busy("itself twice", pinion_task_spawn(runtime, task));
	}
	return 0;
}

static void check_itself(void)
{
	struct spawner spawner = {.task = {.run = spawn_itself}, .times = 10};

	prepare();
	expect_number("spawner", 0, pinion_task_spawn(runtime, &spawner.task));
	end(11);
}

/* ---- tasks in other things ---- */

static int ignore_job(struct pinion_job *job)
{
	(void)job;
	return 0;
}

static int ignore_call(void *arg)
{
	(void)arg;
	return 0;
}

static int ignore_group(struct pinion_group_task *task)
{
	(void)task;
	return 0;
}

static int succeed(struct pinion_retry *retry)
{
	(void)retry;
	return 0;
}

static void ignore_end(struct pinion_retry *retry, int result)
{
	(void)retry;
	(void)result;
}

static void check_embedded(void)
{
	struct pinion_job job = {.run = ignore_job};
	struct pinion_job twice = {.run = ignore_job};
	struct pinion_call call = {.run = ignore_call};
	struct pinion_group_task member = {.run = ignore_group};
	struct pinion_retry retry;
	struct pinion_admission admission;
	struct pinion_group group;
	struct tasks_hold hold = {0};
	struct pinion_job *jobs[2] = {&job, &twice};

	prepare();
	has_own_functions = false;
	pinion_retry_init(&retry, succeed, ignore_end);
	expect_number("admission", 0, pinion_admission_init(&admission, runtime, NULL));
	expect_number("group", 0, pinion_group_init(&group, runtime, 0));
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("job", 0, pinion_admission_spawn(&admission, jobs, 1, NULL));
	expect_number("job again", -EBUSY, pinion_admission_spawn(&admission, jobs, 1, NULL));
	expect_number("job again, with another", -EBUSY,
		pinion_admission_spawn(&admission, jobs, 2, NULL));
	expect_number("job again, waiting", -EBUSY,
		pinion_admission_spawn_wait(&admission, jobs, 1, UINT64_MAX));
	jobs[0] = &twice;
	expect_number("one twice", -EBUSY, pinion_admission_spawn(&admission, jobs, 2, NULL));
	expect_number("nothing is left of it", PIN_TASK_IDLE, twice.task.private_kind);
	expect_number("call", 0, pinion_call_start(runtime, &call));
	expect_number("call again", -EBUSY, pinion_call_start(runtime, &call));
	expect_number("member", 0, pinion_group_spawn(&group, &member));
	expect_number("member again", -EBUSY, pinion_group_spawn(&group, &member));
	expect_number("retry", 0, pinion_retry_start(runtime, &retry));
	expect_number("retry again", -EBUSY, pinion_retry_start(runtime, &retry));
	expect_busy("a job's task", pinion_task_spawn(runtime, &job.task));
	expect_busy("a call's task", pinion_task_spawn(runtime, &call.task));
	expect_busy("a member's task", pinion_task_spawn(runtime, &member.task));
	expect_busy("a retry's task", pinion_task_spawn(runtime, &retry.timer.task));
	tasks_hold_end(&hold);
	expect_number("call", 0, pinion_future_wait(&call.done, UINT64_MAX));
	expect_number("group", 0, pinion_group_wait(&group, UINT64_MAX));
	end(5);
}

struct waiter {
	struct pinion_task task;
	struct pinion_timer timer;
	struct pinion_request timeout;
	struct pinion_request posted;
	struct pinion_wait wait;
	struct pinion_future future;
	struct pin_atomic_u32 ended_count;
	struct pin_atomic_u32 has_begun;
};

static struct waiter waiter;

static int note_end(struct pinion_task *task)
{
	expect_number("idle at its end", PIN_TASK_IDLE, task->private_kind);
	tasks_signal(&waiter.ended_count);
	return 0;
}

static void note_timer_cancel(struct pinion_task *task)
{
	(void)note_end(task);
}

/* A task that was spawned is not started as something else meanwhile. */
static void expect_busy_as_others(void)
{
	struct pinion_request *request = &waiter.timeout;

	expect_number("timer", -EBUSY, pinion_timer_start(runtime, &waiter.timer, UINT64_MAX));
	expect_number("request", -EBUSY, pinion_request_submit(runtime, &waiter.timeout));
	expect_number("requests", -EBUSY, pinion_request_submit_batch(runtime, &request, 1));
}

static void expect_tasks_busy(void)
{
	expect_busy("a timer's task", pinion_task_spawn(runtime, &waiter.timer.task));
	expect_busy("a request's task", pinion_task_spawn(runtime, &waiter.timeout.task));
	expect_busy("a posted request's task", pinion_task_spawn(runtime, &waiter.posted.task));
}

static int start_all(struct pinion_task *task)
{
	(void)task;
	expect_number("spawn", 0, pinion_task_spawn(runtime, &waiter.timer.task));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &waiter.timeout.task));
	expect_busy_as_others();
	return 0;
}

static int wait_for_all(struct pinion_task *task)
{
	(void)task;
	expect_number("timer", 0, pinion_timer_start(runtime, &waiter.timer, UINT64_MAX));
	expect_number("request", 0, pinion_request_submit(runtime, &waiter.timeout));
	expect_number("wait", 0, pinion_future_wait_async(runtime, &waiter.future, &waiter.wait));
	expect_tasks_busy();
	expect_busy("a wait's task", pinion_task_spawn(runtime, &waiter.wait.task));
	tasks_signal(&waiter.has_begun);
	return 0;
}

static void check_under_way(void)
{
	struct pinion_task starter = {.run = start_all};

	prepare();
	waiter = (struct waiter){
		.task = {.run = wait_for_all},
		.timer.task = {.run = note_end, .cancel = note_timer_cancel},
		.timeout = {.task.run = note_end,
			.op = PINION_OP_TIMEOUT,
			.deadline_ns = UINT64_MAX},
		.posted = {.task.run = note_end,
			.op = PINION_OP_TIMEOUT,
			.deadline_ns = UINT64_MAX},
		.wait = {.task.run = note_end, .deadline_ns = UINT64_MAX},
	};
	pinion_future_init(&waiter.future, runtime);
	expect_number("spawn", 0, pinion_task_spawn(runtime, &starter));
	tasks_await(&waiter.ended_count, 2);
	expect_number("posted", 0, pinion_request_submit(runtime, &waiter.posted));
	expect_number("spawn", 0, pinion_task_spawn(runtime, &waiter.task));
	tasks_await(&waiter.has_begun, 1);
	expect_tasks_busy();
	expect_number("timer's end", 0, pinion_timer_cancel(runtime, &waiter.timer));
	expect_number("request's end", 0, pinion_request_cancel(runtime, &waiter.timeout));
	expect_number("posted one's end", 0, pinion_request_cancel(runtime, &waiter.posted));
	expect_number("wait's end", 0, pinion_future_set(&waiter.future, NULL, 0));
	tasks_await(&waiter.ended_count, 6);
	/* The starter, two plain ones, who waits, request, posted one, wait. */
	end(7);
}

/* ---- refused or cancelled tasks ---- */

struct stopped {
	struct tasks_hold hold;
	struct counted queued;
	struct counted refused;
};

static int spawn_into_stop(struct pinion_task *task)
{
	struct stopped *stopped = PIN_CONTAINER_OF(task, struct stopped, hold.task);
	struct pinion_task *refused = &stopped->refused.task;

	tasks_hold_run(task);
	for (int i = 0; i < 2; i++) {
		expect_number("stopped", -ESHUTDOWN, pinion_task_spawn(runtime, refused));
		expect_number("stopped", -ESHUTDOWN, pinion_task_respawn(runtime, refused));
		expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_shared(runtime, refused));
		expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_on(runtime, 0, refused));
		expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_batch(runtime, &refused, 1));
		expect_number("idle", PIN_TASK_IDLE, refused->private_kind);
		refused->flags = PINION_TASK_HIGH;
	}
	return 0;
}

static void check_cancelled(void)
{
	struct stopped stopped = {
		.hold.task.run = spawn_into_stop,
		.queued.task = {.run = count_run, .cancel = count_cancel},
		.refused.task = {.run = count_run},
	};
	struct pinion_task *refused = &stopped.refused.task;

	prepare();
	expect_number("holder", 0, pinion_task_spawn_on(runtime, 0, &stopped.hold.task));
	tasks_await(&stopped.hold.has_begun, 1);
	expect_number("queued", 0, pinion_task_spawn(runtime, &stopped.queued.task));
	expect_number("stop", -ETIME, pinion_runtime_stop_until(runtime, 0));
	expect_busy("queued still", pinion_task_spawn(runtime, &stopped.queued.task));
	expect_number("stopped", -ESHUTDOWN, pinion_task_spawn(runtime, refused));
	expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_shared(runtime, refused));
	expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_on(runtime, 0, refused));
	expect_number("stopped", -ESHUTDOWN, pinion_task_spawn_batch(runtime, &refused, 1));
	expect_number("idle", PIN_TASK_IDLE, refused->private_kind);
	tasks_hold_end(&stopped.hold);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	expect_number("cancelled", 1, pin_load_acquire_u32(&stopped.queued.cancel_count));
	expect_number("ran", 0, pin_load_acquire_u32(&stopped.queued.run_count));
	pinion_runtime_destroy(runtime);
	expect_named();
}

static void check_refused(void)
{
	struct counted tasks[LIMIT + 2] = {{.task.run = NULL}};
	struct pinion_task *pointers[LIMIT + 2];
	struct tasks_hold hold = {0};

	prepare();
	for (uint32_t i = 0; i < LIMIT + 2; i++) {
		tasks[i].task.run = count_run;
		pointers[i] = &tasks[i].task;
	}
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("fill", 0, pinion_task_spawn_batch(runtime, pointers, LIMIT));
	expect_number("full", -EAGAIN, pinion_task_spawn(runtime, pointers[LIMIT]));
	expect_number("full", -EAGAIN, pinion_task_spawn_shared(runtime, pointers[LIMIT]));
	expect_number("full", -EAGAIN, pinion_task_spawn_batch(runtime, &pointers[LIMIT], 2));
	expect_number("no such worker", -EINVAL, pinion_task_spawn_on(runtime, 1, pointers[LIMIT]));
	expect_number("not on a worker", -EPERM, pinion_task_respawn(runtime, pointers[LIMIT]));
	for (uint32_t i = LIMIT; i < LIMIT + 2; i++) {
		expect_number("idle", PIN_TASK_IDLE, pointers[i]->private_kind);
	}
	tasks_hold_end(&hold);
	end(LIMIT + 1);
}

/* ---- many at once ---- */

struct client {
	pthread_t thread;
	uint64_t seed;
	uint64_t accepted_count;
	struct pinion_task task;
	struct pin_atomic_u64 run_count;
};

static int count_client(struct pinion_task *task)
{
	pin_fetch_add_relaxed_u64(&PIN_CONTAINER_OF(task, struct client, task)->run_count, 1);
	return 0;
}

static void *spawn_again(void *arg)
{
	struct client *client = arg;
	struct random_source random = {.state = client->seed};

	while (client->accepted_count < ITERATIONS) {
		int rc = random_below(&random, 2) == 0
			? pinion_task_spawn(runtime, &client->task)
			: pinion_task_spawn_on(
				  runtime, (uint32_t)random_below(&random, 2), &client->task);

		client->accepted_count += rc == 0;
		if (rc != 0) {
			expect_number("refused", -EBUSY, rc);
			sched_yield();
		}
	}
	return NULL;
}

static void check_together(uint64_t seed)
{
	struct client clients[THREADS];

	runtime = runtimes_start(2, PINION_IO_AUTO);
	for (uint32_t i = 0; i < THREADS; i++) {
		clients[i] = (struct client){.seed = seed + i, .task.run = count_client};
		expect_ready("thread",
			pthread_create(&clients[i].thread, NULL, spawn_again, &clients[i]) == 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(clients[i].thread, NULL);
	}
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	for (uint32_t i = 0; i < THREADS; i++) {
		expect_number("runs", (long long)clients[i].accepted_count,
			(long long)pin_load_acquire_u64(&clients[i].run_count));
	}
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	static const uint32_t flags[] = {
		0, PINION_TASK_MANDATORY, PINION_TASK_HIGH, PINION_TASK_LOW};
	struct random_source random;
	uint64_t seed = random_begin(&random);

	runtimes_watchdog(LIMIT_SECONDS);
	for (uint32_t i = 0; i < PIN_ARRAY_COUNT(flags); i++) {
		check_outside(flags[i]);
		check_inside(spawn_twice, flags[i]);
		check_inside(respawn_twice, flags[i]);
		check_inside(post_twice, flags[i]);
	}
	check_itself();
	check_embedded();
	check_under_way();
	check_cancelled();
	check_refused();
	check_together(seed);
	return expect_status();
}
