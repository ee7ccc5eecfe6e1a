/* SPDX-License-Identifier: MIT */
/*
 * Lines become rules; rules are asked from the last to the first.
 *
 * Source: gitignore(5), and of what it leaves open git's own answers: a byte
 * order mark in front is skipped, a carriage return at the end of a line is
 * none of it, only spaces are cut from its end, a line that is only `!` or
 * slashes is about nothing.
 */
#include "runtime/scan/gitignore.h"

#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/gitignore_glob.h"

#include <errno.h>
#include <string.h>

enum {
	ITEMS_FIRST = 32,
};

enum rule_kind {
	RULE_NAME,	/* the last part of a path, as it is */
	RULE_SUFFIX,	/* what it ends with; the star is not part of the pattern */
	RULE_NAME_GLOB, /* that part, with wildcards */
	RULE_PATH,	/* the path as it is */
	RULE_PATH_GLOB,
};

struct pin_ignore_rule {
	uint32_t start; /* of the pattern, in `text` */
	uint16_t bytes;
	uint8_t kind; /* enum rule_kind */
	bool is_negated;
	bool is_about_directories; /* and nothing else */
};

_Static_assert(PIN_IGNORE_LINE_BYTES_MAX <= UINT16_MAX, "a pattern's length fits");

/* A line, or what is left of it, between two places of the text. */
struct line {
	const char *start;
	const char *end;
};

static void line_trim_spaces(struct line *line)
{
	const char *end = line->start;

	for (const char *at = line->start; at < line->end; at++) {
		if (*at == '\\' && at + 1 < line->end) {
			at++;
			end = at + 1;
		} else if (*at != ' ') {
			end = at + 1;
		}
	}
	line->end = end;
}

static bool has_wildcard(const char *start, const char *end)
{
	for (const char *at = start; at < end; at++) {
		if (*at == '*' || *at == '?' || *at == '[' || *at == '\\') {
			return true;
		}
	}
	return false;
}

/* Sorts out a pattern without its `!` and last slash; may cut its start. */
static enum rule_kind line_kind(struct line *line)
{
	if (memchr(line->start, '/', (size_t)(line->end - line->start)) != NULL) {
		line->start += *line->start == '/';
		return has_wildcard(line->start, line->end) ? RULE_PATH_GLOB : RULE_PATH;
	}
	if (!has_wildcard(line->start, line->end)) {
		return RULE_NAME;
	}
	if (*line->start == '*' && !has_wildcard(line->start + 1, line->end)) {
		line->start++;
		return RULE_SUFFIX;
	}
	return RULE_NAME_GLOB;
}

/* False: no memory. */
static bool rules_append(struct pin_ignore_rules *rules, const struct pin_ignore_rule *rule)
{
	if (rules->count == rules->capacity) {
		size_t capacity = rules->capacity == 0 ? ITEMS_FIRST : 2 * rules->capacity;
		size_t bytes = rules->capacity * sizeof(*rules->items);
		struct pin_ignore_rule *grown = pin_heap_resize(
			rules->host, rules->items, bytes, bytes, capacity * sizeof(*grown));

		if (grown == NULL) {
			return false;
		}
		rules->items = grown;
		rules->capacity = capacity;
	}
	rules->items[rules->count++] = *rule;
	return true;
}

static int add_line(struct pin_ignore_rules *rules, struct line line)
{
	struct pin_ignore_rule rule = {.start = 0};

	if (line.end - line.start > PIN_IGNORE_LINE_BYTES_MAX) {
		return -EFBIG;
	}
	if (line.start == line.end || *line.start == '#') {
		return 0;
	}
	line_trim_spaces(&line);
	if (line.start < line.end && *line.start == '!') {
		rule.is_negated = true;
		line.start++;
	}
	if (line.start < line.end && line.end[-1] == '/') {
		rule.is_about_directories = true;
		line.end--;
	}
	if (line.start == line.end) {
		return 0;
	}
	rule.kind = (uint8_t)line_kind(&line);
	rule.start = (uint32_t)(line.start - rules->text);
	rule.bytes = (uint16_t)(line.end - line.start);
	/* A slash alone is about the directory itself, `*` about all names. */
	if (rule.bytes == 0 && rule.kind != RULE_SUFFIX) {
		return 0;
	}
	return rules_append(rules, &rule) ? 0 : -ENOMEM;
}

