/* SPDX-License-Identifier: MIT */
/*
 * Adaptive spin: how long a worker that has run dry waits awake before it
 * sleeps.
 *
 * A wake costs both sides several microseconds and the work tens of them, so it
 * pays to wait awake for work that comes sooner than that, and for nothing
 * else. The time until work came after the worker had slept is no evidence: the
 * wakes themselves are in it. Two workers that take turns, each asleep while
 * the other works, see gaps of two wakes, and would go on like that for ever;
 * awake they would see a microsecond. On the other hand where a worker shares
 * its CPU with the bringer of the work, gaps are short, and all waiting is in
 * vain.
 *
 * So there are three spans, in looks for work, and what they catch decides:
 *
 *     usual    as configured, about a third of a wake; where gaps are short.
 *              After some that caught nothing, only now and then
 *     learned  twice what it took lately, four times the usual one at most
 *     trial    longer than two wakes; now and then, when some sleeps in a row
 *              were ended soon. It is given several spans and ends with the
 *              first that catches nothing. If the work came sooner than a wake
 *              at the end, the next trial may come earlier, else later: so a
 *              trial that never pays costs less than 0.1 % of a CPU.
 *
 * A worker without work for longer times has no short gaps, and tries nothing.
 *
 * Policy only: no atomics, no clock. One per worker, used by it alone, in this
 * order: ask when dry; if the answer was to spin, report how that ended; when
 * there is work again, report how long there was none.
 *
 * Invariant: a trial begins PIN_SPIN_PAUSE_NS_MIN after the last one at the
 * earliest, and is over with its first span that catches nothing, or with its
 * last.
 */
#ifndef PIN_POLICY_SPIN_H
#define PIN_POLICY_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
	/* Gaps that are shorter on average are worth the usual span. */
	PIN_SPIN_GAP_NS = 50 * 1000,
	/* Longer gaps count as this: a rest is forgotten after some work. */
	PIN_SPIN_GAP_NS_MAX = 400 * 1000,
	/* A sleep that was ended sooner may have been a mistake: some wakes. */
	PIN_SPIN_SHORT_NS = 150 * 1000,
	/* This number in a row is worth a trial. */
	PIN_SPIN_SHORT_SLEEPS = 4,
	PIN_SPIN_TRIAL_SPANS = 16,
	/* Of the usual span. */
	PIN_SPIN_TRIAL_FACTOR = 16,
	PIN_SPIN_LEARNED_FACTOR = 4,
	/* In a row; then as many times without, twice as many each time. */
	PIN_SPIN_MISSES = 8,
	PIN_SPIN_SKIPS_MIN = 16,
	PIN_SPIN_SKIPS_MAX = 1024,
	PIN_SPIN_PAUSE_NS_MIN = 1000 * 1000,
	PIN_SPIN_PAUSE_NS_MAX = 1000 * 1000 * 1000,
};

struct pin_spin {
	uint32_t usual;	       /* [const] looks; 0: never spin */
	uint32_t misses;       /* spans in a row that caught nothing */
	uint32_t skips;	       /* to come, without a span */
	uint32_t next_skips;   /* after the next miss, if there were many */
	uint32_t caught_looks; /* smoothed: after how many something came */
	uint32_t short_sleeps; /* in a row */
	uint32_t trial_spans;  /* that are left of the trial in hand, or 0 */
	bool has_caught;       /* since it ran dry */
	uint64_t gap_ns;       /* smoothed: from running dry to the next task */
	uint64_t trial_ns;     /* no trial before */
	uint64_t pause_ns;     /* until the next trial but one */
};

void pin_spin_init(struct pin_spin *spin, uint32_t usual_looks);

/* Looks to take before the sleep, now that there is nothing to run. */
uint32_t pin_spin_ask(struct pin_spin *spin, uint64_t now_ns);

/* A span of them ended: something came after `looks`, or nothing at all. */
void pin_spin_note_catch(struct pin_spin *spin, uint32_t looks, uint64_t now_ns);
void pin_spin_note_miss(struct pin_spin *spin, uint64_t now_ns);

/* There is work, so long after it ran dry. */
void pin_spin_note_gap(struct pin_spin *spin, uint64_t gap_ns);

#endif
