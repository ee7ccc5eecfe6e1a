/* SPDX-License-Identifier: MIT */
/*
 * Runs while the program is built: compiles the built-in rules, and the
 * patterns of selftest.h, for each kind of processor, and what finds the starts
 * of matches for all of them, and prints these as the table of
 * hyperscan_shipped.h. Prints an empty one, and a line to stderr,
 * where that cannot be done: a scan then compiles them each time it starts.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_expression.h"
#include "tools/scan/hyperscan_shipped.h"
#include "tools/scan/hyperscan_starts.h"
#include "tools/scan/matcher.h"
#include "tools/scan/selftest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULES_MAX = 1024, TARGETS_MAX = 4, BYTES_A_LINE = 24, NAME_BYTES = 32, FORMS_MAX = 2 };

static const char *expressions[RULES_MAX];
static unsigned flags[RULES_MAX];
static unsigned ids[RULES_MAX];
static struct hyperscan_widths widths[RULES_MAX];
/* Expressions that find starts. */
static char *start_expressions[RULES_MAX * FORMS_MAX];
static unsigned start_flags[RULES_MAX * FORMS_MAX];
static unsigned start_count;

/* Of the processors that this library distinguishes. */
static unsigned list_targets(unsigned long long out_features[TARGETS_MAX])
{
#if defined(__x86_64__)
	unsigned long long features = 0;
	unsigned count = 0;

	out_features[count++] = features;
	features |= HS_CPU_FEATURES_AVX2;
	out_features[count++] = features;
#if defined(HS_CPU_FEATURES_AVX512)
	features |= HS_CPU_FEATURES_AVX512;
	out_features[count++] = features;
#endif
#if defined(HS_CPU_FEATURES_AVX512VBMI)
	features |= HS_CPU_FEATURES_AVX512VBMI;
	out_features[count++] = features;
#endif
	return count;
#else
	hs_platform_info_t platform;

	if (hs_populate_platform(&platform) != HS_SUCCESS) {
		return 0;
	}
	out_features[0] = platform.cpu_features;
	return 1;
#endif
}

static bool fill(const struct rule_builtin *rules, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		hs_expr_info_t *info = NULL;
		hs_compile_error_t *error = NULL;

		expressions[i] = rules[i].pattern;
		flags[i] = HYPERSCAN_FLAGS;
		ids[i] = i;
		if (hs_expression_info(rules[i].pattern, HYPERSCAN_FLAGS, &info, &error) !=
			HS_SUCCESS) {
			fprintf(stderr, "%s: %s\n", rules[i].id, error->message);
			hs_free_compile_error(error);
			return false;
		}
		widths[i] = (struct hyperscan_widths){info->min_width, info->max_width};
		free(info);
		if (widths[i].min == 0 || widths[i].max > MATCHER_WIDTH_MAX) {
			fprintf(stderr, "%s: is not bounded\n", rules[i].id);
			return false;
		}
	}
	return true;
}

static void print_bytes(const char *list, unsigned number, const char *bytes, size_t size)
{
	printf("static const unsigned char database_%s_%u[] = {", list, number);
	for (size_t i = 0; i < size; i++) {
		printf("%s%u,", i % BYTES_A_LINE == 0 ? "\n\t" : "", (unsigned char)bytes[i]);
	}
	printf("\n};\n\n");
}

/* Compiles and prints one database. */
static bool print_database(const struct hyperscan_list *list, const char *name, unsigned number,
	unsigned long long cpu_features)
{
	hs_platform_info_t platform = {.cpu_features = cpu_features};
	hs_database_t *database = NULL;
	hs_compile_error_t *error = NULL;
	char *bytes = NULL;
	size_t size = 0;
	bool is_ok = hs_compile_multi(list->expressions, list->flags, list->ids, list->count,
			     list->mode, &platform, &database, &error) == HS_SUCCESS &&
		hs_serialize_database(database, &bytes, &size) == HS_SUCCESS;

	if (is_ok) {
		print_bytes(name, number, bytes, size);
	} else {
		fprintf(stderr, "no database for a processor with features %llx: %s\n",
			cpu_features, error != NULL ? error->message : "no memory");
	}
	free(bytes);
	hs_free_compile_error(error);
	hs_free_database(database);
	return is_ok;
}

static bool is_compilable(const char *expression, unsigned all_flags)
{
	hs_database_t *database = NULL;
	hs_compile_error_t *error = NULL;
	bool is_ok = hs_compile(expression, all_flags, HS_MODE_BLOCK, NULL, &database, &error) ==
		HS_SUCCESS;

	hs_free_database(database);
	hs_free_compile_error(error);
	return is_ok;
}

static void add_start(char *expression, unsigned all_flags)
{
	start_expressions[start_count] = expression;
	start_flags[start_count++] = all_flags;
}

/*
 * As hyperscan_starts.c chooses them: a rule of one width needs none. Matches
 * at the start of a file are tried as those at the start of a line.
 */
static bool fill_starts(uint32_t rule_count)
{
	static const enum hyperscan_context contexts[FORMS_MAX] = {
		HYPERSCAN_CONTEXT_LINE, HYPERSCAN_CONTEXT_INSIDE};
	const unsigned som = HYPERSCAN_FLAGS | HS_FLAG_SOM_LEFTMOST;

	for (uint32_t i = 0; i < rule_count; i++) {
		if (widths[i].min == widths[i].max) {
			continue;
		}
		if (widths[i].max <= HYPERSCAN_SOM_WIDTH_MAX &&
			is_compilable(expressions[i], som)) {
			add_start(strdup(expressions[i]), som);
			continue;
		}
		for (int form = 0; form < FORMS_MAX; form++) {
			add_start(hyperscan_expression_anchored(expressions[i], contexts[form]),
				HYPERSCAN_FLAGS);
		}
	}
	for (unsigned i = 0; i < start_count; i++) {
		if (start_expressions[i] == NULL) {
			return false;
		}
	}
	return true;
}

