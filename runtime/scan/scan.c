/* SPDX-License-Identifier: MIT */
/*
 * A scan as its user sees it: fed with paths, cancelled, finished;
 * scan_create.c makes it.
 *
 * The adding thread walks trees itself and waits while all slots are taken;
 * that wait is the back-pressure which keeps memory bounded by files in flight
 * whatever the size of the tree.
 */
#include "runtime/scan/scan.h"
#include "runtime/base/check.h"
#include "runtime/base/versioned.h"
#include "runtime/host/heap.h"
#include "runtime/host/long_path.h"
#include "runtime/task/entry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- reporting ---- */

/* Each file that was seen has one of these. */
static uint64_t outcomes(const struct pinion_scan_stats *totals)
{
	return totals->done + totals->failed + totals->skipped + totals->cancelled +
		totals->ignored;
}

/* Each path is reported once, with one outcome, and the counts add up. */
void pin_scan_report(struct pinion_scan *scan, struct pin_scan_totals *all,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error)
{
	struct pinion_scan_stats *totals = &all->own;

	PIN_DCHECK(file->path[file->path_bytes] == '\0');
	PIN_DCHECK((outcome != PINION_SCAN_DONE && outcome != PINION_SCAN_IGNORED) || error == 0);
	PIN_DCHECK(outcome != PINION_SCAN_CANCELLED || error == -ECANCELED);
	totals->seen++;
	switch (outcome) {
	case PINION_SCAN_DONE:
		totals->done++;
		break;
	case PINION_SCAN_FAILED:
		totals->failed++;
		break;
	case PINION_SCAN_SKIPPED:
		totals->skipped++;
		break;
	case PINION_SCAN_CANCELLED:
		totals->cancelled++;
		break;
	case PINION_SCAN_IGNORED:
		totals->ignored++;
		break;
	}
	PIN_DCHECK(outcomes(totals) == totals->seen);
	scan->ops.report(scan->arg, file, outcome, error);
	pin_scan_note_progress(scan, all);
}

static void bound_span(struct pinion_scan *scan);

/* A path that never gets a slot. */
void pin_scan_report_unread(struct pinion_scan *scan, struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error)
{
	bound_span(scan);
	file->sequence = scan->next_sequence;
	file->file.fd = -1;
	scan->next_sequence++;
	pin_scan_report(scan, &scan->totals, file, outcome, error);
}

void pin_scan_report_path(struct pinion_scan *scan, const char *path, size_t path_bytes,
	enum pinion_scan_outcome outcome, int error)
{
	struct pinion_scan_file file = {.path = path, .path_bytes = path_bytes};

	pin_scan_report_unread(scan, &file, outcome, error);
}

/* ---- slots ---- */

enum {
	/*
	 * An adding thread waits for this part of the slots at once, so that a
	 * thread which is faster than the workers is not woken for each file:
	 * of half the slots, if they are free soon, else of fewer.
	 */
	STOCK_PART_SOON = 2,
	STOCK_PART = 8,
	SOON_NS = 20 * 1000 * 1000,
	/*
	 * Files of a batch: of a few KB each, together as long as some wakes.
	 */
	BATCH_FILES = 16,
};

void pin_scan_release_root(struct pinion_scan *scan, struct pin_scan_root *root, uint32_t count)
{
	uint32_t before = pin_fetch_sub_acq_rel_u32(&root->users, count);

	PIN_CHECK(before >= count);
	if (before == count) {
		PIN_DCHECK(root->options.directory_fd >= 0);
		close(root->options.directory_fd);
		pin_heap_release(scan->host, root, PIN_HEAP_ALIGN, 1, sizeof(*root));
		/* [ROOT-1] Its descriptor is free now. */
		before = pin_fetch_sub_acq_rel_u32(&scan->root_count, 1);
		PIN_CHECK(before > 0 && before <= scan->roots_max);
	}
}

