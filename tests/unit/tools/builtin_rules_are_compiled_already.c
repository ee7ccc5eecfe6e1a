/* SPDX-License-Identifier: MIT */
/*
 * Goal: a scan with the built-in rules compiles nothing, neither before it
 * searches nor when it finds something: their database, their widths and the
 * databases that find starts are part of the program. These are as the library
 * makes them of the same rules now. Of another library, another processor or
 * any other list nothing is shipped.
 * Method: the linker puts this file before the library's compiling and
 * measuring, whose calls are counted. A list that differs in what does not
 * matter, a group around an expression, is measured and compiled anew; widths
 * and candidates in texts of matches and near misses have to be the same.
 */
#include "tests/support/expect.h"
#include "tools/scan/hyperscan_shipped.h"
#include "tools/scan/hyperscan_starts.h"
#include "tools/scan/matcher.h"
#include "tools/scan/selftest.h"

#if defined(HAVE_HYPERSCAN)

enum { TEXT_BYTES = 64 << 10, RULES_MAX = 256 };

static unsigned compile_count;
static unsigned start_count; /* compiled to find starts */
static unsigned measure_count;

hs_error_t __real_hs_compile_multi(const char *const *expressions, const unsigned *flags,
	const unsigned *ids, unsigned elements, unsigned mode, const hs_platform_info_t *platform,
	hs_database_t **db, hs_compile_error_t **error);
hs_error_t __wrap_hs_compile_multi(const char *const *expressions, const unsigned *flags,
	const unsigned *ids, unsigned elements, unsigned mode, const hs_platform_info_t *platform,
	hs_database_t **db, hs_compile_error_t **error);
hs_error_t __real_hs_expression_info(
	const char *expression, unsigned flags, hs_expr_info_t **info, hs_compile_error_t **error);
hs_error_t __wrap_hs_expression_info(
	const char *expression, unsigned flags, hs_expr_info_t **info, hs_compile_error_t **error);

hs_error_t __wrap_hs_compile_multi(const char *const *expressions, const unsigned *flags,
	const unsigned *ids, unsigned elements, unsigned mode, const hs_platform_info_t *platform,
	hs_database_t **db, hs_compile_error_t **error)
{
	compile_count++;
	return __real_hs_compile_multi(
		expressions, flags, ids, elements, mode, platform, db, error);
}

hs_error_t __real_hs_compile(const char *expression, unsigned flags, unsigned mode,
	const hs_platform_info_t *platform, hs_database_t **db, hs_compile_error_t **error);
hs_error_t __wrap_hs_compile(const char *expression, unsigned flags, unsigned mode,
	const hs_platform_info_t *platform, hs_database_t **db, hs_compile_error_t **error);

hs_error_t __wrap_hs_compile(const char *expression, unsigned flags, unsigned mode,
	const hs_platform_info_t *platform, hs_database_t **db, hs_compile_error_t **error)
{
	start_count++;
	return __real_hs_compile(expression, flags, mode, platform, db, error);
}

hs_error_t __wrap_hs_expression_info(
	const char *expression, unsigned flags, hs_expr_info_t **info, hs_compile_error_t **error)
{
	measure_count++;
	return __real_hs_expression_info(expression, flags, info, error);
}

/* ---- two sets of rules, as a scan has them ---- */

struct set {
	struct rules rules;
	struct matcher *matcher;
	struct matcher_worker *worker;
	struct candidates found;
	unsigned compiled;
	unsigned measured;
};

static void set_begin(struct set *set, bool in_groups)
{
	uint32_t count;
	const struct rule_builtin *builtin = rules_builtin(&count);
	struct matcher_trouble trouble;
	char pattern[512];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(pattern, sizeof(pattern), in_groups ? "(?:%s)" : "%s", builtin[i].pattern);
		expect_ready("rules_add",
			rules_add(&set->rules, builtin[i].id, pattern, strlen(pattern), false) ==
				0);
	}
	compile_count = 0;
	measure_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		expect_number(
			"measure", 0, matcher_hyperscan.measure(&set->rules.items[i], &trouble));
	}
	expect_ready("create",
		matcher_hyperscan.create(&set->rules, &set->matcher, &trouble) == 0 &&
			matcher_hyperscan.worker_create(set->matcher, &set->worker) == 0);
	set->compiled = compile_count;
	set->measured = measure_count;
}

