/* SPDX-License-Identifier: MIT */
/*
 * Findings of a file that are decided and not yet shown, which their owner adds
 * in any order and has shown by start, end and rule.
 *
 * One is held back while an earlier one may still come, for about the widest
 * match; a rule without a widest match holds back everything until the file
 * ends. Findings of rules that require companions, and those companions, are
 * decided at the end of the file (companions.h), and hold back the findings
 * after them.
 */
#ifndef PINION_TOOLS_SCAN_FINDINGS_HELD_H
#define PINION_TOOLS_SCAN_FINDINGS_HELD_H

#include "tools/scan/findings_file.h"

/* Receives findings of one file in their final order, a few at a time. */
typedef void (*findings_show_fn)(void *arg, const struct finding *findings, size_t count);

/*
 * Holds a plain rule's finding, with its text of the snippet; NULL: without.
 * Returns 0 or -ENOMEM.
 */
int findings_held_add_within(const struct findings *findings, struct findings_file *file,
	const struct snippet *snippet, const struct candidate *candidate);

/* The same, with the text that the file's snippets have of it. */
int findings_held_add(const struct findings *findings, struct findings_file *file,
	const struct candidate *candidate);

/* Shows those that no other can precede any more; leaves the others sorted. */
void findings_held_show(const struct findings *findings, struct findings_file *file,
	findings_show_fn show, void *arg);

/* No finding that starts before this will be shown any more. Under the lock. */
uint64_t findings_held_settled_to(
	const struct findings *findings, const struct findings_file *file);

#endif
