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
	output_text_format(text, "%-19s %s, %s\n", subject->name, subject->unit, subject->brief);
}

static double median(const struct bench_results *results, int side)
{
	return samples_quantile(&results->samples[side], 0.5);
}

/* What 99 % of the samples were at least as good as. */
static double p99(
	const struct bench_subject *subject, const struct bench_results *results, int side)
{
	return samples_quantile(&results->samples[side], subject->is_rate ? 0.01 : 0.99);
}

/* The middle half of the samples, as a share of the median. */
static double spread_percent(const struct samples *samples)
{
	return 100 * (samples_quantile(samples, 0.75) - samples_quantile(samples, 0.25)) /
		samples_quantile(samples, 0.5);
}

static void say_ratio(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	struct samples_ratio ratio = samples_conclude(&results->ratios[side]);

	output_text_format(text,
		"  against %-22s %10.4g %s (spread %.1f %%), p99 %.4g, ratio %.3f, 95 %% in "
		"[%.3f, %.3f]%s\n",
		subject->sides[side], median(results, side), subject->unit,
		spread_percent(&results->samples[side]), p99(subject, results, side), ratio.ratio,
		ratio.low, ratio.high, ratio.is_conclusive ? "" : ": noise too high to conclude");
}

void bench_lines_text(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	const struct samples *ours = &results->samples[BENCH_OURS];

	output_text_format(text, "%s: %s, %u pairs, %s is better\n", subject->name, setting->text,
		results->ratios[BENCH_FLOOR].count, subject->is_rate ? "more" : "less");
	output_text_format(text, "  %-30s %10.4g %s (spread %.1f %%), p99 %.4g, n %u\n",
		subject->sides[BENCH_OURS], median(results, BENCH_OURS), subject->unit,
		spread_percent(ours), p99(subject, results, BENCH_OURS), ours->count);
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

static const char *truth(bool is_true)
{
	return is_true ? "true" : "false";
}

static void json_ratio(struct output_text *text, const struct bench_results *results, int side)
{
	struct samples_ratio ratio = samples_conclude(&results->ratios[side]);

	json_number(text, "ratio", ratio.ratio);
	output_text_format(text, ",");
	json_number(text, "ratio_lo", ratio.low);
	output_text_format(text, ",");
	json_number(text, "ratio_hi", ratio.high);
	output_text_format(text, ",\"conclusive\":%s", truth(ratio.is_conclusive));
}

static void json_side(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	output_text_format(text, "{");
	json_string(text, "name", subject->sides[side]);
	output_text_format(text, ",");
	json_number(text, "median", median(results, side));
	output_text_format(text, ",");
	json_number(text, "p99", p99(subject, results, side));
	output_text_format(text, ",");
	json_number(text, "spread_percent", spread_percent(&results->samples[side]));
}

/* With its own ratio; nothing where there is no such side. */
static void json_further_side(struct output_text *text, const struct bench_subject *subject,
	const struct bench_results *results, int side)
{
	if (bench_has_side(subject, side)) {
		output_text_format(text,
			"\"%s\":", side == BENCH_TOUCHING ? "floor_touching" : "floor_second");
		json_side(text, subject, results, side);
		output_text_format(text, ",");
		json_ratio(text, results, side);
		output_text_format(text, "},");
	}
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

/* What lines say about the machine. Zero where it cannot be found out. */
struct machine {
	struct pinion_machine found;
	char cpu_model[128];
	const char *io;
};

static void find_machine(struct machine *out_machine, const struct bench_setting *setting)
{
	*out_machine = (struct machine){
		.io = setting->facts.uses_ring ? "io_uring" : "fallback",
	};
	(void)pinion_machine_probe(&out_machine->found, sizeof(out_machine->found));
	find_cpu_model(out_machine->cpu_model, sizeof(out_machine->cpu_model));
}

static void json_machine(struct output_text *text, const struct bench_setting *setting)
{
	struct machine machine;

	find_machine(&machine, setting);
	output_text_format(text, "\"machine\":{");
	json_string(text, "cpu", machine.cpu_model);
	output_text_format(text, ",\"cpus\":%u,\"cores\":%u,\"nodes\":%u,\"quota_millicpus\":%u,",
		machine.found.cpu_count, machine.found.core_count, machine.found.node_count,
		machine.found.quota_millicpus);
	json_string(text, "kernel", machine.found.kernel_release);
	output_text_format(text, ",");
	json_string(text, "io", machine.io);
	output_text_format(text, ",\"workers\":%u}", setting->facts.worker_count);
}

/* Nothing about what the subject does not vary by. */
static void json_point(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting)
{
	if (subject->axes & BENCH_BY(BENCH_DEPTH)) {
		output_text_format(text, "\"depth\":%u,", setting->point.values[BENCH_DEPTH]);
	}
	if (subject->axes & BENCH_BY(BENCH_BLOCK)) {
		output_text_format(text, "\"block_bytes\":%u,", setting->point.values[BENCH_BLOCK]);
	}
}

void bench_lines_json(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	output_text_format(text, "{");
	json_string(text, "bench", subject->name);
	output_text_format(text, ",");
	json_string(text, "unit", subject->unit);
	output_text_format(text, ",\"better\":\"%s\",\"n\":%u,", subject->is_rate ? "more" : "less",
		results->samples[BENCH_OURS].count);
	json_number(text, "median", median(results, BENCH_OURS));
	output_text_format(text, ",");
	json_number(text, "p99", p99(subject, results, BENCH_OURS));
	output_text_format(text, ",");
	json_number(text, "spread_percent", spread_percent(&results->samples[BENCH_OURS]));
	output_text_format(text, ",\"pairs\":%u,", results->ratios[BENCH_FLOOR].count);
	json_point(text, subject, setting);
	output_text_format(text, "\"floor\":");
	json_side(text, subject, results, BENCH_FLOOR);
	output_text_format(text, "},");
	json_further_side(text, subject, results, BENCH_TOUCHING);
	json_further_side(text, subject, results, BENCH_SECOND);
	json_ratio(text, results, BENCH_FLOOR);
	output_text_format(text, ",");
	for (uint32_t i = 0; i < results->further_count; i++) {
		json_number(text, results->further[i].name, results->further[i].value);
		output_text_format(text, ",");
	}
	json_machine(text, setting);
	output_text_format(text, "}\n");
}

/* ---- CSV ---- */

void bench_lines_csv_head(struct output_text *text)
{
	output_text_string(text,
		"bench,unit,workers,depth,block_bytes,n,pairs,median,p99,spread_percent,"
		"floor,floor_median,floor_spread_percent,ratio,ratio_lo,ratio_hi,conclusive,"
		"cpu,cpus,cores,nodes,quota_millicpus,kernel,io\n");
}

/* Always quoted: the name of a CPU may hold anything. */
static void csv_string(struct output_text *text, const char *value)
{
	output_text_string(text, "\"");
	for (; *value != '\0'; value++) {
		output_text_append(text, value, 1);
		if (*value == '"') {
			output_text_append(text, value, 1);
		}
	}
	output_text_string(text, "\",");
}

/* A number that does not exist is an empty field. */
static void csv_number(struct output_text *text, double value)
{
	output_text_format(text, isfinite(value) ? "%.6g," : ",", value);
}

static void csv_point(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting)
{
	output_text_format(text, "%u,", setting->facts.worker_count);
	for (int axis = BENCH_DEPTH; axis < BENCH_AXIS_COUNT; axis++) {
		if (subject->axes & BENCH_BY(axis)) {
			output_text_format(text, "%u", setting->point.values[axis]);
		}
		output_text_string(text, ",");
	}
}

static void csv_machine(struct output_text *text, const struct bench_setting *setting)
{
	struct machine machine;

	find_machine(&machine, setting);
	csv_string(text, machine.cpu_model);
	output_text_format(text, "%u,%u,%u,%u,", machine.found.cpu_count, machine.found.core_count,
		machine.found.node_count, machine.found.quota_millicpus);
	csv_string(text, machine.found.kernel_release);
	output_text_format(text, "%s\n", machine.io);
}

void bench_lines_csv(struct output_text *text, const struct bench_subject *subject,
	const struct bench_setting *setting, const struct bench_results *results)
{
	struct samples_ratio ratio = samples_conclude(&results->ratios[BENCH_FLOOR]);

	output_text_format(text, "%s,%s,", subject->name, subject->unit);
	csv_point(text, subject, setting);
	output_text_format(text, "%u,%u,", results->samples[BENCH_OURS].count,
		results->ratios[BENCH_FLOOR].count);
	csv_number(text, median(results, BENCH_OURS));
	csv_number(text, p99(subject, results, BENCH_OURS));
	csv_number(text, spread_percent(&results->samples[BENCH_OURS]));
	csv_string(text, subject->sides[BENCH_FLOOR]);
	csv_number(text, median(results, BENCH_FLOOR));
	csv_number(text, spread_percent(&results->samples[BENCH_FLOOR]));
	csv_number(text, ratio.ratio);
	csv_number(text, ratio.low);
	csv_number(text, ratio.high);
	output_text_format(text, "%s,", truth(ratio.is_conclusive));
	csv_machine(text, setting);
}
