/* SPDX-License-Identifier: MIT */
/*
 * Reads one file as windows: tracks in parallel or in order, as many as the
 * device wants.
 *
 * A scan's slot starts a reader on a worker; its tracks run as tasks on any
 * worker, in order on one. file_reader_track.c has a single track.
 *
 * Invariant: the reader ends once, when its last track ends, and then no
 * request or buffer of it is left.
 */
#include "runtime/scan/file_reader.h"
#include "runtime/base/check.h"
#include "runtime/worker/wake.h"

#include <errno.h>
#include <sys/stat.h>

enum {
	/*
	 * New bytes handed over in a row before others on the worker get a
	 * turn, and before reads that were begun meanwhile are submitted.
	 */
	TURN_BYTES = 512 << 10,
	/*
	 * Reads of a worker that are queued for a device: enough for the next
	 * to be there when one ends.
	 */
	QUEUED_MAX = 2,
	/* Tracks to begin with, for each worker. */
	FIRST_TRACKS = 2,
	/*
	 * Where reads are over when they are submitted: for each worker, and in
	 * order. A window is handed over while its bytes are in the core's
	 * cache.
	 */
	INSTANT_TRACKS = 1,
	INSTANT_AHEAD = 1,
};

static void run_parallel_track(struct pin_track *track);
static void pump_in_order(struct pin_reader *reader);

/* ---- the end ---- */

int pin_reader_error(const struct pin_reader *reader)
{
	uint32_t error = pin_load_acquire_u32(&reader->error);

	PIN_DCHECK(error <= 0 - (uint32_t)PIN_READER_ENOUGH);
	return error == 0 - (uint32_t)PIN_READER_ENOUGH ? 0 : -(int)error;
}

int pin_reader_gap_error(const struct pin_reader *reader)
{
	PIN_DCHECK(reader->first_gap.error <= 0);
	PIN_DCHECK((reader->first_gap.error == 0) == (reader->first_gap.length_bytes == 0));
	return reader->first_gap.error;
}

bool pin_reader_file_changed(const struct pin_reader *reader)
{
	const struct pinion_file *file = reader->file;
	struct stat status;

	if (reader->plan.is_unsized || reader->has_seen_end) {
		return false;
	}
	PIN_DCHECK(reader->plan.size_bytes == file->size_bytes);
	/* Files of /sys claim a page and hold less; they occupy no blocks. */
	if (pin_load_acquire_u32(&reader->was_short) != 0 && file->allocated_bytes > 0) {
		return true;
	}
	/* A device's size is not that of its name. */
	if ((file->flags & (PIN_FILE_COMMANDS | PIN_FILE_BLOCK_DEVICE)) != 0) {
		return false;
	}
	return fstat(file->fd, &status) == 0 && (uint64_t)status.st_size != file->size_bytes;
}

static void end_track(struct pin_reader *reader)
{
	const struct pin_host *host = pin_worker_current()->shared->host;
	uint32_t before;

	pin_lock_acquire(&reader->lock, host);
	PIN_DCHECK(pin_load_relaxed_u32(&reader->tracks_left) <= reader->track_count);
	before = pin_fetch_sub_acq_rel_u32(&reader->tracks_left, 1); /* [READER-1] */
	pin_lock_release(&reader->lock, host);
	/* The reader is gone once another track was the last. */
	PIN_CHECK(before > 0);
	if (before == 1) {
		reader->done(reader);
	}
}

/* ---- as many as the device wants ---- */

/* Of tracks in parallel, whether `more` besides are more than are of use. */
static bool is_instant_enough(
	const struct pin_reader *reader, const struct pin_worker *worker, uint32_t more)
{
	return pin_reader_is_instant(reader) &&
		pin_load_relaxed_u32(&reader->tracks_left) + more >
		worker->shared->worker_count * INSTANT_TRACKS;
}

static bool is_crowded(const struct pin_reader *reader, const struct pin_worker *worker)
{
	return worker->device_queue.queued >= QUEUED_MAX || is_instant_enough(reader, worker, 0);
}