static void set_search(struct set *set, const char *text, size_t length)
{
	const struct matcher_block block = {
		.bytes = (const uint8_t *)text,
		.length = length,
		.last_end = length,
	};

	set->found.count = 0;
	expect_number("search", 0, matcher_hyperscan.search(set->worker, &block, &set->found));
	candidates_sort_by_end(&set->found);
}

static void set_end(struct set *set)
{
	matcher_hyperscan.worker_destroy(set->worker);
	matcher_hyperscan.destroy(set->matcher);
	candidates_free(&set->found);
	rules_free(&set->rules);
}

/* ---- texts of matches and near misses ---- */

/* In two halves, so that a scan of this file finds nothing. */
static const char *const heads[][2] = {
	{"AK", "IA"},
	{"AccountKey", "="},
	{"do", "o_v1_"},
	{"dckr", "_pat_"},
	{"AI", "za"},
	{"github", "_pat_"},
	{"gh", "p_"},
	{"gl", "pat-"},
	{"GOCS", "PX-"},
	{"gl", "sa_"},
	{"HR", "KU-"},
	{"h", "f_"},
	{"ke", "y-"},
	{"np", "m_"},
	{"pypi-", "AgEIcHlwaS5vcmc"},
	{"S", "G."},
	{"sh", "pat_"},
	{"xo", "xb-"},
	{"sk", "_live_"},
	{"12345678:", "AA"},
	{"S", "K"},
	{"hv", "s."},
	{"-----BEGIN ", "PRIVATE KEY-----"},
	{"-----BEGIN OPENSSH ", "PRIVATE KEY-----"},
	{"https://hooks.slack", ".com/services/"},
	{"\"type\": ", "\"service_account\""},
};

static uint32_t next(uint32_t *state, uint32_t limit)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % limit;
}

static size_t make_text(uint32_t seed, char *text)
{
	static const char *const alphabets[] = {"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
		"0123456789abcdef", "0123456789abcdefghijABCDEFGHIJ_-", "abcXYZ"};
	size_t length = 0;

	while (length < TEXT_BYTES - 512) {
		uint32_t head = next(&seed, sizeof(heads) / sizeof(heads[0]));
		const char *alphabet = alphabets[next(&seed, 4)];
		uint32_t tail = next(&seed, 140);

		length += (size_t)sprintf(text + length, "%s%s", heads[head][0], heads[head][1]);
		for (uint32_t i = 0; i < tail; i++) {
			text[length++] = alphabet[next(&seed, (uint32_t)strlen(alphabet))];
		}
		text[length++] = " \n.\"="[next(&seed, 5)];
	}
	return length;
}

static void check_candidates(struct set *shipped, struct set *anew)
{
	static char text[TEXT_BYTES];
	bool was_found[RULES_MAX] = {false};
	size_t rules_found = 0;
	unsigned anew_count = 0;

	for (uint32_t seed = 1; seed <= 8; seed++) {
		size_t length = make_text(seed, text);

		start_count = 0;
		set_search(shipped, text, length);
		expect_number("compiled to find starts", 0, start_count);
		set_search(anew, text, length);
		anew_count += start_count;
		if (!expect_number("candidates", (long long)anew->found.count,
			    (long long)shipped->found.count)) {
			continue;
		}
		for (size_t i = 0; i < anew->found.count; i++) {
			expect_true("the same candidate",
				memcmp(&anew->found.items[i], &shipped->found.items[i],
					sizeof(struct candidate)) == 0);
			rules_found += !was_found[anew->found.items[i].rule];
			was_found[anew->found.items[i].rule] = true;
		}
	}
	expect_true("most rules have matched", rules_found >= 15);
	expect_true("those of other rules are compiled", anew_count >= 5);
}

