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
#include "tools/scan/rule_filter.h"
#include "tools/scan/rules_cache.h"
#include "tools/scan/rules_reader.h"
#include "tools/scan/yara_rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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

static struct rules_reader reader_of(const struct scan_patterns *patterns, struct rules *rules)
{
	return (struct rules_reader){
		.rules = rules,
		.remark = patterns->is_silent ? remark_nothing : remark,
		.is_strict = patterns->is_strict,
		.names_all = patterns->names_all,
		.with_examples = patterns->with_examples,
		.has_one_file = patterns->has_one_file,
		.yara_defines = &patterns->yara_defines,
		.silence_ns_max = patterns->silence_ns_max,
	};
}

/* Rules that were read, and files whose rules are compiled later. */
static size_t count_read(const struct rules *rules)
{
	return rules->count + (rules->yara != NULL ? rules->yara->source_count : 0);
}

static int add_files(const struct scan_patterns *patterns, struct rules *rules)
{
	struct rules_reader reader = reader_of(patterns, rules);
	int first_error = 0;

	for (uint32_t i = 0; i < patterns->file_count; i++) {
		size_t count_before = count_read(rules);
		int error = rules_reader_add(&reader, patterns->files[i]);

		if (error == 0 && count_read(rules) == count_before) {
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

/* After all other rules. False: reported. */
static bool compile_yara(const struct scan_patterns *patterns, struct rules *rules)
{
	struct rules_reader reader = reader_of(patterns, rules);
	int error = rules->yara == NULL ? 0 : yara_rules_compile(&reader);

	if (error != 0 && error != -EINVAL) {
		report_line("%s", report_reason(error));
	}
	return error == 0;
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

/* Of a TOML file, whose rules may have what pinion lacks. */
static bool may_be_left_out(const struct scan_patterns *patterns, const struct rule *rule)
{
	return !patterns->is_strict && rule->file != NULL && rule->filter != NULL &&
		rule->filter->dialect == RULE_DIALECT_GO;
}

static void leave_out(const struct scan_patterns *patterns, struct rules *rules, uint32_t index,
	const char *reason, bool *is_left_out)
{
	const struct rule *rule = &rules->items[index];
	char line[RULE_FILTER_REASON_BYTES + 200];

	snprintf(line, sizeof(line), "rule %.128s: %s; it is left out", rule->id, reason);
	if (!patterns->is_silent) {
		remark(RULES_REMARK_UNSUPPORTED, rule->file, rule->line, line);
	}
	rules->unsupported_count++;
	is_left_out[index] = true;
}

/* The id of a companion that is left out; NULL: there is none. */
static const char *missing_companion(
	const struct rules *rules, const struct rule_filter *filter, const bool *is_left_out)
{
	for (uint32_t i = 0; filter != NULL && i < filter->companion_count; i++) {
		for (uint32_t k = 0; k < rules->count; k++) {
			if (is_left_out[k] &&
				strcmp(rules->items[k].id, filter->companions[i].rule_id) == 0) {
				return rules->items[k].id;
			}
		}
	}
	return NULL;
}

/* Rules that need those that are left out find nothing, either. */
static void leave_others_out(
	const struct scan_patterns *patterns, struct rules *rules, bool *is_left_out)
{
	bool has_more = true;

	while (has_more) {
		has_more = false;
		for (uint32_t i = 0; i < rules->count; i++) {
			const char *id = is_left_out[i]
				? NULL
				: missing_companion(rules, rules->items[i].filter, is_left_out);
			char reason[160];

			if (id != NULL) {
				snprintf(reason, sizeof(reason), "requires the rule %.128s", id);
				leave_out(patterns, rules, i, reason, is_left_out);
				has_more = true;
			}
		}
	}
}

/* Marks the rules that are left out; false: some are bad. */
static bool measure_all(const struct scan_patterns *patterns, const struct matcher_ops *matcher,
	struct rules *rules, bool *is_left_out)
{
	bool is_ok = true;

	for (uint32_t i = 0; i < rules->count; i++) {
		struct matcher_trouble trouble;
		int error = matcher->measure(&rules->items[i], &trouble);

		if (error == -EINVAL && may_be_left_out(patterns, &rules->items[i])) {
			leave_out(patterns, rules, i, trouble.reason, is_left_out);
		} else if (error != 0) {
			complain_rule(&rules->items[i],
				error == -EINVAL ? trouble.reason : report_reason(error));
			is_ok = false;
		}
	}
	return is_ok;
}

static bool measure(const struct scan_patterns *patterns, const struct matcher_ops *matcher,
	struct rules *rules)
{
	uint32_t count = rules->count;
	bool recalls = !patterns->is_uncached && matcher->recall != NULL;
	bool *is_left_out;
	bool is_ok;

	if ((count == 0 && rules->yara != NULL) || (recalls && matcher->recall(rules))) {
		return true;
	}
	is_left_out = calloc(count + 1, sizeof(*is_left_out));
	if (is_left_out == NULL) {
		report_line("%s", report_reason(ENOMEM));
		return false;
	}
	is_ok = measure_all(patterns, matcher, rules, is_left_out);
	if (memchr(is_left_out, true, count) != NULL) {
		leave_others_out(patterns, rules, is_left_out);
		rules_remove(rules, 0, is_left_out);
	}
	free(is_left_out);
	is_ok = is_ok && (rules->count > 0 || rules->yara != NULL);
	if (is_ok && recalls && rules->count > 0 && rules->count < count) {
		/* Without those they may have been compiled before. */
		rules_cached_destroy(rules->cached);
		rules->cached = NULL;
		(void)matcher->recall(rules);
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
		out_rules->are_builtin = !asks_for_own && error == 0;
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
		compile_limit_begin(
			patterns->compile_ns_max, out_rules->yara != NULL ? 0 : out_rules->count);
	}
	is_measured = measure(patterns, matcher, out_rules);
	return resolve(out_rules) && is_measured && error == 0 && compile_yara(patterns, out_rules);
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

	if (rules->yara_count > 0) {
		report_line("--print-patterns: rules of YARA are more than patterns");
		return EXIT_STATUS_TROUBLE;
	}
	for (uint32_t i = 0; i < rules->count; i++) {
		is_ok = append_pattern(&text, &rules->items[i]) && is_ok;
	}
	return output_print(&text) && is_ok ? EXIT_STATUS_CLEAN : EXIT_STATUS_TROUBLE;
}
