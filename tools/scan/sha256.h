/* SPDX-License-Identifier: MIT */
/*
 * SHA-256, for fingerprints: they have to be the same in every build, and
 * OpenSSL is optional.
 *
 * Source: FIPS 180-4.
 */
#ifndef PINION_TOOLS_SCAN_SHA256_H
#define PINION_TOOLS_SCAN_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum {
	SHA256_BYTES = 32,
	SHA256_BLOCK_BYTES = 64,
};

struct sha256 {
	uint32_t state[8];
	uint64_t length; /* of all bytes so far */
	uint8_t block[SHA256_BLOCK_BYTES];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_finish(struct sha256 *hash, uint8_t out_digest[SHA256_BYTES]);

#endif
