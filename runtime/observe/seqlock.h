/* SPDX-License-Identifier: MIT */
/*
 * A sequence counter before some words: one thread writes them now and then,
 * and any number of others read them, also in another process, without a lock
 * and without a trace. A read that meets a write is made again.
 *
 *     writer                               reader
 *     a  sequence := odd                   1  sequence: even, or again
 *     b  fence                             2  fence
 *     c  words (relaxed)                   3  words (relaxed)
 *     d  sequence := even (release)        4  fence
 *                                          5  the same sequence, or again
 *
 * [SEQLOCK-1] b (fence) -> 4 (fence): a reader that has seen a word of c sees
 * the odd sequence of a in 5. Without either it could take new words with old
 * ones.
 * [SEQLOCK-2] d (release) -> 1 and 2 (fence): a reader that has seen the even
 * sequence sees all words of c. Without either it could take old words for
 * those of that sequence.
 *
 * Progress: the writer never waits. A reader waits for a writer that is between
 * a and d; a writer that was killed there leaves the sequence odd for good.
 *
 *               write   read
 *     write     X       -        X: one at a time, or by the holder of a lock
 *     read      -       -
 *
 * Source: H. Boehm, "Can seqlocks get along with programming language memory
 * models?", MSPC 2012.
 */
#ifndef PIN_OBSERVE_SEQLOCK_H
#define PIN_OBSERVE_SEQLOCK_H

#include "runtime/base/atomic.h"
#include "runtime/base/check.h"

#include <stddef.h>

/* By the one writer: a reader that begins here reads again. */
static inline void pin_seqlock_begin(struct pin_atomic_u64 *sequence)
{
	uint64_t before = pin_load_relaxed_u64(sequence);

	PIN_DCHECK(before % 2 == 0); /* no other writes */
	pin_store_relaxed_u64(sequence, before + 1);
	pin_fence_seq_cst(); /* [SEQLOCK-1] */
}

static inline void pin_seqlock_end(struct pin_atomic_u64 *sequence)
{
	uint64_t before = pin_load_relaxed_u64(sequence);

	PIN_DCHECK(before % 2 == 1);
	pin_store_release_u64(sequence, before + 1); /* [SEQLOCK-2] */
}

/*
 * Reads `count` words from word `first` of a source on, the sequence being
 * word `sequence`. False: the source has none of them.
 */
typedef bool (*pin_seqlock_fetch_fn)(
	const void *source, size_t first, size_t count, uint64_t *out_words);

enum pin_seqlock_read {
	PIN_SEQLOCK_READ,   /* all words are of one write */
	PIN_SEQLOCK_TORN,   /* a write came between */
	PIN_SEQLOCK_FAILED, /* the source has said so */
};

/* One attempt. The words are written in any case, whatever they are worth. */
static inline enum pin_seqlock_read pin_seqlock_try_read(pin_seqlock_fetch_fn fetch,
	const void *source, size_t sequence, size_t first, size_t count, uint64_t *out_words)
{
	uint64_t before;
	uint64_t after;

	if (!fetch(source, sequence, 1, &before)) {
		return PIN_SEQLOCK_FAILED;
	}
	pin_fence_seq_cst(); /* [SEQLOCK-2] */
	if (!fetch(source, first, count, out_words)) {
		return PIN_SEQLOCK_FAILED;
	}
	pin_fence_seq_cst(); /* [SEQLOCK-1] */
	if (!fetch(source, sequence, 1, &after)) {
		return PIN_SEQLOCK_FAILED;
	}
	return before % 2 == 0 && before == after ? PIN_SEQLOCK_READ : PIN_SEQLOCK_TORN;
}

/* The same source in this process's memory: an array of words. */
static inline bool pin_seqlock_fetch(
	const void *source, size_t first, size_t count, uint64_t *out_words)
{
	const struct pin_atomic_u64 *words = source;

	for (size_t i = 0; i < count; i++) {
		out_words[i] = pin_load_relaxed_u64(&words[first + i]);
	}
	return true;
}

#endif
