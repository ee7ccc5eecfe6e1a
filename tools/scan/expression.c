/* SPDX-License-Identifier: MIT */
/*
 * The grammar of filter expressions, as expr-lang.org has it.
 */
#include "tools/scan/expression.h"

#include "tools/scan/confirm.h"
#include "tools/scan/expression_parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RANK_NOT = 50,
	RANK_SIGN = 90,
};

struct expression_node *expression_fail(
	struct expression_parser *parser, size_t offset, const char *reason)
{
	const char *text = parser->tokens.text;

	if (parser->error != 0) {
		return NULL;
	}
	parser->error = -EINVAL;
	parser->trouble->line = 0;
	for (size_t i = 0; i < offset; i++) {
		parser->trouble->line += text[i] == '\n';
	}
	snprintf(parser->trouble->reason, sizeof(parser->trouble->reason), "%s", reason);
	return NULL;
}

struct expression_node *expression_fail_memory(struct expression_parser *parser)
{
	if (parser->error == 0) {
		parser->error = -ENOMEM;
	}
	return NULL;
}

struct expression_node *expression_node(
	struct expression_parser *parser, enum expression_op op, enum expression_type type)
{
	struct expression_node *node;

	if (parser->error != 0) {
		return NULL;
	}
	if (++parser->expression->node_count > EXPRESSION_NODES_MAX) {
		return expression_fail(parser, parser->tokens.offset, "it has too many parts");
	}
	node = rule_memory_take(&parser->expression->memory, sizeof(*node));
	if (node == NULL) {
		return expression_fail_memory(parser);
	}
	node->op = op;
	node->type = type;
	node->depth = 1;
	return node;
}

struct expression_node *expression_unknown(struct expression_parser *parser, size_t offset,
	enum expression_type type, const char *reason)
{
	uint32_t line = 0;

	for (size_t i = 0; i < offset; i++) {
		line += parser->tokens.text[i] == '\n';
	}
	if (parser->error == 0 && parser->note != NULL) {
		parser->note(parser->note_arg, line, reason);
	}
	return expression_node(parser, EXPRESSION_UNKNOWN, type);
}

bool expression_next(struct expression_parser *parser)
{
	const char *reason = expression_tokens_next(&parser->tokens);

	if (reason != NULL) {
		expression_fail(parser, parser->tokens.offset, reason);
	}
	return parser->error == 0;
}

bool expression_expect(struct expression_parser *parser, const char *mark)
{
	char reason[40];

	if (!expression_tokens_are(&parser->tokens, mark)) {
		snprintf(reason, sizeof(reason), "'%s' is missing", mark);
		expression_fail(parser, parser->tokens.offset, reason);
		return false;
	}
	return expression_next(parser);
}

struct expression_node *expression_adopt(struct expression_parser *parser,
	struct expression_node *node, const struct expression_node *a,
	const struct expression_node *b)
{
	if (node == NULL || parser->error != 0) {
		return NULL;
	}
	node->a = a;
	node->b = b;
	node->depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
	if (node->depth > EXPRESSION_DEPTH_MAX) {
		return expression_fail(
			parser, parser->tokens.offset, "its parts are nested too deep");
	}
	return node;
}

struct expression_node *expression_unary(struct expression_parser *parser, enum expression_op op,
	enum expression_type type, const struct expression_node *a)
{
	return a == NULL ? NULL : expression_adopt(parser, expression_node(parser, op, type), a, a);
}

/* Adds one more to the end of a chain of the same operator. */
static bool extend_chain(struct expression_parser *parser, struct expression_node *root,
	struct expression_node **tail, struct expression_node *right)
{
	struct expression_node *added = expression_node(parser, root->op, EXPRESSION_BOOL);

	if (added == NULL || expression_adopt(parser, added, (*tail)->b, right) == NULL) {
		return false;
	}
	(*tail)->b = added;
	*tail = added;
	root->depth = root->depth > right->depth ? root->depth : right->depth + 1;
	return true;
}

static struct expression_node *parse_operand(struct expression_parser *parser);
static struct expression_node *parse_rank(struct expression_parser *parser, uint32_t rank);

