/* SPDX-License-Identifier: MIT */
/*
 * Turning rules into databases, and saying which of them cannot be.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_compile.h"

#include "tools/scan/confirm.h"
#include "tools/scan/hyperscan_expression.h"
#include "tools/scan/hyperscan_shipped.h"
#include "tools/scan/rule_filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		(byte >= '0' && byte <= '9') || byte == '_';
}

char *hyperscan_expression(const struct rule *rule)
{
	char *expression;
	size_t length = 0;

	if (rule->filter != NULL) {
		return strdup(confirm_regex_texts(rule->filter->pattern)->search);
	}
	if (!rule->is_literal) {
		return strdup(rule->pattern);
	}
	expression = malloc(rule->pattern_bytes * 4 + 1);
	if (expression == NULL) {
		return NULL;
	}
	for (size_t i = 0; i < rule->pattern_bytes; i++) {
		char byte = rule->pattern[i];

		if (is_word_byte(byte)) {
			expression[length++] = byte;
		} else {
			length += (size_t)sprintf(
				expression + length, "\\x%02x", (unsigned)(unsigned char)byte);
		}
	}
	expression[length] = '\0';
	return expression;
}

/* Alternatives and inline flags have to stay within a group: see the starts. */
static bool fits_in_group(const char *expression)
{
	char *anchored = hyperscan_expression_anchored(expression, HYPERSCAN_CONTEXT_FILE);
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *error = NULL;
	bool fits = anchored != NULL &&
		hs_expression_info(anchored, HYPERSCAN_FLAGS, &info, &error) == HS_SUCCESS;

	free(info);
	hs_free_compile_error(error);
	free(anchored);
	return fits;
}

static void set_widths(struct rule *rule, const struct hyperscan_widths *widths)
{
	rule->min_width = widths->min;
	rule->max_width = widths->max > MATCHER_WIDTH_MAX ? RULE_WIDTH_UNBOUNDED : widths->max;
}

static int check_widths(struct rule *rule, const char *expression, const hs_expr_info_t *info,
	struct matcher_trouble *out_trouble)
{
	if (info->min_width == 0) {
		matcher_complain(out_trouble, UINT32_MAX,
			"can match without a single byte, so it would match everywhere");
		return -EINVAL;
	}
	set_widths(rule, &(struct hyperscan_widths){info->min_width, info->max_width});
	if (rule->max_width != RULE_WIDTH_UNBOUNDED && rule->min_width != rule->max_width &&
		!fits_in_group(expression)) {
		matcher_complain(
			out_trouble, UINT32_MAX, "does not compile inside a group: (?:PATTERN)");
		return -EINVAL;
	}
	return 0;
}

static int measure_plain(struct rule *rule, struct matcher_trouble *out_trouble)
{
	struct hyperscan_target here = hyperscan_target_here();
	char *expression = hyperscan_expression(rule);
	struct hyperscan_widths widths;
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *compile_error = NULL;
	int error = 0;

	if (expression == NULL) {
		return -ENOMEM;
	}
	if (hyperscan_shipped_measure(expression, &here, &widths)) {
		set_widths(rule, &widths);
	} else if (hs_expression_info(expression, HYPERSCAN_FLAGS, &info, &compile_error) ==
		HS_SUCCESS) {
		error = check_widths(rule, expression, info, out_trouble);
	} else {
		matcher_complain(out_trouble, UINT32_MAX, "%s",
			compile_error != NULL ? compile_error->message : "cannot be compiled");
		error = -EINVAL;
	}
	hs_free_compile_error(compile_error);
	free(info);
	free(expression);
	return error;
}

/* The widths of a confirmed rule are those that PCRE2's expression has. */
static int measure_confirmed(struct rule *rule, struct matcher_trouble *out_trouble)
{
	hs_expr_info_t *info = NULL;
	hs_compile_error_t *compile_error = NULL;
	int error = rule_filter_measure(rule, out_trouble->reason);

	out_trouble->rule = UINT32_MAX;
	if (error == 0 && rule->min_width == 0) {
		matcher_complain(out_trouble, UINT32_MAX,
			"can match without a single byte, so it would match everywhere");
		error = -EINVAL;
	}
	if (error == 0 &&
		hs_expression_info(confirm_regex_texts(rule->filter->pattern)->search,
			HYPERSCAN_FLAGS, &info, &compile_error) != HS_SUCCESS) {
		matcher_complain(out_trouble, UINT32_MAX, "%s",
			compile_error != NULL ? compile_error->message : "cannot be compiled");
		error = -EINVAL;
	}
	hs_free_compile_error(compile_error);
	free(info);
	return error;
}

