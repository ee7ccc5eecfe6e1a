/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer has pages while it is open, and a ring's entry is filled only
 * while it has; they go only when no request, of this worker or another, may
 * use them. [POOL-4]
 * Method: the real growth and the real pool under the explorer: a worker
 * acquires, gives back and looks for rest while a thief begins a request into
 * its buffer, as another worker's ring, or a pool's search for an address, may.
 * Pages, and the entries of both of its rings, are doubled by relaxed atomics.
 */
#define pin_arena_growth_slots model_arena_growth_slots
#define pin_arena_growth_start model_arena_growth_start
#define pin_arena_grow model_arena_grow
#define pin_arena_growth_tell model_arena_growth_tell
#define pin_arena_growth_look model_arena_growth_look
#define pin_arena_growth_due_ns model_arena_growth_due_ns
#define pin_arena_growth_end model_arena_growth_end
#include "runtime/base/base.h"
#include "runtime/host/numa.h"
#include "runtime/worker/worker.h"
#include "tests/model/api/runtime_model.h"
#include "tests/model/explorer.h"
#include "tests/model/heap.h"

#include <errno.h>
#include <string.h>

enum {
	STEPS = 2,
	STEP_BYTES = 256 << 10, /* one small buffer is a step */
	RINGS = 2,
};

static uint8_t space[STEPS * STEP_BYTES];
static struct pin_worker owner;
static struct pin_shared all;
static struct pinion_buffer held;
static struct pin_atomic_u32 has_pages[STEPS];
static struct pin_atomic_u32 is_filled[RINGS][STEPS];
static struct pin_atomic_u32 writing; /* the kernel, into step 0 */
static bool has_no_pages;	      /* the machine */
static uint64_t limit_free_bytes;     /* of the memory cgroup; UINT64_MAX: none */
static uint32_t limit_reads;
static uint64_t given_back_count;

/* ---- the machine ---- */

static uint32_t step_at(const void *bytes)
{
	return (uint32_t)((size_t)((const uint8_t *)bytes - space) / STEP_BYTES);
}

static int model_populate(void *bytes, size_t length)
{
	MODEL_CHECK(length == STEP_BYTES);
	if (has_no_pages) {
		return -ENOMEM;
	}
	pin_store_relaxed_u32(&has_pages[step_at(bytes)], 1);
	return 0;
}

static int model_give_back(void *bytes, size_t length)
{
	for (size_t at = 0; at < length; at += STEP_BYTES) {
		uint32_t step = step_at(bytes) + (uint32_t)(at / STEP_BYTES);

		/* A filled entry would hold pages that the addresses leave. */
		for (uint32_t i = 0; i < RINGS; i++) {
			MODEL_CHECK(pin_load_relaxed_u32(&is_filled[i][step]) == 0);
		}
		MODEL_CHECK(step != 0 || pin_load_relaxed_u32(&writing) == 0);
		pin_store_relaxed_u32(&has_pages[step], 0);
		given_back_count++;
	}
	return 0;
}

static uint32_t ring_number(const struct pin_ring *ring)
{
	return ring == &owner.polled ? 1 : 0;
}

static int model_open_slots(struct pin_ring *ring, const struct pin_grown *grown)
{
	ring->slots = PIN_RING_SLOTS_OPEN;
	ring->grown[PIN_GROWN_SMALL] = grown[PIN_GROWN_SMALL];
	return 0;
}

static int model_grow(struct pin_ring *ring, enum pin_grown_kind kind, size_t offset, size_t bytes)
{
	uint32_t step = (uint32_t)(offset / STEP_BYTES);

	MODEL_CHECK(kind == PIN_GROWN_SMALL && bytes == STEP_BYTES);
	/* What it holds are the pages of now. */
	MODEL_CHECK(pin_load_relaxed_u32(&has_pages[step]) == 1);
	pin_store_relaxed_u32(&is_filled[ring_number(ring)][step], 1);
	ring->grown[kind].bytes = offset + bytes;
	return 0;
}

