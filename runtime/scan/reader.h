/* SPDX-License-Identifier: MIT */
/*
 * A reader: one open file, read as windows, several at a time.
 *
 * It works with lanes; a lane is one read at a time. In parallel each lane is a
 * task of its own that any worker may take, and hands its window over as soon
 * as it is read. In order all lanes stay on the worker that started the
 * reader: reads run ahead, windows are handed over by turns. Either way a lane
 * uses buffers of the worker it runs on and gives them back there.
 *
 * How many lanes work is up to the device: one that finds others lined up for
 * it (core/throttle.h) on its worker rests, and one whose read went to it at
 * once calls another. So about as many buffers are in use as the device is
 * given to do, always the same, and no more than that pass through the caches.
 *
 * Nothing waits for a buffer while holding one that somebody in front of it
 * needs: in order, the earliest window of a file gets its buffer first.
 *
 * Who gets the windows, and what happens at the end, is the owner's business:
 * `deliver` and `done`. The reader allocates nothing; the owner embeds it and
 * lends it the lanes.
 *
 * Invariants: (1) `done` is called exactly once, after the last `deliver`, and
 * touches nothing of the reader afterwards. (2) after an error or a
 * cancellation no window is handed over.
 *
 * [READER-1] each lane counts itself out of `lanes_left` (in the lock) when it
 * ends; the one that reaches zero sees everything the others did and calls
 * `done`. Without it the file could be closed while a window is handed over.
 * The last one that works never rests, so zero means that no window is left.
 */
#ifndef PIN_SCAN_READER_H
#define PIN_SCAN_READER_H

#include "runtime/core/io.h"
#include "runtime/core/spawn.h"
#include "runtime/core/worker.h"
#include "runtime/host/lock.h"
#include "runtime/scan/window.h"

#include <pinion/scan.h>

struct pin_reader;

enum pin_lane_state {
	PIN_LANE_IDLE,	   /* wants a window; -> CLAIMED, or READ for a hole */
	PIN_LANE_CLAIMED,  /* wants a buffer; -> BUFFERED now or from the queue */
	PIN_LANE_BUFFERED, /* wants its read; -> READ at once, or READING */
	PIN_LANE_READING,  /* its request is in flight; -> READ by completion */
	PIN_LANE_READ,	   /* has its bytes; -> IDLE when they are handed over */
};

struct pin_lane {
	struct pinion_request request; /* its task is also the lane's continuation */
	struct pin_buffer_waiter buffer;
	struct pin_reader *reader;
	struct pin_lane *next_resting;
	enum pin_lane_state state;
	struct pin_window_claim claim;
	int32_t result;
};

struct pin_reader {
	/* Inputs, [const] while it runs */
	struct pinion_file *file;
	bool is_in_order;
	uint32_t lane_count;
	struct pin_lane *lanes;
	const struct pin_atomic_u32 *is_cancelled;
	/* Returns 0 or a negative errno, which ends the reader. */
	int (*deliver)(struct pin_reader *reader, const struct pinion_window *window);
	void (*done)(struct pin_reader *reader);
	/* In order: [own] by the worker that started it */
	struct pinion_task turn; /* queued after a few windows, to let others run */
	bool has_turn_queued;
	bool is_waiting;	  /* a lane is in the queue for buffers */
	uint64_t claimed_count;	  /* windows claimed, and with them lanes in turn */
	uint64_t delivered_count; /* of those, handed over */
	/* Shared by lanes */
	struct pin_lock lock;		   /* rank 3; of `plan`, `resting` */
	struct pin_window_plan plan;	   /* [lock:lock]; its inputs are set by the owner */
	struct pin_lane *resting;	   /* [lock:lock] */
	struct pin_atomic_u32 has_resting; /* [W:lock holder R:lanes] a hint */
	struct pin_atomic_u32 lanes_left;  /* [W:lock holder R:lanes] that work */
	struct pin_atomic_u32 error;	   /* [W:lanes R:lanes] first errno, positive; 0 none */
	struct pin_atomic_u32 was_short;   /* [W:lanes R:lanes] a read ended too early */
};

/*
 * Begins on the calling worker with the inputs and the plan set; may be done
 * before it returns.
 */
void pin_reader_start(struct pin_reader *reader);

/* 0, or the first error; in `done`. -ECANCELED: cancelled before the end. */
int pin_reader_error(const struct pin_reader *reader);

/*
 * In `done`: the file is not what it was when it was opened, in size or in that
 * bytes which should have been there were not.
 */
bool pin_reader_file_changed(const struct pin_reader *reader);

#endif
