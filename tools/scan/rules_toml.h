/* SPDX-License-Identifier: MIT */
/*
 * TOML as a tree of C: the way from the text of a file to values with the lines
 * they begin at.
 *
 * A kept C++ library parses, in rules_toml.cc alone; no exception leaves that
 * file. The text is a stranger's: toml_check() bounds the depth of the tree and
 * the number of its values before the library sees it, since trees are walked
 * and destroyed recursively and a value takes a hundred times its bytes.
 */
#ifndef PINION_TOOLS_SCAN_RULES_TOML_H
#define PINION_TOOLS_SCAN_RULES_TOML_H

#include "tools/scan/rule_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	/* Brackets in one another, and the dots of a key. */
	TOML_DEPTH_MAX = 16,
	/* Strings, numbers, arrays, tables: some 200 bytes each. */
	TOML_VALUES_MAX = 1000000,
};

enum toml_kind {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOLEAN,
	TOML_TIME, /* dates and times: no rule has any */
};

struct toml_value {
	enum toml_kind kind;
	uint32_t line;	 /* of the file, from 1 */
	const char *key; /* in its table, NUL-terminated; NULL in an array */
	/* TOML_STRING; NUL-terminated as well. */
	const char *text;
	size_t length;
	/* Line of the first byte of `text`: ''' may have a newline before. */
	uint32_t text_line;
	uint32_t child_count; /* tables and arrays; a table's are sorted by key */
	struct toml_value *children;
	double number; /* TOML_FLOAT and TOML_INTEGER */
	int64_t integer;
	bool truth; /* TOML_BOOLEAN */
};

struct toml_document {
	struct toml_value root; /* a table */
	struct rule_memory memory;
};

enum { TOML_REASON_BYTES = 200 };

struct toml_trouble {
	uint32_t line;
	char reason[TOML_REASON_BYTES];
};

/* False: the program was built without the library. */
bool toml_is_known(void);

/*
 * Parses a text. Returns 0; -EINVAL or -E2BIG with *out_trouble filled;
 * -ENOMEM; -ENOSYS without the library. The document is to be freed after
 * success alone.
 */
int toml_parse(const char *text, size_t length, struct toml_document *out_document,
	struct toml_trouble *out_trouble);

void toml_free(struct toml_document *document);

/* The value of that key, NULL if there is none or `table` is no table. */
const struct toml_value *toml_find(const struct toml_value *table, const char *key);

/*
 * The first step of toml_parse(): 0, -EINVAL for a tree that is too deep,
 * -E2BIG for one of too many values.
 */
int toml_check(const char *text, size_t length, struct toml_trouble *out_trouble);

/*
 * The second step, of rules_toml.cc: fills the document, whose memory the
 * caller frees also after a failure.
 */
int toml_parse_checked(const char *text, size_t length, struct toml_document *document,
	struct toml_trouble *out_trouble);

#endif
