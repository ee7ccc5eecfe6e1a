/* SPDX-License-Identifier: MIT */
/*
 * Goal: an expression of a Go program's rules matches here where it matches
 * there, groups included, or differs by a decision that is written down.
 *
 * Method: Go's own results, recorded by tests/fixtures/go_regexp/record.go, are
 * held against PCRE2 with the translated expression over the whole text, and
 * against the engine with windows of one byte each, which shows that Hyperscan
 * finds all that PCRE2 is to decide. Proves BP-27, EX-51.
 */
#include "tests/support/expect.h"
#include "tools/scan/confirm.h"
#include "tools/scan/engine.h"
#include "tools/scan/findings.h"
#include "tools/scan/rule_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINE_BYTES = 1024,
	COLUMNS = 4,
	TEXT_BYTES_MAX = 256,
	ROWS_MIN = 200,
	OFFSETS_MAX = 64,
};

#if !defined(HAVE_PCRE2) || !defined(HAVE_HYPERSCAN)
int main(void)
{
	printf("skipped: built without PCRE2 or Hyperscan\n");
	return 77;
}
#else

struct row {
	char *pattern;
	uint8_t text[TEXT_BYTES_MAX];
	size_t length;
	const char *expected;
	char label[LINE_BYTES];
};

static int hex(char digit)
{
	return digit >= 'a' ? digit - 'a' + 10 : digit - '0';
}

static size_t unescape(const char *from, uint8_t *to)
{
	size_t length = 0;

	for (; *from != '\0'; from++) {
		if (*from != '\\') {
			to[length++] = (uint8_t)*from;
			continue;
		}
		from++;
		if (*from == 'x') {
			to[length++] = (uint8_t)(hex(from[1]) * 16 + hex(from[2]));
			from += 2;
		} else {
			to[length++] = *from == 'n' ? '\n' : *from == 't' ? '\t' : (uint8_t)*from;
		}
	}
	return length;
}

/* Offsets, two for each match and each of its groups. */
struct offsets {
	size_t items[OFFSETS_MAX];
	size_t count;
};

static void add_pair(struct offsets *offsets, size_t start, size_t end)
{
	expect_ready("room for offsets", offsets->count + 2 <= OFFSETS_MAX);
	offsets->items[offsets->count++] = start;
	offsets->items[offsets->count++] = end;
}

/* A group that is not set counts as empty at the start of its match. */
static void parse_results(const char *text, struct offsets *out)
{
	size_t match_start = 0;
	bool is_match = true;

	out->count = 0;
	while (*text != '\0' && *text != '-') {
		size_t start = match_start;
		size_t end = match_start;
		int length = 1;

		if (*text != '?') {
			expect_ready(text, sscanf(text, "%zu-%zu%n", &start, &end, &length) == 2);
		}
		if (is_match) {
			match_start = start;
		}
		add_pair(out, start, end);
		text += length;
		is_match = *text == ' ';
		text += *text != '\0';
	}
}

static void find_all(struct confirm_regex *regex, const struct row *row, struct offsets *out)
{
	struct confirm_room *room = confirm_room_create();
	struct confirm_part part = {row->text, row->length, true, true};
	uint32_t groups = confirm_regex_texts(regex)->group_count;
	struct confirm_match match;
	size_t from = 0;

	expect_ready("room", room != NULL);
	out->count = 0;
	while (confirm_regex_match(regex, room, &part, from, row->length, 0, &match) == 1) {
		add_pair(out, match.start, match.end);
		for (uint32_t group = 1; group <= groups; group++) {
			expect_number(row->label, 1,
				confirm_regex_match(
					regex, room, &part, from, row->length, group, &match));
			add_pair(out, match.secret_start, match.secret_end);
		}
		from = match.end;
	}
	confirm_room_destroy(room);
}

static void expect_offsets(
	const char *label, const struct offsets *expected, const struct offsets *got)
{
	expect_number(label, (long long)expected->count, (long long)got->count);
	for (size_t i = 0; i < expected->count && i < got->count; i++) {
		expect_number(label, (long long)expected->items[i], (long long)got->items[i]);
	}
}

/* ---- by the engine ---- */

