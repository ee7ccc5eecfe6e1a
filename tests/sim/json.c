/* SPDX-License-Identifier: MIT */
/*
 * A recursive descent over the text.
 */
#include "tests/sim/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 8 };

struct parser {
	const char *at;
	uint32_t line;
	uint32_t depth;
	char *error;
	size_t error_size;
};

static bool fail(struct parser *parser, const char *what)
{
	snprintf(parser->error, parser->error_size, "line %u: %s", parser->line, what);
	return false;
}

static void skip_space(struct parser *parser)
{
	for (; *parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n'; parser->at++) {
		parser->line += *parser->at == '\n' ? 1 : 0;
	}
}

static bool take(struct parser *parser, char wanted)
{
	skip_space(parser);
	if (*parser->at != wanted) {
		return false;
	}
	parser->at++;
	return true;
}

static bool parse_text(struct parser *parser, char *out)
{
	size_t length = 0;

	if (!take(parser, '"')) {
		return fail(parser, "expected a string");
	}
	for (; *parser->at != '"'; parser->at++) {
		if (*parser->at == '\\') {
			parser->at++;
			if (*parser->at != '"' && *parser->at != '\\') {
				return fail(parser, "unknown escape");
			}
		}
		if ((unsigned char)*parser->at < ' ' || length + 1 == JSON_TEXT_BYTES) {
			return fail(parser, "a string does not end");
		}
		out[length] = *parser->at;
		length++;
	}
	out[length] = '\0';
	parser->at++;
	return true;
}

static bool parse_number(struct parser *parser, uint32_t *out)
{
	uint64_t number = 0;
	const char *first = parser->at;

	for (; isdigit((unsigned char)*parser->at); parser->at++) {
		number = number * 10 + (uint64_t)(*parser->at - '0');
		if (number > UINT32_MAX) {
			return fail(parser, "a number is too large");
		}
	}
	if (parser->at == first || (*first == '0' && parser->at - first > 1) ||
		strchr(".eE", *parser->at) != NULL) {
		return fail(parser, "expected a whole number, a string, an array or an object");
	}
	*out = (uint32_t)number;
	return true;
}

static bool parse_value(struct parser *parser, struct json *value);

static bool parse_children(struct parser *parser, struct json *value, char end)
{
	struct json **last = &value->children;

	if (take(parser, end)) {
		return true;
	}
	do {
		struct json *child = calloc(1, sizeof(*child));

		if (child == NULL) {
			return fail(parser, "out of memory");
		}
		*last = child;
		last = &child->next;
		if (end == '}' &&
			(!parse_text(parser, child->name) ||
				(!take(parser, ':') && !fail(parser, "expected a colon")))) {
			return false;
		}
		if (!parse_value(parser, child)) {
			return false;
		}
	} while (take(parser, ','));
	return take(parser, end) || fail(parser, "expected a comma or the end");
}

static bool parse_value(struct parser *parser, struct json *value)
{
	bool is_good;

	skip_space(parser);
	value->line = parser->line;
	if (*parser->at == '"') {
		value->kind = JSON_STRING;
		return parse_text(parser, value->text);
	}
	if (*parser->at != '{' && *parser->at != '[') {
		value->kind = JSON_NUMBER;
		return parse_number(parser, &value->number);
	}
	if (parser->depth == DEPTH_MAX) {
		return fail(parser, "nested too deeply");
	}
	value->kind = *parser->at == '{' ? JSON_OBJECT : JSON_ARRAY;
	parser->at++;
	parser->depth++;
	is_good = parse_children(parser, value, value->kind == JSON_OBJECT ? '}' : ']');
	parser->depth--;
	return is_good;
}

struct json *json_parse(const char *text, char *error, size_t error_size)
{
	struct parser parser = {.at = text, .line = 1, .error = error, .error_size = error_size};
	struct json *value = calloc(1, sizeof(*value));

	if (value == NULL) {
		return NULL;
	}
	if (parse_value(&parser, value)) {
		skip_space(&parser);
		if (*parser.at == '\0') {
			return value;
		}
		fail(&parser, "something follows the value");
	}
	json_free(value);
	return NULL;
}

void json_free(struct json *value)
{
	while (value != NULL) {
		struct json *next = value->next;

		json_free(value->children);
		free(value);
		value = next;
	}
}
