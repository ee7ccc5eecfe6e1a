/* SPDX-License-Identifier: MIT */
/*
 * Filter expressions of betterleaks: true for a finding that is to be dropped.
 * They are of expr-lang.org, of which this is the part that filters use:
 *
 *   let NAME = VALUE;            || or  && and  ! not  ?:  ??
 *   == != < <= > >=  in  not in  contains startsWith endsWith matches
 *   + - * /  VALUE[FROM:TO]  "TEXT" 'TEXT' `TEXT`  1.5  true  [LIST]
 *   finding["KEY"]  attributes["KEY"]  get(attributes, "KEY", VALUE)
 *   matchesAny containsAny findMatch entropy len lower upper trim min max abs
 *
 * The rest is parsed as well, as far as its grammar is the same. A function or
 * a key that is not known is reported, and has no value: neither true nor
 * false. An expression is true when it is true whatever these would say, so
 * such a part never drops a finding that the rest does not.
 *
 * The parser bounds the depth and size of the tree, the evaluation its memory.
 * A tree is not changed after it was parsed: workers evaluate it at one time.
 */
#ifndef PINION_TOOLS_SCAN_EXPRESSION_H
#define PINION_TOOLS_SCAN_EXPRESSION_H

#include "tools/scan/rule_filter.h"
#include "tools/scan/rule_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	EXPRESSION_BYTES_MAX = 256 << 10,
	EXPRESSION_DEPTH_MAX = 100,
	EXPRESSION_NODES_MAX = 20000,
	EXPRESSION_BINDINGS_MAX = 32, /* of `let` */
	EXPRESSION_REASON_BYTES = 160,
};

struct expression {
	const struct expression_node *root;
	uint32_t binding_count;
	uint32_t node_count;
	const char *text; /* as it was, NUL-terminated */
	struct rule_memory memory;
	struct expression_regexes *regexes; /* their list, to be freed */
};

/* Lines are those of the text, the first one 0. */
struct expression_trouble {
	uint32_t line;
	char reason[EXPRESSION_REASON_BYTES];
};

/* Called for each part that has no value. */
typedef void (*expression_note_fn)(void *arg, uint32_t line, const char *reason);

/*
 * Returns 0; -EINVAL with *out_trouble filled; or -ENOMEM. The expression is
 * to be freed after success alone.
 */
int expression_parse(const char *text, size_t length, expression_note_fn note, void *note_arg,
	struct expression *out_expression, struct expression_trouble *out_trouble);

/* Accepts a zeroed one. */
void expression_free(struct expression *expression);

/*
 * Searches a text for the first match of any of the expressions: 1 with the
 * offsets of the match, 0 without, or negative when that could not be found
 * out.
 */
typedef int (*expression_search_fn)(void *arg, struct rule_regexes *regexes, const char *bytes,
	size_t length, size_t *out_start, size_t *out_end);

/* Whether it certainly is true for that finding. */
bool expression_is_true(const struct expression *expression, const struct rule_subject *subject,
	expression_search_fn search, void *search_arg);

#endif
