/* SPDX-License-Identifier: MIT */
/*
 * Goal: a worker's thread is known as that worker until its end, and not after
 * it: code that runs on it then, destructors of its own data, uses pools as any
 * other thread does. BP-14, W1.
 * Method: a task of each worker uses its cache, and leaves a buffer and a key's
 * value, whose destructor asks who it is and gives the buffer back.
 */
#include "runtime/api/internal.h"
#include "tests/support/users.h"

enum {
	WORKERS = 3,
	BUFFERS = 4 * WORKERS,
	LIMIT_SECONDS = 30,
};

static struct pinion_runtime *runtime;
static struct pinion_pool *pool;
static pthread_key_t key;
static struct pin_atomic_u32 end_count;

struct leaver {
	uint32_t index;
	struct pinion_buffer left;
};

static struct leaver leavers[WORKERS];

/* By its cache, which has what it gives back. */
static void leave_something(void *arg)
{
	struct leaver *leaver = arg;
	struct pinion_buffer used = users_take(pool);

	leaver->left = users_take(pool);
	users_give(pool, &used);
	expect_number("its number", leaver->index, pinion_worker_index(runtime));
	expect_number("has a cache anyway", -EALREADY, pinion_pool_attach(pool));
	expect_number("key", 0, pthread_setspecific(key, leaver));
}

static void after_its_end(void *arg)
{
	struct leaver *leaver = arg;
	uint32_t cached = pinion_pool_available_local(pool, leaver->index);

	expect_number("no worker", -ENOENT, pinion_worker_index(runtime));
	expect_number("has no cache", -EPERM, pinion_pool_detach(pool));
	users_give(pool, &leaver->left);
	expect_number("not into the worker's cache", cached,
		pinion_pool_available_local(pool, leaver->index));
	tasks_signal(&end_count);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	expect_ready("key", pthread_key_create(&key, after_its_end) == 0);
	runtime = users_runtime(WORKERS, 1 << 20);
	pool = users_pool(runtime, 0, 2, BUFFERS);
	for (uint32_t i = 0; i < WORKERS; i++) {
		leavers[i].index = i;
		users_on(runtime, i, leave_something, &leavers[i]);
	}
	expect_number("join", 0, pinion_runtime_join(runtime));
	tasks_await(&end_count, WORKERS);
	users_end(pool);
	pinion_runtime_destroy(runtime);
	return expect_status();
}