/* Once for all slots in a row that are of the same. */
static void release_roots(struct pinion_scan *scan, const struct pin_slots *slots)
{
	struct pin_scan_root *root = NULL;
	uint32_t count = 0;

	for (struct pin_slot *slot = slots->first; slot != NULL; slot = slot->next) {
		struct pin_scan_root *own = slot->root != &slot->own_root ? slot->root : NULL;

		PIN_DCHECK(slot->scan == scan && (size_t)(slot - scan->slots) < scan->slot_count);
		PIN_DCHECK(slot->file.file.fd < 0);
		if (own != root && count > 0) {
			pin_scan_release_root(scan, root, count);
			count = 0;
		}
		root = own;
		count += own != NULL ? 1 : 0;
		slot->root = NULL;
	}
	if (count > 0) {
		pin_scan_release_root(scan, root, count);
	}
}

void pin_scan_put_slots(struct pinion_scan *scan, const struct pin_slots *slots)
{
	uint64_t count = slots->count;

	PIN_CHECK(count > 0 && count <= scan->slot_count);
	PIN_DCHECK(slots->last->next == NULL);
	release_roots(scan, slots);
	pin_lock_acquire(&scan->lock, scan->host);
	PIN_DCHECK(slots->first != scan->free_list); /* put back once */
	slots->last->next = scan->free_list;
	scan->free_list = slots->first;
	pin_lock_release(&scan->lock, scan->host);
	/*
	 * Last of all: a thread that holds every slot knows that no file is in
	 * flight and may free the scan.
	 */
	pinion_budget_release(&scan->free_slots, &count);
}

static void acquire_slots(struct pinion_scan *scan, uint64_t count)
{
	int rc;

	PIN_DCHECK(count <= scan->slot_count); /* else it would wait for ever */
	rc = pinion_budget_acquire_wait(&scan->free_slots, &count, UINT64_MAX);
	PIN_CHECK(rc == 0);
}

static uint64_t part_of_slots(const struct pinion_scan *scan, uint32_t part)
{
	uint64_t count = scan->slot_count / part;

	return count > 0 ? count : 1;
}

/*
 * Small files in the page cache end at a rate at which half the slots are free
 * in a moment: then each wake-up of this thread is for many files. Where files
 * are slow, or hang, a few free slots are enough to go on.
 */
static uint64_t acquire_stock(struct pinion_scan *scan)
{
	uint64_t many = part_of_slots(scan, STOCK_PART_SOON);
	uint64_t few = part_of_slots(scan, STOCK_PART);

	if (many > few &&
		pinion_budget_acquire_wait(
			&scan->free_slots, &many, scan->host->now_ns() + SOON_NS) == 0) {
		return many;
	}
	acquire_slots(scan, few);
	return few;
}

/* Of those acquired; they are on the list before they can be acquired. */
static void take_stock(struct pinion_scan *scan, uint64_t count)
{
	struct pin_slot *last;

	PIN_DCHECK(scan->stock.count == 0 && count > 0);
	pin_lock_acquire(&scan->lock, scan->host);
	last = scan->free_list;
	for (uint64_t i = 1; i < count; i++) {
		PIN_CHECK(last != NULL);
		last = last->next;
	}
	PIN_CHECK(last != NULL);
	scan->stock = (struct pin_slots){scan->free_list, last, count};
	scan->free_list = last->next;
	pin_lock_release(&scan->lock, scan->host);
	last->next = NULL;
}

/* Then no file is in flight, and no worker in pin_scan_put_slots() any more. */
static void await_all_slots(struct pinion_scan *scan)
{
	struct pin_slots stock = scan->stock;

	PIN_CHECK(stock.count <= scan->slot_count);
	PIN_CHECK(scan->batch.count == 0);
	acquire_slots(scan, scan->slot_count - stock.count);
	if (stock.count > 0) {
		pin_lock_acquire(&scan->lock, scan->host);
		stock.last->next = scan->free_list;
		scan->free_list = stock.first;
		pin_lock_release(&scan->lock, scan->host);
		scan->stock = (struct pin_slots){0};
	}
}

/* It would block a thread that others' files wait for. */
int pin_scan_refuse_worker(const struct pinion_scan *scan, const char *what)
{
	if (pin_worker_of_thread() == NULL) {
		return 0;
	}
	pin_log(pin_runtime_log(scan->runtime), PINION_LOG_ERROR,
		"a scan cannot be %s on a worker thread, and nothing was done: call it on a thread "
		"that is no worker of any runtime",
		what);
	return -EDEADLK;
}

