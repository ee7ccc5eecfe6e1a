/* SPDX-License-Identifier: MIT */
/*
 * How long an idle worker polls before it sleeps: learned from spins that found
 * work and from sleeps that were short.
 *
 * The worker asks before each sleep and reports how the spin and the sleep
 * went; pure arithmetic.
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

void pin_spin_init(struct pin_spin *spin, uint32_t usual_looks)
{
	PIN_CHECK(usual_looks <= UINT32_MAX / PIN_SPIN_TRIAL_FACTOR);
	*spin = (struct pin_spin){
		.usual = usual_looks,
		.next_skips = PIN_SPIN_SKIPS_MIN,
		.gap_ns = PIN_SPIN_GAP_NS_MAX,
		.pause_ns = PIN_SPIN_PAUSE_NS_MIN,
	};
}

static bool is_trial_due(const struct pin_spin *spin, uint64_t now_ns)
{
	PIN_DCHECK(spin->short_sleeps <= PIN_SPIN_SHORT_SLEEPS);
	return spin->short_sleeps >= PIN_SPIN_SHORT_SLEEPS && now_ns >= spin->trial_ns;
}

static uint32_t learned_span(const struct pin_spin *spin)
{
	uint32_t most = PIN_SPIN_LEARNED_FACTOR * spin->usual;
	uint32_t span = 2 * spin->caught_looks;

	if (span > most) {
		return most;
	}
	return span < spin->usual ? spin->usual : span;
}

/*
 * A trial polls 16 times as long as usual, to find out whether waiting awake
 * pays here; if it did not, the next trial comes later.
 */
uint32_t pin_spin_ask(struct pin_spin *spin, uint64_t now_ns)
{
	PIN_DCHECK(spin->trial_spans <= PIN_SPIN_TRIAL_SPANS);
	PIN_DCHECK(spin->pause_ns >= PIN_SPIN_PAUSE_NS_MIN);
	PIN_DCHECK(spin->pause_ns <= PIN_SPIN_PAUSE_NS_MAX);
	spin->has_caught = false;
	if (spin->trial_spans == 0 && is_trial_due(spin, now_ns)) {
		spin->trial_spans = PIN_SPIN_TRIAL_SPANS;
		spin->trial_ns = now_ns + spin->pause_ns;
		spin->short_sleeps = 0;
		spin->caught_looks = PIN_SPIN_TRIAL_FACTOR * spin->usual;
	}
	if (spin->trial_spans > 0) {
		return PIN_SPIN_TRIAL_FACTOR * spin->usual;
	}
	if (spin->gap_ns >= PIN_SPIN_GAP_NS) {
		return 0;
	}
	if (spin->skips > 0) {
		spin->skips--;
		return 0;
	}
	return learned_span(spin);
}

/*
 * Trials that pay are repeated soon, others ever more rarely, within a second.
 */
static void end_trial(struct pin_spin *spin, bool has_paid, uint64_t now_ns)
{
	uint64_t pause_ns =
		has_paid ? spin->pause_ns / PAUSE_FACTOR : spin->pause_ns * PAUSE_FACTOR;

	spin->trial_spans = 0;
	if (has_paid) {
		/* What the sleeps before it took says nothing now. */
		spin->gap_ns = 0;
	} else {
		spin->caught_looks = 0;
	}
	if (pause_ns < PIN_SPIN_PAUSE_NS_MIN) {
		pause_ns = PIN_SPIN_PAUSE_NS_MIN;
	}
	if (pause_ns > PIN_SPIN_PAUSE_NS_MAX) {
		pause_ns = PIN_SPIN_PAUSE_NS_MAX;
	}
	spin->pause_ns = pause_ns;
	spin->trial_ns = now_ns + pause_ns;
}

void pin_spin_note_catch(struct pin_spin *spin, uint32_t looks, uint64_t now_ns)
{
	PIN_CHECK(looks <= PIN_SPIN_TRIAL_FACTOR * spin->usual);
	spin->has_caught = true;
	spin->misses = 0;
	spin->skips = 0;
	spin->next_skips = PIN_SPIN_SKIPS_MIN;
	spin->caught_looks -= spin->caught_looks / CATCH_WEIGHT;
	spin->caught_looks += looks / CATCH_WEIGHT;
	if (spin->trial_spans > 0 && --spin->trial_spans == 0) {
		end_trial(spin, spin->caught_looks <= PAYS_FACTOR * spin->usual, now_ns);
	}
}

/*
 * After several misses in a row some sleeps come without a spin; each further
 * row doubles their number.
 */
void pin_spin_note_miss(struct pin_spin *spin, uint64_t now_ns)
{
	if (spin->trial_spans > 0) {
		end_trial(spin, false, now_ns);
		return;
	}
	spin->caught_looks /= 2;
	if (++spin->misses < PIN_SPIN_MISSES) {
		return;
	}
	spin->misses = PIN_SPIN_MISSES;
	PIN_DCHECK(spin->next_skips >= PIN_SPIN_SKIPS_MIN);
	spin->skips = spin->next_skips;
	if (spin->next_skips < PIN_SPIN_SKIPS_MAX) {
		spin->next_skips *= 2;
	}
}

void pin_spin_note_gap(struct pin_spin *spin, uint64_t gap_ns)
{
	uint64_t gap = gap_ns < PIN_SPIN_GAP_NS_MAX ? gap_ns : PIN_SPIN_GAP_NS_MAX;

	spin->gap_ns -= spin->gap_ns / GAP_WEIGHT;
	spin->gap_ns += gap / GAP_WEIGHT;
	PIN_DCHECK(spin->gap_ns <= PIN_SPIN_GAP_NS_MAX);
	if (spin->has_caught || gap_ns >= PIN_SPIN_SHORT_NS) {
		spin->short_sleeps = 0;
	} else if (spin->short_sleeps < PIN_SPIN_SHORT_SLEEPS) {
		spin->short_sleeps++;
	}
}
