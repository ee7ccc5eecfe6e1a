/* SPDX-License-Identifier: MIT */
/*
 * What a rule asks of its matches beyond the pattern: which part of the match
 * is the secret, how random it has to be, which texts and paths are allowed,
 * which other findings have to be near.
 *
 * A rule with a filter is a confirmed rule: Hyperscan finds where its matches
 * may be, PCRE2 (confirm.h) decides there, from the left, the first alternative
 * first. A rule without one is plain, and findings.h decides it as grep would.
 *
 * A reader of rules fills in a filter that rule_filter_create() has made, with
 * the functions below, and hands it to rules_set_filter(). Texts are copied.
 * Readers may use rule_filter_check() to name bad expressions by rule; all
 * are checked as the rules are measured.
 */
#ifndef PINION_TOOLS_SCAN_RULE_FILTER_H
#define PINION_TOOLS_SCAN_RULE_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confirm_regex; /* confirm.h */
struct confirm_room;

/* Whose expressions they are. */
enum rule_dialect {
	RULE_DIALECT_PCRE = 0, /* as pinion's own rules are: `^` and `$` mean every line */
	RULE_DIALECT_GO,       /* Go's regexp, RE2: `^` and `$` mean the whole text */
};

/* What the expressions of an allowlist are searched in. */
enum rule_target {
	RULE_TARGET_SECRET = 0,
	RULE_TARGET_MATCH,
	RULE_TARGET_LINE, /* the lines of the match, fewer than SNIPPET_CONTEXT bytes beyond it */
};

/* An expression of a filter; compiled when it is first needed. */
struct rule_regex {
	char *pattern;
	struct confirm_regex *compiled; /* [W:one of the workers R:any] NULL: not yet */
};

/* Growable lists. Zero-initialised. */
struct rule_regexes {
	struct rule_regex *items;
	uint32_t count;
	uint32_t capacity;
};

struct rule_words {
	char **items;
	uint32_t count;
	uint32_t capacity;
};

/* One list of exceptions: a finding within it is dropped. */
struct rule_allowlist {
	char *description; /* NULL: none */
	/* All kinds that it has must hold (AND); else any one (OR). */
	bool needs_all;
	enum rule_target target; /* of `regexes` */
	struct rule_regexes regexes;
	struct rule_regexes paths;   /* over the path as it is reported */
	struct rule_words stopwords; /* within the secret, whatever their case */
	struct rule_words commits;   /* whole ids; a file is of none */
};

/*
 * Allowlists, of one rule, or of all rules of a file, which share them: the
 * number of their owners is counted.
 */
struct rule_allowlists {
	struct rule_allowlist *items;
	uint32_t count;
	uint32_t capacity;
	uint32_t owner_count;
	bool is_checked; /* its expressions compile */
};

/* A finding of another rule that has to be near. */
struct rule_companion {
	char *rule_id;
	uint32_t rule; /* its index; set by rules_resolve(), UINT32_MAX before */
	bool has_lines;
	bool has_columns;
	/* Between the lines, and the columns, in which they start. */
	uint32_t within_lines;
	uint32_t within_columns;
};

/* A finding as a condition sees it. Texts are not NUL terminated. */
struct rule_subject {
	const char *rule_id;
	const char *path; /* NUL terminated */
	size_t path_bytes;
	const uint8_t *match;
	size_t match_bytes;
	const uint8_t *secret;
	size_t secret_bytes;
	const uint8_t *line; /* the lines of the match, cut as RULE_TARGET_LINE is */
	size_t line_bytes;
	bool line_is_cut; /* it starts further left */
	bool line_end_is_cut;
	double entropy;	    /* of the secret, bits a byte */
	const char *commit; /* that has brought the file; NULL: none */
	/* Set by rule_filter_decide(): kept, but its commit may have it. */
	bool is_of_allowed_commit;
};

/* Further conditions, such as betterleaks' filter expressions. */
struct rule_condition {
	void *object; /* NULL: there is none */
	/* Whether the finding is one. On several workers at a time. */
	bool (*keeps)(const void *object, const struct rule_subject *subject);
	void (*destroy)(void *object);
};

