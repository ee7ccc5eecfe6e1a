/* SPDX-License-Identifier: MIT */
/*
 * A track at work: claim a window, get a buffer, read, hand it to the caller.
 *
 * Runs on whichever worker its task or its read's completion is on;
 * file_reader.c decides when.
 *
 * Invariant: a window is handed over at most once, and none after the file's
 * first error.
 */
#include "runtime/scan/file_reader.h"
#include "runtime/base/check.h"
#include "runtime/host/heap.h"
#include "runtime/io/file.h"
#include "runtime/worker/request.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

void pin_track_note_error(struct pin_reader *reader, int error)
{
	uint32_t none = 0;

	PIN_CHECK(error < 0);
	pin_cas_seq_cst_u32(&reader->error, &none, 0 - (uint32_t)error);
}

/*
 * Whether a file that the kernel makes up has taken all the time it may: the
 * only sign of one without an end.
 */
static bool is_endless(const struct pin_reader *reader)
{
	return reader->until_ns != 0 &&
		pin_worker_current()->shared->host->now_ns() >= reader->until_ns;
}

/* ---- windows ---- */

/*
 * The lock orders claims, so windows are claimed in the order of the file. A
 * hole needs no buffer and no read.
 */
bool pin_track_claim(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	const struct pin_host *host = pin_worker_current()->shared->host;
	bool claimed;

	PIN_DCHECK(track->state == PIN_TRACK_IDLE && track->buffer.buffer.bytes == NULL);
	if (pin_load_acquire_u32(&reader->error) != 0) {
		return false;
	}
	pin_lock_acquire(&reader->lock, host);
	claimed = pin_window_next(&reader->plan, &track->claim);
	pin_lock_release(&reader->lock, host);
	if (!claimed) {
		return false;
	}
	if (pin_load_acquire_u32(reader->is_cancelled) != 0) {
		pin_track_note_error(reader, -ECANCELED);
		return false;
	}
	if (is_endless(reader)) {
		pin_track_note_error(reader, -EFBIG);
		return false;
	}
	track->state = PIN_TRACK_CLAIMED;
	track->done_bytes = 0;
	if (track->claim.is_hole) {
		track->result = 0;
		track->state = PIN_TRACK_READ;
	}
	return true;
}

/* ---- pages that cannot be read ---- */

/* Errors of a range. Any other error is taken as one of the whole file. */
static bool is_medium_error(int64_t error)
{
	return error == -EIO || error == -ENODATA || error == -EBADMSG || error == -EILSEQ ||
		error == -EREMOTEIO || error == -EUCLEAN;
}

static void end_salvage(struct pin_track *track, int32_t result)
{
	PIN_DCHECK(track->salvage.gaps != NULL && track->state == PIN_TRACK_READING);
	PIN_DCHECK(result <= (int64_t)track->claim.read_bytes);
	track->result = result;
	track->state = PIN_TRACK_READ;
}

static void free_salvage(struct pin_track *track)
{
	struct pin_salvage *salvage = &track->salvage;

	if (salvage->gaps != NULL) {
		PIN_DCHECK(salvage->gap_count <= salvage->gap_capacity);
		pin_heap_release(pin_worker_current()->shared->host, salvage->gaps, PIN_HEAP_ALIGN,
			salvage->gap_capacity, sizeof(*salvage->gaps));
		*salvage = (struct pin_salvage){0};
	}
}

