/* SPDX-License-Identifier: MIT */
/*
 * Rules of YARA: files of them are kept as they are read, and compiled together
 * by libyara after all other rules are there.
 *
 * Each file of the command line is a namespace of its own, so that files may
 * have rules of the same name, and a global rule concerns those of its file. A
 * rule has its name as its id, and a rule whose name several files have
 * FILE:NAME, where FILE is the file's name without folders and suffix, and its
 * number on the command line if another file has the same.
 */
#ifndef PINION_TOOLS_SCAN_YARA_RULES_H
#define PINION_TOOLS_SCAN_YARA_RULES_H

#include "tools/scan/rules_reader.h"
#include "tools/scan/yara_library.h"

struct yara_source {
	const char *file;
	char *bytes;
	size_t length;
	uint32_t rule_count; /* those that are shown; yara_rules_compile() */
};

struct yara_rules {
	struct yara_source *sources;
	size_t source_count;
	size_t source_capacity;
#if defined(HAVE_YARA)
	bool is_initialised;
	YR_RULES *compiled; /* NULL: not yet */
	const YR_RULE *first;
	/* By places in `compiled`; UINT32_MAX: private, not in rules->items. */
	uint32_t *indices;
#endif
};

/* Whether the name or the first words are those of a file of YARA rules. */
bool yara_rules_are_in(const struct rules_source *source);

/*
 * Takes over source->bytes, for yara_rules_compile(). Returns 0; -EINVAL after
 * a remark; or -ENOMEM.
 */
int yara_rules_keep(const struct rules_reader *reader, struct rules_source *source);

/*
 * Adds the rules of all kept files to reader->rules, after the last other one.
 * Returns 0; -EINVAL after remarks; or -ENOMEM.
 */
int yara_rules_compile(const struct rules_reader *reader);

/*
 * The name of the string that a finding has by its number, `$a`, or `$` of one
 * that has no name. NULL: the number is 0. Valid as long as the rules.
 */
const char *yara_rules_string(const struct yara_rules *yara, uint32_t number);

/* NULL is accepted. */
void yara_rules_destroy(struct yara_rules *yara);

#endif
