/* SPDX-License-Identifier: MIT */
/*
 * Spans, trials and what they teach.
 */
#include "runtime/policy/spin.h"
#include "runtime/base/check.h"

enum {
	/* A gap moves the average by one part in this number. */
	GAP_WEIGHT = 8,
	/* A catch by one in this: a trial has few of them. */
	CATCH_WEIGHT = 2,
	/* Of the usual span: what takes longer is not sooner than a wake. */
	PAYS_FACTOR = 2,
	/* Pauses between trials that do not pay grow by this, and back. */
	PAUSE_FACTOR = 4,
};

void pin_patience_init(struct pin_patience *patience, uint32_t usual_looks)
{
	*patience = (struct pin_patience){
		.usual = usual_looks,
		.next_skips = PIN_PATIENCE_SKIPS_MIN,
		.gap_ns = PIN_PATIENCE_GAP_NS_MAX,
		.pause_ns = PIN_PATIENCE_PAUSE_NS_MIN,
	};
}

static bool is_trial_due(const struct pin_patience *patience, uint64_t now_ns)
{
	return patience->short_sleeps >= PIN_PATIENCE_SHORT_SLEEPS && now_ns >= patience->trial_ns;
}

static uint32_t learned_span(const struct pin_patience *patience)
{
	uint32_t most = PIN_PATIENCE_LEARNED_FACTOR * patience->usual;
	uint32_t span = 2 * patience->caught_looks;

	if (span > most) {
		return most;
	}
	return span < patience->usual ? patience->usual : span;
}

uint32_t pin_patience_ask(struct pin_patience *patience, uint64_t now_ns)
{
	PIN_DCHECK(patience->trial_spans <= PIN_PATIENCE_TRIAL_SPANS);
	PIN_DCHECK(patience->pause_ns >= PIN_PATIENCE_PAUSE_NS_MIN);
	PIN_DCHECK(patience->pause_ns <= PIN_PATIENCE_PAUSE_NS_MAX);
	patience->has_caught = false;
	if (patience->trial_spans == 0 && is_trial_due(patience, now_ns)) {
		patience->trial_spans = PIN_PATIENCE_TRIAL_SPANS;
		patience->trial_ns = now_ns + patience->pause_ns;
		patience->short_sleeps = 0;
		patience->caught_looks = PIN_PATIENCE_TRIAL_FACTOR * patience->usual;
	}
	if (patience->trial_spans > 0) {
		return PIN_PATIENCE_TRIAL_FACTOR * patience->usual;
	}
	if (patience->gap_ns >= PIN_PATIENCE_GAP_NS) {
		return 0;
	}
	if (patience->skips > 0) {
		patience->skips--;
		return 0;
	}
	return learned_span(patience);
}

static void end_trial(struct pin_patience *patience, bool has_paid, uint64_t now_ns)
{
	uint64_t pause_ns =
		has_paid ? patience->pause_ns / PAUSE_FACTOR : patience->pause_ns * PAUSE_FACTOR;

	patience->trial_spans = 0;
	if (has_paid) {
		/* What the sleeps before it took says nothing now. */
		patience->gap_ns = 0;
	} else {
		patience->caught_looks = 0;
	}
	if (pause_ns < PIN_PATIENCE_PAUSE_NS_MIN) {
		pause_ns = PIN_PATIENCE_PAUSE_NS_MIN;
	}
	if (pause_ns > PIN_PATIENCE_PAUSE_NS_MAX) {
		pause_ns = PIN_PATIENCE_PAUSE_NS_MAX;
	}
	patience->pause_ns = pause_ns;
	patience->trial_ns = now_ns + pause_ns;
}

void pin_patience_note_catch(struct pin_patience *patience, uint32_t looks, uint64_t now_ns)
{
	PIN_CHECK(looks <= PIN_PATIENCE_TRIAL_FACTOR * patience->usual);
	patience->has_caught = true;
	patience->misses = 0;
	patience->skips = 0;
	patience->next_skips = PIN_PATIENCE_SKIPS_MIN;
	patience->caught_looks -= patience->caught_looks / CATCH_WEIGHT;
	patience->caught_looks += looks / CATCH_WEIGHT;
	if (patience->trial_spans > 0 && --patience->trial_spans == 0) {
		end_trial(
			patience, patience->caught_looks <= PAYS_FACTOR * patience->usual, now_ns);
	}
}

void pin_patience_note_miss(struct pin_patience *patience, uint64_t now_ns)
{
	if (patience->trial_spans > 0) {
		end_trial(patience, false, now_ns);
		return;
	}
	patience->caught_looks /= 2;
	if (++patience->misses < PIN_PATIENCE_MISSES) {
		return;
	}
	patience->misses = PIN_PATIENCE_MISSES;
	PIN_DCHECK(patience->next_skips >= PIN_PATIENCE_SKIPS_MIN);
	patience->skips = patience->next_skips;
	if (patience->next_skips < PIN_PATIENCE_SKIPS_MAX) {
		patience->next_skips *= 2;
	}
}

void pin_patience_note_gap(struct pin_patience *patience, uint64_t gap_ns)
{
	uint64_t gap = gap_ns < PIN_PATIENCE_GAP_NS_MAX ? gap_ns : PIN_PATIENCE_GAP_NS_MAX;

	patience->gap_ns -= patience->gap_ns / GAP_WEIGHT;
	patience->gap_ns += gap / GAP_WEIGHT;
	PIN_DCHECK(patience->gap_ns <= PIN_PATIENCE_GAP_NS_MAX);
	if (patience->has_caught || gap_ns >= PIN_PATIENCE_SHORT_NS) {
		patience->short_sleeps = 0;
	} else if (patience->short_sleeps < PIN_PATIENCE_SHORT_SLEEPS) {
		patience->short_sleeps++;
	}
}
