/* SPDX-License-Identifier: MIT */
/*
 * One file's way from its path to its report: open, adopt, read, close, report.
 *
 * The adding thread fills the slot and starts its task; the rest runs on
 * workers, and ends when the slot is free again.
 *
 * Invariant: each started slot reports its path exactly once, also if the scan
 * or the runtime is stopped.
 */
#include "runtime/base/check.h"
#include "runtime/host/long_path.h"
#include "runtime/io/file.h"
#include "runtime/scan/scan.h"
#include "runtime/task/entry.h"
#include "runtime/worker/events.h"
#include "runtime/worker/request.h"
#include "runtime/worker/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

enum {
	/*
	 * Of files that have no size: /proc/PID/pagemap, kpagecount and
	 * kpageflags are read by entries of 8 bytes, else EINVAL (the kernel's
	 * Documentation/admin-guide/mm/pagemap.rst).
	 */
	UNSIZED_ALIGN_BYTES = 8,
	/* Of a batch, before its other files go to any worker. */
	BATCH_NS = 100 * 1000,
};

static struct pin_scan_worker *own_part(const struct pinion_scan *scan)
{
	uint32_t index = pin_worker_current()->index;

	PIN_DCHECK(index < pinion_runtime_worker_count(scan->runtime));
	return &scan->workers[index];
}

/* ---- the end of a file ---- */

static enum pinion_scan_outcome outcome_of(int error)
{
	PIN_DCHECK(error <= 0);
	if (error == 0) {
		return PINION_SCAN_DONE;
	}
	/* Stopping the runtime ends a scan as cancelling it does. */
	return error == -ECANCELED || error == -ESHUTDOWN ? PINION_SCAN_CANCELLED
							  : PINION_SCAN_FAILED;
}

/* Now, or with others of its batch. */
static void put_back(struct pin_slot *slot)
{
	struct pinion_scan *scan = slot->scan;
	struct pin_scan_worker *own = own_part(scan);
	struct pin_slots one = {0};

	if (own->gathers) {
		pin_slots_push(&own->gathered, slot);
		return;
	}
	pin_slots_push(&one, slot);
	pin_scan_put_slots(scan, &one);
}

static void report(struct pin_slot *slot, enum pinion_scan_outcome outcome, int error)
{
	struct pinion_scan *scan = slot->scan;

	if (slot->starter != NULL) {
		/* Less by one. Relaxed: a guess to others. */
		uint32_t before = pin_fetch_add_relaxed_u32(&slot->starter->file_count, UINT32_MAX);

		PIN_DCHECK(before > 0);
	}
	PIN_DCHECK(outcome != PINION_SCAN_DONE || error == 0);
	PIN_DCHECK(outcome == PINION_SCAN_DONE || error < 0);
	pinion_file_close(&slot->file.file);
	pin_scan_report(scan, &own_part(scan)->totals, &slot->file, outcome,
		outcome == PINION_SCAN_CANCELLED ? -ECANCELED : error);
	put_back(slot);
}

/* A file whose windows never began. */
static void fail(struct pin_slot *slot, int error)
{
	PIN_DCHECK(error < 0);
	report(slot, outcome_of(error), error);
}

/* A positive result has no meaning: the engine is wrong, and its file fails. */
static int result_of_callback(int rc)
{
	return rc > 0 ? -EINVAL : rc;
}

/* Closes the caller's file, and reports it; an error of `close` is the last. */
static void end(struct pin_slot *slot, int error)
{
	struct pinion_scan *scan = slot->scan;

	if (scan->ops.close != NULL) {
		int rc = result_of_callback(scan->ops.close(scan->arg, &slot->file, error));

		error = error == 0 ? rc : error;
	}
	report(slot, outcome_of(error), error);
}

/*
 * The outcome is the first of: an error of a read, a change of the file,
 * unreadable pages, an error of the caller's close.
 */
static void finish(struct pin_reader *reader)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(reader, struct pin_slot, reader);
	int error = pin_reader_error(reader);

	PIN_DCHECK(reader == &slot->reader && slot->file.file.fd >= 0);
	if (error == 0 && pin_reader_file_changed(reader)) {
		error = -ESTALE;
	}
	if (error == 0) {
		error = pin_reader_gap_error(reader);
	}
	if (slot->file.file.is_direct) {
		own_part(slot->scan)->totals.own.direct_files++;
	}
	end(slot, error);
}

