/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer given back twice, a pointer that is not one of the pool's, one
 * into the middle, and a release before the kernel is done are each refused by
 * the call that does it, with the name of the last holder, and harm nothing. A
 * buffer that another thread than its owner gave back takes its owner a locked
 * instruction, until the owner alone has used it for long. BP-13, BP-23, W5,
 * W8.
 * Method: each mistake, its code, its message, and the counts afterwards; then
 * uses by the owner of a buffer that was given back by another.
 */
#include "tests/support/pools.h"

#include <errno.h>

enum {
	BUFFERS = 4,
};

static void expect_said(const char *words)
{
	if (strstr(pools_log, words) == NULL) {
		expect_text("message", words, pools_log);
	}
	pools_log[0] = '\0';
}

static void check_release(void)
{
	struct pinion_buffer buffer;
	struct pinion_buffer wrong;
	struct pinion_buffer next;
	struct pin_pool pool;

	pools_init(&pool, BUFFERS, 1, 2, 0);
	buffer = pools_take(&pool, 0);
	wrong = buffer;
	wrong.bytes += 512;
	expect_number("inside a buffer", -EINVAL, pools_return(&pool, 0, &wrong));
	expect_said("is inside buffer");
	wrong.bytes = pools_memory + sizeof(pools_memory);
	expect_number("outside", -EINVAL, pools_return(&pool, 0, &wrong));
	expect_said("is not a buffer of this pool");
	wrong = buffer;
	wrong.index = BUFFERS;
	expect_number("index", -EINVAL, pools_return(&pool, 0, &wrong));
	wrong.index = UINT32_MAX;
	expect_number("any index", -EINVAL, pools_return(&pool, 0, &wrong));
	pools_log[0] = '\0';
	expect_number(
		"borrowed", PIN_POOL_IS_BORROWED, pin_pool_borrow(&pool.entries[buffer.index], 0));
	expect_number("the kernel's", -EBUSY, pools_return(&pool, 0, &buffer));
	expect_said("until its request has completed; taken by worker 0");
	expect_true("it is still the caller's", pin_pool_owns(&pool, &buffer));
	pin_pool_end_borrow(&pool.entries[buffer.index]);
	pools_log[0] = '\0';
	pools_give(&pool, 0, &buffer);
	expect_number("twice", -EALREADY, pools_return(&pool, 0, &buffer));
	expect_said("was given back before; taken last by worker 0");
	expect_number("twice, outside", -EALREADY, pools_return(&pool, PIN_POOL_OUTSIDE, &buffer));
	pools_log[0] = '\0';
	next = pools_take(&pool, 0);
	expect_true("the same one again", next.bytes == buffer.bytes);
	expect_number("by the old handle", -EALREADY, pools_return(&pool, 0, &buffer));
	expect_said("and is in use again; taken last by worker 0");
	expect_true("the old one is stale", !pin_pool_owns(&pool, &buffer));
	expect_true("the new one is not", pin_pool_owns(&pool, &next));
	pools_give(&pool, PIN_POOL_OUTSIDE, &next);
	expect_number("all are there", BUFFERS, pin_pool_count(&pool));
	expect_true("counted", pin_load_relaxed_u64(&pool.misuses) >= 8);
	pin_pool_fini(&pool);
}

static bool is_plain(const struct pin_pool *pool)
{
	return pin_load_relaxed_u64(&pool->entries[0].state) >> 32 == 0;
}

/* How many uses by its owner make one plain that another has given back. */
static uint32_t uses_until_plain(struct pin_pool *pool)
{
	struct pinion_buffer buffer = pools_take(pool, 0);
	uint32_t count = 0;

	expect_true("its owner's alone", is_plain(pool));
	pools_give(pool, PIN_POOL_OUTSIDE, &buffer);
	expect_true("shared", !is_plain(pool));
	buffer = pools_take(pool, PIN_POOL_OUTSIDE);
	pools_give(pool, PIN_POOL_OUTSIDE, &buffer);
	while (!is_plain(pool) && count <= 1 << 20) {
		buffer = pools_take(pool, 0);
		pools_give(pool, 0, &buffer);
		count++;
	}
	return count;
}

static void check_shared(void)
{
	struct pin_pool pool;

	pools_init(&pool, 1, 1, 1, 0);
	for (int i = 0; i < 3; i++) {
		uint32_t count = uses_until_plain(&pool);

		expect_true("a thousand at least", count >= 1000);
		expect_true("not for ever", count <= 1 << 16);
	}
	expect_number("no mistake", 0, (long long)pin_load_relaxed_u64(&pool.misuses));
	pin_pool_fini(&pool);
}

static void check_report(void)
{
	struct pinion_buffer buffer;
	struct pin_pool pool;

	pools_init(&pool, BUFFERS, 1, 2, 0);
	expect_number("none is out", 0, pin_pool_check_report_in_use(&pool));
	expect_text("nothing said", "", pools_log);
	buffer = pools_take(&pool, PIN_POOL_OUTSIDE);
	expect_number("one is out", 1, pin_pool_check_report_in_use(&pool));
	expect_said("is still out; taken by a thread that is not attached");
	pools_give(&pool, PIN_POOL_OUTSIDE, &buffer);
	pin_pool_fini(&pool);
}

static uint32_t count_named(void)
{
	uint32_t count = 0;

	for (const char *at = pools_log; (at = strstr(at, "is still out")) != NULL; at++) {
		count++;
	}
	return count;
}

/* As on huge pages that were set aside: a part of one keeps its rights. */
static void check_no_guard(void)
{
	struct pin_pool_region region = {.memory = pools_memory + 512, .buffer_count = 2};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.log = {.fn = pools_note},
		.buffer_bytes = POOLS_BUFFER_BYTES,
		.magazine_count = 1,
		.magazine_capacity = 2,
		.seeded_count = 1,
		.node_count = 1,
		.flags = PIN_POOL_GUARD,
		.regions = &region,
		.region_count = 1,
	};
	struct pinion_buffer buffer;
	struct pin_pool pool;

	pools_log[0] = '\0';
	expect_number("init", 0, pin_pool_init(&pool, &setup));
	expect_said("free buffers cannot be guarded");
	buffer = pools_take(&pool, 0);
	pools_give(&pool, 0, &buffer);
	expect_text("logged once", "", pools_log);
	pin_pool_fini(&pool);
}

/* Each is named, up to a screenful; all are counted. */
static void check_many_out(void)
{
	enum { OUT = 10, NAMED = 8 };
	struct pinion_buffer buffers[OUT];
	struct pin_pool pool;

	pools_init(&pool, OUT, 1, 2, 0);
	for (uint32_t i = 0; i < OUT; i++) {
		buffers[i] = pools_take(&pool, i < 2 ? 0 : PIN_POOL_OUTSIDE);
		pools_log[0] = '\0';
		expect_number("are out", i + 1, pin_pool_check_report_in_use(&pool));
		expect_number("named", i < NAMED ? i + 1 : NAMED, count_named());
		expect_said("is still out; taken by worker 0");
	}
	for (uint32_t i = 0; i < OUT; i++) {
		pools_give(&pool, PIN_POOL_OUTSIDE, &buffers[i]);
	}
	pin_pool_fini(&pool);
}

int main(void)
{
	check_release();
	check_shared();
	check_report();
	check_many_out();
	check_no_guard();
	return expect_status();
}