/*
 * Cached files are started by several, as each start costs a task, a wake-up
 * and the slot's way back. Files that wait for the disk go out at once.
 */
static uint32_t choose_batch(const struct pinion_scan *scan)
{
	uint32_t worker_count = pinion_runtime_worker_count(scan->runtime);

	for (uint32_t i = 0; i < worker_count; i++) {
		/* Relaxed: a guess. */
		if (pin_load_relaxed_u32(&scan->workers[i].finds_cached) != 0) {
			return BATCH_FILES;
		}
	}
	return 1;
}

void pin_scan_send_batch(struct pinion_scan *scan)
{
	struct pin_slots batch = scan->batch;

	if (batch.count > 0) {
		scan->batch = (struct pin_slots){0};
		pin_slots_start(&batch);
	}
}

/*
 * Slots are acquired by the stock, as each acquire may put the adding thread to
 * sleep and wake it for one file only.
 */
static struct pin_slot *take_slot(struct pinion_scan *scan)
{
	struct pin_slot *slot;

	if (scan->stock.count == 0) {
		pin_scan_send_batch(scan); /* else their slots might be waited for */
		take_stock(scan, acquire_stock(scan));
		scan->batch_max = choose_batch(scan);
	}
	slot = scan->stock.first;
	PIN_CHECK(slot != NULL);
	scan->stock.first = slot->next;
	scan->stock.count--;
	PIN_DCHECK((scan->stock.count == 0) == (slot->next == NULL));
	PIN_DCHECK(slot->scan == scan && slot->root == NULL);
	return slot;
}

/* Until all that was added is reported; no slot is in other hands then. */
void pin_scan_await_reports(struct pinion_scan *scan)
{
	pin_scan_send_batch(scan);
	await_all_slots(scan);
	take_stock(scan, scan->slot_count);
}

static void bound_span(struct pinion_scan *scan)
{
	uint64_t max = scan->config.paths_ahead_max;

	if (max != 0 && scan->next_sequence - scan->span_start >= max) {
		pin_scan_await_reports(scan);
		scan->span_start = scan->next_sequence;
	}
}

static void put_unused(struct pinion_scan *scan, struct pin_slot *slot)
{
	struct pin_slots one = {0};

	pin_slots_push(&one, slot);
	pin_scan_put_slots(scan, &one);
}

static bool set_path(
	const struct pinion_scan *scan, struct pin_slot *slot, const char *path, size_t path_bytes)
{
	PIN_DCHECK(path[path_bytes] == '\0');
	if (path_bytes + 1 > slot->path_capacity) {
		size_t capacity = pin_round_up(path_bytes + 1, 256);
		char *grown = pin_heap_allocate(scan->host, PIN_HEAP_ALIGN, capacity, 1);

		if (grown == NULL) {
			return false;
		}
		/* Nothing of the old one is needed. */
		pin_heap_release(scan->host, slot->path, PIN_HEAP_ALIGN, slot->path_capacity, 1);
		slot->path = grown;
		slot->path_capacity = capacity;
	}
	PIN_DCHECK(path_bytes < slot->path_capacity);
	memcpy(slot->path, path, path_bytes + 1);
	slot->file.path = slot->path;
	slot->file.path_bytes = path_bytes;
	return true;
}

/* A slot with the path; NULL: none, it is reported, and *out_rc says why. */
static struct pin_slot *prepare(
	struct pinion_scan *scan, const char *path, size_t path_bytes, int *out_rc)
{
	struct pin_slot *slot;

	*out_rc = 0;
	bound_span(scan);
	if (pin_scan_is_cancelled(scan)) {
		pin_scan_report_path(scan, path, path_bytes, PINION_SCAN_CANCELLED, -ECANCELED);
		*out_rc = -ECANCELED;
		return NULL;
	}
	slot = take_slot(scan);
	if (!set_path(scan, slot, path, path_bytes)) {
		put_unused(scan, slot);
		pin_scan_report_path(scan, path, path_bytes, PINION_SCAN_FAILED, -ENOMEM);
		*out_rc = -ENOMEM;
		return NULL;
	}
	return slot;
}