/* Pages are those of the file, so the read grows to whole pages first. */
static bool begin_salvage(struct pin_track *track)
{
	struct pin_salvage *salvage = &track->salvage;
	struct pin_window_claim *claim = &track->claim;
	uint64_t offset = pin_round_down(claim->read_offset, PIN_PAGE_BYTES);
	uint64_t bytes = pin_round_up(claim->end, PIN_PAGE_BYTES) - offset;
	size_t capacity = (size_t)(bytes / PIN_PAGE_BYTES / 2 + 1);

	PIN_DCHECK(salvage->gaps == NULL && !claim->is_hole);
	/* It still fits the buffer, which was acquired for whole pages. */
	PIN_CHECK(bytes ==
		pin_round_up(claim->read_offset + claim->read_bytes, PIN_PAGE_BYTES) - offset);
	salvage->gaps = pin_heap_zeroed(pin_worker_current()->shared->host, PIN_HEAP_ALIGN,
		capacity, sizeof(*salvage->gaps));
	if (salvage->gaps == NULL) {
		return false;
	}
	salvage->gap_capacity = capacity;
	salvage->gap_count = 0;
	salvage->offset = offset;
	claim->read_offset = offset;
	claim->read_bytes = (uint32_t)bytes;
	return true;
}

static uint8_t *page_of(const struct pin_track *track)
{
	PIN_CHECK(track->salvage.offset >= track->claim.read_offset);
	PIN_CHECK(track->salvage.offset - track->claim.read_offset <=
		track->claim.read_bytes - PIN_PAGE_BYTES);
	return track->buffer.buffer.bytes + (track->salvage.offset - track->claim.read_offset);
}

/* Notes an unreadable page, zeroed in the buffer; neighbours become one gap. */
static void add_gap(struct pin_track *track, int32_t error)
{
	struct pin_salvage *salvage = &track->salvage;
	uint64_t end = salvage->offset + PIN_PAGE_BYTES;
	struct pinion_gap gap = {.offset_bytes = salvage->offset, .error = error};

	PIN_DCHECK(error < 0 && salvage->offset % PIN_PAGE_BYTES == 0);
	PIN_DCHECK(salvage->offset < track->reader->plan.size_bytes);
	end = end < track->reader->plan.size_bytes ? end : track->reader->plan.size_bytes;
	gap.length_bytes = end - gap.offset_bytes;
	memset(page_of(track), 0, PIN_PAGE_BYTES);
	/* Of adjacent pages the error of the first counts. */
	if (salvage->gap_count > 0) {
		struct pinion_gap *last = &salvage->gaps[salvage->gap_count - 1];

		if (last->offset_bytes + last->length_bytes == gap.offset_bytes) {
			last->length_bytes += gap.length_bytes;
			return;
		}
	}
	PIN_CHECK(salvage->gap_count < salvage->gap_capacity);
	salvage->gaps[salvage->gap_count++] = gap;
}

/* A page was read, or failed. */
static void continue_salvage(struct pin_track *track, int64_t result)
{
	struct pin_salvage *salvage = &track->salvage;
	struct pin_window_claim *claim = &track->claim;

	PIN_DCHECK(result <= PIN_PAGE_BYTES);
	if (result < 0 && !is_medium_error(result)) {
		end_salvage(track, (int32_t)result);
		return;
	}
	if (pin_load_acquire_u32(track->reader->is_cancelled) != 0 ||
		pin_load_acquire_u32(&track->reader->error) != 0) {
		end_salvage(track, -ECANCELED);
		return;
	}
	if (result < 0) {
		add_gap(track, (int32_t)result);
		result = PIN_PAGE_BYTES;
	}
	salvage->offset += (uint64_t)result;
	if (result < PIN_PAGE_BYTES || salvage->offset >= claim->end) {
		end_salvage(track, (int32_t)(salvage->offset - claim->read_offset));
		return;
	}
	track->state = PIN_TRACK_BUFFERED;
}

/* The lowest gap of the file, as far as it is in new bytes. */
static void note_gap(struct pin_reader *reader, const struct pin_window_claim *claim,
	const struct pinion_gap *gap)
{
	const struct pin_host *host = pin_worker_current()->shared->host;
	struct pinion_gap *first = &reader->first_gap;

	PIN_DCHECK(gap->error < 0 && gap->length_bytes > 0);
	if (gap->offset_bytes + gap->length_bytes <= claim->start) {
		return; /* the window before has it */
	}
	pin_lock_acquire(&reader->lock, host);
	if (first->error == 0 || gap->offset_bytes < first->offset_bytes) {
		*first = *gap;
	}
	pin_lock_release(&reader->lock, host);
}

