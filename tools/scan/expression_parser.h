/* SPDX-License-Identifier: MIT */
/*
 * The state of a parser of expressions, for the file of its grammar and the one
 * of its functions and keys.
 */
#ifndef PINION_TOOLS_SCAN_EXPRESSION_PARSER_H
#define PINION_TOOLS_SCAN_EXPRESSION_PARSER_H

#include "tools/scan/expression.h"
#include "tools/scan/expression_tokens.h"
#include "tools/scan/expression_tree.h"

struct expression_binding {
	struct expression_text name;
	struct expression_node *node;
};

struct expression_parser {
	struct expression_tokens tokens;
	struct expression *expression;
	struct expression_binding bindings[EXPRESSION_BINDINGS_MAX];
	uint32_t binding_count; /* in scope and before */
	uint32_t depth;		/* of calls */
	expression_note_fn note;
	void *note_arg;
	struct expression_trouble *trouble;
	int error; /* 0: none yet */
};

/*
 * Each returns NULL after a failure, which is in the parser; arguments may be
 * NULL after one.
 */
struct expression_node *expression_fail(
	struct expression_parser *parser, size_t offset, const char *reason);
struct expression_node *expression_fail_memory(struct expression_parser *parser);
struct expression_node *expression_node(
	struct expression_parser *parser, enum expression_op op, enum expression_type type);
/* Reports a part without a value. */
struct expression_node *expression_unknown(struct expression_parser *parser, size_t offset,
	enum expression_type type, const char *reason);

struct expression_operation {
	const char *spelling;
	uint32_t rank;
	enum expression_op op;
	bool is_swapped; /* b op a */
	bool is_negated;
};

/* True for that type, and for a type that is not known. */
static inline bool expression_is(const struct expression_node *node, enum expression_type type)
{
	return node->type == type || node->type == EXPRESSION_ANY;
}

/* Of expression.c, the grammar. */
struct expression_node *expression_unary(struct expression_parser *parser, enum expression_op op,
	enum expression_type type, const struct expression_node *a);
bool expression_next(struct expression_parser *parser);
bool expression_expect(struct expression_parser *parser, const char *mark);
/* The longest value that begins here. */
struct expression_node *expression_argument(struct expression_parser *parser);
/* Gives a node its children; NULL if the tree is too deep then. */
struct expression_node *expression_adopt(struct expression_parser *parser,
	struct expression_node *node, const struct expression_node *a,
	const struct expression_node *b);

/*
 * Of expression_operators.c. Takes the operator that comes next if its rank is
 * that high; `not in` is one of two words. NULL: there is none, or the parser
 * has failed.
 */
const struct expression_operation *expression_take_operation(
	struct expression_parser *parser, uint32_t rank, bool *out_negated);
struct expression_node *expression_apply(struct expression_parser *parser,
	const struct expression_operation *operation, bool is_negated, struct expression_node *left,
	struct expression_node *right);
/* `+`, `-`, `*` or `/`. */
struct expression_node *expression_calculate(struct expression_parser *parser,
	enum expression_op op, struct expression_node *a, struct expression_node *b);

/* Of expression_names.c: a value that begins with the current token, a name. */
struct expression_node *expression_name(struct expression_parser *parser);
/* One regular expression more for a node. */
bool expression_add_regex(struct expression_parser *parser, struct expression_node *node,
	const struct expression_text *pattern);

#endif
