/* SPDX-License-Identifier: MIT */
/*
 * The names in filter expressions: constants, what a finding and its file have,
 * functions.
 */
#include "tools/scan/expression_parser.h"

#include <stdio.h>
#include <string.h>

struct field {
	const char *key;
	enum expression_field field;
	enum expression_type type;
};

static const struct field finding_fields[] = {
	{"secret", EXPRESSION_FIELD_SECRET, EXPRESSION_STRING},
	{"match", EXPRESSION_FIELD_MATCH, EXPRESSION_STRING},
	{"line", EXPRESSION_FIELD_LINE, EXPRESSION_STRING},
	{"rule_id", EXPRESSION_FIELD_RULE_ID, EXPRESSION_STRING},
	{"fragment_raw", EXPRESSION_FIELD_FRAGMENT, EXPRESSION_FRAGMENT},
	{"match_start_idx", EXPRESSION_FIELD_MATCH_START, EXPRESSION_NUMBER},
	{"match_end_idx", EXPRESSION_FIELD_MATCH_END, EXPRESSION_NUMBER},
	{"match_line_start_idx", EXPRESSION_FIELD_LINE_START, EXPRESSION_NUMBER},
	{"match_line_end_idx", EXPRESSION_FIELD_LINE_END, EXPRESSION_NUMBER},
};

/* What the parameters of a function are. */
enum shape {
	SHAPE_STRING,	      /* (string) */
	SHAPE_STRING_TERMS,   /* (string, list of strings) */
	SHAPE_STRING_REGEX,   /* (string, constant string) */
	SHAPE_STRING_REGEXES, /* (string, list of strings) */
	SHAPE_NUMBER,	      /* (number) */
	SHAPE_NUMBERS,	      /* (number, number) */
};

struct function {
	const char *name;
	enum expression_op op;
	enum expression_type type;
	enum shape shape;
};

static const struct function functions[] = {
	{"matchesAny", EXPRESSION_MATCHES_ANY, EXPRESSION_BOOL, SHAPE_STRING_REGEXES},
	{"containsAny", EXPRESSION_CONTAINS_ANY, EXPRESSION_BOOL, SHAPE_STRING_TERMS},
	{"findMatch", EXPRESSION_FIND_MATCH, EXPRESSION_STRING, SHAPE_STRING_REGEX},
	{"entropy", EXPRESSION_ENTROPY, EXPRESSION_NUMBER, SHAPE_STRING},
	{"len", EXPRESSION_LENGTH, EXPRESSION_NUMBER, SHAPE_STRING},
	{"lower", EXPRESSION_LOWER, EXPRESSION_STRING, SHAPE_STRING},
	{"upper", EXPRESSION_UPPER, EXPRESSION_STRING, SHAPE_STRING},
	{"trim", EXPRESSION_TRIM, EXPRESSION_STRING, SHAPE_STRING},
	{"min", EXPRESSION_MIN, EXPRESSION_NUMBER, SHAPE_NUMBERS},
	{"max", EXPRESSION_MAX, EXPRESSION_NUMBER, SHAPE_NUMBERS},
	{"abs", EXPRESSION_ABSOLUTE, EXPRESSION_NUMBER, SHAPE_NUMBER},
};

enum { ARGUMENTS_MAX = 8 };

static bool is_text(const struct expression_text *text, const char *spelling)
{
	return text->length == strlen(spelling) && memcmp(text->bytes, spelling, text->length) == 0;
}

bool expression_add_regex(struct expression_parser *parser, struct expression_node *node,
	const struct expression_text *pattern)
{
	struct expression_regexes *regexes = node->regexes;

	if (memchr(pattern->bytes, '\0', pattern->length) != NULL) {
		expression_fail(parser, parser->tokens.offset, "an expression holds a NUL");
		return false;
	}
	if (regexes == NULL) {
		regexes = rule_memory_take(&parser->expression->memory, sizeof(*regexes));
		if (regexes == NULL) {
			expression_fail_memory(parser);
			return false;
		}
		regexes->next = parser->expression->regexes;
		parser->expression->regexes = regexes;
		node->regexes = regexes;
	}
	/* Strings of the tokenizer end in a NUL. */
	if (rule_regexes_add(&regexes->list, pattern->bytes) != 0) {
		expression_fail_memory(parser);
		return false;
	}
	return true;
}