/* ---- windows ---- */

/* Of the new bytes, those in gaps. */
static uint64_t unread_bytes(const struct pinion_window *window)
{
	uint64_t start = window->base_offset_bytes + window->prefix_bytes;
	uint64_t unread = 0;

	for (size_t i = 0; i < window->gap_count; i++) {
		const struct pinion_gap *gap = &window->gaps[i];
		uint64_t end = gap->offset_bytes + gap->length_bytes;

		PIN_DCHECK(gap->error < 0 && gap->length_bytes > 0);
		PIN_DCHECK(gap->offset_bytes >= window->base_offset_bytes);
		if (end > start) {
			unread += end - (gap->offset_bytes > start ? gap->offset_bytes : start);
		}
	}
	return unread;
}

static int deliver(struct pin_reader *reader, const struct pinion_window *window)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(reader, struct pin_slot, reader);
	struct pinion_scan *scan = slot->scan;
	struct pin_scan_totals *all = &own_part(scan)->totals;
	struct pinion_scan_stats *totals = &all->own;
	uint64_t new_bytes = window->length_bytes - window->prefix_bytes;
	int rc = scan->ops.window(scan->arg, &slot->file, window);

	PIN_DCHECK(window->prefix_bytes <= window->length_bytes);
	PIN_DCHECK(unread_bytes(window) <= new_bytes);
	new_bytes -= unread_bytes(window);
	if (!window->is_hole) {
		totals->read_bytes += new_bytes;
	} else if (rc == 0) {
		totals->read_bytes += new_bytes;
		totals->hole_bytes += new_bytes;
	}
	pin_scan_note_progress(scan, all);
	return rc == PINION_SCAN_ENOUGH ? PIN_READER_ENOUGH : result_of_callback(rc);
}

/* Of what begins now; 0: none. */
static uint64_t deadline_from_now(const struct pinion_scan *scan)
{
	uint64_t timeout_ns = scan->config.file_timeout_ns;

	PIN_DCHECK(timeout_ns <= UINT64_MAX / 2); /* so that the sum does not wrap */
	return timeout_ns == 0 ? 0 : scan->host->now_ns() + timeout_ns;
}

/*
 * What a read's offset and length are multiples of. With `report_gaps` a page
 * of a direct file is read whole or not at all, wherever a window is.
 */
static uint32_t read_align_bytes(const struct pin_slot *slot)
{
	const struct pinion_file *file = &slot->file.file;

	PIN_DCHECK(pin_is_power_of_two(file->offset_align_bytes));
	if (file->is_direct && slot->scan->config.report_gaps != 0) {
		return PIN_PAGE_BYTES;
	}
	return file->size_bytes == 0 && file->offset_align_bytes < UNSIZED_ALIGN_BYTES
		? UNSIZED_ALIGN_BYTES
		: file->offset_align_bytes;
}

/*
 * The kernel's read-ahead pays no rate, so a file that is read through the page
 * cache goes without while there is a rate of bytes.
 */
static void refuse_readahead(const struct pinion_file *file)
{
	if (!file->is_direct && pin_device_queue_limits_bytes(pin_worker_current(), file)) {
		(void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_RANDOM);
	}
}

/*
 * A cached file gets windows of its own size, as it is copied and not
 * transferred.
 */
static void start_reader(struct pin_slot *slot, bool is_stream)
{
	const struct pinion_scan *scan = slot->scan;
	const struct pinion_scan_config *config = &scan->config;
	struct pinion_file *file = &slot->file.file;
	struct pin_reader *reader = &slot->reader;

	PIN_DCHECK(file->fd >= 0 && reader->tracks != NULL);
	refuse_readahead(file);
	reader->file = file;
	reader->is_in_order = is_stream || config->order == PINION_SCAN_IN_ORDER;
	reader->reports_gaps = config->report_gaps != 0;
	reader->timeout_ns = config->file_timeout_ns;
	reader->until_ns = (file->flags & PIN_FILE_MADE_UP) != 0 ? deadline_from_now(scan) : 0;
	reader->track_count = config->windows_in_flight;
	reader->is_cancelled = &scan->is_cancelled;
	reader->deliver = deliver;
	reader->done = finish;
	reader->plan = (struct pin_window_plan){
		.fd = file->fd,
		.size_bytes = file->size_bytes,
		.window_bytes = file->is_direct ? config->window_bytes : scan->cached_window_bytes,
		.overlap_bytes = config->overlap_bytes,
		.align_bytes = read_align_bytes(slot),
		.find_holes = config->report_holes != 0 && (file->flags & PIN_FILE_SPARSE) != 0,
		.is_unsized = file->size_bytes == 0,
		.cursor = slot->file.start_offset_bytes,
	};
	pin_reader_start(reader);
}

