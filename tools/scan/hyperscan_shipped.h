/* SPDX-License-Identifier: MIT */
/*
 * Databases and widths of the built-in rules that are part of the program, so
 * that a scan with those rules starts without compiling them (some 100 ms), and
 * finds starts of their matches without compiling that (up to 130 ms a rule).
 *
 * tools/scan/ship_rules.c compiles them while the program is built, and with
 * them the patterns of the test of the library, once for each kind of
 * processor. They are used if the library is the one they were compiled with
 * and the processor one of those; if not, a scan compiles the rules as it does
 * any others.
 */
#ifndef PINION_TOOLS_SCAN_HYPERSCAN_SHIPPED_H
#define PINION_TOOLS_SCAN_HYPERSCAN_SHIPPED_H

#include <hs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What hs_compile_multi() takes. */
struct hyperscan_list {
	const char **expressions;
	unsigned *flags;
	unsigned *ids;
	unsigned count;
	unsigned mode;
};

/* Where a database is to run. */
struct hyperscan_target {
	const char *version;		 /* hs_version() */
	unsigned long long cpu_features; /* hs_populate_platform() */
};

struct hyperscan_target hyperscan_target_here(void);
/* What every processor of this kind runs: for databases of starts. */
struct hyperscan_target hyperscan_target_least(void);

/*
 * The database of exactly this list, for that target: the caller's, to be freed
 * by hs_free_database(). NULL: there is none; the caller compiles it.
 */
hs_database_t *hyperscan_shipped_find(
	const struct hyperscan_list *list, const struct hyperscan_target *target);

/* Whether the built-in rules are there for that target. */
bool hyperscan_shipped_has_rules(const struct hyperscan_target *target);

/* Of the matches of an expression, in bytes, as hs_expression_info() has it. */
struct hyperscan_widths {
	unsigned min;
	unsigned max;
};

/* False: this expression is not one of the built-in rules, or as above. */
bool hyperscan_shipped_measure(const char *expression, const struct hyperscan_target *target,
	struct hyperscan_widths *out_widths);

/* ---- the table that ship_rules.c writes ---- */

struct hyperscan_shipped_rule {
	const char *expression;
	struct hyperscan_widths widths;
};

struct hyperscan_shipped_database {
	unsigned long long cpu_features;
	const unsigned char *bytes; /* hs_serialize_database() */
	size_t size;
};

/* Expressions of the same flags, numbered from 0. */
struct hyperscan_shipped_list {
	const char *const *expressions;
	unsigned count;
	unsigned flags;
	unsigned mode;
	const struct hyperscan_shipped_database *databases;
	unsigned database_count;
};

/*
 * The first list are the built-in rules: all are bounded, so one database of
 * the mode for blocks is all that they need. The next are the sets of
 * selftest.h, each as blocks and as a stream. The others have one expression
 * each, that of the starts of a rule (hyperscan_starts.h), and one database.
 */
struct hyperscan_shipped {
	const char *version; /* NULL: nothing is shipped */
	const struct hyperscan_shipped_rule *rules;
	unsigned rule_count;
	const struct hyperscan_shipped_list *lists;
	unsigned list_count;
};

extern const struct hyperscan_shipped hyperscan_shipped;

#endif
