/* SPDX-License-Identifier: MIT */
/*
 * PCRE2: decides where a confirmed rule matches, around the places that
 * Hyperscan has found, and searches short texts for the expressions of filters.
 *
 * Expressions are compiled when they are first needed, which most never are,
 * for the machine (JIT) where PCRE2 can; on any worker, each once. What a
 * search may cost is bounded: a match that takes more than MATCH_STEPS_MAX
 * steps is given up. Of a part of a file, no match is wider than the rule's
 * max_width: at each start the first that is not, in PCRE2's order, counts.
 */
#ifndef PINION_TOOLS_SCAN_CONFIRM_H
#define PINION_TOOLS_SCAN_CONFIRM_H

#include "tools/scan/regex_dialect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct confirm_regex;
/* What one search at a time needs: results, stack. */
struct confirm_room;

enum confirm_scope {
	/* Parts of files, repeats bounded. */
	CONFIRM_SCOPE_PARTS = 0,
	/* Whole texts. */
	CONFIRM_SCOPE_TEXTS,
};

/*
 * Translates an expression and does not compile it yet. Of a rule's, *level is
 * as regex_translate() has it.
 *
 * Errors: -ENOMEM; -EINVAL with a reason; -ENOSYS with a reason: this program
 * was built without PCRE2.
 */
int confirm_regex_create(enum rule_dialect dialect, enum confirm_scope scope, const char *pattern,
	size_t pattern_bytes, uint32_t *level, struct confirm_regex **out_regex,
	char out_reason[REGEX_REASON_BYTES]);
/* Accepts NULL. */
void confirm_regex_destroy(struct confirm_regex *regex);

/* Compiles it, so that a bad one is refused. Errors as above. */
int confirm_regex_check(struct confirm_regex *regex, char out_reason[REGEX_REASON_BYTES]);

const struct regex_texts *confirm_regex_texts(const struct confirm_regex *regex);

/* PCRE2's, or "none". */
const char *confirm_version(void);

/* NULL: no memory. */
struct confirm_room *confirm_room_create(void);
void confirm_room_destroy(struct confirm_room *room);

/* A part of a file. */
struct confirm_part {
	const uint8_t *bytes;
	size_t length;
	bool has_start; /* bytes[0] is the file's first */
	bool has_end;	/* its last byte is the file's */
};

/* In place of a group: the secret is the whole match. */
#define CONFIRM_NO_GROUP UINT32_MAX

/* Offsets in the part. */
struct confirm_match {
	size_t start;
	size_t end;
	size_t secret_start;
	size_t secret_end;
};

/*
 * The first match that starts in [from, last_start]. `group` is the secret; 0:
 * the first group that is not empty, or the whole match.
 *
 * Returns 1: found, 0: there is none.
 * Errors: -ELOOP: what starts at out_match->start took too many steps. -ENOMEM.
 */
int confirm_regex_match(struct confirm_regex *regex, struct confirm_room *room,
	const struct confirm_part *part, size_t from, size_t last_start, uint32_t group,
	struct confirm_match *out_match);

#endif