/* As far as they are in the window, which begins at `base`. */
static void hand_over_gaps(struct pin_track *track, struct pinion_window *window)
{
	struct pin_salvage *salvage = &track->salvage;
	uint64_t end = window->base_offset_bytes + window->length_bytes;

	for (size_t i = 0; i < salvage->gap_count; i++) {
		struct pinion_gap *gap = &salvage->gaps[i];
		uint64_t gap_end = gap->offset_bytes + gap->length_bytes;

		/* In the order of their offsets, and not adjacent. */
		PIN_DCHECK(i == 0 || gap[-1].offset_bytes < gap->offset_bytes);
		note_gap(track->reader, &track->claim, gap);
		if (gap_end <= window->base_offset_bytes || gap->offset_bytes >= end) {
			continue;
		}
		if (gap->offset_bytes < window->base_offset_bytes) {
			gap->offset_bytes = window->base_offset_bytes;
		}
		gap->length_bytes = (gap_end < end ? gap_end : end) - gap->offset_bytes;
		salvage->gaps[window->gap_count++] = *gap;
		PIN_DCHECK(window->gap_count <= i + 1);
	}
	window->gaps = window->gap_count > 0 ? salvage->gaps : NULL;
}

/* ---- handing over ---- */

/* Where the new bytes that were read end; the claim's end unless cut short. */
static uint64_t find_end(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	struct pin_window_claim *claim = &track->claim;
	uint64_t end = claim->read_offset + (uint64_t)track->result;

	PIN_DCHECK(track->result >= 0);
	PIN_DCHECK(claim->is_hole || (uint32_t)track->result <= claim->read_bytes);
	if (claim->is_hole || end >= claim->end) {
		return claim->end;
	}
	if (reader->plan.is_unsized) {
		pin_window_advance(&reader->plan, claim, end);
	} else {
		pin_fetch_or_seq_cst_u32(&reader->was_short, 1);
	}
	return end < claim->start ? claim->start : end;
}

/*
 * The prefix repeats the bytes before the window, so that a match across the
 * border is found.
 */
static void hand_over(struct pin_track *track)
{
	struct pin_window_claim *claim = &track->claim;
	uint64_t end = find_end(track);
	struct pinion_window window = {
		.base_offset_bytes = claim->start,
		.length_bytes = end - claim->start,
		.index = claim->index,
		.is_hole = claim->is_hole,
		.is_last = claim->is_last,
	};
	int rc;

	if (pin_load_acquire_u32(&track->reader->error) != 0) {
		return; /* invariant 2 */
	}
	/*
	 * What shrank below its start has nothing new, and no prefix to show.
	 */
	if (!claim->is_hole && claim->read_offset + (uint64_t)track->result >= claim->start) {
		window.bytes = track->buffer.buffer.bytes + (claim->base - claim->read_offset);
		window.base_offset_bytes = claim->base;
		window.prefix_bytes = claim->start - claim->base;
		window.length_bytes += window.prefix_bytes;
	}
	PIN_DCHECK(window.prefix_bytes <= window.length_bytes);
	PIN_DCHECK(window.bytes != NULL || window.prefix_bytes == 0);
	hand_over_gaps(track, &window);
	rc = track->reader->deliver(track->reader, &window);
	if (rc < 0) {
		pin_track_note_error(track->reader, rc);
	}
}

/* ---- reading ---- */

/*
 * Whether the read is of the whole file, with room for a byte more in the
 * buffer. Such a read shows as well where the file ends.
 */
static bool may_see_end(const struct pin_track *track)
{
	return track->claim.read_offset == 0 && track->claim.is_last &&
		track->claim.read_bytes % PIN_PAGE_BYTES != 0;
}

