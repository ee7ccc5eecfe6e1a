/* SPDX-License-Identifier: MIT */
/*
 * Writing expressions. Knows only as much of their grammar as it takes to
 * distinguish an anchor from a byte: escapes, \Q…\E and classes.
 */
#include "tools/scan/hyperscan_expression.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char never[] = "(?:\\b\\B)";

/* Length of the class that begins with the `[` at `text`. */
static size_t class_length(const char *text)
{
	size_t i = 1;

	i += text[i] == '^';
	i += text[i] == ']';
	while (text[i] != '\0' && text[i] != ']') {
		const char *end;

		if (text[i] == '\\' && text[i + 1] != '\0') {
			i += 2;
		} else if (text[i] == '[' && text[i + 1] == ':' &&
			(end = strstr(text + i + 2, ":]")) != NULL) {
			i = (size_t)(end - text) + 2;
		} else {
			i++;
		}
	}
	return i + (text[i] == ']');
}

static size_t quoted_length(const char *text)
{
	const char *end = strstr(text, "\\E");

	return end != NULL ? (size_t)(end - text) + 2 : strlen(text);
}

/* Length of the token at `text`: a class, an escape, a quotation or a byte. */
static size_t token_length(const char *text)
{
	if (text[0] == '[') {
		return class_length(text);
	}
	if (text[0] == '\\' && text[1] == 'Q') {
		return quoted_length(text);
	}
	return text[0] == '\\' && text[1] != '\0' ? 2 : 1;
}

static bool is_impossible(const char *token, size_t length, enum hyperscan_context context)
{
	if (length == 2 && token[0] == '\\' && token[1] == 'A') {
		return context != HYPERSCAN_CONTEXT_FILE;
	}
	return length == 1 && token[0] == '^' && context == HYPERSCAN_CONTEXT_INSIDE;
}

char *hyperscan_expression_anchored(const char *expression, enum hyperscan_context context)
{
	const char *before = context == HYPERSCAN_CONTEXT_INSIDE ? "\\A(?s:.)(?:" : "\\A(?:";
	char *anchored = malloc(strlen(before) + strlen(expression) * sizeof(never) + 2);
	char *end = anchored;

	if (anchored == NULL) {
		return NULL;
	}
	end = stpcpy(end, before);
	while (expression[0] != '\0') {
		size_t length = token_length(expression);

		if (is_impossible(expression, length, context)) {
			end = stpcpy(end, never);
		} else {
			memcpy(end, expression, length);
			end += length;
		}
		expression += length;
	}
	stpcpy(end, ")");
	return anchored;
}
