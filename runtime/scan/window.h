/* SPDX-License-Identifier: MIT */
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
#ifndef PIN_SCAN_WINDOW_H
#define PIN_SCAN_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