/* The file was taken to be cached, and is not. Leaves errno alone. */
static PIN_APART void correct(const struct pin_track *track, ssize_t got)
{
	int error = errno;

	/* It is one window, so this is the first read of the file. */
	PIN_DCHECK(track->claim.read_offset == 0 && track->claim.is_last);
	pin_file_correct(
		track->reader->file, got < 0 ? -error : got, &pin_worker_current()->devices);
	errno = error;
}

/*
 * Cached data is copied at once: cheaper than through a ring. False when the
 * kernel would have to wait for the disk.
 */
static bool read_cached(struct pin_track *track)
{
	struct pinion_file *file = track->reader->file;
	bool sees_end = may_see_end(track);
	struct iovec vector = {.iov_base = track->buffer.buffer.bytes,
		.iov_len = track->claim.read_bytes + (sees_end ? 1 : 0)};
	ssize_t got;

	PIN_DCHECK(track->claim.read_bytes > 0);
	if (file->is_direct || file->cached_percent == 0) {
		return false;
	}
	got = preadv2(file->fd, &vector, 1, (off_t)track->claim.read_offset, RWF_NOWAIT);
	if (got < (ssize_t)track->claim.read_bytes && (file->flags & PIN_FILE_ASSUMED) != 0) {
		correct(track, got);
	}
	if (got > 0 && track->reader->plan.is_unsized) {
		return false; /* only a read of nothing shows where it ends */
	}
	if (got < 0 && errno == EOPNOTSUPP && file->cached_percent == 100) {
		/*
		 * In memory, on a file system that cannot promise it (tmpfs).
		 */
		got = pread(
			file->fd, vector.iov_base, vector.iov_len, (off_t)track->claim.read_offset);
	}
	if (got < 0 ||
		(got < (ssize_t)track->claim.read_bytes &&
			track->claim.read_offset + (uint64_t)got < file->size_bytes)) {
		return false;
	}
	if (got > (ssize_t)track->claim.read_bytes) {
		got = (ssize_t)track->claim.read_bytes; /* it has grown, as its end will show */
	} else if (sees_end) {
		track->reader->has_seen_end = true; /* this is its only track */
	}
	track->result = (int32_t)got;
	return true;
}

enum {
	/* Between two attempts at a read that would block. */
	PAUSE_NS = 50 * 1000 * 1000,
};

/* What the request has waited inside the library counts as no time of it. */
static void note_waited(struct pin_track *track)
{
	const struct pinion_request *request = &track->request;

	if (request->op == PINION_OP_READ && request->deadline_ns > track->limit_ns) {
		track->limit_ns = request->deadline_ns;
	}
}

/*
 * The limit is for each read and stops while it waits for rates. A read that
 * would block without io_uring is tried again after a pause, as a request that
 * is a timeout.
 */
static void fill_deadline(struct pin_track *track)
{
	const struct pin_reader *reader = track->reader;
	struct pinion_request *request = &track->request;
	uint64_t now_ns;

	request->op = PINION_OP_READ;
	request->deadline_ns = 0;
	if (reader->timeout_ns == 0) {
		return;
	}
	pin_request_of(request)->stops_clock = true;
	now_ns = pin_worker_current()->shared->host->now_ns();
	if (track->limit_ns == 0) {
		track->limit_ns = now_ns + reader->timeout_ns;
		track->ended_before = pin_load_relaxed_u32(&reader->ended_reads);
	}
	request->deadline_ns = track->limit_ns;
	if (track->is_pausing) {
		request->op = PINION_OP_TIMEOUT;
		if (now_ns + PAUSE_NS < track->limit_ns) {
			request->deadline_ns = now_ns + PAUSE_NS;
		}
	}
	PIN_DCHECK(request->deadline_ns > 0 && request->deadline_ns <= track->limit_ns);
}

/*
 * A request that brought only part of its bytes: the next one goes on after
 * them, since /proc/kmsg returns a message only once.
 */
