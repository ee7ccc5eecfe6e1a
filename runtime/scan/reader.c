/* SPDX-License-Identifier: MIT */
/*
 * Lanes at work: claim, buffer, read, hand over.
 */
#include "runtime/scan/reader.h"
#include "runtime/base/check.h"
#include "runtime/core/flight_start.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	/*
	 * New bytes handed over in a row before others on the worker get a
	 * turn, and before reads that were begun meanwhile are submitted.
	 */
	TURN_BYTES = 512 << 10,
	/*
	 * Reads of a worker that line up for a device: enough for the next to
	 * be there when one ends.
	 */
	LINED_UP_MAX = 2,
	/* Lanes to begin with, for each worker. */
	FIRST_LANES = 2,
};

static void run_parallel_lane(struct pin_lane *lane);
static void pump_in_order(struct pin_reader *reader);

/* ---- the end ---- */

static void note_error(struct pin_reader *reader, int error)
{
	uint32_t none = 0;

	PIN_CHECK(error < 0);
	pin_cas_seq_cst_u32(&reader->error, &none, (uint32_t)-error);
}

int pin_reader_error(const struct pin_reader *reader)
{
	return -(int)pin_load_acquire_u32(&reader->error);
}

bool pin_reader_file_changed(const struct pin_reader *reader)
{
	const struct pinion_file *file = reader->file;
	struct stat status;

	if (reader->plan.is_unsized) {
		return false;
	}
	/* Files of /sys claim a page and hold less; they occupy no blocks. */
	if (pin_load_acquire_u32(&reader->was_short) != 0 && file->allocated_bytes > 0) {
		return true;
	}
	return fstat(file->fd, &status) == 0 && (uint64_t)status.st_size != file->size_bytes;
}

static void end_lane(struct pin_reader *reader)
{
	const struct pin_host *host = pin_worker_current()->shared->host;
	bool is_last;

	pin_lock_acquire(&reader->lock, host);
	is_last = pin_fetch_sub_acq_rel_u32(&reader->lanes_left, 1) == 1; /* [READER-1] */
	pin_lock_release(&reader->lock, host);
	if (is_last) {
		reader->done(reader);
	}
}

/* ---- as many as the device wants ---- */

static bool is_crowded(const struct pin_worker *worker)
{
	return worker->throttle.lined_up >= LINED_UP_MAX;
}

static void put_to_rest(struct pin_reader *reader, struct pin_lane *lane)
{
	lane->next_resting = reader->resting;
	reader->resting = lane;
	pin_store_relaxed_u32(&reader->has_resting, 1);
}

/* True: the reader is no longer this lane's, and may be gone. */
static bool try_rest(struct pin_lane *lane)
{
	struct pin_reader *reader = lane->reader;
	struct pin_worker *worker = pin_worker_current();
	bool may_rest;

	if (!is_crowded(worker)) {
		return false;
	}
	pin_lock_acquire(&reader->lock, worker->shared->host);
	may_rest = pin_load_relaxed_u32(&reader->lanes_left) > 1; /* [READER-1] */
	if (may_rest) {
		put_to_rest(reader, lane);
		pin_fetch_sub_acq_rel_u32(&reader->lanes_left, 1); /* [READER-1] */
	}
	pin_lock_release(&reader->lock, worker->shared->host);
	return may_rest;
}

static void cancel_lane(struct pinion_task *task);

/* A read went to the device at once: it may want another. */
static void call_another(struct pin_reader *reader)
{
	struct pin_worker *worker = pin_worker_current();
	struct pin_lane *lane;

	if (worker->throttle.lined_up > 0 || pin_load_relaxed_u32(&reader->has_resting) == 0) {
		return;
	}
	pin_lock_acquire(&reader->lock, worker->shared->host);
	lane = reader->resting;
	if (lane != NULL) {
		reader->resting = lane->next_resting;
		pin_store_relaxed_u32(&reader->has_resting, reader->resting != NULL);
		pin_fetch_add_acq_rel_u32(&reader->lanes_left, 1); /* [READER-1] */
	}
	pin_lock_release(&reader->lock, worker->shared->host);
	if (lane != NULL && pin_worker_spawn_shared(worker, &lane->request.task) < 0) {
		cancel_lane(&lane->request.task);
	}
}

