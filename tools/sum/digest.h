/* SPDX-License-Identifier: MIT */
/*
 * The hash functions in one table. A row exists for each algorithm, also for
 * one this program was built without: then `missing` says how to get it.
 *
 * The state of one hash lives in the caller's memory, so that a file in flight
 * costs no allocation. One state is used by one thread at a time.
 */
#ifndef PINION_TOOLS_SUM_DIGEST_H
#define PINION_TOOLS_SUM_DIGEST_H

#include "tools/output_text.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	DIGEST_BYTES_MAX = 32,
	/*
	 * BLAKE3's is the largest. XXH3's is 576 bytes in libxxhash 0.8; a
	 * later library that is loaded in its place has room too.
	 */
	DIGEST_STATE_BYTES = 2304,
};

/* Zero before `init`. */
struct digest_state {
	alignas(64) unsigned char bytes[DIGEST_STATE_BYTES];
};

struct digest_algorithm {
	const char *name;	/* as -a spells it */
	const char *tag;	/* in lines of the form TAG (PATH) = HEX */
	const char *stdin_name; /* what lines call standard input */
	uint32_t digest_bytes;
	bool is_tagged;	     /* its lines carry the tag even without --tag */
	const char *missing; /* how to get it, NULL when it is built in */
	/* 0 or a negative errno. After 0, exactly one `final` or `discard`. */
	int (*init)(struct digest_state *state);
	int (*update)(struct digest_state *state, const void *bytes, size_t length);
	/*
	 * NULL, or for use in place of `update`: bytes at an offset, in any
	 * order, from several threads at once; offsets, and all lengths but the
	 * last part's, are multiples of 1024.
	 */
	int (*part)(struct digest_state *state, const void *bytes, size_t length, uint64_t offset);
	/*
	 * NULL, or: appends the state after the bytes from the start of the
	 * file on, up to `*end`, a multiple of 4096, where the last bytes that
	 * were given end; `part` moves it to before the first that are missing.
	 * False: there is nothing to go on from, or no memory.
	 */
	bool (*save)(struct digest_state *state, struct output_text *out, uint64_t *end);
	/* Takes it over, after `init`. False: it is none of this program's. */
	bool (*load)(struct digest_state *state, const void *bytes, size_t length, uint64_t end);
	/* Writes `digest_bytes`, most significant first, and ends the state. */
	int (*final)(struct digest_state *state, uint8_t *digest);
	void (*discard)(struct digest_state *state);
};

enum {
	DIGEST_XXH3_64 = 0,
	DIGEST_XXH3_128 = 1,
	DIGEST_SHA256 = 2,
	DIGEST_BLAKE3 = 3,
	DIGEST_MD5 = 4,
	DIGEST_SHA1 = 5,
	DIGEST_COUNT = 6,
};

extern const struct digest_algorithm digest_algorithms[DIGEST_COUNT];

/* False after a line on stderr that says how to get it. */
bool digest_is_built(const struct digest_algorithm *algorithm);

/* Appends the back ends' part of --version: " +openssl 3.0.2 -xxhash". */
void digest_append_features(struct output_text *text);

#endif
