/* SPDX-License-Identifier: MIT */
/*
 * Baselines: the fingerprints of findings that an earlier run has written, and
 * that a later run leaves out.
 */
#ifndef PINION_TOOLS_SCAN_BASELINE_H
#define PINION_TOOLS_SCAN_BASELINE_H

#include "tools/scan/fingerprint.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise. */
struct baseline {
	struct fingerprint *items; /* sorted */
	size_t count;
	size_t capacity;
};

/*
 * Adds the fingerprints of a file of JSON lines or SARIF, of which an empty
 * file is one, too. A pipe that brings nothing for so long fails; 0: no limit.
 * False: a line says what the file is not.
 */
bool baseline_load(struct baseline *baseline, const char *path, uint64_t silence_ns_max);
bool baseline_has(const struct baseline *baseline, const struct fingerprint *print);
void baseline_free(struct baseline *baseline);

#endif
