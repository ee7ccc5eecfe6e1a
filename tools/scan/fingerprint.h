/* SPDX-License-Identifier: MIT */
/*
 * Fingerprints of findings, and sets of them: baselines.
 *
 * A fingerprint is the first half of the SHA-256 of rule, path and the digest
 * of the finding's bytes, in hexadecimal. It does not change when the finding
 * moves within its file. Those of the same secret in one file are the same.
 */
#ifndef PINION_TOOLS_SCAN_FINGERPRINT_H
#define PINION_TOOLS_SCAN_FINGERPRINT_H

#include "tools/scan/evidence.h"
#include "tools/scan/sha256.h"

enum {
	FINGERPRINT_BYTES = 16,
	FINGERPRINT_CHARS = 2 * FINGERPRINT_BYTES,
};

struct fingerprint {
	uint8_t bytes[FINGERPRINT_BYTES];
};

/* A leading "./" of the path does not count. `length` is the finding's. */
void fingerprint_make(const char *rule_id, const char *path, size_t path_bytes, uint64_t length,
	const struct evidence_place *place, struct fingerprint *out_print);

void fingerprint_write(const struct fingerprint *print, char out_text[FINGERPRINT_CHARS + 1]);

/* Zero-initialise. */
struct baseline {
	struct fingerprint *items; /* sorted */
	size_t count;
	size_t capacity;
};

/*
 * Adds the fingerprints of the findings in a file that an earlier run has
 * written: JSON Lines, SARIF, or GitLab's report. False: reported.
 */
bool baseline_load(struct baseline *baseline, const char *path);
bool baseline_has(const struct baseline *baseline, const struct fingerprint *print);
void baseline_free(struct baseline *baseline);

#endif
