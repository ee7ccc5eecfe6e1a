/* SPDX-License-Identifier: MIT */
/*
 * Lines become rules; rules are asked from the last to the first.
 *
 * Source: gitignore(5), and of what it leaves open git's own answers: a byte
 * order mark in front is skipped, a carriage return at the end of a line is
 * none of it, only spaces are cut from its end, a line that is only `!` or
 * slashes is about nothing.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/scan/ignore.h"

#include <errno.h>
#include <stdint.h>
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

/* A line, or the rest of it, between two places of the text. */
struct line {
	const char *start;
	const char *end;
};

static void line_trim_spaces(struct line *line)
{
	const char *end = line->start;

	PIN_DCHECK(line->start <= line->end);
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
	PIN_DCHECK(line->start < line->end);
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
	PIN_DCHECK(rules->count <= rules->capacity);
	PIN_DCHECK((size_t)rule->start + rule->bytes <= rules->text_capacity);
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

/*
 * One line of gitignore(5) to one rule, or to none for comments and empty
 * lines.
 */
static int add_line(struct pin_ignore_rules *rules, struct line line)
{
	struct pin_ignore_rule rule = {.start = 0};

	PIN_DCHECK(line.start >= rules->text && line.end < rules->text + rules->text_capacity);
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
	PIN_CHECK(line.start - rules->text <= UINT32_MAX);
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
	char *resized;

	PIN_CHECK(capacity >= rules->text_bytes && capacity > 0);
	resized = pin_heap_resize(
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
	PIN_DCHECK(bytes < UINT32_MAX - rules->text_bytes);
	return resize_text(rules, rules->text_bytes + bytes + 1) ? rules->text + rules->text_bytes
								 : NULL;
}

/*
 * A file with an impossible line adds no rule at all: half of its rules could
 * show what the other half hides.
 */
int pin_ignore_rules_add(struct pin_ignore_rules *rules, size_t bytes)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t count_before = rules->count;
	const char *at = rules->text + rules->text_bytes;
	const char *end = at + bytes;
	int rc = memchr(at, '\0', bytes) != NULL ? -EILSEQ : 0;

	/* The reserved bytes, and one more. */
	PIN_CHECK(bytes < rules->text_capacity - rules->text_bytes);
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

/* Most rules are plain names or suffixes, which need no pattern matching. */
static bool rule_matches(
	const char *pattern, const struct pin_ignore_rule *rule, const struct pin_ignore_path *path)
{
	size_t name_bytes = path->name_bytes;
	const char *name = path->bytes + path->path_bytes - name_bytes;

	PIN_DCHECK(rule->kind <= RULE_PATH_GLOB);
	PIN_DCHECK(rule->bytes > 0 || rule->kind == RULE_SUFFIX);
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
	PIN_DCHECK(path->bytes[0] != '/' && path->bytes[path->path_bytes - 1] != '/');
	for (size_t i = rules->count; i > 0; i--) {
		const struct pin_ignore_rule *rule = &rules->items[i - 1];

		PIN_DCHECK(rule->start + rule->bytes <= rules->text_bytes);
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
		/* Text that cannot be made smaller is kept as it is. */
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

/* ---- globs ---- */

/*
 * One pass over pattern and path, with two places to go back to.
 */

/* Where matching goes on when it has failed later. */
struct retry {
	size_t pattern; /* after the stars */
	size_t path;
	bool is_set;
};

struct glob {
	const char *pattern;
	size_t pattern_bytes;
	const char *path;
	size_t path_bytes;
	size_t at_pattern;
	size_t at_path;
	struct retry star; /* within the name that is being matched */
	struct retry directories;
};

/* ---- brackets ---- */

/* Pairs of bytes, each a range; NULL: there is no such class. */
static const char *class_ranges(const char *name, size_t name_bytes)
{
	static const char *const classes[][2] = {
		{"alnum", "09AZaz"},
		{"alpha", "AZaz"},
		{"blank", "\t\t  "},
		{"cntrl", "\x01\x1f\x7f\x7f"},
		{"digit", "09"},
		{"graph", "!~"},
		{"lower", "az"},
		{"print", " ~"},
		{"punct", "!/:@[`{~"},
		{"space", "\t\r  "},
		{"upper", "AZ"},
		{"xdigit", "09AFaf"},
	};

	for (size_t i = 0; i < PIN_ARRAY_COUNT(classes); i++) {
		if (strlen(classes[i][0]) == name_bytes &&
			memcmp(classes[i][0], name, name_bytes) == 0) {
			return classes[i][1];
		}
	}
	return NULL;
}

/* The text between brackets, element by element. */
struct set {
	const char *at;
	const char *end;  /* of the pattern */
	uint8_t previous; /* what a range may begin with, 0: nothing */
	bool has_byte;
};

/* The end of the class at hand, which begins with `[:`; NULL: it is none. */
static const char *class_end(const struct set *set)
{
	const char *name = set->at + 2;
	const char *close = NULL;

	if (set->end - set->at > 2 && set->at[0] == '[' && set->at[1] == ':') {
		close = memchr(name, ']', (size_t)(set->end - name));
	}
	return close != NULL && close > name && close[-1] == ':' ? close : NULL;
}

/* False: no class has that name. */
static bool set_take_class(struct set *set, const char *close, uint8_t byte)
{
	const char *name = set->at + 2;
	const char *ranges = class_ranges(name, (size_t)(close - name) - 1);

	PIN_DCHECK(close > name && close < set->end);
	PIN_DCHECK(ranges == NULL || strlen(ranges) % 2 == 0); /* each has two ends */
	for (const char *range = ranges; range != NULL && *range != '\0'; range += 2) {
		set->has_byte |= byte >= (uint8_t)range[0] && byte <= (uint8_t)range[1];
	}
	set->at = close + 1;
	set->previous = 0;
	return ranges != NULL;
}

/* The current byte, or the escaped one. False: the pattern ends. */
static bool set_take_byte(struct set *set, uint8_t *out_byte)
{
	PIN_DCHECK(set->at < set->end);
	if (*set->at == '\\') {
		set->at++;
	}
	if (set->at == set->end) {
		return false;
	}
	*out_byte = (uint8_t)*set->at++;
	return true;
}

/* One element. False: it is malformed. */
static bool set_take(struct set *set, uint8_t byte)
{
	const char *close = class_end(set);
	uint8_t taken;

	if (close != NULL) {
		return set_take_class(set, close, byte);
	}
	if (set->end - set->at > 1 && set->at[0] == '-' && set->previous != 0 &&
		set->at[1] != ']') {
		set->at++;
		if (!set_take_byte(set, &taken)) {
			return false;
		}
		set->has_byte |= byte >= set->previous && byte <= taken;
		set->previous = 0;
		return true;
	}
	if (!set_take_byte(set, &taken)) {
		return false;
	}
	set->has_byte |= taken == byte;
	set->previous = taken;
	return true;
}

/* Whether the current brackets have the byte; then goes on after them. */
static bool match_set(struct glob *glob, uint8_t byte)
{
	struct set set = {
		.at = glob->pattern + glob->at_pattern + 1,
		.end = glob->pattern + glob->pattern_bytes,
	};
	bool is_negated = set.at < set.end && (*set.at == '!' || *set.at == '^');
	const char *first;

	set.at += is_negated;
	first = set.at;
	PIN_DCHECK(glob->pattern[glob->at_pattern] == '[' && first <= set.end);
	while (set.at < set.end && (*set.at != ']' || set.at == first)) {
		if (!set_take(&set, byte)) {
			return false;
		}
	}
	if (set.at >= set.end || set.has_byte == is_negated || byte == '/') {
		return false;
	}
	glob->at_pattern = (size_t)(set.at - glob->pattern) + 1;
	PIN_DCHECK(glob->at_pattern <= glob->pattern_bytes);
	return true;
}

/* ---- the rest ---- */

/* 1 for a slash at this place of the pattern, 2 for one escaped, else 0. */
static size_t slash_bytes(const struct glob *glob, size_t at)
{
	if (at < glob->pattern_bytes && glob->pattern[at] == '/') {
		return 1;
	}
	return at + 1 < glob->pattern_bytes && glob->pattern[at] == '\\' &&
			glob->pattern[at + 1] == '/'
		? 2
		: 0;
}

/* The next name of the path that `directories` may end at; false: none. */
static bool skip_directory(struct glob *glob)
{
	size_t from = glob->directories.path;
	const char *slash = memchr(glob->path + from, '/', glob->path_bytes - from);

	PIN_DCHECK(glob->directories.is_set && from <= glob->path_bytes);
	if (slash == NULL) {
		return false;
	}
	glob->directories.path = (size_t)(slash - glob->path) + 1;
	glob->at_path = glob->directories.path;
	glob->at_pattern = glob->directories.pattern;
	glob->star.is_set = false;
	return true;
}

/*
 * Whether two stars here may match directories: at the start of the pattern or
 * of one of its names, and after bytes of which none is special.
 */
static bool may_cross(const struct glob *glob, size_t start)
{
	PIN_DCHECK(start < glob->pattern_bytes && glob->pattern[start] == '*');
	if (start == 0 || glob->pattern[start - 1] == '/') {
		return true;
	}
	for (size_t i = 0; i < start; i++) {
		if (memchr("*?[\\", glob->pattern[i], 4) != NULL) {
			return false;
		}
	}
	return true;
}

enum outcome {
	OUTCOME_OPEN,
	OUTCOME_MATCH,
	OUTCOME_FAILURE,
};

/*
 * A run of stars: `*` stays within a name, `**` between slashes crosses
 * directories.
 */
static enum outcome match_stars(struct glob *glob)
{
	size_t start = glob->at_pattern;
	size_t end = start;
	size_t slash;

	while (end < glob->pattern_bytes && glob->pattern[end] == '*') {
		end++;
	}
	PIN_DCHECK(end > start);
	slash = slash_bytes(glob, end);
	glob->at_pattern = end;
	if (end - start < 2 || (slash == 0 && end < glob->pattern_bytes) ||
		!may_cross(glob, start)) {
		glob->star = (struct retry){end, glob->at_path, true};
		return OUTCOME_OPEN;
	}
	if (slash == 0) {
		return OUTCOME_MATCH;
	}
	glob->at_pattern += slash;
	glob->directories = (struct retry){glob->at_pattern, glob->at_path, true};
	glob->star.is_set = false;
	/* As git has it, an escaped slash takes a directory at least. */
	return slash == 2 && !skip_directory(glob) ? OUTCOME_FAILURE : OUTCOME_OPEN;
}

/* Anything but stars against the current byte; goes on after both. */
static bool match_byte(struct glob *glob)
{
	uint8_t byte = (uint8_t)glob->path[glob->at_path];
	const char *pattern = glob->pattern + glob->at_pattern;
	size_t left = glob->pattern_bytes - glob->at_pattern;

	PIN_DCHECK(left > 0 && glob->at_path < glob->path_bytes);
	switch (*pattern) {
	case '?':
		if (byte == '/') {
			return false;
		}
		glob->at_pattern++;
		break;
	case '[':
		if (!match_set(glob, byte)) {
			return false;
		}
		break;
	case '\\':
		if (left < 2 || (uint8_t)pattern[1] != byte) {
			return false;
		}
		glob->at_pattern += 2;
		break;
	default:
		if ((uint8_t)*pattern != byte) {
			return false;
		}
		glob->at_pattern++;
		break;
	}
	glob->at_path++;
	if (byte == '/') {
		glob->star.is_set = false;
	}
	return true;
}

/* Back to the last place where something else can be tried; false: none. */
static bool go_back(struct glob *glob)
{
	struct retry *star = &glob->star;

	if (star->is_set && star->path < glob->path_bytes && glob->path[star->path] != '/') {
		PIN_DCHECK(star->pattern > 0 && glob->pattern[star->pattern - 1] == '*');
		star->path++;
		glob->at_path = star->path;
		glob->at_pattern = star->pattern;
		return true;
	}
	return glob->directories.is_set && skip_directory(glob);
}

/*
 * One pass with two places to return to, the last `*` and the last `**`: a
 * failed try never returns further, so its steps are bounded.
 */
bool pin_glob_matches(
	const char *pattern, size_t pattern_bytes, const char *path, size_t path_bytes)
{
	struct glob glob = {
		.pattern = pattern,
		.pattern_bytes = pattern_bytes,
		.path = path,
		.path_bytes = path_bytes,
	};

	for (;;) {
		bool is_at_end = glob.at_pattern == pattern_bytes;

		PIN_DCHECK(glob.at_pattern <= pattern_bytes && glob.at_path <= path_bytes);
		if (is_at_end && glob.at_path == path_bytes) {
			return true;
		}
		if (!is_at_end && pattern[glob.at_pattern] == '*') {
			enum outcome outcome = match_stars(&glob);

			if (outcome != OUTCOME_OPEN) {
				return outcome == OUTCOME_MATCH;
			}
			continue;
		}
		if (!is_at_end && glob.at_path < path_bytes && match_byte(&glob)) {
			continue;
		}
		if (!go_back(&glob)) {
			return false;
		}
	}
}
