/* SPDX-License-Identifier: MIT */
/*
 * One file's way through a worker.
 */
#include "runtime/scan/slot.h"
#include "runtime/base/check.h"
#include "runtime/host/kernel.h"
#include "runtime/host/longpath.h"
#include "runtime/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	/*
	 * Windows handed over in a row before others on the worker get a turn.
	 */
	TURN_WINDOWS = 4,
};

static void run_parallel_lane(struct pin_lane *lane);
static void pump_in_order(struct pin_slot *slot);

static bool is_in_order(const struct pin_slot *slot)
{
	return slot->scan->config.order == PINION_SCAN_IN_ORDER;
}

static struct pin_scan_worker *own_part(const struct pinion_scan *scan)
{
	return &scan->workers[pin_worker_current()->index];
}

/* ---- the end of a file ---- */

static void note_error(struct pin_slot *slot, int error)
{
	uint32_t none = 0;

	PIN_CHECK(error < 0);
	pin_cas_seq_cst_u32(&slot->error, &none, (uint32_t)-error);
}

static bool has_grown_or_shrunk(const struct pin_slot *slot)
{
	struct stat status;

	return !slot->plan.is_unsized && fstat(slot->file.file.fd, &status) == 0 &&
		(uint64_t)status.st_size != slot->file.file.size_bytes;
}

static void finish(struct pin_slot *slot)
{
	struct pinion_scan *scan = slot->scan;
	int error = -(int)pin_load_acquire_u32(&slot->error);
	enum pinion_scan_outcome outcome = PINION_SCAN_DONE;

	if (error == 0 && slot->has_opened && has_grown_or_shrunk(slot)) {
		error = -ESTALE;
	}
	if (pin_load_acquire_u32(&slot->was_cut) != 0 || error == -ECANCELED) {
		outcome = PINION_SCAN_CANCELLED;
		error = error == 0 ? -ECANCELED : error;
	} else if (error == -ENOTSUP && !slot->has_opened) {
		outcome = PINION_SCAN_SKIPPED;
	} else if (error < 0) {
		outcome = PINION_SCAN_FAILED;
	}
	if (slot->has_opened && scan->ops.close != NULL) {
		int rc = scan->ops.close(scan->arg, &slot->file, error);

		if (rc < 0 && outcome == PINION_SCAN_DONE) {
			outcome = PINION_SCAN_FAILED;
			error = rc;
		}
	}
	if (slot->file.file.is_direct) {
		own_part(scan)->totals.direct_files++;
	}
	pinion_file_close(&slot->file.file);
	pin_scan_report(scan, &own_part(scan)->totals, &slot->file, outcome,
		outcome == PINION_SCAN_CANCELLED ? -ECANCELED : error);
	pin_scan_put_slot(scan, slot);
}

static void end_lane(struct pin_slot *slot)
{
	if (pin_fetch_sub_acq_rel_u32(&slot->lanes_left, 1) == 1) { /* [SLOT-1] */
		finish(slot);
	}
}

/* ---- windows ---- */

static bool claim_window(struct pin_lane *lane)
{
	struct pin_slot *slot = lane->slot;
	bool claimed;

	if (pin_load_acquire_u32(&slot->error) != 0) {
		return false;
	}
	pin_lock_acquire(&slot->lock, slot->scan->host);
	claimed = pin_window_next(&slot->plan, &lane->claim);
	pin_lock_release(&slot->lock, slot->scan->host);
	if (claimed && pin_scan_is_cancelled(slot->scan)) {
		pin_fetch_or_seq_cst_u32(&slot->was_cut, 1);
		note_error(slot, -ECANCELED);
		return false;
	}
	if (claimed) {
		lane->state = PIN_LANE_CLAIMED;
	}
	return claimed;
}

