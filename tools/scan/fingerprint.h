/* SPDX-License-Identifier: MIT */
/*
 * Fingerprints of findings; baseline.h has sets of them.
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

#define FINGERPRINT_NAME "pinion/v1"

struct fingerprint {
	uint8_t bytes[FINGERPRINT_BYTES];
};

/* A leading "./" of the path does not count. `length` is the finding's. */
void fingerprint_make(const char *rule_id, const char *path, size_t path_bytes, uint64_t length,
	const struct evidence_place *place, struct fingerprint *out_print);

void fingerprint_write(const struct fingerprint *print, char out_text[FINGERPRINT_CHARS + 1]);

/* False: it is not 32 hexadecimal digits, of which case does not matter. */
bool fingerprint_parse(const char *text, size_t length, struct fingerprint *out_print);

#endif
