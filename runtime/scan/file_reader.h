/* SPDX-License-Identifier: MIT */
/*
 * A reader: one open file, read as windows, several at a time.
 *
 * It works with tracks; a track is one read at a time. In parallel each track
 * is a task of its own that any worker may take, and hands its window over as
 * soon as it is read. In order all tracks stay on the worker that started the
 * reader: reads run ahead, windows are handed over by turns. Either way a track
 * uses buffers of the worker it runs on and gives them back there.
 *
 * How many tracks work is up to the device: a track that finds others queued
 * for it (worker/request.h) on its worker rests, and a track whose read went to
 * it at once calls another. So about as many buffers are in use as the device
 * is given to do, always the same, and no more than that pass through the
 * caches. Where reads are over when they are submitted one for each worker
 * does.
 *
 * Nothing waits for a buffer while it holds a buffer that an earlier window
 * needs: in order, the earliest window of a file gets its buffer first.
 *
 * The owner decides on the windows, and on the end: `deliver` and `done`. The
 * reader allocates nothing; the owner embeds it and provides the tracks.
 *
 * Invariants: (1) `done` is called exactly once, after the last `deliver`, and
 * touches nothing of the reader afterwards. (2) after an error, a cancellation
 * or PIN_READER_ENOUGH no window is handed over; with `reports_gaps` an
 * unreadable page is not such an error, but a gap of its window.
 *
 * [READER-1] each track counts itself out of `tracks_left` (in the lock) when
 * it ends; the track that reaches zero sees everything the others did and calls
 * `done`. Without it the file could be closed while a window is handed over.
 * The last working track never rests, so zero means that no window is left.
 */
#ifndef PIN_SCAN_FILE_READER_H
#define PIN_SCAN_FILE_READER_H

#include "runtime/host/host.h"
#include "runtime/worker/spawn.h"
#include "runtime/worker/worker.h"

#include <pinion/scan.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- windows ---- */

/*
 * Cuts a file into windows: which bytes come next, and which must be read for
 * them.
 *
 *      read_offset   base          start                  end    read end
 *           |---------|-------------|----------------------|---------|
 *           alignment     prefix            new bytes       alignment
 *
 * The prefix is read again rather than copied from the window before: windows
 * are then independent, so that any worker may take any of them at any time.
 * It costs one block per window.
 *
 * Holes are found with SEEK_DATA and handed out whole, but only from where the
 * prefix of what follows is all zeros too: whatever ends inside or at the start
 * of a hole then consists of zeros alone.
 *
 * Invariants: (1) new bytes of all windows are the file, each byte once, in
 * order of index. (2) start is a multiple of PIN_PAGE_BYTES. (3) a read fits
 * round_up(overlap, 4096) + window_bytes. Claims exclude each other by the
 * caller's lock.
 */

struct pin_window_plan {
	/* Inputs. */
	int fd;
	uint64_t size_bytes;   /* at open */
	uint32_t window_bytes; /* new bytes, a multiple of 4096 */
	uint32_t overlap_bytes;
	uint32_t align_bytes; /* of a read's offset and length */
	bool find_holes;
	bool is_unsized; /* the size is unknown: one claim at a time, then advance */
	/* Progress. */
	uint64_t cursor;
	uint64_t next_index;
	bool is_finished;
};

struct pin_window_claim {
	uint64_t index;
	uint64_t base;	/* offset of the first byte to hand over */
	uint64_t start; /* offset of the first new byte */
	uint64_t end;	/* one past the last new byte */
	uint64_t read_offset;
	uint32_t read_bytes;
	bool is_hole;
	bool is_last;
};

/* The next window, or false when there is none. */
bool pin_window_next(struct pin_window_plan *plan, struct pin_window_claim *out_claim);

/*
 * For an unsized file: `end` is how far the claim's read got. Fewer new bytes
 * than asked make it the last.
 */
void pin_window_advance(struct pin_window_plan *plan, struct pin_window_claim *claim, uint64_t end);

/* Buffer bytes that any read of this plan needs at most. */
uint64_t pin_window_buffer_bytes(const struct pin_window_plan *plan);

/* ---- tracks ---- */

/*
 * A track: one of a file's reads at a time, from the claim of a window to the
 * moment when it is handed over and its buffer goes back. It takes a buffer of
 * the worker it runs on. The reader has several, says when
 * each of them goes on, and has what they share.
 *
 * A step never waits: a buffer or the bytes that are not there yet come with
 * the track's task.
 */

enum pin_track_state {
	PIN_TRACK_IDLE,	    /* wants a window; -> CLAIMED, or READ for a hole */
	PIN_TRACK_CLAIMED,  /* wants a buffer; -> BUFFERED now or from the queue */
	PIN_TRACK_BUFFERED, /* wants its read; -> READ at once, or READING */
	PIN_TRACK_READING,  /* its request is in flight; -> READ by completion */
	PIN_TRACK_READ,	    /* has its bytes; -> IDLE when they are handed over */
};

/*
 * A window whose read failed with an error of the medium is read again page by
 * page, so that the range reported as unreadable does not depend on where
 * windows begin. `gaps` has room for every other page.
 */
struct pin_salvage {
	struct pinion_gap *gaps; /* NULL: the window is read as a whole */
	size_t gap_capacity;
	size_t gap_count;
	uint64_t offset; /* of the page that is read now */
};