static bool has_progress(struct pin_track *track)
{
	const struct pinion_request *request = &track->request;
	uint64_t align_bytes = track->reader->file->is_direct ? PIN_PAGE_BYTES : 1;
	uint32_t done_bytes;

	if (request->op != PINION_OP_READ || track->salvage.gaps != NULL) {
		return false;
	}
	done_bytes = (uint32_t)pin_round_down(request->done_bytes, align_bytes);
	track->done_bytes += done_bytes;
	PIN_DCHECK(track->done_bytes < track->claim.read_bytes);
	return done_bytes > 0;
}

/*
 * With a timeout: whether the read has to go on, by another request. After a
 * pause, and where the file is merely slow: some bytes of this read have come,
 * or other reads of the file have ended meanwhile.
 */
static bool is_read_again(struct pin_track *track, int64_t *result)
{
	struct pin_reader *reader = track->reader;
	bool has_paused = track->is_pausing;
	uint32_t ended_reads;

	if (reader->timeout_ns == 0) {
		return false;
	}
	note_waited(track);
	track->is_pausing = *result == -EAGAIN;
	if ((track->is_pausing || *result == -ETIME) && has_progress(track)) {
		track->limit_ns = 0;
		if (!is_endless(reader)) {
			return true;
		}
		track->is_pausing = false;
		*result = -EFBIG;
		return false;
	}
	if (track->is_pausing || (has_paused && *result == -ETIME)) {
		return true; /* past the limit it ends with -ETIME at once */
	}
	track->limit_ns = 0;
	/* Relaxed, and one of two may get lost: any change is enough. */
	ended_reads = pin_load_relaxed_u32(&reader->ended_reads);
	if (*result >= 0) {
		pin_store_relaxed_u32(&reader->ended_reads, ended_reads + 1);
	}
	return *result == -ETIME && ended_reads != track->ended_before;
}

static void fill_request(struct pin_track *track)
{
	struct pinion_request *request = &track->request;

	PIN_DCHECK(track->done_bytes < track->claim.read_bytes);
	fill_deadline(track);
	request->file = track->reader->file;
	request->bytes = track->buffer.buffer.bytes + track->done_bytes;
	request->offset_bytes = track->claim.read_offset + track->done_bytes;
	request->length_bytes = track->claim.read_bytes - track->done_bytes;
	if (track->salvage.gaps != NULL) {
		request->bytes = page_of(track);
		request->offset_bytes = track->salvage.offset;
		request->length_bytes = PIN_PAGE_BYTES;
	}
}

/*
 * Notes whether the device took the read at once, by the ring's own counters:
 * that is how the reader learns to call in more tracks.
 */
static int start_read(struct pin_track *track)
{
	struct pin_worker *worker = pin_worker_current();
	struct pinion_request *request = &track->request;
	/* Where others use the ring the read may be over elsewhere by then. */
	bool tells_pace = worker->ring.is_deferred && !worker->shares_ring;
	int rc;

	fill_request(track);
	PIN_DCHECK(request->length_bytes > 0);
	track->worker = NULL;
	if (!tells_pace || track->salvage.gaps != NULL || track->is_pausing) {
		return pin_worker_submit_one(worker, request);
	}
	track->asked_before = worker->ring.asked_count;
	rc = pin_worker_submit_one(worker, request);
	/* A queued or diverted read is no evidence. */
	if (rc == 0 && worker->device_queue.queued == 0 && !pin_request_of(request)->is_secondary) {
		track->worker = worker;
	}
	return rc;
}

/* Learns whether the read was over when it was submitted. */
static void note_end(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	const struct pin_worker *worker = pin_worker_current();
	uint32_t row = pin_load_relaxed_u32(&reader->instant_row); /* a guess */
	uint32_t next;

	PIN_DCHECK(row <= PIN_READER_INSTANT_ROW);
	if (track->worker != worker) {
		return;
	}
	next = worker->ring.asked_count == track->asked_before ? row + 1 : 0;
	next = next < PIN_READER_INSTANT_ROW ? next : PIN_READER_INSTANT_ROW;
	if (next != row) {
		pin_store_relaxed_u32(&reader->instant_row, next);
	}
}

