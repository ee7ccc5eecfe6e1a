/* SPDX-License-Identifier: MIT */
/*
 * Words of a filter expression, in the spelling of expr-lang.org.
 */
#ifndef PINION_TOOLS_SCAN_EXPRESSION_TOKENS_H
#define PINION_TOOLS_SCAN_EXPRESSION_TOKENS_H

#include "tools/scan/rule_memory.h"

#include <stdbool.h>
#include <stddef.h>

enum expression_token {
	EXPRESSION_TOKEN_END,
	EXPRESSION_TOKEN_NUMBER,
	EXPRESSION_TOKEN_STRING, /* "", '' or ``; without quotes and escapes */
	EXPRESSION_TOKEN_NAME,
	EXPRESSION_TOKEN_MARK, /* an operator or a bracket */
};

struct expression_tokens {
	const char *text;
	size_t length;
	size_t position; /* after the current token */
	struct rule_memory *memory;
	/* The current one. */
	enum expression_token kind;
	size_t offset;	   /* where it begins */
	const char *bytes; /* of names and marks in the text, of strings in `memory` */
	size_t byte_count;
	double number;
};

/*
 * Goes to the next token, the first one at the start. Returns NULL, or the
 * reason why there is none; `offset` is where it would begin.
 */
const char *expression_tokens_next(struct expression_tokens *tokens);

/* Whether the current token is that mark or name. */
bool expression_tokens_are(const struct expression_tokens *tokens, const char *spelling);

#endif
