/* SPDX-License-Identifier: MIT */
/*
 * Goal: a pool does for its users as its header says, alone and with a runtime:
 * from where it takes, the return of each mistake, its counts, the effect of
 * requests on it, and when it ends. BP-4, BP-5, BP-7, BP-12, BP-20, BP-38,
 * BP-39, BP-40, BP-41, BP-42, BP-43, BP-45, BP-46, BP-47, BP-T5, W7, G2.
 * Method: each call, one after the other, from this thread and on workers.
 */
#include "runtime/api/internal.h"
#include "runtime/task/entry.h"
#include "tests/support/requests.h"
#include "tests/support/users.h"

#include <sys/socket.h>
#include <unistd.h>

enum {
	POOLS_ENDED = 500,
	LIMIT_SECONDS = 60,
};

/* ---- taking and giving ---- */

/* All in caches of workers that never come: they are found there. */
static void check_all_are_found(void)
{
	struct pinion_pool *pool = users_pool(NULL, 4, 2, 8);
	struct pinion_buffer buffers[8];
	struct pinion_buffer none = {NULL, 7, 7};

	expect_number("none is listed", 0, users_shared(pool));
	for (int i = 0; i < 8; i++) {
		buffers[i] = users_take(pool);
		expect_number("available", 7 - i, users_free(pool));
		for (int j = 0; j < i; j++) {
			expect_true("all are different", buffers[i].bytes != buffers[j].bytes);
		}
	}
	expect_number("then none", -EAGAIN, pinion_pool_try_acquire(pool, &none));
	expect_number("written on success only", 7, none.index);
	expect_number("waiting until now", -ETIME, pinion_pool_acquire_wait(pool, 0, &none));
	expect_number("likewise", 7, none.index);
	expect_true("exhausted", users_counters(pool).exhausted >= 2);
	expect_number("outside", 8, (long long)users_counters(pool).outside);
	expect_number("BP-5: each worker's robbed once", 4, (long long)users_counters(pool).steals);
	for (int i = 0; i < 8; i++) {
		users_give(pool, &buffers[i]);
	}
	expect_number("acquire finds one", 0, pinion_pool_acquire_wait(pool, 0, &none));
	users_give(pool, &none);
	users_end(pool);
}

static void check_misuse(void)
{
	struct pinion_pool *pool = users_pool(NULL, 1, 2, 2);
	struct pinion_buffer buffer;
	struct pinion_buffer copy;
	struct pinion_buffer wrong;

	expect_number("attach", 0, pinion_pool_attach(pool));
	buffer = users_take(pool);
	copy = buffer;
	wrong = buffer;
	wrong.bytes += 64;
	runtimes_log[0] = '\0';
	expect_number("inside", -EINVAL, pinion_pool_release(pool, &wrong));
	users_expect_said("is inside buffer");
	expect_true("no bytes of it", pinion_pool_bytes(pool, &wrong) == NULL);
	expect_number("nor a clear", -EINVAL, pinion_pool_clear(pool, &wrong));
	wrong = (struct pinion_buffer){NULL, 0, 0};
	expect_number("an empty handle", -EINVAL, pinion_pool_release(pool, &wrong));
	expect_number("borrowed", PIN_POOL_IS_BORROWED,
		pin_pool_borrow(&pool->pool.entries[buffer.index], 0));
	expect_number("the kernel's", -EBUSY, pinion_pool_release(pool, &buffer));
	expect_true("the handle is as it was", memcmp(&buffer, &copy, sizeof(buffer)) == 0);
	expect_number("no clear then", -EBUSY, pinion_pool_clear(pool, &buffer));
	expect_true("but unchanged", pinion_pool_bytes(pool, &buffer) == buffer.bytes);
	pin_pool_end_borrow(&pool->pool.entries[buffer.index]);
	users_give(pool, &buffer);
	users_expect_said("until its request has completed; taken by worker 0");
	expect_number("by a copy", -EALREADY, pinion_pool_release(pool, &copy));
	users_expect_said("was given back before; taken last by worker 0");
	expect_true("no bytes of it", pinion_pool_bytes(pool, &copy) == NULL);
	buffer = users_take(pool);
	expect_number("by the copy, taken anew", -EALREADY, pinion_pool_release(pool, &copy));
	users_expect_said("and is in use again");
	expect_true("the new owner's bytes", pinion_pool_bytes(pool, &buffer) == buffer.bytes);
	users_give(pool, &buffer);
	expect_number("counted", 10, (long long)users_counters(pool).misuses);
	expect_number("detach", 0, pinion_pool_detach(pool));
	expect_number("all are there", 2, users_free(pool));
	expect_number("destroy", 0, pinion_pool_destroy(pool));
}

