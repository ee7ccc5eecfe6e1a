/* SPDX-License-Identifier: MIT */
/*
 * Goal: filter expressions are understood as expr-lang.org ranks their
 * operators, unsupported parts are named and decide nothing, and bad
 * expressions are refused at their line (EX-52).
 *
 * Method: each expression and its opposite are evaluated for one finding, with
 * regexec(3) in place of the scanner's own search: one of the two is true, or
 * neither if the value is unknown.
 */
#include "tests/support/expect.h"
#include "tools/scan/expression.h"

#include <errno.h>
#include <regex.h>

static const char line_text[] = "stripe_key = \"sk_live_AbC123\" # note";

static struct rule_subject subject(void)
{
	const uint8_t *line = (const uint8_t *)line_text;

	return (struct rule_subject){
		.rule_id = "stripe-key",
		.path = "src/pay/keys.go",
		.path_bytes = strlen("src/pay/keys.go"),
		.line = line,
		.line_bytes = sizeof(line_text) - 1,
		.match = line + 13,
		.match_bytes = 16,
		.secret = line + 14,
		.secret_bytes = 14,
	};
}

/* 1, 0, or -1 for the expression "broken", which stands for a limit reached. */
static int search(void *arg, struct rule_regexes *regexes, const char *bytes, size_t length,
	size_t *out_start, size_t *out_end)
{
	char *text = strndup(bytes, length);
	int found = 0;

	(void)arg;
	expect_ready("strndup", text != NULL);
	for (uint32_t i = 0; i < regexes->count && found == 0; i++) {
		regmatch_t match;
		regex_t regex;

		if (strcmp(regexes->items[i].pattern, "broken") == 0) {
			found = -1;
			break;
		}
		expect_ready(
			"regcomp", regcomp(&regex, regexes->items[i].pattern, REG_EXTENDED) == 0);
		if (regexec(&regex, text, 1, &match, 0) == 0) {
			found = 1;
			*out_start = (size_t)match.rm_so;
			*out_end = (size_t)match.rm_eo;
		}
		regfree(&regex);
	}
	free(text);
	return found;
}

struct notes {
	int count;
	uint32_t line;
	char last[EXPRESSION_REASON_BYTES];
};

static void note(void *arg, uint32_t line, const char *reason)
{
	struct notes *notes = arg;

	notes->count++;
	notes->line = line;
	snprintf(notes->last, sizeof(notes->last), "%s", reason);
}

static bool is_true(const char *text, struct notes *notes)
{
	struct rule_subject finding = subject();
	struct expression expression = {0};
	struct expression_trouble trouble;
	bool value;

	if (expression_parse(text, strlen(text), note, notes, &expression, &trouble) != 0) {
		printf("%s: refused: %s\n", text, trouble.reason);
		expect_failure_count++;
		return false;
	}
	value = expression_is_true(&expression, &finding, search, NULL);
	expression_free(&expression);
	return value;
}

/* 't', 'f', or '?' for a value that is unknown. */
static void check(const char *text, char expected)
{
	struct notes notes = {0};
	char opposite[600];
	const char *body = text;
	char got = '?';

	/* Bindings stay in front of the negation. */
	if (strncmp(text, "let ", 4) == 0) {
		body = strrchr(text, ';') + 1;
	}
	snprintf(opposite, sizeof(opposite), "%.*s!(%s)", (int)(body - text), text, body);
	if (is_true(text, &notes)) {
		got = 't';
	} else if (is_true(opposite, &notes)) {
		got = 'f';
	}
	if (got != expected) {
		printf("%s: expected %c, got %c\n", text, expected, got);
		expect_failure_count++;
	}
}

static void check_operators(void)
{
	check("true", 't');
	check("false || true", 't');
	check("true and not true", 'f');
	/* `and` before `or`, `!` before comparisons, `+` before `<`. */
	check("true || false && false", 't');
	check("(true || false) && false", 'f');
	check("!false == true", 't');
	check("1 + 2 * 3 == 7", 't');
	check("2 - 1 - 1 == 0", 't');
	check("-1 < 0 && 1.5e1 == 15 && 1_000 >= 1000", 't');
	check("8 / 2 / 2 == 2", 't');
	check("2 > 1 && 1 <= 1 && 1 != 2 && !(2 < 1)", 't');
	check("\"a\" < \"b\" && \"ab\" > \"a\" && 'x' == `x`", 't');
	check("true ? false : true", 'f');
	check("1 == 2 ? 1 > 2 : 2 > 1 ? true : false", 't');
	check("\"abc\" contains \"b\" and \"abc\" startsWith 'a' and \"abc\" endsWith `c`", 't');
	check("\"abc\" not contains \"b\"", 'f');
	check("\"abc\" matches \"^a.c$\"", 't');
	check("\"b\" in [\"a\", \"b\"] && \"c\" not in [\"a\", \"b\",]", 't');
	check("\"a\" in []", 'f');
	check("true == false", 'f');
	check("// a comment\ntrue /* and\nanother */ == true", 't');
	check("\"\\x41\\u00e9\\t\" == \"A\xc3\xa9\t\"", 't');
	check("`\\d` == \"\\\\d\"", 't');
}

