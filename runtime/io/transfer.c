/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes, of memory in one piece and of vectors: their entries, part
 * after part, and what follows from a short, failed or interrupted one.
 *
 * request.c calls it for operations that move bytes. A transfer goes on until
 * it is complete, makes no more progress, or has to queue for the rates of its
 * next part.
 *
 * Invariant: `done_bytes` counts only bytes that the kernel has reported, and
 * the next part starts there or at the block below.
 */
#include "runtime/base/base.h"
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/io/file.h"
#include "runtime/io/request.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- entries ---- */

/* Which kind of entry, of one operation. */
struct kind {
	uint8_t plain;
	uint8_t fixed; /* of registered memory */
	uint8_t gathers;
};

static const struct kind a_read = {IORING_OP_READ, IORING_OP_READ_FIXED, IORING_OP_READV};
static const struct kind a_write = {IORING_OP_WRITE, IORING_OP_WRITE_FIXED, IORING_OP_WRITEV};

/* `slot`: registered, or negative. `length` is in the opcode's unit. */
static PIN_INLINE void set_range(struct io_uring_sqe *sqe, struct pinion_request *request,
	uint8_t opcode, int slot, const void *memory, uint32_t length)
{
	io_uring_prep_rw(opcode, sqe, slot >= 0 ? slot : request->file->fd, memory, length,
		request->offset_bytes + pin_request_of(request)->resume_bytes);
	sqe->flags = slot >= 0 ? IOSQE_FIXED_FILE : 0;
	sqe->ioprio = request->io_priority != 0 ? request->io_priority
						: pin_request_of(request)->lane_priority;
}

/* `index`, `slot`: registered, or negative. */
static PIN_INLINE void set_entry(struct io_uring_sqe *sqe, struct pinion_request *request,
	const struct kind *kind, int index, int slot)
{
	uint64_t done = pin_request_of(request)->resume_bytes;

	PIN_DCHECK(index <= UINT16_MAX); /* as wide as its field */
	set_range(sqe, request, index >= 0 ? kind->fixed : kind->plain, slot, request->bytes + done,
		pin_request_part(request, done));
	sqe->buf_index = index >= 0 ? (uint16_t)index : 0;
}

static PIN_APART void prepare(struct pin_ring *ring, struct io_uring_sqe *sqe,
	struct pinion_request *request, const struct kind *kind, struct pin_atomic_u64 *plain_count)
{
	uint64_t done = pin_request_of(request)->resume_bytes;
	int index = pin_ring_registered_index(
		ring, request->bytes + done, pin_request_part(request, done));

	if (index < 0) {
		pin_meter_add(plain_count, 1);
	}
	set_entry(sqe, request, kind, index, pin_ring_file_slot(ring, request->file));
}

/*
 * As most are: the memory is the ring's own worker's, and the file is
 * registered. False: nothing has changed.
 */
static PIN_INLINE bool prepare_known(struct pin_ring *ring, struct io_uring_sqe *sqe,
	struct pinion_request *request, const struct kind *kind)
{
	uint64_t done = pin_request_of(request)->resume_bytes;
	int index =
		pin_ring_home_index(ring, request->bytes + done, pin_request_part(request, done));
	int slot = pin_ring_known_slot(ring, request->file);

	if (PIN_UNLIKELY(index < 0 || slot < 0)) {
		return false;
	}
	set_entry(sqe, request, kind, index, slot);
	return true;
}

static bool uses_dontcache(struct pinion_request *request)
{
	return (request->file->flags & PIN_FILE_DONTCACHE) != 0 &&
		!pin_request_of(request)->keeps_cache;
}

static PIN_APART void prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	prepare(ring, sqe, request, &a_read, &ring->meter->unregistered_reads);
	if (uses_dontcache(request)) {
		sqe->rw_flags = RWF_DONTCACHE;
	}
}

/* No calls but the last: none needs registers saved where all is known. */
void pin_transfer_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	if (PIN_UNLIKELY(uses_dontcache(request) || !prepare_known(ring, sqe, request, &a_read))) {
		prepare_read(ring, sqe, request);
	}
}

/* After a read of a file of which nothing was cached: nothing is again. */
static void leave_cache(struct pin_ring *ring, struct pinion_request *request, bool was_asked)
{
	if (PIN_LIKELY((request->file->flags & PIN_FILE_EVICT) == 0)) {
		return;
	}
	if (was_asked) {
		pin_meter_add(&ring->meter->dontcache_reads, 1);
		return;
	}
	posix_fadvise(request->file->fd, (off_t)request->offset_bytes, (off_t)request->done_bytes,
		POSIX_FADV_DONTNEED);
	pin_meter_add(&ring->meter->evicted_reads, 1);
}

