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

/* The ends of a wait; a key is its byte, or of these. */
enum {
	TOP_SCREEN_TIME = 256, /* the time has passed */
	TOP_SCREEN_SIZE,       /* another size, or back from the background: draw */
	TOP_SCREEN_STOP,       /* a signal, or the terminal is gone */
	TOP_SCREEN_UP,
	TOP_SCREEN_DOWN,
	TOP_SCREEN_LEFT,
	TOP_SCREEN_RIGHT,
	TOP_SCREEN_PAGE_UP,
	TOP_SCREEN_PAGE_DOWN,
	TOP_SCREEN_HOME,
	TOP_SCREEN_END,
	TOP_SCREEN_OTHER, /* a key without a name here */
};

int top_screen_wait(int timeout_ms);

/* What part of the lines is seen. */
struct top_scroll {
	size_t row;
	size_t column;
};

/* True: the key moves it; top_screen_draw() keeps it within the lines. */
bool top_screen_scroll(struct top_scroll *scroll, int key);

unsigned int top_screen_columns(void);

/* Whether the locale has UTF-8, so that the terminal is taken to have it. */
bool top_screen_has_utf8(void);

/*
 * Draws a title, and whole lines below it, as top_show_lines() marks them, cut
 * to the size of the screen. False: the terminal is gone, or a signal has come
 * meanwhile.
 */
bool top_screen_draw(const char *title, const struct output_text *lines, struct top_scroll *scroll);

#endif
