/* SPDX-License-Identifier: MIT */
/*
 * Patterns and the zero byte; zeros.h has the argument.
 */
#include "tools/scan/zeros.h"

#include <stdlib.h>
#include <string.h>

/* ---- no match holds a zero ---- */

/* The part of a group's start after its parenthesis. */
static bool is_plain_group(const char *text)
{
	return text[0] != '?' || text[1] == ':' || (text[1] == 'i' && text[2] == ')');
}

/* Escapes that stand for no zero, or for no byte at all. */
static const char nonzero_escapes[] = "dwsbBnrt.\\/-+*?()[]{}|^$";

/*
 * As far as that is obvious: the text has none of the tokens that may match a
 * zero (a dot, [^…], \x00, \W and others).
 */
static bool avoids_zeros(const char *text, const char *end)
{
	for (; text < end; text++) {
		if (*text == '.' || (*text == '(' && !is_plain_group(text + 1)) ||
			(*text == '[' && (text[1] == '^' || text[1] == ':'))) {
			return false;
		}
		if (*text == '\\') {
			text++;
			if (*text == '\0' || strchr(nonzero_escapes, *text) == NULL) {
				return false;
			}
		}
	}
	return true;
}

static bool rule_avoids_zeros(const struct rule *rule)
{
	if (memchr(rule->pattern, '\0', rule->pattern_bytes) != NULL) {
		return false;
	}
	return rule->is_literal || avoids_zeros(rule->pattern, rule->pattern + rule->pattern_bytes);
}

bool zeros_end_matches(const struct rules *rules)
{
	for (uint32_t i = 0; i < rules->count; i++) {
		const struct rule *rule = &rules->items[i];

		if (rule->max_width == RULE_WIDTH_UNBOUNDED && !rule_avoids_zeros(rule)) {
			return false;
		}
	}
	return true;
}

/* ---- states ---- */

enum {
	/* Of unrolled patterns; a hole must be some times as long. */
	STATES_MAX = 1 << 19,
	/* Bytes beside a match that decide about it, and some to spare. */
	CONTEXT_BYTES = 8,
	DEPTH_MAX = 64,
};

/* A pattern while its states are counted. */
struct counting {
	const char *next;
	uint32_t depth;
	bool is_unknown; /* something is not understood, or there are too many */
};

enum atom_kind {
	ATOM_CLASS,  /* one byte, whichever */
	ATOM_GROUP,  /* in parentheses */
	ATOM_BORDER, /* no byte: `^`, `\b`, flags */
};

struct atom {
	enum atom_kind kind;
	bool avoids_zeros; /* of a group: no class in it has the zero byte */
	uint64_t states;
};

static uint64_t count_alternatives(struct counting *counting);

static void give_up(struct counting *counting)
{
	counting->is_unknown = true;
}

/* After `[`. */
static void skip_class(struct counting *counting)
{
	const char *next = counting->next;

	next += *next == '^';
	next += *next == ']'; /* in the first place it is one of the bytes */
	while (*next != '\0' && *next != ']') {
		/* [:alpha:] and its like, and \Q, are seldom. */
		if ((*next == '[' && next[1] != '\0' && strchr(":.=", next[1]) != NULL) ||
			(*next == '\\' && (next[1] == '\0' || next[1] == 'Q'))) {
			give_up(counting);
			return;
		}
		next += *next == '\\' ? 2 : 1;
	}
	if (*next == '\0') {
		give_up(counting);
		return;
	}
	counting->next = next + 1;
}

/* After a backslash. */
static enum atom_kind skip_escape(struct counting *counting)
{
	char kind = *counting->next;

	if (kind == '\0') {
		give_up(counting);
		return ATOM_BORDER;
	}
	counting->next++;
	if (strchr("bBAzZ", kind) != NULL) {
		return ATOM_BORDER;
	}
	if (kind == 'x') {
		size_t digits = strspn(counting->next, "0123456789abcdefABCDEF");

		if (*counting->next == '{' || digits < 2) {
			give_up(counting);
		} else {
			counting->next += 2;
		}
	} else if (((kind >= '0' && kind <= '9') || (kind >= 'a' && kind <= 'z') ||
			   (kind >= 'A' && kind <= 'Z')) &&
		strchr("dDwWsShHvVnrtfea", kind) == NULL) {
		give_up(counting);
	}
	return ATOM_CLASS;
}

