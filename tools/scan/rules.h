/* SPDX-License-Identifier: MIT */
/*
 * What a scan looks for: rules, each a name and a pattern, from the built-in
 * list, a rules file or the command line.
 */
#ifndef PINION_TOOLS_SCAN_RULES_H
#define PINION_TOOLS_SCAN_RULES_H

#include "tools/scan/rule_memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rule_filter;  /* rule_filter.h */
struct rules_cached; /* rules_cache.h */
struct yara_rules;   /* yara_rules.h */

/* A pattern that no length of text can be too long for. */
#define RULE_WIDTH_UNBOUNDED UINT32_MAX

/* Of YARA's rules: no longer than a file that is searched for them. */
#define RULE_WIDTH_WHOLE_FILE (UINT32_MAX - 1)

struct rule {
	char *id;
	char *pattern; /* NUL terminated as well */
	size_t pattern_bytes;
	bool is_literal;
	bool leaves_examples_out; /* examples.h */
	const char *file;	  /* rules file it comes from, NULL: -e or built in */
	uint32_t line;
	/* Bytes the shortest and the longest match take; set by the matcher. */
	uint32_t min_width;
	uint32_t max_width;
	/* The rule's; NULL: a plain rule, whose matches are findings. */
	struct rule_filter *filter;
	bool is_companion; /* another rule's filter names it; rules_resolve() */
	bool is_yara;	   /* libyara searches for it; it has no pattern */
	char *description; /* of such a rule; NULL: none */
};

/* Zero-initialise. */
struct rules {
	struct rule *items;
	uint32_t count;
	uint32_t capacity;
	uint32_t yara_count; /* of YARA: in `items` after the `count` others */
	uint64_t bytes;	     /* of all patterns */
	/* Limits, 0: none. They are set before the first rule is added. */
	uint32_t count_max;
	uint64_t bytes_max;
	/*
	 * Findings of one rule in one file, 0: no limit. A limit also bounds
	 * the work for dense matches: RULES_WORK_MAX.
	 */
	uint64_t findings_max;
	/*
	 * Findings of plain rules carry their text, too. Set before the engine
	 * is made.
	 */
	bool keeps_text;
	bool has_companions;	     /* a filter names other rules; rules_resolve() */
	bool are_builtin;	     /* all of the built-in ones, and no other */
	struct rules_cached *cached; /* NULL: not looked up */
	struct yara_rules *yara;     /* NULL: there are none */
	/* Parts of its files that pinion does not support. */
	uint32_t unsupported_count;
	/* Names of files that others extend. */
	struct rule_memory memory;
};

/*
 * The widths of all matches (one for each end) of a rule in a file, together:
 * finding where they start costs up to some 10 ns for each byte of that.
 */
#define RULES_WORK_MAX ((uint64_t)1 << 29)

/* Rules that have reached a limit in a file. All zero: none. */
struct rules_over {
	uint64_t *bits; /* [W:a lock of the file R:any] NULL: none */
	uint32_t count; /* [W:a lock of the file R:any] */
};

/* With those of YARA. */
static inline uint32_t rules_total(const struct rules *rules)
{
	return rules->count + rules->yara_count;
}

static inline bool rules_over_has(const struct rules_over *over, uint32_t rule)
{
	const uint64_t *bits = __atomic_load_n(&over->bits, __ATOMIC_ACQUIRE);

	return bits != NULL &&
		(__atomic_load_n(&bits[rule / 64], __ATOMIC_RELAXED) >> (rule % 64) & 1) != 0;
}

/*
 * At most this number of ends of matches of one rule, in order, is needed for
 * `findings_max` findings and one more, whatever came before: each finding
 * overlaps at most twice its width of others.
 */
static inline uint64_t rules_ends_max(const struct rules *rules, const struct rule *rule)
{
	uint64_t width = rule->max_width;

	if (rules->findings_max == 0 || rule->max_width == RULE_WIDTH_UNBOUNDED ||
		rules->findings_max > UINT64_MAX / 4 / width) {
		return UINT64_MAX;
	}
	return 2 * width * (rules->findings_max + 4);
}

struct rule_builtin {
	const char *id;
	const char *description; /* of what it finds, a few words */
	const char *pattern;
};

/* All built-in rules, in order. Called by the first thread alone. */
const struct rule_builtin *rules_builtin(uint32_t *out_count);

/*
 * Each returns 0, -ENOMEM, or -E2BIG for a rule beyond `count_max` or
 * `bytes_max`, which rules_limit_reason() puts into words. Texts are copied;
 * `file` must outlive the rules.
 */
int rules_add(struct rules *rules, const char *id, const char *pattern, size_t pattern_bytes,
	bool is_literal);
int rules_add_builtin(struct rules *rules, bool with_examples);

/* After all others. `description` NULL: it has none. */
int rules_add_yara(struct rules *rules, const char *id, const char *description, const char *file);

/*
 * Makes the rule added last a confirmed one. Takes over the filter.
 */
void rules_set_filter(struct rules *rules, struct rule_filter *filter);

/*
 * After the last rule: finds the rules that companions name. Returns 0, or
 * -EINVAL for the first missing rule: *out_missing is its name,
 * *out_rule the rule that names it. Or -ENOMEM.
 */
int rules_resolve(struct rules *rules, uint32_t *out_rule, const char **out_missing);

enum { RULES_REASON_BYTES = 160 };

/* Writes which limit a rule with a pattern of that length exceeds. */
void rules_limit_reason(
	const struct rules *rules, size_t pattern_bytes, char out_reason[RULES_REASON_BYTES]);

/* Gives a rule another pattern. Returns 0, -ENOMEM or -E2BIG. */
int rules_set_pattern(
	struct rules *rules, uint32_t index, const char *pattern, size_t pattern_bytes);

/* Removes rules from `first` on: those that `is_removed` marks. */
void rules_remove(struct rules *rules, uint32_t first, const bool *is_removed);

void rules_free(struct rules *rules);

#endif
