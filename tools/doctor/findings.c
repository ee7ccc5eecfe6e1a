/* SPDX-License-Identifier: MIT */
/*
 * Facts and problems in two forms.
 */
#include "tools/doctor/findings.h"

#include "tools/output.h"

#include <string.h>

enum {
	NAME_COLUMNS = 12,
	LINE_COLUMNS = 80,
};

static const char *verdict_name(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_READY:
		return "ready";
	case VERDICT_DEGRADED:
		return "degraded";
	case VERDICT_UNUSABLE:
		break;
	}
	return "unusable";
}

static void append_json(struct output_text *text, const char *string)
{
	output_text_json(text, string, strlen(string));
}

/* Without `text` being freed: the next subject has use for its memory. */
static void append_problems(struct findings *findings)
{
	output_text_append(&findings->text, findings->problems.bytes, findings->problems.length);
	findings->text.failed |= findings->problems.failed;
	findings->problems.length = 0;
}

static void end_subject(struct findings *findings)
{
	if (findings->subject_count == 0) {
		return;
	}
	if (findings->is_json) {
		output_text_string(&findings->text,
			findings->fact_count > 0 ? ",\"problems\":[" : "\"problems\":[");
		append_problems(findings);
		output_text_string(&findings->text, "]}");
	} else {
		output_text_string(&findings->text, "\n");
		append_problems(findings);
	}
}

static void begin_subject(struct findings *findings)
{
	end_subject(findings);
	if (findings->is_json) {
		output_text_string(&findings->text, findings->subject_count == 0 ? "{" : ",");
	}
	findings->subject_count++;
	findings->fact_count = 0;
}

void findings_subject(struct findings *findings, const char *name)
{
	begin_subject(findings);
	if (findings->is_json) {
		append_json(&findings->text, name);
		output_text_string(&findings->text, ":{");
		return;
	}
	output_text_format(&findings->text, "%-*s", NAME_COLUMNS, name);
	findings->column = NAME_COLUMNS;
}

void findings_path(struct findings *findings, const char *path)
{
	begin_subject(findings);
	if (findings->is_json) {
		output_text_string(&findings->text,
			findings->is_in_paths ? "{\"path\":" : "\"paths\":[{\"path\":");
	}
	append_json(&findings->text, path);
	findings->is_in_paths = true;
	findings->fact_count = 1;
	/* Long enough that the next words begin a line. */
	findings->column = LINE_COLUMNS;
}

/* A word of that length fits the line, or begins the next. */
static void begin_word(struct findings *findings, size_t length)
{
	if (findings->column + 1 + length > LINE_COLUMNS) {
		output_text_format(&findings->text, "\n%*s", NAME_COLUMNS, "");
		findings->column = NAME_COLUMNS + length;
	} else {
		output_text_string(&findings->text, " ");
		findings->column += 1 + length;
	}
}

/* The name of a fact, and where its value begins: on a new line if need be. */
static void begin_fact(struct findings *findings, const char *name, size_t value_length)
{
	size_t length = strlen(name) + strlen(" ,") + value_length;
	bool is_first = findings->fact_count++ == 0;

	if (findings->is_json) {
		if (!is_first) {
			output_text_string(&findings->text, ",");
		}
		append_json(&findings->text, name);
		output_text_string(&findings->text, ":");
		return;
	}
	if (!is_first && findings->column < LINE_COLUMNS) {
		output_text_string(&findings->text, ",");
	}
	if (is_first) {
		findings->column += length;
	} else {
		begin_word(findings, length);
	}
	output_text_format(&findings->text, "%s ", name);
}

void findings_text(struct findings *findings, const char *name, const char *value)
{
	begin_fact(findings, name, strlen(value));
	if (findings->is_json) {
		append_json(&findings->text, value);
	} else {
		output_text_escaped(&findings->text, value, strlen(value), false);
	}
}

void findings_number(struct findings *findings, const char *name, uint64_t value)
{
	begin_fact(findings, name, strlen("00000"));
	output_text_decimal(&findings->text, value);
}

void findings_flag(struct findings *findings, const char *name, bool value)
{
	const char *words[] = {"no", "yes", "false", "true"};
	const char *word = words[(findings->is_json ? 2 : 0) + (value ? 1 : 0)];

	begin_fact(findings, name, strlen(word));
	output_text_string(&findings->text, word);
}

void findings_limit(struct findings *findings, const char *name, uint64_t value)
{
	if (value != UINT64_MAX) {
		findings_number(findings, name, value);
		return;
	}
	begin_fact(findings, name, strlen("none"));
	output_text_string(&findings->text, findings->is_json ? "null" : "none");
}

void findings_words(struct findings *findings, const char *name, const char *words)
{
	size_t length = strcspn(words, " ");

	if (words[0] == '\0' && !findings->is_json) {
		findings_text(findings, name, "none");
		return;
	}
	begin_fact(findings, name, length);
	output_text_string(&findings->text, findings->is_json ? "[" : "");
	for (const char *at = words; *at != '\0'; at += length + strspn(at + length, " ")) {
		length = strcspn(at, " ");
		if (findings->is_json) {
			output_text_string(&findings->text, at == words ? "" : ",");
			output_text_json(&findings->text, at, length);
			continue;
		}
		if (at != words) {
			begin_word(findings, length);
		}
		output_text_escaped(&findings->text, at, length, false);
	}
	output_text_string(&findings->text, findings->is_json ? "]" : "");
}

void findings_problem(
	struct findings *findings, enum verdict verdict, const char *what, const char *mend)
{
	struct output_text *text = &findings->problems;

	if (verdict > findings->verdict) {
		findings->verdict = verdict;
	}
	if (!findings->is_json) {
		output_text_format(text, "%*s! ", NAME_COLUMNS, "");
		output_text_escaped(text, what, strlen(what), false);
		output_text_format(text, "\n%*s  mend: ", NAME_COLUMNS, "");
		output_text_escaped(text, mend, strlen(mend), false);
		output_text_string(text, "\n");
		return;
	}
	output_text_string(text, text->length > 0 ? ",{\"verdict\":" : "{\"verdict\":");
	append_json(text, verdict_name(verdict));
	output_text_string(text, ",\"what\":");
	append_json(text, what);
	output_text_string(text, ",\"mend\":");
	append_json(text, mend);
	output_text_string(text, "}");
}

static void conclude(struct findings *findings)
{
	const char *name = verdict_name(findings->verdict);

	if (findings->is_json) {
		output_text_format(&findings->text, "%s,\"verdict\":\"%s\",\"exit_status\":%d}\n",
			findings->is_in_paths ? "]" : "", name, (int)findings->verdict);
		return;
	}
	switch (findings->verdict) {
	case VERDICT_READY:
		break;
	case VERDICT_DEGRADED:
		output_text_format(
			&findings->text, "%s: everything works, slower than it could\n", name);
		return;
	case VERDICT_UNUSABLE:
		output_text_format(
			&findings->text, "%s: not everything asked for can be read\n", name);
		return;
	}
	output_text_format(&findings->text, "%s\n", name);
}

bool findings_print(struct findings *findings)
{
	end_subject(findings);
	conclude(findings);
	output_text_free(&findings->problems);
	return output_print(&findings->text);
}
