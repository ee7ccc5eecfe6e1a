/* SPDX-License-Identifier: MIT */
/*
 * Goal: the wheel does the same as an unsorted list of timers: none expires
 * early, is left or is lost, whatever the steps of the clock; the next wake is
 * never late; due timers come in order; cancelling works at any time; and no
 * timer moves other than to a lower level. W32, C22, AS-3, AS-30.
 * Method: random insertions, cancellations, advances and pops, at all scales
 * from one nanosecond to the end of 64 bits, and next to the borders of slots.
 */
#include "runtime/base/base.h"
#include "runtime/queue/timer_wheel.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

enum {
	TIMERS = 60,
	ROUNDS = 6000,
	STEPS = 200,
	NO_LEVEL = PIN_TIMERS_LEVELS + 1,
};

#define LAST_INSTANT (PIN_NO_DEADLINE - 1)

enum entry_state {
	ENTRY_OUT,
	ENTRY_ARMED,
	ENTRY_DUE,
};

struct entry {
	struct pin_timer timer;
	enum entry_state state;
	uint64_t key;	   /* when it is due */
	uint64_t sequence; /* of its insertion; later its place among due ones */
	uint32_t level;	   /* where the wheel had it last */
};

static struct entry entries[TIMERS];
static struct pin_timers timers;
static struct random_source source;
static uint64_t now_ns;
static uint64_t sequence_next;
static uint64_t armed_count;
static bool was_any_cancelled;
static uint32_t reach_bits; /* of deadlines and steps in this round */

static bool expect_instant(const char *what, uint64_t expected, uint64_t got)
{
	if (expected != got) {
		printf("%s: expected %llu, got %llu at %llu\n", what, (unsigned long long)expected,
			(unsigned long long)got, (unsigned long long)now_ns);
		expect_failure_count++;
	}
	return expected == got;
}

static uint64_t later(uint64_t instant, uint64_t by_ns)
{
	return by_ns <= PIN_NO_DEADLINE - instant ? instant + by_ns : PIN_NO_DEADLINE;
}

static uint64_t earlier(uint64_t instant, uint64_t by_ns)
{
	return by_ns <= instant ? instant - by_ns : 0;
}

/* Of any scale within this round's. */
static uint64_t random_span(void)
{
	uint64_t bits = random_below(&source, reach_bits + 1);

	return bits == 0 ? 0 : random_next(&source) >> (64 - bits);
}

/* The next multiple of a power of two, or next to it. */
static uint64_t random_border(void)
{
	uint64_t unit = UINT64_C(1) << random_below(&source, reach_bits);
	uint64_t border = later(now_ns, unit - (now_ns & (unit - 1)));

	return later(earlier(border, 1), random_below(&source, 3));
}

/* The armed timer that is due first, or NULL. */
static struct entry *first_armed(void)
{
	struct entry *first = NULL;

	for (uint32_t i = 0; i < TIMERS; i++) {
		struct entry *entry = &entries[i];

		if (entry->state == ENTRY_ARMED &&
			(first == NULL || entry->key < first->key ||
				(entry->key == first->key && entry->sequence < first->sequence))) {
			first = entry;
		}
	}
	return first;
}

static struct entry *first_due(void)
{
	struct entry *first = NULL;

	for (uint32_t i = 0; i < TIMERS; i++) {
		if (entries[i].state == ENTRY_DUE &&
			(first == NULL || entries[i].sequence < first->sequence)) {
			first = &entries[i];
		}
	}
	return first;
}

static uint64_t random_instant(void)
{
	struct entry *first = first_armed();
	uint64_t first_key = first == NULL ? now_ns : first->key;

	switch (random_below(&source, 16)) {
	case 0:
		return earlier(now_ns, random_span());
	case 1:
		return now_ns;
	case 2:
		return first_key;
	case 3:
		return earlier(first_key, 1);
	case 4:
		return later(first_key, 1);
	case 5:
		return entries[random_below(&source, TIMERS)].key;
	case 6:
	case 7:
	case 8:
		return random_border();
	default:
		return later(now_ns, random_span());
	}
}

static uint32_t level_of(const struct entry *entry)
{
	uint32_t place = entry->timer.slot_place;

	return entry->state == ENTRY_ARMED ? (place - 1) / PIN_TIMERS_DIGITS : NO_LEVEL;
}

static void insert(struct entry *entry)
{
	static const uint64_t edges[] = {0, 1, LAST_INSTANT - 1, LAST_INSTANT, PIN_NO_DEADLINE};
	uint64_t deadline_ns = random_instant();

	if (entry->state != ENTRY_OUT) {
		return;
	}
	if (random_below(&source, 16) == 0) {
		deadline_ns = edges[random_below(&source, PIN_ARRAY_COUNT(edges))];
	}
	pin_timers_insert(&timers, &entry->timer, deadline_ns);
	entry->state = ENTRY_ARMED;
	entry->key = deadline_ns > now_ns ? deadline_ns : now_ns;
	entry->sequence = sequence_next++;
	entry->level = level_of(entry);
	armed_count++;
}