/*
 * The key of `finding` or `attributes`, which is the current token: ["KEY"],
 * .KEY or ?.KEY.
 */
static bool take_key(struct expression_parser *parser, struct expression_text *out_key)
{
	bool is_bracket;

	if (!expression_next(parser)) {
		return false;
	}
	is_bracket = expression_tokens_are(&parser->tokens, "[");
	if ((!is_bracket && !expression_tokens_are(&parser->tokens, ".") &&
		    !expression_tokens_are(&parser->tokens, "?.")) ||
		!expression_next(parser) ||
		parser->tokens.kind !=
			(is_bracket ? EXPRESSION_TOKEN_STRING : EXPRESSION_TOKEN_NAME)) {
		expression_fail(
			parser, parser->tokens.offset, "a key is missing: finding[\"secret\"]");
		return false;
	}
	*out_key = (struct expression_text){parser->tokens.bytes, parser->tokens.byte_count};
	return expression_next(parser) && (!is_bracket || expression_expect(parser, "]"));
}

static struct expression_node *finding_field(
	struct expression_parser *parser, size_t offset, const struct expression_text *key)
{
	char reason[EXPRESSION_REASON_BYTES];

	for (size_t i = 0; i < sizeof(finding_fields) / sizeof(finding_fields[0]); i++) {
		if (is_text(key, finding_fields[i].key)) {
			struct expression_node *node =
				expression_node(parser, EXPRESSION_FIELD, finding_fields[i].type);

			if (node != NULL) {
				node->field = finding_fields[i].field;
			}
			return node;
		}
	}
	snprintf(reason, sizeof(reason), "finding[\"%.*s\"] is not supported, and drops nothing",
		(int)(key->length < 64 ? key->length : 64), key->bytes);
	return expression_unknown(parser, offset, EXPRESSION_STRING, reason);
}

/* Files have a path and are resources of one kind; they have no commit. */
static struct expression_node *attribute(
	struct expression_parser *parser, const struct expression_text *key)
{
	struct expression_node *node;

	if (is_text(key, "path")) {
		node = expression_node(parser, EXPRESSION_FIELD, EXPRESSION_STRING);
		if (node != NULL) {
			node->field = EXPRESSION_FIELD_PATH;
		}
	} else if (is_text(key, "resource")) {
		static const char kind[] = "fs.content";

		node = expression_node(parser, EXPRESSION_CONSTANT, EXPRESSION_STRING);
		if (node != NULL) {
			node->text = (struct expression_text){kind, sizeof(kind) - 1};
		}
	} else {
		node = expression_node(parser, EXPRESSION_NIL, EXPRESSION_STRING);
	}
	return node;
}

/* `finding` or `attributes`, and a key. */
static struct expression_node *parse_member(struct expression_parser *parser)
{
	bool is_finding = expression_tokens_are(&parser->tokens, "finding");
	size_t offset = parser->tokens.offset;
	struct expression_text key;

	if (!take_key(parser, &key)) {
		return NULL;
	}
	return is_finding ? finding_field(parser, offset, &key) : attribute(parser, &key);
}

/* get(finding or attributes, "KEY", VALUE), from the first parenthesis. */
static struct expression_node *parse_get(struct expression_parser *parser, size_t offset)
{
	struct expression_text key;
	struct expression_node *value;
	struct expression_node *node;
	struct expression_node *fallback;
	bool is_finding;

	if (!expression_expect(parser, "(")) {
		return NULL;
	}
	is_finding = expression_tokens_are(&parser->tokens, "finding");
	if (!is_finding && !expression_tokens_are(&parser->tokens, "attributes")) {
		return expression_fail(
			parser, parser->tokens.offset, "get() is of finding or attributes");
	}
	if (!expression_next(parser) || !expression_expect(parser, ",")) {
		return NULL;
	}
	if (parser->tokens.kind != EXPRESSION_TOKEN_STRING) {
		return expression_fail(
			parser, parser->tokens.offset, "get() needs a key in quotes");
	}
	key = (struct expression_text){parser->tokens.bytes, parser->tokens.byte_count};
	if (!expression_next(parser) || !expression_expect(parser, ",")) {
		return NULL;
	}
	value = is_finding ? finding_field(parser, offset, &key) : attribute(parser, &key);
	fallback = value == NULL ? NULL : expression_argument(parser);
	if (fallback == NULL || !expression_expect(parser, ")")) {
		return NULL;
	}
	if (!expression_is(fallback, value->type)) {
		return expression_fail(parser, offset, "get() needs a value of the key's type");
	}
	node = expression_node(parser, EXPRESSION_COALESCE, value->type);
	return node == NULL ? NULL : expression_adopt(parser, node, value, fallback);
}

