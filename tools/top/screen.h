/* SPDX-License-Identifier: MIT */
/*
 * A terminal as a whole screen that is drawn again and again, by the sequences
 * of ECMA-48 that all terminals of today know.
 *
 * While it is in use signals are taken by top_screen_wait() only, and those of
 * a crash restore the terminal first. For the main thread.
 */
#ifndef PINION_TOOLS_TOP_SCREEN_H
#define PINION_TOOLS_TOP_SCREEN_H

#include "tools/output_text.h"

#include <stdbool.h>

/* Whether standard input and output are a terminal that can be drawn on. */
bool top_screen_is_possible(void);

/* False: it could not be taken, with a line. */
bool top_screen_begin(void);

/* Restores the terminal; does nothing where it was not taken. */
void top_screen_end(void);

/* The ends of a wait; a key is its byte. */
enum {
	TOP_SCREEN_TIME = 256, /* the time has passed */
	TOP_SCREEN_SIZE,       /* another size, or back from the background: draw */
	TOP_SCREEN_STOP,       /* a signal, or the terminal is gone */
};

int top_screen_wait(int timeout_ms);

/*
 * Draws whole lines, as top_show_lines() marks them, cut to the size of the
 * screen. False: the terminal is gone, or a signal has come meanwhile.
 */
bool top_screen_draw(const struct output_text *lines);

#endif