struct rule_filter {
	enum rule_dialect dialect;
	/* Group that is the secret; 0: the first not empty one, or all. */
	uint32_t secret_group;
	bool secret_is_match; /* whatever groups there are */
	/* A secret with no more bits a byte is dropped. 0: none is. */
	double entropy_min;
	struct rule_words keywords; /* documentation: the pattern decides alone */
	struct rule_regex path;	    /* only files with such a path; NULL: all */
	struct rule_allowlists *own;
	struct rule_allowlists *shared; /* NULL: none */
	struct rule_condition condition;
	struct rule_companion *companions; /* a finding needs each of them */
	uint32_t companion_count;
	uint32_t companion_capacity;
	bool skips_report; /* its findings are only companions of others */
	char *description; /* NULL: none */
	struct rule_words tags;
	/* Set as the rule is measured. */
	struct confirm_regex *pattern;
	uint32_t repeat_level; /* regex_dialect.h */
};

/* Makes an empty filter; NULL: no memory. */
struct rule_filter *rule_filter_create(enum rule_dialect dialect);
/* Accepts NULL. Gives up its share of `shared`, too. */
void rule_filter_destroy(struct rule_filter *filter);

/* Each returns 0 or -ENOMEM, and copies the text. */
int rule_words_add(struct rule_words *words, const char *word);
int rule_regexes_add(struct rule_regexes *regexes, const char *pattern);
int rule_text_set(char **text, const char *value);
int rule_filter_add_companion(struct rule_filter *filter, const struct rule_companion *companion);

/*
 * A new list at the end of the rule's own or of shared ones, zeroed, the
 * lists'; valid until the next call. NULL: no memory.
 */
struct rule_allowlist *rule_allowlists_add(struct rule_allowlists *lists);
/* With one owner. NULL: no memory. */
struct rule_allowlists *rule_allowlists_create(void);
/* Another owner of the same lists, which it returns. */
struct rule_allowlists *rule_allowlists_share(struct rule_allowlists *lists);
/* One owner less; accepts NULL. */
void rule_allowlists_release(struct rule_allowlists *lists);

enum { RULE_FILTER_REASON_BYTES = 256 };

struct rule; /* rules.h */

/*
 * Makes a plain rule a confirmed one, whose secret is the match: for a pattern
 * that Hyperscan does not know and PCRE2 does. Returns 0 or -ENOMEM.
 */
int rule_make_confirmed(struct rule *rule);

/*
 * Translates the pattern of a rule with a filter, with these bounds of repeats
 * or narrower ones, and sets its widths; nothing is compiled. Returns 0 or a
 * negative errno.
 */
int rule_filter_translate(struct rule *rule, uint32_t repeat_level);

/*
 * Translates the pattern of a rule with a filter, sets its widths, and checks
 * it and the filter's own expressions. Errors as below, and -ENOSYS.
 */
int rule_filter_measure(struct rule *rule, char out_reason[RULE_FILTER_REASON_BYTES]);

/*
 * Compiles each expression of the filter once. Returns 0, -ENOMEM, or -EINVAL
 * with the reason of the first bad one, which quotes it.
 */
int rule_filter_check(struct rule_filter *filter, char out_reason[RULE_FILTER_REASON_BYTES]);

/*
 * What the filter says of a finding whose subject has all but its entropy,
 * which is set. Returns 1: it is one, 0: it is dropped.
 * Errors: -ENOMEM; -ELOOP: an expression took too many steps.
 */
int rule_filter_decide(
	struct rule_filter *filter, struct confirm_room *room, struct rule_subject *subject);

/* Whether findings in files of this path may count. Errors as above. */
int rule_filter_takes_path(
	struct rule_filter *filter, struct confirm_room *room, const char *path, size_t path_bytes);

/*
 * Searches a text for the expressions, in their order. Returns 1 with the first
 * match of the first expression that has any; 0: there is none. Errors as
 * above, and those of rule_filter_check().
 */
int rule_regexes_search(enum rule_dialect dialect, struct rule_regexes *regexes,
	struct confirm_room *room, const uint8_t *text, size_t length, size_t *out_start,
	size_t *out_end);
/* As rule_filter_check(), of a list. */
int rule_regexes_check(enum rule_dialect dialect, struct rule_regexes *regexes,
	char out_reason[RULE_FILTER_REASON_BYTES]);

/* Shannon's, in bits a byte. */
double rule_entropy(const uint8_t *bytes, size_t length);

#endif