/*
 * The read may have to go on: after a pause, or page by page if the medium
 * failed and gaps are wanted.
 */
void pin_track_end_read(struct pin_track *track)
{
	int64_t result = track->request.result;

	PIN_CHECK(track->state == PIN_TRACK_READING);
	PIN_DCHECK(track->salvage.gaps != NULL ||
		track->done_bytes + (result > 0 ? result : 0) <= track->claim.read_bytes);
	note_end(track);
	if (is_read_again(track, &result)) {
		track->state = PIN_TRACK_BUFFERED;
		return;
	}
	if (track->salvage.gaps != NULL) {
		continue_salvage(track, result);
		return;
	}
	track->result = (int32_t)(result < 0 ? result : result + track->done_bytes);
	track->state = PIN_TRACK_READ;
	if (is_medium_error(result) && track->reader->reports_gaps &&
		!track->reader->plan.is_unsized && begin_salvage(track)) {
		track->state = PIN_TRACK_BUFFERED;
	}
}

/*
 * Copies from the page cache where that needs no wait; else submits, or ends
 * the track's window with the reason.
 */
void pin_track_read(struct pin_track *track)
{
	uint64_t limit_ns = track->limit_ns;
	int rc;

	PIN_CHECK(track->state == PIN_TRACK_BUFFERED);
	PIN_DCHECK(!track->claim.is_hole && track->buffer.buffer.bytes != NULL);
	if (track->salvage.gaps == NULL && read_cached(track)) {
		track->state = PIN_TRACK_READ;
		return;
	}
	if (pin_load_acquire_u32(track->reader->is_cancelled) != 0) { /* [CANCEL-1] */
		track->result = -ECANCELED;
		track->state = PIN_TRACK_READ;
		return;
	}
	rc = start_read(track);
	if (rc == 0) {
		track->state = PIN_TRACK_READING;
	} else if (rc == -EAGAIN) {
		/*
		 * The ring is full of other requests; come back when some are
		 * done. The time until then does not count.
		 */
		track->limit_ns = limit_ns;
		pin_worker_spawn_bound(pin_worker_current(), &track->request.task);
	} else {
		track->result = rc;
		track->state = PIN_TRACK_READ;
	}
}

bool pin_track_get_buffer(struct pin_track *track)
{
	const struct pin_window_claim *claim = &track->claim;
	/* Whole pages of the file, of which each can be read alone. */
	size_t bytes =
		(size_t)(pin_round_up(claim->read_offset + claim->read_bytes, PIN_PAGE_BYTES) -
			pin_round_down(claim->read_offset, PIN_PAGE_BYTES));
	int rc;

	PIN_DCHECK(track->state == PIN_TRACK_CLAIMED && track->buffer.buffer.bytes == NULL);
	PIN_DCHECK(bytes >= claim->read_bytes && bytes % PIN_PAGE_BYTES == 0);
	rc = pin_worker_buffer_await(pin_worker_current(), bytes, &track->buffer);
	if (rc == -EAGAIN) {
		return false;
	}
	track->result = rc;
	track->state = rc == 0 ? PIN_TRACK_BUFFERED : PIN_TRACK_READ;
	return true;
}

void pin_track_consume(struct pin_track *track)
{
	PIN_CHECK(track->state == PIN_TRACK_READ);
	PIN_DCHECK(
		track->result < 0 || track->claim.is_hole == (track->buffer.buffer.bytes == NULL));
	if (track->result < 0) {
		pin_track_note_error(track->reader, track->result);
	} else {
		hand_over(track);
	}
	free_salvage(track);
	if (track->buffer.buffer.bytes != NULL) {
		pin_worker_buffer_release(pin_worker_current(), &track->buffer.buffer);
		track->buffer.buffer.bytes = NULL;
	}
	track->state = PIN_TRACK_IDLE;
}
