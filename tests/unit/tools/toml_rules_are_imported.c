/* SPDX-License-Identifier: MIT */
/*
 * Goal: each field of a TOML file of rules arrives in the rule or its filter;
 * files extend others as gitleaks has them do; unsupported parts are named
 * at their lines, and are errors only on request (EX-51, EX-52).
 *
 * Method: files in a folder of their own, read with a function that collects
 * the remarks.
 */
#include "tests/support/expect.h"
#include "tests/support/scratch.h"
#include "tools/scan/rule_condition.h"
#include "tools/scan/rule_filter.h"
#include "tools/scan/rules_reader.h"
#include "tools/scan/rules_toml.h"

#include <errno.h>

static char remarks[4096];

static void collect(enum rules_remark remark, const char *file, uint32_t line, const char *reason)
{
	size_t length = strlen(remarks);

	snprintf(remarks + length, sizeof(remarks) - length, "%c %s:%u %s\n", "EUN"[remark], file,
		line, reason);
}

static int read_rules(const char *file, bool is_strict, struct rules *out_rules)
{
	struct rules_reader reader = {
		.rules = out_rules,
		.remark = collect,
		.is_strict = is_strict,
	};

	remarks[0] = '\0';
	*out_rules = (struct rules){.count_max = 1000};
	return rules_reader_add(&reader, file);
}

static void write_file(const char *path, const char *text)
{
	unlink(path);
	scratch_file(path, text);
}

static const struct rule *find(const struct rules *rules, const char *id)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		if (strcmp(rules->items[i].id, id) == 0) {
			return &rules->items[i];
		}
	}
	printf("there is no rule %s\n", id);
	exit(1);
}

static const char rule_file[] = "title = \"all of it\"\n"
				"minVersion = \"8.25.0\"\n"
				"[[rules]]\n"
				"id = \"acme-key\"\n"
				"description = \"An ACME key\"\n"
				"regex = '''key=(x)([a-z]{8})'''\n"
				"path = '''\\.go$'''\n"
				"secretGroup = 2\n"
				"entropy = 3.5\n"
				"keywords = [\"acme\", \"key=\"]\n"
				"tags = [\"acme\"]\n"
				"skipReport = true\n"
				"filter = '''finding[\"secret\"] == \"no\"'''\n"
				"validate = '''http.get(\"x\", {}).status == 200'''\n"
				"[[rules.allowlists]]\n"
				"description = \"tests\"\n"
				"condition = \"AND\"\n"
				"regexTarget = \"line\"\n"
				"regexes = ['''^a$''', \"b\"]\n"
				"paths = [\"test/\"]\n"
				"stopwords = [\"example\", \"Fake\"]\n"
				"[[rules.allowlists]]\n"
				"regexes = [\"c\"]\n"
				"[[rules.required]]\n"
				"id = \"acme-id\"\n"
				"withinLines = 5\n"
				"[[rules.required]]\n"
				"id = \"acme-id\"\n"
				"withinColumns = 7\n"
				"[[rules]]\n"
				"id = \"acme-id\"\n"
				"regex = \"id\"\n"
				"[rules.allowlist]\n"
				"regexTarget = \"match\"\n"
				"regexes = [\"d\"]\n"
				"[[allowlists]]\n"
				"paths = [\"vendor/\"]\n"
				"[[allowlists]]\n"
				"targetRules = [\"acme-id\"]\n"
				"stopwords = [\"e\"]\n";

static void check_allowlists(const struct rule_filter *filter)
{
	const struct rule_allowlist *list = &filter->own->items[0];

	expect_number("own lists", 2, filter->own->count);
	expect_number("all have to hold", true, list->needs_all);
	expect_number("target", RULE_TARGET_LINE, list->target);
	expect_text("description", "tests", list->description);
	expect_number("regexes", 2, list->regexes.count);
	expect_text("regex", "^a$", list->regexes.items[0].pattern);
	expect_text("path", "test/", list->paths.items[0].pattern);
	expect_number("stopwords", 2, list->stopwords.count);
	expect_text("stopword", "Fake", list->stopwords.items[1]);
	list = &filter->own->items[1];
	expect_number("any may hold", false, list->needs_all);
	expect_number("target", RULE_TARGET_SECRET, list->target);
	expect_number("shared lists", 1, filter->shared->count);
	expect_text("shared", "vendor/", filter->shared->items[0].paths.items[0].pattern);
}