static void put_to_rest(struct pin_reader *reader, struct pin_track *track)
{
	PIN_DCHECK(track->reader == reader && track != reader->resting);
	PIN_DCHECK(track->state == PIN_TRACK_IDLE && track->buffer.buffer.bytes == NULL);
	PIN_DCHECK((size_t)(track - reader->tracks) < reader->track_count);
	track->next_resting = reader->resting;
	reader->resting = track;
	pin_store_relaxed_u32(&reader->has_resting, 1);
}

/* True: the reader is no longer this track's, and may be gone. */
static bool try_rest(struct pin_track *track)
{
	struct pin_reader *reader = track->reader;
	struct pin_worker *worker = pin_worker_current();
	bool may_rest;

	PIN_DCHECK(!reader->is_in_order && track->state == PIN_TRACK_IDLE);
	if (!is_crowded(reader, worker)) {
		return false;
	}
	pin_lock_acquire(&reader->lock, worker->shared->host);
	may_rest = pin_load_relaxed_u32(&reader->tracks_left) > 1; /* [READER-1] */
	if (may_rest) {
		put_to_rest(reader, track);
		pin_fetch_sub_acq_rel_u32(&reader->tracks_left, 1); /* [READER-1] */
	}
	pin_lock_release(&reader->lock, worker->shared->host);
	return may_rest;
}

static void cancel_track(struct pinion_task *task);

/*
 * A read went to the device at once: it may want another, unless finished ones
 * still wait to be handed over.
 */
static void call_another(struct pin_reader *reader)
{
	struct pin_worker *worker = pin_worker_current();
	struct pin_track *track;

	PIN_DCHECK(!reader->is_in_order);
	if (worker->device_queue.queued > 0 || pin_load_relaxed_u32(&reader->has_resting) == 0 ||
		pin_ring_has_completions(&worker->ring) || is_instant_enough(reader, worker, 1)) {
		return;
	}
	pin_lock_acquire(&reader->lock, worker->shared->host);
	track = reader->resting;
	if (track != NULL) {
		reader->resting = track->next_resting;
		pin_store_relaxed_u32(&reader->has_resting, reader->resting != NULL);
		pin_fetch_add_acq_rel_u32(&reader->tracks_left, 1); /* [READER-1] */
	}
	pin_lock_release(&reader->lock, worker->shared->host);
	if (track != NULL && pin_worker_spawn_shared(worker, &track->request.task) < 0) {
		cancel_track(&track->request.task);
	}
}

/* ---- tracks ---- */

/*
 * A read completed, a buffer was handed over, or it is this track's turn again.
 */
static int continue_track(struct pinion_task *task)
{
	struct pin_track *track = PIN_CONTAINER_OF(task, struct pin_track, request.task);
	bool has_waited = track->state == PIN_TRACK_CLAIMED;

	/* What is read is handed over before the track ends its turn. */
	PIN_DCHECK(track->state != PIN_TRACK_READ);
	if (track->state == PIN_TRACK_READING) {
		pin_track_end_read(track);
	} else if (has_waited) {
		PIN_DCHECK(track->buffer.buffer.bytes != NULL); /* it came with the task */
		track->state = PIN_TRACK_BUFFERED;
	}
	if (!track->reader->is_in_order) {
		run_parallel_track(track);
		return 0;
	}
	if (track->state == PIN_TRACK_BUFFERED) {
		if (has_waited) {
			track->reader->is_waiting = false;
		}
		pin_track_read(track);
	}
	pump_in_order(track->reader);
	return 0;
}

static void cancel_track(struct pinion_task *task)
{
	struct pin_track *track = PIN_CONTAINER_OF(task, struct pin_track, request.task);

	pin_track_note_error(track->reader, -ECANCELED);
	end_track(track->reader);
}

/*
 * Where reads are over at once, or copies from the page cache, a worker needs
 * one track: of two on this one, one goes to a worker without. Else the tracks
 * of the last file would stay where they began, and other workers have none.
 */
