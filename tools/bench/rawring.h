/* SPDX-License-Identifier: MIT */
/*
 * The floor of requests: one io_uring driven by hand, with all that helps: the
 * ring's descriptor, files and memory are registered, completions are delivered
 * on request only, and whatever was submitted goes with the call that waits.
 *
 * A ring is made by the thread that uses it, and by no other.
 */
#ifndef PINION_TOOLS_BENCH_RAWRING_H
#define PINION_TOOLS_BENCH_RAWRING_H

#include "tools/bench/fileset.h"
#include "tools/bench/placing.h"

#include <stdbool.h>
#include <stdint.h>

struct rawring;

/*
 * For at most `depth_count` requests of `block_bytes` in flight, on those
 * files; without any `set` is NULL and block_bytes 0. 0 or a negative errno.
 */
int rawring_create(uint32_t depth_count, uint32_t block_bytes, const struct fileset *set,
	struct rawring **out_rawring);

/* Any thread, when its owner no longer uses it. Accepts NULL. */
void rawring_destroy(struct rawring *rawring);

/*
 * A number of requests that do nothing, `depth_count` of them at a time: the
 * next are submitted when all of these have completed. 0 or a negative errno.
 */
int rawring_nops(struct rawring *rawring, uint32_t count);

/*
 * A number of blocks read or written, of which depth_count are in flight at any
 * time. Errors: -EIO: a part only; -ECANCELED: a signal came; others of the
 * kernel.
 */
int rawring_blocks(
	struct rawring *rawring, struct placing *placing, uint32_t count, bool is_written);

/*
 * Sleeps in the ring until a byte can be read from `fd`. 0: the other end is
 * closed, 1, or a negative errno.
 */
int rawring_await_byte(struct rawring *rawring, int fd);

#endif