static void check_finding(void)
{
	check("finding[\"secret\"] == \"sk_live_AbC123\"", 't');
	check("finding.match == \"\\\"sk_live_AbC123\\\"\"", 't');
	check("finding[\"line\"] endsWith \"# note\"", 't');
	check("finding[\"rule_id\"] == \"stripe-key\"", 't');
	check("attributes[\"path\"] == \"src/pay/keys.go\"", 't');
	check("get(attributes, \"path\", \"\") endsWith \".go\"", 't');
	check("(attributes[\"path\"] ?? \"\") endsWith \".go\"", 't');
	check("attributes?.path endsWith \".go\"", 't');
	/* A file has no commit. */
	check("get(attributes, \"git.sha\", \"none\") == \"none\"", 't');
	check("(attributes[\"git.sha\"] ?? \"none\") == \"none\"", 't');
	check("attributes[\"git.sha\"] == \"abc\"", 'f');
	check("attributes[\"git.sha\"] == nil", 't');
	check("attributes[\"resource\"] == \"fs.content\"", 't');
	/* Of the fragment the lines of the match are known. */
	check("finding[\"fragment_raw\"][finding[\"match_start_idx\"]:finding[\"match_end_idx\"]] "
	      "== finding[\"match\"]",
		't');
	check("let before = finding[\"fragment_raw\"][max(finding[\"match_start_idx\"] - 6, "
	      "finding[\"match_line_start_idx\"]):finding[\"match_start_idx\"]]; before == "
	      "\"key = \"",
		't');
	check("let all = finding[\"fragment_raw\"][finding[\"match_line_start_idx\"]:"
	      "finding[\"match_line_end_idx\"]]; all == finding[\"line\"]",
		't');
	check("finding[\"secret\"][:2] == \"sk\" && finding[\"secret\"][11:] == \"123\"", 't');
	check("finding[\"secret\"][-3:-1] == \"12\" && finding[\"secret\"][9:4] == \"\"", 't');
	check("finding[\"secret\"][5:999] == \"ve_AbC123\"", 't');
}

/* As a list of many words does it. */
static void check_word(const char *word, char expected)
{
	char text[256];

	snprintf(text, sizeof(text),
		"containsAny(finding[\"secret\"], "
		"[\"q1\", \"q2\", \"q3\", \"q4\", \"q5\", \"q6\", \"%s\", \"q7\"])",
		word);
	check(text, expected);
}

static void check_words(void)
{
	static const char *const there[] = {
		"sk", "SK_LIVE", "123", "e_A", "3", "s", "", "sk_live_abc123", "_l", "23", "abc1"};
	/* Their first and last pairs are there; or they are too long. */
	static const char *const absent[] = {
		"sk_123", "liabc", "lily", "sk_live_abc1234", "xsk", "1233", "q8", "z"};

	for (size_t i = 0; i < sizeof(there) / sizeof(there[0]); i++) {
		check_word(there[i], 't');
	}
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		check_word(absent[i], 'f');
	}
}

static void check_functions(void)
{
	check("matchesAny(finding[\"secret\"], [`^x`, `^sk_`])", 't');
	check("filter.matchesAny(finding[\"secret\"], [\"^x\", \"y$\"])", 'f');
	check("matchesAny(finding[\"secret\"], [])", 'f');
	check("containsAny(finding[\"secret\"], [\"abc\"])", 't');
	check("containsAny(finding[\"secret\"], [\"LIVE\", \"zz\"])", 't');
	check("filter.containsAny(finding[\"secret\"], [\"zz\"])", 'f');
	check("filter.findMatch(finding[\"secret\"], `[A-Z].*`) == \"AbC123\"", 't');
	check("findMatch(finding[\"secret\"], `zz`) == \"\"", 't');
	check("entropy(\"aabb\") == 1.0 && entropy(\"\") == 0 && entropy(\"abcd\") <= 2", 't');
	check("len(finding[\"secret\"]) == 14 && len(\"\xc3\xa9\") == 1", 't');
	check("lower(\"AbC\") == \"abc\" && upper(\"AbC\") == \"ABC\" && trim(\" a \") == \"a\"",
		't');
	check("min(1, 2) == 1 && max(1, 2) == 2 && abs(-3) == 3", 't');
	check("let terms = [\"abc\"]; containsAny(finding[\"secret\"], terms)", 't');
	check("let a = \"x\"; let b = a + a; let a = b + b; a == \"xxxx\"", 't');
}

