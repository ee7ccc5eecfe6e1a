/* SPDX-License-Identifier: MIT */
/*
 * Copying from the page cache, and learning from what came of it.
 */
#include "runtime/io/cached.h"
#include "runtime/host/kernel.h"

#include <sys/uio.h>

/* All of it, or all there is of a file that does not grow by our writes. */
static bool is_whole(const struct pinion_request *request, ssize_t got)
{
	const struct pinion_file *file = request->file;

	if (got <= 0 || (uint64_t)got == request->length_bytes) {
		return got > 0;
	}
	return (file->flags & PIN_FILE_WRITABLE) == 0 &&
		request->offset_bytes + (uint64_t)got == file->size_bytes;
}

static void note_miss(struct pin_cached *cached)
{
	uint32_t skips = cached->next_skips == 0 ? 1 : cached->next_skips;

	cached->skips_left = skips;
	cached->next_skips = skips < PIN_CACHED_SKIPS_MAX ? 2 * skips : skips;
}

bool pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request)
{
	struct iovec vector = {.iov_base = request->bytes, .iov_len = request->length_bytes};
	ssize_t got =
		preadv2(request->file->fd, &vector, 1, (off_t)request->offset_bytes, RWF_NOWAIT);

	/* Errors too: the ring tells them, or makes them good. */
	if (!is_whole(request, got)) {
		note_miss(cached);
		return false;
	}
	cached->next_skips = 0;
	request->result = got;
	request->done_bytes = (uint64_t)got;
	pin_meter_add(&meter->read_bytes, (uint64_t)got);
	pin_meter_add(&meter->cached_reads, 1);
	return true;
}