/* Hands a window over; a file that failed gets no more of them. */
static void deliver(struct pin_lane *lane)
{
	struct pin_slot *slot = lane->slot;
	struct pinion_scan *scan = slot->scan;
	struct pin_window_claim *claim = &lane->claim;
	struct pinion_window window = {
		.base_offset_bytes = claim->base,
		.index = claim->index,
		.is_hole = claim->is_hole,
	};
	uint64_t got_end = claim->end;
	int rc;

	if (pin_load_acquire_u32(&slot->error) != 0) {
		return;
	}
	if (!claim->is_hole) {
		got_end = claim->read_offset + (uint64_t)lane->result;
		if (slot->plan.is_unsized) {
			pin_window_advance(
				&slot->plan, claim, got_end < claim->end ? got_end : claim->end);
		}
		got_end = got_end < claim->end ? got_end : claim->end;
		if (got_end < claim->start) {
			/*
			 * It shrank below this window: nothing new, and no
			 * prefix to show.
			 */
			got_end = claim->start;
			window.base_offset_bytes = claim->start;
		} else {
			window.bytes = lane->buffer + (claim->base - claim->read_offset);
			window.prefix_bytes = claim->start - claim->base;
		}
	}
	window.is_last = claim->is_last;
	window.length_bytes = window.prefix_bytes + (got_end - claim->start);
	rc = scan->ops.window(scan->arg, &slot->file, &window);
	own_part(scan)->totals.read_bytes += got_end - claim->start;
	if (claim->is_hole) {
		own_part(scan)->totals.hole_bytes += got_end - claim->start;
	}
	if (rc < 0) {
		note_error(slot, rc);
	}
}

/* ---- buffers ---- */

static size_t buffer_need(const struct pin_lane *lane)
{
	return (size_t)pin_round_up(lane->claim.read_bytes, PIN_PAGE_BYTES);
}

static struct pin_list *queue_for(const struct pin_lane *lane)
{
	struct pin_scan_worker *part = own_part(lane->slot->scan);

	return buffer_need(lane) > pin_worker_current()->shared->config.small_buffer_bytes
		? &part->buffer_queue
		: &part->small_buffer_queue;
}

/* False: the lane is in the queue and will be continued with a buffer. */
static bool get_buffer(struct pin_lane *lane)
{
	lane->buffer = pin_worker_buffer_acquire(
		pin_worker_current(), buffer_need(lane), &lane->buffer_index);
	if (lane->buffer == NULL) {
		pin_list_push(queue_for(lane), &lane->waiting);
		return false;
	}
	lane->state = PIN_LANE_BUFFERED;
	return true;
}

static void put_buffer(struct pin_lane *lane)
{
	struct pin_list *queue = queue_for(lane);
	struct pin_link *first = pin_list_pop(queue);

	if (first == NULL) {
		pin_worker_buffer_release(pin_worker_current(), lane->buffer, lane->buffer_index);
	} else {
		struct pin_lane *next = PIN_CONTAINER_OF(first, struct pin_lane, waiting);

		next->buffer = lane->buffer;
		next->buffer_index = lane->buffer_index;
		next->state = PIN_LANE_BUFFERED;
		pin_worker_spawn_bound(pin_worker_current(), &next->request.task);
	}
	lane->buffer = NULL;
}

/* ---- reading ---- */

/*
 * Cached data is copied at once: cheaper than through a ring. False when the
 * kernel would have to wait for the disk.
 */
