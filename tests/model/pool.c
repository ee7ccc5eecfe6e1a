/* SPDX-License-Identifier: MIT */
/*
 * Goal: a buffer is had by one at a time, whoever takes it from wherever, and
 * "nothing is free" is said only when it was so at one instant: [MAG-1] [MAG-2]
 * [MAG-3] [TRAY-1] [TRAY-3] [FREE-1] [POOL-1]. BP-9, BP-19, BP-21, BP-23,
 * BP-25, W4, W5, W8.
 * Method: owners of magazines and threads without one take and give back. Who
 * gets a buffer checks that nobody has it. While anybody asks, it is noted how
 * many were free for certain, that is, given back by a call that has returned
 * and not yet asked for by another: if there were always more than none, an
 * empty answer is false.
 */
#include "runtime/base/base.h"
#include "tests/model/explorer.h"
#include "tests/model/pool_model.h"
#include "tests/model/runtime_model.h"

#include <string.h>

enum {
	BUFFERS_MAX = 5,
	BUFFER_BYTES = 64,
};

static struct pin_pool pool;
static uint8_t memory[BUFFERS_MAX * BUFFER_BYTES];
static uint32_t owner[BUFFERS_MAX];	 /* thread + 1; 0: nobody */
static bool has_no_fence;		 /* in the next case */
static int32_t sure;			 /* free for certain, less those who ask */
static int32_t least[MODEL_THREADS_MAX]; /* since it asked */
static bool asks[MODEL_THREADS_MAX];
static struct pin_pool_listed listed[MODEL_THREADS_MAX];

/* As users do: the short way first, if there is one. */
static bool acquire_shortly(uint32_t magazine, struct pinion_buffer *out_buffer)
{
	return pool_model_has_short_way(&pool) &&
		pool_model_acquire_shortly(
			&pool, magazine, &listed[model_thread_current()], out_buffer);
}

static bool release_shortly(uint32_t magazine, const struct pinion_buffer *buffer)
{
	return pool_model_has_short_way(&pool) &&
		pool_model_release_shortly(
			&pool, magazine, buffer, &listed[model_thread_current()]);
}

static void change_sure(int32_t change)
{
	sure += change;
	for (uint32_t i = 0; i < MODEL_THREADS_MAX; i++) {
		if (asks[i] && sure < least[i]) {
			least[i] = sure;
		}
	}
}

static bool acquire(uint32_t magazine, struct pinion_buffer *out_buffer)
{
	uint32_t thread = model_thread_current();
	bool is_found;

	change_sure(-1);
	asks[thread] = true;
	least[thread] = sure;
	is_found = acquire_shortly(magazine, out_buffer) ||
		pin_pool_acquire(&pool, magazine, 0, out_buffer);
	asks[thread] = false;
	if (!is_found) {
		/* Its own question is among those that were taken off. */
		MODEL_CHECK(least[thread] < 0);
		change_sure(1);
		return false;
	}
	MODEL_CHECK(owner[out_buffer->index] == 0);
	owner[out_buffer->index] = thread + 1;
	return true;
}

static void release(uint32_t magazine, struct pinion_buffer *buffer)
{
	MODEL_CHECK(owner[buffer->index] != 0);
	owner[buffer->index] = 0;
	MODEL_CHECK(release_shortly(magazine, buffer) ||
		pin_pool_release(&pool, magazine, buffer) == 0);
	change_sure(1);
}

static void begin_with(const struct pin_pool_setup *setup, uint32_t buffers)
{
	memset(owner, 0, sizeof(owner));
	memset(asks, 0, sizeof(asks));
	memset(listed, 0, sizeof(listed));
	memset(&pool, 0, sizeof(pool));
	model_has_no_fence = has_no_fence;
	model_quiet_begin();
	MODEL_CHECK(pin_pool_init(&pool, setup) == 0);
	model_quiet_end();
	sure = (int32_t)buffers;
}

