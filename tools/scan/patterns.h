/* SPDX-License-Identifier: MIT */
/*
 * The rules a scan is asked for.
 */
#ifndef PINION_TOOLS_SCAN_PATTERNS_H
#define PINION_TOOLS_SCAN_PATTERNS_H

#include "tools/scan/matcher.h"
#include "tools/scan/rules.h"
#include "tools/scan/yara_defines.h"

#include <stdbool.h>
#include <stdint.h>

/* What to search for, as the command line says it. */
struct scan_patterns {
	const char **expressions; /* of -e, in order */
	uint32_t expression_count;
	const char **files; /* of --rules, in order */
	uint32_t file_count;
	bool are_literals;		  /* -F: those of -e */
	bool with_builtin;		  /* --builtin: in addition to the above */
	bool with_examples;		  /* --include-examples */
	bool is_strict;			  /* --strict-rules */
	bool is_uncached;		  /* --no-cache */
	bool is_silent;			  /* only errors are reported */
	bool names_all;			  /* every part that is not supported */
	bool has_one_file;		  /* a file of YARA rules may not include others */
	struct yara_defines yara_defines; /* --yara-define */
	/* A pipe of rules that brings nothing is given up; 0: never. */
	uint64_t silence_ns_max;
	uint32_t count_max;    /* --max-rules */
	uint64_t bytes_max;    /* --max-rule-bytes */
	uint64_t findings_max; /* --max-findings-per-file */
	/*
	 * --max-compile-time: from before rules are measured until
	 * compile_limit_end(). 0: no limit.
	 */
	uint64_t compile_ns_max;
};

/* What holds where the command line says nothing. */
#define SCAN_PATTERNS_STANDARD \
	((struct scan_patterns){ \
		.findings_max = 10000, \
		.count_max = 20000, /* regular expressions: 40 s on one core; strings: 1 s */ \
		.bytes_max = 16 << 20, \
		.compile_ns_max = UINT64_C(60000000000), \
		.silence_ns_max = UINT64_C(60000000000), \
	})

/* The matcher for these patterns; a lone literal has a matcher of its own. */
const struct matcher_ops *scan_rules_matcher(const struct scan_patterns *patterns);

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

#endif