static bool move_on(struct pin_track *track)
{
	const struct pinion_file *file = track->reader->file;
	bool is_copied = !file->is_direct && file->cached_percent > 0;
	struct pin_worker *worker = pin_worker_current();
	struct pin_worker *target;

	PIN_DCHECK(track->state == PIN_TRACK_IDLE && track->buffer.buffer.bytes == NULL);
	if ((!is_copied && !pin_reader_is_instant(track->reader)) ||
		(pin_list_is_empty(&worker->ready) && worker->ring.in_flight == 0)) {
		return false;
	}
	target = pin_wake_find_free(worker);
	return target != NULL && pin_worker_spawn_on(worker, target, &track->request.task) == 0;
}

/*
 * Takes the track as far as it goes without waiting. A step that waits (buffer,
 * read) arranges for this function to be called again.
 */
static void run_parallel_track(struct pin_track *track)
{
	PIN_DCHECK(!track->reader->is_in_order && track->state != PIN_TRACK_READING);
	if (track->state == PIN_TRACK_READ) {
		pin_track_consume(track);
	}
	if (track->state == PIN_TRACK_IDLE) {
		if (move_on(track)) {
			return;
		}
		if (try_rest(track)) {
			return;
		}
		if (!pin_track_claim(track)) {
			end_track(track->reader);
			return;
		}
	}
	if (track->state == PIN_TRACK_CLAIMED && !pin_track_get_buffer(track)) {
		return;
	}
	if (track->state == PIN_TRACK_BUFFERED) {
		pin_track_read(track);
		if (track->state == PIN_TRACK_READING) {
			call_another(track->reader);
		}
	}
	if (track->state == PIN_TRACK_READ) {
		/*
		 * No completion will come; let others have their turn in
		 * between.
		 */
		pin_track_consume(track);
		if (track->claim.is_last) {
			end_track(track->reader);
			return;
		}
		pin_worker_spawn_bound(pin_worker_current(), &track->request.task);
	}
}

/* In order: reads run ahead as far as is of use. */
static bool is_far_ahead(const struct pin_reader *reader)
{
	uint64_t ahead_count = reader->claimed_count - reader->delivered_count;

	PIN_DCHECK(reader->delivered_count <= reader->claimed_count);
	PIN_DCHECK(ahead_count <= reader->track_count);
	return ahead_count > 0 &&
		(reader->plan.is_unsized ||
			pin_worker_current()->device_queue.queued >= QUEUED_MAX ||
			(pin_reader_is_instant(reader) && ahead_count >= INSTANT_AHEAD));
}

/* The next track in turn claims and reads. False: nothing can be begun now. */
static bool begin_in_order(struct pin_reader *reader)
{
	struct pin_track *track = &reader->tracks[reader->claimed_count % reader->track_count];

	PIN_DCHECK(reader->is_in_order);
	if (reader->is_waiting || track->state != PIN_TRACK_IDLE || is_far_ahead(reader) ||
		!pin_track_claim(track)) {
		return false;
	}
	/* So tracks are used in the order of their windows. */
	PIN_DCHECK(track->claim.index == reader->claimed_count);
	reader->claimed_count++;
	if (track->state == PIN_TRACK_CLAIMED) {
		if (!pin_track_get_buffer(track)) {
			reader->is_waiting = true;
			return false;
		}
		/* Else it has failed for want of a buffer. */
		if (track->state == PIN_TRACK_BUFFERED) {
			pin_track_read(track);
		}
	}
	return true;
}

static int take_turn(struct pinion_task *task)
{
	struct pin_reader *reader = PIN_CONTAINER_OF(task, struct pin_reader, turn);

	PIN_DCHECK(reader->has_turn_queued);
	reader->has_turn_queued = false;
	pump_in_order(reader);
	return 0;
}

/*
 * Hands over windows that are due and keeps reads running ahead of them. Reads
 * that leave for the disk are begun first; a copy from the cache is made when
 * there is nothing left to hand over, so that it is still in the core's cache
 * then.
 */