static void model_shrink(
	struct pin_ring *ring, enum pin_grown_kind kind, size_t offset, const char *site)
{
	/* Of the second ring alone. */
	if (model_is_spoilt(MODEL_SKIP, site, "pin_ring_shrink") && ring == &owner.polled) {
		return;
	}
	for (size_t at = offset; at < ring->grown[kind].bytes; at += STEP_BYTES) {
		pin_store_relaxed_u32(&is_filled[ring_number(ring)][at / STEP_BYTES], 0);
	}
	ring->grown[kind].bytes =
		offset < ring->grown[kind].bytes ? offset : ring->grown[kind].bytes;
}

static bool model_close(struct pin_pool *pool, uint32_t first, const char *site)
{
	return pin_pool_close(pool, first) || model_is_spoilt(MODEL_SKIP, site, "pin_pool_close");
}

static int model_populate_at(void *bytes, size_t length, const char *site)
{
	return model_is_spoilt(MODEL_SKIP, site, "pin_pages_populate")
		? 0
		: model_populate(bytes, length);
}

/* Spoilt, it is that of the start. */
static void model_memlimit(struct pin_memlimit *out_limit, const char *site)
{
	uint64_t free_bytes = model_is_spoilt(MODEL_SKIP, site, "pin_memlimit_find")
		? UINT64_MAX
		: limit_free_bytes;

	limit_reads++;
	*out_limit = (struct pin_memlimit){
		.limit_bytes = free_bytes, .free_bytes = free_bytes, .path = "memory.max"};
}

#define pin_memlimit_find(root, out) ((void)(root), model_memlimit(out, __func__))
#define pin_pages_populate(bytes, length) model_populate_at(bytes, length, __func__)
#define pin_pages_give_back model_give_back
#define pin_pages_keep_small(bytes, length) ((void)(bytes), (void)(length))
#define pin_pages_scan_huge(bytes, length, out) ((void)(bytes), (void)(length), *(out) = 0, 0)
#define pin_pages_collapse(bytes, length) ((void)(bytes), (void)(length))
#define pin_ring_open_slots model_open_slots
#define pin_ring_grow model_grow
#define pin_ring_shrink(ring, kind, offset) model_shrink(ring, kind, offset, __func__)
#define pin_pool_close(pool, first) model_close(pool, first, __func__)
#include "runtime/worker/arena_growth.c"
#undef pin_pool_close

/* ---- cases ---- */

static void begin_pool(struct pin_pool *pool)
{
	struct pin_pool_region region = {.memory = space, .buffer_count = STEPS};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = STEP_BYTES,
		.magazine_count = 1,
		.magazine_capacity = STEPS,
		.is_closed = true,
		.seeded_count = 1,
		.node_count = 1,
		.regions = &region,
		.region_count = 1,
	};

	MODEL_CHECK(pin_pool_init(pool, &setup) == 0);
}

static void begin(void)
{
	model_quiet_begin();
	memset(&owner, 0, sizeof(owner));
	memset(&all, 0, sizeof(all));
	all.host = &pin_host_linux;
	all.arenas_grow = true;
	all.tuning.buffer_rest_ms = 1;
	all.kernel.features = PINION_IO_REGISTERED_BUFFERS;
	owner.shared = &all;
	owner.has_polled = true;
	owner.growth.look_ns = PIN_NO_DEADLINE;
	begin_pool(&owner.small_buffers);
	begin_pool(&owner.buffers);
	for (uint32_t i = 0; i < STEPS; i++) {
		pin_store_relaxed_u32(&has_pages[i], 0);
		pin_store_relaxed_u32(&is_filled[0][i], 0);
		pin_store_relaxed_u32(&is_filled[1][i], 0);
	}
	pin_store_relaxed_u32(&writing, 0);
	has_no_pages = false;
	limit_free_bytes = UINT64_MAX;
	limit_reads = 0;
	given_back_count = 0;
	pin_worker_self = &owner;
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == 0);
	MODEL_CHECK(pin_pool_acquire(&owner.small_buffers, 0, 0, &held));
	model_quiet_end();
}

