/* SPDX-License-Identifier: MIT */
/*
 * Goal: each yield policy is due when its header says (EX-55, C2); the adaptive
 * one makes stretches of the length asked for; a saved policy repeats every
 * decision.
 * Method: calls counted off; tasks whose units take known times, so that a
 * stretch has a length without a clock; random calls, saved in the middle and
 * repeated on the copy.
 */
#include "runtime/base/base.h"
#include "tests/support/expect.h"
#include "tests/support/random.h"

#include <errno.h>
#include <pinion/yield.h>

enum {
	STRETCH_NS = 500 * 1000,
	ROUNDS = 500,
	CALLS = 400,
};

static struct pinion_yield begin(uint32_t kind, uint64_t limit)
{
	struct pinion_yield yield;

	expect_number("init", 0, pinion_yield_init(&yield, kind, limit));
	return yield;
}

/* Calls of that number of units until one is due, at most 10 000. */
static uint32_t calls_until_due(struct pinion_yield *yield, uint64_t units)
{
	uint32_t calls = 1;

	while (!pinion_yield_due(yield, units) && calls < 10000) {
		calls++;
	}
	return calls;
}

/* All that a saved policy has, so that equal ones are equal bytes. */
static void expect_state(const char *what, const struct pinion_yield *yield, uint64_t limit,
	uint64_t quota_units, uint64_t done_units, uint32_t has_ended)
{
	char name[64];

	snprintf(name, sizeof(name), "%s: limit", what);
	expect_number(name, (long long)limit, (long long)yield->limit);
	snprintf(name, sizeof(name), "%s: quota", what);
	expect_number(name, (long long)quota_units, (long long)yield->quota_units);
	snprintf(name, sizeof(name), "%s: done", what);
	expect_number(name, (long long)done_units, (long long)yield->done_units);
	snprintf(name, sizeof(name), "%s: has ended", what);
	expect_number(name, has_ended, yield->has_ended);
}

static void check_states(void)
{
	struct pinion_yield yield = begin(PINION_YIELD_EVERY_N, 0);

	expect_state("every 64", &yield, 64, 64, 0, 0);
	yield = begin(PINION_YIELD_NEVER, 7);
	expect_state("never", &yield, 0, UINT64_MAX, 0, 0);
	yield = begin(PINION_YIELD_ALWAYS, 7);
	expect_state("always", &yield, 0, 0, 0, 0);
	yield = begin(PINION_YIELD_ADAPTIVE, 0);
	expect_state("adaptive", &yield, STRETCH_NS, 1, 0, 0);
	yield = begin(PINION_YIELD_UNITS, 0);
	expect_state("units", &yield, 1 << 20, 1 << 20, 0, 0);
	yield = begin(PINION_YIELD_UNITS, 100);
	expect_true("not yet", !pinion_yield_due(&yield, 60));
	expect_state("60 of 100", &yield, 100, 100, 60, 0);
	expect_true("due", pinion_yield_due(&yield, 70));
	expect_state("130 of 100", &yield, 100, 100, 130, 1);
	pinion_yield_note(&yield, 1);
	expect_state("with the rest", &yield, 100, 100, 30, 0);
	/* No stretch has ended in between. */
	pinion_yield_note(&yield, 1);
	expect_state("anew", &yield, 100, 100, 0, 0);
	yield = begin(PINION_YIELD_EVERY_N, 2);
	expect_true("first of two", !pinion_yield_due(&yield, 9));
	expect_state("first of two", &yield, 2, 2, 1, 0);
}

/* ---- the fixed kinds ---- */

static void check_every_n(void)
{
	static const uint64_t units[] = {0, 1, 1000, UINT64_MAX};
	struct pinion_yield yield = begin(PINION_YIELD_EVERY_N, 0);

	for (size_t i = 0; i < PIN_ARRAY_COUNT(units); i++) {
		expect_number("calls by default", 64, calls_until_due(&yield, units[i]));
	}
	yield = begin(PINION_YIELD_EVERY_N, 3);
	for (size_t i = 0; i < PIN_ARRAY_COUNT(units); i++) {
		expect_number("calls of three", 3, calls_until_due(&yield, units[i]));
	}
	/* Leaving early begins anew. */
	expect_true("first of three", !pinion_yield_due(&yield, 1));
	expect_true("second of three", !pinion_yield_due(&yield, 1));
	pinion_yield_note(&yield, 10);
	expect_number("calls after a note", 3, calls_until_due(&yield, 1));
	pinion_yield_note(&yield, 1000 * STRETCH_NS);
	expect_number("calls after a long stretch", 3, calls_until_due(&yield, 1));
}