/*
 * Whether the pattern has what Hyperscan does not know and PCRE2 does:
 * look-around, atomic groups, back references, possessive repeats. Where it
 * only looks so, the reason is Hyperscan's all the same.
 */
static bool needs_confirmation(const struct rule *rule)
{
	static const char *const signs[] = {
		"(?=", "(?!", "(?<=", "(?<!", "(?>", "*+", "++", "?+", "}+"};
	const char *escape = rule->pattern;

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (strstr(rule->pattern, signs[i]) != NULL) {
			return true;
		}
	}
	while ((escape = strchr(escape, '\\')) != NULL && escape[1] != '\0') {
		if (escape[1] >= '1' && escape[1] <= '9') {
			return true;
		}
		escape += 2;
	}
	return false;
}

static int confirm(struct rule *rule, struct matcher_trouble *out_trouble)
{
	struct matcher_trouble trouble;
	int error = rule_make_confirmed(rule);

	if (error == 0) {
		error = measure_confirmed(rule, &trouble);
	}
	if (error == -EINVAL) {
		rule_filter_destroy(rule->filter);
		rule->filter = NULL;
		snprintf(out_trouble->reason, sizeof(out_trouble->reason), "%s", trouble.reason);
	}
	return error;
}

int hyperscan_measure(struct rule *rule, struct matcher_trouble *out_trouble)
{
	int error;

	if (rule->filter != NULL) {
		return measure_confirmed(rule, out_trouble);
	}
	error = measure_plain(rule, out_trouble);
	return error == -EINVAL && !rule->is_literal && needs_confirmation(rule)
		? confirm(rule, out_trouble)
		: error;
}

static void compile_list_free(struct hyperscan_list *list)
{
	free(list->expressions);
	free(list->flags);
	free(list->ids);
}

static int compile_list_fill(struct hyperscan_list *list, const struct rules *rules,
	const struct hyperscan_starts *starts, bool bounded, unsigned flags)
{
	uint32_t count = rules->count;

	list->expressions = calloc(count, sizeof(*list->expressions));
	list->flags = calloc(count, sizeof(*list->flags));
	list->ids = calloc(count, sizeof(*list->ids));
	if (list->expressions == NULL || list->flags == NULL || list->ids == NULL) {
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++) {
		bool is_bounded = rules->items[i].max_width != RULE_WIDTH_UNBOUNDED;

		if (is_bounded == bounded) {
			list->expressions[list->count] = starts[i].expression;
			list->flags[list->count] = HYPERSCAN_FLAGS | flags;
			list->ids[list->count] = i;
			list->count++;
		}
	}
	return 0;
}

/* The first rule that does not compile alone either; UINT32_MAX: all do. */
static uint32_t find_culprit(const struct hyperscan_list *list)
{
	for (unsigned i = 0; i < list->count; i++) {
		hs_database_t *database = NULL;
		hs_compile_error_t *error = NULL;
		hs_error_t status = hs_compile(
			list->expressions[i], list->flags[i], list->mode, NULL, &database, &error);

		hs_free_database(database);
		hs_free_compile_error(error);
		if (status != HS_SUCCESS) {
			return list->ids[i];
		}
	}
	return UINT32_MAX;
}

static int compile(const struct hyperscan_list *list, hs_database_t **out_database,
	struct matcher_trouble *out_trouble)
{
	hs_compile_error_t *trouble = NULL;

	if (hs_compile_multi(list->expressions, list->flags, list->ids, list->count, list->mode,
		    NULL, out_database, &trouble) == HS_SUCCESS) {
		return 0;
	}
	matcher_complain(out_trouble, find_culprit(list), "%s%s", trouble->message,
		list->mode == HS_MODE_BLOCK ? "" : " A bound, {1,200} in place of + or *, helps.");
	hs_free_compile_error(trouble);
	return -EINVAL;
}

int hyperscan_compile(const struct rules *rules, const struct hyperscan_starts *starts,
	bool bounded, hs_database_t **out_database, struct matcher_trouble *out_trouble)
{
	struct hyperscan_target here = hyperscan_target_here();
	struct hyperscan_list list = {
		.mode = bounded ? HS_MODE_BLOCK : HS_MODE_STREAM | HS_MODE_SOM_HORIZON_LARGE,
	};
	int error = compile_list_fill(
		&list, rules, starts, bounded, bounded ? 0 : HS_FLAG_SOM_LEFTMOST);

	if (error == 0 && list.count > 0) {
		*out_database = hyperscan_shipped_find(&list, &here);
		if (*out_database == NULL) {
			error = compile(&list, out_database, out_trouble);
		}
	}
	compile_list_free(&list);
	return error;
}

#endif
