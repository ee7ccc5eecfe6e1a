/* SPDX-License-Identifier: MIT */
/*
 * Goal: in a child of the process that made it a pool answers every call with
 * -ECHILD and changes nothing; the parent's goes on, with its caches, its
 * buffers and those who wait.
 * Method: children try all calls, on a pool alone and on a runtime's; this
 * thread is attached and has a buffer, and what it wrote is still there.
 */
#include "tests/support/child.h"
#include "tests/support/users.h"

enum {
	LIMIT_SECONDS = 60,
};

static struct pinion_pool *pool;
static struct pinion_runtime *runtime;
static struct pinion_buffer held;

static int run_never(struct pinion_task *task)
{
	(void)task;
	expect_true("a wait ran in the child", false);
	return 0;
}

static int try_all(void *arg)
{
	struct pinion_pool_wait wait = {.wait = {.task = {.run = run_never}}};
	struct pinion_buffer buffer = {NULL, 7, 7};
	struct pinion_buffer copy = held;
	struct pinion_pool *made = NULL;
	struct pinion_pool_config config;

	(void)arg;
	users_config(&config, 1, 1, 1);
	expect_number("try_acquire", -ECHILD, pinion_pool_try_acquire(pool, &buffer));
	expect_number("acquire", -ECHILD, pinion_pool_acquire_wait(pool, 0, &buffer));
	expect_number("for ever", -ECHILD, pinion_pool_acquire_wait(pool, UINT64_MAX, &buffer));
	expect_number("written on success only", 7, buffer.index);
	expect_number("release", -ECHILD, pinion_pool_release(pool, &copy));
	expect_true("the handle is as it was", memcmp(&copy, &held, sizeof(held)) == 0);
	expect_true("no bytes", pinion_pool_bytes(pool, &held) == NULL);
	expect_number("clear", -ECHILD, pinion_pool_clear(pool, &held));
	expect_number("attach", -ECHILD, pinion_pool_attach(pool));
	expect_number("detach", -ECHILD, pinion_pool_detach(pool));
	expect_number("await", -ECHILD, pinion_pool_acquire_async(runtime, pool, &wait));
	expect_number("destroy", -ECHILD, pinion_pool_destroy(pool));
	expect_number("create", -ECHILD, pinion_pool_create(runtime, &config, &made));
	/* It may have one of its own. */
	made = users_pool(NULL, 1, 1, 1);
	buffer = users_take(made);
	memset(buffer.bytes, 1, 4096);
	users_give(made, &buffer);
	users_end(made);
	return expect_status();
}

static void check_fork(void)
{
	struct pinion_buffer buffer;

	expect_number("attach", 0, pinion_pool_attach(pool));
	held = users_take(pool);
	memset(held.bytes, 3, 4096);
	expect_number("in the child", 0, child_code(child_run(try_all, NULL, NULL, 0)));
	for (int i = 0; i < 4096; i++) {
		if (held.bytes[i] != 3) {
			expect_true("the parent's bytes are as they were", false);
			break;
		}
	}
	buffer = users_take(pool);
	memset(buffer.bytes, 1, 4096);
	users_give(pool, &buffer);
	users_give(pool, &held);
	expect_number("detach", 0, pinion_pool_detach(pool));
	users_end(pool);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	pool = users_pool(NULL, 1, 2, 3);
	runtime = users_runtime(1, 1 << 20);
	check_fork();
	pool = users_pool(runtime, 0, 2, 3);
	check_fork();
	pinion_runtime_destroy(runtime);
	return expect_status();
}
