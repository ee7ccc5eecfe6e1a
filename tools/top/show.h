/* SPDX-License-Identifier: MIT */
/*
 * A page in words: JSON with every value of it, and lines for people.
 */
#ifndef PINION_TOOLS_TOP_SHOW_H
#define PINION_TOOLS_TOP_SHOW_H

#include "tools/output_text.h"
#include "tools/top/page.h"

/* The columns of the table of workers, by which it can be sorted. */
enum top_column {
	TOP_BY_WORKER,
	TOP_BY_TASKS,
	TOP_BY_REQUESTS,
	TOP_BY_BYTES,
	TOP_BY_BUSY,
	TOP_BY_PARKS,
	TOP_BY_STEALS,
	TOP_BY_QUEUE,
	TOP_COLUMNS,
};

/* As the table calls it. */
const char *top_column_title(enum top_column column);

/* Before a line of a screen; no other text of ours has these bytes. */
#define TOP_MARK_TITLE "\001"
#define TOP_MARK_ALARM "\002"

/* How lines are to be. */
struct top_view {
	enum top_column column; /* workers are sorted by it */
	bool is_screen;		/* lines have marks, and one shows the last readings */
	bool has_blocks;	/* the terminal shows U+2581 to U+2588 */
	unsigned int columns;	/* of the screen */
};

/* One line: an object. */
void top_show_json(struct output_text *text, const struct top_page *page);

/* Several lines. */
void top_show_lines(
	struct output_text *text, const struct top_page *page, const struct top_view *view);

#endif
