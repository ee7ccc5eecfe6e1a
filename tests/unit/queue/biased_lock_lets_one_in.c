/* SPDX-License-Identifier: MIT */
/*
 * Goal: another thread takes the lock only if its owner is not in it, no third
 * thread has it, and the owner is known to have passed a fence; a refused take
 * leaves nothing behind. The owner waits outside until the other has left.
 * Method: one thread plays both, with a host whose fence and yield are made up.
 */
#include "runtime/queue/biased_lock.h"
#include "tests/support/expect.h"

static struct pin_biased_lock owned;
static struct pin_host host;
static bool can_fence;
static uint32_t fence_count;
static uint32_t yield_count;
static uint32_t yields_until_release;

static bool fence_all(void)
{
	fence_count++;
	return can_fence;
}

/* The other leaves after some of them; the owner is outside meanwhile. */
static void yield(void)
{
	yield_count++;
	expect_number("busy while it waits", 0, pin_load_relaxed_u32(&owned.busy));
	if (yield_count == yields_until_release) {
		pin_biased_release(&owned);
	}
}

static void begin(bool is_fenced, bool has_fence)
{
	owned = (struct pin_biased_lock){.is_fenced = is_fenced};
	can_fence = has_fence;
	fence_count = 0;
	yield_count = 0;
	yields_until_release = 0;
}

static void expect_state(const char *what, uint32_t busy, uint32_t taken)
{
	expect_number(what, busy, pin_load_relaxed_u32(&owned.busy));
	expect_number(what, taken, pin_load_relaxed_u32(&owned.taken));
}

static void check_others(bool is_fenced)
{
	uint32_t fences = is_fenced ? 0 : 1;

	begin(is_fenced, true);
	expect_true("taken", pin_biased_take(&owned, &host));
	expect_number("fences", fences, fence_count);
	expect_state("taken", 0, 1);
	expect_true("not twice", !pin_biased_take(&owned, &host));
	expect_number("which costs no fence", fences, fence_count);
	expect_state("still taken", 0, 1);
	pin_biased_release(&owned);
	expect_state("released", 0, 0);
	pin_biased_enter(&owned, &host);
	expect_state("entered", 1, 0);
	expect_true("the owner is in it", !pin_biased_take(&owned, &host));
	expect_state("as before", 1, 0);
	pin_biased_leave(&owned);
	expect_state("left", 0, 0);
	expect_true("taken again", pin_biased_take(&owned, &host));
	expect_number("no waiting", 0, yield_count);
}

static void check_without_fence(void)
{
	begin(false, false);
	expect_true("the owner may be in it", !pin_biased_take(&owned, &host));
	expect_state("nothing left", 0, 0);
	begin(true, false);
	expect_true("the owner has a fence of its own", pin_biased_take(&owned, &host));
	expect_number("none for all", 0, fence_count);
}

static void check_owner(bool is_fenced)
{
	begin(is_fenced, true);
	expect_true("taken", pin_biased_take(&owned, &host));
	yields_until_release = 3;
	pin_biased_enter(&owned, &host);
	expect_number("waited", 3, yield_count);
	expect_state("entered", 1, 0);
	pin_biased_leave(&owned);
}

int main(void)
{
	host = pin_host_linux;
	host.fence_all = fence_all;
	host.yield = yield;
	check_others(false);
	check_others(true);
	check_without_fence();
	check_owner(false);
	check_owner(true);
	return expect_status();
}
