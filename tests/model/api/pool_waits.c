/* SPDX-License-Identifier: MIT */
/*
 * Goal: no thread waits beside a free buffer, by whichever way it was given
 * back, each wait ends once, with a buffer that no other has, by its deadline
 * or by a close, and a later caller gets none before: [WAIT-1] over [MAG-1] and
 * [FREE-3]. BP-28, W6.
 * Method: the real api/pool.c and pool, of one buffer. The case's own thread
 * has it, by a cache or without, and gives it back by the way that leads there;
 * others wait as threads do. A forgotten waiter is a deadlock.
 */
#include "runtime/base/base.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"

#include "runtime/api/internal.h"
#include "runtime/base/thread.h"
#include "runtime/memory/pool.h"

/* What each thread remembers. */
static struct pin_recent recents[MODEL_THREADS_MAX];
#define pin_recent (recents[model_thread_current()])
static struct pin_thread records[MODEL_THREADS_MAX];
#define pin_thread_find() (&records[model_thread_current()])
#define pin_thread_own() (&records[model_thread_current()])

/*
 * SKIP: a thread that gives back, or comes to wait, does not check for waiters.
 */
#define pin_waiters_any_light(waiters) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_any") && \
		pin_waiters_any_light(waiters))
#define pin_waiters_any(waiters) \
	(!model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_any") && pin_waiters_any(waiters))
/* SKIP: those who wait do not get to know. */
#define pin_waiters_serve(waiters) \
	(model_is_spoilt(MODEL_SKIP, __func__, "pin_waiters_serve") ? 0 \
								    : pin_waiters_serve(waiters))
#include "runtime/api/pool.c"

enum {
	BYTES = 64,
	THREADS_MAX = 2,
	DEADLINE_NS = 1,
	NO_BUFFER = 0,
};

struct wanting {
	uint64_t deadline_ns;
	int result;
	struct pinion_buffer buffer;
};

static struct pinion_pool pool;
static struct pin_atomic_u32 attached[1];
static uint8_t memory[BYTES];
static struct pinion_buffer held; /* by the case's thread */
static struct wanting wanting[THREADS_MAX];

static void begin(uint32_t flags, bool has_fence, bool has_cache)
{
	struct pin_pool_region region = {.memory = memory, .buffer_count = 1};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = BYTES,
		.magazine_count = 1,
		.magazine_capacity = 1,
		.seeded_count = 1,
		.node_count = 1,
		.flags = flags,
		.regions = &region,
		.region_count = 1,
	};

	memset(wanting, 0, sizeof(wanting));
	memset(attached, 0, sizeof(attached));
	memset(records, 0, sizeof(records));
	memset(recents, 0, sizeof(recents));
	model_quiet_begin();
	model_has_no_fence = !has_fence;
	pool = (struct pinion_pool){
		.number = 1, .forked = pin_forked_now(), .worker_count = 1, .attached = attached};
	MODEL_CHECK(pin_pool_init(&pool.pool, &setup) == 0);
	pin_waiters_init(
		&pool.waiters, &pin_host_linux, pin_buffers_take, &pool, PIN_WAITERS_RELEASE_LIGHT);
	pool.has_short_way = pin_pool_has_short_way(&pool.pool) &&
		pool.waiters.fences == PIN_WAITERS_RELEASE_LIGHT;
	MODEL_CHECK(!has_cache || pinion_pool_attach(&pool) == 0);
	/* Twice, so that the thread knows its way. */
	MODEL_CHECK(pinion_pool_try_acquire(&pool, &held) == 0);
	MODEL_CHECK(pinion_pool_release(&pool, &held) == 0);
	MODEL_CHECK(pinion_pool_try_acquire(&pool, &held) == 0);
	model_quiet_end();
}

static void want(void *arg)
{
	struct wanting *own = arg;

	own->result = pinion_pool_acquire_wait(&pool, own->deadline_ns, &own->buffer);
}

static uint32_t start_wanting(uint32_t index, uint64_t deadline_ns)
{
	wanting[index].deadline_ns = deadline_ns;
	return model_thread_start("wants", want, &wanting[index]);
}

/* All that are out go back; no waiter is left, and no mistake was reported. */
static void end(void)
{
	uint32_t out_count = held.bytes != NULL;

	model_quiet_begin();
	for (uint32_t i = 0; i < THREADS_MAX; i++) {
		out_count += wanting[i].buffer.bytes != NULL;
	}
	MODEL_CHECK(out_count <= 1 && pin_pool_count(&pool.pool) == 1 - out_count);
	MODEL_CHECK(pool.waiters.oldest == NULL && pool.waiters.count.value == 0);
	MODEL_CHECK(pool.pool.misuses.value == 0);
	pin_pool_fini(&pool.pool);
	held = (struct pinion_buffer){0};
	model_quiet_end();
}

