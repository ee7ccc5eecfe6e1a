/* SPDX-License-Identifier: MIT */
/*
 * Runs while the program is built: compiles the built-in rules for each kind
 * of processor and prints them as the table of hyperscan_shipped.h. Prints an
 * empty one, and a line to stderr, where that cannot be done: a scan then
 * compiles the rules each time it starts.
 */
#if defined(HAVE_HYPERSCAN)

#include "tools/scan/hyperscan_shipped.h"
#include "tools/scan/hyperscan_starts.h"
#include "tools/scan/matcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RULES_MAX = 1024, TARGETS_MAX = 4, BYTES_A_LINE = 24 };

static const char *expressions[RULES_MAX];
static unsigned flags[RULES_MAX];
static unsigned ids[RULES_MAX];
static struct hyperscan_widths widths[RULES_MAX];

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

static void print_bytes(unsigned number, const char *bytes, size_t size)
{
	printf("static const unsigned char database_%u[] = {", number);
	for (size_t i = 0; i < size; i++) {
		printf("%s%u,", i % BYTES_A_LINE == 0 ? "\n\t" : "", (unsigned char)bytes[i]);
	}
	printf("\n};\n\n");
}

/* Compiles and prints one database. */
static bool print_database(unsigned number, unsigned long long cpu_features, uint32_t count)
{
	hs_platform_info_t platform = {.cpu_features = cpu_features};
	hs_database_t *database = NULL;
	hs_compile_error_t *error = NULL;
	char *bytes = NULL;
	size_t size = 0;
	bool is_ok = hs_compile_multi(expressions, flags, ids, count, HS_MODE_BLOCK, &platform,
			     &database, &error) == HS_SUCCESS &&
		hs_serialize_database(database, &bytes, &size) == HS_SUCCESS;

	if (is_ok) {
		print_bytes(number, bytes, size);
	} else {
		fprintf(stderr, "no database for a processor with features %llx: %s\n",
			cpu_features, error != NULL ? error->message : "no memory");
	}
	free(bytes);
	hs_free_compile_error(error);
	hs_free_database(database);
	return is_ok;
}

/* As a string of C; patterns are ASCII. */
static void print_string(const char *text)
{
	putchar('"');
	for (; *text != '\0'; text++) {
		printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
	putchar('"');
}

static void print_table(const unsigned long long *features, unsigned target_count, uint32_t count)
{
	printf("static const struct hyperscan_shipped_rule shipped_rules[] = {\n");
	for (uint32_t i = 0; i < count; i++) {
		printf("\t{");
		print_string(expressions[i]);
		printf(", {%u, %u}},\n", widths[i].min, widths[i].max);
	}
	printf("};\n\nstatic const struct hyperscan_shipped_database shipped_databases[] = {\n");
	for (unsigned i = 0; i < target_count; i++) {
		printf("\t{%lluULL, database_%u, sizeof(database_%u)},\n", features[i], i, i);
	}
	printf("};\n\nconst struct hyperscan_shipped hyperscan_shipped = {\n\t.version = ");
	print_string(hs_version());
	printf(",\n\t.flags = %u,\n\t.mode = %u,\n\t.rules = shipped_rules,\n"
	       "\t.rule_count = %" PRIu32 ",\n\t.databases = shipped_databases,\n"
	       "\t.database_count = %u,\n};\n",
		(unsigned)HYPERSCAN_FLAGS, (unsigned)HS_MODE_BLOCK, count, target_count);
}

int main(void)
{
	unsigned long long features[TARGETS_MAX];
	unsigned target_count = list_targets(features);
	uint32_t count;
	const struct rule_builtin *rules = rules_builtin(&count);
	bool is_ok = target_count > 0 && count <= RULES_MAX && fill(rules, count);

	for (unsigned i = 0; i < target_count && is_ok; i++) {
		is_ok = print_database(i, features[i], count);
	}
	if (is_ok) {
		print_table(features, target_count, count);
	} else {
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