/* ---- opening ---- */

/* Relaxed: a guess to the adding thread, which reads it now and then. */
static void note_cached(struct pin_scan_worker *own, uint32_t finds_cached)
{
	if (pin_load_relaxed_u32(&own->finds_cached) != finds_cached) {
		pin_store_relaxed_u32(&own->finds_cached, finds_cached);
	}
}

/* Where the caller's `open` wants it to begin. */
static bool has_good_start(const struct pinion_scan_file *file)
{
	uint64_t start = file->start_offset_bytes;

	return start == 0 || (start % PIN_PAGE_BYTES == 0 && start < file->file.size_bytes);
}

/*
 * The file is open; adopts it and hands it to the caller's `open`, whose
 * refusal ends it.
 */
static void begin(struct pin_slot *slot, int fd)
{
	struct pinion_scan *scan = slot->scan;
	bool is_stream;
	int rc;

	PIN_DCHECK(slot->file.file.fd < 0 && slot->reader.tracks != NULL);
	if (fd == -ENOENT && slot->origin == PIN_SLOT_FOUND) {
		/* It was deleted or renamed since its directory was listed. */
		report(slot, PINION_SCAN_SKIPPED, fd);
		return;
	}
	if (fd < 0) {
		fail(slot, fd);
		return;
	}
	rc = pin_file_adopt(&slot->file.file, fd, scan->config.direct, scan->cached_window_bytes,
		&pin_worker_current()->devices);
	if (rc == -ENOTSUP) {
		/* It became something else since it was looked at. */
		report(slot, PINION_SCAN_SKIPPED, rc);
		return;
	}
	if (rc < 0) {
		fail(slot, rc);
		return;
	}
	note_cached(own_part(scan), slot->file.file.way == PINION_WAY_CACHED);
	slot->file.user = slot->user;
	if (slot->user != NULL) {
		memset(slot->user, 0, scan->config.file_user_bytes);
	}
	rc = scan->ops.open != NULL ? scan->ops.open(scan->arg, &slot->file) : 0;
	if (rc == PINION_SCAN_ENOUGH) {
		end(slot, 0);
		return;
	}
	is_stream = rc == PINION_SCAN_STREAM;
	rc = is_stream ? 0 : result_of_callback(rc);
	if (rc < 0) {
		fail(slot, rc);
		return;
	}
	if (!has_good_start(&slot->file)) {
		end(slot, -EINVAL);
		return;
	}
	start_reader(slot, is_stream);
}

/* The part of the path that is to be opened. */
static const char *path_to_open(const struct pin_slot *slot)
{
	PIN_DCHECK(slot->root == NULL || slot->root->names_start <= slot->file.path_bytes);
	return slot->root == NULL ? slot->path : slot->path + slot->root->names_start;
}

/* To openat2 in a ring only what pin_beneath_open() would accept. */
static bool may_open_in_ring(const struct pin_slot *slot)
{
	const char *path = path_to_open(slot);

	PIN_DCHECK(slot->root == NULL || pin_beneath_check(path) == 0);
	return strlen(path) < PATH_MAX;
}

/*
 * By a plain call, where the kernel need not wait for the disk: cheaper than
 * through the ring, and the file is read in the same turn. Only after a file
 * that was in the page cache, so that cold files cost no call in vain.
 */
static int open_cached(const struct pin_slot *slot)
{
	bool is_beneath = slot->root != NULL;

	if (pin_load_relaxed_u32(&own_part(slot->scan)->finds_cached) == 0) {
		return -EAGAIN;
	}
	return pin_open_cached(is_beneath ? slot->root->options.directory_fd : AT_FDCWD,
		path_to_open(slot), pin_file_open_flags(!is_beneath),
		is_beneath ? slot->root->options.resolve : 0);
}

