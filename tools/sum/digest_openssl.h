/* SPDX-License-Identifier: MIT */
/*
 * MD5, SHA-1 and SHA-256 by OpenSSL, for the table of hash functions
 * (digest.h).
 *
 * OpenSSL wants its contexts on the heap. They are kept in a list and used
 * again, so their number is that of files in flight, not of files.
 */
#ifndef PINION_TOOLS_SUM_DIGEST_OPENSSL_H
#define PINION_TOOLS_SUM_DIGEST_OPENSSL_H

#include "tools/sum/digest.h"

#include <stddef.h>
#include <stdint.h>

#if defined(HAVE_OPENSSL)
/*
 * -EOPNOTSUPP: this OpenSSL does not have the function, as a FIPS or stripped
 * configuration of it.
 */
int digest_md5_init(struct digest_state *state);
int digest_sha1_init(struct digest_state *state);
int digest_sha256_init(struct digest_state *state);

/* These work on a state of any of the three functions. */
int digest_openssl_update(struct digest_state *state, const void *bytes, size_t length);
int digest_openssl_final(struct digest_state *state, uint8_t *digest);
void digest_openssl_discard(struct digest_state *state);

const char *digest_openssl_version(void);
#endif

#endif