/* `root`: the path is beneath it. NULL: it is the whole path. */
static void launch(struct pinion_scan *scan, struct pin_slot *slot, struct pin_scan_root *root,
	enum pin_slot_origin origin)
{
	PIN_DCHECK(slot->root == NULL && slot->file.path == slot->path);
	PIN_DCHECK(root == NULL || root->names_start <= slot->file.path_bytes);
	slot->root = root;
	slot->origin = origin;
	slot->file.sequence = scan->next_sequence;
	scan->next_sequence++;
	pin_slots_push(&scan->batch, slot);
	if (scan->batch.count >= scan->batch_max) {
		pin_scan_send_batch(scan);
	}
}

/* `root`: it is opened below it. NULL: by the whole path. */
int pin_scan_add(struct pinion_scan *scan, const char *path, size_t path_bytes,
	struct pin_scan_root *root, enum pin_slot_origin origin)
{
	int rc;
	struct pin_slot *slot = prepare(scan, path, path_bytes, &rc);

	if (slot == NULL) {
		return rc;
	}
	if (root != NULL) {
		uint32_t before = pin_fetch_add_acq_rel_u32(&root->users, 1);

		PIN_DCHECK(before > 0); /* the walk's own */
	}
	launch(scan, slot, root, origin);
	return 0;
}

int pinion_scan_add_file(struct pinion_scan *scan, const char *path)
{
	int rc = pin_scan_refuse_worker(scan, "added to");

	if (rc != 0) {
		return rc;
	}
	rc = pin_scan_add(scan, path, strlen(path), NULL, PIN_SLOT_GIVEN);
	pin_scan_send_batch(scan);
	return rc;
}

/*
 * A path that could leave the directory is refused before anything is opened.
 */
int pinion_scan_add_file_beneath(struct pinion_scan *scan, int directory_fd, const char *path)
{
	int rc = pin_scan_refuse_worker(scan, "added to");
	struct pin_slot *slot;
	int error;

	if (rc != 0) {
		return rc;
	}
	error = pin_beneath_check(path);
	if (error != 0 && !pin_scan_is_cancelled(scan)) {
		pin_scan_report_path(scan, path, strlen(path), PINION_SCAN_FAILED, error);
		return 0;
	}
	slot = prepare(scan, path, strlen(path), &rc);
	if (slot == NULL) {
		return rc;
	}
	slot->own_root = (struct pin_scan_root){
		.options = {.directory_fd = directory_fd, .resolve = PIN_BENEATH_RESOLVE},
	};
	launch(scan, slot, &slot->own_root, PIN_SLOT_GIVEN);
	pin_scan_send_batch(scan);
	return 0;
}

void pinion_scan_add_failure(struct pinion_scan *scan, const char *path, int error)
{
	pin_scan_report_path(scan, path, strlen(path), PINION_SCAN_FAILED, error);
}

/* ---- end ---- */

int pinion_scan_finish(struct pinion_scan *scan, struct pinion_scan_stats *out_stats, size_t size)
{
	struct pinion_scan_stats sum;
	uint64_t slot_count = scan->slot_count;
	int rc = pin_scan_refuse_worker(scan, "waited for or destroyed");

	if (rc != 0) {
		return rc;
	}
	await_all_slots(scan);
	pin_scan_sum(scan, &sum);
	/* That of pinion_scan_destroy() has nothing new. */
	if (scan->config.progress != NULL && scan->finished_count != sum.seen + 1) {
		scan->finished_count = sum.seen + 1;
		scan->config.progress(scan->arg, &sum);
	}
	pinion_budget_release(&scan->free_slots, &slot_count);
	PIN_CHECK(sum.seen == outcomes(&sum));
	if (out_stats != NULL) {
		pin_sized_give(out_stats, size, &sum, sizeof(sum));
	}
	return 0;
}

int pinion_scan_destroy(struct pinion_scan *scan)
{
	int rc;

	if (scan == NULL) {
		return 0;
	}
	pin_live_check(PIN_LIVE_SCAN, scan);
	rc = pinion_scan_finish(scan, NULL, 0);
	if (rc != 0) {
		return rc;
	}
	pin_live_remove(PIN_LIVE_SCAN, scan);
	pin_scan_await_cancellers(scan);
	pin_scan_free(scan);
	return 0;
}