static void end(void)
{
	model_quiet_begin();
	pin_pool_fini(&owner.small_buffers);
	pin_pool_fini(&owner.buffers);
	pin_worker_self = NULL;
	model_quiet_end();
}

static void owner_uses(const struct pinion_buffer *buffer)
{
	MODEL_CHECK(pin_load_relaxed_u32(&has_pages[buffer->index]) == 1);
}

/* A request of another worker, or one posted by any thread. */
static void thief(void *arg)
{
	struct pin_entry *entry = &owner.small_buffers.entries[0];
	enum pin_pool_borrowed borrowed = pin_pool_borrow(entry, PIN_POOL_OUTSIDE);

	(void)arg;
	while (borrowed == PIN_POOL_MUST_SHARE) {
		pin_pool_share(&owner.small_buffers, 0);
		borrowed = pin_pool_borrow(entry, PIN_POOL_OUTSIDE);
	}
	if (borrowed == PIN_POOL_IS_BORROWED) {
		pin_store_relaxed_u32(&writing, 1);
		model_point();
		pin_store_relaxed_u32(&writing, 0);
		pin_pool_end_borrow(entry);
	}
}

/* Twice: the first check after a use counts that use. */
static void look_for_rest(void)
{
	model_arena_growth_look(&owner);
	model_arena_growth_look(&owner);
}

/*
 * The worker gives the buffer back, which is refused while the request has it,
 * and looks for rest in either case.
 */
static void run_thief(void)
{
	uint32_t thread;
	bool is_released;

	begin();
	thread = model_thread_start("thief", thief, NULL);
	owner_uses(&held);
	is_released = pin_pool_release(&owner.small_buffers, 0, &held) == 0;
	look_for_rest();
	MODEL_CHECK(given_back_count == (is_released ? 1 : 0));
	MODEL_CHECK(pin_meter_read(&owner.growth.bytes) == (is_released ? 0 : STEP_BYTES));
	model_thread_join(thread);
	end();
}

/* A step that was given back is taken once more, with both rings' entries. */
static void run_again(void)
{
	uint32_t thread;

	begin();
	thread = model_thread_start("thief", thief, NULL);
	if (pin_pool_release(&owner.small_buffers, 0, &held) == 0) {
		look_for_rest();
		MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == 0);
		MODEL_CHECK(pin_pool_acquire(&owner.small_buffers, 0, 0, &held));
		MODEL_CHECK(held.index == 0);
		owner_uses(&held);
		MODEL_CHECK(pin_load_relaxed_u32(&is_filled[0][0]) == 1);
		MODEL_CHECK(pin_load_relaxed_u32(&is_filled[1][0]) == 1);
	}
	model_thread_join(thread);
	end();
}

/* No pages: nothing has changed, and the next try may succeed. */
static void run_none(void)
{
	struct pinion_buffer second;

	begin();
	has_no_pages = true;
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == -ENOMEM);
	MODEL_CHECK(!pin_pool_acquire(&owner.small_buffers, 0, 0, &second));
	has_no_pages = false;
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == 0);
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == -EAGAIN);
	MODEL_CHECK(pin_pool_acquire(&owner.small_buffers, 0, 0, &second));
	owner_uses(&second);
	/* The first is out: only the second goes. */
	MODEL_CHECK(pin_pool_release(&owner.small_buffers, 0, &second) == 0);
	look_for_rest();
	MODEL_CHECK(given_back_count == 2); /* one of them when there were no pages */
	MODEL_CHECK(pin_meter_read(&owner.growth.bytes) == STEP_BYTES);
	MODEL_CHECK(model_arena_growth_due_ns(&owner) == PIN_NO_DEADLINE);
	end();
}

/*
 * A memory cgroup gets a limit while the runtime works. It is not looked for
 * while the worker trusts that there is none. An eighth is left to others.
 */