struct pin_track {
	struct pinion_request request; /* its task is also the track's continuation */
	struct pin_buffer_waiter buffer;
	struct pin_reader *reader;
	struct pin_track *next_resting;
	enum pin_track_state state;
	struct pin_window_claim claim;
	int32_t result;
	struct pin_salvage salvage;
	/* With a file timeout, of the read that is to be made: */
	uint64_t limit_ns;     /* until when something is to come; 0: not yet begun */
	uint32_t ended_before; /* the reader's `ended_reads` when it was begun */
	bool is_pausing;       /* it would block, and the request is a pause */
	uint32_t done_bytes;   /* of the claim's read, by requests that timed out */
	/* Of the read in flight: whose ring it went to, as it was before. */
	const struct pin_worker *worker; /* NULL: no evidence */
	uint32_t asked_before;
};

struct pin_reader {
	/* Inputs, [const] while it runs */
	struct pinion_file *file;
	bool is_in_order;
	bool reports_gaps;    /* unreadable pages cost only themselves */
	uint64_t timeout_ns;  /* of a read that brings nothing while no other ends; 0: none */
	uint64_t until_ns;    /* when no window is begun any more; 0: not known to be endless */
	uint32_t track_count; /* fewer where there are fewer windows */
	struct pin_track *tracks;
	const struct pin_atomic_u32 *is_cancelled;
	/*
	 * Returns 0, or the reason for the reader's end: a negative errno or
	 * ENOUGH.
	 */
	int (*deliver)(struct pin_reader *reader, const struct pinion_window *window);
	void (*done)(struct pin_reader *reader);
	/* In order: [own] by the worker that started it */
	struct pinion_task turn; /* queued after a few windows, to let others run */
	bool has_turn_queued;
	bool is_waiting;	  /* a track is in the queue for buffers */
	uint64_t claimed_count;	  /* windows claimed, and with them tracks in turn */
	uint64_t delivered_count; /* of those, handed over */
	/* Shared by tracks */
	struct pin_lock lock;		   /* rank 3; of `plan`, `resting`, `first_gap` */
	struct pinion_gap first_gap;	   /* [lock:lock] the lowest; error 0: none */
	struct pin_window_plan plan;	   /* [lock:lock]; its inputs are set by the owner */
	struct pin_track *resting;	   /* [lock:lock] */
	struct pin_atomic_u32 has_resting; /* [W:lock holder R:tracks] a hint */
	struct pin_atomic_u32 tracks_left; /* [W:lock holder R:tracks] that work */
	/* [W:tracks R:tracks] 0, or the first errno, positive, or ENOUGH */
	struct pin_atomic_u32 error;
	bool has_seen_end;		 /* [own] of the only track: its read showed the end */
	struct pin_atomic_u32 was_short; /* [W:tracks R:tracks] a read ended too early */
	/* [W:tracks R:tracks] a guess: reads that were over when submitted */
	struct pin_atomic_u32 instant_row;
	/* [W:tracks R:tracks] with a timeout: changes when a read ends */
	struct pin_atomic_u32 ended_reads;
};

/*
 * What `deliver` returns when it needs no more windows: the reader ends early,
 * as with an error, and has none. No errno has this number.
 */
#define PIN_READER_ENOUGH INT32_MIN

/*
 * This number in a row: the device is memory, and works while it is called.
 * Known on rings that have to be asked for later completions, and were not.
 */
#define PIN_READER_INSTANT_ROW 4

static inline bool pin_reader_is_instant(const struct pin_reader *reader)
{
	return pin_load_relaxed_u32(&reader->instant_row) >= PIN_READER_INSTANT_ROW;
}

/* IDLE. False when no window is left, or the file failed. */
bool pin_track_claim(struct pin_track *track);

/* CLAIMED. False: it is in the queue and will be continued with a buffer. */
bool pin_track_get_buffer(struct pin_track *track);

/*
 * BUFFERED: READ when the bytes are there, READING when they are on their way;
 * BUFFERED still, with its task queued, when the ring is full.
 */
void pin_track_read(struct pin_track *track);

/*
 * READING. The read is over: READ, or BUFFERED with another read to be made,
 * which pin_track_read() begins.
 */
void pin_track_end_read(struct pin_track *track);

/* READ. Hands over the bytes read, unless it failed; gives the buffer back. */
void pin_track_consume(struct pin_track *track);

/* The reader's error or PIN_READER_ENOUGH, unless there is one already. */
void pin_track_note_error(struct pin_reader *reader, int error);

/* ---- readers ---- */

/*
 * Begins on the calling worker with the inputs and the plan set; may be done
 * before it returns.
 */
void pin_reader_start(struct pin_reader *reader);

/*
 * 0, also after PIN_READER_ENOUGH, or the first error; in `done`. -ECANCELED:
 * cancelled before the end.
 */
int pin_reader_error(const struct pin_reader *reader);

/*
 * In `done`, with `reports_gaps`: 0, or the error of the lowest range that
 * could not be read.
 */
int pin_reader_gap_error(const struct pin_reader *reader);

/*
 * In `done`: the file is not what it was when it was opened, in size or in that
 * bytes which should have been there were not.
 */
bool pin_reader_file_changed(const struct pin_reader *reader);

#endif