static void begin(uint32_t buffers, uint32_t magazines, uint32_t capacity, uint32_t seeded)
{
	struct pin_pool_region region = {.memory = memory, .buffer_count = buffers};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = BUFFER_BYTES,
		.magazine_count = magazines,
		.magazine_capacity = capacity,
		.seeded_count = seeded,
		.node_count = 1,
		.regions = &region,
		.region_count = 1,
	};

	begin_with(&setup, buffers);
}

/* One buffer, whose pages nobody may touch while it is free; one magazine. */
static void begin_guarded(void)
{
	static uint8_t page[4096] __attribute__((aligned(4096)));
	struct pin_pool_region region = {.memory = page, .buffer_count = 1};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = sizeof(page),
		.magazine_count = 1,
		.magazine_capacity = 1,
		.seeded_count = 1,
		.node_count = 1,
		.flags = PIN_POOL_GUARD,
		.regions = &region,
		.region_count = 1,
	};

	begin_with(&setup, 1);
}

/*
 * Two nodes, a magazine on each; all buffers are of node 0, whose list has
 * those that do not fit its magazine.
 */
static void begin_far(uint32_t buffers, uint32_t capacity)
{
	static const uint32_t nodes[] = {0, 1};
	struct pin_pool_region regions[] = {
		{.memory = memory, .buffer_count = buffers, .node = 0},
		{.memory = memory, .buffer_count = 0, .node = 1},
	};
	struct pin_pool_setup setup = {
		.host = &pin_host_linux,
		.buffer_bytes = BUFFER_BYTES,
		.magazine_count = 2,
		.magazine_capacity = capacity,
		.seeded_count = 2,
		.nodes = nodes,
		.node_count = 2,
		.regions = regions,
		.region_count = 2,
	};

	begin_with(&setup, buffers);
}

static void end(const uint32_t *threads, uint32_t count, uint64_t expected_misuses)
{
	struct pinion_buffer buffer;
	uint32_t free_count = 0;

	for (uint32_t i = 0; i < count; i++) {
		model_thread_join(threads[i]);
	}
	model_quiet_begin();
	for (uint32_t i = 0; i < pool.buffer_count; i++) {
		free_count += owner[i] == 0;
	}
	for (; free_count > 0; free_count--) {
		MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &buffer));
	}
	MODEL_CHECK(!acquire(PIN_POOL_OUTSIDE, &buffer));
	/* Else a buffer was in two places, and only its state told. */
	MODEL_CHECK(pool.misuses.value == expected_misuses);
	pin_pool_fini(&pool);
	model_quiet_end();
}

/* ---- the false "nothing" of one look after the other ---- */

static struct pinion_buffer held;

static void ask_outside(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	acquire(PIN_POOL_OUTSIDE, &buffer);
}

/* Gives to one magazine, takes from the other: one is always free. */
static void shift(uint32_t to, uint32_t from)
{
	release(to, &held);
	if (!acquire(from, &held)) {
		/* The one who asks has it. */
		held.bytes = NULL;
	}
}

static void shift_once(void *arg)
{
	(void)arg;
	shift(0, 1);
}

static void shift_to_and_fro(void *arg)
{
	(void)arg;
	for (uint32_t i = 0; i < 3 && held.bytes != NULL; i++) {
		shift(i & 1, 1 - (i & 1));
		model_yield();
	}
}

static void run_looks(void (*shifter)(void *))
{
	uint32_t threads[2];

	begin(2, 2, 1, 2);
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("asks", ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shifter, NULL);
	end(threads, 2, 0);
}

static void run_shift(void)
{
	run_looks(shift_once);
}

static void run_to_and_fro(void)
{
	run_looks(shift_to_and_fro);
}

/* ---- on the way between list and magazine ---- */

static void ask_as_owner(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	acquire(0, &buffer);
}

static void run_refill(void)
{
	uint32_t threads[2];

	begin(2, 1, 4, 0);
	threads[0] = model_thread_start("owner", ask_as_owner, NULL);
	threads[1] = model_thread_start("asks", ask_outside, NULL);
	end(threads, 2, 0);
}