static void check_widths(const struct set *shipped, const struct set *anew)
{
	for (uint32_t i = 0; i < shipped->rules.count; i++) {
		expect_number(shipped->rules.items[i].id, anew->rules.items[i].min_width,
			shipped->rules.items[i].min_width);
		expect_number(shipped->rules.items[i].id, anew->rules.items[i].max_width,
			shipped->rules.items[i].max_width);
	}
}

/* ---- for what nothing is shipped ---- */

static struct hyperscan_list list;

static bool is_there(const struct hyperscan_target *target)
{
	hs_database_t *database = hyperscan_shipped_find(&list, target);

	hs_free_database(database);
	return database != NULL;
}

static void check_others(void)
{
	static const char *expressions[RULES_MAX];
	static unsigned flags[RULES_MAX];
	static unsigned ids[RULES_MAX];
	struct hyperscan_target here = hyperscan_target_here();
	struct hyperscan_target other = here;
	struct hyperscan_widths widths;
	uint32_t count;
	const struct rule_builtin *builtin = rules_builtin(&count);

	for (uint32_t i = 0; i < count; i++) {
		expressions[i] = builtin[i].pattern;
		flags[i] = HYPERSCAN_FLAGS;
		ids[i] = i;
	}
	list = (struct hyperscan_list){expressions, flags, ids, count, HS_MODE_BLOCK};
	expect_true("the list itself", is_there(&here));
	other.version = "5.4.0";
	expect_true("another library", !is_there(&other));
	expect_true("nor its widths", !hyperscan_shipped_measure(expressions[0], &other, &widths));
	other = here;
	other.cpu_features = 1ULL << 40;
	expect_true("another processor", !is_there(&other));
	list.count--;
	expect_true("one rule less", !is_there(&here));
	list.count++;
	list.mode = HS_MODE_STREAM;
	expect_true("for streams", !is_there(&here));
	list.mode = HS_MODE_BLOCK;
	flags[count - 1] |= HS_FLAG_CASELESS;
	expect_true("other flags", !is_there(&here));
	flags[count - 1] = HYPERSCAN_FLAGS;
	ids[count - 1]++;
	expect_true("another number", !is_there(&here));
	ids[count - 1]--;
	expressions[count - 1] = "[a-z]{9}";
	expect_true("another expression", !is_there(&here));
	expect_true("nor its widths",
		!hyperscan_shipped_measure(expressions[count - 1], &here, &widths));
}

/* Nor does the test of the library compile, unless the scan will. */
static void check_selftest(void)
{
	const char *expressions[SELFTEST_PATTERNS_MAX];
	char reason[320];
	unsigned sets = 0;

	while (selftest_set(sets, expressions) > 0) {
		sets++;
	}
	expect_number("sets of the test", 8, sets);
	compile_count = 0;
	expect_number("shipped", 0, selftest_library(false, reason, sizeof(reason)));
	expect_number("compiled for it", 0, compile_count);
	expect_number("anew", 0, selftest_library(true, reason, sizeof(reason)));
	expect_number("blocks and streams are compiled", 2 * sets, compile_count);
}

int main(void)
{
	struct set shipped = {0};
	struct set anew = {0};

	if (hyperscan_shipped.version == NULL) {
		printf("skipped: built for another machine than the one that built it\n");
		return EXPECT_SKIPPED;
	}
	set_begin(&shipped, false);
	set_begin(&anew, true);
	expect_number("compiled", 0, shipped.compiled);
	expect_number("measured", 0, shipped.measured);
	expect_number("another list is compiled", 1, anew.compiled);
	expect_true("and measured", anew.measured >= anew.rules.count);
	check_widths(&shipped, &anew);
	check_candidates(&shipped, &anew);
	set_end(&shipped);
	set_end(&anew);
	check_others();
	check_selftest();
	return expect_status();
}

#else

int main(void)
{
	printf("skipped: built without Hyperscan\n");
	return EXPECT_SKIPPED;
}

#endif