/* The file that was opened by a plain call. */
static void begin_opened(struct pin_slot *slot, int fd)
{
	if (fd >= 0) {
		pin_event_file(pin_worker_current(), fd, path_to_open(slot));
	}
	begin(slot, fd);
}

/* In the calling worker, which waits for it. */
static int open_here(const struct pin_slot *slot)
{
	int flags = pin_file_open_flags(slot->root == NULL);

	return slot->root == NULL
		? pin_open_long(slot->path, flags)
		: pin_beneath_open(slot->root->options.directory_fd, path_to_open(slot), flags);
}

/*
 * 0 for a file that may be opened, or for a directory, whose open returns the
 * error.
 */
static int check_kind(struct pin_slot *slot)
{
	uint32_t mode = 0;
	int rc = slot->root == NULL ? pin_file_check_kind(slot->path, &mode)
				    : pin_file_check_kind_beneath(slot->root->options.directory_fd,
					      path_to_open(slot), &mode);

	slot->file.mode = rc == -ENOTSUP ? mode : 0;
	return rc;
}

static int opened(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);

	int fd = (int)slot->open.result;

	PIN_DCHECK(slot->open.result <= INT_MAX && slot->file.file.fd < 0);
	if (fd < 0 && slot->root != NULL) {
		/* Perhaps refused for want of openat2: there is another way. */
		fd = fd == -ENOSYS || fd == -EPERM ? open_here(slot) : pin_beneath_error(fd);
	}
	begin(slot, fd);
	return 0;
}

/* A worker that has no file and sleeps, or has none while a worker searches. */
static struct pin_worker *find_free(const struct pinion_scan *scan, const struct pin_worker *worker)
{
	struct pin_worker *sleeper = pin_wake_find_free(worker);

	if (sleeper != NULL || pin_load_relaxed_u32(&worker->worker_class->searching) == 0) {
		return sleeper;
	}
	for (uint32_t i = 0; i < worker->shared->worker_count; i++) {
		if (pin_load_relaxed_u32(&scan->workers[i].file_count) == 0) {
			return &worker->shared->workers[i];
		}
	}
	return NULL;
}

/*
 * In order a file stays with the worker that starts it, however long it is, and
 * a worker may take several at once that are to be started. So a worker that
 * has a file leaves the next to a free one.
 */
static bool hand_on(struct pin_slot *slot)
{
	struct pin_worker *worker = pin_worker_current();
	const struct pin_scan_worker *own = own_part(slot->scan);
	struct pin_worker *target;

	if (slot->scan->config.order != PINION_SCAN_IN_ORDER || slot->was_handed_on ||
		pin_load_relaxed_u32(&own->file_count) == 0) {
		return false;
	}
	target = find_free(slot->scan, worker);
	if (target == NULL) {
		return false;
	}
	slot->was_handed_on = true; /* now: it is another's afterwards */
	return pin_worker_spawn_on(worker, target, &slot->open.task) == 0;
}

/*
 * Most opens go by the ring; a path that is too long for one call, or a full
 * ring, is opened here.
 */
static void start_file(struct pin_slot *slot)
{
	int rc = 0;

	if (pin_scan_is_cancelled(slot->scan)) { /* [CANCEL-1] */
		fail(slot, -ECANCELED);
		return;
	}
	if (hand_on(slot)) {
		return;
	}
	if (slot->scan->config.order == PINION_SCAN_IN_ORDER) {
		PIN_DCHECK(slot->starter == NULL); /* it counts among one worker's files */
		slot->starter = own_part(slot->scan);
		pin_fetch_add_relaxed_u32(&slot->starter->file_count, 1);
	}
	if (slot->origin == PIN_SLOT_GIVEN) {
		rc = check_kind(slot);
	}
	if (rc == -ENOTSUP) {
		report(slot, PINION_SCAN_SKIPPED, rc);
		return;
	}
	if (rc < 0) {
		fail(slot, rc);
		return;
	}
	if (may_open_in_ring(slot)) {
		struct pinion_request *open = &slot->open;
		int fd = open_cached(slot);

		if (fd >= 0) {
			begin_opened(slot, fd);
			return;
		}

		*open = (struct pinion_request){
			.task.run = opened,
			.op = PIN_OP_OPEN_PLAIN,
			.file = &slot->file.file, /* by which a cancel finds it */
			.deadline_ns = deadline_from_now(slot->scan),
			.path = path_to_open(slot),
			.options = slot->root == NULL ? NULL : &slot->root->options,
			.flags = (uint32_t)pin_file_open_flags(slot->root == NULL),
		};
		if (pin_worker_submit_one(pin_worker_current(), open) == 0) {
			return;
		}
	}
	/* Too long for one call, or the ring is full: open it here. */
	begin_opened(slot, open_here(slot));
}

