/* SPDX-License-Identifier: MIT */
/*
 * The results of compiling a set of rules, kept for the next time
 * (cache_folder.h): the widths of each rule and the databases of all. A set's
 * name is made from all that goes into it: expressions and flags, filters'
 * expressions, the libraries' versions, the processor.
 *
 * Small sets are compiled faster than they would be looked up.
 */
#ifndef PINION_TOOLS_SCAN_RULES_CACHE_H
#define PINION_TOOLS_SCAN_RULES_CACHE_H

#include "tools/scan/cache_folder.h"
#include "tools/scan/rules.h"

struct rules_cached {
	bool has_name; /* the set may be kept */
	struct cache_name name;
	uint8_t *entry; /* NULL: it is not there */
	size_t entry_bytes;
};

/* A database as bytes; none: length 0. */
struct rules_database {
	const uint8_t *bytes;
	size_t length;
};

enum rules_database_kind {
	RULES_DATABASE_BLOCK = 0,
	RULES_DATABASE_STREAM,
	RULES_DATABASE_COUNT,
};

/*
 * Looks the set up, for rules->cached. `versions` is about the matcher: a text
 * that changes when databases do. True: it is there, and its rules are
 * measured.
 */
bool rules_cached_find(struct rules *rules, const char *versions);

/* Whether the rules were there, so that none is compiled. */
bool rules_cached_has(const struct rules *rules);

/* False: no entry. */
bool rules_cached_database(const struct rules_cached *cached, enum rules_database_kind kind,
	struct rules_database *out_database);

/* Keeps the set: all its rules are measured. */
void rules_cached_store(const struct rules_cached *cached, const struct rules *rules,
	const struct rules_database databases[RULES_DATABASE_COUNT]);

/* Accepts NULL. */
void rules_cached_destroy(struct rules_cached *cached);

#endif