static void give_as_owner(void *arg)
{
	(void)arg;
	release(0, &held);
}

static void run_spill(void)
{
	uint32_t threads[2];

	begin(2, 1, 1, 1);
	model_quiet_begin();
	MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &held));
	model_quiet_end();
	threads[0] = model_thread_start("owner", give_as_owner, NULL);
	threads[1] = model_thread_start("asks", ask_outside, NULL);
	end(threads, 2, 0);
}

/* ---- owner and thieves ---- */

static void pass_as_owner(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (acquire(0, &buffer)) {
		release(0, &buffer);
	}
	acquire(0, &buffer);
}

static void pass_as_other(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (acquire(1, &buffer)) {
		release(1, &buffer);
	}
}

static void pass_outside(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (acquire(PIN_POOL_OUTSIDE, &buffer)) {
		release(PIN_POOL_OUTSIDE, &buffer);
	}
}

static void run_thief(void)
{
	uint32_t threads[2];

	begin(2, 1, 2, 1);
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("thief", pass_outside, NULL);
	end(threads, 2, 0);
}

static void run_two_owners(void)
{
	uint32_t threads[2];

	begin(2, 2, 2, 1);
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("other", pass_as_other, NULL);
	end(threads, 2, 0);
}

/* ---- a robbed owner ---- */

static struct pinion_buffer others[2];

/* All of a pool with one magazine are out, and that one was robbed. */
static void begin_robbed(void)
{
	begin(2, 1, 2, 1);
	model_quiet_begin();
	for (uint32_t i = 0; i < 2; i++) {
		MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &others[i]));
	}
	model_quiet_end();
}

static void give_others_back(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	release(0, &others[0]);
	release(0, &others[1]);
	acquire(0, &buffer);
}

static void ask_twice(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	acquire(PIN_POOL_OUTSIDE, &buffer);
	acquire(PIN_POOL_OUTSIDE, &buffer);
}

static void run_robbed(void)
{
	uint32_t threads[2];

	begin_robbed();
	threads[0] = model_thread_start("owner", give_others_back, NULL);
	threads[1] = model_thread_start("asks", ask_twice, NULL);
	end(threads, 2, 0);
}

/* It fetches from the list, and forgets, while the next thief comes. */
static void run_forget(void)
{
	uint32_t threads[2];

	begin_robbed();
	model_quiet_begin();
	release(PIN_POOL_OUTSIDE, &others[0]);
	model_quiet_end();
	threads[0] = model_thread_start("owner", pass_as_owner, NULL);
	threads[1] = model_thread_start("thief", pass_outside, NULL);
	end(threads, 2, 0);
}

/* ---- what is laid out ---- */

/* Half of it goes into the owner's magazine while another asks for all. */
static void run_draw(void)
{
	struct pinion_buffer out[3];
	uint32_t threads[2];

	begin(3, 1, 5, 0);
	model_quiet_begin();
	for (uint32_t i = 0; i < 3; i++) {
		MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &out[i]));
	}
	for (uint32_t i = 0; i < 3; i++) {
		release(0, &out[i]);
	}
	MODEL_CHECK(pin_tray_count(&pool.magazines[0].tray) == 3);
	model_quiet_end();
	threads[0] = model_thread_start("owner", ask_as_owner, NULL);
	threads[1] = model_thread_start("asks", ask_twice, NULL);
	end(threads, 2, 0);
}

/* Two robbed ones: one is always free, on the one tray or on the other. */
static void run_tray(void)
{
	uint32_t threads[2];

	begin(2, 2, 1, 0);
	model_quiet_begin();
	MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &held));
	MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &others[0]));
	release(1, &others[0]);
	model_quiet_end();
	threads[0] = model_thread_start("asks", ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shift_once, NULL);
	end(threads, 2, 0);
}