static int start(struct pinion_task *task);
static void cancel_start(struct pinion_task *task);

/* The rest of a batch: each file may be started by another worker. */
static void leave_to_others(struct pin_slot *slot)
{
	while (slot != NULL) {
		struct pin_slot *next = slot->next;

		slot->next = NULL;
		if (pin_worker_spawn_shared(pin_worker_current(), &slot->open.task) < 0) {
			cancel_start(&slot->open.task);
		}
		slot = next;
	}
}

/*
 * Files one after the other, for as long as a turn may take; slots of those
 * that end go back together. The scan may be freed once no slot of it is here:
 * the last file's slot is gathered only if others are.
 */
static void start_batch(struct pin_slot *slot)
{
	struct pinion_scan *scan = slot->scan;
	struct pin_scan_worker *own = own_part(scan);
	uint64_t until_ns = scan->host->now_ns() + BATCH_NS;
	struct pin_slots gathered;

	PIN_DCHECK(!own->gathers && own->gathered.count == 0);
	do {
		struct pin_slot *next = slot->next;

		slot->next = NULL;
		own->gathers = pin_slots_may_gather(&own->gathered, next);
		if (!own->gathers) {
			start_file(slot);
			return;
		}
		start_file(slot);
		slot = next;
	} while (slot != NULL && scan->host->now_ns() < until_ns);
	gathered = own->gathered;
	own->gathered = (struct pin_slots){0};
	own->gathers = false;
	if (slot != NULL) {
		leave_to_others(slot);
	}
	if (gathered.count > 0) {
		pin_scan_put_slots(scan, &gathered);
	}
}

static int start(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);

	if (slot->next == NULL) {
		start_file(slot);
	} else {
		start_batch(slot);
	}
	return 0;
}

static void cancel_start(struct pinion_task *task)
{
	struct pin_slot *slot = PIN_CONTAINER_OF(task, struct pin_slot, open.task);

	while (slot != NULL) {
		struct pin_slot *next = slot->next;

		fail(slot, -ECANCELED);
		slot = next;
	}
}

static void clear(struct pin_slot *slot)
{
	PIN_DCHECK(slot->file.path == slot->path && slot->path[slot->file.path_bytes] == '\0');
	slot->file.user = NULL;
	slot->file.mode = 0;
	slot->file.start_offset_bytes = 0;
	slot->file.file = (struct pinion_file){.fd = -1};
	slot->was_handed_on = false;
	slot->starter = NULL;
	slot->open.task = (struct pinion_task){.run = start, .cancel = cancel_start};
}

void pin_slots_start(const struct pin_slots *batch)
{
	struct pin_slot *first = batch->first;
	struct pinion_scan *scan = first->scan;

	PIN_DCHECK(batch->count > 0 && batch->last->next == NULL);
	for (struct pin_slot *slot = first; slot != NULL; slot = slot->next) {
		clear(slot);
	}
	/*
	 * Slots are few; whether there is room in the shared queues is nothing
	 * to a scan.
	 */
	if (pin_runtime_reserve(scan->runtime) == 0) {
		pin_runtime_spawn_reserved(scan->runtime, &first->open.task);
		return;
	}
	/* The runtime was stopped under the scan. */
	for (struct pin_slot *slot = first; slot != NULL; slot = slot->next) {
		pin_scan_report(
			scan, &scan->totals, &slot->file, PINION_SCAN_CANCELLED, -ECANCELED);
	}
	pin_scan_put_slots(scan, batch);
}
