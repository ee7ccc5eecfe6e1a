/* SPDX-License-Identifier: MIT */
/*
 * The tree of an expression, between its parser and its evaluation.
 */
#ifndef PINION_TOOLS_SCAN_EXPRESSION_TREE_H
#define PINION_TOOLS_SCAN_EXPRESSION_TREE_H

#include "tools/scan/rule_filter.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum expression_type {
	EXPRESSION_ANY, /* of a part without a value */
	EXPRESSION_BOOL,
	EXPRESSION_NUMBER,
	EXPRESSION_STRING,
	EXPRESSION_LIST,     /* of strings, all known */
	EXPRESSION_FRAGMENT, /* finding["fragment_raw"]; slices of it are strings */
};

enum expression_op {
	EXPRESSION_UNKNOWN, /* has no value */
	EXPRESSION_CONSTANT,
	EXPRESSION_NIL,
	EXPRESSION_FIELD,
	EXPRESSION_BINDING, /* of `let`: `a`, evaluated once */
	/* Of booleans. In a chain `b` is the rest: a && (b && (c && d)). */
	EXPRESSION_NOT,
	EXPRESSION_AND,
	EXPRESSION_OR,
	EXPRESSION_CHOOSE,   /* a ? b : c */
	EXPRESSION_COALESCE, /* a ?? b */
	/* Comparisons. */
	EXPRESSION_EQUAL,
	EXPRESSION_LESS,
	EXPRESSION_LESS_OR_EQUAL,
	/* Of strings. */
	EXPRESSION_IN, /* the list */
	EXPRESSION_CONTAINS,
	EXPRESSION_STARTS,
	EXPRESSION_ENDS,
	EXPRESSION_MATCHES_ANY,	 /* of the regexes */
	EXPRESSION_FIND_MATCH,	 /* of the regexes */
	EXPRESSION_CONTAINS_ANY, /* of the list, in lower case */
	EXPRESSION_ENTROPY,
	EXPRESSION_LENGTH,
	EXPRESSION_LOWER,
	EXPRESSION_UPPER,
	EXPRESSION_TRIM,
	EXPRESSION_SLICE, /* a[b:c], both of which may be NULL */
	EXPRESSION_CONCATENATE,
	/* Of numbers. */
	EXPRESSION_ADD,
	EXPRESSION_SUBTRACT,
	EXPRESSION_MULTIPLY,
	EXPRESSION_DIVIDE,
	EXPRESSION_MIN,
	EXPRESSION_MAX,
	EXPRESSION_ABSOLUTE,
};

/* What EXPRESSION_FIELD has of a finding. */
enum expression_field {
	EXPRESSION_FIELD_SECRET,
	EXPRESSION_FIELD_MATCH,
	EXPRESSION_FIELD_LINE,
	EXPRESSION_FIELD_RULE_ID,
	EXPRESSION_FIELD_PATH,
	EXPRESSION_FIELD_FRAGMENT,
	/* Offsets in the fragment, of which the lines of the match are kept. */
	EXPRESSION_FIELD_MATCH_START,
	EXPRESSION_FIELD_MATCH_END,
	EXPRESSION_FIELD_LINE_START,
	EXPRESSION_FIELD_LINE_END,
};

struct expression_text {
	const char *bytes;
	size_t length;
};

/* Regular expressions of one node. */
struct expression_regexes {
	struct expression_regexes *next; /* of the whole expression */
	struct rule_regexes list;
};

struct expression_node {
	enum expression_op op;
	enum expression_type type;
	const struct expression_node *a;
	const struct expression_node *b;
	const struct expression_node *c;
	/* EXPRESSION_CONSTANT. */
	struct expression_text text;
	double number;
	bool truth;
	/* Lists, and terms of EXPRESSION_CONTAINS_ANY. */
	const struct expression_text *items;
	uint32_t item_count;
	struct expression_regexes *regexes;
	enum expression_field field;
	uint32_t slot;	/* EXPRESSION_BINDING: its index */
	uint32_t depth; /* of the tree below, itself included */
};

#endif
