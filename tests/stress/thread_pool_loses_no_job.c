/* SPDX-License-Identifier: MIT */
/*
 * Goal: while a thread pool is resized again and again, at random, each job
 * that 8 threads spawn runs exactly once, with all that it spawns, and each
 * timer ends once; no wake comes too late. W49, W52, WP-36.
 * Method: jobs of random lanes, to any worker or to a given one, that spawn
 * others, start timers or cancel one; each counts itself. PINION_SEED repeats
 * the choices.
 */
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/thread_pool.h>

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ITERATIONS = 40,
#else
	ITERATIONS = 400,
#endif
	SPAWNERS = 8,
	JOBS = 16, /* of each, under way at once */
	CHILDREN = 3,
	MAX = 3,
	PLACES = 3 * MAX,
	RUN_SECONDS = 110,
};

struct job {
	struct pinion_task task;
	struct pinion_task children[CHILDREN];
	struct pinion_timer timer;
	struct spawner *spawner;
	uint32_t child_count;
	bool has_timer;
	bool cancels;
	struct pin_atomic_u32 runs; /* of it and its children, and its timer's end */
};

struct spawner {
	pthread_t thread;
	struct random_source random;
	struct job jobs[JOBS];
	struct pin_atomic_u32 ended;
	uint32_t due;
};

static struct pinion_runtime *thread_pool;
static struct spawner spawners[SPAWNERS];
static struct pin_atomic_u32 is_over;

static void note(struct job *job)
{
	pin_fetch_add_acq_rel_u32(&job->runs, 1);
	/* The last touch. */
	tasks_signal(&job->spawner->ended);
}

static struct job *job_of(struct pinion_task *task)
{
	uint32_t index = (uint32_t)(((uintptr_t)task - (uintptr_t)spawners) / sizeof(spawners[0]));
	struct spawner *spawner = &spawners[index];

	return &spawner->jobs[((uintptr_t)task - (uintptr_t)spawner->jobs) / sizeof(struct job)];
}

static int run_child(struct pinion_task *task)
{
	note(job_of(task));
	return 0;
}

static void cancel_timer(struct pinion_task *task)
{
	note(job_of(task));
}

static int run_job(struct pinion_task *task)
{
	struct job *job = job_of(task);

	for (uint32_t i = 0; i < job->child_count; i++) {
		expect_number("child", 0, pinion_task_spawn(thread_pool, &job->children[i]));
	}
	if (job->has_timer) {
		expect_number("timer", 0,
			pinion_timer_start(thread_pool, &job->timer,
				pinion_clock_now_ns() +
					(job->cancels ? UINT64_C(3600000000000) : 50000)));
		if (job->cancels) {
			/* It may be on any worker's wheel, or between two. */
			expect_number("cancel", 0, pinion_timer_cancel(thread_pool, &job->timer));
		}
	}
	note(job);
	return 0;
}

static void spawn_one(struct spawner *spawner, struct job *job)
{
	static const uint32_t flags[] = {PINION_TASK_HIGH, 0, PINION_TASK_LOW};
	struct random_source *random = &spawner->random;

	*job = (struct job){.spawner = spawner};
	job->child_count = (uint32_t)random_below(random, CHILDREN + 1);
	job->has_timer = random_below(random, 3) == 0;
	job->cancels = random_below(random, 2) == 0;
	job->task = (struct pinion_task){.run = run_job, .flags = flags[random_below(random, 3)]};
	job->timer.task = (struct pinion_task){.run = run_child, .cancel = cancel_timer};
	for (uint32_t i = 0; i < CHILDREN; i++) {
		job->children[i] = (struct pinion_task){
			.run = run_child, .flags = flags[random_below(random, 3)]};
	}
	spawner->due += 1 + job->child_count + (job->has_timer ? 1 : 0);
	if (random_below(random, 3) == 0) {
		job->task.flags = 0;
		expect_number("spawn_on", 0,
			pinion_task_spawn_on(
				thread_pool, (uint32_t)random_below(random, PLACES), &job->task));
	} else {
		expect_number("spawn", 0, pinion_task_spawn(thread_pool, &job->task));
	}
}

static void *spawn(void *arg)
{
	struct spawner *spawner = arg;
	uint32_t rounds = tasks_iterations(ITERATIONS);

	for (uint32_t round = 0; round < rounds; round++) {
		spawner->due = 0;
		pin_store_release_u32(&spawner->ended, 0);
		for (uint32_t i = 0; i < JOBS; i++) {
			spawn_one(spawner, &spawner->jobs[i]);
		}
		tasks_await(&spawner->ended, spawner->due);
		for (uint32_t i = 0; i < JOBS; i++) {
			const struct job *job = &spawner->jobs[i];

			expect_number("runs of a job", 1 + job->child_count + job->has_timer,
				pin_load_acquire_u32(&job->runs));
		}
	}
	return NULL;
}

static void *resize(void *arg)
{
	struct random_source *random = arg;
	uint32_t count = 0;

	while (pin_load_acquire_u32(&is_over) == 0) {
		struct pinion_thread_pool_sizes sizes = {
			(uint32_t)random_below(random, MAX + 1),
			(uint32_t)random_below(random, MAX + 1),
			1 + (uint32_t)random_below(random, MAX),
		};

		expect_number("resize", 0, pinion_thread_pool_resize(thread_pool, &sizes));
		count++;
	}
	printf("%u resizes\n", count);
	return NULL;
}

int main(void)
{
	struct pinion_thread_pool_sizes sizes = {1, 2, 1};
	struct pinion_runtime_stats counters;
	struct pinion_config config;
	struct random_source random;
	uint64_t seed = random_begin(&random);
	pthread_t resizer;

	runtimes_watchdog(RUN_SECONDS);
	pinion_thread_pool_config_init(&config);
	config.tuning = runtimes_thread_pool_tuning();
	runtimes_tuning.thread_pool_max = MAX;
	/* Strict, low would wait for as long as anything else comes. */
	runtimes_tuning.lane_floor = 16;
	expect_ready("create", pinion_thread_pool_create(&config, &sizes, &thread_pool) == 0);
	for (uint32_t i = 0; i < SPAWNERS; i++) {
		spawners[i].random.state = seed + i;
		expect_ready("thread",
			pthread_create(&spawners[i].thread, NULL, spawn, &spawners[i]) == 0);
	}
	expect_ready("thread", pthread_create(&resizer, NULL, resize, &random) == 0);
	for (uint32_t i = 0; i < SPAWNERS; i++) {
		pthread_join(spawners[i].thread, NULL);
	}
	pin_store_release_u32(&is_over, 1);
	pthread_join(resizer, NULL);
	expect_number("drain", 0, pinion_runtime_drain(thread_pool));
	counters = runtimes_counters(thread_pool);
	expect_number("run and cancelled", (long long)counters.tasks_spawned,
		(long long)(counters.tasks_run + counters.tasks_cancelled));
	expect_number("safety net", 0, (long long)counters.park_timeout_found_work);
	pinion_runtime_destroy(thread_pool);
	return expect_status();
}