void pin_transfer_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	if (PIN_UNLIKELY(!prepare_known(ring, sqe, request, &a_write))) {
		prepare(ring, sqe, request, &a_write, &ring->meter->unregistered_writes);
	}
}

/* ---- entries of vectors ---- */

/*
 * A vectored transfer goes on at the byte that `resume_bytes` counts: with one
 * range where that is within an element, else with whole elements. The search
 * for the element begins at the first one, which costs only the few transfers
 * that go on at all. Nothing is copied, and only `resume_bytes` is kept.
 *
 * `bytes` is the array then: the request borrows the pool's buffer that has the
 * array, if there is one, and knows nothing of buffers that have the elements.
 */

/* What the next entry moves: `count` whole elements, or if 0 a range of one. */
struct stretch {
	const struct iovec *elements;
	uint32_t count;
	struct iovec range;
};

static PIN_COLD _Noreturn void report_vector(
	const struct pin_ring *ring, const struct pinion_request *request)
{
	pin_check_misused(ring->log, PIN_REQUEST_VECTOR_CHANGED, (const void *)request);
}

/* The element with byte `done`; *out_inside bytes of it are before that. */
static uint32_t find_element(const struct pin_ring *ring, const struct pinion_request *request,
	uint64_t done, uint64_t *out_inside)
{
	for (uint32_t i = 0; i < request->vector_count; i++) {
		if (done < request->vector[i].iov_len) {
			*out_inside = done;
			return i;
		}
		done -= request->vector[i].iov_len;
	}
	report_vector(ring, request);
}

/*
 * The rest of the element that has been reached, up to the end of a part;
 * nothing of a transfer of no bytes.
 */
static struct iovec next_range(const struct pin_ring *ring, const struct pinion_request *request,
	uint64_t done, uint32_t *out_index)
{
	uint32_t part = pin_request_part(request, done);
	const struct iovec *element;
	uint64_t inside;
	uint64_t left;

	if (part == 0) {
		*out_index = 0;
		return (struct iovec){0};
	}
	*out_index = find_element(ring, request, done, &inside);
	element = &request->vector[*out_index];
	PIN_DCHECK(inside < element->iov_len);
	left = element->iov_len - inside;
	return (struct iovec){.iov_base = (uint8_t *)element->iov_base + inside,
		.iov_len = left < part ? left : part};
}

/* As many whole elements as the part has room for. */
static uint32_t count_whole(const struct pinion_request *request, uint32_t first, uint32_t part)
{
	uint64_t sum = 0;
	uint32_t i = first;

	while (i < request->vector_count && request->vector[i].iov_len <= part - sum) {
		sum += request->vector[i].iov_len;
		i++;
	}
	return i - first;
}

static struct stretch next_stretch(
	const struct pin_ring *ring, const struct pinion_request *request, uint64_t done)
{
	uint32_t part = pin_request_part(request, done);
	struct stretch stretch = {.elements = request->vector, .count = request->vector_count};
	uint32_t first;

	/* As nearly all are. */
	if (PIN_LIKELY(done == 0 && part == request->length_bytes)) {
		return stretch;
	}
	stretch.range = next_range(ring, request, done, &first);
	PIN_DCHECK(first < request->vector_count);
	stretch.elements = &request->vector[first];
	stretch.count = stretch.range.iov_base == stretch.elements->iov_base
		? count_whole(request, first, part)
		: 0;
	return stretch;
}

static void prepare_vector(struct pin_ring *ring, struct io_uring_sqe *sqe,
	struct pinion_request *request, const struct kind *kind, struct pin_atomic_u64 *plain_count)
{
	struct stretch stretch = next_stretch(ring, request, pin_request_of(request)->resume_bytes);
	int slot = pin_ring_file_slot(ring, request->file);

	PIN_DCHECK(stretch.count <= PIN_VECTOR_COUNT_MAX);
	PIN_DCHECK(stretch.range.iov_len <= PIN_REQUEST_PART_BYTES);
	pin_meter_add(plain_count, 1);
	if (stretch.count > 0 || request->length_bytes == 0) {
		set_range(sqe, request, kind->gathers, slot, stretch.elements, stretch.count);
	} else {
		set_range(sqe, request, kind->plain, slot, stretch.range.iov_base,
			(uint32_t)stretch.range.iov_len);
	}
}

void pin_vector_prepare_read(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	prepare_vector(ring, sqe, request, &a_read, &ring->meter->unregistered_reads);
	if (uses_dontcache(request)) {
		sqe->rw_flags = RWF_DONTCACHE;
	}
}

void pin_vector_prepare_write(
	struct pin_ring *ring, struct io_uring_sqe *sqe, struct pinion_request *request)
{
	prepare_vector(ring, sqe, request, &a_write, &ring->meter->unregistered_writes);
}

/* ---- completions ---- */

