/* SPDX-License-Identifier: MIT */
/*
 * A slot: one file in flight, from its path to its report.
 *
 *     pin_slot_start (adding thread)
 *       -> open (through the ring) -> examine -> engine `open`
 *       -> lanes: claim a window, get a buffer, read, engine `window`, again
 *       -> last lane out: engine `close`, report, slot free
 *
 * A lane is one read at a time. Under PARALLEL each lane is a task of its own
 * that any worker may take, and hands its window over as soon as it is read.
 * Under IN_ORDER all lanes stay on the worker that opened the file: reads run
 * ahead, windows are handed over by turns. Either way a lane uses buffers of
 * the worker it runs on and gives them back there.
 *
 * When a worker has no buffer left its lanes queue, and each buffer given back
 * goes to the first in the queue. Nothing waits for a buffer while holding one
 * that somebody in front of it needs: under IN_ORDER the earliest window of a
 * file gets its buffer first.
 *
 * Invariants: (1) `report` comes exactly once for every started slot.
 * (2) a slot's memory is touched by nobody once it is put back.
 *
 * [SLOT-1] each lane counts itself out of `lanes_left` (RMW, acq_rel) when it
 * ends; the one that reaches zero sees everything the others did and closes the
 * file. Without it close could overlap a window's callback.
 */
#ifndef PIN_SCAN_SLOT_H
#define PIN_SCAN_SLOT_H

#include "runtime/core/budget.h"
#include "runtime/core/worker.h"
#include "runtime/host/lock.h"
#include "runtime/scan/window.h"

#include <pinion/scan.h>

struct pin_slot;

enum pin_lane_state {
	PIN_LANE_IDLE,	   /* wants a window; -> CLAIMED, or READ for a hole */
	PIN_LANE_CLAIMED,  /* wants a buffer; -> BUFFERED now or from the queue */
	PIN_LANE_BUFFERED, /* wants its read; -> READ at once, or READING */
	PIN_LANE_READING,  /* its request is in flight; -> READ by completion */
	PIN_LANE_READ,	   /* has its bytes; -> IDLE when they are handed over */
};

struct pin_lane {
	struct pinion_request request; /* its task is also the lane's continuation */
	struct pin_link waiting;       /* in its worker's queue for buffers */
	struct pin_slot *slot;
	enum pin_lane_state state;
	struct pin_window_claim claim;
	uint8_t *buffer;
	uint32_t buffer_index;
	int32_t result;
};

/* What one worker keeps for a scan. [own] */
struct pin_scan_worker {
	struct pin_list buffer_queue;	    /* lanes that wait for a large buffer */
	struct pin_list small_buffer_queue; /* likewise, small */
	struct pinion_scan_totals totals;
} PIN_CACHE_ALIGNED;

struct pinion_scan {
	/* [const] after create */
	struct pinion_runtime *runtime;
	const struct pin_host *host;
	struct pinion_scan_config config;
	struct pinion_scan_ops ops;
	void *arg;
	uint32_t cached_window_bytes; /* window for files that are copied */
	uint32_t slot_count;
	struct pin_slot *slots;
	struct pin_lane *lanes;
	uint8_t *user_memory;
	struct pin_scan_worker *workers;
	/* The adding thread's */
	struct pinion_scan_totals totals;
	uint64_t next_sequence;
	/* Shared */
	struct pin_atomic_u32 is_cancelled; /* [W:any R:any] */
	struct pin_budget free_slots;
	struct pin_lock lock;	    /* rank 2 */
	struct pin_slot *free_list; /* [lock:lock] */
};

struct pin_slot {
	/* The adding thread's until the slot is started, then its worker's */
	struct pinion_scan *scan;
	struct pin_slot *next_free;
	struct pinion_scan_file file;
	char *path; /* grows, never shrinks */
	size_t path_capacity;
	bool follow_link;     /* the path was given, not found */
	bool is_examined;     /* known not to be special */
	bool has_opened;      /* the engine saw it */
	struct pin_open open; /* its task is also the one that starts the slot */
	struct pin_lane *lanes;
	/* IN_ORDER: the worker's that opened the file */
	struct pinion_task turn; /* queued after a few windows, to let others run */
	bool has_turn_queued;
	bool is_waiting;	  /* a lane is in the buffer queue */
	uint64_t claimed_count;	  /* windows claimed, and with them lanes in turn */
	uint64_t delivered_count; /* of those, handed over */
	/* Shared by lanes */
	struct pin_lock lock;		  /* rank 3; of `plan` */
	struct pin_window_plan plan;	  /* [lock:lock] */
	struct pin_atomic_u32 lanes_left; /* [W:lanes R:lanes] */
	struct pin_atomic_u32 error;	  /* [W:lanes R:lanes] first errno, positive; 0 none */
	struct pin_atomic_u32 was_cut;	  /* [W:lanes R:lanes] cancelled before its end */
};

/*
 * Starts on a slot whose path is set; on failure it is reported and put back.
 */
void pin_slot_start(struct pin_slot *slot);

/* Counts and reports one path; on the thread that owns `totals`. */
void pin_scan_report(struct pinion_scan *scan, struct pinion_scan_totals *totals,
	const struct pinion_scan_file *file, enum pinion_scan_outcome outcome, int error);

/* Puts a reported slot back; the last touch of it. */
void pin_scan_put_slot(struct pinion_scan *scan, struct pin_slot *slot);

static inline bool pin_scan_is_cancelled(const struct pinion_scan *scan)
{
	return pin_load_acquire_u32(&scan->is_cancelled) != 0;
}

#endif