static void run_limit(void)
{
	begin();
	MODEL_CHECK(limit_reads == 1);
	limit_free_bytes = STEP_BYTES;
	owner.growth.unlimited_ns = 0;
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == -ENOMEM);
	MODEL_CHECK(limit_reads == 2 && pin_load_relaxed_u32(&has_pages[1]) == 0);
	/* A refusal holds for a while, for as much or more. */
	limit_free_bytes = STEP_BYTES + STEP_BYTES / 4;
	MODEL_CHECK(owner.growth.refused_ns == owner.shared->host->now_ns() + 100000000);
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == -ENOMEM);
	MODEL_CHECK(!is_within_limit(&owner, STEP_BYTES + 1));
	MODEL_CHECK(limit_reads == 2);
	MODEL_CHECK(is_within_limit(&owner, STEP_BYTES - 1));
	MODEL_CHECK(limit_reads == 3);
	owner.growth.refused_ns = 0; /* as after that time */
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == 0);
	MODEL_CHECK(limit_reads == 4 && pin_load_relaxed_u32(&has_pages[1]) == 1);
	/* None again: one read holds for a while. */
	limit_free_bytes = UINT64_MAX;
	MODEL_CHECK(is_within_limit(&owner, STEP_BYTES));
	MODEL_CHECK(owner.growth.unlimited_ns == owner.shared->host->now_ns() + 100000000);
	limit_free_bytes = 0;
	owner.now_ns = owner.growth.unlimited_ns - 1;
	MODEL_CHECK(is_within_limit(&owner, STEP_BYTES));
	MODEL_CHECK(limit_reads == 5);
	end();
}

/* The last step's buffer is out, the first one's free: both stay. */
static void run_top(void)
{
	struct pinion_buffer second;

	begin();
	MODEL_CHECK(model_arena_grow(&owner, PIN_GROWN_SMALL) == 0);
	MODEL_CHECK(pin_pool_acquire(&owner.small_buffers, 0, 0, &second));
	MODEL_CHECK(pin_pool_release(&owner.small_buffers, 0, &held) == 0);
	look_for_rest();
	owner_uses(&second);
	MODEL_CHECK(given_back_count == 0);
	MODEL_CHECK(model_arena_growth_due_ns(&owner) == PIN_NO_DEADLINE);
	/* Its release is something to look for. */
	MODEL_CHECK(pin_pool_release(&owner.small_buffers, 0, &second) == 0);
	MODEL_CHECK(model_arena_growth_due_ns(&owner) != PIN_NO_DEADLINE);
	look_for_rest();
	MODEL_CHECK(given_back_count == STEPS);
	MODEL_CHECK(owner.growth.look_ns == PIN_NO_DEADLINE);
	end();
}

static const struct model_mutant thief_mutants[] = {
	{"a request's end may be seen before what it wrote",
		{MODEL_RELAXED, "pin_pool_end_borrow", NULL}},
	{"the second ring keeps its entry", {MODEL_SKIP, "unregister_from", "pin_ring_shrink"}},
	{.name = NULL},
};

static const struct model_mutant again_mutants[] = {
	{"opened without pages", {MODEL_SKIP, "give_pages", "pin_pages_populate"}},
	{"the second ring keeps its entry", {MODEL_SKIP, "unregister_from", "pin_ring_shrink"}},
	{.name = NULL},
};

static const struct model_mutant limit_mutants[] = {
	{"the limit is that of the start", {MODEL_SKIP, "is_within_limit", "pin_memlimit_find"}},
	{.name = NULL},
};

static const struct model_mutant top_mutants[] = {
	{"pages go while a buffer is out", {MODEL_SKIP, "give_back_from", "pin_pool_close"}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"thief", run_thief, 3, 1, 0, thief_mutants, NULL},
	{"again", run_again, 3, 1, 0, again_mutants, NULL},
	{"none", run_none, 1, 1, 0, NULL, NULL},
	{"limit", run_limit, 1, 1, 0, limit_mutants, NULL},
	{"top", run_top, 1, 1, 0, top_mutants, NULL},
};

int main(void)
{
	model_runtime_register();
	return model_main("arena_growth", cases, PIN_ARRAY_COUNT(cases));
}
