/* SPDX-License-Identifier: MIT */
/*
 * The tree of a TOML text: its bounds, its values by key. The
 * parser itself is rules_toml.cc.
 */
#include "tools/scan/rules_toml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void toml_free(struct toml_document *document)
{
	rule_memory_free(&document->memory);
	*document = (struct toml_document){0};
}

const struct toml_value *toml_find(const struct toml_value *table, const char *key)
{
	for (uint32_t i = 0; table->kind == TOML_TABLE && i < table->child_count; i++) {
		if (strcmp(table->children[i].key, key) == 0) {
			return &table->children[i];
		}
	}
	return NULL;
}

/* Where toml_check() is in a text. */
struct bounds {
	const char *text;
	size_t length;
	size_t position;
	uint32_t line;
	uint32_t depth; /* open brackets */
	uint32_t dots;	/* of the key so far */
	uint32_t values;
};

static bool has_quotes(const struct bounds *bounds, char quote)
{
	return bounds->length - bounds->position >= 3 && bounds->text[bounds->position] == quote &&
		bounds->text[bounds->position + 1] == quote &&
		bounds->text[bounds->position + 2] == quote;
}

/*
 * Skips a string whose opening quote is at `position`. A string that
 * the parser will refuse may end anywhere: the parser goes no further.
 */
static void skip_string(struct bounds *bounds, char quote)
{
	bool is_long = has_quotes(bounds, quote);

	bounds->position += is_long ? 3 : 1;
	while (bounds->position < bounds->length) {
		char byte = bounds->text[bounds->position];

		if (byte == '\n') {
			if (!is_long) {
				return;
			}
			bounds->line++;
		}
		if (is_long ? has_quotes(bounds, quote) : byte == quote) {
			bounds->position += is_long ? 3 : 1;
			break;
		}
		bounds->position += byte == '\\' && quote == '"' &&
				bounds->position + 1 < bounds->length &&
				bounds->text[bounds->position + 1] != '\n'
			? 2
			: 1;
	}
	/* A long string may end in two quotes of its own. */
	for (int i = 0; i < 2 && is_long && bounds->position < bounds->length; i++) {
		bounds->position += bounds->text[bounds->position] == quote;
	}
}

static void skip_comment(struct bounds *bounds)
{
	const char *end =
		memchr(bounds->text + bounds->position, '\n', bounds->length - bounds->position);

	bounds->position = end == NULL ? bounds->length : (size_t)(end - bounds->text);
}

/* Takes a byte that is in no string and no comment. */
static void take_byte(struct bounds *bounds, char byte)
{
	bool ends_key = strchr("\n=,[]{}", byte) != NULL;

	bounds->position++;
	bounds->line += byte == '\n';
	bounds->dots = ends_key ? 0 : bounds->dots + (byte == '.');
	bounds->values += ends_key && byte != '\n';
	if (byte == '[' || byte == '{') {
		bounds->depth++;
	} else if ((byte == ']' || byte == '}') && bounds->depth > 0) {
		bounds->depth--;
	}
}

int toml_check(const char *text, size_t length, struct toml_trouble *out_trouble)
{
	struct bounds bounds = {.text = text, .length = length, .line = 1};

	while (bounds.position < length) {
		char byte = text[bounds.position];

		if (byte == '"' || byte == '\'') {
			skip_string(&bounds, byte);
		} else if (byte == '#') {
			skip_comment(&bounds);
		} else if (byte != '\0') {
			take_byte(&bounds, byte);
		} else {
			bounds.position++;
		}
		if (bounds.depth > TOML_DEPTH_MAX || bounds.dots > TOML_DEPTH_MAX) {
			out_trouble->line = bounds.line;
			snprintf(out_trouble->reason, sizeof(out_trouble->reason),
				"tables or arrays are nested more than %d deep", TOML_DEPTH_MAX);
			return -EINVAL;
		}
		if (bounds.values > TOML_VALUES_MAX) {
			out_trouble->line = bounds.line;
			snprintf(out_trouble->reason, sizeof(out_trouble->reason),
				"more than %d values", TOML_VALUES_MAX);
			return -E2BIG;
		}
	}
	return 0;
}

int toml_parse(const char *text, size_t length, struct toml_document *out_document,
	struct toml_trouble *out_trouble)
{
	struct toml_document document = {0};
	int error = toml_check(text, length, out_trouble);

	if (error == 0) {
		error = toml_parse_checked(text, length, &document, out_trouble);
	}
	if (error != 0) {
		toml_free(&document);
		return error;
	}
	*out_document = document;
	return 0;
}

bool toml_is_known(void)
{
#if defined(HAVE_TOML)
	return true;
#else
	return false;
#endif
}

#if !defined(HAVE_TOML)
int toml_parse_checked(const char *text, size_t length, struct toml_document *document,
	struct toml_trouble *out_trouble)
{
	(void)text;
	(void)length;
	(void)document;
	(void)out_trouble;
	return -ENOSYS;
}
#endif
