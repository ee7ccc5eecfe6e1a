/* SPDX-License-Identifier: MIT */
/*
 * Rules that require findings of other rules near theirs. They are decided at
 * the end of a file, when all its findings are there.
 */
#ifndef PINION_TOOLS_SCAN_COMPANIONS_H
#define PINION_TOOLS_SCAN_COMPANIONS_H

#include "tools/scan/finding.h"
#include "tools/scan/rules.h"

/* Where a finding starts; from 1. False: that is not known. */
typedef bool (*companions_locate_fn)(
	void *arg, const struct finding *finding, uint64_t *out_line, uint64_t *out_column);

/* Whether findings of the rule have to wait for the end of the file. */
bool companions_concern(const struct rules *rules, uint32_t rule);

/* Whether any rule asks for lines or columns. */
bool companions_need_places(const struct rules *rules);

/*
 * Drops from a file's findings, which are sorted, those without the companions
 * that their rules require, and then those that are only companions. A place
 * that is not known is near to nothing. Returns 0 or -ENOMEM.
 */
int companions_apply(const struct rules *rules, struct finding_list *findings,
	companions_locate_fn locate, void *arg);

#endif
