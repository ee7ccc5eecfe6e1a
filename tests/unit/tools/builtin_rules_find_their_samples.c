/* SPDX-License-Identifier: MIT */
/*
 * Goal: each built-in rule finds its samples and leaves a near miss alone, and
 * no rule finds the sample of another. Their ids are unique, each has a
 * description, and none matches its own pattern or zeros.
 * Method: tests/fixtures/rules/samples has a template or more for each rule;
 * they are expanded with several seeds, and all rules search each text. With
 * --print the program prints the first sample of each rule, a line each, for
 * tests/cli/scan.bats.
 */
#include "tests/support/expect.h"
#include "tests/support/templates.h"
#include "tools/scan/builtin/families.h"
#include "tools/scan/matcher.h"
#include "tools/scan/search.h"

#if defined(HAVE_HYPERSCAN)

enum {
	TEXT_BYTES = 8192,
	LINE_BYTES = 1024,
	SEED_COUNT = 3,
	RULES_MAX = 512,
};

struct samples {
	struct rules rules;
	struct search search;
	struct search_worker worker;
	struct candidates found;
	uint32_t found_count[RULES_MAX]; /* samples of each rule, by kind */
	uint32_t missed_count[RULES_MAX];
	bool prints;
};

static struct samples samples;

static void take(void *arg, const struct finding *findings, size_t count)
{
	(void)arg;
	for (size_t i = 0; i < count; i++) {
		const struct candidate found = {
			.start = findings[i].start,
			.end = findings[i].end,
			.rule = findings[i].rule,
		};

		expect_ready("candidates_add", candidates_add(&samples.found, &found) == 0);
	}
}

/* Findings of all rules in a text. */
static void search(const char *text, size_t length)
{
	static struct search_file file;
	const struct search_notes notes = {0};
	const struct pinion_window window = {
		.bytes = (const uint8_t *)text,
		.length_bytes = length,
		.is_last = true,
	};

	memset(&file, 0, sizeof(file));
	samples.found.count = 0;
	expect_number("open", 0, search_open(&samples.search, &file));
	expect_number("window", 0,
		search_window(&samples.search, &samples.worker, &file, &window, take, NULL));
	expect_number("close", 0,
		search_close(&samples.search, &samples.worker, &file, take, &notes, NULL));
}

static uint32_t rule_of(const char *id)
{
	uint32_t rule = 0;

	while (rule < samples.rules.count && strcmp(samples.rules.items[rule].id, id) != 0) {
		rule++;
	}
	return rule;
}

static const char *name(uint32_t rule)
{
	return samples.rules.items[rule].id;
}

/* All of the text but newlines at its ends is what this rule alone finds. */
static void check_found(uint32_t rule, const char *text, size_t length)
{
	size_t start = text[0] == '\n' ? 1 : 0;
	size_t end = text[length - 1] == '\n' ? length - 1 : length;

	search(text, length);
	for (size_t i = 0; i < samples.found.count; i++) {
		const struct candidate *finding = &samples.found.items[i];

		if (finding->rule != rule) {
			printf("in a sample of %s: ", name(rule));
			expect_text("found by another rule", "", name(finding->rule));
		} else if (finding->start != start || finding->end != end) {
			printf("%s finds %llu-%llu of %s\n", name(rule),
				(unsigned long long)finding->start,
				(unsigned long long)finding->end, text);
			expect_failure_count++;
		}
	}
	expect_number(name(rule), 1, (long long)samples.found.count);
	if (samples.found.count != 1) {
		printf("  in %s\n", text);
	}
}

static void check_missed(uint32_t rule, const char *text, size_t length)
{
	search(text, length);
	for (size_t i = 0; i < samples.found.count; i++) {
		if (samples.found.items[i].rule == rule) {
			printf("%s finds a near miss: %s\n", name(rule), text);
			expect_failure_count++;
		}
	}
}

