/* SPDX-License-Identifier: MIT */
/*
 * Goal: for every subject a slowdown of 10 % is found, and equals are taken for
 * equal, by the turns and the conclusion that `pinion bench` itself uses, also
 * on a machine that becomes slower meanwhile.
 * Method: each subject of the table with its `run` replaced by a double that
 * makes figures up, from a seed: noise of 5 %, and a machine that loses half of
 * its speed while it is measured. Ours is as fast as the floor, or 10 % slower.
 */
#include "tests/support/expect.h"
#include "tests/support/random.h"
#include "tools/bench/measure.h"

#include <stdint.h>
#include <stdio.h>

enum {
	SAMPLES_PER_TURN = 5,
	TURNS_TO_HALF_SPEED = 60,
};

struct double_state {
	bool is_rate;
	double ours_time; /* of ours over the floor's */
	uint32_t turn_count;
	struct random_source source;
};

/* -1 … 1 */
static double noise(struct double_state *state)
{
	return (double)random_below(&state->source, 2000001) / 1e6 - 1;
}

static int double_run(void *arg, enum bench_side side, struct samples *out_figures)
{
	struct double_state *state = arg;
	double drift = 1 + (double)state->turn_count++ / TURNS_TO_HALF_SPEED;
	double time = 100 * drift * (side == BENCH_OURS ? state->ours_time : 1);

	for (int i = 0; i < SAMPLES_PER_TURN; i++) {
		double figure = time * (1 + 0.05 * noise(state));

		expect_ready("memory",
			samples_add(out_figures, state->is_rate ? 1000 / figure : figure) == 0);
	}
	return 0;
}

/* By as few pairs as there may be, which is the hardest. */
static struct samples_ratio measure(
	const struct bench_subject *subject, double ours_time, uint64_t seed)
{
	struct bench_subject mutant = *subject;
	struct bench_results results = {0};
	struct double_state state = {.is_rate = subject->is_rate, .ours_time = ours_time};
	struct samples_ratio ratio;

	state.source.state = seed;
	mutant.run = double_run;
	expect_number("measured", 0, bench_measure(&mutant, &state, 0, &results));
	ratio = samples_conclude(&results.ratios[BENCH_FLOOR]);
	bench_results_free(&results);
	return ratio;
}

static bool is_found_slower(const struct bench_subject *subject, const struct samples_ratio *ratio)
{
	return ratio->is_conclusive && (subject->is_rate ? ratio->high < 1 : ratio->low > 1);
}

static bool is_found_faster(const struct bench_subject *subject, const struct samples_ratio *ratio)
{
	return ratio->is_conclusive && (subject->is_rate ? ratio->low > 1 : ratio->high < 1);
}

static void check_subject(const struct bench_subject *subject)
{
	int equal_count = 0;

	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct samples_ratio ratio = measure(subject, 1.1, seed);

		if (!is_found_slower(subject, &ratio)) {
			printf("%s, seed %llu: 10 %% slower gives %.3f, in [%.3f, %.3f]\n",
				subject->name, (unsigned long long)seed, ratio.ratio, ratio.low,
				ratio.high);
			expect_failure_count++;
		}
		ratio = measure(subject, 1 / 1.1, seed);
		expect_true("10 % faster is found", is_found_faster(subject, &ratio));
		ratio = measure(subject, 1, seed);
		equal_count += ratio.is_conclusive && ratio.low <= 1 && ratio.high >= 1;
	}
	/* 97 % of the intervals of six pairs hold the truth. */
	if (equal_count < 36) {
		printf("%s: equal to itself in %d of 40 runs\n", subject->name, equal_count);
		expect_failure_count++;
	}
}

int main(void)
{
	for (uint32_t i = 0; i < bench_subject_count; i++) {
		check_subject(bench_subjects[i]);
	}
	expect_true("there are subjects", bench_subject_count > 0);
	return expect_status();
}