static void cancel(struct entry *entry)
{
	bool was_armed = entry->state != ENTRY_OUT;

	expect_number(
		"cancel finds it armed", was_armed, pin_timers_cancel(&timers, &entry->timer));
	entry->state = ENTRY_OUT;
	armed_count -= was_armed ? 1 : 0;
	was_any_cancelled |= was_armed;
}

/* A move without a lower level would be one of more than the header says. */
static void check_levels(void)
{
	for (uint32_t i = 0; i < TIMERS; i++) {
		uint32_t level = level_of(&entries[i]);

		if (level != NO_LEVEL) {
			expect_true("levels only fall", level <= entries[i].level);
			entries[i].level = level;
		}
	}
}

static void advance(uint64_t to_ns)
{
	uint64_t due_count = 0;
	uint64_t got = pin_timers_advance(&timers, to_ns);

	to_ns = to_ns > LAST_INSTANT ? LAST_INSTANT : to_ns;
	now_ns = to_ns > now_ns ? to_ns : now_ns;
	for (struct entry *entry = first_armed(); entry != NULL && entry->key <= now_ns;
		entry = first_armed()) {
		entry->state = ENTRY_DUE;
		entry->sequence = sequence_next++;
		due_count++;
	}
	expect_number("became due", (long long)due_count, (long long)got);
	check_levels();
}

static void pop(void)
{
	struct entry *expected = first_due();
	struct pin_timer *timer = pin_timers_pop(&timers);
	struct entry *got = timer == NULL ? NULL : PIN_CONTAINER_OF(timer, struct entry, timer);

	expect_number("popped, by its index", expected == NULL ? -1 : expected - entries,
		got == NULL ? -1 : got - entries);
	if (expected != NULL) {
		expect_instant("its instant", expected->key, expected->timer.due_ns);
		expected->state = ENTRY_OUT;
		armed_count--;
	}
}

static void check_next(void)
{
	const struct entry *first = first_armed();
	uint64_t next = pin_timers_next_ns(&timers);

	expect_number("count", (long long)armed_count, (long long)pin_timers_count(&timers));
	if (first_due() != NULL) {
		expect_instant("next, with something due", now_ns, next);
	} else if (first == NULL || first->key == PIN_NO_DEADLINE) {
		expect_instant("next, with nothing to expire", PIN_NO_DEADLINE, next);
	} else if (!was_any_cancelled || first->key == now_ns) {
		expect_instant("next is exact", first->key, next);
	} else if (next <= now_ns || next > first->key) {
		expect_instant("next is after now, and not late", first->key, next);
	}
}

static void step(bool may_cancel)
{
	struct entry *entry = &entries[random_below(&source, TIMERS)];
	uint64_t dice = random_below(&source, 100);

	if (dice < 40) {
		insert(entry);
	} else if (dice < 55) {
		if (may_cancel || entry->state == ENTRY_OUT) {
			cancel(entry);
		}
	} else if (dice < 60) {
		advance(pin_timers_next_ns(&timers));
	} else if (dice < 63) {
		advance(later(now_ns, UINT64_C(3600000000000) * random_below(&source, 100)));
	} else if (dice < 64) {
		advance(later(now_ns, UINT64_C(1) << 40));
	} else if (dice < 75) {
		advance(random_instant());
	} else {
		pop();
	}
	expect_number("is armed", entry->state != ENTRY_OUT, pin_timer_is_armed(&entry->timer));
	check_next();
}

/* Whatever was in it comes out of it, each once. */
static void end_round(void)
{
	uint64_t due_count = armed_count;

	for (uint32_t i = 0; i < TIMERS; i++) {
		due_count -= entries[i].state == ENTRY_DUE ? 1 : 0;
	}
	expect_number("expired at the end", (long long)due_count,
		(long long)pin_timers_expire_all(&timers));
	for (struct pin_timer *timer = pin_timers_pop(&timers); timer != NULL;
		timer = pin_timers_pop(&timers)) {
		struct entry *entry = PIN_CONTAINER_OF(timer, struct entry, timer);

		expect_true("it was in the wheel", entry->state != ENTRY_OUT);
		entry->state = ENTRY_OUT;
		armed_count--;
	}
	expect_number("left at the end", 0, (long long)armed_count);
	check_next();
}

static void run_round(void)
{
	uint64_t start_bits = random_below(&source, 65);

	reach_bits = 1 + (uint32_t)random_below(&source, random_below(&source, 4) == 0 ? 63 : 40);
	now_ns = start_bits == 0 ? 0 : random_next(&source) >> (64 - start_bits);
	if (random_below(&source, 8) == 0) {
		now_ns = LAST_INSTANT - random_span();
	}
	was_any_cancelled = false;
	pin_timers_init(&timers, now_ns);
	check_next();
	for (uint32_t i = 0; i < STEPS && expect_failure_count == 0; i++) {
		step(start_bits % 2 == 0);
	}
	end_round();
}

int main(void)
{
	uint64_t seed = random_begin(&source);

	for (uint32_t i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		run_round();
	}
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}