static void check_fields(void)
{
	const struct rule_filter *filter;
	const struct rule *rule;
	struct rules rules;

	write_file("all", rule_file);
	expect_number("read", 0, read_rules("all", true, &rules));
	expect_text("remarks", "", remarks);
	expect_number("rules", 2, rules.count);
	rule = find(&rules, "acme-key");
	filter = rule->filter;
	expect_text("pattern", "key=(x)([a-z]{8})", rule->pattern);
	expect_text("file", "all", rule->file);
	expect_number("line", 6, rule->line);
	expect_number("dialect", RULE_DIALECT_GO, filter->dialect);
	expect_text("description", "An ACME key", filter->description);
	expect_text("path", "\\.go$", filter->path.pattern);
	expect_number("group", 2, filter->secret_group);
	expect_true("entropy", filter->entropy_min > 3.49 && filter->entropy_min < 3.51);
	expect_number("keywords", 2, filter->keywords.count);
	expect_text("keyword", "key=", filter->keywords.items[1]);
	expect_text("tag", "acme", filter->tags.items[0]);
	expect_true("only a companion", filter->skips_report);
	expect_true("expression", rule_condition_own(filter) != NULL);
	expect_number("companions", 2, filter->companion_count);
	expect_text("companion", "acme-id", filter->companions[0].rule_id);
	expect_true("lines", filter->companions[0].has_lines && !filter->companions[0].has_columns);
	expect_number("lines", 5, filter->companions[0].within_lines);
	expect_number("columns", 7, filter->companions[1].within_columns);
	check_allowlists(filter);
	filter = find(&rules, "acme-id")->filter;
	expect_number("lists", 2, filter->own->count);
	expect_number("target", RULE_TARGET_MATCH, filter->own->items[0].target);
	expect_text("for this rule", "e", filter->own->items[1].stopwords.items[0]);
	rules_free(&rules);
}

static void check_unsupported(void)
{
	static const char text[] = "color = \"red\"\n"
				   "[[rules]]\n"
				   "id = \"a\"\n"
				   "regex = \"a\"\n"
				   "smell = 1\n"
				   "specificity = 7\n"
				   "tokenEfficiency = true\n"
				   "filter = '''\n"
				   "true &&\n"
				   "failsTokenEfficiency(finding[\"secret\"])'''\n"
				   "[[rules.allowlists]]\n"
				   "commits = [\"abc\"]\n"
				   "stopwords = [\"kept\"]\n"
				   "[[rules.allowlists]]\n"
				   "condition = \"and\"\n"
				   "commits = [\"abc\"]\n"
				   "stopwords = [\"not kept\"]\n"
				   "[[rules]]\n"
				   "id = \"names\"\n"
				   "path = \"p12$\"\n";
	struct rules rules;

	write_file("unsupported", text);
	expect_number("read", 0, read_rules("unsupported", false, &rules));
	expect_text("remarks",
		"U unsupported:1 color is not known\n"
		"U unsupported:10 rule a: filter: failsTokenEfficiency() is not supported,"
		" and drops nothing\n"
		"U unsupported:5 rule a: smell is not known\n"
		"U unsupported:6 rule a: specificity: findings of several rules"
		" at one place are all reported\n"
		"U unsupported:7 rule a: tokenEfficiency is not supported, and drops nothing\n"
		"U unsupported:18 rule names: has no regex; rules for names"
		" of files alone are left out\n",
		remarks);
	expect_number("rules", 1, rules.count);
	expect_number("words", 1, find(&rules, "a")->filter->own->items[1].stopwords.count);
	expect_number("commits", 1, find(&rules, "a")->filter->own->items[1].commits.count);
	rules_free(&rules);
	expect_number("strict", -EINVAL, read_rules("unsupported", true, &rules));
	expect_true("errors", strncmp(remarks, "E unsupported:1 color", 21) == 0);
	rules_free(&rules);
}