static bool resize_text(struct pin_ignore_rules *rules, size_t capacity)
{
	char *resized = pin_heap_resize(
		rules->host, rules->text, rules->text_capacity, rules->text_bytes, capacity);

	if (resized == NULL) {
		return false;
	}
	rules->text = resized;
	rules->text_capacity = capacity;
	return true;
}

char *pin_ignore_rules_reserve(struct pin_ignore_rules *rules, size_t bytes)
{
	return resize_text(rules, rules->text_bytes + bytes + 1) ? rules->text + rules->text_bytes
								 : NULL;
}

int pin_ignore_rules_add(struct pin_ignore_rules *rules, size_t bytes)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t count_before = rules->count;
	const char *at = rules->text + rules->text_bytes;
	const char *end = at + bytes;
	int rc = memchr(at, '\0', bytes) != NULL ? -EILSEQ : 0;

	if (bytes >= sizeof(mark) - 1 && memcmp(at, mark, sizeof(mark) - 1) == 0) {
		at += sizeof(mark) - 1;
	}
	while (rc == 0 && at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct line line = {at, newline != NULL ? newline : end};

		at = newline != NULL ? newline + 1 : end;
		if (line.end > line.start && line.end[-1] == '\r') {
			line.end--;
		}
		rc = add_line(rules, line);
	}
	if (rc != 0) {
		rules->count = count_before;
		return rc;
	}
	rules->text_bytes += bytes;
	return 0;
}

static bool rule_matches(
	const char *pattern, const struct pin_ignore_rule *rule, const struct pin_ignore_path *path)
{
	size_t name_bytes = path->name_bytes;
	const char *name = path->bytes + path->path_bytes - name_bytes;

	switch ((enum rule_kind)rule->kind) {
	case RULE_NAME:
		return rule->bytes == name_bytes && memcmp(pattern, name, name_bytes) == 0;
	case RULE_SUFFIX:
		return rule->bytes <= name_bytes &&
			memcmp(pattern, name + name_bytes - rule->bytes, rule->bytes) == 0;
	case RULE_NAME_GLOB:
		return pin_glob_matches(pattern, rule->bytes, name, name_bytes);
	case RULE_PATH:
		return rule->bytes == path->path_bytes &&
			memcmp(pattern, path->bytes, path->path_bytes) == 0;
	case RULE_PATH_GLOB:
		return pin_glob_matches(pattern, rule->bytes, path->bytes, path->path_bytes);
	}
	return false;
}

enum pin_ignore_verdict pin_ignore_rules_decide(
	const struct pin_ignore_rules *rules, const struct pin_ignore_path *path)
{
	PIN_DCHECK(path->name_bytes > 0 && path->name_bytes <= path->path_bytes);
	for (size_t i = rules->count; i > 0; i--) {
		const struct pin_ignore_rule *rule = &rules->items[i - 1];

		if ((path->is_directory || !rule->is_about_directories) &&
			rule_matches(rules->text + rule->start, rule, path)) {
			return rule->is_negated ? PIN_IGNORE_SHOWS : PIN_IGNORE_HIDES;
		}
	}
	return PIN_IGNORE_SILENT;
}

void pin_ignore_rules_trim(struct pin_ignore_rules *rules)
{
	if (rules->text_bytes == 0) {
		pin_ignore_rules_fini(rules);
	} else if (rules->text_bytes < rules->text_capacity) {
		/* What cannot be had in a smaller size is kept as it is. */
		(void)resize_text(rules, rules->text_bytes);
	}
}

void pin_ignore_rules_fini(struct pin_ignore_rules *rules)
{
	pin_heap_release(rules->host, rules->text, PIN_HEAP_ALIGN, rules->text_capacity, 1);
	pin_heap_release(rules->host, rules->items, PIN_HEAP_ALIGN,
		rules->capacity * sizeof(*rules->items), 1);
	*rules = (struct pin_ignore_rules){.host = rules->host};
}