/* Its owner lays one out, or somebody lists it; then another asks for it. */
static void run_given(void (*give)(void *))
{
	uint32_t threads[2];

	begin(1, 1, 1, 0);
	model_quiet_begin();
	MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &held));
	model_quiet_end();
	threads[0] = model_thread_start("gives", give, NULL);
	threads[1] = model_thread_start("asks", ask_outside, NULL);
	end(threads, 2, 0);
}

static void run_laid_out(void)
{
	run_given(give_as_owner);
}

/* Where threads cannot be made to pass fences, the owner passes its own. */
static void run_unfenced(void)
{
	uint32_t threads[2];

	has_no_fence = true;
	begin(1, 1, 1, 1);
	has_no_fence = false;
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("owner", give_as_owner, NULL);
	threads[1] = model_thread_start("asks", ask_outside, NULL);
	end(threads, 2, 0);
}

static void give_outside(void *arg)
{
	(void)arg;
	release(PIN_POOL_OUTSIDE, &held);
}

static void run_listed(void)
{
	run_given(give_outside);
}

/* ---- what is gathered for another node ---- */

/* One in the bundle of the other node's owner, one in its hand, no others. */
static void begin_bundle(void)
{
	struct pinion_buffer kept;

	begin_far(5, 2);
	model_quiet_begin();
	/* Two stay at home, as many as fit a bundle: the mark goes off. */
	MODEL_CHECK(acquire(1, &held));
	release(1, &held);
	for (uint32_t i = 0; i < 4; i++) {
		MODEL_CHECK(acquire(0, i == 0 ? &held : &kept));
	}
	MODEL_CHECK(pin_magazine_count(pin_pool_bundle(&pool, 1)) == 1);
	MODEL_CHECK(!pin_magazine_is_robbed(pin_pool_bundle(&pool, 1)));
	model_quiet_end();
}

static void give_far(void *arg)
{
	(void)arg;
	release(1, &held);
}

/* It is full, and goes home, while another asks for both. */
static void run_bundle(void)
{
	uint32_t threads[2];

	begin_bundle();
	threads[0] = model_thread_start("owner", give_far, NULL);
	threads[1] = model_thread_start("asks", ask_twice, NULL);
	end(threads, 2, 0);
}

static void go_idle(void *arg)
{
	(void)arg;
	pin_pool_send_home(&pool, 1);
}

/* Its owner has nothing to do. */
static void run_send_home(void)
{
	uint32_t threads[2];

	begin_bundle();
	threads[0] = model_thread_start("owner", go_idle, NULL);
	threads[1] = model_thread_start("asks", ask_outside, NULL);
	end(threads, 2, 0);
}

/* One is always free, in the bundle or in the other's magazine. */
static void shift_far(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	release(0, &held);
	acquire(1, &buffer);
}

static void run_shift_far(void)
{
	uint32_t threads[2];

	begin_bundle();
	threads[0] = model_thread_start("asks", ask_outside, NULL);
	threads[1] = model_thread_start("shifts", shift_far, NULL);
	end(threads, 2, 0);
}

/* Its owner puts one in and takes one out, and a thief comes. */
static void pass_far(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (acquire(1, &buffer)) {
		release(1, &buffer);
	}
	release(1, &held);
}

static void run_thief_far(void)
{
	uint32_t threads[2];

	begin_bundle();
	threads[0] = model_thread_start("owner", pass_far, NULL);
	threads[1] = model_thread_start("thief", pass_outside, NULL);
	end(threads, 2, 0);
}

/* ---- the list ---- */

static void take_two_give_one(void *arg)
{
	struct pinion_buffer first;
	struct pinion_buffer second;

	(void)arg;
	if (acquire(PIN_POOL_OUTSIDE, &first)) {
		acquire(PIN_POOL_OUTSIDE, &second);
		release(PIN_POOL_OUTSIDE, &first);
	}
}

static void run_list(void)
{
	uint32_t threads[2];

	begin(3, 1, 1, 0);
	threads[0] = model_thread_start("two", take_two_give_one, NULL);
	threads[1] = model_thread_start("one", pass_outside, NULL);
	end(threads, 2, 0);
}