static struct expression_node *parse_choice(
	struct expression_parser *parser, struct expression_node *condition)
{
	struct expression_node *node;
	struct expression_node *then;
	struct expression_node *otherwise;
	enum expression_type type;

	if (!expression_next(parser)) {
		return NULL;
	}
	then = parse_rank(parser, 0);
	if (then == NULL || !expression_expect(parser, ":")) {
		return NULL;
	}
	otherwise = parse_rank(parser, 0);
	if (otherwise == NULL) {
		return NULL;
	}
	type = then->type == EXPRESSION_ANY ? otherwise->type : then->type;
	if (!expression_is(condition, EXPRESSION_BOOL) || !expression_is(otherwise, type)) {
		return expression_fail(parser, parser->tokens.offset,
			"'?' needs a condition and two values of one type");
	}
	node = expression_node(parser, EXPRESSION_CHOOSE, type);
	if (expression_adopt(parser, node, condition, then) != NULL) {
		node->c = otherwise;
		node->depth = node->depth > otherwise->depth ? node->depth : otherwise->depth + 1;
	}
	return parser->error == 0 ? node : NULL;
}

static struct expression_node *parse_rank(struct expression_parser *parser, uint32_t rank)
{
	struct expression_node *left;
	struct expression_node *tail = NULL; /* of the chain that `left` is */

	if (++parser->depth > EXPRESSION_DEPTH_MAX) {
		return expression_fail(
			parser, parser->tokens.offset, "its parts are nested too deep");
	}
	left = parse_operand(parser);
	while (left != NULL) {
		bool is_negated;
		const struct expression_operation *op =
			expression_take_operation(parser, rank, &is_negated);
		struct expression_node *right;

		if (op == NULL) {
			break;
		}
		right = parse_rank(parser, op->rank + 1);
		if (right == NULL) {
			left = NULL;
		} else if (tail != NULL && left->op == op->op &&
			expression_is(right, EXPRESSION_BOOL)) {
			left = extend_chain(parser, left, &tail, right) ? left : NULL;
		} else {
			left = expression_apply(parser, op, is_negated, left, right);
			tail = left != NULL &&
					(left->op == EXPRESSION_AND || left->op == EXPRESSION_OR)
				? left
				: NULL;
		}
	}
	if (left != NULL && rank == 0 && expression_tokens_are(&parser->tokens, "?")) {
		left = parse_choice(parser, left);
	}
	parser->depth--;
	return parser->error == 0 ? left : NULL;
}

/* `let NAME = VALUE;` */
static bool parse_binding(struct expression_parser *parser)
{
	struct expression_binding *binding = &parser->bindings[parser->binding_count];
	struct expression_node *node;
	struct expression_node *value;

	if (parser->expression->binding_count == EXPRESSION_BINDINGS_MAX) {
		expression_fail(parser, parser->tokens.offset, "it has too many 'let'");
		return false;
	}
	if (!expression_next(parser)) {
		return false;
	}
	if (parser->tokens.kind != EXPRESSION_TOKEN_NAME) {
		expression_fail(parser, parser->tokens.offset, "'let' needs a name");
		return false;
	}
	binding->name = (struct expression_text){parser->tokens.bytes, parser->tokens.byte_count};
	if (!expression_next(parser) || !expression_expect(parser, "=")) {
		return false;
	}
	value = parse_rank(parser, 0);
	if (value == NULL || !expression_expect(parser, ";")) {
		return false;
	}
	node = expression_unary(parser, EXPRESSION_BINDING, value->type, value);
	if (node == NULL) {
		return false;
	}
	node->slot = parser->expression->binding_count++;
	binding->node = node;
	parser->binding_count++;
	return true;
}

/* Bindings and the value after them. */
static struct expression_node *parse_sequence(struct expression_parser *parser)
{
	uint32_t count = parser->binding_count;
	struct expression_node *node;

	while (expression_tokens_are(&parser->tokens, "let")) {
		if (!parse_binding(parser)) {
			return NULL;
		}
	}
	node = parse_rank(parser, 0);
	parser->binding_count = count;
	return node;
}