/* (VALUE, …) from the first parenthesis; false: it has failed. */
static bool parse_arguments(struct expression_parser *parser,
	struct expression_node *arguments[ARGUMENTS_MAX], uint32_t *out_count)
{
	*out_count = 0;
	if (!expression_expect(parser, "(")) {
		return false;
	}
	while (!expression_tokens_are(&parser->tokens, ")")) {
		if (*out_count == ARGUMENTS_MAX) {
			expression_fail(
				parser, parser->tokens.offset, "a call has too many values");
			return false;
		}
		arguments[*out_count] = expression_argument(parser);
		if (arguments[(*out_count)++] == NULL) {
			return false;
		}
		if (!expression_tokens_are(&parser->tokens, ")") &&
			!expression_expect(parser, ",")) {
			return false;
		}
	}
	return expression_next(parser);
}

static bool has_shape(
	const struct function *function, struct expression_node *const *arguments, uint32_t count)
{
	bool is_pair = function->shape != SHAPE_STRING && function->shape != SHAPE_NUMBER;
	bool is_of_numbers = function->shape == SHAPE_NUMBER || function->shape == SHAPE_NUMBERS;
	enum expression_type first = is_of_numbers ? EXPRESSION_NUMBER : EXPRESSION_STRING;
	enum expression_type second = function->shape == SHAPE_NUMBERS ? EXPRESSION_NUMBER
		: function->shape == SHAPE_STRING_REGEX		       ? EXPRESSION_STRING
								       : EXPRESSION_LIST;

	if (count != (is_pair ? 2U : 1U) || !expression_is(arguments[0], first)) {
		return false;
	}
	return !is_pair ||
		(arguments[1]->type == second &&
			(function->shape != SHAPE_STRING_REGEX ||
				arguments[1]->op == EXPRESSION_CONSTANT));
}

/* Terms in lower case, as the text that is searched will be. */
static bool set_terms(struct expression_parser *parser, struct expression_node *node,
	const struct expression_node *list)
{
	struct expression_text *terms = rule_memory_take(
		&parser->expression->memory, (list->item_count + 1) * sizeof(*terms));

	for (uint32_t i = 0; terms != NULL && i < list->item_count; i++) {
		char *copy = rule_memory_copy(
			&parser->expression->memory, list->items[i].bytes, list->items[i].length);

		if (copy == NULL) {
			terms = NULL;
			break;
		}
		for (size_t k = 0; k < list->items[i].length; k++) {
			copy[k] =
				(char)(copy[k] >= 'A' && copy[k] <= 'Z' ? copy[k] | 0x20 : copy[k]);
		}
		terms[i] = (struct expression_text){copy, list->items[i].length};
	}
	if (terms == NULL) {
		expression_fail_memory(parser);
		return false;
	}
	node->items = terms;
	node->item_count = list->item_count;
	return true;
}

static bool set_regexes(struct expression_parser *parser, struct expression_node *node,
	const struct expression_node *list)
{
	for (uint32_t i = 0; i < list->item_count; i++) {
		if (!expression_add_regex(parser, node, &list->items[i])) {
			return false;
		}
	}
	return true;
}

static struct expression_node *call(struct expression_parser *parser, size_t offset,
	const struct function *function, struct expression_node *const *arguments, uint32_t count)
{
	struct expression_node *node;
	const struct expression_node *second;
	char reason[80];
	bool is_ok = true;

	if (!has_shape(function, arguments, count)) {
		snprintf(reason, sizeof(reason), "%s() has other values", function->name);
		return expression_fail(parser, offset, reason);
	}
	node = expression_node(parser, function->op, function->type);
	if (node == NULL ||
		expression_adopt(parser, node, arguments[0], arguments[count - 1]) == NULL) {
		return NULL;
	}
	second = arguments[count - 1];
	second = second->op == EXPRESSION_BINDING ? second->a : second;
	if (function->shape == SHAPE_STRING_TERMS) {
		is_ok = set_terms(parser, node, second);
	} else if (function->shape == SHAPE_STRING_REGEXES) {
		is_ok = set_regexes(parser, node, second);
	} else if (function->shape == SHAPE_STRING_REGEX) {
		is_ok = expression_add_regex(parser, node, &second->text);
	}
	return is_ok ? node : NULL;
}

