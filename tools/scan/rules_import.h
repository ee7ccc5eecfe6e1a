/* SPDX-License-Identifier: MIT */
/*
 * The steps of reading a TOML file of rules, shared by its three sources.
 */
#ifndef PINION_TOOLS_SCAN_RULES_IMPORT_H
#define PINION_TOOLS_SCAN_RULES_IMPORT_H

#include "tools/scan/rule_condition.h"
#include "tools/scan/rule_filter.h"
#include "tools/scan/rules_reader.h"
#include "tools/scan/rules_toml.h"

/* What a file of the command line and those it extends have for all rules. */
struct import_globals {
	struct rule_allowlists *allowlists;
	struct rule_condition_shared *condition;
	bool has_prefilter;
	bool has_filter;
	uint32_t expression_nodes; /* of all filters so far */
};

struct import {
	struct rules_reader *reader;
	const struct rules_source *source;
	struct import_globals *globals;
	const char *rule_id; /* which remarks are about; NULL: none */
	uint32_t unsupported_count;
	bool is_bad;
	int error; /* -ENOMEM or the like; then nothing more is read */
};

/* Remarks: "FILE:LINE: rule ID: …". */
void import_remark(struct import *import, enum rules_remark remark, uint32_t line,
	const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * The value of a key, if it is there and of that kind; else the default, with a
 * remark about a wrong kind.
 */
const struct toml_value *import_find(struct import *import, const struct toml_value *table,
	const char *key, enum toml_kind kind);
/* A string without NUL; NULL: not there, or bad. */
const struct toml_value *import_text(
	struct import *import, const struct toml_value *table, const char *key);
bool import_truth(struct import *import, const struct toml_value *table, const char *key);
double import_number(
	struct import *import, const struct toml_value *table, const char *key, double max);
/* Hands each string of a list to a function that returns 0 or an error. */
void import_texts(struct import *import, const struct toml_value *table, const char *key,
	int (*add)(void *list, const char *text), void *list);
/* The tables of an array of tables, or the one table; NULL at the end. */
const struct toml_value *import_next_table(
	const struct toml_value *value, const struct toml_value *previous);
/* Remarks on each key that is not in the list, which ends in NULL. */
void import_unknown_keys(
	struct import *import, const struct toml_value *table, const char *const *known);

/* Reads one of [[rules.allowlists]] or [[allowlists]] into lists. */
void import_allowlist(struct import *import, const struct toml_value *table,
	struct rule_allowlists *lists, bool is_global);

/* Sets what a table of [[rules]] has for a rule; what it has not stays. */
void import_rule_fields(struct import *import, const struct toml_value *table, struct rule *rule);

/* The rule's filter, which it gets now if it has none. NULL: no memory. */
struct rule_filter *import_filter(struct import *import, struct rule *rule);

/* Parses the expression of a key. False: there is none, or it is bad. */
bool import_expression(struct import *import, const struct toml_value *table, const char *key,
	struct expression *out_expression);

#endif