/* Each with the remark that it gets. */
static void check_mistakes(void)
{
	static const char *const cases[][2] = {
		{"a = = 1", "no TOML"},
		{"[[rules]]\nregex = \"a\"", "E bad:1 a rule has no id"},
		{"[[rules]]\nid = \"a b\"\nregex = \"a\"", "E bad:2 an id is 1 to 128"},
		{"[[rules]]\nid = 5\nregex = \"a\"",
			"E bad:2 id has to be a text, not a whole number"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\n[[rules]]\nid = \"a\"\nregex = \"b\"",
			"E bad:5 rule a: is there twice"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\\u0000\"",
			"E bad:3 rule a: regex holds a NUL"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nentropy = \"x\"",
			"E bad:4 rule a: entropy has to be a number, not a text"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nentropy = 9",
			"E bad:4 rule a: entropy has to be 0 to 8"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nsecretGroup = -1", "has to be 0 to 1000"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nkeywords = [1]",
			"something that is no text"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nskipReport = 1", "has to be true or false"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\nfilter = '''\n(\n'''",
			"E bad:6 rule a: filter: a value is missing at its end"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\n[[rules.allowlists]]\ncondition = \"xor\"\n"
		 "paths = [\"a\"]",
			"condition has to be AND or OR, not xor"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\n[[rules.allowlists]]\nregexTarget = \"x\"\n"
		 "paths = [\"a\"]",
			"regexTarget has to be secret, match or line, not x"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\n[[rules.allowlists]]\n",
			"E bad:4 rule a: an allowlist has none of"},
		{"[[rules]]\nid = \"a\"\nregex = \"a\"\n[[rules.required]]\n", "it has no id"},
		{"[[allowlists]]\ntargetRules = [\"z\"]\npaths = [\"a\"]",
			"a rule that there is not"},
		{"rules = 5", "E bad:1 rules has to be [[rules]]"},
		{"extend = 5", "E bad:1 extend has to be a table"},
		{"[extend]\npath = \"gone\"", "E bad:2 gone: No such file"},
		{"[extend]\npath = \"bad\"", "E bad:2 bad extends itself"},
		{"[extend]\npath = \"all\"\nuseDefault = true", "only one of them"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rules rules;

		write_file("bad", cases[i][0]);
		expect_number(cases[i][0], -EINVAL, read_rules("bad", false, &rules));
		if (strstr(remarks, cases[i][1]) == NULL) {
			printf("expected \"%s\", got \"%s\"\n", cases[i][1], remarks);
			expect_failure_count++;
		}
		rules_free(&rules);
	}
}

static void check_extends(void)
{
	const struct rule *rule;
	struct rules rules;
	uint32_t builtin_count;

	expect_ready("mkdir", mkdir("folder", 0755) == 0);
	write_file("folder/top.toml",
		"[extend]\npath = \"../base\"\ndisabledRules = [\"b\", \"gone\"]\n"
		"[[rules]]\nid = \"a\"\nregex = \"new\"\nkeywords = [\"k2\"]\n"
		"[[rules]]\nid = \"d\"\nregex = \"d\"\n"
		"[[allowlists]]\npaths = [\"top\"]\n");
	write_file("base",
		"filter = \"false\"\n[extend]\npath = \"list\"\n"
		"[[rules]]\nid = \"a\"\nregex = \"old\"\nentropy = 2\nkeywords = [\"k1\"]\n"
		"[[rules]]\nid = \"b\"\nregex = \"b\"\n[[allowlists]]\npaths = [\"base\"]\n");
	write_file("list", "c\tc+\n");
	expect_number("read", 0, read_rules("folder/top.toml", false, &rules));
	expect_text("remarks",
		"U folder/top.toml:3 disabledRules: there is no rule gone to disable\n", remarks);
	expect_number("rules", 3, rules.count);
	rule = find(&rules, "a");
	expect_text("changed", "new", rule->pattern);
	expect_text("where", "folder/top.toml", rule->file);
	expect_true("kept", rule->filter->entropy_min > 1.9);
	expect_number("added to", 2, rule->filter->keywords.count);
	expect_number("for all", 2, rule->filter->shared->count);
	rule = find(&rules, "c");
	expect_text("of a list", "folder/../list", rule->file);
	expect_number("pinion's own", RULE_DIALECT_PCRE, rule->filter->dialect);
	expect_number("for all", 2, rule->filter->shared->count);
	expect_true("for all", rule->filter->condition.object != NULL);
	rules_free(&rules);
	rules_builtin(&builtin_count);
	write_file("more",
		"[extend]\nuseDefault = true\ndisabledRules = [\"jwt\"]\n"
		"[[rules]]\nid = \"npm-token\"\nregex = \"x\"\n");
	expect_number("read", 0, read_rules("more", false, &rules));
	expect_number("all but jwt", builtin_count - 1, rules.count);
	expect_text("changed", "x", find(&rules, "npm-token")->pattern);
	expect_true("as it was", find(&rules, "gcp-api-key")->filter == NULL);
	rules_free(&rules);
}

/* Files that extend one another: in a circle, and too many. */
static void check_chains(void)
{
	struct rules rules;

	write_file("one", "[extend]\npath = \"two\"\n");
	write_file("two", "[extend]\npath = \"./one\"\n");
	expect_number("circle", -EINVAL, read_rules("one", false, &rules));
	expect_text("circle", "E two:2 ./one extends itself\n", remarks);
	rules_free(&rules);
	for (int i = 0; i < 12; i++) {
		char name[16];
		char text[64];

		snprintf(name, sizeof(name), "link%d", i);
		snprintf(text, sizeof(text), "[extend]\npath = \"link%d\"\n", i + 1);
		write_file(name, text);
	}
	expect_number("chain", -EINVAL, read_rules("link0", false, &rules));
	expect_text("chain", "E link8:2 files extend one another more than 8 deep\n", remarks);
	rules_free(&rules);
}

int main(void)
{
	if (!toml_is_known()) {
		printf("built without TOML\n");
		return EXPECT_SKIPPED;
	}
	scratch_enter("toml_rules");
	check_fields();
	check_unsupported();
	check_mistakes();
	check_extends();
	check_chains();
	scratch_leave();
	return expect_status();
}