/* Taken by one, given back by another: it goes to the other's cache. */
static void check_counters(void)
{
	struct pinion_runtime *runtime = users_runtime(2, 1 << 20);
	struct pinion_pool *pool = users_pool(runtime, 0, 2, 6);
	struct users_taking taking = {.pool = pool, .count = 6};
	struct {
		struct pinion_pool_stats known;
		uint64_t later;
	} newer;
	struct pinion_pool_stats counters;
	uint64_t first[2] = {0, 99};

	users_on(runtime, 0, users_take_some, &taking);
	counters = users_counters(pool);
	expect_number("local_hits", 2, (long long)counters.local_hits);
	expect_number("refills, one of what a theft left", 3, (long long)counters.refills);
	expect_number("steals", 1, (long long)(counters.steals > 0));
	expect_number("outside", 0, (long long)counters.outside);
	expect_number("spills", 0, (long long)counters.spills);
	users_on(runtime, 1, users_give_some, &taking);
	counters = users_counters(pool);
	/* It was robbed, so the first was passed on. */
	expect_number("half a cache at a time", 3, (long long)counters.spills);
	expect_number("full", 2, pinion_pool_available_local(pool, 1));
	expect_number("listed", 4, users_shared(pool));
	expect_number("the other is empty", 0, pinion_pool_available_local(pool, 0));
	pinion_pool_get_stats(pool, (struct pinion_pool_stats *)(void *)first, sizeof(first[0]));
	expect_number("an old program's", (long long)counters.local_hits, (long long)first[0]);
	expect_number("and no more", 99, (long long)first[1]);
	memset(&newer, 0xff, sizeof(newer));
	pinion_pool_get_stats(pool, &newer.known, sizeof(newer));
	expect_number("a newer one's", 0, (long long)newer.later);
	users_end(pool);
	pinion_runtime_destroy(runtime);
}

/* ---- in requests ---- */

/* A transfer from outside has the buffer from its submission on. */
static void check_posted(bool is_cancelled)
{
	struct pinion_runtime *runtime = users_runtime(1, 1 << 20);
	struct pinion_pool *pool = users_pool(runtime, 1, 2, 2);
	struct pinion_buffer buffer = users_take(pool);
	struct pinion_file file;
	struct requests_one one;
	struct tasks_hold hold = {0};

	expect_number("open", 0, pinion_file_open(&file, "/proc/self/exe", PINION_DIRECT_NEVER));
	requests_begin(&one, PINION_OP_READ)->file = &file;
	one.request.bytes = buffer.bytes;
	one.request.length_bytes = 4096;
	tasks_hold_begin(&hold, runtime, 0);
	expect_number("submit", 0, pinion_request_submit(runtime, &one.request));
	expect_number("not begun", -EBUSY, pinion_pool_release(pool, &buffer));
	expect_number("nor ended", -EBUSY, pinion_pool_destroy(pool));
	if (is_cancelled) {
		expect_number("cancel", 0, pinion_request_cancel(runtime, &one.request));
		expect_number("cancelled", -EBUSY, pinion_pool_release(pool, &buffer));
	}
	tasks_hold_end(&hold);
	expect_number("read", is_cancelled ? -ECANCELED : 4096, requests_await(&one));
	users_give(pool, &buffer);
	expect_number("told", is_cancelled ? 2 : 1, (long long)users_counters(pool).misuses);
	expect_number("end", 0, pinion_pool_destroy(pool));
	pinion_file_close(&file);
	pinion_runtime_destroy(runtime);
}

struct ending {
	struct pinion_runtime *runtime;
	struct pin_atomic_u32 has_ended;
};

static void *make_and_end(void *arg)
{
	struct ending *ending = arg;

	for (int i = 0; i < POOLS_ENDED; i++) {
		users_end(users_pool(ending->runtime, 2, 2, 4));
	}
	pin_store_release_u32(&ending->has_ended, 1);
	return NULL;
}

/*
 * All pools are searched for memory of none, also a pool that is being ended.
 */