static struct expression_node *parse_list(struct expression_parser *parser)
{
	struct expression_node *node =
		expression_node(parser, EXPRESSION_CONSTANT, EXPRESSION_LIST);
	struct expression_text *items = NULL;
	uint32_t capacity = 0;

	while (node != NULL && expression_next(parser) &&
		!expression_tokens_are(&parser->tokens, "]")) {
		if (parser->tokens.kind != EXPRESSION_TOKEN_STRING) {
			return expression_fail(parser, parser->tokens.offset,
				"a list has something that is no text");
		}
		if (node->item_count == capacity) {
			struct expression_text *grown;

			capacity = capacity == 0 ? 4 : 2 * capacity;
			grown = rule_memory_take(
				&parser->expression->memory, capacity * sizeof(*grown));
			if (grown == NULL) {
				return expression_fail_memory(parser);
			}
			if (items != NULL) {
				memcpy(grown, items, node->item_count * sizeof(*grown));
			}
			items = grown;
		}
		parser->expression->node_count++;
		items[node->item_count++] =
			(struct expression_text){parser->tokens.bytes, parser->tokens.byte_count};
		if (!expression_next(parser) || expression_tokens_are(&parser->tokens, "]")) {
			break;
		}
		if (!expression_tokens_are(&parser->tokens, ",")) {
			return expression_fail(
				parser, parser->tokens.offset, "']' is missing after a list");
		}
	}
	if (node == NULL || parser->error != 0) {
		return NULL;
	}
	node->items = items;
	return expression_next(parser) ? node : NULL;
}

static struct expression_node *parse_constant(struct expression_parser *parser)
{
	bool is_string = parser->tokens.kind == EXPRESSION_TOKEN_STRING;
	struct expression_node *node = expression_node(
		parser, EXPRESSION_CONSTANT, is_string ? EXPRESSION_STRING : EXPRESSION_NUMBER);

	if (node == NULL) {
		return NULL;
	}
	node->text = (struct expression_text){parser->tokens.bytes, parser->tokens.byte_count};
	node->number = parser->tokens.number;
	return expression_next(parser) ? node : NULL;
}

/* `!`, `-` and `+`. */
static struct expression_node *parse_signed(struct expression_parser *parser)
{
	bool is_not = expression_tokens_are(&parser->tokens, "!") ||
		expression_tokens_are(&parser->tokens, "not");
	bool is_minus = expression_tokens_are(&parser->tokens, "-");
	struct expression_node *operand;

	if (!expression_next(parser)) {
		return NULL;
	}
	operand = parse_rank(parser, is_not ? RANK_NOT : RANK_SIGN);
	if (operand == NULL) {
		return NULL;
	}
	if (!expression_is(operand, is_not ? EXPRESSION_BOOL : EXPRESSION_NUMBER)) {
		return expression_fail(parser, parser->tokens.offset,
			is_not ? "'not' needs a condition" : "a sign needs a number");
	}
	if (is_not) {
		return expression_unary(parser, EXPRESSION_NOT, EXPRESSION_BOOL, operand);
	}
	return is_minus
		? expression_calculate(parser, EXPRESSION_SUBTRACT,
			  expression_node(parser, EXPRESSION_CONSTANT, EXPRESSION_NUMBER), operand)
		: operand;
}

/* VALUE[FROM:TO], either of which may be missing. */
static struct expression_node *parse_slice(
	struct expression_parser *parser, struct expression_node *base)
{
	struct expression_node *bounds[2] = {NULL, NULL};
	struct expression_node *node;

