/* SPDX-License-Identifier: MIT */
/*
 * Copying from the page cache, and learning from what came of it.
 */
#include "runtime/base/base.h"
#include "runtime/host/kernel.h"
#include "runtime/io/request.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

/*
 * preadv2(), but no point where a thread is cancelled: as one, it costs two
 * locked instructions before the call and after it where there are threads.
 * Sanitizers know the function, and so what it writes.
 */
static inline ssize_t read_now(int fd, const struct iovec *vector, uint64_t offset_bytes)
{
#if defined(PIN_ASAN) || defined(__SANITIZE_THREAD__)
	return preadv2(fd, vector, 1, (off_t)offset_bytes, RWF_NOWAIT);
#else
	/* The offset in halves; the kernel takes as many as it needs. */
	return syscall(SYS_preadv2, fd, vector, 1L, (long)offset_bytes, (long)(offset_bytes >> 32),
		(long)RWF_NOWAIT);
#endif
}

bool pin_cached_read(
	struct pin_cached *cached, struct pin_meter *meter, struct pinion_request *request)
{
	struct iovec vector = {.iov_base = request->bytes, .iov_len = request->length_bytes};
	ssize_t got = read_now(request->file->fd, &vector, request->offset_bytes);

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
