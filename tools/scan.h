/* SPDX-License-Identifier: MIT */
/*
 * One run of `pinion scan`: the options (scan.c), the rules they ask for
 * (scan_rules.c), and the scan itself (scan_run.c).
 */
#ifndef PINION_TOOLS_SCAN_H
#define PINION_TOOLS_SCAN_H

#include "finding_lines.h"
#include "matcher.h"
#include "rules.h"

#include <pinion/scan.h>
#include <stdbool.h>

/* What to search for, as the command line says it. */
struct scan_patterns {
	const char **expressions; /* of -e, in order */
	uint32_t expression_count;
	const char **files; /* of --rules, in order */
	uint32_t file_count;
	bool are_literals; /* -F: those of -e */
	bool with_builtin; /* --builtin: in addition to the above */
};

struct scan_options {
	struct scan_patterns patterns;
	enum finding_format format;
	bool prints_patterns;
	bool has_stats;
	bool list_is_nul;
	const char *list_path;
	char *const *paths;
	int path_count;
	uint32_t window_bytes; /* 0: what fits the buffers */
	struct pinion_config runtime;
	struct pinion_scan_config scan;
};

/*
 * Collects and measures the rules. Reports each that is bad, and returns false
 * if any is. The rules are to be freed in either case.
 */
bool scan_rules_load(const struct scan_patterns *patterns, const struct matcher_ops *matcher,
	struct rules *out_rules);

/* Reports why a matcher refused the rules, naming the rule it is about. */
void scan_rules_complain(const struct rules *rules, const struct matcher_trouble *trouble);

/* Prints the patterns for `grep -E -f`; returns an exit status. */
int scan_rules_print(const struct rules *rules);

/* Scans; returns an exit status. */
int scan_run(const struct scan_options *options, const struct matcher_ops *matcher,
	const struct rules *rules);

#endif
