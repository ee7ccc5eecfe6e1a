/* SPDX-License-Identifier: MIT */
/*
 * Operators of filter expressions, ranked as expr-lang.org ranks them. The
 * types of their operands are checked here, so evaluations meet no wrong one.
 */
#include "tools/scan/expression_parser.h"

enum {
	RANK_COMPARISON = 20,
};

static const struct expression_operation operations[] = {
	{"||", 10, EXPRESSION_OR, false, false},
	{"or", 10, EXPRESSION_OR, false, false},
	{"&&", 15, EXPRESSION_AND, false, false},
	{"and", 15, EXPRESSION_AND, false, false},
	{"==", RANK_COMPARISON, EXPRESSION_EQUAL, false, false},
	{"!=", RANK_COMPARISON, EXPRESSION_EQUAL, false, true},
	{"<", RANK_COMPARISON, EXPRESSION_LESS, false, false},
	{">", RANK_COMPARISON, EXPRESSION_LESS, true, false},
	{"<=", RANK_COMPARISON, EXPRESSION_LESS_OR_EQUAL, false, false},
	{">=", RANK_COMPARISON, EXPRESSION_LESS_OR_EQUAL, true, false},
	{"in", RANK_COMPARISON, EXPRESSION_IN, false, false},
	{"contains", RANK_COMPARISON, EXPRESSION_CONTAINS, false, false},
	{"startsWith", RANK_COMPARISON, EXPRESSION_STARTS, false, false},
	{"endsWith", RANK_COMPARISON, EXPRESSION_ENDS, false, false},
	{"matches", RANK_COMPARISON, EXPRESSION_MATCHES_ANY, false, false},
	{"+", 30, EXPRESSION_ADD, false, false},
	{"-", 30, EXPRESSION_SUBTRACT, false, false},
	{"*", 60, EXPRESSION_MULTIPLY, false, false},
	{"/", 60, EXPRESSION_DIVIDE, false, false},
	{"??", 500, EXPRESSION_COALESCE, false, false},
};

static struct expression_node *compare(struct expression_parser *parser, enum expression_op op,
	struct expression_node *a, struct expression_node *b)
{
	bool is_known = a->type != EXPRESSION_ANY && b->type != EXPRESSION_ANY;

	if (is_known &&
		(a->type != b->type || a->type >= EXPRESSION_LIST ||
			(op != EXPRESSION_EQUAL && a->type == EXPRESSION_BOOL))) {
		return expression_fail(
			parser, parser->tokens.offset, "a comparison of unlike values");
	}
	return expression_adopt(parser, expression_node(parser, op, EXPRESSION_BOOL), a, b);
}

static struct expression_node *in_list(
	struct expression_parser *parser, struct expression_node *a, struct expression_node *b)
{
	struct expression_node *node;

	if (!expression_is(a, EXPRESSION_STRING) || !expression_is(b, EXPRESSION_LIST)) {
		return expression_fail(
			parser, parser->tokens.offset, "'in' needs a text and a list of texts");
	}
	node = expression_adopt(
		parser, expression_node(parser, EXPRESSION_IN, EXPRESSION_BOOL), a, b);
	if (node != NULL) {
		const struct expression_node *list = b->op == EXPRESSION_BINDING ? b->a : b;

		node->items = list->items;
		node->item_count = list->item_count;
	}
	return node;
}

static struct expression_node *search(struct expression_parser *parser, enum expression_op op,
	struct expression_node *a, struct expression_node *b)
{
	struct expression_node *node;

	if (!expression_is(a, EXPRESSION_STRING) || !expression_is(b, EXPRESSION_STRING)) {
		return expression_fail(parser, parser->tokens.offset, "a search needs texts");
	}
	node = expression_adopt(parser, expression_node(parser, op, EXPRESSION_BOOL), a, b);
	if (node != NULL && op == EXPRESSION_MATCHES_ANY) {
		if (b->op != EXPRESSION_CONSTANT) {
			return expression_fail(parser, parser->tokens.offset,
				"'matches' needs an expression in quotes");
		}
		return expression_add_regex(parser, node, &b->text) ? node : NULL;
	}
	return node;
}