static void check_unknown(void)
{
	static const char text[] = "true\n&& failsTokenEfficiency(finding[\"secret\"])";
	struct notes notes = {0};

	check("failsTokenEfficiency(finding[\"secret\"])", '?');
	check("failsTokenEfficiency(finding[\"secret\"]) || true", 't');
	check("failsTokenEfficiency(finding[\"secret\"]) && false", 'f');
	check("true && (true && failsTokenEfficiency(\"\"))", '?');
	check("http.get(\"x\", \"y\") == 5", '?');
	check("finding[\"context\"] == \"\" || false", '?');
	check("whatever || false", '?');
	check("matchesAny(\"a\", [\"broken\"])", '?');
	check("true ? failsTokenEfficiency(\"\") : true", '?');
	/* A text that grows beyond what an evaluation may take. */
	check("let a = \"0123456789abcdef\"; let b = a+a+a+a+a+a+a+a; let c = b+b+b+b+b+b+b+b; "
	      "let d = c+c+c+c+c+c+c+c; let e = d+d+d+d+d+d+d+d; len(e) == 65536",
		'?');
	is_true(text, &notes);
	expect_number("notes", 1, notes.count);
	expect_number("its line", 1, notes.line);
	expect_text(
		"note", "failsTokenEfficiency() is not supported, and drops nothing", notes.last);
}

/* Refused, at that line and for a reason with those words. */
static void refuse(const char *text, uint32_t line, const char *words)
{
	struct expression expression = {0};
	struct expression_trouble trouble = {0};
	int error = expression_parse(text, strlen(text), NULL, NULL, &expression, &trouble);

	if (!expect_number(text, -EINVAL, error)) {
		expression_free(&expression);
		return;
	}
	expect_number(text, line, trouble.line);
	if (strstr(trouble.reason, words) == NULL) {
		printf("%.60s: expected a reason with \"%s\", got \"%s\"\n", text, words,
			trouble.reason);
		expect_failure_count++;
	}
}

static void check_refusals(void)
{
	refuse("", 0, "a value is missing at its end");
	refuse("true ||\n\n", 2, "a value is missing at its end");
	refuse("true\n|| )", 1, "a value is missing");
	refuse("(true", 0, "')' is missing");
	refuse("true true", 0, "does not end");
	refuse("1", 0, "no condition");
	refuse("\"a\" == 1", 0, "unlike");
	refuse("1 && true", 0, "need conditions");
	refuse("!\"a\"", 0, "needs a condition");
	refuse("\"a\" + 1 == 2", 0, "other than numbers");
	refuse("\"a", 0, "has no end");
	refuse("\"\\q\" == \"q\"", 0, "escape");
	refuse("true # false", 0, "not understood");
	refuse("12x == 1", 0, "number is not understood");
	refuse("\"a\" in [1]", 0, "no text");
	refuse("\"a\" in \"b\"", 0, "a list of texts");
	refuse("matchesAny(\"a\")", 0, "other values");
	refuse("matchesAny(\"a\", \"b\")", 0, "other values");
	refuse("finding == \"x\"", 0, "a key is missing");
	refuse("true not false", 0, "not followed");
	refuse("let = 1; true", 0, "needs a name");
	refuse("let a 1; true", 0, "'=' is missing");
	refuse("true ? 1 : true", 0, "one type");
	refuse("get(5, \"path\", \"\") == \"\"", 0, "finding or attributes");
	refuse("{\"a\": 1}", 0, "a value is missing");
}

/* Texts that are long, deep or many. */
static void check_bounds(void)
{
	enum { LENGTH = 300000 };
	struct rule_subject finding = subject();
	struct expression expression = {0};
	struct expression_trouble trouble;
	char *text = malloc(LENGTH + 1);
	size_t length = 0;

	expect_ready("malloc", text != NULL);
	memset(text, '(', LENGTH);
	text[LENGTH] = '\0';
	refuse(text, 0, "longer than");
	text[200000] = '\0';
	refuse(text, 0, "nested too deep");
	memset(text, '!', 200000);
	refuse(text, 0, "nested too deep");
	for (length = 0; length + 2 < 200000; length += 2) {
		memcpy(text + length, "1+", 2);
	}
	text[length] = '\0';
	refuse(text, 0, "nested too deep");
	for (length = 0; length + 6 < 200000; length += 6) {
		memcpy(text + length, "true||", 6);
	}
	text[length] = '\0';
	refuse(text, 0, "too many parts");
	/* A long chain of one operator is not deep. */
	for (length = 0; length + 7 < 35000; length += 7) {
		memcpy(text + length, "false||", 7);
	}
	memcpy(text + length, "true", 5);
	expect_number("a chain", 0,
		expression_parse(text, strlen(text), NULL, NULL, &expression, &trouble));
	expect_true("a chain", expression_is_true(&expression, &finding, search, NULL));
	expression_free(&expression);
	free(text);
}

int main(void)
{
	check_operators();
	check_finding();
	check_functions();
	check_words();
	check_unknown();
	check_refusals();
	check_bounds();
	return expect_status();
}