/* After `(`: the kind of group. False: flags, and no group. */
static bool skip_group_start(struct counting *counting)
{
	const char *next = counting->next;

	if (*next == '*') {
		give_up(counting);
	}
	if (*next != '?') {
		return true;
	}
	next += 1 + strspn(next + 1, "ims");
	if (*next != ':' && *next != ')') {
		give_up(counting);
		return true;
	}
	counting->next = next + 1;
	return *next == ':';
}

static struct atom count_group(struct counting *counting)
{
	struct atom atom = {.kind = ATOM_GROUP};
	const char *start;

	if (!skip_group_start(counting)) {
		return (struct atom){.kind = ATOM_BORDER};
	}
	start = counting->next;
	if (++counting->depth > DEPTH_MAX) {
		give_up(counting);
	}
	atom.states = counting->is_unknown ? 0 : count_alternatives(counting);
	counting->depth--;
	if (counting->is_unknown || *counting->next != ')') {
		give_up(counting);
		return atom;
	}
	atom.avoids_zeros = avoids_zeros(start, counting->next);
	counting->next++;
	return atom;
}

static struct atom count_atom(struct counting *counting)
{
	char first = *counting->next++;

	switch (first) {
	case '(':
		return count_group(counting);
	case '[':
		skip_class(counting);
		break;
	case '\\':
		return (struct atom){.kind = skip_escape(counting), .states = 1};
	case '^':
	case '$':
		return (struct atom){.kind = ATOM_BORDER, .states = 1};
	case '*':
	case '+':
	case '?':
	case '{':
		give_up(counting);
		break;
	default:
		break;
	}
	return (struct atom){.kind = ATOM_CLASS, .states = 1};
}

/* After `{`: the larger of its numbers, and whether there is no upper one. */
static uint64_t skip_counts(struct counting *counting, bool *out_is_endless)
{
	char *end;
	uint64_t least = strtoull(counting->next, &end, 10);
	uint64_t most = least;

	if (*counting->next < '0' || *counting->next > '9') {
		give_up(counting);
		return 1;
	}
	if (*end == ',') {
		const char *second = end + 1;

		*out_is_endless = *second == '}';
		most = *out_is_endless ? least : strtoull(second, &end, 10);
		end = *out_is_endless ? end + 1 : end;
	}
	if (*end != '}' || most > STATES_MAX) {
		give_up(counting);
		return 1;
	}
	counting->next = end + 1;
	return most;
}

/* How often an atom is written out at most; an endless repeat is a loop. */
static uint64_t skip_repeat(struct counting *counting, bool *out_is_endless)
{
	uint64_t times = 1;

	switch (*counting->next) {
	case '*':
	case '+':
		*out_is_endless = true;
		counting->next++;
		break;
	case '?':
		counting->next++;
		break;
	case '{':
		counting->next++;
		times = skip_counts(counting, out_is_endless);
		break;
	default:
		return 1;
	}
	counting->next += *counting->next == '?'; /* as few as possible: all are found */
	if (*counting->next != '\0' && strchr("*+?{", *counting->next) != NULL) {
		give_up(counting);
	}
	return times > 0 ? times : 1;
}

static uint64_t count_alternatives(struct counting *counting)
{
	uint64_t states = 1;

	while (!counting->is_unknown && *counting->next != '\0' && *counting->next != ')') {
		bool is_endless = false;
		struct atom atom;
		uint64_t times;

		if (*counting->next == '|') {
			counting->next++;
			continue;
		}
		atom = count_atom(counting);
		times = counting->is_unknown ? 1 : skip_repeat(counting, &is_endless);
		if ((atom.kind == ATOM_BORDER && (is_endless || times != 1)) ||
			(atom.kind == ATOM_GROUP && is_endless && !atom.avoids_zeros)) {
			give_up(counting);
		}
		states += atom.states * (times + is_endless);
		if (states > STATES_MAX) {
			give_up(counting);
		}
	}
	return states;
}

/* 0: not known. */
static uint64_t count_states(const struct rule *rule)
{
	struct counting counting = {.next = rule->pattern};
	uint64_t states;

	if (memchr(rule->pattern, '\0', rule->pattern_bytes) != NULL) {
		return 0;
	}
	if (rule->is_literal) {
		return rule->pattern_bytes;
	}
	states = count_alternatives(&counting);
	return counting.is_unknown || *counting.next != '\0' ? 0 : states;
}

uint64_t zeros_settle_bytes(const struct rules *rules)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < rules->count; i++) {
		uint64_t states;

		if (rules->items[i].max_width != RULE_WIDTH_UNBOUNDED) {
			continue;
		}
		states = count_states(&rules->items[i]);
		if (states == 0) {
			return 0;
		}
		most = states > most ? states : most;
	}
	return most + CONTEXT_BYTES;
}