/* As a string of C; patterns are ASCII, perhaps with a carriage return. */
static void print_string(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		if (*text == '\r') {
			printf("\\r");
		} else {
			printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
		}
	}
	putchar('"');
}

/* Its databases and what they are of, as tables of that name. */
static bool print_list(const struct hyperscan_list *list, const char *name,
	const unsigned long long *features, unsigned target_count)
{
	for (unsigned i = 0; i < target_count; i++) {
		if (!print_database(list, name, i, features[i])) {
			return false;
		}
	}
	printf("static const char *const expressions_%s[] = {\n", name);
	for (unsigned i = 0; i < list->count; i++) {
		printf("\t");
		print_string(list->expressions[i]);
		printf(",\n");
	}
	printf("};\n\nstatic const struct hyperscan_shipped_database databases_%s[] = {\n", name);
	for (unsigned i = 0; i < target_count; i++) {
		printf("\t{%lluULL, database_%s_%u, sizeof(database_%s_%u)},\n", features[i], name,
			i, name, i);
	}
	printf("};\n\n");
	return true;
}

/* A row of the table of lists. */
static void print_row(const char *name, const struct hyperscan_list *list, unsigned target_count)
{
	printf("\t{expressions_%s, %u, %u, %u, databases_%s, %u},\n", name, list->count,
		list->flags[0], list->mode, name, target_count);
}

static void print_rules(uint32_t count)
{
	printf("static const struct hyperscan_shipped_rule shipped_rules[] = {\n");
	for (uint32_t i = 0; i < count; i++) {
		printf("\t{");
		print_string(expressions[i]);
		printf(", {%u, %u}},\n", widths[i].min, widths[i].max);
	}
	printf("};\n\n");
}

/* The list of that number: the rules, or a set of the test in one mode. */
static bool fill_list(unsigned number, uint32_t rule_count, struct hyperscan_list *out_list,
	char out_name[NAME_BYTES])
{
	static const char *set[SELFTEST_PATTERNS_MAX];
	static unsigned no_flags[SELFTEST_PATTERNS_MAX];
	size_t index = number == 0 ? 0 : (number - 1) / 2;

	if (number == 0) {
		*out_list =
			(struct hyperscan_list){expressions, flags, ids, rule_count, HS_MODE_BLOCK};
		snprintf(out_name, NAME_BYTES, "rules");
		return true;
	}
	*out_list = (struct hyperscan_list){set, no_flags, ids, (unsigned)selftest_set(index, set),
		number % 2 == 1 ? HS_MODE_BLOCK : HS_MODE_STREAM};
	snprintf(out_name, NAME_BYTES, "%s_%zu", number % 2 == 1 ? "block" : "stream", index);
	return out_list->count > 0;
}

static void fill_start(unsigned number, struct hyperscan_list *out_list, char out_name[NAME_BYTES])
{
	*out_list = (struct hyperscan_list){(const char **)&start_expressions[number],
		&start_flags[number], ids, 1, HS_MODE_BLOCK};
	snprintf(out_name, NAME_BYTES, "starts_%u", number);
}

static bool print_all(
	const unsigned long long *features, unsigned target_count, uint32_t rule_count)
{
	struct hyperscan_list list;
	char name[NAME_BYTES];
	unsigned count = 0;

	for (; fill_list(count, rule_count, &list, name); count++) {
		if (!print_list(&list, name, features, target_count)) {
			return false;
		}
	}
	for (unsigned i = 0; i < start_count; i++) {
		fill_start(i, &list, name);
		if (!print_list(&list, name, features, 1)) {
			return false;
		}
	}
	print_rules(rule_count);
	printf("static const struct hyperscan_shipped_list shipped_lists[] = {\n");
	for (unsigned i = 0; i < count && fill_list(i, rule_count, &list, name); i++) {
		print_row(name, &list, target_count);
	}
	for (unsigned i = 0; i < start_count; i++) {
		fill_start(i, &list, name);
		print_row(name, &list, 1);
	}
	printf("};\n\nconst struct hyperscan_shipped hyperscan_shipped = {\n\t.version = ");
	print_string(hs_version());
	printf(",\n\t.rules = shipped_rules,\n\t.rule_count = %" PRIu32
	       ",\n\t.lists = shipped_lists,\n\t.list_count = %u,\n};\n",
		rule_count, count + start_count);
	return true;
}

int main(void)
{
	unsigned long long features[TARGETS_MAX];
	unsigned target_count = list_targets(features);
	uint32_t count;
	const struct rule_builtin *rules = rules_builtin(&count);
	bool is_ok =
		target_count > 0 && count <= RULES_MAX && fill(rules, count) && fill_starts(count);

	if (!is_ok || !print_all(features, target_count, count)) {
		fprintf(stderr, "the built-in rules are compiled at each start\n");
		printf("const struct hyperscan_shipped hyperscan_shipped;\n");
	}
	return 0;
}

#else

int main(void)
{
	return 0;
}

#endif
