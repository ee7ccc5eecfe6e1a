/* SPDX-License-Identifier: MIT */
/*
 * JSON as the cases need it: objects, arrays, strings without escapes other
 * than \" and \\, and numbers from 0 to 2^32 - 1. Strict: anything else, and
 * anything after the value, is an error with its line.
 */
#ifndef SIM_JSON_H
#define SIM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_kind { JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

#define JSON_TEXT_BYTES 128

struct json {
	enum json_kind kind;
	uint32_t number;
	char text[JSON_TEXT_BYTES]; /* of a string */
	char name[JSON_TEXT_BYTES]; /* of a member of an object */
	uint32_t line;
	struct json *children; /* of an array or an object, in order */
	struct json *next;     /* its sibling */
};

/* NULL on failure, with the reason in `error`. */
struct json *json_parse(const char *text, char *error, size_t error_size);
void json_free(struct json *value);

#endif
