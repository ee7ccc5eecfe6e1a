/* SPDX-License-Identifier: MIT */
/*
 * Goal: a sleeper until pin_timers_next_ns() that advances and asks again is
 * never late and wakes for nothing only where a timer was cancelled, and then
 * at most 15 times until a timer expires, be it centuries ahead. W32, C22,
 * AS-30. Hazards that others met: a wheel whose top level wraps after days, and
 * a driver that oversleeps.
 * Method: a clock that jumps to where the sleeper would wake; alone timers of
 * every distance; many; and cancellations chosen to cost as much as they can.
 */
#include "runtime/base/base.h"
#include "runtime/queue/timer_wheel.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

enum {
	TIMERS = 2000,
	WAKES = 200000,
	EARLY_WAKES_MAX = PIN_TIMERS_LEVELS - 1,
};

static struct pin_timers timers;
static struct pin_timer many[TIMERS];

/* Sleeps once; false when that led nowhere. */
static bool sleep_once(uint64_t *now_ns)
{
	uint64_t wake_ns = pin_timers_next_ns(&timers);

	if (!expect_true("a wake after now", wake_ns > *now_ns)) {
		return false;
	}
	*now_ns = wake_ns;
	return true;
}

static void check_alone(uint64_t start_ns, uint64_t deadline_ns)
{
	struct pin_timer timer = {0};
	uint64_t now_ns = start_ns;

	pin_timers_init(&timers, start_ns);
	pin_timers_insert(&timers, &timer, deadline_ns);
	expect_true("a wake", sleep_once(&now_ns));
	expect_true("at its deadline", now_ns == deadline_ns);
	expect_number("not due before", 0, (long long)pin_timers_advance(&timers, now_ns - 1));
	expect_number("due", 1, (long long)pin_timers_advance(&timers, now_ns));
	expect_true("popped", pin_timers_pop(&timers) == &timer);
}

static void check_every_distance(struct random_source *source)
{
	for (uint32_t bits = 0; bits < 64; bits++) {
		uint64_t distance_ns = UINT64_C(1) << bits;
		uint64_t start_ns = random_below(source, PIN_NO_DEADLINE - distance_ns - 1);

		check_alone(0, distance_ns);
		check_alone(start_ns, start_ns + distance_ns);
		check_alone(start_ns, PIN_NO_DEADLINE - 1);
	}
}

/* Each that expires is armed again; without cancelling, no wake is early. */
static void check_many(struct random_source *source)
{
	uint64_t now_ns = random_next(source) >> 8;

	pin_timers_init(&timers, now_ns);
	for (uint32_t i = 0; i < TIMERS; i++) {
		pin_timers_insert(
			&timers, &many[i], now_ns + (random_next(source) >> (20 + i % 44)));
	}
	/* Those of no distance at all. */
	pin_timers_advance(&timers, now_ns);
	for (uint32_t i = 0; i < WAKES && expect_failure_count == 0; i++) {
		struct pin_timer *timer = pin_timers_pop(&timers);

		if (timer == NULL) {
			sleep_once(&now_ns);
			expect_true("no early wake", pin_timers_advance(&timers, now_ns) > 0);
			continue;
		}
		expect_true("in time", timer->due_ns == now_ns);
		pin_timers_insert(
			&timers, timer, now_ns + 1 + (random_next(source) >> (20 + i % 44)));
	}
}

/*
 * Before each sleep a decoy at the first instant of the timer's slot is armed
 * and cancelled: no stale instant could be earlier.
 */
static uint32_t count_early_wakes(uint64_t start_ns, uint64_t deadline_ns)
{
	struct pin_timer timer = {0};
	uint64_t now_ns = start_ns;

	pin_timers_init(&timers, start_ns);
	pin_timers_insert(&timers, &timer, deadline_ns);
	for (uint32_t early_count = 0; early_count <= 1000; early_count++) {
		uint32_t level = (timer.slot_place - 1) / PIN_TIMERS_DIGITS;
		uint64_t unit = UINT64_C(1) << (level * PIN_TIMERS_DIGIT_BITS);
		struct pin_timer decoy = {0};

		pin_timers_insert(&timers, &decoy, pin_round_down(deadline_ns, unit));
		expect_true("decoy", pin_timers_cancel(&timers, &decoy));
		if (!sleep_once(&now_ns)) {
			return 0;
		}
		if (pin_timers_advance(&timers, now_ns) > 0) {
			expect_true("in time", now_ns == deadline_ns);
			return early_count;
		}
	}
	expect_true("it expires", false);
	return 0;
}

static void check_decoys(struct random_source *source)
{
	/* Every digit differs, so every level is passed through. */
	expect_number(
		"early wakes at worst", EARLY_WAKES_MAX, count_early_wakes(0, PIN_NO_DEADLINE - 1));
	for (uint32_t i = 0; i < 100000 && expect_failure_count == 0; i++) {
		uint64_t start_ns = random_next(source) >> random_below(source, 64);
		uint64_t distance_ns = random_next(source) >> random_below(source, 64);

		if (distance_ns == 0 || distance_ns >= PIN_NO_DEADLINE - start_ns) {
			continue;
		}
		expect_true("few early wakes",
			count_early_wakes(start_ns, start_ns + distance_ns) <= EARLY_WAKES_MAX);
	}
}

/*
 * Timeouts as they are used: nearly all are cancelled long before they end. A
 * cancellation costs one early wake at most.
 */
static void check_timeouts(struct random_source *source)
{
	uint64_t now_ns = random_next(source) >> 8;
	uint64_t cancelled_count = 0;
	uint64_t early_count = 0;

	pin_timers_init(&timers, now_ns);
	memset(many, 0, sizeof(many));
	for (uint32_t i = 0; i < WAKES && expect_failure_count == 0; i++) {
		struct pin_timer *timer = &many[random_below(source, TIMERS)];

		cancelled_count += pin_timers_cancel(&timers, timer) ? 1 : 0;
		pin_timers_insert(&timers, timer, now_ns + 30000000 + random_below(source, 1000));
		if (random_below(source, 10) != 0) {
			now_ns += random_below(source, 20000);
			pin_timers_advance(&timers, now_ns);
		} else if (pin_timers_next_ns(&timers) > now_ns) {
			sleep_once(&now_ns);
			early_count += pin_timers_advance(&timers, now_ns) == 0 ? 1 : 0;
		}
		while (pin_timers_pop(&timers) != NULL) {
		}
	}
	expect_true("timeouts were cancelled", cancelled_count > WAKES / 10);
	expect_true("early wakes are fewer than cancellations", early_count <= cancelled_count);
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	check_every_distance(&source);
	check_many(&source);
	check_decoys(&source);
	check_timeouts(&source);
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}