static void collect(void *arg, const struct finding *findings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add_pair(arg, (size_t)findings[i].start, (size_t)findings[i].end);
	}
}

static void search_bytewise(struct engine *engine, const struct findings *findings,
	const struct row *row, struct offsets *out)
{
	struct engine_worker *worker;
	struct engine_yield yield = {0};
	struct engine_file engine_file;
	struct findings_file file = {0};

	out->count = 0;
	expect_number("worker", 0, engine_worker_create(engine, &worker));
	expect_number("open", 0, engine_file_open(engine, &engine_file));
	findings_file_init(&file);
	for (size_t i = 0; i < row->length; i++) {
		struct pinion_window window = {
			.bytes = row->text,
			.length_bytes = i + 1,
			.prefix_bytes = i,
			.index = i,
			.is_last = i + 1 == row->length,
		};

		expect_number(row->label, 0, engine_window(worker, &engine_file, &window, &yield));
		expect_number(row->label, 0,
			findings_add(findings, &file, &window, &yield, collect, out));
	}
	expect_number(row->label, 0, findings_finish(findings, &file, collect, out));
	findings_file_fini(&file);
	engine_file_close(worker, &engine_file);
	engine_worker_destroy(worker);
	candidates_free(&yield.found);
	snippets_free(&yield.snippets);
}

/* Of all groups of the offsets only the matches. */
static void drop_groups(struct offsets *offsets, uint32_t groups)
{
	size_t kept = 0;

	for (size_t i = 0; i < offsets->count; i += 2 * ((size_t)groups + 1)) {
		offsets->items[kept++] = offsets->items[i];
		offsets->items[kept++] = offsets->items[i + 1];
	}
	offsets->count = kept;
}

static void check_row(const struct row *row)
{
	struct rules rules = {0};
	struct matcher_trouble trouble = {0};
	struct findings findings;
	struct engine *engine;
	struct confirm_regex *regex;
	struct offsets expected;
	struct offsets got;
	int error;

	expect_number(
		"rule", 0, rules_add(&rules, "rule", row->pattern, strlen(row->pattern), false));
	rules_set_filter(&rules, rule_filter_create(RULE_DIALECT_GO));
	error = matcher_hyperscan.measure(&rules.items[0], &trouble);
	expect_text(row->label, strcmp(row->expected, "refused") == 0 ? "refused" : "",
		error != 0 ? "refused" : "");
	if (error == 0) {
		regex = rules.items[0].filter->pattern;
		parse_results(row->expected, &expected);
		find_all(regex, row, &got);
		expect_offsets(row->label, &expected, &got);
		expect_number(row->label, 0,
			engine_create(&matcher_hyperscan, &rules, &engine, &trouble));
		findings_init(&findings, &rules);
		search_bytewise(engine, &findings, row, &got);
		drop_groups(&expected, confirm_regex_texts(regex)->group_count);
		expect_offsets(row->label, &expected, &got);
		engine_destroy(engine);
	}
	rules_free(&rules);
}

int main(void)
{
	char path[512];
	static char line[LINE_BYTES];
	int row_count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/fixtures/go_regexp/results.tsv",
		getenv("top_srcdir") != NULL ? getenv("top_srcdir") : ".");
	file = fopen(path, "r");
	expect_ready(path, file != NULL);
	while (fgets(line, sizeof(line), file) != NULL) {
		char *columns[COLUMNS] = {NULL};
		static struct row row;

		if (line[0] == '#') {
			continue;
		}
		line[strcspn(line, "\n")] = '\0';
		snprintf(row.label, sizeof(row.label), "%s", line);
		columns[0] = line;
		for (int i = 1; i < COLUMNS && columns[i - 1] != NULL; i++) {
			columns[i] = strchr(columns[i - 1], '\t');
			if (columns[i] != NULL) {
				*columns[i]++ = '\0';
			}
		}
		expect_ready(row.label, columns[2] != NULL);
		row.pattern = columns[0];
		row.length = unescape(columns[1], row.text);
		row.expected = columns[3] != NULL ? columns[3] : columns[2];
		check_row(&row);
		row_count++;
	}
	fclose(file);
	expect_number("rows at least", 1, row_count >= ROWS_MIN);
	return expect_status();
}
#endif
