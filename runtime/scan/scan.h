/* SPDX-License-Identifier: MIT */
/*
 * A slot: one file in flight, from its path to its report.
 *
 *     pin_slots_start (adding thread)
 *       -> open (through the ring) -> examine -> engine `open`
 *       -> reader: windows to engine `window`
 *       -> engine `close`, report, slot free
 *
 * While files are found in the page cache, a tree's files are started in
 * batches: one task for some files, which a worker opens and reads one after
 * the other, and whose slots go back together.
 *
 * Invariants: (1) `report` comes exactly once for every started slot.
 * (2) no thread touches a slot's memory once it is put back.
 *
 * [CANCEL-1] the canceller sets `is_cancelled` (RMW), then sends each worker
 * its `canceller` -> a worker loads it (acquire) before each open and read, and
 * submits in the same turn. So of its canceller and a submit one comes first:
 * either the canceller finds the request in flight, or the submit is not made.
 *
 * [PROGRESS-1] a caller of `progress` stores the next time (release) after it
 * has returned -> the next caller takes that time by a CAS (acquire), so that
 * calls neither overlap nor miss what an earlier call wrote.
 *
 * [ROOT-1] a root's last user closes it, then takes it off `root_count`
 * (acq_rel) -> the adding thread loads the count (acquire) before it keeps
 * another root open. Without the order it could find no descriptor left.
 */
#ifndef PIN_SCAN_SCAN_H
#define PIN_SCAN_SCAN_H

#include "runtime/host/host.h"
#include "runtime/host/process.h"
#include "runtime/scan/file_reader.h"
#include "runtime/scan/walk_tree.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/worker.h"

#include <pinion/budget.h>
#include <pinion/scan.h>
#include <pinion/walk.h>

struct pin_slot;

/* Slots linked by `next`. */
struct pin_slots {
	struct pin_slot *first; /* NULL: none */
	struct pin_slot *last;
	uint64_t count;
};

enum { PIN_SCAN_COUNTS = sizeof(struct pinion_scan_stats) / sizeof(uint64_t) };

/* What a thread has counted, which it alone writes. */
struct pin_scan_totals {
	struct pinion_scan_stats own;
	/*
	 * [W:own R:any] the same, as of the last window or report; where there
	 * is a callback for progress. Relaxed: each is true of some moment.
	 */
	struct pin_atomic_u64 shown[PIN_SCAN_COUNTS];
};

/* One worker's part of a scan. [own] */
struct pin_scan_worker {
	struct pin_scan_totals totals;
	struct pinion_task canceller; /* of a cancel: ends what this worker has in flight */
	struct pinion_scan *scan;     /* [const] after create */
	/* [W:any R:any] a guess: files that it has started, in order */
	struct pin_atomic_u32 file_count;
	/* [W:own R:adding] the last file that it opened was cached */
	struct pin_atomic_u32 finds_cached;
	bool gathers;		   /* slots that end now go back with others */
	struct pin_slots gathered; /* that have ended, not yet put back */
} PIN_CACHE_ALIGNED;

/*
 * A tree being scanned: its files are opened beneath its root. [const] but for
 * the count; the last user closes and frees it.
 */
struct pin_scan_root {
	struct pinion_file_options options; /* directory_fd and resolve */
	size_t names_start;		    /* in the path, of the part below the root */
	struct pin_atomic_u32 users;	    /* [W:any R:any] the walk, and slots */
};

struct pinion_scan {
	struct pin_live live;
	/* [const] after create */
	struct pinion_runtime *runtime;
	const struct pin_host *host;
	struct pinion_scan_config config;
	struct pinion_scan_ops ops;
	void *arg;
	uint32_t cached_window_bytes; /* window for files that are copied */
	uint32_t slot_count;
	uint32_t roots_max; /* trees whose root may be open at a time */
	struct pin_walk_means walk_means;
	struct pin_slot *slots;
	struct pin_track *tracks;
	uint8_t *user_memory;
	struct pin_scan_worker *workers;
	/* The adding thread's */
	struct pin_scan_totals totals;
	uint64_t next_sequence;
	uint64_t finished_count; /* 1 + paths seen at the last finish */
	uint64_t span_start;	 /* paths before it are reported: paths_ahead_max */
	struct pin_slots stock;	 /* acquired from the budget and not yet used */
	struct pin_slots batch;	 /* filled and not yet started */
	uint32_t batch_max;	 /* files of a batch */
	/* Shared */
	struct pin_atomic_u32 is_cancelled;    /* [W:any R:any] set once */
	struct pin_atomic_u64 progress_due_ns; /* [W:any R:any] UINT64_MAX: it is called */
	struct pin_atomic_u32 root_count;      /* [W:any R:adding] roots that are open */
	struct pinion_budget idle_cancellers;  /* one of each worker */
	struct pinion_budget free_slots;
	struct pin_lock lock;	    /* rank 2 */
	struct pin_slot *free_list; /* [lock:lock] */
};

