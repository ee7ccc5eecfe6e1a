/* SPDX-License-Identifier: MIT */
/*
 * Goal: buffers gathered for another node, on their way there or left with
 * their owner, are neither lost nor had by two, and any thread that asks finds
 * them: [MAG-1] [POOL-1]. BP-9, BP-19, W4, W8.
 * Method: a batch is filled, sent home, robbed and passed by while others ask;
 * tests/model/memory/pool_books.h lists the checks.
 */
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/model/memory/pool_books.h"

/*
 * Two nodes, a magazine on each; all buffers are of node 0, whose list has
 * those that do not fit its magazine.
 */
static void begin_far(uint32_t buffers, uint32_t capacity)
{
	static uint8_t memory[POOL_BOOKS_BUFFERS_MAX * POOL_BOOKS_BUFFER_BYTES];
	static const uint32_t nodes[] = {0, 1};
	struct pin_pool_region regions[] = {
		{.memory = memory, .buffer_count = buffers, .node = 0},
		{.memory = memory, .buffer_count = 0, .node = 1},
	};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = POOL_BOOKS_BUFFER_BYTES,
		.magazine_count = 2,
		.magazine_capacity = capacity,
		.seeded_count = 2,
		.nodes = nodes,
		.node_count = 2,
		.regions = regions,
		.region_count = 2,
	};

	pool_books_begin_with(&setup);
}

/*
 * One in the remote-free batch of the other node's owner, one in its hand, no
 * others.
 */
static void begin_remote_batch(void)
{
	struct pinion_buffer kept;

	begin_far(5, 2);
	model_quiet_begin();
	/*
	 * Two stay at home, as many as fit a remote-free batch: the mark goes
	 * off.
	 */
	MODEL_CHECK(pool_books_acquire(1, &pool_books.held));
	pool_books_release(1, &pool_books.held);
	for (uint32_t i = 0; i < 4; i++) {
		MODEL_CHECK(pool_books_acquire(0, i == 0 ? &pool_books.held : &kept));
	}
	MODEL_CHECK(pin_magazine_count(pin_pool_remote_batch(&pool_books.pool, 1)) == 1);
	MODEL_CHECK(!pin_magazine_is_robbed(pin_pool_remote_batch(&pool_books.pool, 1)));
	model_quiet_end();
}

static void give_far(void *arg)
{
	(void)arg;
	pool_books_release(1, &pool_books.held);
}

/* It is full, and goes home, while another asks for both. */
static void run_remote_batch(void)
{
	uint32_t threads[2];

	begin_remote_batch();
	threads[0] = model_thread_start("owner", give_far, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_twice, NULL);
	pool_books_end(threads, 2, 0);
}

static void go_idle(void *arg)
{
	(void)arg;
	pin_pool_send_home(&pool_books.pool, 1);
}

/* Its owner has nothing to do. */
static void run_send_home(void)
{
	uint32_t threads[2];

	begin_remote_batch();
	threads[0] = model_thread_start("owner", go_idle, NULL);
	threads[1] = model_thread_start("asks", pool_books_ask_outside, NULL);
	pool_books_end(threads, 2, 0);
}

/* One is always free, in the remote-free batch or in the other's magazine. */
static void shift_far(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	pool_books_release(0, &pool_books.held);
	pool_books_acquire(1, &buffer);
}

static void run_shift_far(void)
{
	uint32_t threads[2];

	begin_remote_batch();
	threads[0] = model_thread_start("asks", pool_books_ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shift_far, NULL);
	pool_books_end(threads, 2, 0);
}

/* Its owner puts one in and takes one out, and a thief comes. */
static void pass_far(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (pool_books_acquire(1, &buffer)) {
		pool_books_release(1, &buffer);
	}
	pool_books_release(1, &pool_books.held);
}

static void run_thief_far(void)
{
	uint32_t threads[2];

	begin_remote_batch();
	threads[0] = model_thread_start("owner", pass_far, NULL);
	threads[1] = model_thread_start("thief", pool_books_pass_outside, NULL);
	pool_books_end(threads, 2, 0);
}

static const struct model_mutant remote_batch_mutants[] = {
	{"no search there", {MODEL_SKIP, "look_into", "pin_pool_remote_batch"}},
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{.name = NULL},
};

static const struct model_mutant send_home_mutants[] = {
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant shift_far_mutants[] = {
	{"one check only", {MODEL_SKIP, "is_as_noted", "look"}},
	{.name = NULL},
};

static const struct model_mutant thief_far_mutants[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_magazine_leave", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"remote_batch", run_remote_batch, 2, 1, 0, remote_batch_mutants, NULL},
	{"send_home", run_send_home, 2, 2, 0, send_home_mutants, NULL},
	{"shift_far", run_shift_far, 2, 1, 0, shift_far_mutants, NULL},
	{"thief_far", run_thief_far, 2, 2, 0, thief_far_mutants, NULL},
};

int main(void)
{
	return model_main("pool_remote_batches", cases, PIN_ARRAY_COUNT(cases));
}
