/* SPDX-License-Identifier: MIT */
/*
 * A track at work: claim, buffer, read, hand over.
 */
#include "runtime/scan/track.h"
#include "runtime/base/check.h"
#include "runtime/core/flight_start.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

void pin_track_note_error(struct pin_reader *reader, int error)
{
	uint32_t none = 0;

	PIN_CHECK(error < 0);
	pin_cas_seq_cst_u32(&reader->error, &none, (uint32_t)-error);
}

/* ---- windows ---- */

bool pin_track_claim(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	const struct pin_host *host = pin_worker_current()->shared->host;
	bool claimed;

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
	track->state = PIN_TRACK_CLAIMED;
	if (track->claim.is_hole) {
		track->result = 0;
		track->state = PIN_TRACK_READ;
	}
	return true;
}

/* Where the new bytes that were read end; the claim's end unless cut short. */
static uint64_t find_end(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	struct pin_window_claim *claim = &track->claim;
	uint64_t end = claim->read_offset + (uint64_t)track->result;

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
	rc = track->reader->deliver(track->reader, &window);
	if (rc < 0) {
		pin_track_note_error(track->reader, rc);
	}
}

/* ---- reading ---- */

/*
 * Cached data is copied at once: cheaper than through a ring. False when the
 * kernel would have to wait for the disk.
 */
static bool read_cached(struct pin_track *track)
{
	const struct pinion_file *file = track->reader->file;
	struct iovec vector = {
		.iov_base = track->buffer.buffer.bytes, .iov_len = track->claim.read_bytes};
	ssize_t got;

	if (file->is_direct || file->cached_percent == 0) {
		return false;
	}
	got = preadv2(file->fd, &vector, 1, (off_t)track->claim.read_offset, RWF_NOWAIT);
	if (got > 0 && track->reader->plan.is_unsized) {
		return false; /* only a read of nothing shows where it ends */
	}
	if (got < 0 && errno == EOPNOTSUPP && file->cached_percent == 100) {
		/*
		 * In memory, on a file system that cannot promise it (tmpfs).
		 */
		got = pread(file->fd, track->buffer.buffer.bytes, track->claim.read_bytes,
			(off_t)track->claim.read_offset);
	}
	if (got < 0 ||
		(got < (ssize_t)track->claim.read_bytes &&
			track->claim.read_offset + (uint64_t)got < file->size_bytes)) {
		return false;
	}
	track->result = (int32_t)got;
	return true;
}

static int start_read(struct pin_track *track)
{
	struct pin_worker *worker = pin_worker_current();
	struct pinion_request *request = &track->request;
	/* Where others use the ring the read may be over elsewhere by then. */
	bool tells_pace = worker->ring.is_deferred && !worker->shares_ring;
	int rc;

	request->file = track->reader->file;
	request->bytes = track->buffer.buffer.bytes;
	request->offset_bytes = track->claim.read_offset;
	request->length_bytes = track->claim.read_bytes;
	track->worker = NULL;
	if (!tells_pace) {
		return pin_worker_submit_one(worker, request);
	}
	track->asked_before = worker->ring.asked_count;
	rc = pin_worker_submit_one(worker, request);
	/* What had to line up, or went elsewhere, tells nothing. */
	if (rc == 0 && worker->throttle.lined_up == 0 && !pin_request_of(request)->is_aside) {
		track->worker = worker;
	}
	return rc;
}

void pin_track_note_end(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	const struct pin_worker *worker = pin_worker_current();
	uint32_t row = pin_load_relaxed_u32(&reader->instant_row); /* a guess */
	uint32_t next;

	if (track->worker != worker) {
		return;
	}
	next = worker->ring.asked_count == track->asked_before ? row + 1 : 0;
	next = next < PIN_READER_INSTANT_ROW ? next : PIN_READER_INSTANT_ROW;
	if (next != row) {
		pin_store_relaxed_u32(&reader->instant_row, next);
	}
}

void pin_track_read(struct pin_track *track)
{
	int rc;

	PIN_CHECK(track->state == PIN_TRACK_BUFFERED);
	if (read_cached(track)) {
		track->state = PIN_TRACK_READ;
		return;
	}
	rc = start_read(track);
	if (rc == 0) {
		track->state = PIN_TRACK_READING;
	} else if (rc == -EAGAIN) {
		/*
		 * The ring is full of other requests; come back when some are
		 * done.
		 */
		pin_worker_spawn_bound(pin_worker_current(), &track->request.task);
	} else {
		track->result = rc;
		track->state = PIN_TRACK_READ;
	}
}

bool pin_track_get_buffer(struct pin_track *track)
{
	size_t bytes = (size_t)pin_round_up(track->claim.read_bytes, PIN_PAGE_BYTES);

	if (!pin_worker_buffer_await(pin_worker_current(), bytes, &track->buffer)) {
		return false;
	}
	track->state = PIN_TRACK_BUFFERED;
	return true;
}

void pin_track_consume(struct pin_track *track)
{
	PIN_CHECK(track->state == PIN_TRACK_READ);
	if (track->result < 0) {
		pin_track_note_error(track->reader, track->result);
	} else {
		hand_over(track);
	}
	if (track->buffer.buffer.bytes != NULL) {
		pin_worker_buffer_release(pin_worker_current(), &track->buffer.buffer);
		track->buffer.buffer.bytes = NULL;
	}
	track->state = PIN_TRACK_IDLE;
}
