/* SPDX-License-Identifier: MIT */
/*
 * Goal: workers have a cache each, other threads one while they are attached,
 * workers of other runtimes among them; there are as many as configured, and
 * the buffers left in a cache come back when its thread leaves. BP-3, BP-4,
 * BP-14, W1.
 * Method: each call, on this thread, on attached threads and on workers, one
 * after the other; where each buffer came from is counted.
 */
#include "tests/support/users.h"

enum { LIMIT_SECONDS = 60 };

static void check_attach(void)
{
	struct pinion_pool *pool = users_pool(NULL, 2, 2, 6);
	struct pinion_buffer buffer;

	/* Without a cache: from the list. */
	expect_number("not attached", -EPERM, pinion_pool_detach(pool));
	buffer = users_take(pool);
	expect_number("from outside", 1, (long long)users_counters(pool).outside);
	expect_number("from the list", 1, users_shared(pool));
	users_give(pool, &buffer);
	expect_number("attach", 0, pinion_pool_attach(pool));
	expect_number("twice", -EALREADY, pinion_pool_attach(pool));
	buffer = users_take(pool);
	expect_number("from its cache", 1, (long long)users_counters(pool).local_hits);
	expect_number("which had two", 1, pinion_pool_available_local(pool, 0));
	users_give(pool, &buffer);
	expect_number("back there", 2, pinion_pool_available_local(pool, 0));
	expect_number("detach", 0, pinion_pool_detach(pool));
	expect_number("gave all it had to all", 4, users_shared(pool));
	expect_number("left nothing", 0, pinion_pool_available_local(pool, 0));
	expect_number("detach again", -EPERM, pinion_pool_detach(pool));
	expect_number("a cache that is none", 0, pinion_pool_available_local(pool, 99));
	users_end(pool);
}

struct attached {
	struct pinion_pool *pool;
	struct pin_atomic_u32 is_attached;
	struct pin_atomic_u32 may_end;
	int rc;
};

static void *attach_and_hold(void *arg)
{
	struct attached *attached = arg;

	attached->rc = pinion_pool_attach(attached->pool);
	tasks_signal(&attached->is_attached);
	tasks_await(&attached->may_end, 1);
	if (attached->rc == 0) {
		expect_number("detach", 0, pinion_pool_detach(attached->pool));
	}
	return NULL;
}

/* One cache for workers and one more: two threads can have one. */
static void check_all_taken(void)
{
	struct pinion_pool_config config;
	struct attached attached[3];
	pthread_t threads[3];
	struct pinion_pool *pool;

	users_config(&config, 1, 1, 4);
	config.thread_count = 1;
	pool = users_create(NULL, &config);
	for (int i = 0; i < 3; i++) {
		attached[i] = (struct attached){.pool = pool};
		expect_ready("thread",
			pthread_create(&threads[i], NULL, attach_and_hold, &attached[i]) == 0);
		tasks_await(&attached[i].is_attached, 1);
		expect_number("attach", i < 2 ? 0 : -EAGAIN, attached[i].rc);
	}
	tasks_signal(&attached[0].may_end);
	pthread_join(threads[0], NULL);
	expect_number("one has left", 0, pinion_pool_attach(pool));
	expect_number("detach", 0, pinion_pool_detach(pool));
	for (int i = 1; i < 3; i++) {
		tasks_signal(&attached[i].may_end);
		pthread_join(threads[i], NULL);
	}
	users_end(pool);
}

static void check_many_attachments(void)
{
	struct pinion_pool *pools[9];

	for (int i = 0; i < 9; i++) {
		pools[i] = users_pool(NULL, 1, 1, 2);
		expect_number("attach", i < 8 ? 0 : -EMFILE, pinion_pool_attach(pools[i]));
	}
	for (int i = 0; i < 8; i++) {
		expect_number("detach", 0, pinion_pool_detach(pools[i]));
	}
	expect_number("attach", 0, pinion_pool_attach(pools[8]));
	expect_number("detach", 0, pinion_pool_detach(pools[8]));
	for (int i = 0; i < 9; i++) {
		users_end(pools[i]);
	}
}

struct attaching {
	int rc;
	struct pinion_pool *pool;
};

static void attach_worker(void *arg)
{
	struct attaching *attaching = arg;

	attaching->rc = pinion_pool_attach(attaching->pool);
}

static void detach_worker(void *arg)
{
	struct attaching *attaching = arg;

	attaching->rc = pinion_pool_detach(attaching->pool);
}

/* Workers have their caches; those of another runtime attach as threads do. */
static void check_workers_caches(void)
{
	struct pinion_runtime *runtime = users_runtime(2, 1 << 20);
	struct pinion_runtime *other = users_runtime(1, 0);
	struct attaching attaching = {.pool = users_pool(runtime, 0, 2, 6)};
	struct users_taking taking = {.pool = attaching.pool, .count = 3};

	users_on(runtime, 1, attach_worker, &attaching);
	expect_number("a worker has one", -EALREADY, attaching.rc);
	users_on(runtime, 1, detach_worker, &attaching);
	expect_number("and keeps it", -EPERM, attaching.rc);
	users_on(runtime, 1, users_take_some, &taking);
	expect_number("its own first, then the list", 2,
		(long long)users_counters(taking.pool).local_hits);
	expect_number("in one go", 1, (long long)users_counters(taking.pool).refills);
	expect_number("the other's is full", 2, pinion_pool_available_local(taking.pool, 0));
	users_on(runtime, 1, users_give_some, &taking);
	users_on(other, 0, attach_worker, &attaching);
	expect_number("another runtime's worker", 0, attaching.rc);
	users_on(other, 0, users_take_some, &taking);
	users_on(other, 0, users_give_some, &taking);
	expect_number(
		"has one of those for threads", 2, pinion_pool_available_local(taking.pool, 2));
	users_on(other, 0, detach_worker, &attaching);
	expect_number("until it leaves", 0, attaching.rc);
	expect_number("outside", 0, (long long)users_counters(taking.pool).outside);
	users_end(taking.pool);
	pinion_runtime_destroy(other);
	pinion_runtime_destroy(runtime);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_attach();
	check_all_taken();
	check_many_attachments();
	check_workers_caches();
	return expect_status();
}