/* A call of the function at `offset`; the current token is its parenthesis. */
static struct expression_node *parse_call(struct expression_parser *parser, size_t offset)
{
	const char *text = parser->tokens.text + offset;
	struct expression_text name = {text, 0};
	struct expression_node *arguments[ARGUMENTS_MAX];
	char reason[EXPRESSION_REASON_BYTES];
	uint32_t count;

	/* `filter.` is where the functions are at home, and may be left out. */
	name.length = strcspn(text, "( \t\r\n");
	if (name.length > 7 && memcmp(text, "filter.", 7) == 0) {
		name = (struct expression_text){text + 7, name.length - 7};
	}
	if (is_text(&name, "get")) {
		return parse_get(parser, offset);
	}
	if (!parse_arguments(parser, arguments, &count)) {
		return NULL;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (is_text(&name, functions[i].name)) {
			return call(parser, offset, &functions[i], arguments, count);
		}
	}
	snprintf(reason, sizeof(reason), "%.*s() is not supported, and drops nothing",
		(int)(name.length < 64 ? name.length : 64), name.bytes);
	return expression_unknown(parser, offset,
		is_text(&name, "failsTokenEfficiency") ? EXPRESSION_BOOL : EXPRESSION_ANY, reason);
}

/* The innermost binding of that name. */
static struct expression_node *find_binding(
	const struct expression_parser *parser, const struct expression_text *name)
{
	for (uint32_t i = parser->binding_count; i > 0; i--) {
		const struct expression_text *bound = &parser->bindings[i - 1].name;

		if (bound->length == name->length &&
			memcmp(bound->bytes, name->bytes, name->length) == 0) {
			return parser->bindings[i - 1].node;
		}
	}
	return NULL;
}

static struct expression_node *word_constant(
	struct expression_parser *parser, const struct expression_text *name)
{
	bool is_nil = is_text(name, "nil");
	struct expression_node *node =
		expression_node(parser, is_nil ? EXPRESSION_NIL : EXPRESSION_CONSTANT,
			is_nil ? EXPRESSION_ANY : EXPRESSION_BOOL);

	if (node != NULL) {
		node->truth = is_text(name, "true");
	}
	return node;
}

/* NAME or NAME.NAME, as far as no bracket follows. */
static bool take_names(struct expression_parser *parser)
{
	while (expression_tokens_are(&parser->tokens, ".") ||
		expression_tokens_are(&parser->tokens, "?.")) {
		if (!expression_next(parser)) {
			return false;
		}
		if (parser->tokens.kind != EXPRESSION_TOKEN_NAME) {
			expression_fail(parser, parser->tokens.offset, "a name is missing");
			return false;
		}
		if (!expression_next(parser)) {
			return false;
		}
	}
	return true;
}

struct expression_node *expression_name(struct expression_parser *parser)
{
	struct expression_text name = {parser->tokens.bytes, parser->tokens.byte_count};
	size_t offset = parser->tokens.offset;
	struct expression_node *bound = find_binding(parser, &name);
	char reason[EXPRESSION_REASON_BYTES];

	if (bound != NULL) {
		return expression_next(parser) ? bound : NULL;
	}
	if (is_text(&name, "finding") || is_text(&name, "attributes")) {
		return parse_member(parser);
	}
	if (!expression_next(parser)) {
		return NULL;
	}
	if (is_text(&name, "true") || is_text(&name, "false") || is_text(&name, "nil")) {
		return word_constant(parser, &name);
	}
	if (!take_names(parser)) {
		return NULL;
	}
	if (expression_tokens_are(&parser->tokens, "(")) {
		return parse_call(parser, offset);
	}
	snprintf(reason, sizeof(reason), "%.*s is not known, and drops nothing",
		(int)(name.length < 64 ? name.length : 64), name.bytes);
	return expression_unknown(parser, offset, EXPRESSION_ANY, reason);
}