	if (!expression_next(parser)) {
		return NULL;
	}
	for (int i = 0; i < 2; i++) {
		const char *end = i == 0 ? ":" : "]";

		if (!expression_tokens_are(&parser->tokens, end)) {
			bounds[i] = parse_rank(parser, 0);
			if (bounds[i] != NULL && !expression_is(bounds[i], EXPRESSION_NUMBER)) {
				expression_fail(
					parser, parser->tokens.offset, "a range needs numbers");
			}
		}
		if (parser->error != 0 || !expression_expect(parser, end)) {
			return NULL;
		}
	}
	if (!expression_is(base, EXPRESSION_STRING) && base->type != EXPRESSION_FRAGMENT) {
		return expression_fail(
			parser, parser->tokens.offset, "a range of other than texts");
	}
	node = expression_node(parser, EXPRESSION_SLICE, EXPRESSION_STRING);
	if (expression_adopt(parser, node, base, bounds[0] != NULL ? bounds[0] : base) == NULL) {
		return NULL;
	}
	node->b = bounds[0];
	node->c = bounds[1];
	if (bounds[1] != NULL && bounds[1]->depth >= node->depth) {
		node->depth = bounds[1]->depth + 1;
	}
	return node;
}

struct expression_node *expression_argument(struct expression_parser *parser)
{
	return parse_rank(parser, 0);
}

static struct expression_node *parse_operand(struct expression_parser *parser)
{
	struct expression_node *node;

	if (expression_tokens_are(&parser->tokens, "!") ||
		expression_tokens_are(&parser->tokens, "not") ||
		expression_tokens_are(&parser->tokens, "-") ||
		expression_tokens_are(&parser->tokens, "+")) {
		node = parse_signed(parser);
	} else if (expression_tokens_are(&parser->tokens, "(")) {
		if (!expression_next(parser)) {
			return NULL;
		}
		node = parse_sequence(parser);
		if (node != NULL && !expression_expect(parser, ")")) {
			return NULL;
		}
	} else if (expression_tokens_are(&parser->tokens, "[")) {
		node = parse_list(parser);
	} else if (parser->tokens.kind == EXPRESSION_TOKEN_NAME) {
		node = expression_name(parser);
	} else if (parser->tokens.kind == EXPRESSION_TOKEN_END ||
		parser->tokens.kind == EXPRESSION_TOKEN_MARK) {
		return expression_fail(parser, parser->tokens.offset,
			parser->tokens.kind == EXPRESSION_TOKEN_END
				? "a value is missing at its end"
				: "a value is missing");
	} else {
		node = parse_constant(parser);
	}
	while (node != NULL && expression_tokens_are(&parser->tokens, "[")) {
		node = parse_slice(parser, node);
	}
	return node;
}

static int parse(struct expression_parser *parser, size_t length)
{
	struct expression_node *root;

	if (length > EXPRESSION_BYTES_MAX) {
		expression_fail(parser, 0, "it is longer than 256 KiB");
		return parser->error;
	}
	parser->expression->text =
		rule_memory_copy(&parser->expression->memory, parser->tokens.text, length);
	if (parser->expression->text == NULL) {
		return -ENOMEM;
	}
	root = expression_next(parser) ? parse_sequence(parser) : NULL;
	if (root != NULL && parser->tokens.kind != EXPRESSION_TOKEN_END) {
		expression_fail(parser, parser->tokens.offset, "it does not end where it should");
	} else if (root != NULL && !expression_is(root, EXPRESSION_BOOL)) {
		expression_fail(parser, 0, "it is no condition");
	}
	parser->expression->root = root;
	return parser->error;
}

int expression_parse(const char *text, size_t length, expression_note_fn note, void *note_arg,
	struct expression *out_expression, struct expression_trouble *out_trouble)
{
	struct expression expression = {0};
	struct expression_parser parser = {
		.tokens = {.text = text, .length = length, .memory = &expression.memory},
		.expression = &expression,
		.note = note,
		.note_arg = note_arg,
		.trouble = out_trouble,
	};
	int error = parse(&parser, length);

	if (error != 0) {
		expression_free(&expression);
		return error;
	}
	*out_expression = expression;
	return 0;
}

void expression_free(struct expression *expression)
{
	for (struct expression_regexes *regexes = expression->regexes; regexes != NULL;
		regexes = regexes->next) {
		for (uint32_t i = 0; i < regexes->list.count; i++) {
			confirm_regex_destroy(regexes->list.items[i].compiled);
			free(regexes->list.items[i].pattern);
		}
		free(regexes->list.items);
	}
	rule_memory_free(&expression->memory);
	*expression = (struct expression){0};
}