/*
 * After an attempt that left something to do: sets where the next one starts,
 * and says whether there is to be one.
 */
static bool continue_at(struct pinion_request *request, uint64_t total, int64_t *result)
{
	struct pin_request *private = pin_request_of(request);
	uint64_t resume = pin_round_down(total, request->file->offset_align_bytes);

	PIN_DCHECK(private->stall_count <= PIN_REQUEST_STALLS_MAX);
	PIN_DCHECK(resume >= private->resume_bytes); /* it never falls back */
	/*
	 * O_DIRECT goes on at aligned offsets only, so a part may be moved
	 * twice; without a new aligned block that could go on for ever.
	 */
	if (resume > private->resume_bytes) {
		private->stall_count = 0;
	} else {
		private->stall_count++;
		if (private->stall_count > PIN_REQUEST_STALLS_MAX) {
			*result = -EIO;
			return false;
		}
	}
	private->resume_bytes = resume;
	return true;
}

static uint64_t note_done(struct pinion_request *request, int64_t got)
{
	uint64_t total = pin_request_of(request)->resume_bytes + (uint64_t)got;

	PIN_DCHECK((uint64_t)got <= PIN_REQUEST_PART_BYTES); /* no more than was asked for */
	/* A block that is moved again may come in a smaller part. */
	if (total > request->done_bytes) {
		request->done_bytes = total;
	}
	return total;
}

/* A completion with less than was asked for; the end of a part is none. */
static void count_short(struct pin_ring *ring, const struct pinion_request *request, uint64_t total)
{
	pin_meter_add(&ring->meter->short_transfers, !pin_request_ends_part(request, total));
}

/*
 * The kernel makes one request of neighbours on the disk, and when one of its
 * sectors is bad all of them fail; its cache fills pieces larger than a page,
 * and a reader that waits for a piece gets the error of the whole piece. Such
 * an error may come from another transfer's sector.
 */
static bool may_be_anothers(const struct pinion_request *request, int64_t result)
{
	return pin_request_is_of_sectors(result) &&
		(request->file->is_direct || pin_request_has(request, PIN_OP_READS)) &&
		(request->file->flags & PIN_FILE_COMMANDS) == 0;
}

/*
 * True when an error is not the end: interrupted, O_DIRECT is refused, or it is
 * to be tried alone.
 */
static bool goes_on(struct pin_ring *ring, struct pinion_request *request, int64_t result)
{
	struct pin_request *private = pin_request_of(request);

	PIN_DCHECK(result < 0);
	if (result == -EOPNOTSUPP && pin_request_has(request, PIN_OP_READS) &&
		uses_dontcache(request)) {
		private->keeps_cache = true;
		return true;
	}
	if (PIN_UNLIKELY(private->lane_priority != 0) && request->io_priority == 0 &&
		(result == -EPERM || result == -EINVAL)) {
		/* Perhaps for a priority that its caller has not asked for. */
		private->lane_priority = 0;
		return true;
	}
	if (result == -EINVAL && request->file->is_direct && private->stall_count == 0) {
		/*
		 * It took the flag and refuses the read, as some overlays do.
		 */
		pin_file_leave_direct(request->file);
		pin_meter_add(&ring->meter->direct_refusals, 1);
		private->stall_count++;
		return true;
	}
	if (private->stall_count == 0 && may_be_anothers(request, result)) {
		private->stall_count++;
		pin_meter_add(&ring->meter->errors_tried_alone, 1);
		return true;
	}
	return pin_request_may_retry(ring->meter, request, result);
}

/* True when the file ends where the request has got to. */
static bool is_at_end(const struct pinion_request *request, uint64_t position)
{
	const struct pinion_file *file = request->file;
	struct stat status;

	/* A file open for writing may have grown since. */
	if (file->size_bytes > 0 && position >= file->size_bytes &&
		(file->flags & PIN_FILE_WRITABLE) == 0) {
		return true;
	}
	return fstat(file->fd, &status) == 0 && status.st_size > 0 &&
		position >= (uint64_t)status.st_size;
}

bool pin_transfer_read_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	int64_t got = *result;
	uint64_t total;

	if (got < 0) {
		return goes_on(ring, request, got);
	}
	total = note_done(request, got);
	*result = (int64_t)total;
	if (total != request->length_bytes && got != 0 &&
		!is_at_end(request, request->offset_bytes + total)) {
		count_short(ring, request, total);
		return continue_at(request, total, result);
	}
	pin_meter_add(&ring->meter->read_bytes, total);
	leave_cache(ring, request, uses_dontcache(request));
	return false;
}

bool pin_transfer_write_goes_on(
	struct pin_ring *ring, struct pinion_request *request, int64_t *result)
{
	int64_t got = *result;
	uint64_t total;