static void check_sample(uint32_t rule, bool is_match, const char *template)
{
	static char text[TEXT_BYTES];
	size_t length;

	for (uint64_t seed = 1; seed <= (samples.prints ? 1 : SEED_COUNT); seed++) {
		if (!expect_true(template,
			    template_expand(template, seed, text, sizeof(text), &length) &&
				    length > 0)) {
			return;
		}
		if (samples.prints && is_match && samples.found_count[rule] > 0) {
			continue;
		}
		if (samples.prints && is_match) {
			printf("%s%s", text + (text[0] == '\n'),
				text[length - 1] == '\n' ? "" : "\n");
		} else if (is_match) {
			check_found(rule, text, length);
		} else if (!samples.prints) {
			check_missed(rule, text, length);
		}
	}
	*(is_match ? &samples.found_count[rule] : &samples.missed_count[rule]) += 1;
}

/* RULE<TAB>+ or -<TAB>TEMPLATE */
static void check_line(char *line)
{
	char *kind = strchr(line, '\t');
	char *template = kind != NULL ? strchr(kind + 1, '\t') : NULL;
	uint32_t rule;

	if (!expect_true(line, template == kind + 2 && (kind[1] == '+' || kind[1] == '-'))) {
		return;
	}
	*kind = '\0';
	template[strcspn(template, "\n")] = '\0';
	rule = rule_of(line);
	if (expect_true(line, rule < samples.rules.count)) {
		check_sample(rule, kind[1] == '+', template + 1);
	}
}

static void read_samples(void)
{
	const char *top = getenv("top_srcdir");
	char path[LINE_BYTES];
	char line[LINE_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/fixtures/rules/samples", top != NULL ? top : ".");
	file = fopen(path, "r");
	expect_ready(path, file != NULL);
	while (fgets(line, sizeof(line), file) != NULL) {
		if (line[0] != '#' && line[0] != '\n') {
			check_line(line);
		}
	}
	fclose(file);
}

/* ---- what holds for each rule ---- */

static void check_rules(void)
{
	static const char zeros[TEXT_BYTES];
	uint32_t count;
	uint32_t in_families = 0;
	const struct rule_builtin *builtin = rules_builtin(&count);
	const struct rule_family *const *families;
	uint32_t family_count;

	for (uint32_t i = 0; i < count; i++) {
		expect_number(builtin[i].id, i, rule_of(builtin[i].id));
		expect_true(builtin[i].id, builtin[i].description[0] != '\0');
		expect_true("a sample that is found", samples.found_count[i] > 0);
		expect_true("a near miss", samples.missed_count[i] > 0);
		search(builtin[i].pattern, strlen(builtin[i].pattern));
		expect_number("found in its own pattern", 0, (long long)samples.found.count);
	}
	search(zeros, sizeof(zeros));
	expect_number("found in zeros", 0, (long long)samples.found.count);
	families = rules_families(&family_count);
	for (uint32_t i = 0; i < family_count; i++) {
		in_families += families[i]->count;
	}
	expect_number("rules of all families", count, in_families);
}

static void start(void)
{
	struct matcher_trouble trouble;

	expect_ready("rules", rules_add_builtin(&samples.rules, true) == 0);
	for (uint32_t i = 0; i < samples.rules.count; i++) {
		expect_number(
			name(i), 0, matcher_hyperscan.measure(&samples.rules.items[i], &trouble));
	}
	expect_ready("search",
		samples.rules.count <= RULES_MAX &&
			search_init(&samples.search, &matcher_hyperscan, &samples.rules,
				&trouble) == 0 &&
			search_worker_init(&samples.worker, &samples.search) == 0);
}

int main(int argc, char **argv)
{
	samples.prints = argc > 1 && strcmp(argv[1], "--print") == 0;
	start();
	read_samples();
	if (!samples.prints) {
		check_rules();
	}
	search_worker_fini(&samples.worker);
	search_fini(&samples.search);
	candidates_free(&samples.found);
	rules_free(&samples.rules);
	return expect_status();
}

#else

int main(void)
{
	printf("skipped: built without Hyperscan\n");
	return EXPECT_SKIPPED;
}

#endif