/* Where the path of a slot is from. */
enum pin_slot_origin {
	PIN_SLOT_GIVEN,	   /* the user: it may be a special file */
	PIN_SLOT_EXAMINED, /* the user; a walk has seen that it is none */
	PIN_SLOT_FOUND,	   /* a directory, which may have lost it since */
};

struct pin_slot {
	/* The adding thread's until the slot is started, then its worker's */
	struct pinion_scan *scan;
	struct pin_slot *next; /* of the free ones, or of the same batch */
	struct pinion_scan_file file;
	void *user; /* the engine's memory, shown to it once the file is open */
	char *path; /* grows, never shrinks */
	size_t path_capacity;
	struct pin_scan_root *root;    /* beneath it; NULL: the path is the whole */
	struct pin_scan_root own_root; /* of a directory that the user has open */
	enum pin_slot_origin origin;
	bool was_handed_on;		 /* to the worker that it is to start on */
	struct pin_scan_worker *starter; /* whose files it counts among, or NULL */
	struct pinion_request open;	 /* its task also starts the slot */
	struct pin_reader reader;
};

/* Appends a slot. */
static inline void pin_slots_push(struct pin_slots *slots, struct pin_slot *slot)
{
	PIN_DCHECK((slots->count == 0) == (slots->first == NULL));
	slot->next = NULL;
	if (slots->first == NULL) {
		slots->first = slot;
	} else {
		slots->last->next = slot;
	}
	slots->last = slot;
	slots->count++;
}

/*
 * Whether a slot may be gathered when it ends: others are with its worker then,
 * `next` of its batch or one gathered before, for which the scan is kept.
 */
static inline bool pin_slots_may_gather(
	const struct pin_slots *gathered, const struct pin_slot *next)
{
	return next != NULL || gathered->count > 0;
}

/*
 * Starts on a batch of slots whose paths are set; on failure they are reported
 * and put back.
 */
void pin_slots_start(const struct pin_slots *batch);

/* Counts and reports one path; on the thread that owns `totals`. */
void pin_scan_report(struct pinion_scan *scan, struct pin_scan_totals *totals,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error);

/* Calls `progress` if it is due; the totals are the calling thread's. */
void pin_scan_show_progress(struct pinion_scan *scan, struct pin_scan_totals *totals);

/* The counts of all threads; where none of them counts any more. */
void pin_scan_sum(const struct pinion_scan *scan, struct pinion_scan_stats *out_sum);

static inline void pin_scan_note_progress(struct pinion_scan *scan, struct pin_scan_totals *totals)
{
	if (scan->config.progress != NULL) {
		pin_scan_show_progress(scan, totals);
	}
}

/* ---- for scan_tree.c, on the adding thread ---- */

/* A path that never gets a slot. */
void pin_scan_report_unread(struct pinion_scan *scan, struct pinion_scan_file *file,
	enum pinion_scan_outcome outcome, int error);
void pin_scan_report_path(struct pinion_scan *scan, const char *path, size_t path_bytes,
	enum pinion_scan_outcome outcome, int error);

/* `root`: it is opened below it. NULL: by the whole path. */
int pin_scan_add(struct pinion_scan *scan, const char *path, size_t path_bytes,
	struct pin_scan_root *root, enum pin_slot_origin origin);

/* Starts the files that were added since the last one. */
void pin_scan_send_batch(struct pinion_scan *scan);

/* Until all that was added is reported; no slot is in other hands then. */
void pin_scan_await_reports(struct pinion_scan *scan);

/* Gives up as many uses of it. */
void pin_scan_release_root(struct pinion_scan *scan, struct pin_scan_root *root, uint32_t count);

/* -EDEADLK on a worker, where a wait would be for itself; else 0. */
int pin_scan_refuse_worker(const struct pinion_scan *scan, const char *what);

/* Puts reported slots back; the last touch of them. */
void pin_scan_put_slots(struct pinion_scan *scan, const struct pin_slots *slots);

/*
 * After a cancel: each worker has ended the task that it was in, and its
 * canceller.
 */
void pin_scan_await_cancellers(struct pinion_scan *scan);

/* Frees the scan's memory; nothing of it may be in use. */
void pin_scan_free(struct pinion_scan *scan);

static inline bool pin_scan_is_cancelled(const struct pinion_scan *scan)
{
	return pin_load_acquire_u32(&scan->is_cancelled) != 0;
}

#endif