static void give(void)
{
	MODEL_CHECK(pinion_pool_release(&pool, &held) == 0);
}

/* ---- one gives back, one waits ---- */

static void run_pair(uint32_t flags, bool has_fence, bool has_cache)
{
	uint32_t thread;

	begin(flags, has_fence, has_cache);
	thread = start_wanting(0, PIN_NO_DEADLINE);
	give();
	model_thread_join(thread);
	MODEL_CHECK(wanting[0].result == 0 && wanting[0].buffer.bytes == memory);
	/* It is known whose it is. */
	MODEL_CHECK(pool.pool.entries[0].holder.value == PIN_POOL_OUTSIDE);
	end();
}

static void run_owner(void)
{
	run_pair(0, true, true);
}

static void run_outside(void)
{
	run_pair(0, true, false);
}

static void run_unfenced(void)
{
	run_pair(0, false, true);
}

/* ---- others ---- */

static bool is_waited_for(const void *arg)
{
	(void)arg;
	return pool.waiters.oldest != NULL;
}

/* One is in the queue when another comes, and gives nothing back. */
static void run_newcomer(void)
{
	uint32_t threads[2];

	begin(0, true, true);
	model_quiet_begin();
	threads[0] = start_wanting(0, PIN_NO_DEADLINE);
	model_await("the first", is_waited_for, NULL);
	/* The newcomer has seen all that the first had seen. */
	pin_waiters_lock(&pool.waiters);
	pin_waiters_unlock(&pool.waiters);
	model_quiet_end();
	threads[1] = start_wanting(1, NO_BUFFER);
	give();
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(wanting[0].result == 0 && wanting[1].result == -ETIME);
	end();
}

static void run_timeout(void)
{
	uint32_t thread;

	begin(0, true, true);
	thread = start_wanting(0, DEADLINE_NS);
	give();
	model_thread_join(thread);
	MODEL_CHECK(wanting[0].result == 0 || wanting[0].result == -ETIME);
	end();
}

static void close_pool(void *arg)
{
	(void)arg;
	pinion_pool_close(&pool);
}

static void run_close(void)
{
	uint32_t threads[2];

	begin(0, true, true);
	threads[0] = start_wanting(0, PIN_NO_DEADLINE);
	threads[1] = model_thread_start("closes", close_pool, NULL);
	model_thread_join(threads[0]);
	model_thread_join(threads[1]);
	MODEL_CHECK(wanting[0].result == -ESHUTDOWN);
	give();
	end();
}

static const struct model_mutant owner_mutants[] = {
	{"a release does not check", {MODEL_SKIP, "pinion_pool_release", "pin_waiters_any"}},
	{"no fence for all", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_mutant outside_mutants[] = {
	{"a release does not check", {MODEL_SKIP, "release_outside", "pin_waiters_any"}},
	{.name = NULL},
};

static const struct model_mutant unfenced_mutants[] = {
	{"a release does not check", {MODEL_SKIP, "serve", "pin_waiters_any"}},
	{.name = NULL},
};

static const struct model_mutant newcomer_mutants[] = {
	{"a newcomer does not check", {MODEL_SKIP, "pinion_pool_acquire_wait", "pin_waiters_any"}},
	{.name = NULL},
};

static const struct model_mutant timeout_mutants[] = {
	{"two have the lock", {MODEL_TORN, "pin_lock_acquire", NULL}},
	{.name = NULL},
};

static const struct model_mutant close_mutants[] = {
	{"a close notifies no waiter", {MODEL_SKIP, "pinion_pool_close", "pin_waiters_serve"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"owner", run_owner, 3, 1, 0, owner_mutants, NULL},
	{"outside", run_outside, 3, 1, 0, outside_mutants, NULL},
	{"unfenced", run_unfenced, 3, 1, 0, unfenced_mutants, NULL},
	{"newcomer", run_newcomer, 2, 1, 0, newcomer_mutants, NULL},
	{"timeout", run_timeout, 3, 1, 1, timeout_mutants, NULL},
	{"close", run_close, 2, 1, 0, close_mutants, NULL},
};

int main(void)
{
	return model_main("pool_waits", cases, PIN_ARRAY_COUNT(cases));
}