static void check_never_and_always(void)
{
	struct pinion_yield never = begin(PINION_YIELD_NEVER, 1);
	struct pinion_yield always = begin(PINION_YIELD_ALWAYS, 1000);

	for (uint32_t i = 0; i < 1000; i++) {
		expect_true("never", !pinion_yield_due(&never, i % 2 == 0 ? 1 : UINT64_MAX));
		expect_true("always", pinion_yield_due(&always, i % 2 == 0 ? 0 : 1));
		pinion_yield_note(&never, i);
		pinion_yield_note(&always, i);
	}
}

static void check_units(void)
{
	struct pinion_yield yield = begin(PINION_YIELD_UNITS, 0);

	expect_number("calls of 4 KiB", 256, calls_until_due(&yield, 4096));
	expect_number("calls of 1 MiB less one", 2, calls_until_due(&yield, (1 << 20) - 1));
	/* The excess is charged to the next stretch. */
	expect_number("calls of one byte", 2, calls_until_due(&yield, 1));
	expect_number("calls of 4 KiB again", 256, calls_until_due(&yield, 4096));
	yield = begin(PINION_YIELD_UNITS, 100);
	expect_true("99 of 100", !pinion_yield_due(&yield, 99));
	expect_true("a call without progress", !pinion_yield_due(&yield, 0));
	expect_true("100 of 100", pinion_yield_due(&yield, 1));
	expect_true("1 of 100", !pinion_yield_due(&yield, 1));
	expect_true("more than there can be", pinion_yield_due(&yield, UINT64_MAX));
	expect_true("and nothing", !pinion_yield_due(&yield, 0));
	/* Leaving early begins anew, a note after the end does not. */
	pinion_yield_note(&yield, 1);
	expect_true("150 of 100", pinion_yield_due(&yield, 150));
	pinion_yield_note(&yield, 1);
	expect_true("99 of 100 again", !pinion_yield_due(&yield, 49));
	pinion_yield_note(&yield, 1);
	expect_true("99 of 100 anew", !pinion_yield_due(&yield, 99));
	yield = begin(PINION_YIELD_UNITS, UINT64_MAX);
	expect_true("all but one", !pinion_yield_due(&yield, UINT64_MAX - 1));
	expect_true("all and more", pinion_yield_due(&yield, 5));
}

static void check_presets(void)
{
	static const struct {
		uint32_t preset;
		uint64_t limit;
	} table[] = {
		{PINION_YIELD_GIT_COMMIT_WALK, 128},
		{PINION_YIELD_GIT_CANDIDATE_EMIT, 64},
		{PINION_YIELD_GIT_PACK_INFLATE, 524288},
		{PINION_YIELD_GIT_DELTA_RESOLVE, 128},
		{PINION_YIELD_GIT_CONTENT_SCAN, 262144},
	};
	struct pinion_yield yield;
	struct pinion_yield before;

	for (size_t i = 0; i < PIN_ARRAY_COUNT(table); i++) {
		expect_number("preset's number", (long long)i, table[i].preset);
		expect_number("preset", 0, pinion_yield_init_preset(&yield, table[i].preset));
		expect_number("kind", PINION_YIELD_UNITS, yield.kind);
		expect_number("limit", (long long)table[i].limit, (long long)yield.limit);
		expect_true("one less", !pinion_yield_due(&yield, table[i].limit - 1));
		expect_true("all", pinion_yield_due(&yield, 4));
		/* Three were too many: they count for the next stretch. */
		expect_true("one less again", !pinion_yield_due(&yield, table[i].limit - 4));
		expect_true("all again", pinion_yield_due(&yield, 1));
	}
	before = yield;
	expect_number("no such preset", -EINVAL, pinion_yield_init_preset(&yield, 5));
	expect_number("left as it was", 0, memcmp(&yield, &before, sizeof(yield)));
}

