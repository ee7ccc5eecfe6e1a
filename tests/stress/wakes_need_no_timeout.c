/* SPDX-License-Identifier: MIT */
/*
 * Goal: no sleeping worker is ever left to its safety net: with
 * `park_timeout_us` set, park_timeout_found_work stays 0 however the work
 * comes, with and without a read in flight, for each wake policy. AS-21, AS-31,
 * C5, EX-13, W13, W22, W26, W27, W33, W40.
 * Method: rounds in which a thread spawns a task or a few, after a random short
 * while, and sleeps until they have run; with a timeout of 100 ms, which ends
 * sleeps of those workers that have nothing to do, and of 1 ms, which ends them
 * all the time. A round whose wake was lost ends late, by the timeout, and
 * counts; it ends no sooner than the safety net believes that the waker cannot
 * merely have been kept from running, which is long here, on machines however
 * busy: nothing but another thread's wake ends it before.
 * STRESS_ITERATIONS says how many rounds each setting has.
 */
#include "runtime/worker/state.h"
#include "tests/support/pending.h"
#include "tests/support/random.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

enum {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	ROUNDS = 1000,
#else
	ROUNDS = 4000,
#endif
	SETTING_SECONDS = 600,
	WAKER_DELAY_SECONDS = 60,
	WORKERS_MAX = 8,
	TASKS_MAX = 6,
	RELAX_MAX = 2000,
};

static struct pinion_runtime *runtime;
static struct pin_atomic_u32 done;

static int answer(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&done);
	return 0;
}

/* Some from outside, some passed on from one worker to another. */
static struct pinion_task *relayed;

static int relay(struct pinion_task *task)
{
	uint32_t worker_count = pinion_runtime_worker_count(runtime);
	uint32_t next = (uint32_t)(pinion_worker_index(runtime) + 1) % worker_count;

	(void)task;
	expect_number("spawn_on", 0, pinion_task_spawn_on(runtime, next, relayed));
	return 0;
}

static void run_round(struct random_source *source, uint32_t worker_count)
{
	struct pinion_task tasks[TASKS_MAX];
	struct pinion_task *pointers[TASKS_MAX];
	struct pinion_task first = {.run = relay};
	uint32_t wanted = 1;

	for (int i = 0; i < TASKS_MAX; i++) {
		tasks[i] = (struct pinion_task){.run = answer};
		pointers[i] = &tasks[i];
	}
	for (uint64_t i = random_below(source, RELAX_MAX); i > 0; i--) {
		pin_cpu_relax();
	}
	pin_store_release_u32(&done, 0);
	switch (random_below(source, 4)) {
	case 0:
		wanted = 1 + (uint32_t)random_below(source, TASKS_MAX);
		expect_number("batch", 0, pinion_task_spawn_batch(runtime, pointers, wanted));
		break;
	case 1:
		expect_number("spawn_on", 0,
			pinion_task_spawn_on(
				runtime, (uint32_t)random_below(source, worker_count), &tasks[0]));
		break;
	case 2:
		relayed = &tasks[0];
		expect_number("spawn", 0, pinion_task_spawn(runtime, &first));
		break;
	default:
		expect_number("spawn", 0, pinion_task_spawn(runtime, &tasks[0]));
		break;
	}
	tasks_await(&done, wanted);
}

/* On each worker before it first sleeps. */
static int give_wakers_time(void *arg, uint32_t worker_index, void **out_context)
{
	(void)arg;
	(void)worker_index;
	(void)out_context;
	pin_worker_of_thread()->waker_delay_ns = UINT64_C(1000000000) * WAKER_DELAY_SECONDS;
	return 0;
}

static void check(struct random_source *source, uint32_t worker_count, uint32_t timeout_us,
	bool has_read, uint32_t rounds)
{
	struct pinion_runtime_stats counters;
	struct pinion_runtime_info facts;
	struct pinion_config config;
	struct pending_read reads[WORKERS_MAX];
	struct pinion_file file;
	int ends[2];

	runtimes_watchdog(SETTING_SECONDS);
	runtimes_config(&config, worker_count, PINION_IO_AUTO);
	runtimes_tuning.park_timeout_us = timeout_us;
	/* The watchdog would find the work that a lost wake leaves. */
	runtimes_tuning.watchdog_us = 0;
	runtimes_tuning.wake_policy = (uint32_t)random_below(source, 3);
	config.after_start = give_wakers_time;
	expect_number("create", 0, pinion_runtime_create(&config, &runtime));
	pinion_runtime_get_info(runtime, &facts, sizeof(facts));
	if (has_read && facts.uses_ring == 0) {
		printf("no io_uring, so no read stays in flight: %s\n", facts.fallback_cause);
		pinion_runtime_destroy(runtime);
		return;
	}
	expect_ready("pipe", pipe(ends) == 0);
	if (has_read) {
		file = runtimes_plain_file(ends[0]);
		for (uint32_t i = 0; i < worker_count; i++) {
			pending_begin(&reads[i], runtime, i, &file);
		}
	}
	for (uint32_t i = 0; i < rounds; i++) {
		run_round(source, worker_count);
	}
	counters = runtimes_counters(runtime);
	printf("%u workers, timeout %u us%s: %llu parks on a futex, %llu in a ring\n", worker_count,
		timeout_us, has_read ? ", reading" : "", (unsigned long long)counters.parks_futex,
		(unsigned long long)counters.parks_ring);
	/* Else the rounds would have shown nothing. */
	expect_true("workers slept", (has_read ? counters.parks_ring : counters.parks_futex) > 0);
	expect_number("park_timeout_found_work", 0, (long long)counters.park_timeout_found_work);
	expect_number("stop", 0, pinion_runtime_stop(runtime));
	counters = runtimes_counters(runtime);
	expect_number("at the end", 0, (long long)counters.park_timeout_found_work);
	pinion_runtime_destroy(runtime);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	static const uint32_t counts[] = {1, 2, WORKERS_MAX};
	struct random_source source;
	uint32_t rounds = tasks_iterations(ROUNDS);

	random_begin(&source);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(counts); i++) {
		check(&source, counts[i], 100 * 1000, false, rounds);
		check(&source, counts[i], 100 * 1000, true, rounds);
		check(&source, counts[i], 1000, false, rounds);
		check(&source, counts[i], 1000, true, rounds);
	}
	return expect_status();
}