	if (got < 0) {
		return goes_on(ring, request, got);
	}
	total = note_done(request, got);
	*result = (int64_t)total;
	if (total != request->length_bytes) {
		count_short(ring, request, total);
		return continue_at(request, total, result);
	}
	pin_meter_add(&ring->meter->write_bytes, total);
	return false;
}

/* Memory that is in one piece, which is all that commands know. */
static struct iovec next_piece(
	const struct pin_ring *ring, const struct pinion_request *request, uint64_t done)
{
	uint32_t index;

	if (pin_request_has(request, PIN_OP_GATHERS)) {
		return next_range(ring, request, done, &index);
	}
	return (struct iovec){
		.iov_base = request->bytes + done, .iov_len = pin_request_part(request, done)};
}

static ssize_t transfer_once(
	const struct pin_ring *ring, const struct pinion_request *request, uint64_t done)
{
	struct iovec piece = next_piece(ring, request, done);
	off_t offset = (off_t)(request->offset_bytes + done);
	ssize_t count;

	/* A read of nothing would pass for the end of the file. */
	PIN_DCHECK(piece.iov_len > 0 || request->length_bytes == 0);
	PIN_DCHECK(offset >= 0);
	if ((request->file->flags & PIN_FILE_COMMANDS) != 0) {
		return pin_request_has(request, PIN_OP_READS)
			? pin_command_read(
				  request->file, piece.iov_base, (uint64_t)offset, piece.iov_len)
			: -EROFS;
	}
	count = pin_request_has(request, PIN_OP_READS)
		? pread(request->file->fd, piece.iov_base, piece.iov_len, offset)
		: pwrite(request->file->fd, piece.iov_base, piece.iov_len, offset);

	PIN_CHECK(count <= (ssize_t)piece.iov_len);
	return count < 0 ? -errno : count;
}

/*
 * The same transfer by system calls; returns false after a part, so that other
 * requests and tasks get their turn.
 */
bool pin_transfer_carry_out(struct pin_ring *ring, struct pinion_request *request)
{
	bool reads = pin_request_has(request, PIN_OP_READS);
	uint32_t stall_count = 0;
	bool has_tried_alone = false;
	bool has_moved = false;
	bool goes_on;
	ssize_t count;

	request->done_bytes = pin_request_of(request)->resume_bytes;
	/*
	 * FUSE asks for no alignment and commands end at blocks, so each part
	 * goes on where the last one ended.
	 */
	do {
		count = transfer_once(ring, request, request->done_bytes);
		if (count > 0) {
			request->done_bytes += (uint64_t)count;
			stall_count = 0;
			/* The last one was short, as this is no new part. */
			pin_meter_add(&ring->meter->short_transfers, has_moved);
			has_moved = true;
		} else {
			stall_count++;
		}
		if (count > 0 && request->done_bytes < request->length_bytes &&
			pin_request_ends_part(request, request->done_bytes)) {
			pin_request_of(request)->resume_bytes = request->done_bytes;
			return false;
		}
		goes_on = count > 0 || count == -EINTR || count == -EAGAIN;
		if (count < 0 && goes_on) {
			pin_request_count_retry(ring->meter, count);
		}
		if (!goes_on && !has_tried_alone && may_be_anothers(request, count)) {
			has_tried_alone = goes_on = true;
			pin_meter_add(&ring->meter->errors_tried_alone, 1);
		}
	} while (goes_on && stall_count <= PIN_REQUEST_STALLS_MAX &&
		request->done_bytes < request->length_bytes);
	if (count >= 0 && (reads || request->done_bytes == request->length_bytes)) {
		request->result = (int64_t)request->done_bytes;
		pin_meter_add(reads ? &ring->meter->read_bytes : &ring->meter->write_bytes,
			request->done_bytes);
		if (reads) {
			leave_cache(ring, request, false);
		}
	} else {
		request->result = count < 0 ? count : -EIO;
	}
	return true;
}

/* ---- cached reads ---- */

/* Copies from the page cache, and learns from the outcome. */

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

	PIN_DCHECK(skips <= PIN_CACHED_SKIPS_MAX);
	cached->skips_left = skips;
	cached->next_skips = skips < PIN_CACHED_SKIPS_MAX ? 2 * skips : skips;
}

/*
 * preadv2(), but no cancellation point: as such a point, it costs two locked
 * instructions before the call and after it where there are threads. Sanitizers
 * know the function, and so what it writes.
 */
static inline ssize_t read_now(int fd, const struct iovec *vector, uint64_t offset_bytes)
{
#if defined(PIN_ASAN) || defined(PIN_TSAN)
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

	PIN_DCHECK(request->done_bytes == 0);
	PIN_DCHECK(got <= (ssize_t)request->length_bytes);
	/* Errors too: the ring reports them, or makes them good. */
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
