/* SPDX-License-Identifier: MIT */
/*
 * The rules a scan is asked for: -e and --rules in place of the built-in ones,
 * or with --builtin next to them. Reports all bad ones before it ends.
 */
#include "tools/scan/patterns.h"

#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/scan/compile_limit.h"
#include "tools/scan/rules_reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	/* More than these take a second or longer to compile. */
	COUNT_TOLD = 2000,
	BYTES_TOLD = 256 << 10,
};

static void complain_line(const char *file, uint32_t line, const char *reason)
{
	report_line("%s:%u: %s", file, line, reason);
}

static void remark_nothing(
	enum rules_remark kind, const char *file, uint32_t line, const char *reason)
{
	(void)kind;
	(void)file;
	(void)line;
	(void)reason;
}

static void remark(enum rules_remark kind, const char *file, uint32_t line, const char *reason)
{
	char place[16] = "";

	if (line != 0) {
		snprintf(place, sizeof(place), ":%u", line);
	}
	if (kind == RULES_REMARK_ERROR) {
		report_line("%s%s: %s", file, place, reason);
	} else {
		report_note("%s%s: %s", file, place, reason);
	}
}

static int add_expressions(const struct scan_patterns *patterns, struct rules *rules)
{
	for (uint32_t i = 0; i < patterns->expression_count; i++) {
		const char *expression = patterns->expressions[i];
		char id[16];
		int error;

		snprintf(id, sizeof(id), "e%u", i + 1);
		error = rules_add(
			rules, id, expression, strlen(expression), patterns->are_literals);
		if (error == -E2BIG) {
			char reason[RULES_REASON_BYTES];

			rules_limit_reason(rules, strlen(expression), reason);
			report_line("pattern %s: %s", id, reason);
		}
		if (error != 0) {
			return error;
		}
	}
	return 0;
}

static int add_files(const struct scan_patterns *patterns, struct rules *rules)
{
	struct rules_reader reader = {
		.rules = rules,
		.remark = patterns->is_silent ? remark_nothing : remark,
		.is_strict = patterns->is_strict,
		.names_all = patterns->names_all,
		.with_examples = patterns->with_examples,
		.silence_ns_max = patterns->silence_ns_max,
	};
	int first_error = 0;

	for (uint32_t i = 0; i < patterns->file_count; i++) {
		uint32_t count_before = rules->count;
		int error = rules_reader_add(&reader, patterns->files[i]);

		if (error == 0 && rules->count == count_before) {
			report_line("%s: has no rules", patterns->files[i]);
			error = -EINVAL;
		} else if (error != 0 && error != -EINVAL) {
			report_path(patterns->files[i],
				error == -EISDIR ? "is a directory" : report_reason(error));
		}
		first_error = first_error != 0 ? first_error : error;
	}
	if (reader.validated_count > 0 && !patterns->is_silent) {
		report_note("%u rules would ask a service whether a secret is valid (validate); "
			    "pinion never does",
			reader.validated_count);
	}
	return first_error;
}

static void complain_rule(const struct rule *rule, const char *reason)
{
	if (rule->file != NULL) {
		complain_line(rule->file, rule->line, reason);
	} else {
		report_line("pattern %s: %s", rule->id, reason);
	}
}

void scan_rules_complain(const struct rules *rules, const struct matcher_trouble *trouble)
{
	if (trouble->rule < rules->count) {
		complain_rule(&rules->items[trouble->rule], trouble->reason);
	} else {
		report_line("%s", trouble->reason);
	}
}

static bool measure(const struct matcher_ops *matcher, struct rules *rules, bool is_uncached)
{
	bool is_ok = true;

	if (!is_uncached && matcher->recall != NULL && matcher->recall(rules)) {
		return true;
	}
	for (uint32_t i = 0; i < rules->count; i++) {
		struct matcher_trouble trouble;
		int error = matcher->measure(&rules->items[i], &trouble);

		if (error != 0) {
			complain_rule(&rules->items[i],
				error == -EINVAL ? trouble.reason : report_reason(error));
			is_ok = false;
		}
	}
	return is_ok;
}

static bool resolve(struct rules *rules)
{
	const char *missing;
	uint32_t rule;
	char reason[256];

	int error = rules_resolve(rules, &rule, &missing);

	if (error == 0) {
		return true;
	}
	if (error != -EINVAL) {
		report_line("%s", report_reason(error));
		return false;
	}
	snprintf(reason, sizeof(reason), "requires the rule %.128s, which is not there", missing);
	complain_rule(&rules->items[rule], reason);
	return false;
}

const struct matcher_ops *scan_rules_matcher(const struct scan_patterns *patterns)
{
	bool is_lone_literal = patterns->are_literals && patterns->expression_count == 1 &&
		patterns->file_count == 0 && !patterns->with_builtin;

	return is_lone_literal ? &matcher_literal : matcher_default();
}

bool scan_rules_load(const struct scan_patterns *patterns, const struct matcher_ops *matcher,
	struct rules *out_rules)
{
	bool asks_for_own;
	int error;
	bool is_measured;

	out_rules->count_max = patterns->count_max;
	out_rules->bytes_max = patterns->bytes_max;
	out_rules->findings_max = patterns->findings_max;
	error = add_expressions(patterns, out_rules);
	asks_for_own = patterns->expression_count > 0 || patterns->file_count > 0;
	if (error == 0) {
		error = add_files(patterns, out_rules);
	}
	if (!asks_for_own || patterns->with_builtin) {
		int builtin_error = rules_add_builtin(out_rules, patterns->with_examples);

		error = error != 0 ? error : builtin_error;
	}
	if (error == -ENOMEM) {
		report_line("%s", report_reason(error));
		return false;
	}
	if (error == 0 && (out_rules->count > COUNT_TOLD || out_rules->bytes > BYTES_TOLD)) {
		report_line("compiling %u rules, %llu KB; this may take a while", out_rules->count,
			(unsigned long long)(out_rules->bytes + 999) / 1000);
	}
	if (patterns->compile_ns_max != 0) {
		compile_limit_begin(patterns->compile_ns_max, out_rules->count);
	}
	is_measured = measure(matcher, out_rules, patterns->is_uncached);
	return resolve(out_rules) && is_measured && error == 0;
}

/* Special in extended expressions at any place. */
static bool is_special(char byte)
{
	return byte != '\0' && strchr("\\.[]{}()*+?|^$", byte) != NULL;
}

static bool append_pattern(struct output_text *text, const struct rule *rule)
{
	if (memchr(rule->pattern, '\n', rule->pattern_bytes) != NULL) {
		complain_rule(rule, "cannot be printed, as it holds a newline");
		return false;
	}
	if (!rule->is_literal) {
		output_text_append(text, rule->pattern, rule->pattern_bytes);
	}
	for (size_t i = 0; rule->is_literal && i < rule->pattern_bytes; i++) {
		if (is_special(rule->pattern[i])) {
			output_text_append(text, "\\", 1);
		}
		output_text_append(text, &rule->pattern[i], 1);
	}
	output_text_append(text, "\n", 1);
	return true;
}

int scan_rules_print(const struct rules *rules)
{
	struct output_text text = {0};
	bool is_ok = true;

	for (uint32_t i = 0; i < rules->count; i++) {
		is_ok = append_pattern(&text, &rules->items[i]) && is_ok;
	}
	return output_print(&text) && is_ok ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}
