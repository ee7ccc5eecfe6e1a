/* SPDX-License-Identifier: MIT */
/*
 * Options by name, each with a function of its own.
 */
#include "tools/scan/report_options.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"

#include <stdlib.h>
#include <string.h>

enum {
	COLOR_AUTO,
	COLOR_ALWAYS,
	COLOR_NEVER,
	PERCENT_MAX = 100,
};

void report_options_init(struct report_options *out_options)
{
	*out_options = (struct report_options){
		.format = &report_text,
		.style.redact_percent = REPORT_REDACT_STANDARD,
	};
}

void report_options_fini(struct report_options *options)
{
	baseline_free(&options->baseline);
	free(options->baseline_files);
}

static bool parse_format(struct report_options *options, const char *value)
{
	options->format = report_format_parse(value);
	options->has_format = true;
	return options->format != NULL;
}

static bool parse_offsets(struct report_options *options, const char *value)
{
	(void)value;
	options->style.has_offsets = true;
	return true;
}

static bool parse_redact(struct report_options *options, const char *value)
{
	uint64_t percent = PERCENT_MAX;

	if (value != NULL && !options_count("redact", value, 0, PERCENT_MAX, &percent)) {
		return false;
	}
	options->style.redact_percent = (int)percent;
	return true;
}

static bool parse_baseline(struct report_options *options, const char *value)
{
	if (!options_append(&options->baseline_files, &options->baseline_count, value)) {
		return false;
	}
	options->has_baseline = true;
	return true;
}

bool report_options_load(struct report_options *options, uint64_t silence_ns_max)
{
	for (uint32_t i = 0; i < options->baseline_count; i++) {
		if (!baseline_load(
			    &options->baseline, options->baseline_files[i], silence_ns_max)) {
			return false;
		}
	}
	return true;
}

static bool parse_no_allow(struct report_options *options, const char *value)
{
	(void)value;
	options->heeds_nothing = true;
	return true;
}

static bool set_form(struct report_options *options, const struct report_format *format)
{
	options->has_both_forms |= options->has_own_form && options->format != format;
	options->format = format;
	options->has_own_form = true;
	return true;
}

static bool parse_paths(struct report_options *options, const char *value)
{
	(void)value;
	return set_form(options, &report_paths);
}

static bool parse_counts(struct report_options *options, const char *value)
{
	(void)value;
	return set_form(options, &report_counts);
}

static bool parse_lines(const char *name, const char *value, uint32_t *out_count)
{
	uint64_t count;

	if (!options_count(name, value, 0, UINT32_MAX, &count)) {
		return false;
	}
	*out_count = (uint32_t)count;
	return true;
}

static bool parse_after(struct report_options *options, const char *value)
{
	options->has_after = true;
	return parse_lines("after-context", value, &options->style.lines_after);
}

static bool parse_before(struct report_options *options, const char *value)
{
	options->has_before = true;
	return parse_lines("before-context", value, &options->style.lines_before);
}

static bool parse_context(struct report_options *options, const char *value)
{
	options->style.has_context = true;
	return parse_lines("context", value, &options->context_lines);
}

static bool parse_color(struct report_options *options, const char *value)
{
	static const char *const words[] = {
		[COLOR_AUTO] = "auto",
		[COLOR_ALWAYS] = "always",
		[COLOR_NEVER] = "never",
		NULL,
	};

	options->color = value == NULL ? COLOR_ALWAYS : options_choice("color", value, words);
	return options->color >= 0;
}

static bool parse_output(struct report_options *options, const char *value)
{
	options->output_file = strcmp(value, "-") == 0 ? NULL : value;
	return true;
}

static const struct {
	const char *name;
	bool (*parse)(struct report_options *options, const char *value);
} parsers[] = {
	{"format", parse_format},
	{"byte-offset", parse_offsets},
	{"redact", parse_redact},
	{"baseline", parse_baseline},
	{"no-allow", parse_no_allow},
	{"files-with-findings", parse_paths},
	{"count", parse_counts},
	{"after-context", parse_after},
	{"before-context", parse_before},
	{"context", parse_context},
	{"color", parse_color},
	{"output", parse_output},
};

bool report_options_parse(struct report_options *options, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(parsers) / sizeof(parsers[0]); i++) {
		if (strcmp(parsers[i].name, name) == 0) {
			return parsers[i].parse(options, value);
		}
	}
	return false;
}

static bool has_colors(const struct report_options *options)
{
	const char *no_color = getenv("NO_COLOR");
	const char *terminal = getenv("TERM");

	if (options->color != COLOR_AUTO) {
		return options->color == COLOR_ALWAYS;
	}
	return options->output_file == NULL && output_is_terminal() &&
		(no_color == NULL || no_color[0] == '\0') && terminal != NULL &&
		strcmp(terminal, "dumb") != 0;
}

/* As grep has it: -A and -B outrank -C. False: reported. */
static bool check_context(struct report_options *options)
{
	struct report_style *style = &options->style;

	style->lines_after = options->has_after ? style->lines_after : options->context_lines;
	style->lines_before = options->has_before ? style->lines_before : options->context_lines;
	style->has_context = style->has_context || options->has_after || options->has_before;
	if (style->has_context && options->format != &report_text) {
		report_line("-A, -B and -C are about text output: leave --format, -l and -c out");
		return false;
	}
	return true;
}

bool report_options_check(struct report_options *options)
{
	if (options->has_format && options->has_own_form) {
		report_line("-l and --count have a form of their own: leave --format out");
		return false;
	}
	if (options->has_both_forms) {
		report_line("-l shows files, -c their findings' numbers: leave one out");
		return false;
	}
	if (!check_context(options)) {
		return false;
	}
	options->style.has_colors = options->format == &report_text && has_colors(options);
	return true;
}
