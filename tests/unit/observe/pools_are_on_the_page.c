/* SPDX-License-Identifier: MIT */
/*
 * Goal: the metrics page has how many pools and buffers a runtime has, and how
 * often none was free and how often and for how long a thread waited, of pools
 * that have ended too; pools of no runtime are not among them, and without
 * pools all of it is 0. While all workers sleep a wait is shown as well.
 * BP-26, C17.
 * Method: a runtime of one worker, which publishes when a task has run; then a
 * runtime whose worker has run none.
 */
#include "tests/support/metrics.h"
#include "tests/support/runtimes.h"
#include "tests/support/tasks.h"

#include <errno.h>
#include <pinion/timer.h>

enum { BUFFERS = 4, BUFFER_BYTES = 4096, SHORTAGES = 3, WAIT_NS = 2000000, TRIES_MAX = 100 };

static struct pinion_runtime *runtime;
static struct pinion_metrics *metrics;

static struct pin_atomic_u32 ended; /* tasks */
static uint32_t spawned;

static int end(struct pinion_task *task)
{
	(void)task;
	tasks_signal(&ended);
	return 0;
}

static long long value(const char *name)
{
	uint64_t found = UINT64_MAX;
	int row = pinion_metrics_find(metrics, name, PINION_METRICS_RUNTIME, UINT32_MAX);

	expect_true(name, row >= 0);
	expect_number(name, 0, pinion_metrics_read(metrics, (uint32_t)row, 0, &found));
	return (long long)found;
}

/* The worker publishes while tasks run, and before it sleeps. */
static void expect_pools(long long pools, long long exhausted)
{
	long long before = 0;

	do {
		struct pinion_task task = {.run = end};
		uint64_t run;

		expect_number("spawn", 0, pinion_task_spawn(runtime, &task));
		take_snapshot(metrics);
		for (run = 0; run <= (uint64_t)before; sched_yield()) {
			take_snapshot(metrics);
			run = worker_value(metrics, "tasks_run", 0);
		}
		before = (long long)run;
		/* The count of the page orders nothing. */
		tasks_await(&ended, ++spawned);
	} while (value("pools") != pools || value("pool_exhausted") != exhausted);
	expect_number("buffers", pools * BUFFERS, value("pool_buffers"));
	expect_number("none doubtful", 0, value("pool_false_nulls"));
}

static struct pinion_pool *make_pool(struct pinion_runtime *of)
{
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	pinion_pool_config_init(&config);
	config.worker_count = of == NULL ? 1 : config.worker_count;
	config.local_count = 1;
	config.buffer_count = BUFFERS;
	config.buffer_bytes = BUFFER_BYTES;
	expect_ready("pool", pinion_pool_create(of, &config, &pool) == 0);
	return pool;
}

/* One of them waits until its time is over. */
static void wait_in_vain(struct pinion_pool *pool)
{
	struct pinion_buffer none;

	expect_number("none in time", -ETIME,
		pinion_pool_acquire_wait(pool, pinion_clock_now_ns() + WAIT_NS, &none));
}

static long long exhausted_of(const struct pinion_pool *pool)
{
	struct pinion_pool_stats stats;

	pinion_pool_get_stats(pool, &stats, sizeof(stats));
	return (long long)stats.exhausted;
}

/*
 * While the worker sleeps, the threads that wait write the page. In the moment
 * in which the worker writes it they do not, so it is tried again.
 */
static void expect_shown_asleep(struct pinion_pool *pool)
{
	long long waits;

	for (int i = 0; i < TRIES_MAX; i++) {
		wait_in_vain(pool);
		take_snapshot(metrics);
		waits = value("pool_waits");
		if (waits == i + 1 && value("pool_exhausted") == exhausted_of(pool)) {
			expect_true("their time", value("pool_wait_ns") >= waits * WAIT_NS);
			return;
		}
	}
	expect_ready("a wait is shown while the worker sleeps", false);
}

static void check_asleep(void)
{
	struct pinion_pool *pool = make_pool(runtime);
	struct pinion_buffer buffers[BUFFERS];

	for (uint32_t i = 0; i < BUFFERS; i++) {
		expect_number("buffer", 0, pinion_pool_try_acquire(pool, &buffers[i]));
	}
	expect_shown_asleep(pool);
	expect_number("pools", 1, value("pools"));
	expect_number("buffers", BUFFERS, value("pool_buffers"));
	for (uint32_t i = 0; i < BUFFERS; i++) {
		pinion_pool_release(pool, &buffers[i]);
	}
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

/* From outside, until none is free and some more times. */
static void run_dry(struct pinion_pool *pool)
{
	struct pinion_buffer buffers[BUFFERS];
	struct pinion_buffer none;

	for (uint32_t i = 0; i < BUFFERS; i++) {
		expect_number("buffer", 0, pinion_pool_try_acquire(pool, &buffers[i]));
	}
	for (uint32_t i = 0; i < SHORTAGES - 1; i++) {
		expect_true("none", pinion_pool_try_acquire(pool, &none) != 0);
	}
	wait_in_vain(pool);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		pinion_pool_release(pool, &buffers[i]);
	}
}

int main(void)
{
	struct pinion_config config;
	struct pinion_pool *pool;
	struct pinion_pool *other;
	struct pinion_pool *apart;
	long long exhausted;
	long long wait_ns;

	runtimes_config(&config, 1, PINION_IO_FALLBACK);
	config.pool_bytes = 1 << 20;
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	metrics = open_own(0);
	expect_pools(0, 0);
	pool = make_pool(runtime);
	other = make_pool(runtime);
	apart = make_pool(NULL);
	run_dry(pool);
	run_dry(other);
	run_dry(apart);
	exhausted = exhausted_of(pool) + exhausted_of(other);
	expect_true("each time", exhausted >= 2 * SHORTAGES);
	expect_pools(2, exhausted);
	expect_number("waits", 2, value("pool_waits"));
	wait_ns = value("pool_wait_ns");
	expect_true("their time", wait_ns >= 2 * WAIT_NS);
	expect_number("destroy", 0, pinion_pool_destroy(pool));
	expect_pools(1, exhausted);
	expect_number("destroy", 0, pinion_pool_destroy(other));
	expect_pools(0, exhausted);
	expect_number("waits", 2, value("pool_waits"));
	expect_number("as before", wait_ns, value("pool_wait_ns"));
	expect_number("destroy", 0, pinion_pool_destroy(apart));
	pinion_metrics_close(metrics);
	expect_number("drain", 0, pinion_runtime_drain(runtime));
	pinion_runtime_destroy(runtime);
	expect_ready("runtime", pinion_runtime_create(&config, &runtime) == 0);
	metrics = open_own(0);
	check_asleep();
	pinion_metrics_close(metrics);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
