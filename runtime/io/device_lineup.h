/* SPDX-License-Identifier: MIT */
/*
 * A line-up: requests of one device that wait on one worker, in a line for each
 * file. The lines have turns, one request each, so that a file with a thousand
 * requests does not keep one with a single request waiting.
 *
 * Lines come from the worker, which has a fixed number. When they are used up,
 * all further files of a device share one line.
 *
 * [own] by the worker, or by who has its ring's lock. Finding a file's line
 * takes as long as there are files waiting; all else is O(1), but for lines
 * that have become empty.
 *
 * Invariants: 1. an empty line goes when its turn comes. 2. requests of one
 * file start in their order.
 */
#ifndef PIN_IO_DEVICE_LINEUP_H
#define PIN_IO_DEVICE_LINEUP_H

#include "runtime/io/request.h"

/* Files of one worker that may have a line of their own. */
#define PIN_LINES 32u

struct pin_line {
	struct pin_line *next;		 /* in the circle, or of those that are free */
	const struct pinion_file *file;	 /* NULL: of several */
	struct pin_flight_link requests; /* a circle */
};

/* Those of one worker. */
struct pin_lines {
	struct pin_line *free;
	struct pin_line lines[PIN_LINES];
};

struct pin_lineup {
	struct pin_line *last; /* of the circle: `next` has its turn; NULL: none */
	uint32_t count;	       /* requests */
	struct pin_line rest;  /* of files without a line */
};

void pin_lines_init(struct pin_lines *lines);
void pin_lineup_init(struct pin_lineup *lineup);

void pin_lineup_push(
	struct pin_lineup *lineup, struct pin_lines *lines, struct pinion_request *request);

/* Whose turn it is, or NULL; it stays where it is. */
struct pinion_request *pin_lineup_first(struct pin_lineup *lineup, struct pin_lines *lines);

/* Takes that one out: the next line has its turn. */
void pin_lineup_pop(struct pin_lineup *lineup);

/* Any other that is in there; the caller unlinks it. */
static inline void pin_lineup_note_left(struct pin_lineup *lineup)
{
	lineup->count--;
}

#endif