static void check_searched_at_end(void)
{
	struct ending ending = {.runtime = users_runtime(2, 1 << 20)};
	static uint8_t bytes[4096];
	struct pinion_file file;
	struct requests_one one;
	pthread_t thread;

	expect_number("open", 0, pinion_file_open(&file, "/proc/self/exe", PINION_DIRECT_NEVER));
	expect_number("thread", 0, pthread_create(&thread, NULL, make_and_end, &ending));
	do {
		requests_begin(&one, PINION_OP_READ)->file = &file;
		one.request.bytes = bytes;
		one.request.length_bytes = sizeof(bytes);
		expect_number("read", sizeof(bytes), requests_do(ending.runtime, &one));
	} while (pin_load_acquire_u32(&ending.has_ended) == 0);
	pthread_join(thread, NULL);
	pinion_file_close(&file);
	pinion_runtime_destroy(ending.runtime);
}

/* ---- its end ---- */

static void check_end(void)
{
	struct pinion_pool *pool = users_pool(NULL, 1, 2, 2);
	struct pinion_pool *shared = pinion_pool_share(pool);
	struct pinion_buffer buffer;

	expect_true("the same pool", shared == pool);
	expect_number("none", 0, pinion_pool_destroy(NULL));
	expect_number("attach", 0, pinion_pool_attach(pool));
	buffer = users_take(pool);
	expect_number("one of two owners", 0, pinion_pool_destroy(pool));
	memset(buffer.bytes, 1, 4096);
	runtimes_log[0] = '\0';
	expect_number("the last, too early", -EBUSY, pinion_pool_destroy(pool));
	users_expect_said("is still out; taken by worker 0");
	expect_number("nothing has happened", 1, users_free(pool));
	expect_number("again", -EBUSY, pinion_pool_destroy(pool));
	users_give(pool, &buffer);
	expect_number("detach", 0, pinion_pool_detach(pool));
	users_end(pool);
}

/* 256 buffers of 64 KiB for 8 workers with 4 each: BP-40; its parts: BP-45. */
static void check_usual_pool(void)
{
	struct pinion_buffer first;
	struct pinion_buffer second;
	struct pinion_pool_config config;
	struct pinion_pool *pool;

	users_config(&config, 8, 4, 256);
	config.buffer_bytes = 64 << 10;
	config.headroom_bytes = 0;
	pool = users_create(NULL, &config);
	expect_number("each one's bytes", 64 << 10, pinion_pool_buffer_bytes(pool));
	expect_number("all buffers", 256, users_info(pool).buffer_count);
	expect_number("all bytes", 16 << 20, (long long)users_info(pool).peak_bytes);
	for (uint32_t i = 0; i < 8; i++) {
		expect_number("in each cache", 4, pinion_pool_available_local(pool, i));
		expect_number("BP-20: lines of its own", 0,
			(long long)((uintptr_t)&pool->pool.magazines[i] % 128));
	}
	expect_number("shared", 256 - 8 * 4, users_shared(pool));
	first = users_take(pool);
	second = users_take(pool);
	expect_true("two of them", first.bytes != second.bytes);
	expect_true("BP-41: a small handle", sizeof(first) <= 16);
	expect_number("W7: which owns nothing of the pool", 1, pin_load_relaxed_u32(&pool->owners));
	memset(first.bytes, 1, 64 << 10);
	users_give(pool, &first);
	users_give(pool, &second);
	users_end(pool);
}

/* Writes and reads through a socket may begin at any byte: BP-47. */
static void check_any_byte(void)
{
	struct pinion_pool *pool = users_pool(NULL, 1, 2, 2);
	struct pinion_buffer from = users_take(pool);
	struct pinion_buffer to = users_take(pool);
	int sockets[2];

	expect_ready("sockets", socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	for (uint32_t i = 0; i < 4096; i++) {
		from.bytes[i] = (uint8_t)(i * 7);
	}
	for (uint32_t start = 0; start < 64; start++) {
		uint32_t length = 4096 - 2 * start;

		memset(to.bytes, 0, 4096);
		expect_number("sent", length, write(sockets[0], from.bytes + start, length));
		expect_number("received", length, read(sockets[1], to.bytes + start, length));
		expect_true("the same", memcmp(from.bytes + start, to.bytes + start, length) == 0);
	}
	close(sockets[0]);
	close(sockets[1]);
	users_give(pool, &from);
	users_give(pool, &to);
	users_end(pool);
}

int main(void)
{
	runtimes_watchdog(LIMIT_SECONDS);
	check_all_are_found();
	check_misuse();
	check_counters();
	check_posted(false);
	check_posted(true);
	check_searched_at_end();
	check_end();
	check_usual_pool();
	check_any_byte();
	return expect_status();
}