/* As many yields as limits are in the sum, whatever the portions. */
static void check_portions(struct random_source *source)
{
	uint64_t limit = 1 + random_below(source, 1000);
	struct pinion_yield yield = begin(PINION_YIELD_UNITS, limit);
	uint64_t yields = 0;
	uint64_t sum = 0;

	for (int i = 0; i < CALLS; i++) {
		uint64_t portion = random_below(source, limit + 1);

		sum += portion;
		yields += pinion_yield_due(&yield, portion) ? 1 : 0;
	}
	expect_number("yields", (long long)(sum / limit), (long long)yields);
}

static void check_refusals(void)
{
	struct pinion_yield yield;
	struct pinion_yield before;

	memset(&yield, 0xa5, sizeof(yield));
	before = yield;
	expect_number("no such kind", -EINVAL, pinion_yield_init(&yield, 5, 1));
	expect_number("no such kind either", -EINVAL, pinion_yield_init(&yield, UINT32_MAX, 1));
	expect_number("more than a second", -EINVAL,
		pinion_yield_init(&yield, PINION_YIELD_ADAPTIVE, 1000 * 1000 * 1000 + 1));
	expect_number("left as it was", 0, memcmp(&yield, &before, sizeof(yield)));
	expect_number("a second", 0,
		pinion_yield_init(&yield, PINION_YIELD_ADAPTIVE, 1000 * 1000 * 1000));
}

/* ---- adaptive ---- */

/* One stretch of a task whose units take so long and come in such portions. */
static uint64_t stretch_ns(struct pinion_yield *yield, uint64_t unit_ns, uint64_t portion)
{
	uint64_t ns = 0;

	do {
		ns += unit_ns * portion;
	} while (!pinion_yield_due(yield, portion));
	pinion_yield_note(yield, ns);
	return ns;
}

/*
 * Cheap and dear units: from one unit on, no stretch is longer than asked for
 * by more than one portion, and after 21 doublings none is shorter.
 */
static void check_pace(uint64_t unit_ns, uint64_t portion, uint64_t limit_ns)
{
	struct pinion_yield yield = begin(PINION_YIELD_ADAPTIVE, limit_ns);
	uint64_t asked_ns = limit_ns != 0 ? limit_ns : STRETCH_NS;
	uint64_t portion_ns = unit_ns * portion;
	uint64_t last_ns = 0;
	char what[128];

	for (int i = 0; i < 30; i++) {
		last_ns = stretch_ns(&yield, unit_ns, portion);
		snprintf(what, sizeof(what), "%llu units of %llu ns: stretch %d is no longer",
			(unsigned long long)portion, (unsigned long long)unit_ns, i);
		expect_true(what, last_ns <= asked_ns + portion_ns);
	}
	snprintf(what, sizeof(what),
		"%llu units of %llu ns: the last stretch, %llu ns, is as asked",
		(unsigned long long)portion, (unsigned long long)unit_ns,
		(unsigned long long)last_ns);
	expect_true(what, last_ns + portion_ns > asked_ns && last_ns <= asked_ns + portion_ns);
}

static void check_paces(void)
{
	for (uint64_t unit_ns = 1; unit_ns < 20 * 1000 * 1000; unit_ns = unit_ns * 3 + 1) {
		check_pace(unit_ns, 1, 0);
		check_pace(unit_ns, 7, 0);
		check_pace(unit_ns, 1, 20 * 1000);
	}
	check_pace(1, 65536, 0);
	check_pace(1, 65536, 1000 * 1000 * 1000);
}

static void check_changes(void)
{
	struct pinion_yield yield = begin(PINION_YIELD_ADAPTIVE, 0);

	for (int i = 0; i < 30; i++) {
		stretch_ns(&yield, 1000, 1);
	}
	expect_number("units of 1 us", 500, (long long)yield.quota_units);
	/* Units become a hundred times as dear: one stretch is too long. */
	expect_number("the stretch in which it shows", 100 * STRETCH_NS,
		(long long)stretch_ns(&yield, 100 * 1000, 1));
	expect_number("the next stretch", STRETCH_NS, (long long)stretch_ns(&yield, 100 * 1000, 1));
	/* And cheap again: growth by doubling, 5, 10 … 500. */
	for (uint64_t quota = 10; quota < 500; quota *= 2) {
		stretch_ns(&yield, 1000, 1);
		expect_number("quota that grows", (long long)quota, (long long)yield.quota_units);
	}
	stretch_ns(&yield, 1000, 1);
	expect_number("quota that has grown", 500, (long long)yield.quota_units);
	/* A stretch cut short counts as much as it has done. */
	expect_true("cut short", !pinion_yield_due(&yield, 250));
	pinion_yield_note(&yield, 2 * STRETCH_NS);
	expect_number("quota after it", 125, (long long)yield.quota_units);
	pinion_yield_note(&yield, UINT64_MAX);
	expect_number("quota after nothing was done", 125, (long long)yield.quota_units);
}

