/* SPDX-License-Identifier: MIT */
/*
 * YARA rules searched for in bytes that are all of a file.
 *
 * A rule that holds has a candidate for each match of its strings, and one of
 * the first byte where it has no match to show. Strings and rules that are
 * private have none, as in the output of yara(1).
 */
#ifndef PINION_TOOLS_SCAN_YARA_SCANNER_H
#define PINION_TOOLS_SCAN_YARA_SCANNER_H

#include "tools/scan/candidates.h"
#include "tools/scan/rules.h"

struct yara_scanner; /* what one thread at a time uses */

/*
 * The rules have been compiled. `timeout_ns`: of a file; 0: no limit. Errors:
 * -ENOMEM.
 */
int yara_scanner_create(
	const struct rules *rules, uint64_t timeout_ns, struct yara_scanner **out_scanner);
/* NULL is accepted. */
void yara_scanner_destroy(struct yara_scanner *scanner);

/* Why some candidates are missing. Zero-initialise. */
struct yara_trouble {
	const char *crowded; /* this rule's string matched too often; NULL: none did */
	int code;	     /* with -EIO: libyara's */
};

/*
 * Puts candidates in place of those in `found`, in no order. Returns 0; -ETIME:
 * the timeout; -ENOMEM; or -EIO.
 */
int yara_scanner_search(struct yara_scanner *scanner, const uint8_t *bytes, size_t length,
	struct candidates *found, struct yara_trouble *out_trouble);

#endif