struct expression_node *expression_calculate(struct expression_parser *parser,
	enum expression_op op, struct expression_node *a, struct expression_node *b)
{
	enum expression_type type = EXPRESSION_NUMBER;

	if (op == EXPRESSION_ADD &&
		(a->type == EXPRESSION_STRING || b->type == EXPRESSION_STRING)) {
		op = EXPRESSION_CONCATENATE;
		type = EXPRESSION_STRING;
	}
	if (!expression_is(a, type) || !expression_is(b, type)) {
		return expression_fail(
			parser, parser->tokens.offset, "a calculation with other than numbers");
	}
	return expression_adopt(parser, expression_node(parser, op, type), a, b);
}

static struct expression_node *coalesce(
	struct expression_parser *parser, struct expression_node *a, struct expression_node *b)
{
	enum expression_type type = a->type == EXPRESSION_ANY ? b->type : a->type;

	if (!expression_is(b, type)) {
		return expression_fail(parser, parser->tokens.offset, "'?\?' of unlike values");
	}
	return expression_adopt(parser, expression_node(parser, EXPRESSION_COALESCE, type), a, b);
}

static struct expression_node *binary(struct expression_parser *parser, enum expression_op op,
	struct expression_node *a, struct expression_node *b)
{
	switch ((int)op) {
	case EXPRESSION_AND:
	case EXPRESSION_OR:
		if (!expression_is(a, EXPRESSION_BOOL) || !expression_is(b, EXPRESSION_BOOL)) {
			return expression_fail(parser, parser->tokens.offset,
				"'and' and 'or' need conditions on both sides");
		}
		return expression_adopt(parser, expression_node(parser, op, EXPRESSION_BOOL), a, b);
	case EXPRESSION_EQUAL:
	case EXPRESSION_LESS:
	case EXPRESSION_LESS_OR_EQUAL:
		return compare(parser, op, a, b);
	case EXPRESSION_IN:
		return in_list(parser, a, b);
	case EXPRESSION_CONTAINS:
	case EXPRESSION_STARTS:
	case EXPRESSION_ENDS:
	case EXPRESSION_MATCHES_ANY:
		return search(parser, op, a, b);
	case EXPRESSION_COALESCE:
		return coalesce(parser, a, b);
	default:
		return expression_calculate(parser, op, a, b);
	}
}

/* The operator that is the current token, NULL: it is none. */
static const struct expression_operation *current_operation(const struct expression_parser *parser)
{
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (expression_tokens_are(&parser->tokens, operations[i].spelling)) {
			return &operations[i];
		}
	}
	return NULL;
}

const struct expression_operation *expression_take_operation(
	struct expression_parser *parser, uint32_t rank, bool *out_negated)
{
	const struct expression_operation *found = current_operation(parser);

	*out_negated = found != NULL && found->is_negated;
	if (expression_tokens_are(&parser->tokens, "not") && rank <= RANK_COMPARISON) {
		if (!expression_next(parser)) {
			return NULL;
		}
		found = current_operation(parser);
		if (found == NULL || found->rank != RANK_COMPARISON || found->spelling[0] < 'a') {
			expression_fail(parser, parser->tokens.offset,
				"'not' is not followed by an operator");
			return NULL;
		}
		*out_negated = true;
	}
	if (found == NULL || found->rank < rank || !expression_next(parser)) {
		return NULL;
	}
	return found;
}

struct expression_node *expression_apply(struct expression_parser *parser,
	const struct expression_operation *op, bool is_negated, struct expression_node *left,
	struct expression_node *right)
{
	struct expression_node *node = op->is_swapped ? binary(parser, op->op, right, left)
						      : binary(parser, op->op, left, right);

	return is_negated ? expression_unary(parser, EXPRESSION_NOT, EXPRESSION_BOOL, node) : node;
}