/* Takes what it has just given back for the first still. */
static void give_and_take_again(void *arg)
{
	struct pinion_buffer buffer;

	(void)arg;
	if (acquire(PIN_POOL_OUTSIDE, &buffer)) {
		release(PIN_POOL_OUTSIDE, &buffer);
		acquire(PIN_POOL_OUTSIDE, &buffer);
	}
}

static void run_granted(void)
{
	uint32_t threads[2];

	begin(3, 1, 1, 0);
	threads[0] = model_thread_start("again", give_and_take_again, NULL);
	threads[1] = model_thread_start("two", take_two_give_one, NULL);
	end(threads, 2, 0);
}

/* ---- two give back the same ---- */

static uint32_t given_count;

static void give_again(void *arg)
{
	(void)arg;
	given_count += pin_pool_release(&pool, PIN_POOL_OUTSIDE, &held) == 0;
}

static void give_again_shortly(void *arg)
{
	(void)arg;
	given_count += release_shortly(PIN_POOL_OUTSIDE, &held) ||
		pin_pool_release(&pool, PIN_POOL_OUTSIDE, &held) == 0;
}

static void run_twice_by(void (*give)(void *))
{
	uint32_t threads[2];

	begin(1, 1, 1, 0);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(acquire(PIN_POOL_OUTSIDE, &held));
	model_quiet_end();
	threads[0] = model_thread_start("one", give, NULL);
	threads[1] = model_thread_start("other", give, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(given_count == 1);
	owner[held.index] = 0;
	change_sure(1);
	end(threads, 0, 1);
}

static void run_twice(void)
{
	run_twice_by(give_again);
}

static void run_twice_shortly(void)
{
	run_twice_by(give_again_shortly);
}

static void give_as_holder(void *arg)
{
	(void)arg;
	given_count += release_shortly(0, &held) || pin_pool_release(&pool, 0, &held) == 0;
}

/*
 * Its holder, by the way without a locked instruction, and another. Both may be
 * told that it went well; whoever comes upon it the second time finds out.
 */
static void run_twice_held(void)
{
	uint32_t threads[2];

	begin(1, 1, 1, 1);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("holder", give_as_holder, NULL);
	threads[1] = model_thread_start("other", give_again, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(given_count >= 1);
	owner[held.index] = 0;
	change_sure(1);
	end(threads, 0, 1);
}

/* The same with a guard: one is refused, before anybody takes the buffer. */
static void run_twice_guarded(void)
{
	uint32_t threads[2];

	begin_guarded();
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("holder", give_as_holder, NULL);
	threads[1] = model_thread_start("other", give_again, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(given_count == 1);
	MODEL_CHECK(pool.misuses.value == 1);
	owner[held.index] = 0;
	change_sure(1);
	end(threads, 0, 1);
}

/* ---- one gives back what a request has for a moment ---- */

static void lend_shortly(void *arg)
{
	struct pin_entry *entry = &pool.entries[held.index];

	(void)arg;
	if (pin_pool_lend(entry)) {
		pin_pool_unlend(entry);
	}
}

/* It is told of exactly what happened: given back, or refused and kept. */
static void run_lent(void)
{
	uint32_t threads[2];

	begin_guarded();
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("holder", give_as_holder, NULL);
	threads[1] = model_thread_start("request", lend_shortly, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(pool.misuses.value == 1 - given_count);
	MODEL_CHECK(pin_pool_count(&pool) == given_count);
	if (given_count == 1) {
		owner[held.index] = 0;
		change_sure(1);
	}
	end(threads, 0, 1 - given_count);
}

/*
 * Without a guard the holder may give it back by what it saw before. It is not
 * the kernel's for ever then, nor in use.
 */
static void run_lent_shortly(void)
{
	uint32_t threads[2];

	begin(1, 1, 1, 1);
	given_count = 0;
	model_quiet_begin();
	MODEL_CHECK(acquire(0, &held));
	model_quiet_end();
	threads[0] = model_thread_start("holder", give_as_holder, NULL);
	threads[1] = model_thread_start("request", lend_shortly, NULL);
	for (uint32_t i = 0; i < 2; i++) {
		model_thread_join(threads[i]);
	}
	MODEL_CHECK(pool.misuses.value == 1 - given_count);
	MODEL_CHECK(pin_pool_count(&pool) == given_count);
	MODEL_CHECK(pool.entries[held.index].state.value >> 32 == 0);
	if (given_count == 1) {
		owner[held.index] = 0;
		change_sure(1);
	}
	end(threads, 0, 1 - given_count);
}

static const struct model_twin shift_twins[] = {
	{"one look only", {MODEL_SKIP, "is_as_noted", "look"}},
	{"no fence between the looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_twin to_and_fro_twins[] = {
	{"a look does not see what came and went", {MODEL_NO_COMPARE, "look", NULL}},
	{.name = NULL},
};

static const struct model_twin refill_twins[] = {
	{"nothing is promised", {MODEL_SKIP, "draw_listed", "pin_magazine_promise"}},
	{.name = NULL},
};

static const struct model_twin spill_twins[] = {
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{.name = NULL},
};

static const struct model_twin thief_twins[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_magazine_leave", NULL}},
	{"the thief leaves without a release", {MODEL_RELAXED, "pin_magazine_get_out", NULL}},
	{.name = NULL},
};

static const struct model_twin robbed_twins[] = {
	{"it keeps what it should pass on", {MODEL_SKIP, "pin_pool_put", "pin_magazine_is_robbed"}},
	{"taken in two steps", {MODEL_TORN, "pin_tray_take", NULL}},
	{.name = NULL},
};

static const struct model_twin draw_twins[] = {
	{"nothing is promised", {MODEL_SKIP, "draw_laid_out", "pin_magazine_promise"}},
	{.name = NULL},
};

static const struct model_twin forget_twins[] = {
	{"the mark is taken off in two steps", {MODEL_TORN, "pin_magazine_forget_theft", NULL}},
	{.name = NULL},
};

static const struct model_twin laid_out_twins[] = {
	{"laid out by a plain store", {MODEL_SKIP, "pin_tray_put", "barrier"}},
	{"who asks passes no fence", {MODEL_DROP_FENCE, "is_exhausted", NULL}},
	{.name = NULL},
};

static const struct model_twin listed_twins[] = {
	{"listed without a barrier", {MODEL_RELAXED, "pin_freelist_push", NULL}},
	{"who asks passes no fence", {MODEL_DROP_FENCE, "is_exhausted", NULL}},
	{.name = NULL},
};

static const struct model_twin unfenced_twins[] = {
	{"the owner leaves without a fence", {MODEL_DROP_FENCE, "pin_magazine_leave_slowly", NULL}},
	{"it comes in without one", {MODEL_DROP_FENCE, "pin_magazine_enter_slowly", NULL}},
	{.name = NULL},
};

static const struct model_twin bundle_twins[] = {
	{"nobody looks there", {MODEL_SKIP, "look_into", "pin_pool_bundle"}},
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{.name = NULL},
};

static const struct model_twin send_home_twins[] = {
	{"it leaves before it has arrived",
		{MODEL_EARLY, "pin_pool_pass_on", "pin_magazine_drop_oldest"}},
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{.name = NULL},
};

static const struct model_twin shift_far_twins[] = {
	{"one look only", {MODEL_SKIP, "is_as_noted", "look"}},
	{.name = NULL},
};

static const struct model_twin thief_far_twins[] = {
	{"no fence between the two looks", {MODEL_DROP_FENCE, "model_fence_all", NULL}},
	{"the owner leaves without a release", {MODEL_RELAXED, "pin_magazine_leave", NULL}},
	{.name = NULL},
};

static const struct model_twin list_twins[] = {
	{"no tag", {MODEL_NO_COMPARE, "pin_freelist_pop", NULL}},
	{"a pop is no single step", {MODEL_TORN, "pin_freelist_pop", NULL}},
	{"a push is no single step", {MODEL_TORN, "pin_freelist_push", NULL}},
	{.name = NULL},
};

static const struct model_twin granted_twins[] = {
	{"no tag", {MODEL_NO_COMPARE, "pin_freelist_pop_own", NULL}},
	{"a pop is no single step", {MODEL_TORN, "pin_freelist_pop_own", NULL}},
	{.name = NULL},
};

static const struct model_twin twice_shortly_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release_listed", NULL}},
	{.name = NULL},
};

static const struct model_twin twice_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release", NULL}},
	{.name = NULL},
};

static const struct model_twin twice_held_twins[] = {
	{"nobody looks whether it is in use", {MODEL_SKIP, "pin_pool_acquire", "pin_pool_is_used"}},
	{.name = NULL},
};

static const struct model_twin twice_guarded_twins[] = {
	{"the end of a use is no single step", {MODEL_TORN, "pin_pool_release", NULL}},
	{"its holder goes the short way",
		{MODEL_SKIP, "pool_model_has_short_way", "pin_pool_has_short_way"}},
	{.name = NULL},
};

static const struct model_twin lent_twins[] = {
	{"it asks anew why it failed", {MODEL_LATE, "pin_pool_release", "pin_misuse_explain"}},
	{.name = NULL},
};

static const struct model_twin lent_shortly_twins[] = {
	{"the end of a request is no single step", {MODEL_TORN, "pin_pool_unlend", NULL}},
	{.name = NULL},
};

static const struct model_case cases[] = {
	{"shift", run_shift, 3, 1, 0, shift_twins, NULL},
	{"to_and_fro", run_to_and_fro, 3, 0, 0, to_and_fro_twins, NULL},
	{"refill", run_refill, 3, 1, 0, refill_twins, NULL},
	{"spill", run_spill, 3, 1, 0, spill_twins, NULL},
	{"thief", run_thief, 2, 3, 0, thief_twins, NULL},
	{"two_owners", run_two_owners, 2, 1, 0, NULL, NULL},
	{"robbed", run_robbed, 2, 3, 0, robbed_twins, NULL},
	{"forget", run_forget, 2, 3, 0, forget_twins, NULL},
	{"draw", run_draw, 2, 1, 0, draw_twins, NULL},
	{"tray", run_tray, 3, 1, 0, NULL, NULL},
	{"laid_out", run_laid_out, 3, 6, 0, laid_out_twins, NULL},
	{"listed", run_listed, 3, 6, 0, listed_twins, NULL},
	{"unfenced", run_unfenced, 3, 6, 0, unfenced_twins, NULL},
	{"bundle", run_bundle, 2, 1, 0, bundle_twins, NULL},
	{"send_home", run_send_home, 2, 2, 0, send_home_twins, NULL},
	{"shift_far", run_shift_far, 2, 1, 0, shift_far_twins, NULL},
	{"thief_far", run_thief_far, 2, 2, 0, thief_far_twins, NULL},
	{"list", run_list, 3, 1, 0, list_twins, NULL},
	{"granted", run_granted, 3, 1, 0, granted_twins, NULL},
	{"twice", run_twice, 3, 1, 0, twice_twins, NULL},
	{"twice_shortly", run_twice_shortly, 3, 1, 0, twice_shortly_twins, NULL},
	{"twice_held", run_twice_held, 3, 1, 0, twice_held_twins, NULL},
	{"twice_guarded", run_twice_guarded, 3, 1, 0, twice_guarded_twins, NULL},
	{"lent", run_lent, 3, 1, 0, lent_twins, NULL},
	{"lent_shortly", run_lent_shortly, 3, 1, 0, lent_shortly_twins, NULL},
};

int main(void)
{
	return model_main("pool", cases, PIN_ARRAY_COUNT(cases));
}
