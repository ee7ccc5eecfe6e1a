/* SPDX-License-Identifier: MIT */
/*
 * The built-in rules: credentials whose shape gives them away, in families, a
 * file of this folder each.
 *
 * Each pattern
 *  1. is written in what PCRE and GNU's extended expressions have in common,
 *     so that --print-patterns feeds `grep -E -f`;
 *  2. is bounded, so that windows of a file can be searched in parallel with a
 *     finite overlap (the widest is under 6 KiB);
 *  3. holds a literal that is rare in ordinary text, at least three bytes next
 *     to each other: the matcher looks for those and for nothing else most of
 *     the time;
 *  4. does not match itself, so that the files here can be scanned in peace.
 * `\b` in front keeps a prefix from being found in the middle of a word.
 *
 * Issuers publish most of these shapes for secret scanning; where a shape is
 * only known by example the pattern says no more than the prefix and the
 * alphabet. A rule whose prefix is an ordinary word, or whose value has no
 * shape of its own, is not here. tests/fixtures/rules/samples has what each
 * rule has to find, and a near miss.
 *
 * Rules cost time in text that holds none of them, and the shorter their
 * literals the more: a literal of two bytes, as of `SK[a-f0-9]`, makes a scan
 * take half as long again. The library expands a class of up to eleven letters
 * into literals of its own, and makes one class of alternatives that differ in
 * a letter, however they are written. These rules have 316 literals. Up to 96
 * are searched for by shuffles of bytes, 2.3 instructions a byte; more of them
 * by a table of 64 KiB, which takes 3.28 instructions a byte if no text is like
 * a literal, and 3.36 of them in source code. The 3300 places in a MiB that are
 * like one are mostly like parts of several; rules with literals of three bytes
 * have a third of the branches there that the processor guesses wrong.
 */
#ifndef PINION_TOOLS_SCAN_BUILTIN_FAMILIES_H
#define PINION_TOOLS_SCAN_BUILTIN_FAMILIES_H

#include "tools/scan/rules.h"

#include <stdint.h>

#define RULE_UUID "[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}"

struct rule_family {
	const char *name;  /* one word */
	const char *title; /* its rules are for these */
	const struct rule_builtin *rules;
	uint32_t count;
};

extern const struct rule_family rules_ai;
extern const struct rule_family rules_cloud;
extern const struct rule_family rules_code;
extern const struct rule_family rules_keys;
extern const struct rule_family rules_pay;
extern const struct rule_family rules_talk;
extern const struct rule_family rules_watch;
extern const struct rule_family rules_work;

/* All of them, in the order of their names. */
const struct rule_family *const *rules_families(uint32_t *out_count);

#endif