/* ---- windows ---- */

/* False when there is none left, or the file failed. */
static bool claim_window(struct pin_lane *lane)
{
	struct pin_reader *reader = lane->reader;
	const struct pin_host *host = pin_worker_current()->shared->host;
	bool claimed;

	if (pin_load_acquire_u32(&reader->error) != 0) {
		return false;
	}
	pin_lock_acquire(&reader->lock, host);
	claimed = pin_window_next(&reader->plan, &lane->claim);
	pin_lock_release(&reader->lock, host);
	if (!claimed) {
		return false;
	}
	if (pin_load_acquire_u32(reader->is_cancelled) != 0) {
		note_error(reader, -ECANCELED);
		return false;
	}
	lane->state = PIN_LANE_CLAIMED;
	if (lane->claim.is_hole) {
		lane->result = 0;
		lane->state = PIN_LANE_READ;
	}
	return true;
}

/* Where the new bytes that were read end; the claim's end unless cut short. */
static uint64_t find_end(struct pin_lane *lane)
{
	struct pin_reader *reader = lane->reader;
	struct pin_window_claim *claim = &lane->claim;
	uint64_t end = claim->read_offset + (uint64_t)lane->result;

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

static void hand_over(struct pin_lane *lane)
{
	struct pin_window_claim *claim = &lane->claim;
	uint64_t end = find_end(lane);
	struct pinion_window window = {
		.base_offset_bytes = claim->start,
		.length_bytes = end - claim->start,
		.index = claim->index,
		.is_hole = claim->is_hole,
		.is_last = claim->is_last,
	};
	int rc;

	if (pin_load_acquire_u32(&lane->reader->error) != 0) {
		return; /* invariant 2 */
	}
	/*
	 * What shrank below its start has nothing new, and no prefix to show.
	 */
	if (!claim->is_hole && claim->read_offset + (uint64_t)lane->result >= claim->start) {
		window.bytes = lane->buffer.buffer.bytes + (claim->base - claim->read_offset);
		window.base_offset_bytes = claim->base;
		window.prefix_bytes = claim->start - claim->base;
		window.length_bytes += window.prefix_bytes;
	}
	rc = lane->reader->deliver(lane->reader, &window);
	if (rc < 0) {
		note_error(lane->reader, rc);
	}
}

/* ---- reading ---- */

/*
 * Cached data is copied at once: cheaper than through a ring. False when the
 * kernel would have to wait for the disk.
 */
static bool read_cached(struct pin_lane *lane)
{
	const struct pinion_file *file = lane->reader->file;
	struct iovec vector = {
		.iov_base = lane->buffer.buffer.bytes, .iov_len = lane->claim.read_bytes};
	ssize_t got;

	if (file->is_direct || file->cached_percent == 0) {
		return false;
	}
	got = preadv2(file->fd, &vector, 1, (off_t)lane->claim.read_offset, RWF_NOWAIT);
	if (got > 0 && lane->reader->plan.is_unsized) {
		return false; /* only a read of nothing shows where it ends */
	}
	if (got < 0 && errno == EOPNOTSUPP && file->cached_percent == 100) {
		/*
		 * In memory, on a file system that cannot promise it (tmpfs).
		 */
		got = pread(file->fd, lane->buffer.buffer.bytes, lane->claim.read_bytes,
			(off_t)lane->claim.read_offset);
	}
	if (got < 0 ||
		(got < (ssize_t)lane->claim.read_bytes &&
			lane->claim.read_offset + (uint64_t)got < file->size_bytes)) {
		return false;
	}
	lane->result = (int32_t)got;
	return true;
}

static int start_read(struct pin_lane *lane)
{
	struct pinion_request *request = &lane->request;

	request->file = lane->reader->file;
	request->bytes = lane->buffer.buffer.bytes;
	request->offset_bytes = lane->claim.read_offset;
	request->length_bytes = lane->claim.read_bytes;
	return pin_worker_submit_one(pin_worker_current(), request);
}

/* -> READ when the bytes are there, READING when they are on their way. */
static void read_window(struct pin_lane *lane)
{
	int rc;

	PIN_CHECK(lane->state == PIN_LANE_BUFFERED);
	if (read_cached(lane)) {
		lane->state = PIN_LANE_READ;
		return;
	}
	rc = start_read(lane);
	if (rc == 0) {
		lane->state = PIN_LANE_READING;
	} else if (rc == -EAGAIN) {
		/*
		 * The ring is full of other requests; come back when some are
		 * done.
		 */
		pin_worker_spawn_bound(pin_worker_current(), &lane->request.task);
	} else {
		lane->result = rc;
		lane->state = PIN_LANE_READ;
	}
}

/* False: the lane is in the queue and will be continued with a buffer. */
static bool get_buffer(struct pin_lane *lane)
{
	size_t bytes = (size_t)pin_round_up(lane->claim.read_bytes, PIN_PAGE_BYTES);

	if (!pin_worker_buffer_await(pin_worker_current(), bytes, &lane->buffer)) {
		return false;
	}
	lane->state = PIN_LANE_BUFFERED;
	return true;
}

/* Hands over what a lane has read and gives its buffer back. */
static void consume(struct pin_lane *lane)
{
	PIN_CHECK(lane->state == PIN_LANE_READ);
	if (lane->result < 0) {
		note_error(lane->reader, lane->result);
	} else {
		hand_over(lane);
	}
	if (lane->buffer.buffer.bytes != NULL) {
		pin_worker_buffer_release(pin_worker_current(), &lane->buffer.buffer);
		lane->buffer.buffer.bytes = NULL;
	}
	lane->state = PIN_LANE_IDLE;
}

/* ---- lanes ---- */

/*
 * A read completed, a buffer was handed over, or it is this lane's turn again.
 */
static int continue_lane(struct pinion_task *task)
{
	struct pin_lane *lane = PIN_CONTAINER_OF(task, struct pin_lane, request.task);

	if (lane->state == PIN_LANE_READING) {
		lane->result = lane->request.result;
		lane->state = PIN_LANE_READ;
	} else if (lane->state == PIN_LANE_CLAIMED) {
		lane->state = PIN_LANE_BUFFERED;
	}
	if (!lane->reader->is_in_order) {
		run_parallel_lane(lane);
		return 0;
	}
	if (lane->state == PIN_LANE_BUFFERED) {
		lane->reader->is_waiting = false;
		read_window(lane);
	}
	pump_in_order(lane->reader);
	return 0;
}

static void cancel_lane(struct pinion_task *task)
{
	struct pin_lane *lane = PIN_CONTAINER_OF(task, struct pin_lane, request.task);

	note_error(lane->reader, -ECANCELED);
	end_lane(lane->reader);
}

static void run_parallel_lane(struct pin_lane *lane)
{
	if (lane->state == PIN_LANE_READ) {
		consume(lane);
	}
	if (lane->state == PIN_LANE_IDLE) {
		if (try_rest(lane)) {
			return;
		}
		if (!claim_window(lane)) {
			end_lane(lane->reader);
			return;
		}
	}
	if (lane->state == PIN_LANE_CLAIMED && !get_buffer(lane)) {
		return;
	}
	if (lane->state == PIN_LANE_BUFFERED) {
		read_window(lane);
		if (lane->state == PIN_LANE_READING) {
			call_another(lane->reader);
		}
	}
	if (lane->state == PIN_LANE_READ) {
		/*
		 * No completion will come; let others have their turn in
		 * between.
		 */
		consume(lane);
		pin_worker_spawn_bound(pin_worker_current(), &lane->request.task);
	}
}

/* The next lane in turn claims and reads. False: nothing can be begun now. */
static bool begin_in_order(struct pin_reader *reader)
{
	struct pin_lane *lane = &reader->lanes[reader->claimed_count % reader->lane_count];

	if (reader->is_waiting || lane->state != PIN_LANE_IDLE ||
		(is_crowded(pin_worker_current()) &&
			reader->claimed_count > reader->delivered_count) ||
		(reader->plan.is_unsized && reader->claimed_count > reader->delivered_count) ||
		!claim_window(lane)) {
		return false;
	}
	reader->claimed_count++;
	if (lane->state == PIN_LANE_CLAIMED) {
		if (!get_buffer(lane)) {
			reader->is_waiting = true;
			return false;
		}
		read_window(lane);
	}
	return true;
}

static int take_turn(struct pinion_task *task)
{
	struct pin_reader *reader = PIN_CONTAINER_OF(task, struct pin_reader, turn);

	reader->has_turn_queued = false;
	pump_in_order(reader);
	return 0;
}

/*
 * Hands over what is due and keeps reads running ahead of it. Reads that leave
 * for the disk are begun first; a copy from the cache is made when there is
 * nothing left to hand over, so that it is still in the core's cache then.
 */
static void pump_in_order(struct pin_reader *reader)
{
	bool reads_ahead = reader->file->is_direct || reader->file->cached_percent == 0;
	uint64_t handed_over_bytes = 0;

	if (reader->has_turn_queued) {
		return;
	}
	for (;;) {
		struct pin_lane *lane =
			&reader->lanes[reader->delivered_count % reader->lane_count];

		while (reads_ahead && begin_in_order(reader)) {
		}
		if (reader->delivered_count < reader->claimed_count &&
			lane->state == PIN_LANE_READ) {
			if (handed_over_bytes >= TURN_BYTES) {
				reader->has_turn_queued = true;
				reader->turn = (struct pinion_task){.run = take_turn};
				pin_worker_spawn_bound(pin_worker_current(), &reader->turn);
				return;
			}
			handed_over_bytes += lane->claim.end - lane->claim.start;
			consume(lane);
			reader->delivered_count++;
		} else if (!begin_in_order(reader)) {
			break;
		}
	}
	if (reader->delivered_count == reader->claimed_count) {
		end_lane(reader);
	}
}

void pin_reader_start(struct pin_reader *reader)
{
	uint64_t window_count = reader->plan.size_bytes / reader->plan.window_bytes + 1;
	uint32_t task_count = reader->lane_count;
	uint32_t first_count;
	struct pin_worker *worker = pin_worker_current();

	for (uint32_t i = 0; i < reader->lane_count; i++) {
		struct pin_lane *lane = &reader->lanes[i];

		lane->reader = reader;
		lane->state = PIN_LANE_IDLE;
		lane->request.task.run = continue_lane;
		lane->request.task.cancel = cancel_lane;
		lane->buffer.task = &lane->request.task;
		lane->buffer.buffer.bytes = NULL;
	}
	reader->claimed_count = 0;
	reader->delivered_count = 0;
	reader->is_waiting = false;
	reader->has_turn_queued = false;
	pin_store_release_u32(&reader->error, 0);
	pin_store_release_u32(&reader->was_short, 0);
	if (reader->is_in_order || reader->plan.is_unsized) {
		task_count = 1;
	} else if (window_count < task_count) {
		task_count = (uint32_t)window_count;
	}
	first_count = worker->shared->worker_count * FIRST_LANES;
	first_count = first_count < task_count ? first_count : task_count;
	reader->resting = NULL;
	pin_store_relaxed_u32(&reader->has_resting, 0);
	for (uint32_t i = task_count; i > first_count; i--) {
		put_to_rest(reader, &reader->lanes[i - 1]);
	}
	pin_store_release_u32(&reader->lanes_left, first_count); /* [READER-1] */
	for (uint32_t i = 1; i < first_count; i++) {
		if (pin_worker_spawn_shared(worker, &reader->lanes[i].request.task) < 0) {
			cancel_lane(&reader->lanes[i].request.task);
		}
	}
	if (reader->is_in_order) {
		pump_in_order(reader);
	} else {
		run_parallel_lane(&reader->lanes[0]);
	}
}
