/* SPDX-License-Identifier: MIT */
/*
 * Cuts a filter expression into words.
 */
#include "tools/scan/expression_tokens.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool is_name_byte(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
		is_digit(byte);
}

/* The byte that many after the position; NUL after the end. */
static char peek(const struct expression_tokens *tokens, size_t ahead)
{
	return tokens->length - tokens->position > ahead ? tokens->text[tokens->position + ahead]
							 : '\0';
}

/* White space and comments. */
static void skip_blanks(struct expression_tokens *tokens)
{
	while (tokens->position < tokens->length) {
		char byte = peek(tokens, 0);
		const char *rest = tokens->text + tokens->position;
		size_t left = tokens->length - tokens->position;

		if (byte == '/' && peek(tokens, 1) == '/') {
			const char *end = memchr(rest, '\n', left);

			tokens->position =
				end == NULL ? tokens->length : (size_t)(end - tokens->text);
		} else if (byte == '/' && peek(tokens, 1) == '*') {
			const char *end = memmem(rest + 2, left - 2, "*/", 2);

			tokens->position =
				end == NULL ? tokens->length : (size_t)(end + 2 - tokens->text);
		} else if (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r') {
			tokens->position++;
		} else {
			return;
		}
	}
}

static size_t append_utf8(char *out, uint32_t code)
{
	if (code < 0x80) {
		out[0] = (char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (char)(0xc0 | code >> 6);
		out[1] = (char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (char)(0xe0 | code >> 12);
		out[1] = (char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | code >> 18);
	out[1] = (char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (char)(0x80 | (code & 0x3f));
	return 4;
}

static int hex_digit(char byte)
{
	if (is_digit(byte)) {
		return byte - '0';
	}
	if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f') {
		return (byte | 0x20) - 'a' + 10;
	}
	return -1;
}

/* Takes `count` hexadecimal digits; false: there are fewer. */
static bool take_hex(struct expression_tokens *tokens, int count, uint32_t *out_code)
{
	*out_code = 0;
	for (int i = 0; i < count; i++) {
		int digit = hex_digit(peek(tokens, 0));

		if (digit < 0) {
			return false;
		}
		*out_code = *out_code << 4 | (uint32_t)digit;
		tokens->position++;
	}
	return true;
}

/* After a backslash. Returns the bytes written, 0: no such escape. */
static size_t take_escape(struct expression_tokens *tokens, char *out)
{
	static const char names[] = "abfnrtv\\'\"`";
	static const char bytes[] = "\a\b\f\n\r\t\v\\'\"`";
	char name = peek(tokens, 0);
	const char *known = name == '\0' ? NULL : strchr(names, name);
	uint32_t code;

	tokens->position += name != '\0';
	if (known != NULL) {
		*out = bytes[known - names];
		return 1;
	}
	if (name == 'x' && take_hex(tokens, 2, &code)) {
		*out = (char)code;
		return 1;
	}
	if ((name == 'u' && take_hex(tokens, 4, &code)) ||
		(name == 'U' && take_hex(tokens, 8, &code) && code < 0x110000)) {
		return append_utf8(out, code);
	}
	return 0;
}

/* Bytes from the opening quote to the end of the string. */
static size_t string_bytes(const struct expression_tokens *tokens, char quote)
{
	size_t ahead = 1;

	while (tokens->position + ahead < tokens->length && peek(tokens, ahead) != quote) {
		ahead += quote != '`' && peek(tokens, ahead) == '\\' ? 2 : 1;
	}
	return ahead;
}

static const char *take_string(struct expression_tokens *tokens, char quote)
{
	/* No escape is shorter than the bytes it means. */
	char *out = rule_memory_take(tokens->memory, string_bytes(tokens, quote) + 1);
	size_t count = 0;

	if (out == NULL) {
		return "out of memory";
	}
	tokens->position++;
	while (tokens->position < tokens->length) {
		char byte = peek(tokens, 0);

		tokens->position++;
		if (byte == quote) {
			tokens->kind = EXPRESSION_TOKEN_STRING;
			tokens->bytes = out;
			tokens->byte_count = count;
			return NULL;
		}
		if (byte == '\\' && quote != '`') {
			size_t written = take_escape(tokens, out + count);

			if (written == 0) {
				return "a string has an escape that is not known";
			}
			count += written;
		} else {
			out[count++] = byte;
		}
	}
	return "a string has no end";
}

static const char *take_number(struct expression_tokens *tokens)
{
	char digits[64];
	size_t count = 0;
	char *end;

	while (count + 1 < sizeof(digits)) {
		char byte = peek(tokens, 0);
		bool is_exponent = (byte | 0x20) == 'e' &&
			(is_digit(peek(tokens, 1)) ||
				((peek(tokens, 1) == '-' || peek(tokens, 1) == '+') &&
					is_digit(peek(tokens, 2))));

		if (!is_digit(byte) && byte != '_' && !is_exponent &&
			(byte != '.' || !is_digit(peek(tokens, 1)))) {
			break;
		}
		if (byte != '_') {
			digits[count++] = byte;
		}
		tokens->position++;
		if (is_exponent && !is_digit(peek(tokens, 0))) {
			digits[count++] = peek(tokens, 0);
			tokens->position++;
		}
	}
	digits[count < sizeof(digits) ? count : sizeof(digits) - 1] = '\0';
	tokens->number = strtod(digits, &end);
	tokens->kind = EXPRESSION_TOKEN_NUMBER;
	return *end != '\0' || is_name_byte(peek(tokens, 0)) ? "a number is not understood" : NULL;
}

static const char *take_mark(struct expression_tokens *tokens)
{
	static const char *const pairs[] = {
		"&&", "||", "==", "!=", "<=", ">=", "??", "?.", "**", ".."};
	size_t length = 1;

	if (strchr("&|=!<>?.*+-/%()[]{},:;^", peek(tokens, 0)) == NULL) {
		return "a character is not understood";
	}
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (peek(tokens, 0) == pairs[i][0] && peek(tokens, 1) == pairs[i][1]) {
			length = 2;
		}
	}
	tokens->kind = EXPRESSION_TOKEN_MARK;
	tokens->bytes = tokens->text + tokens->position;
	tokens->byte_count = length;
	tokens->position += length;
	return NULL;
}

const char *expression_tokens_next(struct expression_tokens *tokens)
{
	char byte;

	skip_blanks(tokens);
	tokens->offset = tokens->position;
	tokens->byte_count = 0;
	if (tokens->position == tokens->length) {
		tokens->kind = EXPRESSION_TOKEN_END;
		return NULL;
	}
	byte = peek(tokens, 0);
	if (byte == '"' || byte == '\'' || byte == '`') {
		return take_string(tokens, byte);
	}
	if (is_digit(byte) || (byte == '.' && is_digit(peek(tokens, 1)))) {
		return take_number(tokens);
	}
	if (!is_name_byte(byte)) {
		return byte == '\0' ? "a character is not understood" : take_mark(tokens);
	}
	tokens->kind = EXPRESSION_TOKEN_NAME;
	tokens->bytes = tokens->text + tokens->position;
	while (is_name_byte(peek(tokens, 0))) {
		tokens->byte_count++;
		tokens->position++;
	}
	return NULL;
}

bool expression_tokens_are(const struct expression_tokens *tokens, const char *spelling)
{
	return (tokens->kind == EXPRESSION_TOKEN_MARK || tokens->kind == EXPRESSION_TOKEN_NAME) &&
		tokens->byte_count == strlen(spelling) &&
		memcmp(tokens->bytes, spelling, tokens->byte_count) == 0;
}
