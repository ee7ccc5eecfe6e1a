/* SPDX-License-Identifier: MIT */
/*
 * Results as text and as JSON. Only arithmetic and words; the schema is in
 * docs/man/pinion-bench.md.
 */
#include "tools/bench/lines.h"

#include <math.h>
#include <pinion/machine.h>
#include <stdio.h>
#include <string.h>

void bench_lines_subject(struct output_text *text, const struct bench_subject *subject)
{
	output_text_format(text, "%-11s %s, %s\n", subject->name, subject->unit, subject->brief);
}

static double median(const struct bench_results *results, int side)
{
	return figures_quantile(&results->figures[side], 0.5);
}

/* What 99 % of the figures were at least as good as. */
static double p99(const struct bench_subject *subject, const struct bench_results *results)
{
	return figures_quantile(&results->figures[BENCH_OURS], subject->is_rate ? 0.01 : 0.99);
}

/* The middle half of the figures, as a share of the median. */
static double spread_percent(const struct figures *figures)
{
	return 100 * (figures_quantile(figures, 0.75) - figures_quantile(figures, 0.25)) /
		figures_quantile(figures, 0.5);
}

static void say_ratio(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	struct figures_ratio ratio = figures_conclude(&results->ratios[side]);

	output_text_format(text,
		"  against %-22s %10.4g %s (spread %.1f %%), ratio %.3f, 95 %% in [%.3f, %.3f]%s\n",
		subject->sides[side], median(results, side), subject->unit,
		spread_percent(&results->figures[side]), ratio.ratio, ratio.low, ratio.high,
		ratio.is_conclusive ? "" : ": noise too high to conclude");
}

void bench_lines_text(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	const struct figures *ours = &results->figures[BENCH_OURS];

	output_text_format(text, "%s: %s, %u pairs, %s is better\n", subject->name, setting->text,
		results->ratios[BENCH_FLOOR].count, subject->is_rate ? "more" : "less");
	output_text_format(text, "  %-30s %10.4g %s (spread %.1f %%), p99 %.4g, n %u\n",
		subject->sides[BENCH_OURS], median(results, BENCH_OURS), subject->unit,
		spread_percent(ours), p99(subject, results), ours->count);
	for (int side = BENCH_FLOOR; side < BENCH_SIDE_COUNT; side++) {
		if (bench_has_side(subject, side)) {
			say_ratio(text, subject, results, side);
		}
	}
	for (uint32_t i = 0; i < results->further_count; i++) {
		output_text_format(text, "  %-30s %10.4g\n", results->further[i].name,
			results->further[i].value);
	}
}

static void json_string(struct output_text *text, const char *key, const char *value)
{
	output_text_format(text, "\"%s\":", key);
	output_text_json(text, value, strlen(value));
}

/* JSON knows no infinity; a floor of zero would make one. */
static void json_number(struct output_text *text, const char *key, double value)
{
	output_text_format(text, isfinite(value) ? "\"%s\":%.6g" : "\"%s\":null", key, value);
}

static void json_ratio(struct output_text *text, const struct bench_results *results, int side)
{
	struct figures_ratio ratio = figures_conclude(&results->ratios[side]);

	json_number(text, "ratio", ratio.ratio);
	output_text_format(text, ",");
	json_number(text, "ratio_lo", ratio.low);
	output_text_format(text, ",");
	json_number(text, "ratio_hi", ratio.high);
}

static void json_side(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	output_text_format(text, "{");
	json_string(text, "name", subject->sides[side]);
	output_text_format(text, ",");
	json_number(text, "median", median(results, side));
}

/* The model as the kernel names it, or "" on machines that do not say. */
static void find_cpu_model(char *model, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[256];

	model[0] = '\0';
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		const char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
			snprintf(model, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
			break;
		}
	}
	if (file != NULL) {
		fclose(file);
	}
}

static void json_machine(struct output_text *text, const struct bench_setting *setting)
{
	struct pinion_machine machine = {0};
	char model[128];

	/* What cannot be found out is zero. */
	(void)pinion_machine_probe(&machine, sizeof(machine));
	find_cpu_model(model, sizeof(model));
	output_text_format(text, "\"machine\":{");
	json_string(text, "cpu", model);
	output_text_format(text, ",\"cpus\":%u,\"cores\":%u,\"nodes\":%u,\"quota_millicpus\":%u,",
		machine.cpu_count, machine.core_count, machine.node_count, machine.quota_millicpus);
	json_string(text, "kernel", machine.kernel_release);
	output_text_format(text, ",");
	json_string(text, "io", setting->facts.uses_ring ? "io_uring" : "fallback");
	output_text_format(text, ",\"workers\":%u}", setting->facts.worker_count);
}

void bench_lines_json(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	output_text_format(text, "{");
	json_string(text, "bench", subject->name);
	output_text_format(text, ",");
	json_string(text, "unit", subject->unit);
	output_text_format(text, ",\"n\":%u,", results->figures[BENCH_OURS].count);
	json_number(text, "median", median(results, BENCH_OURS));
	output_text_format(text, ",");
	json_number(text, "p99", p99(subject, results));
	output_text_format(text, ",\"floor\":");
	json_side(text, subject, results, BENCH_FLOOR);
	output_text_format(text, "},");
	if (bench_has_side(subject, BENCH_TOUCHING)) {
		output_text_format(text, "\"floor_touching\":");
		json_side(text, subject, results, BENCH_TOUCHING);
		output_text_format(text, ",");
		json_ratio(text, results, BENCH_TOUCHING);
		output_text_format(text, "},");
	}
	json_ratio(text, results, BENCH_FLOOR);
	output_text_format(text, ",");
	for (uint32_t i = 0; i < results->further_count; i++) {
		json_number(text, results->further[i].name, results->further[i].value);
		output_text_format(text, ",");
	}
	json_machine(text, setting);
	output_text_format(text, "}\n");
}
