/* SPDX-License-Identifier: MIT */
/*
 * Reads that the page cache can answer: the worker copies them at once with
 * preadv2(RWF_NOWAIT), which costs a read that comes alone less than the way
 * through a ring and back, and never waits for a disk. Those that come together
 * share an enter and go by the ring (worker/submit.c), unless there are
 * rates to keep: what is cached is not limited.
 *
 * Tried on files of which something was cached when they were opened. Whether
 * the next is worth the system call is learnt from the last: after a miss one
 * read is not tried, after the next miss two, then four, up to 64; a hit has
 * all be tried again. So what was cached once and is no longer costs little.
 *
 * Called by the worker; its own, one for each. What is large goes through the
 * ring, where the kernel's threads may copy it while the worker goes on.
 *
 * Source: docs/decisions/files-and-scan.md, "The worker copies cached data".
 */
#ifndef PIN_IO_TRANSFER_CACHED_H
#define PIN_IO_TRANSFER_CACHED_H

#include "runtime/base/metrics.h"
#include "runtime/io/file.h"

#include <pinion/request.h>

enum {
	/* At most so much is copied while a callback submits. */
	PIN_CACHED_BYTES_MAX = 128 << 10,
	PIN_CACHED_SKIPS_MAX = 64,
};

/* [own] */
struct pin_cached {
	uint32_t skips_left; /* reads not to be tried */
	uint32_t next_skips; /* after the next miss; 0 counts as 1 */
};

/* Whether to try it; to be asked once for each read. */
static inline bool pin_cached_is_worth_it(
	struct pin_cached *cached, const struct pinion_request *request)
{
	const struct pinion_file *file = request->file;

	/* 0: nothing was cached; more than 100: unknown. */
	if (request->op != PINION_OP_READ || file->is_direct || file->cached_percent - 1 >= 100 ||
		request->length_bytes > PIN_CACHED_BYTES_MAX) {
		return false;
	}
	if (cached->skips_left > 0) {
		cached->skips_left--;
		return false;
	}
	return true;
}

/*
 * True: it is done, with its result. False: it is as it was, for the ring. It
 * was checked, and done_bytes is 0.
 */
bool pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request);

#endif