static void pump_in_order(struct pin_reader *reader)
{
	bool reads_ahead = reader->file->is_direct || reader->file->cached_percent == 0;
	uint64_t handed_over_bytes = 0;

	if (reader->has_turn_queued) {
		return;
	}
	for (;;) {
		struct pin_track *track =
			&reader->tracks[reader->delivered_count % reader->track_count];

		while (reads_ahead && begin_in_order(reader)) {
		}
		if (reader->delivered_count < reader->claimed_count &&
			track->state == PIN_TRACK_READ) {
			if (handed_over_bytes >= TURN_BYTES) {
				reader->has_turn_queued = true;
				reader->turn = (struct pinion_task){.run = take_turn};
				pin_worker_spawn_bound(pin_worker_current(), &reader->turn);
				return;
			}
			PIN_DCHECK(track->claim.index == reader->delivered_count);
			handed_over_bytes += track->claim.end - track->claim.start;
			pin_track_consume(track);
			reader->delivered_count++;
		} else if (!begin_in_order(reader)) {
			break;
		}
	}
	if (reader->delivered_count == reader->claimed_count) {
		end_track(reader);
	}
}

/*
 * Starts a few tracks and rests the others: while reads go to the device at
 * once, resting ones are called in.
 */
void pin_reader_start(struct pin_reader *reader)
{
	uint64_t left_bytes = reader->plan.size_bytes - reader->plan.cursor;
	uint64_t window_count = left_bytes / reader->plan.window_bytes + 1;
	uint32_t task_count;
	uint32_t first_count;
	struct pin_worker *worker = pin_worker_current();

	PIN_DCHECK(reader->track_count > 0);
	PIN_DCHECK(reader->plan.next_index == 0 && !reader->plan.is_finished);
	/* Small files are many: each leaves other tracks' memory alone. */
	if (window_count < reader->track_count) {
		reader->track_count = (uint32_t)window_count;
	}
	task_count = reader->track_count;
	for (uint32_t i = 0; i < reader->track_count; i++) {
		struct pin_track *track = &reader->tracks[i];

		track->reader = reader;
		track->state = PIN_TRACK_IDLE;
		track->request.task.run = continue_track;
		track->request.task.cancel = cancel_track;
		track->buffer.task = &track->request.task;
		track->buffer.buffer.bytes = NULL;
		track->salvage = (struct pin_salvage){0};
		track->limit_ns = 0;
		track->is_pausing = false;
		track->done_bytes = 0;
	}
	reader->has_seen_end = false;
	reader->first_gap = (struct pinion_gap){0};
	reader->claimed_count = 0;
	reader->delivered_count = 0;
	reader->is_waiting = false;
	reader->has_turn_queued = false;
	pin_store_release_u32(&reader->error, 0);
	pin_store_release_u32(&reader->was_short, 0);
	pin_store_relaxed_u32(&reader->instant_row, 0);
	pin_store_relaxed_u32(&reader->ended_reads, 0);
	if (reader->is_in_order || reader->plan.is_unsized) {
		task_count = 1;
	}
	first_count = worker->shared->worker_count * FIRST_TRACKS;
	first_count = first_count < task_count ? first_count : task_count;
	PIN_DCHECK(first_count > 0 && task_count <= reader->track_count);
	reader->resting = NULL;
	pin_store_relaxed_u32(&reader->has_resting, 0);
	for (uint32_t i = task_count; i > first_count; i--) {
		put_to_rest(reader, &reader->tracks[i - 1]);
	}
	pin_store_release_u32(&reader->tracks_left, first_count); /* [READER-1] */
	for (uint32_t i = 1; i < first_count; i++) {
		if (pin_worker_spawn_shared(worker, &reader->tracks[i].request.task) < 0) {
			cancel_track(&reader->tracks[i].request.task);
		}
	}
	if (reader->is_in_order) {
		pump_in_order(reader);
	} else {
		run_parallel_track(&reader->tracks[0]);
	}
}
