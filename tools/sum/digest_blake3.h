/* SPDX-License-Identifier: MIT */
/*
 * BLAKE3 for the table of hash functions (digest.h).
 *
 * A BLAKE3 digest is the root of a binary tree over chunks of 1024 bytes: the
 * left subtree of a node holds the largest power of two of chunks that leaves
 * at least one byte for the right one. So parts of a file can be hashed in any
 * order, on several threads at once; digest_blake3_part() does that.
 *
 * A part is cut into subtrees, each of a power of two of chunks that starts at
 * a multiple of its size, and blake3_hasher hashes one after the other: its
 * chunk counter is set to the first chunk, and what it leaves on its stack are
 * the chaining values of the two halves. Neighbours that are the halves of a
 * larger subtree are combined at once, but for those that start at byte 0: one
 * of these may be the root, which is computed differently, and only the end
 * shows which. At the end the rest goes on the stack of one hasher, from left
 * to right, and that computes the root.
 *
 * The C interface has no function for one parent node. Where the C files of the
 * Rust crate are built in, blake3_compress_in_place() is it. libblake3 hides
 * that, so there the parent is taken from the stack of a hasher that is given
 * one more chunk, which costs the hashing of that chunk.
 *
 * Source: the BLAKE3 paper, sections 2.1 and 5.1.2 (subtrees, lazy merging).
 */
#ifndef PINION_TOOLS_SUM_DIGEST_BLAKE3_H
#define PINION_TOOLS_SUM_DIGEST_BLAKE3_H

#include "tools/sum/digest.h"

#include <stddef.h>
#include <stdint.h>

#if defined(HAVE_BLAKE3)
/* Functions of the table, in order, one thread at a time. */
int digest_blake3_init(struct digest_state *state);
int digest_blake3_update(struct digest_state *state, const void *bytes, size_t length);
int digest_blake3_final(struct digest_state *state, uint8_t *digest);
void digest_blake3_discard(struct digest_state *state);

/*
 * Adds the bytes at `offset`, from any thread, in any order, in place of
 * digest_blake3_update(). Parts do not overlap; `offset`, and the length of all
 * but the part with the last byte, are multiples of 1024.
 *
 * Returns 0; -EINVAL: that is not so; -ENOMEM: no memory for chaining values
 * whose neighbours have not come.
 */
int digest_blake3_part(
	struct digest_state *state, const void *bytes, size_t length, uint64_t offset);

/* Of parts: what is there from the start on, without gaps. */
bool digest_blake3_save(struct digest_state *state, struct output_text *out, uint64_t *end);
bool digest_blake3_load(struct digest_state *state, const void *bytes, size_t length, uint64_t end);

/*
 * The chaining value of the parent of two nodes, 32 bytes each, by the
 * functions of blake3.h alone. Not static for its test.
 */
void digest_blake3_parent(const uint8_t *left, const uint8_t *right, uint8_t *out_value);

/* "1.3.1", or NULL. */
const char *digest_blake3_version(void);
#endif

#endif