static void check_extremes(void)
{
	struct pinion_yield yield = begin(PINION_YIELD_ADAPTIVE, 1000 * 1000 * 1000);

	for (int i = 0; i < 100; i++) {
		expect_true("due without notes", pinion_yield_due(&yield, 1));
	}
	for (int i = 0; i < 100; i++) {
		calls_until_due(&yield, UINT64_MAX);
		pinion_yield_note(&yield, 0);
	}
	expect_number("greatest quota", 1LL << 32, (long long)yield.quota_units);
	yield = begin(PINION_YIELD_ADAPTIVE, 1);
	expect_true("ten units", pinion_yield_due(&yield, 10));
	pinion_yield_note(&yield, 1);
	expect_number("in a nanosecond", 10, (long long)yield.quota_units);
	/* Twice as many are less than that. */
	yield = begin(PINION_YIELD_ADAPTIVE, 1000 * 1000 * 1000);
	expect_true("many units at once", pinion_yield_due(&yield, 3LL << 29));
	pinion_yield_note(&yield, 0);
	expect_number("twice as many", 3LL << 30, (long long)yield.quota_units);
	yield = begin(PINION_YIELD_ADAPTIVE, 1000 * 1000 * 1000);
	expect_true("half of the most", pinion_yield_due(&yield, 1LL << 31));
	pinion_yield_note(&yield, 0);
	expect_number("all", 1LL << 32, (long long)yield.quota_units);
	/* 2^55 units in a second: their product is 0 modulo 2^64. */
	expect_true("very many units at once", pinion_yield_due(&yield, UINT64_C(1) << 55));
	pinion_yield_note(&yield, 1000 * 1000 * 1000);
	expect_number("quota as before", 1LL << 32, (long long)yield.quota_units);
	expect_true("all units again", pinion_yield_due(&yield, UINT64_MAX));
	pinion_yield_note(&yield, UINT64_MAX);
	expect_number("least quota", 1, (long long)yield.quota_units);
}

/* ---- save and replay ---- */

static bool step(struct pinion_yield *yield, struct random_source *source)
{
	uint64_t dice = random_below(source, 10);

	if (dice < 2) {
		pinion_yield_note(yield, random_next(source) >> random_below(source, 64));
		return false;
	}
	return pinion_yield_due(yield, dice < 4 ? random_next(source) : random_below(source, 100));
}

static void check_replay(struct random_source *source)
{
	struct pinion_yield yield =
		begin((uint32_t)random_below(source, 5), random_below(source, 1000));
	struct random_source replayed;
	struct pinion_yield copy;
	uint8_t saved[sizeof(yield)];
	bool decisions[CALLS];

	for (uint64_t i = random_below(source, CALLS); i > 0; i--) {
		step(&yield, source);
	}
	memcpy(saved, &yield, sizeof(saved));
	replayed = *source;
	for (int i = 0; i < CALLS; i++) {
		decisions[i] = step(&yield, source);
	}
	memcpy(&copy, saved, sizeof(copy));
	for (int i = 0; i < CALLS; i++) {
		expect_number("repeated decision", decisions[i], step(&copy, &replayed));
	}
	expect_number("repeated state", 0, memcmp(&copy, &yield, sizeof(copy)));
}

int main(void)
{
	struct random_source source;
	uint64_t seed = random_begin(&source);

	check_states();
	check_every_n();
	check_never_and_always();
	check_units();
	check_presets();
	check_refusals();
	check_paces();
	check_changes();
	check_extremes();
	for (int i = 0; i < ROUNDS && expect_failure_count == 0; i++) {
		check_replay(&source);
		check_portions(&source);
	}
	if (expect_failure_count != 0) {
		printf("seed %llu\n", (unsigned long long)seed);
	}
	return expect_status();
}