static bool read_cached(struct pin_lane *lane)
{
	const struct pinion_file *file = &lane->slot->file.file;
	struct iovec vector = {.iov_base = lane->buffer, .iov_len = lane->claim.read_bytes};
	ssize_t got;

	if (file->is_direct || file->cached_percent == 0) {
		return false;
	}
	got = preadv2(file->fd, &vector, 1, (off_t)lane->claim.read_offset, RWF_NOWAIT);
	if (got > 0 && lane->slot->plan.is_unsized) {
		return false; /* only a read of nothing shows where it ends */
	}
	if (got < 0 && errno == EOPNOTSUPP && file->cached_percent == 100) {
		/*
		 * In memory, on a file system that cannot promise it (tmpfs).
		 */
		got = pread(file->fd, lane->buffer, lane->claim.read_bytes,
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

	request->file = &lane->slot->file.file;
	request->bytes = lane->buffer;
	request->offset_bytes = lane->claim.read_offset;
	request->length_bytes = lane->claim.read_bytes;
	return pin_worker_read(pin_worker_current(), request);
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

/* After a buffered read that brought data into the cache: out with it again. */
static void drop_from_cache(const struct pin_lane *lane)
{
	const struct pinion_file *file = &lane->slot->file.file;

	if ((file->flags & PIN_FILE_EVICT) != 0) {
		posix_fadvise(file->fd, (off_t)lane->claim.start,
			(off_t)(lane->claim.end - lane->claim.start), POSIX_FADV_DONTNEED);
	}
}

/* Hands over what a lane has read and gives its buffer back. */
static void consume(struct pin_lane *lane)
{
	PIN_CHECK(lane->state == PIN_LANE_READ);
	if (lane->result < 0) {
		note_error(lane->slot, lane->result);
	} else {
		deliver(lane);
		drop_from_cache(lane);
	}
	if (lane->buffer != NULL) {
		put_buffer(lane);
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
	}
	if (!is_in_order(lane->slot)) {
		run_parallel_lane(lane);
		return 0;
	}
	if (lane->state == PIN_LANE_BUFFERED) {
		lane->slot->is_waiting = false;
		read_window(lane);
	}
	pump_in_order(lane->slot);
	return 0;
}

static void cancel_lane(struct pinion_task *task)
{
	struct pin_lane *lane = PIN_CONTAINER_OF(task, struct pin_lane, request.task);

	pin_fetch_or_seq_cst_u32(&lane->slot->was_cut, 1);
	end_lane(lane->slot);
}

/* Claims the next window. False when there is none, or the file failed. */
static bool begin_window(struct pin_lane *lane)
{
	if (!claim_window(lane)) {
		return false;
	}
	if (lane->claim.is_hole) {
		lane->result = 0;
		lane->state = PIN_LANE_READ;
	}
	return true;
}

static void run_parallel_lane(struct pin_lane *lane)
{
	if (lane->state == PIN_LANE_READ) {
		consume(lane);
	}
	if (lane->state == PIN_LANE_IDLE && !begin_window(lane)) {
		end_lane(lane->slot);
		return;
	}
	if (lane->state == PIN_LANE_CLAIMED && !get_buffer(lane)) {
		return;
	}
	if (lane->state == PIN_LANE_BUFFERED) {
		read_window(lane);
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
static bool begin_in_order(struct pin_slot *slot)
{
	struct pin_lane *lane =
		&slot->lanes[slot->claimed_count % slot->scan->config.windows_in_flight];

	if (slot->is_waiting || lane->state != PIN_LANE_IDLE ||
		(slot->plan.is_unsized && slot->claimed_count > slot->delivered_count) ||
		!begin_window(lane)) {
		return false;
	}
	slot->claimed_count++;
	if (lane->state == PIN_LANE_CLAIMED) {
		if (!get_buffer(lane)) {
			slot->is_waiting = true;
			return false;
		}
		read_window(lane);
	}
	return true;
}

static int take_turn(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, turn);

	slot->has_turn_queued = false;
	pump_in_order(slot);
	return 0;
}

/* Hands over what is due and keeps reads running ahead of it. */
static void pump_in_order(struct pin_slot *slot)
{
	uint32_t handed_over = 0;

	if (slot->has_turn_queued) {
		return;
	}
	for (;;) {
		struct pin_lane *lane =
			&slot->lanes[slot->delivered_count % slot->scan->config.windows_in_flight];

		if (slot->delivered_count < slot->claimed_count && lane->state == PIN_LANE_READ) {
			if (handed_over == TURN_WINDOWS) {
				slot->has_turn_queued = true;
				slot->turn = (struct pinion_task){.run = take_turn};
				pin_worker_spawn_bound(pin_worker_current(), &slot->turn);
				return;
			}
			consume(lane);
			slot->delivered_count++;
			handed_over++;
		} else if (!begin_in_order(slot)) {
			break;
		}
	}
	if (slot->delivered_count == slot->claimed_count) {
		end_lane(slot);
	}
}

static void start_lanes(struct pin_slot *slot)
{
	uint32_t lane_count = slot->scan->config.windows_in_flight;
	uint64_t window_count = slot->plan.size_bytes / slot->plan.window_bytes + 1;
	struct pin_worker *worker = pin_worker_current();

	for (uint32_t i = 0; i < lane_count; i++) {
		slot->lanes[i].state = PIN_LANE_IDLE;
		slot->lanes[i].request.task.run = continue_lane;
		slot->lanes[i].request.task.cancel = cancel_lane;
	}
	slot->claimed_count = 0;
	slot->delivered_count = 0;
	slot->is_waiting = false;
	if (is_in_order(slot) || slot->plan.is_unsized) {
		lane_count = 1;
	} else if (window_count < lane_count) {
		lane_count = (uint32_t)window_count;
	}
	pin_store_release_u32(&slot->lanes_left, lane_count); /* [SLOT-1] */
	for (uint32_t i = 1; i < lane_count; i++) {
		if (pin_worker_spawn_shared(worker, &slot->lanes[i].request.task) < 0) {
			cancel_lane(&slot->lanes[i].request.task);
		}
	}
	if (is_in_order(slot)) {
		pump_in_order(slot);
	} else {
		run_parallel_lane(&slot->lanes[0]);
	}
}

/* ---- opening ---- */

static void fail_unopened(struct pin_slot *slot, int error)
{
	note_error(slot, error);
	finish(slot);
}

static void plan_windows(struct pin_slot *slot)
{
	const struct pinion_scan_config *config = &slot->scan->config;
	const struct pinion_file *file = &slot->file.file;

	slot->plan = (struct pin_window_plan){
		.fd = file->fd,
		.size_bytes = file->size_bytes,
		.window_bytes =
			file->is_direct ? config->window_bytes : slot->scan->cached_window_bytes,
		.overlap_bytes = config->overlap_bytes,
		.align_bytes = file->offset_align_bytes,
		.find_holes = config->report_holes != 0 && (file->flags & PIN_FILE_SPARSE) != 0,
		.is_unsized = file->size_bytes == 0,
	};
}

static void begin(struct pin_slot *slot, int fd)
{
	struct pinion_scan *scan = slot->scan;
	struct pin_worker *worker = pin_worker_current();
	int rc;

	if (fd < 0) {
		/* What open(2) says of a socket. */
		fail_unopened(slot, fd == -ENXIO ? -ENOTSUP : fd);
		return;
	}
	rc = pin_file_adopt(&slot->file.file, fd, scan->config.direct, &worker->devices);
	if (rc < 0) {
		fail_unopened(slot, rc);
		return;
	}
	plan_windows(slot);
	if (scan->ops.open != NULL) {
		rc = scan->ops.open(scan->arg, &slot->file);
		if (rc < 0) {
			fail_unopened(slot, rc);
			return;
		}
	}
	slot->has_opened = true;
	start_lanes(slot);
}

static int opened(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);

	begin(slot, slot->open.result);
	return 0;
}

static int check_given_path(const struct pin_slot *slot)
{
	struct stat status;

	if (slot->is_examined || slot->file.path_bytes >= PATH_MAX) {
		return 0;
	}
	/*
	 * Opening some devices has effects, so a path not walked to is looked
	 * at.
	 */
	if (stat(slot->path, &status) < 0) {
		return -errno;
	}
	return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) ? 0 : -ENOTSUP;
}

static int start(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);
	int flags = pin_file_open_flags(slot->follow_link);
	int rc;

	if (pin_scan_is_cancelled(slot->scan)) {
		pin_fetch_or_seq_cst_u32(&slot->was_cut, 1);
		fail_unopened(slot, -ECANCELED);
		return 0;
	}
	rc = check_given_path(slot);
	if (rc < 0) {
		fail_unopened(slot, rc);
		return 0;
	}
	if (slot->file.path_bytes < PATH_MAX) {
		slot->open =
			(struct pin_open){.task.run = opened, .path = slot->path, .flags = flags};
		rc = pin_worker_open(pin_worker_current(), &slot->open);
		if (rc == 0) {
			return 0;
		}
	}
	/* Too long for one call, or the ring is full: open it here. */
	begin(slot, pin_open_long(slot->path, flags));
	return 0;
}

static void cancel_start(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);

	pin_fetch_or_seq_cst_u32(&slot->was_cut, 1);
	fail_unopened(slot, -ECANCELED);
}

void pin_slot_start(struct pin_slot *slot)
{
	struct pinion_scan *scan = slot->scan;
	int rc;

	slot->has_opened = false;
	slot->file.file = (struct pinion_file){.fd = -1};
	pin_store_release_u32(&slot->error, 0);
	pin_store_release_u32(&slot->was_cut, 0);
	slot->open.task = (struct pinion_task){.run = start, .cancel = cancel_start};
	rc = pinion_spawn(scan->runtime, &slot->open.task);
	if (rc < 0) {
		pin_scan_report(scan, &scan->totals, &slot->file, PINION_SCAN_CANCELLED, rc);
		pin_scan_put_slot(scan, slot);
	}
}
