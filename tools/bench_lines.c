/* SPDX-License-Identifier: MIT */
/*
 * Results as text and as JSON. Only arithmetic and words; the schema is in
 * docs/man/pinion-bench.md.
 */
#include "bench_lines.h"

#include <math.h>
#include <pinion/machine.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void say(
	struct output_text *text, const char *format, ...)
{
	char line[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	output_text_string(text, line);
}

void bench_lines_subject(struct output_text *text, const struct bench_subject *subject)
{
	say(text, "%-8s %s, %s\n", subject->name, subject->unit, subject->brief);
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

	say(text,
		"  against %-22s %10.4g %s (spread %.1f %%), ratio %.3f, 95 %% in [%.3f, %.3f]%s\n",
		subject->sides[side], median(results, side), subject->unit,
		spread_percent(&results->figures[side]), ratio.ratio, ratio.low, ratio.high,
		ratio.is_conclusive ? "" : ": noise too high to conclude");
}

void bench_lines_text(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	const struct figures *ours = &results->figures[BENCH_OURS];

	say(text, "%s: %s, %u pairs, %s is better\n", subject->name, setting->text,
		results->ratios[BENCH_FLOOR].count, subject->is_rate ? "more" : "less");
	say(text, "  %-30s %10.4g %s (spread %.1f %%), p99 %.4g, n %u\n",
		subject->sides[BENCH_OURS], median(results, BENCH_OURS), subject->unit,
		spread_percent(ours), p99(subject, results), ours->count);
	for (int side = BENCH_FLOOR; side < BENCH_SIDE_COUNT; side++) {
		if (bench_has_side(subject, side)) {
			say_ratio(text, subject, results, side);
		}
	}
}

static void json_string(struct output_text *text, const char *key, const char *value)
{
	say(text, "\"%s\":", key);
	output_text_json(text, value, strlen(value));
}

/* JSON knows no infinity; a floor of zero would make one. */
static void json_number(struct output_text *text, const char *key, double value)
{
	say(text, isfinite(value) ? "\"%s\":%.6g" : "\"%s\":null", key, value);
}

static void json_ratio(struct output_text *text, const struct bench_results *results, int side)
{
	struct figures_ratio ratio = figures_conclude(&results->ratios[side]);

	json_number(text, "ratio", ratio.ratio);
	say(text, ",");
	json_number(text, "ratio_lo", ratio.low);
	say(text, ",");
	json_number(text, "ratio_hi", ratio.high);
}

static void json_side(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	say(text, "{");
	json_string(text, "name", subject->sides[side]);
	say(text, ",");
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
	say(text, "\"machine\":{");
	json_string(text, "cpu", model);
	say(text, ",\"cpus\":%u,\"cores\":%u,\"nodes\":%u,\"quota_millicpus\":%u,",
		machine.cpu_count, machine.core_count, machine.node_count, machine.quota_millicpus);
	json_string(text, "kernel", machine.kernel_release);
	say(text, ",");
	json_string(text, "io", setting->facts.uses_ring ? "io_uring" : "fallback");
	say(text, ",\"workers\":%u}", setting->facts.worker_count);
}

void bench_lines_json(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	say(text, "{");
	json_string(text, "bench", subject->name);
	say(text, ",");
	json_string(text, "unit", subject->unit);
	say(text, ",\"n\":%u,", results->figures[BENCH_OURS].count);
	json_number(text, "median", median(results, BENCH_OURS));
	say(text, ",");
	json_number(text, "p99", p99(subject, results));
	say(text, ",\"floor\":");
	json_side(text, subject, results, BENCH_FLOOR);
	say(text, "},");
	if (bench_has_side(subject, BENCH_TOUCHING)) {
		say(text, "\"floor_touching\":");
		json_side(text, subject, results, BENCH_TOUCHING);
		say(text, ",");
		json_ratio(text, results, BENCH_TOUCHING);
		say(text, "},");
	}
	json_ratio(text, results, BENCH_FLOOR);
	say(text, ",");
	json_machine(text, setting);
	say(text, "}\n");
}
